//! Every crate takes the lints of the workspace, so that `unsafe` is forbidden everywhere.

use crate::metadata::Metadata;
use crate::tree::{Problem, Tree};

/// Checks the manifest of every crate of the workspace.
pub fn check(tree: &Tree, metadata: &Metadata) -> Vec<Problem> {
    let mut problems = Vec::new();
    for package in metadata.members() {
        let path = format!("{}/Cargo.toml", package.directory.as_deref().unwrap_or_default());
        let text = tree.files.get(&path).map(String::as_str).unwrap_or_default();
        let mut lines = text.lines().skip_while(|line| line.trim() != "[lints]").skip(1);
        if lines.next().map(str::trim) != Some("workspace = true") {
            problems.push(Problem::new(path, "must say `[lints]`, `workspace = true`"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Package;

    #[test]
    fn a_crate_without_the_lints_is_found() {
        let tree = Tree::of(&[
            ("crates/types/Cargo.toml", "[package]\n\n[lints]\nworkspace = true\n"),
            ("crates/batch/Cargo.toml", "[package]\n[workspace]\nworkspace = true\n"),
        ]);
        let metadata = Metadata {
            packages: vec![Package::member("crates/types", &[]), Package::member("crates/batch", &[])],
        };
        let found: Vec<String> = check(&tree, &metadata).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["crates/batch/Cargo.toml: must say `[lints]`, `workspace = true`"]);
    }
}
