//! Owns what a preview is made of: records of a source with what they decode to, and what a sink would do with rows. Both
//! come out of the code that a job runs, and neither changes anything.

use canalis_batch::ChangeBatch;
use canalis_types::{Error, Result, RowKind};

use crate::{DeadLetter, NextSplit, SourceEvent, SplitEnumerator, SplitMode};

/// A record of a source.
#[derive(Debug, Clone)]
pub struct PreviewRecord {
    /// Where it stands, in the words of the source's dead letters: `orders-0@7`, `orders.csv, line 3`.
    pub place: String,
    /// Its bytes; `None` where the source has none of its own.
    pub raw: Option<RawRecord>,
    /// Changes of structure that it tells of, in words or as the statement.
    pub structure: Vec<String>,
    /// What it decodes to.
    pub decoded: Decoded,
    /// How the split that it belongs to behaves in a job.
    pub mode: SplitMode,
}

/// Bytes of a record as the source holds them.
#[derive(Debug, Clone, Default)]
pub struct RawRecord {
    /// Key of a message, if it has one.
    pub key: Option<Vec<u8>>,
    /// The record or payload; `None` for a tombstone.
    pub value: Option<Vec<u8>>,
    /// Time of a message, milliseconds since the epoch.
    pub timestamp_ms: Option<i64>,
}

/// What a record decodes to.
#[derive(Debug, Clone)]
pub enum Decoded {
    /// Rows, of one table and structure a batch; none when the record carries none.
    Rows(Vec<ChangeBatch>),
    /// Nothing, as its dead letter says.
    Undecodable(Box<DeadLetter>),
}

/// What a sink would do with rows.
#[derive(Debug, Clone, Default)]
pub struct SinkPreview {
    /// Statements, messages or lines in their order.
    pub statements: Vec<String>,
    /// Rows that would be refused, as far as that shows before anything is written.
    pub refused: Vec<DeadLetter>,
}

/// The first rows that a job that starts now would read, a record a change.
pub(crate) async fn first_rows(
    mut enumerator: Box<dyn SplitEnumerator>,
    rows: usize,
) -> Result<Vec<PreviewRecord>> {
    let mut records = Vec::new();
    let mut reader = enumerator.open_reader().await?;
    while records.len() < rows {
        // Splits that wait for others to be durable are beyond a preview.
        let NextSplit::Split(split) = enumerator.next(0).await? else { break };
        let mode = split.mode;
        reader.start(*split).await?;
        while records.len() < rows {
            match reader.next().await? {
                SourceEvent::Batch(batch) => {
                    for change in changes(&batch, rows - records.len())? {
                        records.push(PreviewRecord {
                            place: batch.schema().id.to_string(),
                            raw: None,
                            structure: Vec::new(),
                            decoded: Decoded::Rows(vec![change]),
                            mode,
                        });
                    }
                }
                SourceEvent::Undecodable(letters) => {
                    records.extend(letters.into_iter().take(rows - records.len()).map(|letter| {
                        PreviewRecord {
                            place: letter.table.to_string(),
                            raw: None,
                            structure: Vec::new(),
                            decoded: Decoded::Undecodable(Box::new(letter)),
                            mode,
                        }
                    }));
                }
                SourceEvent::SchemaChange(_) | SourceEvent::Watermark(_) => {}
                SourceEvent::SplitEnd => break,
            }
        }
    }
    Ok(records)
}

/// The first so many changes of a batch, each alone; an update keeps both of its rows.
fn changes(batch: &ChangeBatch, most: usize) -> Result<Vec<ChangeBatch>> {
    let mut changes = Vec::new();
    let mut first = 0u32;
    for (row, kind) in (0u32..).zip(batch.kinds()) {
        if changes.len() == most {
            break;
        }
        if *kind != RowKind::UpdateBefore {
            let rows: Vec<u32> = (first..=row).collect();
            changes.push(batch.take(&rows.into())?);
            first = row.checked_add(1).ok_or_else(|| Error::internal("batch is too long"))?;
        }
    }
    Ok(changes)
}
