//! Owns the options of the source and their typed form.

use std::time::Duration;

use canalis_connector_api::{
    OptionSpec,
    OptionType::{self, Boolean, Enum, Float, Integer, TablePatterns, Text},
    Options, Role, TableSelector,
};
use canalis_types::{Code, Error, Result, TableId, mysql_type::TinyInt1};

use crate::{Endpoint, Side, catalog::Comments};

const MODES: &[&str] =
    &["initial", "snapshot", "earliest-offset", "latest-offset", "specific-offset", "timestamp"];
const OFFSET_FILE: &str = "scan.startup.specific-offset.file";
const OFFSET_POS: &str = "scan.startup.specific-offset.pos";
const OFFSET_GTID: &str = "scan.startup.specific-offset.gtid-set";
const TIMESTAMP: &str = "scan.startup.timestamp-millis";
const CHUNK_KEY: &str = "scan.incremental.snapshot.chunk.key-column";
pub(super) const FACTOR_UPPER: &str = "chunk-key.even-distribution.factor.upper-bound";
pub(super) const FACTOR_LOWER: &str = "chunk-key.even-distribution.factor.lower-bound";

const fn option(key: &'static str, ty: OptionType, doc: &'static str) -> OptionSpec {
    OptionSpec::new(key, ty, Role::Source, doc)
}

const fn at_least(min: i64) -> OptionType {
    Integer { min, max: i64::MAX }
}

/// Options of the source beyond those of the endpoint.
pub(super) const SOURCE_OPTIONS: &[OptionSpec] = &[
    option(
        "tables",
        TablePatterns,
        r"Tables to capture: `database.table` patterns, comma-separated; each part is a regular expression, a plain dot separates, `\.` is the regex dot.",
    )
    .required(),
    option("tables.exclude", TablePatterns, "Patterns of tables to leave out, applied after `tables`."),
    option(
        "server-id",
        Text,
        "Id under which the binlog is read: a number or a range `5400-5404`, unique among replicas; random in 5400–6400 when left out.",
    ),
    option(
        "server-time-zone",
        Text,
        "Time zone of the server. Checked to be a known zone; TIMESTAMP values are read in UTC and need no zone.",
    ),
    option("scan.startup.mode", Enum(MODES), "Where to begin.").default("initial"),
    option(OFFSET_FILE, Text, "Binlog file to begin in, with `pos`; mode `specific-offset`."),
    option(OFFSET_POS, at_least(4), "Position in the file to begin at."),
    option(OFFSET_GTID, Text, "GTID set that was already seen; goes before file and position."),
    option("scan.startup.specific-offset.skip-events", at_least(0), "Events to skip after the offset.")
        .not_yet("begin at the exact position of the event instead"),
    option("scan.startup.specific-offset.skip-rows", at_least(0), "Rows to skip inside the event.")
        .not_yet("begin at the exact position of the event instead"),
    option(TIMESTAMP, at_least(0), "Begin at the first change at or after this time, milliseconds since 1970."),
    option(
        "scan.incremental.snapshot.chunk.size",
        Integer { min: 2, max: 100_000_000 },
        "Rows of a snapshot chunk, about.",
    )
    .default("8096"),
    option(
        CHUNK_KEY,
        Text,
        "Column to cut chunks by, as `pattern:column` items joined by `;`, for tables whose primary key is missing or unfit.",
    ),
    option(
        "scan.snapshot.fetch.size",
        Integer { min: 2, max: 8192 },
        "Largest number of rows in one batch of a snapshot; rows are streamed, never fetched as a whole.",
    )
    .default("8192"),
    option(
        FACTOR_UPPER,
        Float { min: 1.0, max: f64::MAX },
        "A numeric key whose range is at most this many times the number of rows is cut by arithmetic; any other key is walked.",
    )
    .default("10.0")
    .aliases(&["split-key.even-distribution.factor.upper-bound"]),
    option(
        FACTOR_LOWER,
        Float { min: 0.0, max: 1.0 },
        "A numeric key whose range is less than this many times the number of rows is walked.",
    )
    .default("0.05")
    .aliases(&["split-key.even-distribution.factor.lower-bound"]),
    option(
        "connection.pool.size",
        Integer { min: 2, max: 1024 },
        "Largest number of sessions of the snapshot.",
    )
    .default("20"),
    option("connect.max-retries", Integer { min: 1, max: 1000 }, "Attempts to connect before the job fails over to its restart strategy.")
        .default("3"),
    option(
        "heartbeat.interval",
        OptionType::Duration,
        "How often the server is to show that it is alive, and how often the stored position moves on quiet tables.",
    )
    .default("30s"),
    option(
        "treat-tinyint1-as-boolean.enabled",
        Boolean,
        "Map TINYINT(1) to BOOLEAN, every value but 0 being true. Off by default, because such columns often hold other numbers.",
    )
    .default("false"),
    option("include-comments.enabled", Boolean, "Carry table and column comments.").default("true"),
    option("schema-change.enabled", Boolean, "Report changes of table structure.").default("true"),
    option("use.legacy.json.format", Boolean, "Write JSON of the binlog without spaces, unlike the snapshot.")
        .default("false"),
    option("scan.newly-added-table.enabled", Boolean, "Snapshot tables that match when a job is restored.")
        .default("false"),
    option("scan.binlog.newly-added-table.enabled", Boolean, "Capture tables that are created while the job runs.")
        .default("false"),
    option("scan.parse.online.schema.changes.enabled", Boolean, "Follow gh-ost and pt-online-schema-change.")
        .default("false"),
    option("scan.incremental.close-idle-reader.enabled", Boolean, "Close readers that have no more work.")
        .default("false"),
    option(
        "scan.incremental.snapshot.unbounded-chunk-first.enabled",
        Boolean,
        "Read the open-ended chunk of a table first.",
    )
    .default("false"),
    option(
        "scan.incremental.snapshot.backfill.skip",
        Boolean,
        "Accepted with either value: all chunks are read from one consistent view, so there is no backfill to skip.",
    )
    .default("false"),
    option(
        "chunk-meta.group.size",
        Integer { min: 2, max: i64::MAX },
        "Accepted: chunks are dealt one at a time, so there are no groups of them.",
    )
    .default("1000"),
    option("metadata.list", Text, "Metadata columns for expressions.").not_yet("metadata columns come later"),
];

