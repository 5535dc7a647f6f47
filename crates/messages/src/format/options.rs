//! Owns the options of formats and what they mean.

use std::sync::Arc;

use canalis_connector_api::{OptionSpec, OptionType, Options, Role};
use canalis_formats::{
    Charset,
    canal::{CanalDecoderOptions, CanalEncoderOptions, EnumMode, Zone},
    csv::{CsvDialect, parse_byte},
    debezium::{
        BigintUnsignedMode, BinaryMode, DebeziumDecoderOptions, DebeziumEncoderOptions, DecimalMode,
        TimeMode, ZeroDates,
    },
    inlong::{InlongBody, InlongOptions},
    json::{DecimalForm, UnknownMembers},
    maxwell::{KeyFormat, MaxwellDecoderOptions, MaxwellEncoderOptions},
    rows::{RawForm, RawKey, RowsOptions, UnknownFields},
};
use canalis_types::{TableId, TableSchema};

use super::{
    Formats, MessageFormat,
    avro::{AVRO_OPTIONS, AvroSettings},
    tables,
};
use crate::source::MetadataColumn;

/// A key and what is wrong with its value.
pub type Problem = (String, String);

/// Formats that are read.
const READ: &[&str] = &[
    "json",
    "csv",
    "raw",
    "canal-json",
    "debezium-json",
    "maxwell-json",
    "avro",
    "debezium-avro",
    "inlong-csv",
    "inlong-kv",
];
/// Formats that are written.
const WRITTEN: &[&str] =
    &["json", "csv", "raw", "canal-json", "debezium-json", "maxwell-json", "avro", "debezium-avro"];

const fn option(key: &'static str, ty: OptionType, role: Role, doc: &'static str) -> OptionSpec {
    OptionSpec::new(key, ty, role, doc)
}

