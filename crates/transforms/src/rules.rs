//! Owns the rules as a pipeline file states them, before they meet a table.

use std::collections::BTreeMap;

use canalis_connector_api::{RoutePattern, TableSelector};

/// An entry of `transform`. The first rule that matches a table is the one that counts.
#[derive(Debug, Clone)]
pub struct TransformRule {
    /// Tables it is for, by their source id.
    pub source_table: TableSelector,
    /// SQL select list; `None` is `*`.
    pub projection: Option<String>,
    /// SQL boolean expression.
    pub filter: Option<String>,
    /// Replaces the primary key, if not empty.
    pub primary_keys: Vec<String>,
    /// Replaces the partition keys, if not empty.
    pub partition_keys: Vec<String>,
    /// Replaces the table options, if not empty.
    pub table_options: BTreeMap<String, String>,
    /// Turns a delete into an insert of the before image (`SOFT_DELETE`).
    pub soft_delete: bool,
}

/// An entry of `route`.
#[derive(Debug, Clone)]
pub struct RouteRule {
    /// Tables it is for, by their source id.
    pub source_table: RoutePattern,
    /// Target id with `$1`-style groups, or the replace symbol.
    pub sink_table: String,
    /// Text in `sink_table` that stands for the source table's name.
    pub replace_symbol: Option<String>,
}

/// Which routes of a table count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RouteMode {
    /// Every rule that matches.
    #[default]
    AllMatch,
    /// The first rule that matches.
    FirstMatch,
}

/// Settings of the whole pipeline that expressions depend on.
#[derive(Debug, Clone, Default)]
pub struct TransformOptions {
    /// IANA zone of LOCALTIMESTAMP and its kin; `None` is UTC.
    pub time_zone: Option<String>,
    /// Which routes count.
    pub route_mode: RouteMode,
    /// Metadata columns of the source that expressions may name (`op_ts`).
    pub metadata: Vec<String>,
}
