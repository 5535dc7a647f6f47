//! Owns where a stream without a snapshot begins.

use canalis_types::{Code, Error, Result};
use mysql_async::Conn;

use super::place::BinlogServer;
use crate::{Flavor, binlog::BinlogPosition, options::StartupMode};

/// First offset of an event in a file.
const FIRST: u64 = 4;

/// The place for a start-up mode that has no snapshot. For `timestamp` it is the oldest place; the caller narrows it.
///
/// # Errors
/// CNL-2004 when the binlog no longer has the place.
pub(crate) async fn place(
    server: &BinlogServer<'_>,
    conn: &mut Conn,
    mode: &StartupMode,
) -> Result<BinlogPosition> {
    match mode {
        StartupMode::Initial | StartupMode::Snapshot | StartupMode::Latest => {
            let (file, offset) = server.end(conn).await?;
            let executed = server.executed(conn).await?;
            let place = server.at(conn, &file, offset).await?;
            Ok(if executed.is_some() { place.with_gtid_set(executed) } else { place })
        }
        StartupMode::Earliest | StartupMode::Timestamp(_) => {
            let file = oldest(server, conn).await?;
            let place = server.at(conn, &file, FIRST).await?;
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
            let place = server.at(conn, &file, FIRST).await?;
            Ok(place.with_gtid_set(Some(set.clone())))
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
