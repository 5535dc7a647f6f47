//! Owns beginning a session: connecting, proving that the server is the one that the position belongs to, and asking
//! for the dump.

use std::time::Duration;

use canalis_types::{Code, Error};

use super::{
    ReaderConfig,
    failure::{Failure, Session, position_lost, refused},
};
use crate::{
    Flavor,
    binlog::{
        BinlogPosition, FIRST_OFFSET, file_number,
        gtid::{Executed, GtidSet},
    },
    wire::{Connection, DumpRequest, EventStream},
};

/// From where a session goes on.
#[derive(Debug, Clone)]
pub enum From {
    /// A place in a file.
    Position(BinlogPosition),
    /// The transactions that are done.
    Executed(Executed),
    /// The oldest event.
    Oldest,
}

/// A running dump.
pub struct Dump {
    /// Its events.
    pub events: EventStream,
    /// Identity of the server.
    pub server: String,
    /// Oldest file that the server has, if it tells.
    pub oldest: Option<String>,
    /// Where it was asked to begin.
    pub begin: Begin,
}

/// Where a dump begins.
pub enum Begin {
    /// At a place.
    At(BinlogPosition),
    /// Where the server finds the transactions that come next; it will tell.
    Told,
    /// The same, with the transactions that come after a place in the log of another server.
    After(BinlogPosition),
}

/// Longest silence before the connection counts as lost.
fn read_timeout(config: &ReaderConfig) -> Duration {
    config.heartbeat * 2 + Duration::from_secs(5)
}

/// Opens a connection for queries or a dump.
pub fn connect(config: &ReaderConfig) -> Session<Connection> {
    let endpoint = &config.endpoint;
    let mut connection = Connection::connect(endpoint, read_timeout(config))
        .map_err(|e| refused(e, &format!("connecting to {}", endpoint.address())))?;
    ask(&mut connection, "SET NAMES utf8mb4")?;
    Ok(connection)
}

fn ask(connection: &mut Connection, sql: &str) -> Session<Option<String>> {
    connection.query_one(sql).map_err(|e| refused(e, &format!("asking the source: {sql}")))
}

/// Connects, checks that the server has what is asked for, and begins the dump.
pub fn open(config: &ReaderConfig, from: &From, watch: &dyn Fn(std::net::TcpStream)) -> Session<Dump> {
    let mut connection = connect(config)?;
    watch(connection.socket().map_err(|e| refused(e, "keeping the connection"))?);
    let server = identity(&mut connection, config.flavor)?;
    let files = files(&mut connection)?;
    let oldest = files.as_ref().and_then(|files| files.first()).map(|(name, _)| name.clone());
    prepare_session(&mut connection, config)?;
    let (request, begin) = match from {
        From::Position(position) if position.server.as_ref().is_some_and(|known| *known != server) => {
            let set = check_other(&mut connection, config.flavor, position, &server, oldest.as_deref())?;
            tracing::warn!(
                from = position.server, to = server, after = %set,
                "this is another server, which has the transactions that come next; going on here"
            );
            (by_transactions(&mut connection, &set)?, Begin::After(position.clone()))
        }
        From::Position(position) => {
            check_file(position, files.as_deref(), oldest.as_deref())?;
            check_history(&mut connection, config.flavor, position, oldest.as_deref())?;
            // The command has 32 bits for the offset; beyond, the file is read from its front.
            let offset = u32::try_from(position.offset).unwrap_or(4);
            (DumpRequest::File { file: position.file.clone(), offset }, Begin::At(position.clone()))
        }
        From::Executed(set) => {
            if let Executed::MySql(set) = set {
                check_purged(&mut connection, set, oldest.as_deref())?;
            }
            (by_transactions(&mut connection, set)?, Begin::Told)
        }
        From::Oldest => {
            let file = oldest.clone().ok_or_else(|| {
                Error::new(
                    Code::SourceMisconfigured,
                    "the source does not tell its binlog files, or has none",
                )
            })?;
            let position = BinlogPosition::new(file.clone(), FIRST_OFFSET).with_server(Some(server.clone()));
            (DumpRequest::File { file, offset: 4 }, Begin::At(position))
        }
    };
    connection.register_replica(config.server_id).map_err(|e| refused(e, "registering as a replica"))?;
    let events =
        connection.start_dump(config.server_id, &request).map_err(|e| refused(e, "asking for the binlog"))?;
    Ok(Dump { events, server, oldest, begin })
}

/// What tells this server from another behind the same name.
fn identity(connection: &mut Connection, flavor: Flavor) -> Session<String> {
    let sql = match flavor {
        Flavor::MySql => "SELECT @@server_uuid",
        Flavor::MariaDb => "SELECT @@server_id",
    };
    Ok(ask(connection, sql)?.unwrap_or_default())
}

/// Names and sizes of the files; `None` when the account may not see them.
fn files(connection: &mut Connection) -> Session<Option<Vec<(String, u64)>>> {
    const NO_RIGHT: u16 = 1227;
    let rows = match connection.query("SHOW BINARY LOGS") {
        Ok(rows) => rows,
        Err(crate::wire::WireError::Server { code: NO_RIGHT, .. }) => return Ok(None),
        Err(error) => return Err(refused(error, "asking the source for its binlog files")),
    };
    let mut files = Vec::with_capacity(rows.len());
    for row in rows {
        let mut fields = row.into_iter().flatten();
        if let (Some(name), Some(size)) = (fields.next(), fields.next()) {
            files.push((name, size.parse().unwrap_or(u64::MAX)));
        }
    }
    Ok(Some(files))
}

