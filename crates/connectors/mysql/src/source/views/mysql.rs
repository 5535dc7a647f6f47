//! Owns views of MySQL and the proof of their place.
//!
//! `gtid_executed`, read before the views open (G), holds only transactions that the views show, because a transaction
//! enters it after its commit in the engine. Every transaction that a view shows is in the binlog by then, because it
//! is written there before that commit. So when all transactions up to the end of the binlog, read after the views have
//! opened, are in G, the views show exactly G. Those that are not in G were under way; they are harmless when they are
//! shown not to be committed in the engine ([`super::proof`]), or when the stream may repeat them.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use canalis_types::{Code, Error, ErrorKind, Result};
use mysql_async::Conn;

use super::{
    Opener, TRIES, Unrepeatable,
    proof::{Look, Pipeline, Probe},
};
use crate::{binlog::BinlogPosition, source::place::LoggedTransaction, wire::Connection};

/// How long to go on trying.
const PATIENCE: Duration = Duration::from_secs(60);
/// Tries for the exact place before the stream may repeat something.
const EXACT_TRIES: u32 = 10;
/// After this long a transaction in the binlog is taken to be committed in the engine and in `gtid_executed` too.
const SETTLED: Duration = Duration::from_millis(200);
/// Quiet time that is asked of a server without GTIDs before the views open.
const QUIET: Duration = Duration::from_millis(25);
/// How long the server goes on answering with an old list of active transactions.
const STALE: Duration = Duration::from_millis(105);
/// Longest piece of binlog whose transactions are listed for one try.
const LISTED_BYTES: u64 = 64 << 20;

/// Outcome of one try.
enum Found {
    /// The views show everything before the place and nothing after it.
    Exact(BinlogPosition),
    /// They show everything before the place, and perhaps transactions after it that touch these tables; none when it is
    /// not known which.
    Repeats(BinlogPosition, Option<HashSet<String>>),
    Nothing,
}

impl Opener<'_> {
    pub(super) async fn mysql(
        &self,
        control: &mut Conn,
        sessions: &mut Vec<Connection>,
        unrepeatable: &Unrepeatable,
    ) -> Result<BinlogPosition> {
        let begun = Instant::now();
        let has_gtid = self.server.has_gtid(control).await?;
        let identity = self.server.identity(control).await?;
        let mut settled = Settled::new(self.server.end(control).await?);
        let mut provable = !unrepeatable.never.is_empty() || !unrepeatable.rather_not.is_empty();
        tokio::time::sleep(SETTLED).await;
        let mut tries = 0;
        loop {
            let found = if has_gtid {
                self.try_gtid(control, sessions, &mut settled, &mut provable).await?
            } else {
                self.try_quiet(control, sessions, &mut settled).await?
            };
            tries += 1;
            let given_up = begun.elapsed() > PATIENCE;
            match found {
                Found::Exact(place) => return Ok(place.with_server(identity)),
                Found::Repeats(place, tables)
                    if may_repeat(tables.as_ref(), unrepeatable, tries, given_up) =>
                {
                    tracing::info!(tries, "the server is busy: the stream will repeat some transactions");
                    return Ok(place.with_server(identity));
                }
                _ if given_up => return Err(never_quiet(tries)),
                _ => {}
            }
            if tries % TRIES == 0 && sessions.len() > 1 {
                sessions.pop();
            }
            let pause = Duration::from_millis(rand::random_range(1..=1 + u64::from(tries.min(20))));
            tokio::time::sleep(if provable { STALE + pause } else { pause }).await;
        }
    }

    /// Opens the views between reading `gtid_executed` and the end of the binlog.
    async fn try_gtid(
        &self,
        control: &mut Conn,
        sessions: &mut Vec<Connection>,
        settled: &mut Settled,
        provable: &mut bool,
    ) -> Result<Found> {
        let probe = if *provable { Some(Probe::open(&self.server).await?) } else { None };
        let executed = self.server.variable(control, "gtid_executed").await?.unwrap_or_default();
        self.start_all(sessions).await?;
        let look = match probe {
            Some(probe) => probe.look(&self.server).await?,
            None => Look::Nothing,
        };
        *provable &= !matches!(look, Look::Denied);
        let pipeline = match look {
            Look::Seen(pipeline) => pipeline,
            Look::Nothing | Look::Denied => Pipeline::ending(self.server.end(control).await?),
        };
        let end = &pipeline.end;
        let Some(transactions) = self.listed(control, &settled.advance(end), end).await? else {
            return Ok(Found::Nothing);
        };
        let gtids: Option<Vec<&str>> = transactions.iter().map(|t| t.gtid.as_deref()).collect();
        let Some(gtids) = gtids else { return Ok(Found::Nothing) };
        let missing = self.server.missing(control, &gtids, &executed).await?;
        let known = |offset: u64| BinlogPosition::new(&end.0, offset).with_gtid_set(Some(executed.clone()));
        let Some(first) = missing.first() else { return Ok(Found::Exact(known(end.1))) };
        let Some(first) = transactions.iter().position(|t| t.gtid.as_ref() == Some(first)) else {
            return Ok(Found::Nothing);
        };
        let under_way = &transactions[first..];
        let place = known(under_way[0].begin);
        // With commits in the order of the binlog nothing from the first of them on is in G.
        if under_way.len() == missing.len() && missing.iter().all(|gtid| pipeline.is_uncommitted(gtid)) {
            return Ok(Found::Exact(place));
        }
        Ok(Found::Repeats(place, touched(under_way)))
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
        let place = |(file, offset): &(String, u64)| BinlogPosition::new(file, *offset);
        if before == after {
            return Ok(Found::Exact(place(&after)));
        }
        let tables = self.listed(control, &old, &after).await?.and_then(|list| touched(&list));
        Ok(Found::Repeats(place(&old), tables))
    }

    /// Transactions between two places; none when there are too many to look at.
    async fn listed(
        &self,
        control: &mut Conn,
        from: &(String, u64),
        to: &(String, u64),
    ) -> Result<Option<Vec<LoggedTransaction>>> {
        if from.0 != to.0 || to.1.saturating_sub(from.1) > LISTED_BYTES {
            return Ok(None);
        }
        if from.1 >= to.1 {
            return Ok(Some(Vec::new()));
        }
        self.server.transactions(control, &from.0, from.1, to.1).await.map(Some)
    }
}

