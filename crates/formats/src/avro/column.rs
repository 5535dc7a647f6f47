//! Owns what a schema says a column is: its type, and the form that its values have in messages.

use arrow_buffer::i256;
use canalis_types::{Column, LogicalType};

use super::schema::{Kind, Logical, Node, Schema, Unit};
use crate::{ValueDecoder, debezium};

/// How values look.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Form {
    Boolean,
    /// A number without fraction; of 32 bits when narrow.
    Whole {
        narrow: bool,
    },
    Float,
    Double,
    Text,
    /// The index of a symbol.
    Symbol(Vec<String>),
    Bytes,
    Fixed(usize),
    /// The unscaled number, big-endian, in as many bytes or with a length before it.
    Decimal {
        scale: u8,
        size: Option<usize>,
    },
    /// A record of scale and unscaled value.
    VariableDecimal,
    Days,
    Time(Unit),
    Timestamp(Unit),
    /// ISO 8601; local texts may end with a `Z` that says nothing.
    Iso {
        zoned: bool,
    },
    /// 16 bytes.
    Uuid,
    Year,
    /// Little-endian.
    Bits,
    /// A record with WKB and SRID.
    Geometry,
    /// Anything, as JSON.
    Document,
}

/// A column by its schema.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Derived {
    pub ty: LogicalType,
    pub nullable: bool,
    pub form: Form,
    /// Node of the values; of a union of several types the union itself.
    pub node: usize,
    /// Branches of a union, and which of them is null.
    pub union: Option<(Vec<usize>, Option<usize>)>,
}

impl Derived {
    /// # Errors
    /// When the schema says something that no column can be.
    pub(super) fn of(schema: &Schema, node: usize) -> Result<Self, String> {
        let Kind::Union(branches) = &schema.node(node).kind else {
            let (ty, form) = type_of(schema, node)?;
            return Ok(Self { ty, nullable: form_is_null(schema, node), form, node, union: None });
        };
        let is_null = |b: &usize| matches!(schema.node(*b).kind, Kind::Null);
        let null = branches.iter().position(is_null);
        let mut values = branches.iter().filter(|b| !is_null(b));
        let union = Some((branches.clone(), null));
        let (ty, form, node) = match (values.next(), values.next()) {
            (Some(only), None) => {
                let (ty, form) = type_of(schema, *only)?;
                (ty, form, *only)
            }
            _ => (LogicalType::Json, Form::Document, node),
        };
        Ok(Self { ty, nullable: null.is_some(), form, node, union })
    }
}

fn form_is_null(schema: &Schema, node: usize) -> bool {
    matches!(schema.node(node).kind, Kind::Null)
}

fn precision(unit: Unit) -> u8 {
    if unit == Unit::Millis { 3 } else { 6 }
}

fn type_of(schema: &Schema, index: usize) -> Result<(LogicalType, Form), String> {
    use LogicalType as L;
    let node = schema.node(index);
    if let Some(found) = semantic(schema, node)? {
        return Ok(found);
    }
    Ok(match node.logical {
        Logical::Decimal { precision, scale } => {
            let size = if let Kind::Fixed(size) = node.kind { Some(size) } else { None };
            (L::Decimal { precision: told_precision(node, precision), scale }, Form::Decimal { scale, size })
        }
        Logical::Date => (L::Date, Form::Days),
        Logical::Time(unit) => (L::Time { precision: precision(unit) }, Form::Time(unit)),
        Logical::Timestamp(unit) => (L::TimestampTz { precision: precision(unit) }, Form::Timestamp(unit)),
        Logical::LocalTimestamp(unit) => (L::Timestamp { precision: precision(unit) }, Form::Timestamp(unit)),
        Logical::Uuid if matches!(node.kind, Kind::Fixed(_)) => (L::Uuid, Form::Uuid),
        Logical::Uuid => (L::Uuid, Form::Text),
        Logical::Nothing => plain(node),
    })
}

/// Connect writes 64 where it does not know the precision, and the true one, where it knows it, beside.
fn told_precision(node: &Node, precision: u8) -> u8 {
    let told = node.parameter("connect.decimal.precision").and_then(|text| text.parse::<u8>().ok());
    told.filter(|told| (1..=76).contains(told)).unwrap_or(precision)
}

