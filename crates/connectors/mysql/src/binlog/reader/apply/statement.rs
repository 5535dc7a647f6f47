//! Owns what statements do: transaction borders, changes of structure, and statements that should be rows.

use canalis_types::{Code, Error};

use super::Follower;
use crate::binlog::{
    ddl::{self, Ddl, Statement},
    event::{EventHeader, QueryEvent, statement_text},
    reader::{
        failure::{Failure, Session},
        follow::position,
    },
};

/// Longest part of a statement that a message shows.
const SHOWN: usize = 500;

impl Follower {
    pub(super) fn query(
        &mut self,
        header: &EventHeader,
        query: &QueryEvent<'_>,
        statement: &[u8],
        begin: u64,
    ) -> Session<()> {
        let text = self.located(statement_text(statement, query.collation))?;
        let context = query.context();
        let kind = ddl::classify(&text, &context);
        if self.transaction.is_none() && kind != Statement::Commit {
            self.begin_transaction(header, begin, None)?;
        }
        let Some(transaction) = &mut self.transaction else { return Ok(()) };
        match kind {
            Statement::Begin => {
                transaction.explicit = true;
                return Ok(());
            }
            Statement::Commit => return self.commit(),
            Statement::Rollback | Statement::RollbackTo if transaction.has_rows => {
                return self.fail(
                    Code::SourceEventUnknown,
                    "the log takes back rows that it has written before (a rollback with tables of an engine without \
                     transactions), which is not supported,",
                );
            }
            Statement::Rollback => return self.commit(),
            Statement::RollbackTo | Statement::Savepoint | Statement::XaEnd => return Ok(()),
            Statement::XaStart => {
                transaction.explicit = true;
                transaction.xa = true;
                if self.pending.has_rows() {
                    // So that only its own rows are pending until it is known to be committed.
                    self.watermark()?;
                }
                return Ok(());
            }
            Statement::XaFinish | Statement::Irrelevant => {}
            // Consumed before a restart, as the row events behind it.
            _ if transaction.skip > 0 => return Ok(()),
            Statement::Ddl if transaction.without_effect => {}
            Statement::Dml | Statement::Ddl | Statement::Unknown => {
                // MySQL 8 logs CREATE TABLE … SELECT as one transaction that this clause opens.
                transaction.explicit |= ends_with_start_transaction(&text);
                self.apply_statement(kind, &text, &context)?;
            }
        }
        match &self.transaction {
            Some(transaction) if !transaction.explicit => self.commit(),
            _ => Ok(()),
        }
    }

    fn apply_statement(
        &mut self,
        kind: Statement,
        text: &str,
        context: &ddl::StatementContext,
    ) -> Session<()> {
        let tracker = &self.tracker;
        let effects = match ddl::parse(text, context, &|table| tracker.is_captured(table)) {
            Ok(effects) => effects,
            Err(reason) if kind == Statement::Dml => {
                return self.fail(
                    Code::SourceMisconfigured,
                    format!(
                        "{reason}, not by row events; set binlog_format=ROW in every session. Statement: {}",
                        shown(text)
                    ),
                );
            }
            Err(reason) => {
                return self.fail(
                    Code::SourceEventUnknown,
                    format!(
                        "a statement about a captured table is not understood: {reason}. Statement: {}",
                        shown(text)
                    ),
                );
            }
        };
        for effect in effects {
            self.apply_ddl(&effect, text)?;
        }
        Ok(())
    }

    fn apply_ddl(&mut self, ddl: &Ddl, text: &str) -> Session<()> {
        if self.pending.has_rows() {
            self.watermark()?;
        }
        // The first place with the new structure: behind the statement, or in its transaction if that goes on.
        let mut after = self.here();
        let discard = self.transaction.as_ref().is_some_and(|transaction| transaction.discard);
        if self.transaction.as_ref().is_some_and(|transaction| !transaction.explicit) {
            (after.offset, after.events) = (self.place.offset, 0);
        }
        let after = position(after)?;
        let change = self.tracker.apply(ddl, text, &after).map_err(|error| {
            let place = self.place_text();
            Failure::Fatal(add_statement(error, &place, text))
        })?;
        self.tables.clear();
        match change {
            Some(_) if !discard && self.moved.is_some() => self.fail(
                Code::PositionLost,
                "after the change of server, a table is altered before the place up to which the sink holds rows,",
            ),
            Some(change) if !discard => self.pending.schema_change(change),
            _ => Ok(()),
        }
    }
}

/// Names statement and position in an error that names neither.
fn add_statement(error: Error, place: &str, text: &str) -> Error {
    if error.message().contains(place) {
        return error;
    }
    error.context(format!("statement at {place}, {}", shown(text)))
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn ends_with_start_transaction(text: &str) -> bool {
    let words: Vec<&str> =
        text.trim_end_matches([';', ' ', '\n']).split_ascii_whitespace().rev().take(2).collect();
    matches!(words.as_slice(), [second, first]
        if second.eq_ignore_ascii_case("transaction") && first.eq_ignore_ascii_case("start"))
}
