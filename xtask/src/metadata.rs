//! Owns the packages of the workspace and their dependencies, as `cargo metadata` tells them.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// What a dependency is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Part of the crate itself, or of its build.
    Normal,
    /// Tests, examples and benches only.
    Dev,
}

/// One declared dependency.
#[derive(Debug, Clone)]
pub struct Dependency {
    /// Package name.
    pub name: String,
    /// What it is for.
    pub purpose: Purpose,
}

/// One package.
#[derive(Debug, Clone, Default)]
pub struct Package {
    /// Package name.
    pub name: String,
    /// Version.
    pub version: String,
    /// Licence expression, when one is declared.
    pub license: Option<String>,
    /// Directory in the repository; `None` for a third-party package.
    pub directory: Option<String>,
    /// Its declared dependencies.
    pub dependencies: Vec<Dependency>,
}

/// All packages that the lock file names.
#[derive(Debug, Default)]
pub struct Metadata {
    /// Members of the workspace and third-party packages.
    pub packages: Vec<Package>,
}

impl Metadata {
    /// Asks cargo.
    pub fn read(root: &Path) -> Result<Self, String> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["metadata", "--format-version=1", "--locked"])
            .current_dir(root)
            .output()
            .map_err(|error| format!("running cargo metadata: {error}"))?;
        if !output.status.success() {
            return Err(format!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        let value: Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("cargo metadata is no JSON: {error}"))?;
        let packages = value["packages"].as_array().ok_or("cargo metadata has no packages")?;
        Ok(Self { packages: packages.iter().map(package).collect() })
    }

    /// The packages of this workspace.
    pub fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.directory.is_some())
    }

    /// The packages of others.
    pub fn third_party(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.directory.is_none())
    }
}

fn package(value: &Value) -> Package {
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    // A package without a source is one of ours: the workspace has no other path dependencies.
    let directory = value["source"].is_null().then(|| {
        let manifest = text("manifest_path").unwrap_or_default();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("/"));
        let directory = Path::new(&manifest).parent().unwrap_or(Path::new(""));
        directory.strip_prefix(root).unwrap_or(directory).display().to_string()
    });
    let dependencies = value["dependencies"].as_array().into_iter().flatten();
    Package {
        name: text("name").unwrap_or_default(),
        version: text("version").unwrap_or_default(),
        license: text("license"),
        directory,
        dependencies: dependencies
            .map(|dependency| Dependency {
                name: dependency["name"].as_str().unwrap_or_default().to_owned(),
                purpose: if dependency["kind"] == "dev" { Purpose::Dev } else { Purpose::Normal },
            })
            .collect(),
    }
}

#[cfg(test)]
impl Package {
    /// A member of the workspace in `directory`, with dependencies; `dev:` marks those of tests.
    pub fn member(directory: &str, dependencies: &[&str]) -> Self {
        let word = directory.rsplit('/').next().unwrap_or(directory);
        Self {
            name: if word == "xtask" { word.to_owned() } else { format!("canalis-{word}") },
            directory: Some(directory.to_owned()),
            dependencies: dependencies
                .iter()
                .map(|name| match name.strip_prefix("dev:") {
                    Some(name) => Dependency { name: name.to_owned(), purpose: Purpose::Dev },
                    None => Dependency { name: (*name).to_owned(), purpose: Purpose::Normal },
                })
                .collect(),
            ..Self::default()
        }
    }

    /// A package of others.
    pub fn third_party(name: &str, license: Option<&str>) -> Self {
        Self { name: name.to_owned(), license: license.map(str::to_owned), ..Self::default() }
    }
}