/// Options that every broker's connector has.
pub const FORMAT_OPTIONS: &[OptionSpec] = &[
    option("value.format", OptionType::Enum(READ), Role::Source, "Format of the messages").required().aliases(&["format"]),
    option("value.format", OptionType::Enum(WRITTEN), Role::Sink, "Format of the messages").default("debezium-json").aliases(&["format"]),
    option("table", OptionType::Text, Role::Source, "Id of the table that the messages belong to, for formats that do not name it; without it every topic is a table"),
    option("schema", OptionType::Text, Role::Source, "Columns, for example `id BIGINT NOT NULL, name VARCHAR(20)`, or tables: `shop.orders (id BIGINT, name STRING, PRIMARY KEY (id)); shop.items (…)`; without it they follow from the messages, where the format tells types"),
    option("primary-keys", OptionType::Text, Role::Source, "Names of the key columns, joined by commas"),
    option("metadata.list", OptionType::Text, Role::Source, "Columns that tell of the message, behind those of its rows: `topic`, `partition`, `offset`, `timestamp`, `key`, `headers`, joined by commas; each is named like `__topic__`"),
    option("max-message-bytes", OptionType::Bytes, Role::Source, "Size of the largest message that is decoded").default("64MB"),
    option("json.unknown-fields", OptionType::Enum(&["refuse", "ignore", "evolve"]), Role::Source, "What happens to fields that are no columns: the message does not decode, they are left out, or they become columns").default("refuse"),
    option("json.decimal", OptionType::Enum(&["string", "number"]), Role::Sink, "How decimals are written; many readers round numbers").default("string"),
    option("csv.delimiter", OptionType::Text, Role::Both, "Character between fields; `\\t` is the tabulator, `\\x01` any byte").default(","),
    option("csv.quote", OptionType::Text, Role::Both, "Character around fields").default("\""),
    option("csv.escape", OptionType::Text, Role::Both, "Character before a quote that is data; without it such a quote is doubled"),
    option("csv.null-literal", OptionType::Text, Role::Both, "Field without quotes that stands for NULL").default(""),
    option("canal-json.time-zone", OptionType::Text, Role::Both, "Zone of TIMESTAMP texts").default("UTC"),
    option("canal-json.enum", OptionType::Enum(&["index", "label"]), Role::Sink, "How ENUM and SET are written: as Canal does, or by their labels").default("index"),
    option("canal-json.key", OptionType::Boolean, Role::Sink, "Whether messages have the primary key as their key; Canal's have none").default("false"),
    option("debezium-json.include-schema.enabled", OptionType::Boolean, Role::Sink, "Whether messages carry their schema").default("false").aliases(&["sink.debezium-json.include-schema.enabled"]),
    option("debezium-json.decimal.handling.mode", OptionType::Enum(&["precise", "string", "double"]), Role::Both, "Form of decimals; `double` rounds").default("precise"),
    option("debezium-json.bigint.unsigned.handling.mode", OptionType::Enum(&["precise", "long"]), Role::Both, "Form of BIGINT UNSIGNED; `long` writes numbers from 2^63 on as negative ones").default("precise"),
    option("debezium-json.binary.handling.mode", OptionType::Enum(&["bytes", "base64", "base64-url-safe", "hex"]), Role::Both, "Form of bytes").default("bytes"),
    option("debezium-json.time.precision.mode", OptionType::Enum(&["adaptive_time_microseconds", "adaptive", "connect", "isostring", "microseconds", "nanoseconds"]), Role::Both, "Form of dates and times").default("adaptive_time_microseconds"),
    option("debezium-json.zero-dates", OptionType::Enum(&["refuse", "null-or-epoch"]), Role::Sink, "What becomes of `0000-00-00`: the row is refused, or the value is lost as Debezium loses it").default("refuse"),
    option("debezium-json.topic.prefix", OptionType::Text, Role::Sink, "Name of the source in messages").default("canalis"),
    option("debezium-json.tombstones.on.delete", OptionType::Boolean, Role::Sink, "Whether a delete is followed by a message without payload").default("true"),
    option("debezium-json.unwrapped", OptionType::Boolean, Role::Source, "Whether messages are rows alone, as ExtractNewRecordState leaves them").default("false"),
    option("maxwell-json.key.format", OptionType::Enum(&["hash", "array"]), Role::Sink, "Form of keys").default("hash"),
    option("maxwell-json.output-nulls", OptionType::Boolean, Role::Sink, "Whether columns that are NULL are written").default("true"),
    option("charset", OptionType::Text, Role::Source, "Character set of `json`, `csv` and `inlong` messages, a name of the WHATWG Encoding Standard").default("utf-8"),
    option("inlong.separator", OptionType::Text, Role::Source, "Character between the fields of `inlong-csv`").default("|"),
    option("inlong.entry-separator", OptionType::Text, Role::Source, "Character between the entries of `inlong-kv`").default("&"),
    option("inlong.kv-separator", OptionType::Text, Role::Source, "Character between name and value in `inlong-kv`").default("="),
    option("inlong.line-separator", OptionType::Text, Role::Source, "Character between the records of a body; without it, a body is one record"),
    option("inlong.escape", OptionType::Text, Role::Source, "Character that takes the meaning from the one behind it"),
    option("inlong.quote", OptionType::Text, Role::Source, "Character around text"),
    option("inlong.null-literal", OptionType::Text, Role::Source, "Text that stands for NULL"),
    AVRO_OPTIONS[0],
    AVRO_OPTIONS[1],
    AVRO_OPTIONS[2],
    AVRO_OPTIONS[3],
    AVRO_OPTIONS[4],
    AVRO_OPTIONS[5],
    AVRO_OPTIONS[6],
    AVRO_OPTIONS[7],
    AVRO_OPTIONS[8],
    option("raw.type", OptionType::Enum(&["bytes", "text"]), Role::Source, "What the column `value` of the format `raw` holds").default("bytes"),
    option("raw.key", OptionType::Enum(&["none", "column", "primary"]), Role::Source, "Whether `raw` has a column `key`, and whether it is the primary key").default("none"),
];

/// Validated options while they are read.
struct Read<'a> {
    options: &'a Options,
    problems: Vec<Problem>,
}