fn plain(node: &Node) -> (LogicalType, Form) {
    use LogicalType as L;
    match &node.kind {
        Kind::Boolean => (L::Boolean, Form::Boolean),
        Kind::Int => {
            let ty = match node.width.as_str() {
                "int8" => L::Int8,
                "int16" => L::Int16,
                _ => L::Int32,
            };
            (ty, Form::Whole { narrow: true })
        }
        Kind::Long => (L::Int64, Form::Whole { narrow: false }),
        Kind::Float => (L::Float32, Form::Float),
        Kind::Double => (L::Float64, Form::Double),
        Kind::Bytes => (L::Bytes, Form::Bytes),
        Kind::String => (L::Text, Form::Text),
        Kind::Enum(symbols) => (L::Enum { labels: symbols.clone() }, Form::Symbol(symbols.clone())),
        Kind::Fixed(size) => match u32::try_from(*size) {
            Ok(length) => (L::Binary { length }, Form::Fixed(*size)),
            Err(_) => (L::Bytes, Form::Fixed(*size)),
        },
        // A column of nulls: whatever comes later.
        Kind::Null | Kind::Array(_) | Kind::Map(_) | Kind::Union(_) | Kind::Record(_) => {
            (L::Json, Form::Document)
        }
    }
}

/// What a semantic name of Debezium or Kafka Connect says, where the Avro type is the one that it goes with.
fn semantic(schema: &Schema, node: &Node) -> Result<Option<(LogicalType, Form)>, String> {
    use LogicalType as L;
    let is_whole = matches!(node.kind, Kind::Int | Kind::Long);
    let is_text = matches!(node.kind, Kind::String);
    let is_bytes = matches!(node.kind, Kind::Bytes);
    let has = |names: [&str; 2]| {
        let Kind::Record(fields) = &node.kind else { return false };
        names.iter().all(|name| fields.iter().any(|f| f.name == *name))
    };
    let labels = || debezium::labels_of(node.parameter("allowed").unwrap_or_default());
    let name = node.semantic.strip_prefix("io.debezium.").unwrap_or(&node.semantic);
    let _ = schema;
    Ok(Some(match name {
        "time.Date" | "org.apache.kafka.connect.data.Date" if is_whole => (L::Date, Form::Days),
        "time.Time" | "org.apache.kafka.connect.data.Time" if is_whole => {
            (L::Time { precision: 3 }, Form::Time(Unit::Millis))
        }
        "time.MicroTime" if is_whole => (L::Time { precision: 6 }, Form::Time(Unit::Micros)),
        "time.NanoTime" if is_whole => (L::Time { precision: 6 }, Form::Time(Unit::Nanos)),
        // Kafka Connect has instants only; Debezium puts local date-times into them.
        "time.Timestamp" if is_whole => (L::Timestamp { precision: 3 }, Form::Timestamp(Unit::Millis)),
        "time.MicroTimestamp" if is_whole => (L::Timestamp { precision: 6 }, Form::Timestamp(Unit::Micros)),
        "time.NanoTimestamp" if is_whole => (L::Timestamp { precision: 6 }, Form::Timestamp(Unit::Nanos)),
        "time.IsoDate" if is_text => (L::Date, Form::Iso { zoned: false }),
        "time.IsoTime" if is_text => (L::Time { precision: 6 }, Form::Iso { zoned: false }),
        "time.IsoTimestamp" if is_text => (L::Timestamp { precision: 6 }, Form::Iso { zoned: false }),
        "time.ZonedTimestamp" if is_text => (L::TimestampTz { precision: 6 }, Form::Iso { zoned: true }),
        "time.Year" if is_whole => (L::Year, Form::Year),
        "data.Bits" if is_bytes => {
            let length = node.parameter("length").and_then(|text| text.parse::<u8>().ok());
            match length.filter(|length| (1..=64).contains(length)) {
                Some(length) => (L::Bit { length }, Form::Bits),
                None => return Ok(None),
            }
        }
        "data.Enum" if is_text => (L::Enum { labels: labels() }, Form::Text),
        "data.EnumSet" if is_text => (L::Set { labels: labels() }, Form::Text),
        "data.Json" if is_text => (L::Json, Form::Text),
        "data.Uuid" if is_text => (L::Uuid, Form::Text),
        "data.geometry.Geometry" | "data.geometry.Geography" | "data.geometry.Point"
            if has(["wkb", "srid"]) =>
        {
            (L::Geometry, Form::Geometry)
        }
        "data.VariableScaleDecimal" if has(["scale", "value"]) => (L::Text, Form::VariableDecimal),
        "org.apache.kafka.connect.data.Decimal" if is_bytes && node.logical == Logical::Nothing => {
            let scale = node.parameter("scale").and_then(|text| text.parse::<u8>().ok());
            let Some(scale) = scale.filter(|scale| *scale <= 76) else {
                return Err("its schema is a decimal without a scale of 0 to 76".to_owned());
            };
            let precision = told_precision(node, if scale <= 30 { 65 } else { 76 });
            if scale > precision {
                return Err("its schema is a decimal with more fraction digits than digits".to_owned());
            }
            (L::Decimal { precision, scale }, Form::Decimal { scale, size: None })
        }
        _ => return Ok(None),
    }))
}