/// Options of which only one value is built.
pub(super) const FIXED: &[(&str, bool, &str)] = &[
    ("schema-change.enabled", true, "a change of structure is always reported"),
    (
        "use.legacy.json.format",
        false,
        "the same row would have one text in the snapshot and another in the binlog",
    ),
    ("scan.newly-added-table.enabled", false, "tables are chosen when a job first starts"),
    ("scan.binlog.newly-added-table.enabled", false, "tables are chosen when a job first starts"),
    ("scan.parse.online.schema.changes.enabled", false, "shadow tables are not followed"),
    ("scan.incremental.close-idle-reader.enabled", false, "idle readers hold no resources of note"),
    ("scan.incremental.snapshot.unbounded-chunk-first.enabled", false, "chunks are read in key order"),
];

type TextCheck = fn(&str) -> std::result::Result<(), String>;

/// Checks of options whose text has a form of its own.
pub(super) const TEXT_CHECKS: &[(&str, TextCheck)] = &[
    ("server-id", |text| server_id(text).map(drop)),
    ("server-time-zone", time_zone),
    (CHUNK_KEY, |text| chunk_keys(text).map(drop)),
];

/// Where the source begins at its first start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StartupMode {
    /// Snapshot, then the stream from the snapshot's position.
    Initial,
    /// Snapshot only.
    Snapshot,
    /// The oldest change the server still has.
    Earliest,
    /// The end of the binlog.
    Latest,
    /// A file and a position.
    FileOffset {
        /// Binlog file.
        file: String,
        /// Position in it.
        pos: u64,
    },
    /// After a set of transactions.
    GtidSet(String),
    /// The first change at or after a time, milliseconds since the epoch.
    Timestamp(i64),
}