impl Read<'_> {
    fn word(&self, key: &str) -> String {
        self.options.text(key).unwrap_or_default().to_ascii_lowercase()
    }

    fn is(&self, key: &str) -> bool {
        self.word(key) == "true"
    }

    fn note(&mut self, key: &str, why: impl Into<String>) {
        self.problems.push((key.to_owned(), why.into()));
    }

    fn format(&self) -> MessageFormat {
        match self.word("value.format").as_str() {
            "csv" => MessageFormat::Csv,
            "raw" => MessageFormat::Raw,
            "canal-json" => MessageFormat::CanalJson,
            "debezium-json" => MessageFormat::DebeziumJson,
            "maxwell-json" => MessageFormat::MaxwellJson,
            "avro" => MessageFormat::Avro,
            "debezium-avro" => MessageFormat::DebeziumAvro,
            "inlong-csv" => MessageFormat::InlongCsv,
            "inlong-kv" => MessageFormat::InlongKv,
            _ => MessageFormat::Json,
        }
    }

    fn rows(&mut self, primary_key: Vec<String>, most: usize) -> RowsOptions {
        let csv = dialect(self.options, &mut self.problems);
        RowsOptions {
            unknown: match self.word("json.unknown-fields").as_str() {
                "ignore" => UnknownFields::Ignore,
                "evolve" => UnknownFields::Evolve,
                _ => UnknownFields::Refuse,
            },
            primary_key,
            max_message_bytes: most,
            csv,
            decimals: if self.word("json.decimal") == "number" {
                DecimalForm::Number
            } else {
                DecimalForm::String
            },
        }
    }

    fn raw(&self) -> (RawForm, RawKey) {
        let form = if self.word("raw.type") == "text" { RawForm::Text } else { RawForm::Bytes };
        let key = match self.word("raw.key").as_str() {
            "column" => RawKey::Column,
            "primary" => RawKey::Primary,
            _ => RawKey::Absent,
        };
        (form, key)
    }

    fn canal(&mut self) -> (CanalDecoderOptions, CanalEncoderOptions) {
        let zone = self.options.text("canal-json.time-zone").unwrap_or("UTC");
        let time_zone = Zone::parse(zone).unwrap_or_else(|why| {
            self.note("canal-json.time-zone", why);
            Zone::UTC
        });
        let enum_mode =
            if self.word("canal-json.enum") == "label" { EnumMode::Label } else { EnumMode::Index };
        let key = self.is("canal-json.key");
        let encoder = CanalEncoderOptions { enum_mode, time_zone, key, ..CanalEncoderOptions::default() };
        (CanalDecoderOptions { time_zone }, encoder)
    }

    fn debezium(&self) -> (DebeziumDecoderOptions, DebeziumEncoderOptions) {
        let key = |rest: &str| self.word(&format!("debezium-json.{rest}"));
        let decimal_mode = match key("decimal.handling.mode").as_str() {
            "string" => DecimalMode::String,
            "double" => DecimalMode::Double,
            _ => DecimalMode::Precise,
        };
        let bigint_unsigned = match key("bigint.unsigned.handling.mode").as_str() {
            "long" => BigintUnsignedMode::Long,
            _ => BigintUnsignedMode::Precise,
        };
        let binary_mode = match key("binary.handling.mode").as_str() {
            "base64" => BinaryMode::Base64,
            "base64-url-safe" => BinaryMode::Base64UrlSafe,
            "hex" => BinaryMode::Hex,
            _ => BinaryMode::Bytes,
        };
        let time_mode = match key("time.precision.mode").as_str() {
            "adaptive" => TimeMode::Adaptive,
            "connect" => TimeMode::Connect,
            "isostring" => TimeMode::IsoString,
            "microseconds" => TimeMode::Micros,
            "nanoseconds" => TimeMode::Nanos,
            _ => TimeMode::AdaptiveMicros,
        };
        let zero_dates =
            if key("zero-dates") == "null-or-epoch" { ZeroDates::NullOrEpoch } else { ZeroDates::Refuse };
        let unwrapped = self.is("debezium-json.unwrapped");
        let decoder = DebeziumDecoderOptions {
            decimal_mode,
            bigint_unsigned,
            binary_mode,
            time_mode,
            unwrapped,
            ..DebeziumDecoderOptions::default()
        };
        let encoder = DebeziumEncoderOptions {
            schema: self.is("debezium-json.include-schema.enabled"),
            decimal_mode,
            bigint_unsigned,
            binary_mode,
            time_mode,
            zero_dates,
            server_name: self.options.text("debezium-json.topic.prefix").unwrap_or("canalis").to_owned(),
            tombstones: self.is("debezium-json.tombstones.on.delete"),
            ..DebeziumEncoderOptions::default()
        };
        (decoder, encoder)
    }

    fn byte(&mut self, key: &str) -> Option<u8> {
        let text = self.options.text(key).filter(|text| !text.is_empty())?;
        parse_byte(text).map_err(|why| self.note(key, why.to_string())).ok()
    }

    fn inlong(&mut self, format: MessageFormat, charset: Option<Charset>, most: usize) -> InlongOptions {
        let body = if format == MessageFormat::InlongKv {
            InlongBody::KeyValue {
                entry_separator: self.byte("inlong.entry-separator").unwrap_or(b'&'),
                kv_separator: self.byte("inlong.kv-separator").unwrap_or(b'='),
            }
        } else {
            InlongBody::Csv { separator: self.byte("inlong.separator").unwrap_or(b'|') }
        };
        let unknown = match self.word("json.unknown-fields").as_str() {
            "ignore" => UnknownMembers::Ignore,
            _ => UnknownMembers::Refuse,
        };
        InlongOptions {
            escape: self.byte("inlong.escape"),
            quote: self.byte("inlong.quote"),
            line_separator: self.byte("inlong.line-separator"),
            null_literal: self.options.text("inlong.null-literal").map(|text| text.as_bytes().to_vec()),
            unknown,
            charset,
            max_message_bytes: most,
            ..InlongOptions::new(body)
        }
    }

    fn charset(&mut self) -> Option<Charset> {
        Charset::parse(self.options.text("charset")?).unwrap_or_else(|why| {
            self.note("charset", why);
            None
        })
    }

    fn maxwell(&self, most: usize) -> (MaxwellDecoderOptions, MaxwellEncoderOptions) {
        let unknown = match self.word("json.unknown-fields").as_str() {
            "ignore" => UnknownMembers::Ignore,
            _ => UnknownMembers::Refuse,
        };
        let key_format =
            if self.word("maxwell-json.key.format") == "array" { KeyFormat::Array } else { KeyFormat::Hash };
        let output_nulls = self.is("maxwell-json.output-nulls");
        let encoder = MaxwellEncoderOptions { key_format, output_nulls, ..MaxwellEncoderOptions::default() };
        (MaxwellDecoderOptions { unknown, max_message_bytes: most }, encoder)
    }
}

