//! Owns the job's records at the sink: `canalis_progress` holds each writer's committed position, `canalis_marks` how
//! far splits are whose rows must not come twice, and the tables whose primary key is still to be built. All are
//! written in the transactions whose work they stand for.

use std::collections::BTreeSet;

use canalis_connector_api::{CommitPoint, SinkContext, SinkRecovery};
use canalis_types::{Code, Error, Position, Result};
use tokio_postgres::Client;

use crate::{
    error::to_error,
    quote::{ident, literal},
};

/// Names of the tables with records, in one schema.
#[derive(Debug, Clone)]
pub struct Progress {
    schema: String,
    positions: String,
    marks: String,
}

/// What a mark is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// A split: its committed position, or none when it is complete.
    Split,
    /// A table without its primary key.
    PendingKey,
}

impl Mark {
    fn word(self) -> &'static str {
        match self {
            Mark::Split => "split",
            Mark::PendingKey => "pending-key",
        }
    }
}

impl Progress {
    /// Records in this schema.
    pub fn new(schema: &str) -> Self {
        Self {
            schema: ident(schema),
            positions: format!("{}.canalis_progress", ident(schema)),
            marks: format!("{}.canalis_marks", ident(schema)),
        }
    }

    /// Statements that make the tables.
    pub fn create(&self) -> Vec<String> {
        vec![
            format!("CREATE SCHEMA IF NOT EXISTS {}", self.schema),
            format!(
                "CREATE TABLE IF NOT EXISTS {} (job text NOT NULL, writer integer NOT NULL, \
                 writers integer NOT NULL, epoch bigint NOT NULL, position text NOT NULL, \
                 updated timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (job, writer)) WITH (fillfactor = 50)",
                self.positions
            ),
            format!(
                "CREATE TABLE IF NOT EXISTS {} (job text NOT NULL, kind text NOT NULL, name text NOT NULL, \
                 position text, PRIMARY KEY (job, kind, name))",
                self.marks
            ),
        ]
    }

    /// Makes the tables if they are missing.
    pub async fn open(&self, client: &Client) -> Result<()> {
        // Asked first, so that a role without the right to create can use tables that are there.
        let there = client
            .query_one(
                "SELECT to_regclass($1::text) IS NOT NULL AND to_regclass($2::text) IS NOT NULL",
                &[&self.positions, &self.marks],
            )
            .await
            .map_err(|e| to_error("looking for the progress tables", e))?;
        if there.get::<_, bool>(0) {
            return Ok(());
        }
        for statement in self.create() {
            client
                .batch_execute(&statement)
                .await
                .map_err(|e| to_error(&format!("making the progress tables in {}", self.schema), e))?;
        }
        Ok(())
    }

    /// Clears the records of a fresh job, or reads those of one that goes on.
    pub async fn recover(&self, client: &Client, ctx: &SinkContext) -> Result<SinkRecovery> {
        let fail = |e| to_error("reading the progress records", e);
        if ctx.fresh {
            for sql in [
                format!("DELETE FROM {} WHERE job = $1", self.positions),
                format!("DELETE FROM {} WHERE job = $1 AND kind = 'split'", self.marks),
            ] {
                client.execute(&sql, &[&ctx.job]).await.map_err(fail)?;
            }
            return Ok(SinkRecovery::default());
        }
        let sql = format!("SELECT writer, writers, position FROM {} WHERE job = $1", self.positions);
        let mut recovery = SinkRecovery::default();
        for row in client.query(&sql, &[&ctx.job]).await.map_err(fail)? {
            let (Ok(writer), Ok(writers)) =
                (usize::try_from(row.get::<_, i32>(0)), usize::try_from(row.get::<_, i32>(1)))
            else {
                continue;
            };
            let same = writers == ctx.writers;
            if writer >= ctx.writers || (!same && writer != 0) {
                continue;
            }
            recovery.other_writers |= !same;
            let position = parse(&ctx.job, row.get(2))?;
            if recovery.positions.len() <= writer {
                recovery.positions.resize(writer + 1, None);
            }
            recovery.positions[writer] = Some(position);
        }
        let sql = format!("SELECT name, position FROM {} WHERE job = $1 AND kind = 'split'", self.marks);
        for row in client.query(&sql, &[&ctx.job]).await.map_err(fail)? {
            match row.get::<_, Option<&str>>(1) {
                None => {
                    recovery.done_splits.insert(row.get(0));
                }
                Some(position) => {
                    recovery.split_positions.insert(row.get(0), parse(&ctx.job, position)?);
                }
            }
        }
        Ok(recovery)
    }

    /// Statements that record a commit; empty when there is nothing to record.
    pub fn record(
        &self,
        job: &str,
        writer: usize,
        writers: usize,
        point: &CommitPoint,
        marked: &BTreeSet<String>,
    ) -> Result<String> {
        let job = literal(job);
        let mut sql = String::new();
        if let Some(position) = &point.position {
            sql = format!(
                "INSERT INTO {} AS p (job, writer, writers, epoch, position) \
                 VALUES ({job}, {writer}, {writers}, {}, {}) ON CONFLICT (job, writer) DO UPDATE SET \
                 writers = EXCLUDED.writers, epoch = EXCLUDED.epoch, position = EXCLUDED.position, updated = now();",
                self.positions,
                point.epoch,
                literal(&render(position)?)
            );
        }
        if let Some((split, position)) = &point.split_position {
            sql.push_str(&self.add_mark(&job, Mark::Split, split, &literal(&render(position)?)));
        }
        for split in point.splits.iter().filter(|s| marked.contains(*s)) {
            sql.push_str(&self.add_mark(&job, Mark::Split, split, "NULL"));
        }
        Ok(sql)
    }

    /// Statement that notes a table without its primary key. It belongs to the table, whichever job made it.
    pub fn note_pending_key(&self, table: &str) -> String {
        self.add_mark("''", Mark::PendingKey, table, "NULL")
    }

    /// Takes the note away; whether there was one. Inside a transaction others who try wait for its end.
    pub async fn take_pending_key(&self, client: &Client, table: &str) -> Result<bool> {
        let kind = Mark::PendingKey.word();
        let sql = format!("DELETE FROM {} WHERE job = '' AND kind = '{kind}' AND name = $1", self.marks);
        let rows = client.execute(&sql, &[&table]).await.map_err(|e| to_error("reading marks", e))?;
        Ok(rows > 0)
    }

    fn add_mark(&self, job: &str, kind: Mark, name: &str, position: &str) -> String {
        format!(
            "INSERT INTO {} (job, kind, name, position) VALUES ({job}, '{}', {}, {position}) \
             ON CONFLICT (job, kind, name) DO UPDATE SET position = EXCLUDED.position;",
            self.marks,
            kind.word(),
            literal(name)
        )
    }
}

fn render(position: &Position) -> Result<String> {
    serde_json::to_string(position).map_err(|e| Error::internal("writing a position").with_source(e))
}

fn parse(job: &str, text: &str) -> Result<Position> {
    serde_json::from_str(text).map_err(|e| {
        Error::new(Code::StateIncompatible, format!("reading a progress record of job `{job}`"))
            .with_source(e)
    })
}