/// Tables that transactions touch; none when one does not tell.
fn touched(transactions: &[LoggedTransaction]) -> Option<HashSet<String>> {
    let mut tables = HashSet::new();
    for transaction in transactions {
        tables.extend(transaction.tables.as_ref()?.iter().cloned());
    }
    Some(tables)
}

fn may_repeat(
    tables: Option<&HashSet<String>>,
    unrepeatable: &Unrepeatable,
    tries: u32,
    given_up: bool,
) -> bool {
    let touches = |set: &HashSet<String>| tables.map_or(!set.is_empty(), |t| !t.is_disjoint(set));
    !touches(&unrepeatable.never)
        && (given_up || (tries >= EXACT_TRIES && !touches(&unrepeatable.rather_not)))
}

fn never_quiet(tries: u32) -> Error {
    Error::new(
        Code::SourceMisconfigured,
        format!(
            "the binlog position of a consistent view could not be told in {tries} tries: transactions on tables \
             without a key never pause; start at a quieter time, or grant PROCESS and SELECT on \
             performance_schema to the account, which prove the position on a busy server too"
        ),
    )
    .with_kind(ErrorKind::Transient)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tables_that_overwrite_may_be_repeated() {
        let set = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<HashSet<String>>();
        let need = Unrepeatable { never: set(&["d.nk"]), rather_not: set(&["d.u"]) };
        let free = Unrepeatable::default();
        for (tables, unrepeatable, tries, given_up, expect) in [
            (Some(set(&["d.k"])), &need, 10, false, true),
            (Some(set(&["d.k"])), &need, 9, false, false),
            (Some(set(&["d.k", "d.nk"])), &need, 99, true, false),
            (Some(set(&["d.u"])), &need, 99, false, false),
            (Some(set(&["d.u"])), &need, 99, true, true),
            (None, &need, 99, true, false),
            (None, &free, 10, false, true),
        ] {
            assert_eq!(may_repeat(tables.as_ref(), unrepeatable, tries, given_up), expect, "{tables:?}");
        }
    }
}
