//! Owns how MariaDB and MySQL are initialised and started.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::install::{find_program, is_root, mysql_root, run, template};
use crate::owned::{ACCOUNT, PASSWORD, Place};
use crate::server::{Server, ServerKind};

/// An empty, initialised data directory of MariaDB.
pub(crate) fn mariadb_template() -> Result<PathBuf, String> {
    let server = find_program("mariadbd", "mariadb-server")?;
    let version = run(Command::new(server).arg("--version"))?;
    let version = version.split_whitespace().nth(2).unwrap_or("unknown");
    template(ServerKind::MariaDb, version, |place| {
        let data = place.directory.join("data");
        let mut command = Command::new(find_program("mariadb-install-db", "mariadb-server")?);
        command
            .args(["--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal"])
            .args(is_root().then_some("--user=root"))
            .arg(format!("--datadir={}", data.display()));
        run(&mut command).map(drop)
    })
}

/// An empty, initialised data directory of MySQL.
pub(crate) fn mysql_template() -> Result<PathBuf, String> {
    let root = mysql_root()?;
    let version = run(Command::new("chroot").arg(&root).args(["mysqld", "--version"]))?;
    let version = version.split_whitespace().nth(2).unwrap_or("unknown");
    template(ServerKind::MySql, version, |place| {
        let mut command = Command::new("chroot");
        command
            .arg(&root)
            .args(["mysqld", "--no-defaults", "--initialize-insecure", "--user=root"])
            .arg(format!("--datadir={}", place.inside.join("data").display()));
        run(&mut command)?;
        // It names the server; each copy makes one of its own.
        let name = place.directory.join("data/auto.cnf");
        fs::remove_file(&name).map_err(|error| format!("removing {}: {error}", name.display()))
    })
}

/// The command line of MariaDB.
pub(crate) fn mariadb_command(
    place: &Place,
    server: &Server,
    extra_args: &[String],
) -> Result<Vec<String>, String> {
    let program = find_program("mariadbd", "mariadb-server")?;
    write_accounts(&place.directory, "IDENTIFIED BY")?;
    let mut argv = vec![program.display().to_string()];
    argv.extend(common_arguments(place, server));
    argv.extend(
        [
            // What Debian's own configuration sets.
            "--character-set-server=utf8mb4",
            "--collation-server=utf8mb4_general_ci",
            "--innodb-log-file-size=256M",
        ]
        .map(str::to_owned),
    );
    argv.extend_from_slice(extra_args);
    Ok(argv)
}

/// The command line of MySQL, run in its own root.
pub(crate) fn mysql_command(
    place: &Place,
    server: &Server,
    extra_args: &[String],
) -> Result<Vec<String>, String> {
    write_accounts(&place.directory, "IDENTIFIED WITH caching_sha2_password BY")?;
    let mut argv = vec!["chroot".to_owned(), mysql_root()?.display().to_string(), "mysqld".to_owned()];
    argv.extend(common_arguments(place, server));
    argv.extend(
        [
            "--gtid-mode=ON",
            "--enforce-gtid-consistency=ON",
            "--secure-file-priv=NULL",
            "--innodb-redo-log-capacity=256M",
            "--mysqlx=OFF",
        ]
        .map(str::to_owned),
    );
    argv.extend_from_slice(extra_args);
    Ok(argv)
}

/// What both have in common. The durability of the disk is given up: a test's server outlives no power cut.
fn common_arguments(place: &Place, server: &Server) -> Vec<String> {
    let inside = place.inside.display();
    let mut arguments = vec![
        "--no-defaults".to_owned(),
        format!("--datadir={inside}/data"),
        format!("--socket={inside}/server.sock"),
        format!("--pid-file={inside}/server.pid"),
        format!("--init-file={inside}/accounts.sql"),
        format!("--port={}", server.port),
        format!("--server-id={}", server.server_id),
    ];
    arguments.extend(
        [
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            "--log-bin=binlog",
            "--binlog-format=ROW",
            "--binlog-row-image=FULL",
            "--binlog-row-metadata=FULL",
            "--local-infile=1",
            "--max-allowed-packet=256M",
            "--max-connections=300",
            "--innodb-flush-log-at-trx-commit=2",
            "--innodb-buffer-pool-size=256M",
            "--sync-binlog=0",
        ]
        .map(str::to_owned),
    );
    if is_root() {
        arguments.push("--user=root".to_owned());
    }
    arguments
}

/// Writes the statements that the server runs before it takes connections, outside its change log.
fn write_accounts(directory: &Path, identified: &str) -> Result<(), String> {
    let password = PASSWORD.replace('\'', "''");
    let mut text = String::from("SET sql_log_bin = 0;\n");
    for name in [ACCOUNT, "root"] {
        text.push_str(&format!(
            "CREATE USER IF NOT EXISTS '{name}'@'127.0.0.1' {identified} '{password}';\n\
             GRANT ALL PRIVILEGES ON *.* TO '{name}'@'127.0.0.1' WITH GRANT OPTION;\n"
        ));
    }
    let path = directory.join("accounts.sql");
    fs::write(&path, text).map_err(|error| format!("writing {}: {error}", path.display()))
}