/// Tells the server what this replica understands.
fn prepare_session(connection: &mut Connection, config: &ReaderConfig) -> Session<()> {
    let period = config.heartbeat.as_nanos();
    // MySQL has renamed these variables and takes either name; servers pass over names that they do not know.
    let mut settings = vec![
        "SET @master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32'".to_owned(),
        format!("SET @master_heartbeat_period = {period}, @source_heartbeat_period = {period}"),
        "SET SESSION net_write_timeout = 3600".to_owned(),
    ];
    if config.flavor == Flavor::MariaDb {
        // 4: understands GTID events. Annotations are not asked for.
        settings.push("SET @mariadb_slave_capability = 4".to_owned());
    }
    for setting in settings {
        ask(connection, &setting)?;
    }
    Ok(())
}

fn lost(position: &BinlogPosition, oldest: Option<&str>, why: &str) -> Failure {
    Failure::Fatal(position_lost(&format!("{}:{}", position.file, position.offset), oldest, why))
}

/// Asks for what comes after a set of transactions.
fn by_transactions(connection: &mut Connection, set: &Executed) -> Session<DumpRequest> {
    Ok(match set {
        Executed::MySql(set) => DumpRequest::Gtid(set.encode()),
        Executed::MariaDb(list) => {
            ask(connection, &format!("SET @slave_connect_state = '{list}'"))?;
            ask(connection, "SET @slave_gtid_strict_mode = 1")?;
            DumpRequest::File { file: String::new(), offset: 4 }
        }
    })
}

/// Another server may go on from the position if it has executed everything before it and still has everything behind
/// it. Gives the transactions before the position.
fn check_other(
    connection: &mut Connection,
    flavor: Flavor,
    position: &BinlogPosition,
    server: &str,
    oldest: Option<&str>,
) -> Session<Executed> {
    let known = position.server.as_deref().unwrap_or_default();
    let lost = |why: &str| {
        let why = format!("it belongs to server {known}, and this is server {server}{why}");
        Err(lost(position, oldest, &why))
    };
    let Some(text) = &position.gtid_set else {
        return lost("; without GTIDs there is no telling where to go on");
    };
    let set = Executed::parse(flavor, text)?;
    if position.events > 0 {
        return lost(
            "; the position is inside a transaction, which only the server that it belongs to can cut there",
        );
    }
    match (flavor, executed(connection, flavor)?) {
        (_, all) if Executed::parse(flavor, &all)?.contains(&set) => {}
        (Flavor::MariaDb, all) => return lost(&format!(", which has executed {all}, less than {text}")),
        (Flavor::MySql, _) => {
            let sql = format!("SELECT GTID_SUBTRACT('{text}', @@global.gtid_executed)");
            let missing = ask(connection, &sql)?.unwrap_or_default();
            return lost(&format!(", which has not executed {missing}"));
        }
    }
    // MariaDB tells a state that is purged when the dump begins.
    if flavor == Flavor::MySql {
        let sql = format!("SELECT GTID_SUBTRACT(@@global.gtid_purged, '{text}')");
        let missing = ask(connection, &sql)?.unwrap_or_default();
        if !missing.is_empty() {
            return lost(&format!(", which has purged {missing}"));
        }
    }
    Ok(set)
}

/// The transactions that the server has executed, as text.
fn executed(connection: &mut Connection, flavor: Flavor) -> Session<String> {
    let sql = match flavor {
        Flavor::MySql => "SELECT @@global.gtid_executed",
        Flavor::MariaDb => "SELECT @@global.gtid_binlog_pos",
    };
    Ok(ask(connection, sql)?.unwrap_or_default())
}

/// A position beyond the end of the log means that the log was begun anew.
fn check_file(
    position: &BinlogPosition,
    files: Option<&[(String, u64)]>,
    oldest: Option<&str>,
) -> Session<()> {
    let Some(files) = files else { return Ok(()) };
    if let Some((_, size)) = files.iter().find(|(name, _)| *name == position.file) {
        return if position.offset <= *size {
            Ok(())
        } else {
            Err(lost(position, oldest, &format!("the file has only {size} bytes: the log was begun anew")))
        };
    }
    let newest = files.last().and_then(|(name, _)| file_number(name));
    let why = if file_number(&position.file) > newest {
        "the server's log does not reach so far: it was begun anew"
    } else {
        "the server has purged the file"
    };
    Err(lost(position, oldest, why))
}

/// The server must have executed what comes before the position.
fn check_history(
    connection: &mut Connection,
    flavor: Flavor,
    position: &BinlogPosition,
    oldest: Option<&str>,
) -> Session<()> {
    let Some(text) = &position.gtid_set else { return Ok(()) };
    let executed = executed(connection, flavor)?;
    if Executed::parse(flavor, &executed)?.contains(&Executed::parse(flavor, text)?) {
        return Ok(());
    }
    Err(lost(position, oldest, &format!("the server has executed {executed}, which is less than {text}")))
}

/// With a GTID set of MySQL, everything that was purged must be in it.
fn check_purged(connection: &mut Connection, set: &GtidSet, oldest: Option<&str>) -> Session<()> {
    let purged = ask(connection, "SELECT @@global.gtid_purged")?.unwrap_or_default();
    let parsed = GtidSet::parse(&purged)
        .map_err(|e| Error::new(Code::SourceUndecodable, format!("gtid_purged {purged:?}: {e}")))?;
    if set.contains_all(&parsed) {
        return Ok(());
    }
    Err(Failure::Fatal(position_lost(&set.to_string(), oldest, &format!("the server has purged {purged}"))))
}
