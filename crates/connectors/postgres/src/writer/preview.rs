//! Owns the preview: the statements that the writer composes for a window, without running them.

use canalis_batch::ChangeBatch;
use canalis_connector_api::SinkPreview;
use canalis_types::Result;

use super::{
    fold::operations,
    rows::{Refused, RowSet},
    statement::{Op, Piece, Route, pieces},
};
use crate::{encode::Style, options::InvalidDatePolicy, target::Target};

/// What would be run for a window of this batch alone.
pub fn preview(target: &Target, batch: &ChangeBatch, dates: InvalidDatePolicy) -> Result<SinkPreview> {
    let operations = operations(target, vec![batch.clone()])?;
    let set = RowSet::new(target, &operations.batches, dates)?;
    let route = if operations.repeats { Route::Again } else { Route::Fast };
    let mut refused = operations.refused.clone();
    // A row that cannot be written to the target cannot be in it: its removal is done.
    let mut satisfied = Refused::default();
    let mut statements = Vec::new();
    for (op, rows) in &operations.steps {
        let note = match op {
            Op::Delete | Op::DeleteImages => &mut satisfied,
            _ => &mut refused,
        };
        for piece in pieces(&set, *op, rows, route, note)? {
            match piece {
                Piece::Sql(sql) => statements.push(sql.trim_end_matches(';').to_owned()),
                Piece::Copy { mut sql, rows, columns } => {
                    for at in rows {
                        let mut line = Vec::new();
                        match set.some(&columns, at, Style::Copy, &mut line) {
                            Ok(()) => {
                                sql.push('\n');
                                sql.push_str(String::from_utf8_lossy(&line).trim_end_matches('\n'));
                            }
                            Err(refusal) => note.note(at, refusal.reason),
                        }
                    }
                    statements.push(sql);
                }
            }
        }
    }
    Ok(SinkPreview { statements, refused: refused.letters(&set, None) })
}
