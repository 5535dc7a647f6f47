//! Owns values of every logical type, made from arbitrary entropy.

use std::sync::Arc;

use arrow_buffer::i256;
use canalis_batch::{BatchBuilder, ChangeBatch, ColumnBuilder};
use canalis_types::{Column, LogicalType, RowKind, TableId, TableSchema, temporal};

/// What a cell is made from.
pub type Seed = (u8, u64, u64, String);

pub fn types() -> Vec<LogicalType> {
    use LogicalType::*;
    let labels = || vec!["one".to_owned(), "two words".to_owned(), "q\"uote".to_owned()];
    vec![
        Boolean,
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Float32,
        Float64,
        Decimal { precision: 10, scale: 2 },
        Decimal { precision: 38, scale: 0 },
        Decimal { precision: 38, scale: 38 },
        Decimal { precision: 65, scale: 30 },
        Date,
        Time { precision: 0 },
        Time { precision: 6 },
        Timestamp { precision: 0 },
        Timestamp { precision: 3 },
        Timestamp { precision: 6 },
        TimestampTz { precision: 0 },
        TimestampTz { precision: 6 },
        Year,
        Char { length: 5 },
        Varchar { length: 20 },
        Text,
        Binary { length: 4 },
        Varbinary { length: 16 },
        Bytes,
        Bit { length: 1 },
        Bit { length: 64 },
        Json,
        Enum { labels: labels() },
        Set { labels: labels() },
        Geometry,
        Uuid,
    ]
}

pub fn schema() -> Arc<TableSchema> {
    let column = |(at, ty): (usize, LogicalType)| Column::new(format!("c {at}, \"{ty}\""), ty, true);
    let columns = types().into_iter().enumerate().map(column).collect();
    Arc::new(TableSchema::new(TableId::new("d", "t"), columns, Vec::new()))
}

pub fn batch(rows: &[Vec<Seed>]) -> ChangeBatch {
    let schema = schema();
    let mut builder = BatchBuilder::new(schema.clone(), rows.len());
    for row in rows {
        for (index, (column, seed)) in schema.columns.iter().zip(row).enumerate() {
            append(builder.column(index), &column.ty, seed);
        }
        builder.end_row(RowKind::Insert, 0);
    }
    builder.finish().unwrap()
}

