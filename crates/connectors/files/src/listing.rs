//! Owns finding files: a path whose components may hold `*` and `?`.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

/// Whether a path names more than one file.
pub(crate) fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?'])
}

/// The regular files that `path` stands for, in order of their names. Wildcards do not match a leading dot, so hidden files
/// (among them those that a sink has not published) are left out. Blocks.
///
/// # Errors
/// Of the file system; also `NotFound` when there is no such file, and when a path without wildcards is a directory.
pub(crate) fn expand(path: &str) -> io::Result<Vec<PathBuf>> {
    if !is_pattern(path) {
        let metadata = fs::metadata(path)?;
        if metadata.is_dir() {
            let hint = format!("it is a directory; write `{}/*` for its files", path.trim_end_matches('/'));
            return Err(io::Error::new(io::ErrorKind::NotFound, hint));
        }
        return Ok(vec![PathBuf::from(path)]);
    }
    let mut found = vec![PathBuf::new()];
    for component in Path::new(path).components() {
        let Component::Normal(name) = component else {
            found.iter_mut().for_each(|base| base.push(component));
            continue;
        };
        let name = name.to_string_lossy();
        if !is_pattern(&name) {
            found.iter_mut().for_each(|base| base.push(name.as_ref()));
            continue;
        }
        let mut next = Vec::new();
        for base in &found {
            children(base, &name, &mut next)?;
        }
        found = next;
    }
    found.retain(|path| path.is_file());
    found.sort();
    if found.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "no file matches"));
    }
    Ok(found)
}

fn children(base: &Path, pattern: &str, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let directory = if base.as_os_str().is_empty() { Path::new(".") } else { base };
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        // A component before may have matched files, or a directory may be missing: no match.
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(()),
        Err(e) => return Err(e),
    };
    for entry in entries {
        let name = entry?.file_name();
        let text = name.to_string_lossy();
        let hidden = text.starts_with('.') && !pattern.starts_with('.');
        if !hidden && matches(pattern, &text) {
            found.push(base.join(name));
        }
    }
    Ok(())
}

/// Whether `name` matches a pattern in which `*` is any text and `?` any character.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where to go back to: the last star, and the character after what it has taken so far.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if p < pattern.len() && pattern[p] == '*' {
            star = Some((p, n));
            p += 1;
        } else if p < pattern.len() && (pattern[p] == '?' || pattern[p] == name[n]) {
            p += 1;
            n += 1;
        } else if let Some((at, taken)) = star {
            star = Some((at, taken + 1));
            p = at + 1;
            n = taken + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match_inside_a_name() {
        for (pattern, name, expect) in [
            ("*.csv", "a.csv", true),
            ("*.csv", "a.csv.gz", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("?", "ä", true),
            ("?", "", false),
            ("*", "", true),
            ("part-*-0?.jsonl", "part-x-y-07.jsonl", true),
        ] {
            assert_eq!(matches(pattern, name), expect, "{pattern} on {name}");
        }
    }

    #[test]
    fn paths_expand_in_order_without_hidden_files() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b/2.csv", "b/1.csv", "b/.3.csv", "c/1.csv", "c/x.txt", "1.csv"] {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let list = |pattern: &str| -> Option<Vec<String>> {
            let paths = expand(&format!("{}/{pattern}", dir.path().display())).ok()?;
            Some(paths.iter().map(|p| p.strip_prefix(dir.path()).unwrap().display().to_string()).collect())
        };
        assert_eq!(list("*/*.csv").unwrap(), ["b/1.csv", "b/2.csv", "c/1.csv"]);
        assert_eq!(list("?/*").unwrap(), ["b/1.csv", "b/2.csv", "c/1.csv", "c/x.txt"]);
        assert_eq!(list("c/x.txt").unwrap(), ["c/x.txt"]);
        for nothing in ["*.json", "c", "missing.csv", "missing/*.csv"] {
            assert_eq!(list(nothing), None, "{nothing}");
        }
    }
}
