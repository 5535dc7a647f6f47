//! Owns finding installed servers, the cache outside the repository, and data directories that are
//! initialised once per machine and copied for each server.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::owned::{Place, fresh_place};
use crate::server::ServerKind;

/// `${CANALIS_CACHE:-~/.cache/canalis}`.
pub(crate) fn cache_directory() -> PathBuf {
    match std::env::var_os("CANALIS_CACHE") {
        Some(path) if !path.is_empty() => PathBuf::from(path),
        _ => {
            let home = std::env::var_os("HOME").unwrap_or_else(|| OsStr::new("/root").to_owned());
            PathBuf::from(home).join(".cache/canalis")
        }
    }
}

/// The file tree that MySQL runs from, when `scripts/mysql-root` has made it.
pub(crate) fn mysql_root() -> Result<PathBuf, String> {
    let root = cache_directory().join("mysql-root");
    if !root.join(".complete").exists() {
        return Err(format!("{} is not complete; scripts/mysql-root makes it", root.display()));
    }
    if !is_root() {
        return Err("MySQL runs in a changed root, which needs root".to_owned());
    }
    Ok(root)
}

/// Whether this process runs as root.
pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// Finds an executable in the system's directories, those of administrators included.
pub(crate) fn find_program(name: &str, package: &str) -> Result<PathBuf, String> {
    ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"]
        .iter()
        .map(|directory| Path::new(directory).join(name))
        .find(|path| path.exists())
        .ok_or_else(|| format!("{name} is not installed (Debian package {package}; ./test installs it)"))
}

/// Runs a program to its end; `Ok` with its standard output, `Err` with what it said.
pub(crate) fn run(command: &mut Command) -> Result<String, String> {
    let output = command
        .stdin(Stdio::null())
        .current_dir("/")
        .output()
        .map_err(|error| format!("running {command:?}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!(
        "{command:?} failed with {}:\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    ))
}

/// Copies a directory with owners and modes.
pub(crate) fn copy_tree(from: &Path, to: &Path) -> Result<(), String> {
    run(Command::new("cp").args(["-a", "--sparse=always", "--"]).arg(from).arg(to)).map(drop)
}

/// The cached data directory `name`, made by `build` when it is not there yet.
///
/// `build` initialises it as `data` in the directory that it is given, which is removed afterwards. One
/// process at a time builds; a template that was left half made is made again.
pub(crate) fn template(
    kind: ServerKind,
    version: &str,
    build: impl FnOnce(&Place) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let name = format!("{kind}-{version}");
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let templates = cache_directory().join("templates");
    let (ready, part) = (templates.join(&name), templates.join(format!("{name}.part")));
    let failed = |doing: &str, error: std::io::Error| format!("{doing} in {}: {error}", templates.display());
    fs::create_dir_all(&templates).map_err(|error| failed("creating the directory", error))?;
    let lock = File::create(templates.join(format!("{name}.lock")))
        .map_err(|error| failed("creating a lock", error))?;
    lock.lock().map_err(|error| failed("locking", error))?;
    if !ready.exists() {
        if part.exists() {
            fs::remove_dir_all(&part).map_err(|error| failed("removing a half-made template", error))?;
        }
        let place = fresh_place(kind)?;
        let built = build(&place).and_then(|()| copy_tree(&place.directory.join("data"), &part));
        let removed = fs::remove_dir_all(&place.directory);
        built?;
        removed.map_err(|error| failed("removing the directory it was built in", error))?;
        fs::rename(&part, &ready).map_err(|error| failed("naming the template", error))?;
    }
    Ok(ready)
}
