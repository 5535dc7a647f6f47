//! Owns the picture of the repository that the rules look at, and the problems that they find.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::Command;

/// One finding: where, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Path in the repository, or the name of a package.
    pub place: String,
    /// Line, counted from 1, when there is one.
    pub line: Option<usize>,
    /// What is wrong and what to do.
    pub message: String,
}

impl Problem {
    /// A finding about a whole file or package.
    pub fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), line: None, message: message.into() }
    }

    /// A finding at one line.
    pub fn at(place: impl Into<String>, line: usize, message: impl Into<String>) -> Self {
        Self { place: place.into(), line: Some(line), message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.place, self.message),
            None => write!(f, "{}: {}", self.place, self.message),
        }
    }
}

/// The files of the repository by path, those that are not text with empty text.
#[derive(Debug, Default)]
pub struct Tree {
    /// Path with `/` to text.
    pub files: BTreeMap<String, String>,
}

impl Tree {
    /// Reads what git tracks, and what it would track: new files count before they are committed.
    pub fn read(root: &Path) -> Result<Self, String> {
        let output = Command::new("git")
            .args(["-c", "safe.directory=*", "-c", "core.quotePath=off"])
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .map_err(|error| format!("running git: {error}"))?;
        if !output.status.success() {
            return Err(format!("git ls-files failed: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        let mut tree = Self::default();
        for path in String::from_utf8_lossy(&output.stdout).split('\0').filter(|path| !path.is_empty()) {
            let full = root.join(path);
            // A tracked file that was just deleted, and a link to a directory, are no files.
            if !full.is_file() {
                continue;
            }
            let bytes = std::fs::read(&full).map_err(|error| format!("reading {path}: {error}"))?;
            tree.files.insert(path.to_owned(), String::from_utf8(bytes).unwrap_or_default());
        }
        Ok(tree)
    }

    /// The files whose names end in `suffix`.
    pub fn ending<'a>(&'a self, suffix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files
            .iter()
            .filter(move |(path, _)| path.ends_with(suffix))
            .map(|(path, text)| (&**path, &**text))
    }

    /// Whether `path` is a file or a directory with files; the empty path is the repository itself.
    pub fn holds(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        path.is_empty()
            || self.files.contains_key(path)
            || self.files.keys().any(|file| file.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')))
    }
}

#[cfg(test)]
impl Tree {
    /// A tree of the given files.
    pub fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        Self { files: files.collect() }
    }
}
