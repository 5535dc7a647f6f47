//! Which licences a dependency may have: those that let the binary be given away under Apache-2.0.

use crate::metadata::Metadata;
use crate::spdx::is_satisfied;
use crate::tree::Problem;

const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Checks the licence of every third-party package of the lock file.
pub fn check(metadata: &Metadata) -> Vec<Problem> {
    let mut problems = Vec::new();
    for package in metadata.third_party() {
        let place = format!("{} {}", package.name, package.version);
        let Some(expression) = package.license.as_deref() else {
            problems.push(Problem::new(place, "declares no licence expression"));
            continue;
        };
        match is_satisfied(expression, ALLOWED) {
            Ok(true) => {}
            Ok(false) => {
                problems.push(Problem::new(place, format!("its licence is not allowed: {expression}")))
            }
            Err(reason) => {
                problems.push(Problem::new(place, format!("its licence cannot be understood: {reason}")))
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Package;

    #[test]
    fn refused_missing_and_odd_licences_are_found() {
        let metadata = Metadata {
            packages: vec![
                Package::member("crates/types", &[]),
                Package::third_party("good", Some("MIT OR Apache-2.0")),
                Package::third_party("copyleft", Some("AGPL-3.0-only")),
                Package::third_party("delayed", Some("BUSL-1.1 AND MIT")),
                Package::third_party("silent", None),
                Package::third_party("odd", Some("MIT OR")),
            ],
        };
        let names: Vec<String> =
            check(&metadata).iter().map(|problem| problem.place.trim_end().to_owned()).collect();
        assert_eq!(names, ["copyleft", "delayed", "silent", "odd"]);
    }
}