impl StartupMode {
    /// Whether there is a snapshot.
    pub(crate) fn has_snapshot(&self) -> bool {
        matches!(self, Self::Initial | Self::Snapshot)
    }

    /// Whether there is a stream.
    pub(crate) fn has_stream(&self) -> bool {
        *self != Self::Snapshot
    }
}

/// Typed options of the source.
#[derive(Clone)]
pub(crate) struct SourceOptions {
    pub endpoint: Endpoint,
    pub include: TableSelector,
    pub exclude: Option<TableSelector>,
    pub server_id: u32,
    pub startup: StartupMode,
    pub chunk_size: u64,
    pub chunk_keys: Vec<(TableSelector, String)>,
    pub batch_rows: usize,
    pub even_upper: f64,
    pub even_lower: f64,
    pub sessions: usize,
    pub connect_attempts: usize,
    pub heartbeat: Duration,
    pub tinyint1: TinyInt1,
    pub comments: Comments,
}

impl SourceOptions {
    /// Reads validated options.
    pub(crate) fn parse(options: &Options) -> Result<Self> {
        let invalid = |key: &str, why: String| Error::new(Code::PipelineInvalid, format!("`{key}`: {why}"));
        let selector = |key: &str| {
            options
                .text(key)
                .map(|text| TableSelector::parse(text).map_err(|why| invalid(key, why)))
                .transpose()
        };
        let float = |key: &str| -> Result<f64> {
            options.required(key)?.parse().map_err(|_| invalid(key, "not a number".into()))
        };
        let server_id = match options.text("server-id") {
            Some(text) => server_id(text).map_err(|why| invalid("server-id", why))?,
            None => rand::random_range(5400..=6400),
        };
        Ok(Self {
            endpoint: Endpoint::from_options(options, Side::Source)?,
            include: selector("tables")?.ok_or_else(|| invalid("tables", "missing".into()))?,
            exclude: selector("tables.exclude")?,
            server_id,
            startup: startup(options)?,
            chunk_size: u64::try_from(options.count("scan.incremental.snapshot.chunk.size")?)
                .map_err(|_| invalid("scan.incremental.snapshot.chunk.size", "too large".into()))?,
            chunk_keys: chunk_keys(options.text(CHUNK_KEY).unwrap_or_default())
                .map_err(|why| invalid(CHUNK_KEY, why))?,
            batch_rows: options.count("scan.snapshot.fetch.size")?,
            even_upper: float(FACTOR_UPPER)?,
            even_lower: float(FACTOR_LOWER)?,
            sessions: options.count("connection.pool.size")?,
            connect_attempts: options.count("connect.max-retries")?,
            heartbeat: options.duration("heartbeat.interval")?,
            tinyint1: if options.boolean("treat-tinyint1-as-boolean.enabled")? {
                TinyInt1::Boolean
            } else {
                TinyInt1::Integer
            },
            comments: if options.boolean("include-comments.enabled")? {
                Comments::Keep
            } else {
                Comments::Drop
            },
        })
    }

    /// The column that the definition wants chunks of this table to be cut by.
    pub(crate) fn chunk_key(&self, table: &TableId) -> Option<&str> {
        self.chunk_keys
            .iter()
            .find(|(selector, _)| selector.matches(table))
            .map(|(_, column)| column.as_str())
    }
}

