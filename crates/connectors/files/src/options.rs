//! Owns the options of the connector and what they mean.

use std::{path::PathBuf, time::Duration};

use canalis_connector_api::{ConnectorSpec, DeliveryGuarantee, OptionSpec, OptionType, Options, Role};
use canalis_formats::{
    Charset,
    csv::{CsvDialect, LineEnd, parse_byte},
    json::{DecimalForm, JsonDecoderOptions, UnknownMembers},
    parse_columns,
};
use canalis_types::{Column, Result, TableId};

use crate::listing::is_pattern;

/// A key and what is wrong with its value.
pub(crate) type Problem = (String, String);

const fn option(key: &'static str, ty: OptionType, role: Role, doc: &'static str) -> OptionSpec {
    OptionSpec::new(key, ty, role, doc)
}

pub(crate) static SPEC: ConnectorSpec = ConnectorSpec {
    name: "files",
    role: Role::Both,
    summary: "CSV and JSON-lines files: read once, or written so that only complete files are visible",
    options: &[
        option("path", OptionType::Text, Role::Both, "Source: a file, `*` and `?` stand for any text and any character. Sink: the directory below which every table has its own").required(),
        option("format", OptionType::Enum(&["csv", "json"]), Role::Both, "`csv`, or `json` for one object per line; the source takes it from the file name's ending when it is not given, the sink writes `json`"),
        option("table", OptionType::Text, Role::Source, "Id that the rows belong to, for example `shop.orders`; the file name without its ending when it is not given"),
        option("schema", OptionType::Text, Role::Source, "Columns, for example `id BIGINT NOT NULL, name VARCHAR(20)`; CSV files with a header may go without, then every column is a STRING"),
        option("primary-keys", OptionType::Text, Role::Source, "Names of the key columns, joined by commas"),
        option("max-record-bytes", OptionType::Bytes, Role::Source, "Size of the largest record; a larger one does not decode").default("64MB"),
        option("charset", OptionType::Text, Role::Source, "Character set of the files by its name in the WHATWG Encoding Standard, for example `gbk`, `windows-1252` or `utf-16le`").default("utf-8"),
        option("json.unknown-fields", OptionType::Enum(&["refuse", "ignore"]), Role::Source, "What happens to a line with fields that are no columns: it does not decode, or they are left out").default("refuse"),
        option("csv.delimiter", OptionType::Text, Role::Both, "Character between fields; `\\t` is the tabulator, `\\x01` any byte").default(","),
        option("csv.quote", OptionType::Text, Role::Both, "Character around fields").default("\""),
        option("csv.escape", OptionType::Text, Role::Both, "Character before a quote that is data; without it such a quote is doubled"),
        option("csv.line-end", OptionType::Text, Role::Both, "Character after every record; `\\n` takes a carriage return before it too, `\\r` and `\\x1e` are other bytes").default("\\n"),
        option("csv.header", OptionType::Boolean, Role::Both, "Whether the first record of every file holds the column names").default("true"),
        option("csv.null-literal", OptionType::Text, Role::Both, "Field without quotes that stands for NULL").default(""),
        option("json.decimal", OptionType::Enum(&["string", "number"]), Role::Sink, "How decimals are written; many readers round numbers").default("string"),
        option("row-kind", OptionType::Enum(&["auto", "always", "never"]), Role::Sink, "Whether every row says what it stands for (`+I`, `-U`, `+U`, `-D`); `auto` leaves it out when the source is append-only files; with `never` a row that is no insert is refused").default("auto"),
        option("row-kind.column", OptionType::Text, Role::Sink, "Name of the field that holds the row kind").default("__op__"),
        option("row-kind.update-before", OptionType::Boolean, Role::Sink, "Whether the row before an update is written too").default("true"),
        option("sink.rolling.max-bytes", OptionType::Bytes, Role::Sink, "Size at which a file is complete").default("128MB"),
        option("sink.rolling.max-rows", OptionType::Integer { min: 1, max: i64::MAX }, Role::Sink, "Rows at which a file is complete"),
        option("sink.rolling.interval", OptionType::Duration, Role::Sink, "Age at which a file is complete, looked at when a checkpoint is taken").default("10min"),
        option("compression", OptionType::Text, Role::Both, "Compression of the files").not_yet("files are not compressed"),
    ],
    prefixes: &[],
    guarantee: DeliveryGuarantee::ExactlyOnce,
};

