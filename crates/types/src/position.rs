//! Owns [`Position`]: where in a source stream we are.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

/// Orders positions of one stream, most significant first. For a MySQL binlog: file number, offset of
/// the transaction's begin, number of events of the transaction already taken.
pub type Order = [u64; 3];

/// A place in a source stream to go on from: everything before it has been emitted.
///
/// `order` compares positions of one stream; `detail` is the connector's own text, enough to
/// re-open the stream exactly there.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Position {
    /// Sort key inside one stream.
    pub order: Order,
    /// The connector's own form, for example JSON with file, offset and GTID set.
    pub detail: Arc<str>,
}

impl Position {
    /// A position from its parts.
    pub fn new(order: Order, detail: impl Into<Arc<str>>) -> Self {
        Self { order, detail: detail.into() }
    }
}

impl PartialEq for Position {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for Position {}

impl PartialOrd for Position {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Position {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order.cmp(&other.order)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}