fn startup(options: &Options) -> Result<StartupMode> {
    Ok(match options.word("scan.startup.mode")?.as_str() {
        "snapshot" => StartupMode::Snapshot,
        "earliest-offset" => StartupMode::Earliest,
        "latest-offset" => StartupMode::Latest,
        "timestamp" => StartupMode::Timestamp(options.integer(TIMESTAMP)?),
        "specific-offset" => match options.text(OFFSET_GTID) {
            Some(set) => StartupMode::GtidSet(set.to_owned()),
            None => StartupMode::FileOffset {
                file: options.required(OFFSET_FILE)?.to_owned(),
                pos: u64::try_from(options.integer(OFFSET_POS)?)
                    .map_err(|_| Error::new(Code::PipelineInvalid, format!("`{OFFSET_POS}` is negative")))?,
            },
        },
        _ => StartupMode::Initial,
    })
}

/// Companions that the start-up mode needs.
pub(super) fn startup_problems(options: &Options) -> Vec<(String, String)> {
    let mut problems = Vec::new();
    let mut note = |key: &str, message: String| problems.push((key.to_owned(), message));
    match options.word("scan.startup.mode").unwrap_or_default().as_str() {
        "timestamp" if options.text(TIMESTAMP).is_none() => {
            note(TIMESTAMP, format!("`scan.startup.mode: timestamp` needs `{TIMESTAMP}`"));
        }
        "specific-offset" if options.text(OFFSET_GTID).is_none() => {
            match (options.text(OFFSET_FILE), options.text(OFFSET_POS)) {
                (Some(_), Some(_)) => {}
                (Some(_), None) => {
                    note(OFFSET_POS, format!("`{OFFSET_FILE}` needs `{OFFSET_POS}` beside it"))
                }
                (None, Some(_)) => {
                    note(OFFSET_FILE, format!("`{OFFSET_POS}` needs `{OFFSET_FILE}` beside it"))
                }
                (None, None) => note(
                    "scan.startup.mode",
                    format!(
                        "`scan.startup.mode: specific-offset` needs `{OFFSET_GTID}`, or `{OFFSET_FILE}` and `{OFFSET_POS}`"
                    ),
                ),
            }
        }
        _ => {}
    }
    problems
}

/// A number or a range; one reader of the binlog needs one id, the first.
fn server_id(text: &str) -> std::result::Result<u32, String> {
    let refuse = || format!("`{text}` is neither a number above 0 nor a range like `5400-5404`");
    let number = |part: &str| part.trim().parse::<u32>().ok().filter(|n| *n > 0).ok_or_else(refuse);
    match text.split_once('-') {
        None => number(text),
        Some((first, last)) => {
            let (first, last) = (number(first)?, number(last)?);
            if first <= last { Ok(first) } else { Err(refuse()) }
        }
    }
}

fn time_zone(text: &str) -> std::result::Result<(), String> {
    let offset = |text: &str| -> Option<()> {
        let digits = text.strip_prefix(['+', '-'])?;
        let (hours, minutes) = digits.split_once(':').unwrap_or((digits, "0"));
        let ok = hours.len() <= 2
            && hours.parse::<u8>().is_ok_and(|h| h <= 18)
            && minutes.parse::<u8>().is_ok_and(|m| m < 60);
        ok.then_some(())
    };
    let text = text.trim();
    let rest = ["UTC", "GMT"].iter().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(text);
    if text == "Z" || text.parse::<chrono_tz::Tz>().is_ok() || offset(rest).is_some() {
        Ok(())
    } else {
        Err(format!(
            "`{text}` is not a time zone; write an id like `Europe/Berlin` or an offset like `+02:00`"
        ))
    }
}

/// Items `pattern:column` joined by `;`.
fn chunk_keys(text: &str) -> std::result::Result<Vec<(TableSelector, String)>, String> {
    let mut keys = Vec::new();
    for item in text.split(';').map(str::trim).filter(|item| !item.is_empty()) {
        match item.split(':').collect::<Vec<_>>().as_slice() {
            [pattern, column] if !column.trim().is_empty() => {
                keys.push((TableSelector::parse(pattern)?, column.trim().to_owned()));
            }
            _ => return Err(format!("`{item}` is not of the form `database.table:column`")),
        }
    }
    Ok(keys)
}
