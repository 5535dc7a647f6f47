//! Owns writing the changes of a file in every format that other tools read: `write_messages CHANGES ROWS DIRECTORY`. Both inputs have a
//! head of column names and cells with tabs between (`tests/golden/flink/README.md` says more); CHANGES become messages, one a line,
//! and ROWS become JSON lines and CSV. `write_messages --orders ROWS DIRECTORY` writes as many orders in each format.

// Examples may stop with a message.
#![allow(clippy::unwrap_used)]

use std::{
    env,
    fs::{self, File},
    io::{BufWriter, Write},
    path::Path,
    sync::Arc,
};

use canalis_batch::{BatchBuilder, ChangeBatch};
use canalis_formats::{
    ChangeColumn, RowEncoder, ValueDecoder,
    canal::{CanalEncoder, CanalEncoderOptions},
    csv::{CsvDialect, CsvEncoder},
    debezium::{DebeziumEncoder, DebeziumEncoderOptions, DecimalMode},
    json::{DecimalForm, JsonEncoder, JsonEncoderOptions},
    maxwell::{MaxwellEncoder, MaxwellEncoderOptions},
    message::{MessageEncoder, Messages},
    parse_columns,
};
use canalis_types::{RowKind, TableId, TableSchema};

/// The table of the changes.
const COLUMNS: &str = "id BIGINT NOT NULL, n INT, amount DECIMAL(20,4), name VARCHAR(100), d DATE, ts TIMESTAMP(3), \
                       ratio DOUBLE, ok BOOLEAN";
/// The table of the orders.
const ORDERS: &str = "id BIGINT NOT NULL, customer INT, status VARCHAR(20), amount DECIMAL(12,2), created TIMESTAMP(3), \
                      shipped DATE, weight DOUBLE, note VARCHAR(200)";

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["--orders", rows, directory] => write_orders(rows.parse().unwrap(), Path::new(directory)),
        [changes, rows, directory] => write_changes(changes, rows, Path::new(directory)),
        _ => panic!("usage: write_messages CHANGES ROWS DIRECTORY | write_messages --orders ROWS DIRECTORY"),
    }
}

/// Decimals as digits: Flink has no function for Debezium's Base64 of them.
fn debezium(schema: bool) -> Box<dyn MessageEncoder> {
    let decimal_mode = DecimalMode::String;
    let options = DebeziumEncoderOptions { schema, decimal_mode, ..DebeziumEncoderOptions::default() };
    Box::new(DebeziumEncoder::new(options))
}

fn canal() -> Box<dyn MessageEncoder> {
    Box::new(CanalEncoder::new(CanalEncoderOptions::default()))
}

fn csv(schema: &TableSchema) -> Box<dyn RowEncoder> {
    let dialect = CsvDialect { header: false, null_literal: b"\\N".to_vec(), ..CsvDialect::default() };
    Box::new(CsvEncoder::new(schema, &dialect, &ChangeColumn::Absent))
}

fn json(schema: &TableSchema, decimals: DecimalForm) -> Box<dyn RowEncoder> {
    Box::new(JsonEncoder::new(schema, &JsonEncoderOptions { decimals, ..JsonEncoderOptions::default() }))
}

fn write_changes(changes: &str, rows: &str, out: &Path) {
    let changes = read(changes, true);
    let rows = read(rows, false);
    let messages = [
        ("canal.json", canal()),
        ("debezium.json", debezium(false)),
        ("debezium-schema.json", debezium(true)),
        (
            "maxwell.json",
            Box::new(MaxwellEncoder::new(MaxwellEncoderOptions::default())) as Box<dyn MessageEncoder>,
        ),
    ];
    for (name, mut encoder) in messages {
        fs::write(out.join(name), lines(encoder.as_mut(), &changes)).unwrap();
    }
    let encoders = [
        ("rows.json", json(rows.schema(), DecimalForm::String)),
        ("rows-numbers.json", json(rows.schema(), DecimalForm::Number)),
        ("rows.csv", csv(rows.schema())),
    ];
    for (name, encoder) in encoders {
        fs::write(out.join(name), records(encoder.as_ref(), &rows)).unwrap();
    }
}

