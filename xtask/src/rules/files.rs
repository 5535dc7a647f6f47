//! What every source file must be: not too long, opened by its purpose, without tests that are switched off.

use crate::tree::{Problem, Tree};

/// Lines from which a file is to be thought about.
const LONG: usize = 400;
/// Lines above which a file is refused.
const TOO_LONG: usize = 600;

/// Checks length, opening and switched-off tests of all Rust files.
pub fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in tree.ending(".rs") {
        let lines = text.lines().count();
        if lines > TOO_LONG {
            problems.push(Problem::new(path, format!("has {lines} lines, more than {TOO_LONG}: split it")));
        }
        if !text.starts_with("//!") {
            problems.push(Problem::at(path, 1, "must open with `//!` and say what the file owns"));
        }
        if path.ends_with("/mod.rs") {
            problems.push(Problem::new(path, "belongs beside its directory, named like it"));
        }
        for (number, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("#[ignore") {
                problems.push(Problem::at(path, number + 1, "no test is switched off"));
            }
        }
    }
    problems
}

/// The files that may stay but are long, with their length.
pub fn long_files(tree: &Tree) -> Vec<Problem> {
    tree.ending(".rs")
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| (LONG + 1..=TOO_LONG).contains(lines))
        .map(|(path, lines)| Problem::new(path, format!("{lines} lines")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_file_passes() {
        assert_eq!(check(&Tree::of(&[("a/lib.rs", "//! Owns.\n\nfn f() {}\n"), ("notes.txt", "x")])), []);
    }

    #[test]
    fn length_opening_name_and_ignored_tests_are_found() {
        let filler = |lines: usize| format!("//! Owns.\n{}", "\n".repeat(lines - 1));
        let (long, fits, too_long) = (filler(401), filler(600), filler(601));
        let tree = Tree::of(&[
            ("a/bare.rs", "fn f() {}\n"),
            ("a/fits.rs", &fits),
            ("a/long.rs", &long),
            ("a/mod.rs", "//! Owns.\n"),
            ("a/off.rs", "//! Owns.\n\n    #[ignore = \"slow\"]\n"),
            ("a/too_long.rs", &too_long),
        ]);
        let found: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "a/bare.rs:1: must open with `//!` and say what the file owns",
                "a/mod.rs: belongs beside its directory, named like it",
                "a/off.rs:3: no test is switched off",
                "a/too_long.rs: has 601 lines, more than 600: split it",
            ]
        );
        let noted: Vec<String> = long_files(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(noted, ["a/fits.rs: 600 lines", "a/long.rs: 401 lines"]);
    }
}
