//! Owns the table `canalis_progress`: what of a job is committed, written in the same transactions as the rows.
//!
//! INVARIANT: a transaction of an earlier run that is still under way when the job starts again is either committed
//! before the records are read, or never. Opening takes every record of the job over, which waits for such
//! transactions; a writer that finds its record taken over cannot commit.

use canalis_connector_api::SinkRecovery;
use canalis_types::{Code, Error, Position, Result, TableId};
use ring::digest::{SHA256, digest};

use super::{failure::Failure, session::Session};
use crate::quote;

/// Name of the table.
const TABLE: &str = "canalis_progress";

/// Longest name of a split that is used as it is, in characters.
const LONGEST_ENTRY: usize = 480;

/// Records of one job, owned by one run of it.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    table: String,
    job: String,
    owner: String,
}

/// A record of what is committed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Entry<'a> {
    /// All rows of a split are there.
    SplitDone(&'a str),
    /// The rows of an append split are there up to a position.
    SplitAt(&'a str, &'a Position),
    /// The job has created a table.
    Created(&'a TableId),
}

impl Progress {
    /// Makes the table, removes for a fresh job what an earlier job of this name left, and takes the records over.
    pub(super) async fn open(
        session: &mut Session,
        database: &str,
        job: &str,
        start: Start,
        writers: usize,
    ) -> Result<Self> {
        if job.chars().count() > 191 {
            return Err(Error::new(
                Code::PipelineInvalid,
                format!("the job's name `{job}` is longer than 191 characters"),
            ));
        }
        let place = TableId::new(database, TABLE);
        let owner = format!("'{:032x}'", rand::random::<u128>());
        let progress = Self { table: quote::table(&place), job: quote::text(job), owner };
        create_database(session, database).await?;
        let bin = "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin";
        let create = format!(
            "CREATE TABLE IF NOT EXISTS {} (\n  job VARCHAR(191) {bin} NOT NULL,\n  entry VARCHAR(512) {bin} NOT NULL,\n  \
             owner CHAR(32) {bin} NOT NULL,\n  writers INT NOT NULL,\n  epoch BIGINT UNSIGNED NOT NULL,\n  position_order VARCHAR(80) {bin} NULL,\n  \
             detail LONGTEXT {bin} NOT NULL,\n  \
             updated TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3),\n  \
             PRIMARY KEY (job, entry)\n) ENGINE=InnoDB COMMENT='What jobs of Canalis have committed; do not change'",
            progress.table
        );
        session.execute(&format!("creating {place}"), &create).await?;
        if start == Start::Fresh {
            let clear = format!(
                "DELETE FROM {} WHERE job = {} AND entry NOT LIKE 'table:%'",
                progress.table, progress.job
            );
            session.execute(&format!("clearing records of the job in {place}"), &clear).await?;
        }
        let all: Vec<String> = (0..writers.max(1))
            .map(|writer| {
                format!("({}, 'writer:{writer}', {}, {writers}, 0, NULL, '')", progress.job, progress.owner)
            })
            .collect();
        let take_over = format!(
            "UPDATE {table} SET owner = {owner} WHERE job = {job}; \
             INSERT INTO {table} (job, entry, owner, writers, epoch, position_order, detail) VALUES {} \
             ON DUPLICATE KEY UPDATE owner = {owner}",
            all.join(", "),
            table = progress.table,
            owner = progress.owner,
            job = progress.job,
        );
        session.execute(&format!("taking over the records of the job in {place}"), &take_over).await?;
        Ok(progress)
    }

    /// The statement with which a writer's transaction has to close before anything else is recorded: it keeps the
    /// position, if there is one, and fails when another run of the job has taken over.
    pub(super) fn close(
        &self,
        writer: usize,
        writers: usize,
        epoch: u64,
        position: Option<&Position>,
    ) -> String {
        let stored = match position {
            Some(position) => format!(
                ", position_order = {}, detail = {}",
                order_text(position),
                quote::text(&position.detail)
            ),
            None => String::new(),
        };
        // A position belongs to the number of writers that it was stored beside.
        let number = if position.is_some() { writers.to_string() } else { "writers".to_owned() };
        let (order, detail) = match position {
            Some(position) => (order_text(position), quote::text(&position.detail)),
            None => ("NULL".to_owned(), "''".to_owned()),
        };
        // NULL is not allowed there, so the statement fails for a stranger.
        format!(
            "INSERT INTO {} (job, entry, owner, writers, epoch, position_order, detail) \
             VALUES ({}, 'writer:{writer}', {owner}, {writers}, {epoch}, {order}, {detail}) ON DUPLICATE KEY UPDATE \
             writers = IF(owner = {owner}, {number}, NULL), epoch = {epoch}{stored}",
            self.table,
            self.job,
            owner = self.owner,
        )
    }

    /// The error for a failed statement of [`Progress::close`].
    pub(super) fn closing_failure(failure: Failure) -> Failure {
        match failure {
            Failure::Row(refusal) if refusal.code == 1048 => Failure::Fatal(Error::new(
                Code::SinkFailed,
                "another run of this job has taken over its records; this one must not write any more",
            )),
            other => other,
        }
    }

    /// The statement that stores an entry.
    pub(super) fn store(&self, entry: Entry<'_>, writers: usize, epoch: u64) -> String {
        let order = order_text;
        let (name, order, detail) = match entry {
            Entry::SplitDone(id) => (format!("split:{}", short(id)), "NULL".to_owned(), id.to_owned()),
            Entry::SplitAt(id, position) => (
                format!("at:{}", short(id)),
                order(position),
                serde_json::json!([id, position.detail]).to_string(),
            ),
            Entry::Created(table) => {
                (format!("table:{}", short(&table.to_string())), "NULL".to_owned(), table.to_string())
            }
        };
        format!(
            "INSERT INTO {} (job, entry, owner, writers, epoch, position_order, detail) \
             VALUES ({}, {}, {}, {writers}, {epoch}, {order}, {detail}) ON DUPLICATE KEY UPDATE \
             writers = {writers}, epoch = {epoch}, position_order = {order}, detail = {detail}",
            self.table,
            self.job,
            quote::text(&name),
            self.owner,
            detail = quote::text(&detail),
        )
    }

    /// Reads what is committed.
    pub(super) async fn recover(&self, session: &mut Session, writers: usize) -> Result<SinkRecovery> {
        let rows: Vec<(String, u64, Option<String>, String)> = session
            .ask(
                "reading records of the job",
                &format!(
                    "SELECT entry, writers, position_order, detail FROM {} WHERE job = {}",
                    self.table, self.job
                ),
            )
            .await?;
        let mut recovery = SinkRecovery { positions: vec![None; writers], ..SinkRecovery::default() };
        for (entry, of, order, detail) in rows {
            let damaged =
                || Error::new(Code::StateIncompatible, format!("record `{entry}` of the job is damaged"));
            let order = match order {
                Some(text) => Some(parse_order(&text).ok_or_else(damaged)?),
                None => None,
            };
            if let Some(index) = entry.strip_prefix("writer:") {
                let index: usize = index.parse().map_err(|_| damaged())?;
                let same = u64::try_from(writers) == Ok(of);
                recovery.other_writers |= index == 0 && !same;
                if (index == 0 || same)
                    && let Some(slot) = recovery.positions.get_mut(index)
                {
                    *slot = order.map(|order| Position::new(order, detail));
                }
            } else if entry.starts_with("split:") {
                recovery.done_splits.insert(detail);
            } else if entry.starts_with("at:") {
                let (id, position): (String, String) =
                    serde_json::from_str(&detail).map_err(|_| damaged())?;
                recovery.split_positions.insert(id, Position::new(order.ok_or_else(damaged)?, position));
            }
        }
        Ok(recovery)
    }

    /// Whether a job of this name has created the table.
    pub(super) async fn has_created(&self, session: &mut Session, table: &TableId) -> Result<bool> {
        let rows: Vec<u8> = session
            .ask(
                "reading records of the job",
                &format!(
                    "SELECT 1 FROM {} WHERE job = {} AND entry = {}",
                    self.table,
                    self.job,
                    quote::text(&format!("table:{}", short(&table.to_string())))
                ),
            )
            .await?;
        Ok(!rows.is_empty())
    }
}

/// How a job starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// From nothing.
    Fresh,
    /// From a checkpoint.
    Restored,
}

/// Creates a database unless it is there. Looking first spares accounts that may not create databases.
pub(super) async fn create_database(session: &mut Session, database: &str) -> Result<()> {
    let found: Vec<u8> = session
        .ask(
            "looking for the database",
            &format!(
                "SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = {}",
                quote::text(database)
            ),
        )
        .await?;
    if found.is_empty() {
        let create =
            format!("CREATE DATABASE IF NOT EXISTS {} CHARACTER SET utf8mb4", quote::ident(database));
        session.execute(&format!("creating the database {database}"), &create).await?;
    }
    Ok(())
}

fn order_text(position: &Position) -> String {
    let [a, b, c] = position.order;
    format!("'{a} {b} {c}'")
}

fn parse_order(text: &str) -> Option<[u64; 3]> {
    let numbers: Vec<u64> = text.split(' ').map(|n| n.parse().ok()).collect::<Option<_>>()?;
    numbers.try_into().ok()
}

fn short(id: &str) -> String {
    if id.chars().count() <= LONGEST_ENTRY {
        return id.to_owned();
    }
    let hash = digest(&SHA256, id.as_bytes());
    hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