impl Formats {
    /// Reads validated options of this role.
    ///
    /// # Errors
    /// All problems that involve more than one option, or more than an option's type says.
    pub fn read(options: &Options, role: Role) -> Result<Self, Vec<Problem>> {
        let mut read = Read { options, problems: Vec::new() };
        let format = read.format();
        let table = options.text("table").and_then(|text| {
            let id = TableId::parse(text);
            if id.is_none() {
                read.note("table", format!("`{text}` is not a table id; write `table` or `schema.table`"));
            }
            id
        });
        let names = options.text("primary-keys").unwrap_or_default().split(',').map(str::trim);
        let primary_key: Vec<String> = names.filter(|n| !n.is_empty()).map(str::to_owned).collect();
        let mut declared: Vec<TableSchema> = Vec::new();
        if let Some(text) = options.text("schema").filter(|_| role != Role::Sink) {
            let one = table.clone().unwrap_or_else(|| TableId::bare("messages"));
            match tables::parse(text, &one, &primary_key) {
                Ok(tables) if tables.len() > 1 && format.is_of_one_table() => {
                    read.note(
                        "schema",
                        "messages of this format do not name their table, so only one can be declared",
                    );
                }
                Ok(tables) => declared = tables,
                Err(why) => read.note("schema", why),
            }
        } else if role != Role::Sink
            && matches!(format, MessageFormat::Csv | MessageFormat::InlongCsv | MessageFormat::InlongKv)
        {
            read.note(
                "schema",
                "messages of this format need `schema`, for example `id BIGINT NOT NULL, name STRING`",
            );
        } else if role != Role::Sink && format == MessageFormat::MaxwellJson {
            read.note("schema", "messages of Maxwell do not tell types; declare the tables, for example `shop.t (id INT, PRIMARY KEY (id))`");
        }
        let most =
            options.bytes("max-message-bytes").ok().and_then(|n| usize::try_from(n).ok()).unwrap_or(64 << 20);
        // Offsets inside one column of a batch have 31 bits.
        if !(1024..=512 << 20).contains(&most) {
            read.note("max-message-bytes", "must be between 1kb and 512mb");
        }
        let charset = read.charset();
        let (avro, more) = AvroSettings::read(options, role, format.avro().is_some(), &primary_key, most);
        read.problems.extend(more);
        let list = options.text("metadata.list").unwrap_or_default();
        let metadata = MetadataColumn::parse_list(list).unwrap_or_else(|why| {
            read.note("metadata.list", why);
            Vec::new()
        });
        let formats = Self {
            inlong: read.inlong(format, charset, most),
            charset,
            avro,
            metadata,
            format,
            table,
            declared: declared.into_iter().map(Arc::new).collect(),
            rows: read.rows(primary_key, most),
            raw: read.raw(),
            canal: read.canal(),
            debezium: read.debezium(),
            maxwell: read.maxwell(most),
        };
        if read.problems.is_empty() { Ok(formats) } else { Err(read.problems) }
    }
}

fn dialect(options: &Options, problems: &mut Vec<Problem>) -> CsvDialect {
    let plain = CsvDialect { header: false, ..CsvDialect::default() };
    let mut byte = |key: &str, default: u8| match options.text(key).map(parse_byte) {
        Some(Ok(byte)) => byte,
        Some(Err(why)) => {
            problems.push((key.to_owned(), why.to_string()));
            default
        }
        None => default,
    };
    let delimiter = byte("csv.delimiter", plain.delimiter);
    let quote = byte("csv.quote", plain.quote);
    let escape = options.text("csv.escape").filter(|t| !t.is_empty()).map(|_| byte("csv.escape", b'\\'));
    let null_literal = options.text("csv.null-literal").unwrap_or_default().as_bytes().to_vec();
    // A quote as its own escape is the usual doubling.
    let escape = escape.filter(|e| *e != quote);
    let dialect = CsvDialect { delimiter, quote, escape, null_literal, ..plain };
    if let Err(why) = dialect.validate() {
        problems.push(("csv.delimiter".into(), why.to_string()));
    }
    dialect
}
