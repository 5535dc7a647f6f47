//! Owns the schemas that stand in messages: of rows, of the envelope, of keys.

use canalis_types::{Column, LogicalType, TableId};

use super::{
    BinaryMode, Connector, DebeziumEncoderOptions, DecimalMode, TimeMode,
    types::{Unit, time_unit, timestamp_unit},
    write_cell::Out,
};
use crate::json::string::write_string;

/// Appends the schema of the envelope of a table's rows.
pub(super) fn write_envelope(
    out: &mut Vec<u8>,
    id: &TableId,
    columns: &[Column],
    options: &DebeziumEncoderOptions,
) {
    let prefix = prefix(id, options);
    out.extend_from_slice(br#"{"type":"struct","fields":["#);
    for side in ["before", "after"] {
        out.extend_from_slice(br#"{"type":"struct","fields":["#);
        write_fields(out, columns.iter(), options);
        out.extend_from_slice(br#"],"optional":true,"name":"#);
        write_string(out, format!("{prefix}.Value").as_bytes());
        out.extend_from_slice(format!(r#","field":"{side}"}},"#).as_bytes());
    }
    let connector = match options.connector {
        Connector::Mysql => "mysql",
        Connector::Mariadb => "mariadb",
    };
    out.extend_from_slice(SOURCE.replace("CONNECTOR", connector).as_bytes());
    out.extend_from_slice(TAIL.as_bytes());
    out.extend_from_slice(br#"],"optional":false,"name":"#);
    write_string(out, format!("{prefix}.Envelope").as_bytes());
    out.extend_from_slice(br#","version":2}"#);
}

/// Appends the schema of a table's key.
pub(super) fn write_key<'a>(
    out: &mut Vec<u8>,
    id: &TableId,
    columns: impl Iterator<Item = &'a Column>,
    options: &DebeziumEncoderOptions,
) {
    out.extend_from_slice(br#"{"type":"struct","fields":["#);
    write_fields(out, columns, options);
    out.extend_from_slice(br#"],"optional":false,"name":"#);
    write_string(out, format!("{}.Key", prefix(id, options)).as_bytes());
    out.push(b'}');
}

const SOURCE: &str = concat!(
    r#"{"type":"struct","fields":[{"type":"string","optional":false,"field":"version"},"#,
    r#"{"type":"string","optional":false,"field":"connector"},{"type":"string","optional":false,"field":"name"},"#,
    r#"{"type":"int64","optional":false,"field":"ts_ms"},"#,
    r#"{"type":"string","optional":true,"name":"io.debezium.data.Enum","version":1,"parameters":{"allowed":"#,
    r#""true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"},"default":"false","#,
    r#""field":"snapshot"},{"type":"string","optional":false,"field":"db"},"#,
    r#"{"type":"string","optional":true,"field":"sequence"},{"type":"int64","optional":true,"field":"ts_us"},"#,
    r#"{"type":"int64","optional":true,"field":"ts_ns"},{"type":"string","optional":true,"field":"table"},"#,
    r#"{"type":"int64","optional":false,"field":"server_id"},{"type":"string","optional":true,"field":"gtid"},"#,
    r#"{"type":"string","optional":false,"field":"file"},{"type":"int64","optional":false,"field":"pos"},"#,
    r#"{"type":"int32","optional":false,"field":"row"},{"type":"int64","optional":true,"field":"thread"},"#,
    r#"{"type":"string","optional":true,"field":"query"}],"optional":false,"#,
    r#""name":"io.debezium.connector.CONNECTOR.Source","version":1,"field":"source"},"#,
);

const TAIL: &str = concat!(
    r#"{"type":"struct","fields":[{"type":"string","optional":false,"field":"id"},"#,
    r#"{"type":"int64","optional":false,"field":"total_order"},"#,
    r#"{"type":"int64","optional":false,"field":"data_collection_order"}],"optional":true,"#,
    r#""name":"event.block","version":1,"field":"transaction"},{"type":"string","optional":false,"field":"op"},"#,
    r#"{"type":"int64","optional":true,"field":"ts_ms"},{"type":"int64","optional":true,"field":"ts_us"},"#,
    r#"{"type":"int64","optional":true,"field":"ts_ns"}"#,
);

fn prefix(id: &TableId, options: &DebeziumEncoderOptions) -> String {
    format!("{}.{id}", options.server_name)
}

fn write_fields<'a>(
    out: &mut Vec<u8>,
    columns: impl Iterator<Item = &'a Column>,
    options: &DebeziumEncoderOptions,
) {
    for (index, column) in columns.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let ty = Type::of(column, options);
        out.extend_from_slice(format!(r#"{{"type":"{}","#, ty.literal).as_bytes());
        if !ty.fields.is_empty() {
            out.extend_from_slice(format!(r#""fields":[{}],"#, ty.fields).as_bytes());
        }
        out.extend_from_slice(format!(r#""optional":{}"#, column.nullable).as_bytes());
        if !ty.semantic.is_empty() {
            out.extend_from_slice(format!(r#","name":"{}","version":1"#, ty.semantic).as_bytes());
        }
        for (at, (name, value)) in ty.parameters.iter().enumerate() {
            out.extend_from_slice(if at == 0 { br#","parameters":{"# } else { b"," });
            write_string(out, name.as_bytes());
            out.push(b':');
            write_string(out, value.as_bytes());
        }
        if !ty.parameters.is_empty() {
            out.push(b'}');
        }
        out.extend_from_slice(br#","field":"#);
        write_string(out, column.name.as_bytes());
        out.push(b'}');
    }
}

/// Type of a field in a schema.
struct Type {
    literal: &'static str,
    semantic: &'static str,
    parameters: Vec<(&'static str, String)>,
    fields: &'static str,
}

fn bare(literal: &'static str) -> Type {
    named(literal, "")
}

fn named(literal: &'static str, semantic: &'static str) -> Type {
    Type { literal, semantic, parameters: Vec::new(), fields: "" }
}

const GEOMETRY: &str =
    r#"{"type":"bytes","optional":false,"field":"wkb"},{"type":"int32","optional":true,"field":"srid"}"#;
const POINT: &str = concat!(
    r#"{"type":"double","optional":false,"field":"x"},{"type":"double","optional":false,"field":"y"},"#,
    r#"{"type":"bytes","optional":true,"field":"wkb"},{"type":"int32","optional":true,"field":"srid"}"#
);

impl Type {
    fn of(column: &Column, options: &DebeziumEncoderOptions) -> Self {
        use LogicalType as L;
        let form = Out::of(column, options);
        match &column.ty {
            L::Boolean | L::Bit { length: 1 } => bare("boolean"),
            L::Int8 | L::UInt8 | L::Int16 => bare("int16"),
            L::UInt16 | L::Int32 => bare("int32"),
            L::UInt32 if is_medium(column) => bare("int32"),
            L::UInt32 | L::Int64 => bare("int64"),
            L::UInt64 if form == Out::Wrapped => bare("int64"),
            L::UInt64 => decimal(20, 0),
            L::Float32 => bare("float"),
            L::Float64 => bare("double"),
            L::Decimal { precision, scale } => match options.decimal_mode {
                DecimalMode::Precise => decimal(*precision, *scale),
                DecimalMode::String => bare("string"),
                DecimalMode::Double => bare("double"),
            },
            L::Date | L::Time { .. } | L::Timestamp { .. } => temporal(&column.ty, options.time_mode),
            L::TimestampTz { .. } => named("string", "io.debezium.time.ZonedTimestamp"),
            L::Year => named("int32", "io.debezium.time.Year"),
            L::Char { .. } | L::Varchar { .. } | L::Text => bare("string"),
            L::Binary { .. } | L::Varbinary { .. } | L::Bytes => {
                bare(if options.binary_mode == BinaryMode::Bytes { "bytes" } else { "string" })
            }
            L::Bit { length } => Self {
                parameters: vec![("length", length.to_string())],
                ..named("bytes", "io.debezium.data.Bits")
            },
            L::Json => named("string", "io.debezium.data.Json"),
            L::Enum { labels } => Self {
                parameters: vec![("allowed", allowed(labels))],
                ..named("string", "io.debezium.data.Enum")
            },
            L::Set { labels } => Self {
                parameters: vec![("allowed", allowed(labels))],
                ..named("string", "io.debezium.data.EnumSet")
            },
            L::Uuid => named("string", "io.debezium.data.Uuid"),
            L::Geometry if form == Out::Point => {
                Self { fields: POINT, ..named("struct", "io.debezium.data.geometry.Point") }
            }
            L::Geometry => Self { fields: GEOMETRY, ..named("struct", "io.debezium.data.geometry.Geometry") },
        }
    }
}

/// MEDIUMINT UNSIGNED fits 32 bits with a sign.
fn is_medium(column: &Column) -> bool {
    let native = column.native.as_ref().filter(|native| native.dialect == "mysql");
    native.is_some_and(|native| native.sql.to_ascii_lowercase().starts_with("mediumint"))
}

fn allowed(labels: &[String]) -> String {
    labels.iter().map(|label| label.replace(',', "\\,")).collect::<Vec<_>>().join(",")
}

fn decimal(precision: u8, scale: u8) -> Type {
    Type {
        parameters: vec![("scale", scale.to_string()), ("connect.decimal.precision", precision.to_string())],
        ..named("bytes", "org.apache.kafka.connect.data.Decimal")
    }
}

fn temporal(ty: &LogicalType, mode: TimeMode) -> Type {
    use LogicalType as L;
    match (ty, mode) {
        (L::Date, TimeMode::Connect) => named("int32", "org.apache.kafka.connect.data.Date"),
        (L::Date, TimeMode::IsoString) => named("string", "io.debezium.time.IsoDate"),
        (L::Time { .. }, TimeMode::Connect) => named("int32", "org.apache.kafka.connect.data.Time"),
        (L::Time { .. }, TimeMode::IsoString) => named("string", "io.debezium.time.IsoTime"),
        (L::Time { precision }, _) => match time_unit(mode, *precision) {
            Unit::Millis => named("int32", "io.debezium.time.Time"),
            Unit::Micros => named("int64", "io.debezium.time.MicroTime"),
            Unit::Nanos => named("int64", "io.debezium.time.NanoTime"),
        },
        (L::Timestamp { .. }, TimeMode::Connect) => named("int64", "org.apache.kafka.connect.data.Timestamp"),
        (L::Timestamp { .. }, TimeMode::IsoString) => named("string", "io.debezium.time.IsoTimestamp"),
        (L::Timestamp { precision }, _) => match timestamp_unit(mode, *precision) {
            Unit::Millis => named("int64", "io.debezium.time.Timestamp"),
            Unit::Micros => named("int64", "io.debezium.time.MicroTimestamp"),
            Unit::Nanos => named("int64", "io.debezium.time.NanoTimestamp"),
        },
        _ => named("int32", "io.debezium.time.Date"),
    }
}
