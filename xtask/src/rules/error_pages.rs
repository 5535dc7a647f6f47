//! Every error code has its page, with the same title and all its parts, and every page has its code.

use crate::tree::{Problem, Tree};

const DIRECTORY: &str = "docs/errors/";
/// What a user looks for on a page.
const PARTS: &[&str] = &["## Cause", "## Fix", "## Example"];

/// An error code as it is shown to users, with its title.
#[derive(Debug, Clone)]
pub struct KnownCode {
    /// `CNL-nnnn`.
    pub code: String,
    /// The title of its page.
    pub title: String,
}

impl KnownCode {
    /// All codes of the product.
    pub fn all() -> Vec<Self> {
        let code =
            |code: &canalis_types::Code| Self { code: code.to_string(), title: code.title().to_owned() };
        canalis_types::Code::ALL.iter().map(code).collect()
    }
}

/// Checks `docs/errors/` against the codes.
pub fn check(tree: &Tree, codes: &[KnownCode]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for KnownCode { code, title } in codes {
        let path = format!("{DIRECTORY}{code}.md");
        let Some(text) = tree.files.get(&path) else {
            problems.push(Problem::new(path, "this page is missing"));
            continue;
        };
        let opening = format!("# {code}: {title}");
        if text.lines().next() != Some(&opening) {
            problems.push(Problem::at(&path, 1, format!("must open with `{opening}`")));
        }
        for part in PARTS {
            if !text.lines().any(|line| line == *part) {
                problems.push(Problem::new(&path, format!("has no part `{part}`")));
            }
        }
    }
    for (path, _) in tree.ending(".md") {
        let Some(name) = path.strip_prefix(DIRECTORY).and_then(|name| name.strip_suffix(".md")) else {
            continue;
        };
        if name != "README" && !codes.iter().any(|known| known.code == name) {
            problems.push(Problem::new(path, "no error code has this page"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_incomplete_and_orphan_pages_are_found() {
        let codes = ["CNL-1001", "CNL-1002", "CNL-1003"]
            .map(|code| KnownCode { code: code.to_owned(), title: "title".to_owned() });
        let good = "# CNL-1001: title\n\n## Cause\n\n## Fix\n\n## Example\n";
        let tree = Tree::of(&[
            ("docs/errors/CNL-1001.md", good),
            ("docs/errors/CNL-1002.md", "# title\n\n## Cause\n\n## Fix\n"),
            ("docs/errors/CNL-7777.md", good),
            ("docs/errors/README.md", "# Errors\n"),
        ]);
        let found: Vec<String> = check(&tree, &codes).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "docs/errors/CNL-1002.md:1: must open with `# CNL-1002: title`",
                "docs/errors/CNL-1002.md: has no part `## Example`",
                "docs/errors/CNL-1003.md: this page is missing",
                "docs/errors/CNL-7777.md: no error code has this page",
            ]
        );
    }
}
