//! Owns consistent views: sessions whose transactions all see the database as it is at one exact place of the
//! binlog, found without any lock. MariaDB tells the place of a view itself; for MySQL see [`mysql`].

mod mysql;
mod proof;

use std::collections::HashSet;

use canalis_types::Result;
use mysql_async::Conn;

use super::{
    place::BinlogServer,
    session::{connect, connect_readers, on_a_thread},
};
use crate::{
    Flavor, ServerInfo,
    binlog::BinlogPosition,
    options::SourceOptions,
    wire::{Connection, WireError},
};

/// Tries with one number of sessions before fewer are taken.
const TRIES: u32 = 60;

/// Tables, as `database.table`, whose changes the stream should not repeat when the snapshot shows them already. Changes
/// of all other tables overwrite rows with what they hold.
#[derive(Debug, Default, Clone)]
pub(crate) struct Unrepeatable {
    /// Rows would be doubled.
    pub never: HashSet<String>,
    /// An old value of a second unique key would be refused for a while: repeated only when nothing else is possible.
    pub rather_not: HashSet<String>,
}

/// Sessions that see the same.
pub(crate) struct Views {
    pub sessions: Vec<Connection>,
    /// What they see: everything before this place. None when the server keeps no binlog.
    pub place: Option<BinlogPosition>,
}

/// Opens up to `wanted` sessions with one view.
///
/// # Errors
/// Transient when no view of certain place could be had on a busy server.
pub(crate) async fn open(
    options: &SourceOptions,
    info: &ServerInfo,
    wanted: usize,
    unrepeatable: &Unrepeatable,
) -> Result<Views> {
    let opener = Opener { server: BinlogServer { endpoint: &options.endpoint, info } };
    let (mut control, _) = connect(options).await?;
    let logs = opener.server.variable(&mut control, "log_bin").await?;
    let has_binlog = logs.is_some_and(|value| value.eq_ignore_ascii_case("on") || value == "1");
    let wanted = if has_binlog { wanted.clamp(1, options.sessions) } else { 1 };
    let mut sessions = connect_readers(&options.endpoint, info.flavor, wanted).await?;
    let place = if !has_binlog {
        opener.start_all(&mut sessions).await?;
        None
    } else if info.flavor == Flavor::MariaDb {
        Some(opener.mariadb(&mut control, &mut sessions).await?)
    } else {
        Some(opener.mysql(&mut control, &mut sessions, unrepeatable).await?)
    };
    tracing::info!(
        sessions = sessions.len(),
        place = place.as_ref().map(|p| format!("{}:{}", p.file, p.offset)),
        "opened a consistent view"
    );
    Ok(Views { sessions, place })
}

struct Opener<'a> {
    server: BinlogServer<'a>,
}

impl Opener<'_> {
    /// Opens the view of every session anew, as close together as can be: all are told before any has answered.
    async fn start_all(&self, sessions: &mut Vec<Connection>) -> Result<()> {
        fn start(sessions: &mut [Connection]) -> Result<(), WireError> {
            for session in sessions.iter_mut() {
                // It ends the transaction before.
                session.send_query("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")?;
            }
            for session in sessions {
                session.rows()?;
            }
            Ok(())
        }
        blocking(sessions, "opening a consistent view", start).await
    }

    /// Every session tells its own place; tries until all are the same, with fewer sessions as time goes by.
    async fn mariadb(&self, control: &mut Conn, sessions: &mut Vec<Connection>) -> Result<BinlogPosition> {
        let mut tries = 0;
        loop {
            self.start_all(sessions).await?;
            let places = blocking(sessions, "asking for the place of a view", |sessions| {
                sessions.iter_mut().map(view_place).collect::<Result<Vec<_>, WireError>>()
            })
            .await?;
            if let [first, rest @ ..] = places.as_slice()
                && rest.iter().all(|place| place == first)
            {
                return self.server.at(control, &first.0, first.1).await;
            }
            tries += 1;
            if tries % TRIES == 0 && sessions.len() > 1 {
                sessions.pop();
            }
        }
    }
}

/// Runs blocking work on all sessions.
async fn blocking<T: Send + 'static>(
    sessions: &mut Vec<Connection>,
    doing: &'static str,
    work: fn(&mut [Connection]) -> Result<T, WireError>,
) -> Result<T> {
    let mut taken = std::mem::take(sessions);
    let (taken, answer) = on_a_thread(move || {
        let answer = work(&mut taken);
        Ok((taken, answer))
    })
    .await?;
    *sessions = taken;
    answer.map_err(|e| e.into_error(doing))
}

/// What MariaDB tells of the session's own view.
fn view_place(session: &mut Connection) -> Result<(String, u64), WireError> {
    let rows = session.query("SHOW STATUS LIKE 'binlog\\_snapshot\\_%'")?;
    let value = |name: &str| {
        rows.iter().find_map(|row| match row.as_slice() {
            [Some(key), Some(value)] if key.eq_ignore_ascii_case(name) => Some(value.clone()),
            _ => None,
        })
    };
    match (value("binlog_snapshot_file"), value("binlog_snapshot_position").and_then(|p| p.parse().ok())) {
        (Some(file), Some(offset)) if !file.is_empty() => Ok((file, offset)),
        _ => Err(WireError::Protocol(
            "the server does not tell the binlog position of a consistent snapshot".to_owned(),
        )),
    }
}
