//! Owns the preview: changes are applied by the writer's own code to an empty copy of the table in memory, and the
//! statements are taken down as SQLite runs them.

use std::{cell::RefCell, sync::Arc};

use canalis_batch::ChangeBatch;
use canalis_connector_api::SinkPreview;
use canalis_types::Result;
use rusqlite::{
    Connection,
    trace::{TraceEvent, TraceEventCodes},
};

use super::{
    Window,
    apply::{self, is_about_rows_of_before},
};
use crate::{error::to_error, sink};

thread_local! {
    /// Statements that this thread has run; SQLite's tracer is a plain function.
    static RUN: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// What would be run for a batch in a database with these tables and indexes. Blocks.
pub fn preview(structure: &[String], batch: &ChangeBatch) -> Result<SinkPreview> {
    let fail = |e| to_error("copying the structure of the table", e);
    let connection = Connection::open_in_memory().map_err(fail)?;
    for statement in structure {
        connection.execute_batch(statement).map_err(fail)?;
    }
    let (target, _) = sink::target(&connection, batch.schema())?;
    let window = Window { target: Arc::new(target), batches: vec![batch.clone()] };
    RUN.take();
    connection.trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(note));
    let applied = apply::windows(&connection, &[window], None);
    connection.trace_v2(TraceEventCodes::empty(), None);
    let mut refused = applied?;
    // The copy is empty: whether rows of before are there is not known.
    refused.retain(|letter| !is_about_rows_of_before(&letter.reason));
    Ok(SinkPreview { statements: RUN.take(), refused })
}

fn note(event: TraceEvent<'_>) {
    if let TraceEvent::Stmt(statement, _) = event
        && let Some(sql) = statement.expanded_sql()
    {
        RUN.with_borrow_mut(|run| run.push(sql));
    }
}
