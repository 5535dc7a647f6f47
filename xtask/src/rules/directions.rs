//! Which crate may use which: the order of the crates, and the dependencies that belong to one place.

use crate::metadata::{Metadata, Package, Purpose};
use crate::tree::Problem;

/// The crates from the bottom to the top; a crate may use those before it only.
const ORDER: &[&str] = &[
    "types",
    "batch",
    "connector-api",
    "formats",
    "transforms",
    "messages",
    "connectors/",
    "plan",
    "engine",
    "runtime",
    "store",
    "coordination",
    "cluster",
    "flink",
    "workflow",
    "manager",
    "api",
    "cli",
];

/// Crates that stand beside the order, and which of our crates each may use.
const APART: &[(&str, Allowed)] =
    &[("testkit", Allowed::Nothing), ("bench", Allowed::Everything), ("xtask", Allowed::Types)];

#[derive(Clone, Copy)]
enum Allowed {
    Nothing,
    Types,
    Everything,
}

/// Who alone may use connectors by name, because everything is wired there.
const WIRES_CONNECTORS: &[&str] = &["cli", "bench"];

/// Crates that do no IO.
const PURE: &[&str] = &["types", "batch", "plan"];

/// Where a crate stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing<'a> {
    Rank(usize),
    Apart(&'a str),
}

/// Checks every declared dependency of every crate of the workspace.
pub fn check(metadata: &Metadata) -> Vec<Problem> {
    let mut problems = Vec::new();
    for package in metadata.members() {
        let Some(from) = standing(package) else {
            problems.push(Problem::new(&package.name, "this crate has no place in the order of crates"));
            continue;
        };
        for dependency in &package.dependencies {
            let target = metadata.members().find(|member| member.name == dependency.name);
            let refused = match target {
                Some(target) => refused_member(package, from, target, dependency.purpose),
                None => refused_third_party(package, &dependency.name, dependency.purpose),
            };
            if let Some(reason) = refused {
                problems
                    .push(Problem::new(&package.name, format!("may not use {}: {reason}", dependency.name)));
            }
        }
    }
    problems
}

fn refused_member(
    package: &Package,
    from: Standing<'_>,
    target: &Package,
    purpose: Purpose,
) -> Option<String> {
    let to = standing(target)?;
    match (from, to) {
        (Standing::Apart(name), _) => match APART.iter().find(|(apart, _)| *apart == name)?.1 {
            Allowed::Everything => None,
            Allowed::Types if to == Standing::Rank(0) => None,
            Allowed::Types => Some("it may use canalis-types only".to_owned()),
            Allowed::Nothing => Some("it may not know the crates under test".to_owned()),
        },
        (_, Standing::Apart("testkit")) if purpose == Purpose::Dev => None,
        (_, Standing::Apart(name)) => Some(format!("{name} is for tests and tools only")),
        (Standing::Rank(from), Standing::Rank(to)) if from == to => {
            Some("no connector may use another".to_owned())
        }
        (Standing::Rank(from), Standing::Rank(to)) if from < to => {
            Some(format!("{} stands below {}", ORDER[from], ORDER[to]))
        }
        (Standing::Rank(_), Standing::Rank(_)) => {
            let named = is_connector(target) && purpose == Purpose::Normal;
            (named && !WIRES_CONNECTORS.contains(&word(package)))
                .then(|| "connectors are named where everything is wired only".to_owned())
        }
    }
}

fn refused_third_party(package: &Package, name: &str, purpose: Purpose) -> Option<String> {
    if name.starts_with("datafusion") && word(package) != "transforms" {
        return Some("only transforms may use DataFusion".to_owned());
    }
    if (name == "tokio" || name.starts_with("tokio-"))
        && purpose == Purpose::Normal
        && PURE.contains(&word(package))
    {
        return Some("this crate does no IO".to_owned());
    }
    None
}

fn standing(package: &Package) -> Option<Standing<'_>> {
    let word = word(package);
    if APART.iter().any(|(apart, _)| *apart == word) {
        return Some(Standing::Apart(word));
    }
    let name = if is_connector(package) { "connectors/" } else { word };
    ORDER.iter().position(|known| *known == name).map(Standing::Rank)
}

fn is_connector(package: &Package) -> bool {
    package.directory.as_deref().is_some_and(|directory| directory.starts_with("crates/connectors/"))
}

/// The last part of the crate's directory.
fn word(package: &Package) -> &str {
    package.directory.as_deref().and_then(|directory| directory.rsplit('/').next()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(packages: &[Package]) -> Vec<String> {
        let metadata = Metadata { packages: packages.to_vec() };
        check(&metadata).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_good_workspace_passes() {
        let found = problems(&[
            Package::member("crates/types", &["serde"]),
            Package::member("crates/testkit", &["tokio"]),
            Package::member("crates/transforms", &["canalis-types", "datafusion-expr"]),
            Package::member("crates/connectors/files", &["canalis-types", "tokio", "dev:canalis-testkit"]),
            Package::member("crates/plan", &["canalis-transforms", "dev:tokio"]),
            Package::member("crates/runtime", &["canalis-plan", "tokio", "dev:canalis-files"]),
            Package::member("crates/cli", &["canalis-runtime", "canalis-files", "dev:canalis-testkit"]),
            Package::member("crates/bench", &["canalis-cli", "canalis-testkit"]),
            Package::member("xtask", &["canalis-types"]),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn each_wrong_direction_is_found() {
        let all = [
            "crates/types",
            "crates/batch",
            "crates/connectors/files",
            "crates/connectors/mysql",
            "crates/plan",
            "crates/runtime",
            "crates/testkit",
        ];
        for (directory, dependency, reason) in [
            ("crates/types", "canalis-batch", "types stands below batch"),
            ("crates/types", "dev:canalis-batch", "types stands below batch"),
            ("crates/plan", "canalis-runtime", "plan stands below runtime"),
            ("crates/connectors/files", "canalis-mysql", "no connector may use another"),
            ("crates/runtime", "canalis-mysql", "where everything is wired"),
            ("crates/plan", "canalis-testkit", "for tests and tools only"),
            ("crates/testkit", "canalis-types", "may not know the crates under test"),
            ("xtask", "canalis-plan", "canalis-types only"),
            ("crates/plan", "tokio", "does no IO"),
            ("crates/batch", "tokio-util", "does no IO"),
            ("crates/runtime", "datafusion-sql", "only transforms"),
            ("crates/surprise", "serde", "no place in the order"),
        ] {
            let mut packages: Vec<Package> = all
                .iter()
                .filter(|other| **other != directory)
                .map(|other| Package::member(other, &[]))
                .collect();
            packages.push(Package::member(directory, &[dependency]));
            let found = problems(&packages);
            assert_eq!(found.len(), 1, "{directory} -> {dependency}: {found:?}");
            assert!(found[0].contains(reason), "{directory} -> {dependency}: {found:?}");
        }
    }
}
