//! No file tells of the machine that it was written on: no path of it, no host of a package registry.

use crate::tree::{Problem, Tree};

/// The first directories of paths that exist on a developer's machine only. Written in two pieces, so that
/// this file does not find itself.
const PATHS: &[(&str, &str)] = &[("/ro", "ot/"), ("/wo", "rk/"), ("/fa", "rm/")];

/// Hosts that a build is told about by the machine, never by the repository.
const HOSTS: &[(&str, &str)] = &[
    ("static.", "crates.io"),
    ("index.", "crates.io"),
    ("files.", "pythonhosted"),
    ("registry.", "npmjs"),
    ("repo1.", "maven"),
    ("deb.", "debian.org"),
    ("proxy.", "golang.org"),
];

/// Looks through all text files.
pub fn check(tree: &Tree) -> Vec<Problem> {
    let paths: Vec<String> = PATHS.iter().map(|(first, second)| format!("{first}{second}")).collect();
    let hosts: Vec<String> = HOSTS.iter().map(|(first, second)| format!("{first}{second}")).collect();
    let mut problems = Vec::new();
    for (path, text) in &tree.files {
        for (number, line) in text.lines().enumerate() {
            for needle in paths.iter().filter(|needle| starts_a_path(line, needle)) {
                problems.push(Problem::at(
                    path,
                    number + 1,
                    format!("names a path of one machine: {needle}"),
                ));
            }
            for needle in hosts.iter().filter(|needle| line.contains(needle.as_str())) {
                problems.push(Problem::at(path, number + 1, format!("names a host of a registry: {needle}")));
            }
        }
    }
    problems
}

/// Whether `needle` stands in the line as the beginning of an absolute path, not inside a longer one.
fn starts_a_path(line: &str, needle: &str) -> bool {
    line.match_indices(needle).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '}' | '*' | '~'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_hosts_are_found() {
        let path = format!("see {}{}main/x", "/wo", "rk/");
        let host = format!("index = \"https://{}{}\"", "index.", "crates.io");
        let tree = Tree::of(&[
            ("a.md", &path),
            ("b.toml", &format!("x = 1\n{host}\n")),
            ("good.md", "a/work/of, crates/root/x"),
        ]);
        let found: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("a.md:1: names a path"), "{found:?}");
        assert!(found[1].starts_with("b.toml:2: names a host"), "{found:?}");
    }
}
