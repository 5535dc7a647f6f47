//! Owns the durable state of the enumerator.

use canalis_connector_api::Split;
use canalis_types::{Code, Error, Position, Result, TableId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{chunks::Border, history::History};

const VERSION: u32 = 1;

/// Everything that a restored enumerator needs, beside the splits under way.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct State {
    version: u32,
    /// What the snapshot of the present run sees; none without a snapshot.
    pub view: Option<Position>,
    /// Where the stream begins when no table says otherwise; none without a stream.
    pub start: Option<Position>,
    /// Tables in the order in which they are read.
    pub tables: Vec<Progress>,
    /// Splits of an earlier run that are not dealt again yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub again: Vec<Split>,
    /// Structures.
    pub history: History,
}

/// How far the snapshot of a table is dealt.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Progress {
    pub table: TableId,
    /// Estimated rows.
    pub rows: u64,
    pub plan: Plan,
    /// The oldest view that a row of the table in the sink may come from. Changes before it are in the snapshot.
    pub watermark: Option<Position>,
}

/// What is left of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Plan {
    /// Not looked at.
    Unplanned,
    /// The next chunk begins above `lower`.
    Cutting {
        /// Number of the next chunk.
        next: u64,
        /// Chunk columns; empty when the table is read as a whole.
        columns: Vec<String>,
        /// Last border.
        lower: Option<Border>,
        /// Borders by arithmetic; none when the table is walked.
        even: Option<Even>,
    },
    /// Every chunk is dealt.
    Dealt,
}

/// Borders at equal distances. 128 bits hold signed and unsigned keys with every sum of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Even {
    /// Next border.
    #[serde(with = "decimal")]
    pub next: i128,
    /// Distance.
    #[serde(with = "decimal")]
    pub step: i128,
    /// Largest key; the last chunk is open above.
    #[serde(with = "decimal")]
    pub max: i128,
}

/// 128-bit numbers as text: JSON values hold 64 bits.
mod decimal {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(value: &i128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i128, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl State {
    pub(crate) fn new(
        view: Option<Position>,
        start: Option<Position>,
        tables: Vec<Progress>,
        history: History,
    ) -> Self {
        Self { version: VERSION, view, start, tables, again: Vec::new(), history }
    }

    /// # Errors
    /// CNL-4002 when the value is no state of this version.
    pub(crate) fn restore(value: Value) -> Result<Self> {
        let refuse = |why: String| {
            Error::new(Code::StateIncompatible, format!("state of the mysql source does not fit: {why}"))
        };
        let state: State = serde_json::from_value(value).map_err(|e| refuse(e.to_string()))?;
        if state.version != VERSION {
            return Err(refuse(format!("it has version {}, this program writes {VERSION}", state.version)));
        }
        Ok(state)
    }

    pub(crate) fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("a state has text keys and finite numbers only")
    }
}
