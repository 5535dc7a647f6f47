//! Owns the durable state of the enumerator.

use canalis_connector_api::Split;
use canalis_types::{Code, Error, Position, Result, TableId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{chunks::Border, history::History};

const VERSION: u32 = 2;

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
    /// Borders are found by walking the key; the next chunk begins above `lower`.
    Walking {
        /// Number of the next chunk.
        next: u64,
        /// Chunk columns; empty when the table is read as a whole.
        columns: Vec<String>,
        /// Last border.
        lower: Option<Border>,
    },
    /// Borders are computed.
    Even {
        /// Number of the next chunk.
        next: u64,
        /// The one chunk column.
        column: String,
        even: Even,
    },
    /// Every chunk is dealt.
    Dealt,
}

/// Borders at equal distances. 128 bits hold signed and unsigned keys with every sum of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Even {
    /// Smallest key; the first chunk is open below.
    #[serde(with = "decimal")]
    pub min: i128,
    /// Largest key; the last chunk is open above.
    #[serde(with = "decimal")]
    pub max: i128,
    /// Distance.
    #[serde(with = "decimal")]
    pub step: i128,
    /// One for each reader, in the order of the key: writers that fill neighbouring chunks wait for the same pages.
    pub stretches: Vec<Stretch>,
}

/// Neighbouring chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stretch {
    /// Largest key that is dealt.
    #[serde(with = "decimal")]
    pub dealt: i128,
    /// Last key.
    #[serde(with = "decimal")]
    pub end: i128,
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
