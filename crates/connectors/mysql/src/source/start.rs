//! Owns where a stream without a snapshot begins.

use canalis_types::{Code, Error, Result};
use mysql_async::Conn;

use super::{place::BinlogServer, session::on_a_thread};
use crate::{
    Endpoint, Flavor,
    binlog::{BinlogPosition, FIRST_OFFSET},
    options::{SourceOptions, StartupMode},
    wire::{Connection, DumpRequest, WireError},
};

/// Type of the event at the front of every file.
const FORMAT_DESCRIPTION: u8 = 15;

/// The place for a start-up mode that has no snapshot. For `timestamp` it is the front of the newest file that was begun
/// at or before the time; the stream passes over what is earlier in it.
///
/// # Errors
/// CNL-2004 when the binlog no longer has the place.
pub(crate) async fn place(
    server: &BinlogServer<'_>,
    conn: &mut Conn,
    options: &SourceOptions,
) -> Result<BinlogPosition> {
    match &options.startup {
        StartupMode::Initial | StartupMode::Snapshot | StartupMode::Latest => {
            let (file, offset) = server.end(conn).await?;
            let executed = server.executed(conn).await?;
            let place = server.at(conn, &file, offset).await?;
            Ok(if executed.is_some() { place.with_gtid_set(executed) } else { place })
        }
        StartupMode::Timestamp(millis) => {
            let files = server.files(conn).await?;
            let names: Vec<String> = files.into_iter().map(|(name, _)| name).collect();
            let file = file_at(options, server.info.flavor, names, *millis).await?;
            server.at(conn, &file, FIRST_OFFSET).await
        }
        StartupMode::Earliest => {
            let file = oldest(server, conn).await?;
            let place = server.at(conn, &file, FIRST_OFFSET).await?;
            if server.info.flavor == Flavor::MySql && server.has_gtid(conn).await? {
                let purged = server.variable(conn, "gtid_purged").await?;
                return Ok(place.with_gtid_set(purged));
            }
            Ok(place)
        }
        StartupMode::FileOffset { file, pos } => {
            let files = server.files(conn).await?;
            match files.iter().find(|(name, _)| name == file) {
                Some((_, size)) if pos <= size => server.at(conn, file, *pos).await,
                Some((_, size)) => Err(lost(format!("position {pos} is beyond the end of {file} at {size}"))),
                None => {
                    let oldest = files.first().map(|(name, _)| name.as_str()).unwrap_or("none");
                    Err(lost(format!("the server does not have binlog file {file}; the oldest is {oldest}")))
                }
            }
        }
        StartupMode::GtidSet(set) => {
            if server.info.flavor == Flavor::MySql {
                let purged = server.variable(conn, "gtid_purged").await?.unwrap_or_default();
                if !server.is_subset(conn, &purged, set).await? {
                    return Err(lost(format!(
                        "transactions after `{set}` are no longer in the binlog: {purged} are purged"
                    )));
                }
            }
            let file = oldest(server, conn).await?;
            let place = server.at(conn, &file, FIRST_OFFSET).await?;
            Ok(place.with_gtid_set(Some(set.clone())))
        }
    }
}

/// The newest file that was begun at or before a time, or the oldest file.
async fn file_at(options: &SourceOptions, flavor: Flavor, names: Vec<String>, millis: i64) -> Result<String> {
    let (endpoint, server_id) = (options.endpoint.clone(), options.server_id);
    on_a_thread(move || {
        let (mut low, mut high) = (0, names.len());
        // INVARIANT: files before `low` were begun at or before the time, files from `high` on after it.
        while low < high {
            let middle = low + (high - low) / 2;
            let begun = begun(&endpoint, flavor, server_id, &names[middle])
                .map_err(|e| e.into_error(format!("asking when binlog file {} was begun", names[middle])))?;
            if i64::from(begun) * 1000 <= millis {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        names.get(low.saturating_sub(1)).cloned().ok_or_else(|| lost("the server has no binlog file".into()))
    })
    .await
}

/// When a file was begun, seconds since the epoch.
fn begun(endpoint: &Endpoint, flavor: Flavor, server_id: u32, file: &str) -> Result<u32, WireError> {
    let mut connection = Connection::connect(endpoint, endpoint.connect_timeout)?;
    connection.query("SET @master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32'")?;
    if flavor == Flavor::MariaDb {
        connection.query("SET @mariadb_slave_capability = 4")?;
    }
    let request = DumpRequest::File { file: file.to_owned(), offset: 4 };
    let mut events = connection.start_dump(server_id, &request)?;
    loop {
        let event = events.next()?;
        if let Some(([a, b, c, d, kind], _)) = event.split_first_chunk::<5>()
            && *kind == FORMAT_DESCRIPTION
        {
            return Ok(u32::from_le_bytes([*a, *b, *c, *d]));
        }
    }
}

async fn oldest(server: &BinlogServer<'_>, conn: &mut Conn) -> Result<String> {
    let files = server.files(conn).await?;
    files.into_iter().next().map(|(name, _)| name).ok_or_else(|| lost("the server has no binlog file".into()))
}

fn lost(message: String) -> Error {
    Error::new(Code::PositionLost, message)
}
