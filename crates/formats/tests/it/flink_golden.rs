//! Owns reading what Apache Flink wrote: the files of `golden/flink`, whose README tells how they were made. The rows that they must
//! hold are those of the hand-written `changes.tsv` and `rows.tsv`, which were Flink's input.

use std::sync::Arc;

use canalis_batch::{BatchBuilder, ChangeBatch};
use canalis_formats::{
    ValueDecoder,
    canal::{CanalDecoder, CanalDecoderOptions},
    csv::CsvDialect,
    debezium::{DebeziumDecoder, DebeziumDecoderOptions},
    maxwell::{MaxwellDecoder, MaxwellDecoderOptions},
    message::MessageDecoder,
    parse_columns,
};
use canalis_types::{RowKind, TableId, TableSchema};

use crate::{
    message_support::{decode_values, show},
    support::{cells, read_csv, read_json},
};

const COLUMNS: &str = "id BIGINT NOT NULL, n INT, amount DECIMAL(20,4), name VARCHAR(100), d DATE, ts TIMESTAMP(3), \
                       ratio DOUBLE, ok BOOLEAN";
const CHANGES: &str = include_str!("../golden/flink/changes.tsv");
const ROWS: &str = include_str!("../golden/flink/rows.tsv");

fn table(name: &str) -> Arc<TableSchema> {
    let columns = parse_columns(COLUMNS).unwrap();
    Arc::new(TableSchema::new(TableId::new("shop", name), columns, vec!["id".into()]))
}

/// The rows of a hand-written file. Flink has only inserts and deletes in these formats: −U is written as −D, +U as +I.
fn written(text: &str, with_kinds: bool) -> ChangeBatch {
    let schema = table("t");
    let mut builder = BatchBuilder::new(schema.clone(), 16);
    for line in text.lines().skip(1) {
        let mut parts = line.split('\t');
        let kind = match with_kinds.then(|| parts.next().unwrap()) {
            Some("-U" | "-D") => RowKind::Delete,
            _ => RowKind::Insert,
        };
        for (index, column) in schema.columns.iter().enumerate() {
            match parts.next().unwrap() {
                "\\N" => builder.column(index).append_null(),
                cell => {
                    let text = cell.replace("\\\\", "\u{0}").replace("\\n", "\n").replace("\\t", "\t");
                    let text = text.replace('\u{0}', "\\");
                    ValueDecoder::new(column).append(builder.column(index), text.as_bytes()).unwrap();
                }
            }
        }
        builder.end_row(kind, 0);
    }
    builder.finish().unwrap()
}

/// Decoders that know these tables.
fn decoders(tables: &[Arc<TableSchema>]) -> [Box<dyn MessageDecoder>; 3] {
    [
        Box::new(CanalDecoder::new(CanalDecoderOptions::default(), tables.to_vec())),
        Box::new(MaxwellDecoder::new(MaxwellDecoderOptions::default(), tables.to_vec())),
        Box::new(DebeziumDecoder::new(DebeziumDecoderOptions::default(), tables.to_vec())),
    ]
}

const CANAL: &str = include_str!("../golden/flink/canal.txt");
const MAXWELL: &str = include_str!("../golden/flink/maxwell.txt");
const DEBEZIUM: &str = include_str!("../golden/flink/debezium.txt");
const DEBEZIUM_ISO: &str = include_str!("../golden/flink/debezium-iso.txt");

fn read_exactly(decoder: &mut dyn MessageDecoder, file: &str) {
    let lines: Vec<&str> = file.lines().collect();
    let outcome = decode_values(decoder, &lines);
    assert_eq!(outcome.undecodable, Vec::new());
    let expected = show(&written(CHANGES, true));
    assert_eq!(expected.len(), 16);
    assert_eq!(outcome.rows, expected);
}

#[test]
fn changes_that_flink_wrote_are_read_exactly() {
    let [mut canal, mut maxwell, mut debezium] = decoders(&[table("t")]);
    read_exactly(canal.as_mut(), CANAL);
    read_exactly(maxwell.as_mut(), MAXWELL);
    read_exactly(debezium.as_mut(), DEBEZIUM);
    read_exactly(debezium.as_mut(), DEBEZIUM_ISO);
}

#[test]
fn messages_without_a_table_are_refused_where_it_could_be_either_of_two() {
    let tables = [table("t"), table("u")];
    for (mut decoder, file) in decoders(&tables).into_iter().zip([CANAL, MAXWELL, DEBEZIUM]) {
        let lines: Vec<&str> = file.lines().take(1).collect();
        // The topic is `t`, and that is no table either: these are `shop.t` and `shop.u`.
        let outcome = decode_values(decoder.as_mut(), &lines);
        assert_eq!(outcome.rows, Vec::<String>::new());
        assert_eq!(outcome.undecodable.len(), 1);
    }
}

#[test]
fn json_lines_that_flink_wrote_are_read_exactly() {
    let read = read_json(COLUMNS, include_bytes!("../golden/flink/json.txt"));
    assert_eq!(read.reasons(), Vec::<&str>::new());
    assert_eq!(read.rows, cells(&written(ROWS, false)));
}

#[test]
fn csv_that_flink_wrote_is_read_exactly() {
    let dialect = CsvDialect { header: false, null_literal: b"\\N".to_vec(), ..CsvDialect::default() };
    let read = read_csv(COLUMNS, &dialect, include_bytes!("../golden/flink/csv.txt"));
    assert_eq!(read.reasons(), Vec::<&str>::new());
    assert_eq!(read.rows, cells(&written(ROWS, false)));
}