/// Writes the orders that `canalis-bench format-*` measures with.
fn write_orders(rows: u64, out: &Path) {
    let columns = parse_columns(ORDERS).unwrap();
    let schema = Arc::new(TableSchema::new(TableId::new("shop", "orders"), columns, vec!["id".into()]));
    let create = |format: &str| BufWriter::new(File::create(out.join(format!("orders.{format}"))).unwrap());
    let mut messages = [(create("canal-json"), canal()), (create("debezium-json"), debezium(false))];
    let mut encoders = [(create("json"), json(&schema, DecimalForm::String)), (create("csv"), csv(&schema))];
    for from in (0..rows).step_by(8192) {
        let batch = orders(&schema, from, rows.min(from + 8192));
        for (file, encoder) in &mut messages {
            file.write_all(&lines(encoder.as_mut(), &batch)).unwrap();
        }
        for (file, encoder) in &mut encoders {
            file.write_all(&records(encoder.as_ref(), &batch)).unwrap();
        }
    }
}

fn orders(schema: &Arc<TableSchema>, from: u64, to: u64) -> ChangeBatch {
    let mut builder = BatchBuilder::new(schema.clone(), 8192);
    for id in from..to {
        let (day, second) = (id % 28 + 1, id % 60);
        let cells = [
            id.to_string(),
            (id % 99_991).to_string(),
            ["new", "paid", "shipped"][usize::try_from(id % 3).unwrap()].to_owned(),
            format!("{}.{:02}", id % 100_000, id % 100),
            format!("2026-01-{day:02} 12:{second:02}:{second:02}.{:03}", id % 1000),
            format!("2026-02-{day:02}"),
            format!("{}.5", id % 1000),
            format!(
                "order {id} goes to the customer's second address, \"rear\" entrance – bitte klingeln {}",
                id % 77
            ),
        ];
        for (index, cell) in cells.iter().enumerate() {
            builder.column(index).append_text(cell.as_bytes()).unwrap();
        }
        builder.end_row(RowKind::Insert, 200);
    }
    builder.finish().unwrap().with_event_time(Some(1_790_000_000_000))
}

fn records(encoder: &dyn RowEncoder, batch: &ChangeBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    encoder.write_rows(batch, &mut (0..batch.num_rows()), &mut bytes).unwrap();
    bytes
}

/// Payloads of the messages, one a line; a file has no place for tombstones.
fn lines(encoder: &mut dyn MessageEncoder, batch: &ChangeBatch) -> Vec<u8> {
    let mut messages = Messages::default();
    encoder.encode(batch, &[], &mut messages).unwrap();
    let mut out = Vec::new();
    for value in messages.iter().filter_map(|message| message.value) {
        out.extend_from_slice(value);
        out.push(b'\n');
    }
    out
}

fn read(file: &str, with_kinds: bool) -> ChangeBatch {
    let columns = parse_columns(COLUMNS).unwrap();
    let schema = Arc::new(TableSchema::new(TableId::new("shop", "t"), columns, vec!["id".into()]));
    let decoders: Vec<ValueDecoder> = schema.columns.iter().map(ValueDecoder::new).collect();
    let text = fs::read_to_string(file).unwrap();
    let mut builder = BatchBuilder::new(schema.clone(), 16);
    for line in text.lines().skip(1) {
        let mut cells = line.split('\t');
        let kind = if with_kinds { kind(cells.next().unwrap()) } else { RowKind::Insert };
        for (index, decoder) in decoders.iter().enumerate() {
            match cells.next().unwrap() {
                "\\N" => builder.column(index).append_null(),
                cell => decoder.append(builder.column(index), unescape(cell).as_bytes()).unwrap(),
            }
        }
        builder.end_row(kind, line.len());
    }
    builder.finish().unwrap()
}

fn kind(symbol: &str) -> RowKind {
    let kinds = [RowKind::Insert, RowKind::UpdateBefore, RowKind::UpdateAfter, RowKind::Delete];
    *kinds.iter().find(|kind| kind.symbol() == symbol).unwrap()
}

fn unescape(cell: &str) -> String {
    let mut out = String::new();
    let mut characters = cell.chars();
    while let Some(character) = characters.next() {
        out.push(match (character, character == '\\') {
            (_, true) => match characters.next().unwrap() {
                't' => '\t',
                'n' => '\n',
                'r' => '\r',
                other => other,
            },
            (other, false) => other,
        });
    }
    out
}
