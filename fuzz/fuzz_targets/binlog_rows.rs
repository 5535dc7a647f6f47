//! Rows of the binlog: one byte chooses what the event does; then the length (2 bytes) and the body of a table map; then,
//! for every column of it, a byte that chooses among the column's possible types; the rest are the rows.
#![no_main]

use std::sync::Arc;

use canalis_batch::BatchBuilder;
use canalis_mysql::{
    binlog::{
        cursor::Cursor,
        rows::{RowsKind, TableDecoder, write_json},
        table_map::{self, WireType, column_type as t},
    },
    charset::Charset,
};
use canalis_types::{Column, LogicalType, NativeType, TableId, TableSchema};
use libfuzzer_sys::fuzz_target;

/// Columns beyond which nothing new can be found.
const MOST_COLUMNS: usize = 40;

fuzz_target!(|data: &[u8]| {
    let _ = write_json(&mut String::new(), data);
    let mut input = Cursor::new(data);
    let Ok(kind) = input.u8() else { return };
    let kind = [RowsKind::Insert, RowsKind::Update, RowsKind::Delete][usize::from(kind % 3)];
    let Ok(body) = input.prefixed(2) else { return };
    let Ok(map) = table_map::parse(body, 6) else { return };
    if map.types.len() > MOST_COLUMNS {
        return;
    }
    let mut columns = Vec::new();
    for (index, wire) in map.types.iter().enumerate() {
        let name = map.names.as_ref().map_or_else(|| format!("c{index}"), |names| names[index].to_owned());
        columns.push(column(name, *wire, input.u8().unwrap_or(0)));
    }
    let schema = Arc::new(TableSchema::new(TableId::new(map.database, map.table), columns, Vec::new()));
    let charsets = &mut |name: &str| Ok(Charset::known(name).unwrap_or(Charset::UTF8));
    let Ok(mut decoder) = TableDecoder::new(schema.clone(), &map, charsets) else { return };
    assert!(decoder.fits(&schema, &map));
    let mut out = BatchBuilder::new(schema, 1);
    while !input.is_empty() && out.len() < 1000 {
        let before = input.rest().len();
        if decoder.decode_row(kind, &mut input, &mut out).is_err() {
            return;
        }
        assert!(map.types.is_empty() || input.rest().len() < before, "a row takes no bytes");
        if map.types.is_empty() {
            return;
        }
    }
    let batch = out.finish().expect("whole rows make a batch");
    for row in 0..batch.num_rows() {
        canalis_batch::row_to_json(batch.rows(), batch.schema(), row);
    }
});

/// A column whose values the log could hold as `wire`.
fn column(name: String, wire: WireType, choice: u8) -> Column {
    use LogicalType as L;
    let first = choice & 1 == 0;
    let precision = u8::try_from(wire.meta).unwrap_or(u8::MAX);
    let labels = || vec!["a".to_owned(), String::new(), "é".to_owned()];
    let ty = match wire.number {
        t::TINY if choice % 3 == 2 => L::Boolean,
        t::TINY => {
            if first {
                L::Int8
            } else {
                L::UInt8
            }
        }
        t::SHORT => {
            if first {
                L::Int16
            } else {
                L::UInt16
            }
        }
        t::INT24 | t::LONG => {
            if first {
                L::Int32
            } else {
                L::UInt32
            }
        }
        t::LONGLONG => {
            if first {
                L::Int64
            } else {
                L::UInt64
            }
        }
        t::FLOAT => L::Float32,
        t::DOUBLE => L::Float64,
        t::NEWDECIMAL => {
            let [precision, scale] = wire.meta.to_be_bytes();
            L::Decimal { precision: precision.clamp(1, 76), scale: scale.min(76) }
        }
        t::YEAR => L::Year,
        t::DATE | t::NEWDATE => L::Date,
        t::DATETIME2 => L::Timestamp { precision },
        t::TIMESTAMP2 => L::TimestampTz { precision },
        t::TIME2 => L::Time { precision },
        t::DATETIME => L::Timestamp { precision: choice % 7 },
        t::TIMESTAMP => L::TimestampTz { precision: choice % 7 },
        t::TIME => L::Time { precision: choice % 7 },
        t::BIT => L::Bit { length: 64 },
        t::ENUM => L::Enum { labels: labels() },
        t::SET => L::Set { labels: labels() },
        t::JSON => L::Json,
        t::STRING if !first => L::Binary { length: u32::from(choice) },
        _ if first => L::Text,
        _ => L::Bytes,
    };
    let mut column = Column::new(name, ty, true);
    if column.ty.is_text() {
        let (sql, charset) = match choice / 2 % 8 {
            0 => ("text", Some("utf8mb4")),
            1 => ("text", Some("utf16")),
            2 => ("text", Some("gbk")),
            3 => ("text", Some("sjis")),
            4 => ("uuid", None),
            5 => ("inet6", None),
            6 => ("inet4", None),
            _ => ("text", Some("latin1")),
        };
        column.native = Some(NativeType {
            dialect: "mysql".into(),
            sql: sql.into(),
            charset: charset.map(Into::into),
            collation: None,
            auto_increment: false,
            generated: None,
        });
    }
    column
}