/// Format of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Csv,
    Json,
}

impl Format {
    /// What a name's ending says.
    fn of_name(name: &str) -> Option<Self> {
        let ending = name.rsplit_once('.')?.1.to_ascii_lowercase();
        match ending.as_str() {
            "csv" | "tsv" => Some(Format::Csv),
            "json" | "jsonl" | "ndjson" => Some(Format::Json),
            _ => None,
        }
    }

    /// Ending of the names of written files.
    pub(crate) fn ending(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Json => "jsonl",
        }
    }
}

/// Options of a source.
#[derive(Debug, Clone)]
pub(crate) struct SourceOptions {
    pub path: String,
    pub format: Format,
    pub table: Option<TableId>,
    pub columns: Option<Vec<Column>>,
    pub primary_key: Vec<String>,
    pub csv: CsvDialect,
    pub json: JsonDecoderOptions,
    /// `None` is UTF-8.
    pub charset: Option<Charset>,
}

/// When a row says what it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowKinds {
    /// Unless the source is append-only.
    Auto,
    Always,
    Never,
}

/// Options of a sink.
#[derive(Debug, Clone)]
pub(crate) struct SinkOptions {
    pub path: PathBuf,
    pub format: Format,
    pub csv: CsvDialect,
    pub decimals: DecimalForm,
    pub row_kinds: RowKinds,
    pub row_kind_column: String,
    pub update_before: bool,
    pub max_bytes: u64,
    pub max_rows: u64,
    pub interval: Duration,
}

/// Gathers problems instead of stopping at the first.
#[derive(Default)]
struct Problems(Vec<Problem>);

impl Problems {
    fn note(&mut self, key: &str, why: impl Into<String>) {
        self.0.push((key.to_owned(), why.into()));
    }

    /// The value, or a stand-in after noting why there is none.
    fn take<T>(&mut self, key: &str, value: Result<T, impl std::fmt::Display>, stand_in: T) -> T {
        value.unwrap_or_else(|why| {
            self.note(key, why.to_string());
            stand_in
        })
    }

    fn end<T>(self, value: T) -> Result<T, Vec<Problem>> {
        if self.0.is_empty() { Ok(value) } else { Err(self.0) }
    }
}

fn dialect(options: &Options, problems: &mut Problems) -> CsvDialect {
    let plain = CsvDialect::default();
    let mut byte = |key: &str, default: u8| match options.text(key) {
        Some(text) => problems.take(key, parse_byte(text), default),
        None => default,
    };
    let delimiter = byte("csv.delimiter", plain.delimiter);
    let quote = byte("csv.quote", plain.quote);
    let escape = options.text("csv.escape").filter(|t| !t.is_empty()).map(|_| byte("csv.escape", b'\\'));
    let line_end = options.text("csv.line-end").map_or(Ok(LineEnd::LineFeed), line_end);
    let line_end = problems.take("csv.line-end", line_end, LineEnd::LineFeed);
    let header = problems.take("csv.header", options.boolean("csv.header"), true);
    let null_literal = options.text("csv.null-literal").unwrap_or_default().as_bytes().to_vec();
    // A quote as its own escape is the usual doubling.
    let escape = escape.filter(|e| *e != quote);
    let dialect = CsvDialect { delimiter, quote, escape, line_end, header, null_literal, ..plain };
    if let Err(why) = dialect.validate() {
        problems.note("csv.delimiter", why);
    }
    dialect
}

fn line_end(text: &str) -> Result<LineEnd, String> {
    match text {
        "\\n" | "\n" | "\\r\\n" | "\r\n" => Ok(LineEnd::LineFeed),
        "\\r" | "\r" => Ok(LineEnd::Byte(b'\r')),
        other => parse_byte(other).map(LineEnd::Byte),
    }
}

