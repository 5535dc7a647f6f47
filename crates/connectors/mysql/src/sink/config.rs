//! Owns the sink's options.

use canalis_connector_api::{OptionSpec, OptionType, Options, Role};
use canalis_types::{Code, Error, Result};

use crate::{Endpoint, Side};

/// Options that only the sink has.
pub(crate) const SINK_OPTIONS: &[OptionSpec] = &[
    OptionSpec::new(
        "database",
        OptionType::Text,
        Role::Sink,
        "Database of tables whose name has one part, and home of the table `canalis_progress`; by default \
         progress lives in the first table's database.",
    ),
    OptionSpec::new(
        "sink.load-data",
        OptionType::Enum(&["auto", "off"]),
        Role::Sink,
        "`auto` fills tables with LOAD DATA LOCAL where the server allows it, `off` only uses INSERT.",
    )
    .default("auto"),
    OptionSpec::new(
        "sink.secondary-indexes",
        OptionType::Enum(&["deferred", "immediate"]),
        Role::Sink,
        "When tables that the job creates get their secondary indexes: after the snapshot, in one pass, or at once.",
    )
    .default("deferred"),
    OptionSpec::new(
        "sink.binlog",
        OptionType::Boolean,
        Role::Sink,
        "`false` keeps the job's rows out of the target's own change log (needs the right to set \
         `sql_log_bin`; replicas of the target then miss them).",
    )
    .default("true"),
    OptionSpec::new(
        "sink.max-statement-bytes",
        OptionType::Bytes,
        Role::Sink,
        "Largest SQL statement that holds more than one row; the server's `max_allowed_packet` also limits it.",
    )
    .default("1MB"),
];

/// Whether LOAD DATA LOCAL may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoadData {
    /// Where the server allows it.
    Auto,
    /// Never.
    Off,
}

/// When created tables get their secondary indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SecondaryIndexes {
    /// After the snapshot.
    Deferred,
    /// With the table.
    Immediate,
}

/// Whether the target logs what the job writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeLog {
    /// As any other session.
    Written,
    /// `sql_log_bin = 0`.
    Skipped,
}

/// Parsed options.
#[derive(Clone)]
pub(super) struct SinkConfig {
    /// Where and as whom.
    pub endpoint: Endpoint,
    /// Database of one-part names and of the progress table.
    pub database: Option<String>,
    /// See [`LoadData`].
    pub load_data: LoadData,
    /// See [`SecondaryIndexes`].
    pub indexes: SecondaryIndexes,
    /// See [`ChangeLog`].
    pub change_log: ChangeLog,
    /// Largest statement with more than one row, in bytes.
    pub max_statement_bytes: usize,
}

impl SinkConfig {
    /// Reads the options.
    pub(super) fn parse(options: &Options) -> Result<Self> {
        let bytes = options.bytes("sink.max-statement-bytes")?;
        let max_statement_bytes = usize::try_from(bytes)
            .ok()
            .filter(|bytes| (16 << 10..=256 << 20).contains(bytes))
            .ok_or_else(|| {
                Error::new(
                    Code::PipelineInvalid,
                    "option `sink.max-statement-bytes` must be between 16KB and 256MB",
                )
            })?;
        Ok(Self {
            endpoint: Endpoint::from_options(options, Side::Sink)?,
            database: options.text("database").map(str::to_owned).filter(|name| !name.is_empty()),
            load_data: if options.word("sink.load-data")? == "off" { LoadData::Off } else { LoadData::Auto },
            indexes: if options.word("sink.secondary-indexes")? == "immediate" {
                SecondaryIndexes::Immediate
            } else {
                SecondaryIndexes::Deferred
            },
            change_log: if options.boolean("sink.binlog")? { ChangeLog::Written } else { ChangeLog::Skipped },
            max_statement_bytes,
        })
    }
}
