//! Links between the documents lead somewhere: the file is there, and so is the heading.

use crate::tree::{Problem, Tree};

/// Checks the relative links of all Markdown files.
pub fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in tree.ending(".md") {
        for (line, target) in links(text) {
            if let Some(reason) = broken(tree, path, &target) {
                problems.push(Problem::at(path, line, format!("link `{target}` {reason}")));
            }
        }
    }
    problems
}

/// Why a link of the file `from` leads nowhere; `None` when it is fine or leads out of the repository.
fn broken(tree: &Tree, from: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, heading) = match target.split_once('#') {
        Some((file, heading)) => (file, Some(heading)),
        None => (target, None),
    };
    let path = if file.is_empty() {
        from.to_owned()
    } else {
        let Some(path) = resolve(from, file) else { return Some("leads out of the repository".to_owned()) };
        path
    };
    if !tree.holds(&path) {
        return Some("leads to nothing".to_owned());
    }
    let heading = heading?;
    let text = tree.files.get(&path)?;
    let known =
        prose(text).any(|(_, line)| line.starts_with('#') && anchor(line.trim_start_matches('#')) == heading);
    (!known).then(|| "names a heading that is not there".to_owned())
}

/// The path that `target` means when it is written in the file `from`.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// The anchor of a heading: lower case, spaces as hyphens, other punctuation dropped.
fn anchor(heading: &str) -> String {
    heading
        .trim()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
            _ => None,
        })
        .flat_map(char::to_lowercase)
        .collect()
}

/// The targets of `[text](target)` with their lines.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        // What stands between backticks is code.
        let visible: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for (at, _) in visible.match_indices("](") {
            let rest = &visible[at + 2..];
            if let Some(end) = rest.find(')') {
                let target = rest[..end].split(' ').next().unwrap_or_default();
                found.push((number, target.trim_matches(['<', '>']).to_owned()));
            }
        }
    }
    found
}

/// The lines outside fenced code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return None;
        }
        (!fenced).then_some((number + 1, line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_somewhere_pass() {
        let tree = Tree::of(&[
            (
                "README.md",
                "[a](docs/a.md) [b](docs/a.md#one-two) [c](docs) [d](#here)\n# Here\n[e](https://x/y)",
            ),
            (
                "docs/a.md",
                "# `One` two!\n[up](../README.md) `[code](nothing)`\n```\n[code](nothing)\n```\n[二](#中文-标题)\n## 中文 标题",
            ),
        ]);
        assert_eq!(check(&tree), []);
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let tree =
            Tree::of(&[("docs/a.md", "# One\n[a](b.md)\n[b](#two)\n[c](../../out.md)\n```\n# Two\n```\n")]);
        let found: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "docs/a.md:2: link `b.md` leads to nothing",
                "docs/a.md:3: link `#two` names a heading that is not there",
                "docs/a.md:4: link `../../out.md` leads out of the repository",
            ]
        );
    }
}