fn given_format(options: &Options) -> Option<Format> {
    match options.text("format")?.to_ascii_lowercase().as_str() {
        "csv" => Some(Format::Csv),
        _ => Some(Format::Json),
    }
}

impl SourceOptions {
    /// Reads validated options.
    pub(crate) fn read(options: &Options) -> Result<Self, Vec<Problem>> {
        let mut problems = Problems::default();
        let path = options.text("path").unwrap_or_default().to_owned();
        if path.is_empty() {
            problems.note("path", "`path` is empty");
        }
        if path.contains("**") {
            problems.note("path", "`**` is not supported yet; write one `*` for each level of directories");
        }
        let ending = path.rsplit('.').next().unwrap_or_default();
        if ["gz", "zst", "bz2", "xz", "zip"].contains(&ending) {
            problems.note("path", "compressed files are not supported yet");
        }
        let format = given_format(options).or_else(|| Format::of_name(&path)).unwrap_or_else(|| {
            problems.note(
                "format",
                "the name of the file does not tell its format; write `format: csv` or `format: json`",
            );
            Format::Csv
        });
        let table = options.text("table").and_then(|text| {
            let id = TableId::parse(text);
            if id.is_none() {
                problems
                    .note("table", format!("`{text}` is not a table id; write `table` or `schema.table`"));
            }
            id
        });
        let mut csv = dialect(options, &mut problems);
        let declared = options.text("schema");
        let columns = declared.map(|text| problems.take("schema", parse_columns(text), Vec::new()));
        if declared.is_none() && format == Format::Json {
            problems.note(
                "schema",
                "JSON files need `schema`, for example `id BIGINT NOT NULL, name VARCHAR(20)`",
            );
        } else if declared.is_none() && !csv.header {
            problems.note("schema", "CSV files without a header need `schema`");
        }
        let primary_key = key_columns(options, columns.as_deref(), &mut problems);
        let most = problems.take("max-record-bytes", options.bytes("max-record-bytes"), 64 << 20);
        // Offsets inside one column of a batch have 31 bits.
        let most =
            usize::try_from(most).ok().filter(|n| (1024..=512 << 20).contains(n)).unwrap_or_else(|| {
                problems.note("max-record-bytes", "must be between 1kb and 512mb");
                64 << 20
            });
        csv.max_record_bytes = most;
        let unknown = match options.text("json.unknown-fields") {
            Some(word) if word.eq_ignore_ascii_case("ignore") => UnknownMembers::Ignore,
            _ => UnknownMembers::Refuse,
        };
        let json = JsonDecoderOptions { unknown, max_record_bytes: most };
        let charset =
            options.text("charset").and_then(|label| problems.take("charset", Charset::parse(label), None));
        problems.end(Self { path, format, table, columns, primary_key, csv, json, charset })
    }
}

fn key_columns(options: &Options, columns: Option<&[Column]>, problems: &mut Problems) -> Vec<String> {
    let text = options.text("primary-keys").unwrap_or_default();
    let names: Vec<String> = text.split(',').map(|n| n.trim().to_owned()).filter(|n| !n.is_empty()).collect();
    for name in &names {
        if columns.is_some_and(|c| !c.is_empty() && !c.iter().any(|c| c.name == *name)) {
            problems.note("primary-keys", format!("`{name}` is no column of `schema`"));
        }
    }
    names
}

