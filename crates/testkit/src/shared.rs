//! Owns the servers that the tests of one process share, and what happens where one cannot be had.

use std::io::Write;
use std::sync::OnceLock;

use crate::owned::OwnedServer;
use crate::server::{Server, ServerKind};

/// Whether a missing server fails the test instead of skipping it: `CANALIS_REQUIRE_SERVICES=1`.
pub fn services_required() -> bool {
    std::env::var_os("CANALIS_REQUIRE_SERVICES").is_some_and(|value| value == "1")
}

/// The shared MariaDB: binlog ROW with full images and metadata, GTID, `local_infile`.
///
/// # Panics
/// When it cannot be had and is required.
pub fn mariadb() -> Option<&'static Server> {
    static SHARED: OnceLock<Result<OwnedServer, String>> = OnceLock::new();
    shared(&SHARED, ServerKind::MariaDb)
}

/// The shared MySQL 9: binlog ROW with full images and metadata, GTID, `local_infile`.
///
/// # Panics
/// When it cannot be had and is required.
pub fn mysql() -> Option<&'static Server> {
    static SHARED: OnceLock<Result<OwnedServer, String>> = OnceLock::new();
    shared(&SHARED, ServerKind::MySql)
}

/// The shared PostgreSQL: `wal_level` logical.
///
/// # Panics
/// When it cannot be had and is required.
pub fn postgres() -> Option<&'static Server> {
    static SHARED: OnceLock<Result<OwnedServer, String>> = OnceLock::new();
    shared(&SHARED, ServerKind::Postgres)
}

/// The shared Kafka: a single node that makes no topics by itself.
///
/// # Panics
/// When it cannot be had and is required.
pub fn kafka() -> Option<&'static Server> {
    static SHARED: OnceLock<Result<OwnedServer, String>> = OnceLock::new();
    shared(&SHARED, ServerKind::Kafka)
}

/// A private Kafka with additional lines of its properties, ended when it is dropped.
///
/// # Panics
/// When it cannot be had and is required.
pub fn start_kafka(extra_properties: &[&str]) -> Option<OwnedServer> {
    private(ServerKind::Kafka, extra_properties)
}

/// The shared Pulsar: broker, bookie and metadata store in one process.
///
/// # Panics
/// When it cannot be had and is required.
pub fn pulsar() -> Option<&'static Server> {
    static SHARED: OnceLock<Result<OwnedServer, String>> = OnceLock::new();
    shared(&SHARED, ServerKind::Pulsar)
}

/// A private Pulsar with additional lines of its configuration, ended when it is dropped.
///
/// # Panics
/// When it cannot be had and is required.
pub fn start_pulsar(extra_lines: &[&str]) -> Option<OwnedServer> {
    private(ServerKind::Pulsar, extra_lines)
}

/// The shared RocketMQ: a broker that makes no topics by itself, and its name server.
///
/// # Panics
/// When it cannot be had and is required.
pub fn rocketmq() -> Option<&'static Server> {
    static SHARED: OnceLock<Result<OwnedServer, String>> = OnceLock::new();
    shared(&SHARED, ServerKind::RocketMq)
}

/// A private RocketMQ with additional lines of the broker's properties, ended when it is dropped.
///
/// # Panics
/// When it cannot be had and is required.
pub fn start_rocketmq(extra_properties: &[&str]) -> Option<OwnedServer> {
    private(ServerKind::RocketMq, extra_properties)
}

/// A private MariaDB with additional command line arguments, ended when it is dropped.
///
/// # Panics
/// When it cannot be had and is required.
pub fn start_mariadb(extra_args: &[&str]) -> Option<OwnedServer> {
    private(ServerKind::MariaDb, extra_args)
}

/// A private MySQL 9 with additional command line arguments, ended when it is dropped.
///
/// # Panics
/// When it cannot be had and is required.
pub fn start_mysql(extra_args: &[&str]) -> Option<OwnedServer> {
    private(ServerKind::MySql, extra_args)
}

/// A private PostgreSQL with additional command line arguments (such as `-c`, `work_mem=1MB`), ended when it is dropped.
///
/// # Panics
/// When it cannot be had and is required.
pub fn start_postgres(extra_args: &[&str]) -> Option<OwnedServer> {
    private(ServerKind::Postgres, extra_args)
}

fn shared(cell: &'static OnceLock<Result<OwnedServer, String>>, kind: ServerKind) -> Option<&'static Server> {
    match cell.get_or_init(|| OwnedServer::start(kind, &[])) {
        Ok(server) => Some(server),
        Err(reason) => skip(kind, reason),
    }
}

fn private(kind: ServerKind, extra_args: &[&str]) -> Option<OwnedServer> {
    match OwnedServer::start(kind, extra_args) {
        Ok(server) => Some(server),
        Err(reason) => skip(kind, &reason),
    }
}

fn skip<T>(kind: ServerKind, reason: &str) -> Option<T> {
    // A registry that is out of reach is nobody's fault here; whoever looked says so.
    let variable = match kind {
        ServerKind::Kafka => Some("CANALIS_WITHOUT_KAFKA"),
        ServerKind::Pulsar => Some("CANALIS_WITHOUT_PULSAR"),
        ServerKind::RocketMq => Some("CANALIS_WITHOUT_ROCKETMQ"),
        _ => None,
    };
    let excused = variable.is_some_and(|name| std::env::var_os(name).is_some());
    assert!(excused || !services_required(), "{kind} is required and cannot be had: {reason}");
    // Past the capture of test output, which hides what passing tests print. Nothing else can be told there.
    let _ = writeln!(std::io::stderr(), "SKIPPED: this test needs {kind}, which cannot be had: {reason}");
    None
}