/// How to check values of a column.
#[derive(Debug)]
pub(super) struct ColumnPlan {
    pub name: String,
    pub nullable: bool,
    pub is_key: bool,
    pub value: ValueDecoder,
    /// Microseconds that times are multiples of.
    pub unit: i64,
    /// Least and most bytes.
    pub size: (usize, usize),
    /// Bits of a bit field.
    pub bits: u8,
    /// Ten to the power of a decimal's digits.
    pub bound: i256,
}

impl ColumnPlan {
    pub(super) fn new(column: &Column, is_key: bool) -> Self {
        use LogicalType as L;
        let precision = match column.ty {
            L::Time { precision } | L::Timestamp { precision } | L::TimestampTz { precision } => precision,
            _ => 6,
        };
        let bytes = |length: u32| usize::try_from(length).unwrap_or(usize::MAX);
        let digits = if let L::Decimal { precision, .. } = column.ty { precision } else { 20 };
        Self {
            name: column.name.clone(),
            nullable: column.nullable,
            is_key,
            value: ValueDecoder::new(column),
            unit: 10_i64.pow(u32::from(6 - precision.min(6))),
            size: match column.ty {
                L::Binary { length } => (bytes(length), bytes(length)),
                L::Varbinary { length } => (0, bytes(length)),
                _ => (0, usize::MAX),
            },
            bits: if let L::Bit { length } = column.ty { length } else { 64 },
            bound: power_of_ten(digits),
        }
    }
}

/// Ten to a power of at most 76.
pub(super) fn power_of_ten(exponent: u8) -> i256 {
    (0..exponent).fold(i256::ONE, |n, _| n.wrapping_mul(i256::from_i128(10)))
}

/// Whether a column takes every value of a type that a schema shows, so that its structure need not change.
pub(super) fn takes(known: &LogicalType, shown: &LogicalType) -> bool {
    use LogicalType as L;
    let bits = |ty: &L| match ty {
        L::Int8 => Some(8),
        L::Int16 => Some(16),
        L::Int32 => Some(32),
        L::Int64 => Some(64),
        _ => None,
    };
    match (known, shown) {
        _ if known == shown => true,
        (L::Decimal { precision: p, scale: s }, L::Decimal { precision, scale }) => {
            s >= scale && p - s >= precision - scale
        }
        (L::Float64, L::Float32 | L::Int8 | L::Int16 | L::Int32) => true,
        (L::Time { precision: p }, L::Time { precision })
        | (L::Timestamp { precision: p }, L::Timestamp { precision })
        | (L::TimestampTz { precision: p }, L::TimestampTz { precision }) => p >= precision,
        (L::Text, L::Char { .. } | L::Varchar { .. } | L::Enum { .. } | L::Set { .. } | L::Uuid) => true,
        (L::Enum { labels: known }, L::Enum { labels }) | (L::Set { labels: known }, L::Set { labels }) => {
            labels.iter().all(|label| known.contains(label))
        }
        (L::Bytes, L::Binary { .. } | L::Varbinary { .. }) => true,
        _ => match (bits(known), bits(shown)) {
            (Some(known), Some(shown)) => known >= shown,
            _ => false,
        },
    }
}