impl SinkOptions {
    /// Reads validated options.
    pub(crate) fn read(options: &Options) -> Result<Self, Vec<Problem>> {
        let mut problems = Problems::default();
        let path = options.text("path").unwrap_or_default();
        if path.is_empty() || is_pattern(path) {
            problems.note("path", "`path` of a sink is a directory");
        }
        let csv = dialect(options, &mut problems);
        let word = |key: &str| options.text(key).unwrap_or_default().to_ascii_lowercase();
        let row_kind_column = options.text("row-kind.column").unwrap_or("__op__").to_owned();
        if row_kind_column.is_empty() {
            problems.note(
                "row-kind.column",
                "`row-kind.column` is empty; write `row-kind: never` to leave it out",
            );
        }
        let max_rows = match options.text("sink.rolling.max-rows") {
            None => u64::MAX,
            Some(_) => {
                let rows =
                    problems.take("sink.rolling.max-rows", options.integer("sink.rolling.max-rows"), 1);
                u64::try_from(rows).unwrap_or(1)
            }
        };
        let max_bytes =
            problems.take("sink.rolling.max-bytes", options.bytes("sink.rolling.max-bytes"), 128 << 20);
        if max_bytes == 0 {
            problems.note("sink.rolling.max-bytes", "`sink.rolling.max-bytes` must be above 0");
        }
        let interval = problems.take(
            "sink.rolling.interval",
            options.duration("sink.rolling.interval"),
            Duration::from_secs(600),
        );
        let update_before =
            problems.take("row-kind.update-before", options.boolean("row-kind.update-before"), true);
        problems.end(Self {
            path: PathBuf::from(path),
            format: given_format(options).unwrap_or(Format::Json),
            csv,
            decimals: if word("json.decimal") == "number" {
                DecimalForm::Number
            } else {
                DecimalForm::String
            },
            row_kinds: match word("row-kind").as_str() {
                "always" => RowKinds::Always,
                "never" => RowKinds::Never,
                _ => RowKinds::Auto,
            },
            row_kind_column,
            update_before,
            max_bytes,
            max_rows,
            interval,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn problems(role: Role, pairs: &[(&str, &str)]) -> Vec<String> {
        let raw: BTreeMap<String, String> = pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        let found = match Options::validate(&SPEC, role, &raw) {
            Err(found) => found,
            Ok(options) if role == Role::Sink => SinkOptions::read(&options).err().unwrap_or_default(),
            Ok(options) => SourceOptions::read(&options).err().unwrap_or_default(),
        };
        found.into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn wrong_options_are_named() {
        use Role::{Sink, Source};
        for (role, pairs, expect) in [
            (Source, &[("path", "a.csv")][..], &[][..]),
            (Source, &[("path", "a.dat")], &["format"]),
            (Source, &[("path", "a.jsonl")], &["schema"]),
            (Source, &[("path", "a.csv"), ("csv.header", "false")], &["schema"]),
            (Source, &[("path", "a.csv"), ("csv.delimiter", "\\t"), ("csv.null-literal", "\\N")], &[]),
            (Source, &[("path", "a.csv"), ("csv.delimiter", "||")], &["csv.delimiter"]),
            (Source, &[("path", "a.csv"), ("csv.escape", "\"")], &[]),
            (Source, &[("path", "a.csv"), ("csv.line-end", "\\r"), ("charset", "GBK")], &[]),
            (
                Source,
                &[("path", "a.csv"), ("csv.line-end", "||"), ("charset", "utf-7")],
                &["csv.line-end", "charset"],
            ),
            (Source, &[("path", "a.csv"), ("csv.line-end", ",")], &["csv.delimiter"]),
            (Sink, &[("path", "out"), ("charset", "gbk")], &["charset"]),
            (
                Source,
                &[("path", "**/a.csv"), ("schema", "id"), ("table", "a..b")],
                &["path", "table", "schema"],
            ),
            (
                Source,
                &[("path", "a.csv"), ("schema", "id INT"), ("primary-keys", "id, x")],
                &["primary-keys"],
            ),
            (Source, &[("path", "a.csv.gz"), ("format", "csv")], &["path"]),
            (Source, &[("path", "a.csv"), ("compression", "gzip")], &["compression"]),
            (Source, &[("path", "a.csv"), ("max-record-bytes", "4g")], &["max-record-bytes"]),
            (Sink, &[("path", "out")], &[]),
            (Sink, &[("path", "out/*"), ("row-kind.column", "")], &["path", "row-kind.column"]),
            (Sink, &[("path", "out"), ("table", "x")], &["table"]),
        ] {
            assert_eq!(problems(role, pairs), expect, "{pairs:?}");
        }
    }
}
