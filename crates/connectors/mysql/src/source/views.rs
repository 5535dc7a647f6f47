//! Owns consistent views: sessions whose transactions all see the database as it is at one exact place of the
//! binlog, found without any lock.
//!
//! MariaDB tells the place of a view itself. MySQL does not: there a view is accepted when the set of transactions that
//! it shows is certain. `gtid_executed` before the view opens (G) holds only transactions that the view shows, because a
//! transaction enters it after its commit in the engine. Every transaction that the view shows is in the binlog by
//! then, because it is written there before that commit. So when all transactions up to the end of the binlog, read
//! after the view has opened, are in G, the view shows exactly G.

use std::time::{Duration, Instant};

use canalis_types::{Code, Error, ErrorKind, Result};
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
/// How long a single session goes on trying.
const PATIENCE: Duration = Duration::from_secs(60);
/// After this long a transaction in the binlog is taken to be committed in the engine and in `gtid_executed` too.
const SETTLED: Duration = Duration::from_millis(200);
/// Quiet time that is asked of a server without GTIDs, before and after a view opens.
const QUIET: Duration = Duration::from_millis(25);
/// Longest piece of binlog whose transactions are listed for one try.
const LISTED_BYTES: u64 = 64 << 20;

/// How exact the place of a view must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exactness {
    /// The stream may repeat transactions that the view shows: all rows have keys and are overwritten.
    AtOrBefore,
    /// The same, but only when the exact place cannot be had in time.
    Preferred,
    /// Rows would be doubled: the exact place or none.
    Exact,
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
    exactness: Exactness,
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
        Some(opener.mysql(&mut control, &mut sessions, exactness).await?)
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

    async fn mysql(
        &self,
        control: &mut Conn,
        sessions: &mut Vec<Connection>,
        exactness: Exactness,
    ) -> Result<BinlogPosition> {
        let begun = Instant::now();
        let has_gtid = self.server.has_gtid(control).await?;
        let identity = self.server.identity(control).await?;
        let mut settled = Settled::new(self.server.end(control).await?);
        tokio::time::sleep(SETTLED).await;
        let mut tries = 0;
        loop {
            let found = if has_gtid {
                self.try_gtid(control, sessions, &mut settled).await?
            } else {
                self.try_quiet(control, sessions, &mut settled).await?
            };
            tries += 1;
            let given_up = sessions.len() == 1 && begun.elapsed() > PATIENCE;
            match found {
                Found::Exact(place) => return Ok(place.with_server(identity)),
                Found::AtOrBefore(place)
                    if (exactness == Exactness::AtOrBefore && tries >= TRIES)
                        || (exactness != Exactness::Exact && given_up) =>
                {
                    tracing::info!(tries, "the server is busy: the stream will repeat some transactions");
                    return Ok(place.with_server(identity));
                }
                _ if given_up => {
                    return Err(Error::new(
                        Code::SourceMisconfigured,
                        format!(
                            "finding the binlog position of a consistent view failed {tries} times, because \
                             transactions never pause and tables without a key need the exact one; \
                             start at a quieter time"
                        ),
                    )
                    .with_kind(ErrorKind::Transient));
                }
                _ => {}
            }
            if tries % TRIES == 0 && sessions.len() > 1 {
                sessions.pop();
            }
            let pause = rand::random_range(1..=1 + u64::from(tries.min(20)));
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }

    /// Opens the views between reading `gtid_executed` and the end of the binlog.
    async fn try_gtid(
        &self,
        control: &mut Conn,
        sessions: &mut Vec<Connection>,
        settled: &mut Settled,
    ) -> Result<Found> {
        let executed = self.server.variable(control, "gtid_executed").await?.unwrap_or_default();
        self.start_all(sessions).await?;
        let end = self.server.end(control).await?;
        let from = settled.advance(&end);
        if end.0 != from.0 || end.1.saturating_sub(from.1) > LISTED_BYTES {
            return Ok(Found::Nothing);
        }
        let transactions = if end.1 > from.1 {
            self.server.transactions(control, &from.0, from.1, end.1).await?
        } else {
            Vec::new()
        };
        if transactions.iter().any(|(_, gtid)| gtid.is_none()) {
            return Ok(Found::Nothing);
        }
        let known = |place: (String, u64)| {
            BinlogPosition::new(place.0, place.1).with_gtid_set(Some(executed.clone()))
        };
        let listed: Vec<&str> = transactions.iter().filter_map(|(_, gtid)| gtid.as_deref()).collect();
        if listed.is_empty() || self.server.is_subset(control, &listed.join(","), &executed).await? {
            return Ok(Found::Exact(known(end)));
        }
        // The first transaction that may be missing in the view; everything before it is in G.
        for (begin, gtid) in &transactions {
            if !self.server.is_subset(control, gtid.as_deref().unwrap_or_default(), &executed).await? {
                return Ok(Found::AtOrBefore(known((end.0, *begin))));
            }
        }
        Ok(Found::Nothing)
    }

    /// Without GTIDs only quiet tells: no transaction reached the binlog for a while before the views opened, and
    /// none while they did.
    async fn try_quiet(
        &self,
        control: &mut Conn,
        sessions: &mut Vec<Connection>,
        settled: &mut Settled,
    ) -> Result<Found> {
        let before = self.server.end(control).await?;
        tokio::time::sleep(QUIET).await;
        self.start_all(sessions).await?;
        let after = self.server.end(control).await?;
        let old = settled.advance(&after);
        let place = |(file, offset): (String, u64)| BinlogPosition::new(file, offset);
        Ok(if before == after { Found::Exact(place(after)) } else { Found::AtOrBefore(place(old)) })
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

enum Found {
    Exact(BinlogPosition),
    AtOrBefore(BinlogPosition),
    Nothing,
}

/// A recent end of the binlog whose transactions are all committed in the engine by now.
struct Settled {
    place: (String, u64),
    next: (String, u64),
    next_since: Instant,
}

impl Settled {
    fn new(end: (String, u64)) -> Self {
        Self { place: end.clone(), next: end, next_since: Instant::now() }
    }

    /// Takes a new end in, and gives the place.
    fn advance(&mut self, end: &(String, u64)) -> (String, u64) {
        if self.next_since.elapsed() > SETTLED {
            self.place = std::mem::replace(&mut self.next, end.clone());
            self.next_since = Instant::now();
        }
        self.place.clone()
    }
}