fn append(builder: &mut ColumnBuilder, ty: &LogicalType, (form, a, b, text): &Seed) {
    use LogicalType as L;
    if *form < 40 {
        return builder.append_null();
    }
    let (a, b) = (*a, *b);
    let wide = (u128::from(a) << 64 | u128::from(b)).cast_signed();
    let prefix = |characters: u32| text.chars().take(characters as usize).collect::<String>();
    match (builder, ty) {
        (ColumnBuilder::Boolean(c), _) => c.append_value(a & 1 == 1),
        (ColumnBuilder::Int8(c), _) => c.append_value(a.to_le_bytes()[0].cast_signed()),
        (ColumnBuilder::Int16(c), _) => c.append_value((a as u16).cast_signed()),
        (ColumnBuilder::Int32(c), _) => c.append_value((a as u32).cast_signed()),
        (ColumnBuilder::Int64(c), _) => c.append_value(a.cast_signed()),
        (ColumnBuilder::UInt8(c), _) => c.append_value(a as u8),
        (ColumnBuilder::UInt16(c), L::Year) => {
            c.append_value(if a.is_multiple_of(9) { 0 } else { 1901 + (a % 255) as u16 });
        }
        (ColumnBuilder::UInt16(c), _) => c.append_value(a as u16),
        (ColumnBuilder::UInt32(c), _) => c.append_value(a as u32),
        (ColumnBuilder::UInt64(c), L::Bit { length }) => c.append_value(a >> (64 - length)),
        (ColumnBuilder::UInt64(c), _) => c.append_value(a),
        (ColumnBuilder::Float32(c), _) => c.append_value(f32::from_bits(a as u32)),
        (ColumnBuilder::Float64(c), _) => c.append_value(f64::from_bits(a)),
        (ColumnBuilder::Decimal128(c, _), L::Decimal { precision, .. }) => {
            // Short ones too.
            let limit = 10_i128.pow(u32::from(*precision).min(u32::from(*form) / 6));
            c.append_value(wide % limit);
        }
        (ColumnBuilder::Decimal256(c, _), _) => {
            let limit = i256::from_i128(10_i128.pow(27));
            c.append_value(
                i256::from_i128(wide).wrapping_rem(i256::from_i128(10_i128.pow(38))).wrapping_mul(limit),
            );
        }
        (ColumnBuilder::Date(c), _) => c.append_value(date(*form, a)),
        (ColumnBuilder::Duration(c), L::Time { precision }) => {
            let micros = (a % 7_200_000_000_000_000) as i64 - 3_600_000_000_000_000;
            c.append_value(micros - micros % unit(*precision));
        }
        (ColumnBuilder::Timestamp(c), L::Timestamp { precision } | L::TimestampTz { precision }) => {
            let of_day = (b % temporal::MICROS_PER_DAY as u64) as i64;
            let of_day = of_day - of_day % unit(*precision);
            let fields = temporal::DateTimeFields {
                date: temporal::DateFields::decode(date(*form, a)),
                hour: (of_day / 3_600_000_000) as u8,
                minute: (of_day / 60_000_000 % 60) as u8,
                second: (of_day / 1_000_000 % 60) as u8,
                micro: (of_day % 1_000_000) as u32,
            };
            c.append_value(fields.encode());
        }
        (ColumnBuilder::Utf8(c), ty) => c.append_value(match ty {
            L::Char { length } | L::Varchar { length } => prefix(*length),
            L::Json => json(a, text),
            L::Enum { labels } => labels.get((a % 4) as usize).cloned().unwrap_or_default(),
            L::Set { labels } => {
                let chosen = labels.iter().enumerate().filter(|(at, _)| a >> at & 1 == 1);
                chosen.map(|(_, l)| l.as_str()).collect::<Vec<_>>().join(",")
            }
            L::Uuid => {
                let hex = format!("{a:016x}{b:016x}");
                format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
            }
            _ => text.clone(),
        }),
        (ColumnBuilder::Binary(c), ty) => c.append_value(match ty {
            L::Binary { .. } => a.to_le_bytes()[..4].to_vec(),
            L::Varbinary { length } => text.bytes().take(*length as usize).collect(),
            _ => [text.as_bytes(), &a.to_le_bytes()[..(b % 9) as usize]].concat(),
        }),
        (builder, ty) => panic!("{ty} is held in {builder:?}"),
    }
}

fn unit(precision: u8) -> i64 {
    10_i64.pow(6 - u32::from(precision))
}

/// Calendar dates of four-digit and longer years, and MySQL's impossible ones.
fn date(form: u8, a: u64) -> i32 {
    let fields = |year, month, day| temporal::DateFields { year, month, day }.encode();
    match form {
        40..80 => fields((a % 10_000) as i32, (a >> 20 & 15) as u8 % 13, (a >> 30 & 31) as u8),
        80..100 => fields(
            ((a % 399_999) as i32 - 199_999) | 1,
            1 + (a >> 20 & 15) as u8 % 12,
            1 + (a >> 30) as u8 % 28,
        ),
        _ => fields(1 + (a % 9_999) as i32, 1 + (a >> 20 & 15) as u8 % 12, 1 + (a >> 30) as u8 % 28),
    }
}

fn json(a: u64, text: &str) -> String {
    let string = serde_json::Value::from(text).to_string();
    match a % 7 {
        0 => "null".into(),
        1 => string,
        2 => format!("{{\"a\": [{a}, {string}], \"b\":{{}}}}"),
        3 => format!("[{string},\n1e400]"),
        4 => format!(" {{{string}:false}} "),
        5 => a.to_string(),
        _ => format!("[{string}]"),
    }
}
