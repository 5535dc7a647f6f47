//! Owns the job's records in the file: `canalis_progress` holds each writer's committed position, `canalis_marks` how
//! far splits are whose rows must not come twice, `canalis_owners` which opening of the job may write.

use std::collections::BTreeSet;

use canalis_connector_api::{CommitPoint, SinkContext, SinkRecovery};
use canalis_types::{Code, Error, Position, Result};
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::to_error;

const CREATE: &str = "CREATE TABLE IF NOT EXISTS canalis_progress (job TEXT NOT NULL, writer INTEGER NOT NULL, \
      writers INTEGER NOT NULL, epoch INTEGER NOT NULL, position TEXT NOT NULL, \
      updated TEXT NOT NULL, PRIMARY KEY (job, writer)) STRICT, WITHOUT ROWID; \
    CREATE TABLE IF NOT EXISTS canalis_marks (job TEXT NOT NULL, split TEXT NOT NULL, position TEXT, \
      PRIMARY KEY (job, split)) STRICT, WITHOUT ROWID; \
    CREATE TABLE IF NOT EXISTS canalis_owners (job TEXT NOT NULL PRIMARY KEY, opening INTEGER NOT NULL) \
      STRICT, WITHOUT ROWID;";

/// Makes the tables, takes the job over from an earlier owner, and clears or reads its records. Gives the number of
/// this opening, which [`record`] checks.
///
/// It waits for a transaction of an earlier owner to end, and later transactions of that owner fail.
pub fn open(connection: &Connection, ctx: &SinkContext) -> Result<(i64, SinkRecovery)> {
    let fail = |e| to_error("reading the progress records", e);
    connection.execute_batch("BEGIN IMMEDIATE").map_err(fail)?;
    let opened = take(connection, ctx);
    let end = if opened.is_ok() { "COMMIT" } else { "ROLLBACK" };
    connection.execute_batch(end).map_err(fail)?;
    opened
}

fn take(connection: &Connection, ctx: &SinkContext) -> Result<(i64, SinkRecovery)> {
    let fail = |e| to_error("reading the progress records", e);
    connection.execute_batch(CREATE).map_err(fail)?;
    let opening: i64 = connection
        .query_row(
            "INSERT INTO canalis_owners (job, opening) VALUES (?1, 1) \
             ON CONFLICT (job) DO UPDATE SET opening = opening + 1 RETURNING opening",
            [&ctx.job],
            |row| row.get(0),
        )
        .map_err(fail)?;
    if ctx.fresh {
        for table in ["canalis_progress", "canalis_marks"] {
            connection.execute(&format!("DELETE FROM {table} WHERE job = ?1"), [&ctx.job]).map_err(fail)?;
        }
        return Ok((opening, SinkRecovery::default()));
    }
    let mut recovery = SinkRecovery::default();
    let position: Option<String> = connection
        .query_row("SELECT position FROM canalis_progress WHERE job = ?1 AND writer = 0", [&ctx.job], |r| {
            r.get(0)
        })
        .optional()
        .map_err(fail)?;
    if let Some(text) = position {
        recovery.positions.push(Some(parse(&ctx.job, &text)?));
    }
    let mut statement =
        connection.prepare("SELECT split, position FROM canalis_marks WHERE job = ?1").map_err(fail)?;
    let mut rows = statement.query([&ctx.job]).map_err(fail)?;
    while let Some(row) = rows.next().map_err(fail)? {
        let split: String = row.get(0).map_err(fail)?;
        match row.get::<_, Option<String>>(1).map_err(fail)? {
            None => {
                recovery.done_splits.insert(split);
            }
            Some(position) => {
                recovery.split_positions.insert(split, parse(&ctx.job, &position)?);
            }
        }
    }
    Ok((opening, recovery))
}

/// Who commits.
#[derive(Debug, Clone)]
pub struct Owner {
    /// The job.
    pub job: String,
    /// Which writer.
    pub writer: usize,
    /// How many there are.
    pub writers: usize,
    /// Which opening of the job it belongs to.
    pub opening: i64,
}

/// Whether there is anything to record.
pub fn has_record(point: &CommitPoint, marked: &BTreeSet<String>) -> bool {
    point.position.is_some()
        || point.split_position.is_some()
        || point.splits.iter().any(|s| marked.contains(s))
}

/// Records a commit inside the open transaction.
///
/// # Errors
/// `CNL-3007` when another owner has opened the job since.
pub fn record(
    connection: &Connection,
    owner: &Owner,
    point: &CommitPoint,
    marked: &BTreeSet<String>,
) -> Result<()> {
    let fail = |e| to_error("writing the progress records", e);
    let opening: Option<i64> = connection
        .prepare_cached("SELECT opening FROM canalis_owners WHERE job = ?1")
        .and_then(|mut s| s.query_row([&owner.job], |row| row.get(0)).optional())
        .map_err(fail)?;
    if opening != Some(owner.opening) {
        let text = format!("another process has taken over job `{}`, this one must not write", owner.job);
        return Err(Error::new(Code::SinkFailed, text));
    }
    if let Some(position) = &point.position {
        connection
            .prepare_cached(
                "INSERT INTO canalis_progress (job, writer, writers, epoch, position, updated) \
                 VALUES (?1, ?2, ?3, ?4, ?5, strftime('%Y-%m-%dT%H:%M:%fZ', 'now')) \
                 ON CONFLICT (job, writer) DO UPDATE SET writers = excluded.writers, epoch = excluded.epoch, \
                 position = excluded.position, updated = excluded.updated",
            )
            .and_then(|mut s| {
                s.execute(params![
                    owner.job,
                    i64::try_from(owner.writer).unwrap_or(i64::MAX),
                    i64::try_from(owner.writers).unwrap_or(i64::MAX),
                    i64::try_from(point.epoch).unwrap_or(i64::MAX),
                    render(position)
                ])
            })
            .map_err(fail)?;
    }
    let under_way = point.split_position.iter().map(|(split, position)| (split, Some(render(position))));
    let done = point.splits.iter().filter(|s| marked.contains(*s)).map(|split| (split, None));
    for (split, position) in under_way.chain(done) {
        connection
            .prepare_cached(
                "INSERT INTO canalis_marks (job, split, position) VALUES (?1, ?2, ?3) \
                 ON CONFLICT (job, split) DO UPDATE SET position = excluded.position",
            )
            .and_then(|mut s| s.execute(params![owner.job, split, position]))
            .map_err(fail)?;
    }
    Ok(())
}

fn render(position: &Position) -> String {
    serde_json::json!({ "order": position.order, "detail": &*position.detail }).to_string()
}

fn parse(job: &str, text: &str) -> Result<Position> {
    serde_json::from_str(text).map_err(|e| {
        Error::new(Code::StateIncompatible, format!("reading a progress record of job `{job}`"))
            .with_source(e)
    })
}
