//! Owns how PostgreSQL is initialised and started; it refuses to run as root, so root lends it another account.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::install::{self, is_root, run};
use crate::owned::{ACCOUNT, PASSWORD, Place};
use crate::server::{Server, ServerKind};

/// An empty, initialised data directory.
pub(crate) fn template() -> Result<PathBuf, String> {
    let programs = programs()?;
    let version = run(Command::new(programs.join("postgres")).arg("--version"))?;
    let version = version.split_whitespace().nth(2).unwrap_or("unknown");
    install::template(ServerKind::Postgres, version, |place| {
        let data = place.directory.join("data");
        let password_file = place.directory.join("password");
        fs::write(&password_file, PASSWORD).map_err(|error| format!("writing a password file: {error}"))?;
        fs::set_permissions(&place.directory, fs::Permissions::from_mode(0o755))
            .map_err(|error| format!("opening {}: {error}", place.directory.display()))?;
        if let Some((user, group)) = server_account()? {
            chown(&place.directory, Some(user), Some(group))
                .map_err(|error| format!("handing {} over: {error}", place.directory.display()))?;
        }
        let initdb = [
            programs.join("initdb").display().to_string(),
            format!("--pgdata={}", data.display()),
            format!("--username={ACCOUNT}"),
            format!("--pwfile={}", password_file.display()),
            "--auth=scram-sha-256".to_owned(),
            "--encoding=UTF8".to_owned(),
            "--locale=C.UTF-8".to_owned(),
            "--no-sync".to_owned(),
        ];
        let argv = as_server_account(&initdb)?;
        run(Command::new(&argv[0]).args(&argv[1..])).map(drop)
    })
}

/// The command line of the server. The durability of the disk is given up: a test's server outlives no power cut.
pub(crate) fn command(place: &Place, server: &Server, extra_args: &[String]) -> Result<Vec<String>, String> {
    let mut argv = vec![
        programs()?.join("postgres").display().to_string(),
        "-D".to_owned(),
        place.inside.join("data").display().to_string(),
        "-p".to_owned(),
        server.port.to_string(),
    ];
    let settings = [
        "listen_addresses=127.0.0.1",
        "unix_socket_directories=",
        "max_connections=100",
        "wal_level=logical",
        "max_wal_size=1GB",
        "shared_buffers=128MB",
        "fsync=off",
        "full_page_writes=off",
        "log_line_prefix=%m [%p] ",
    ];
    for setting in settings {
        argv.extend(["-c".to_owned(), setting.to_owned()]);
    }
    argv.extend_from_slice(extra_args);
    as_server_account(&argv)
}

/// The first message of a client of protocol 3.0: length, version, pairs of names and values.
pub(crate) fn startup_message(username: &str) -> Vec<u8> {
    let mut body = 196_608_u32.to_be_bytes().to_vec();
    for word in ["user", username, "database", "postgres", ""] {
        body.extend_from_slice(word.as_bytes());
        body.push(0);
    }
    let length = u32::try_from(body.len() + 4).expect("the message is short");
    [&length.to_be_bytes()[..], &body].concat()
}

/// The directory of the newest installed release's programs.
fn programs() -> Result<PathBuf, String> {
    let base = Path::new("/usr/lib/postgresql");
    let releases = fs::read_dir(base).into_iter().flatten().flatten();
    releases
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|release| base.join(release.to_string()).join("bin/postgres").exists())
        .max()
        .map(|release| base.join(release.to_string()).join("bin"))
        .ok_or_else(|| {
            "PostgreSQL is not installed (Debian package postgresql; ./test installs it)".to_owned()
        })
}

/// User and group that a root process runs the server as; `None` when it can run as ourselves.
fn server_account() -> Result<Option<(u32, u32)>, String> {
    if !is_root() {
        return Ok(None);
    }
    let accounts =
        fs::read_to_string("/etc/passwd").map_err(|error| format!("reading /etc/passwd: {error}"))?;
    accounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(':');
            (fields.next() == Some("postgres")).then_some(())?;
            Some((fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?))
        })
        .next()
        .map(Some)
        .ok_or_else(|| "there is no account postgres to run the server as".to_owned())
}

fn as_server_account(argv: &[String]) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    if let Some((user, group)) = server_account()? {
        all.extend(["setpriv".to_owned(), format!("--reuid={user}"), format!("--regid={group}")]);
        all.extend(["--clear-groups".to_owned(), "--".to_owned()]);
    }
    all.extend_from_slice(argv);
    Ok(all)
}
