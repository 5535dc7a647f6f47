//! The tests that ARCHITECTURE.md names as guards of its invariants exist.

use crate::tree::{Problem, Tree};

const MAP: &str = "ARCHITECTURE.md";

/// Checks the last column of the table under the heading "Invariants": each name in backticks is a test or a file.
pub fn check(tree: &Tree) -> Vec<Problem> {
    let text = tree.files.get(MAP).map(String::as_str).unwrap_or_default();
    let section = text.lines().enumerate().skip_while(|(_, line)| *line != "## Invariants").skip(1);
    let rows =
        section.take_while(|(_, line)| !line.starts_with("## ")).filter(|(_, line)| line.starts_with('|'));
    // Heading and rule of the table.
    let rows: Vec<(usize, &str)> = rows.skip(2).collect();
    if rows.is_empty() {
        return vec![Problem::new(MAP, "has no table under `## Invariants`")];
    }
    let mut problems = Vec::new();
    for (number, row) in rows {
        let last = row.trim_end_matches(['|', ' ']).rsplit('|').next().unwrap_or_default();
        let guards: Vec<&str> = last.split('`').skip(1).step_by(2).collect();
        if guards.is_empty() {
            problems.push(Problem::at(MAP, number + 1, "this invariant names no test"));
        }
        for guard in guards.into_iter().filter(|guard| !exists(tree, guard)) {
            problems.push(Problem::at(MAP, number + 1, format!("there is no test or file `{guard}`")));
        }
    }
    problems
}

fn exists(tree: &Tree, guard: &str) -> bool {
    let declaration = format!("fn {guard}(");
    tree.files.contains_key(guard) || tree.ending(".rs").any(|(_, text)| text.contains(&declaration))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invariants_without_a_living_guard_are_found() {
        let map = "# Map\n\n## Invariants\n\n| invariant | guarded by |\n|---|---|\n| a | `fn_a`, `b/b.rs` |\n| b | hope |\n\
                   | c | `gone` |\n\n## End\n| d | `gone` |\n";
        let tree = Tree::of(&[("ARCHITECTURE.md", map), ("a.rs", "fn fn_a() {}"), ("b/b.rs", "")]);
        let found: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "ARCHITECTURE.md:8: this invariant names no test",
                "ARCHITECTURE.md:9: there is no test or file `gone`",
            ]
        );
        assert_eq!(check(&Tree::of(&[])).len(), 1);
    }
}
