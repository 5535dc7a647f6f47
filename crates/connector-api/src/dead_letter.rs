//! Owns dead letters: rows that cannot be handled, with everything needed to find and replay them.

use async_trait::async_trait;
use canalis_batch::{ChangeBatch, cell_to_json, row_to_json};
use canalis_types::{Code, Position, Result, RowKind, TableId};
use serde::Serialize;
use serde_json::{Map, Value};

/// A row that was refused.
#[derive(Debug, Clone, Serialize)]
pub struct DeadLetter {
    /// The table as the sink names it (or the source's, when it never got that far).
    pub table: TableId,
    /// What the row stands for.
    pub kind: RowKind,
    /// Key columns and values; null for a table without a key or bytes that did not decode.
    pub key: Value,
    /// The whole row as JSON, or the raw bytes as text when they did not decode.
    pub payload: Value,
    /// Stable code as `CNL-nnnn`.
    #[serde(serialize_with = "code_text")]
    pub code: Code,
    /// Why, with the column named where it is known.
    pub reason: String,
    /// Place in the source, as exactly as it is known.
    pub position: Option<Position>,
}

impl DeadLetter {
    /// The letter of a row that a sink refuses.
    pub fn refused(batch: &ChangeBatch, row: usize, reason: impl Into<String>) -> Self {
        let schema = batch.schema();
        let cell = |index: usize| {
            let column = &schema.columns[index];
            (column.name.clone(), cell_to_json(batch.rows().column(index), &column.ty, row))
        };
        let key: Map<String, Value> = schema.key_indexes().into_iter().map(cell).collect();
        Self {
            table: schema.id.clone(),
            kind: batch.kinds()[row],
            key: if key.is_empty() { Value::Null } else { Value::Object(key) },
            payload: row_to_json(batch.rows(), schema, row),
            code: Code::RowRefused,
            reason: reason.into(),
            position: None,
        }
    }
}

fn code_text<S: serde::Serializer>(code: &Code, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(code)
}

/// Where refused rows go. Implemented by the runtime, which applies the declared policy.
#[async_trait]
pub trait DeadLetterQueue: Send + Sync {
    /// Takes refused rows. When it returns Ok they are durable and counted, and the writer goes on without them.
    ///
    /// # Errors
    /// The first row's refusal (`CNL-3003`) when the policy is `fail`, `CNL-3005` when the limit is reached.
    async fn reject(&self, letters: Vec<DeadLetter>) -> Result<()>;
}
