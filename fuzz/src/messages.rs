//! Owns driving decoders of messages, and the demand that what was read can be written and reads back as the same.

use std::sync::Arc;

use canalis_batch::{ChangeBatch, cell_to_text};
use canalis_formats::message::{Message, MessageDecoder, MessageEncoder, Messages, Step};
use canalis_types::{
    Column, NativeType, RowKind, TableId, TableSchema,
    mysql_type::{TinyInt1, TypeText},
};

/// Between messages of an input.
const NEXT: u8 = 0x1e;
/// Between key and payload of a message. A message of nothing but a key is a tombstone.
const VALUE: u8 = 0x1f;

/// Keys and payloads out of one input.
pub fn split(input: &[u8]) -> Vec<Pair> {
    let message = |text: &[u8]| match text.iter().position(|byte| *byte == VALUE) {
        Some(at) => {
            (Some(text[..at].to_vec()), Some(text[at + 1..].to_vec()).filter(|value| !value.is_empty()))
        }
        None => (None, Some(text.to_vec())),
    };
    input.split(|byte| *byte == NEXT).take(32).map(message).collect()
}

/// Key and payload.
pub type Pair = (Option<Vec<u8>>, Option<Vec<u8>>);

/// What became of messages.
#[derive(Debug, Default)]
pub struct Read {
    /// The rows as they came.
    pub batches: Vec<ChangeBatch>,
    /// For each message, whether it decoded.
    pub good: Vec<bool>,
    /// Why others did not.
    pub reasons: Vec<String>,
    /// Whether a message that did not decode had changed a structure first.
    pub changed_in_vain: bool,
}

/// Decodes messages of the topic `d.t` as a connector does.
pub fn read(decoder: &mut dyn MessageDecoder, messages: &[Pair]) -> Read {
    let mut read = Read::default();
    for (key, value) in messages {
        let message =
            Message { topic: "d.t", key: key.as_deref(), value: value.as_deref(), timestamp_ms: None };
        let mut changes = 0;
        let good = loop {
            let before = (decoder.rows(), decoder.bytes());
            match decoder.decode(&message) {
                Ok(Step::Taken) => break true,
                Ok(Step::Ignored) => {
                    assert_eq!((decoder.rows(), decoder.bytes()), before, "a message without rows has some");
                    break true;
                }
                Ok(Step::Structure(change)) => {
                    assert_eq!((decoder.rows(), decoder.bytes()), before, "a change of structure has rows");
                    take(decoder, &mut read);
                    decoder.apply(&change);
                    assert!(decoder.tables().iter().any(|t| t.id == change.after.id) || change.alone);
                    if change.alone {
                        break true;
                    }
                    changes += 1;
                    assert!(changes < 4, "a message changes structures without end: {change:?}");
                }
                Ok(Step::Failed(error)) => panic!("nothing but the message is needed: {error}"),
                Err(why) => {
                    read.changed_in_vain |= changes > 0;
                    read.reasons.push(why.reason);
                    break false;
                }
            }
        };
        read.good.push(good);
    }
    take(decoder, &mut read);
    read
}

fn take(decoder: &mut dyn MessageDecoder, read: &mut Read) {
    read.batches
        .extend(decoder.take().expect("taking has internal errors only, as columns of unequal length"));
    assert_eq!((decoder.rows(), decoder.bytes()), (0, 0), "taking leaves rows behind");
    for batch in &read.batches {
        for column in batch.rows().columns() {
            assert_eq!(column.len(), batch.num_rows());
        }
    }
}

/// Decodes, and demands that messages that do not decode leave nothing behind.
pub fn read_twice(open: &dyn Fn() -> Box<dyn MessageDecoder>, messages: &[Pair]) -> Read {
    let all = read(&mut *open(), messages);
    if all.good.contains(&false) && !all.changed_in_vain {
        let good: Vec<Pair> =
            messages.iter().zip(&all.good).filter(|(_, good)| **good).map(|(m, _)| m.clone()).collect();
        let again = read(&mut *open(), &good);
        assert!(!again.good.contains(&false), "{:?}", again.reasons);
        let rows = |read: &Read| read.batches.iter().flat_map(show).collect::<Vec<_>>();
        let [mut first, mut second] = [&all, &again].map(rows);
        // Tables may come in another order where one was met in a bad message first.
        first.sort_unstable();
        second.sort_unstable();
        assert_eq!(first, second, "bad messages leave something behind: {:?}", all.reasons);
    }
    all
}

/// Demands that rows written as messages read back as the same changes. `open` makes a decoder that knows a table.
pub fn round_trip(
    read: &Read,
    encoder: &mut dyn MessageEncoder,
    open: &dyn Fn(&Arc<TableSchema>) -> Option<Box<dyn MessageDecoder>>,
) {
    for batch in &read.batches {
        let Some(mut decoder) = open(batch.schema()) else { continue };
        let starts = (0..batch.num_rows()).filter(|row| batch.kinds()[*row] != RowKind::UpdateAfter);
        let refused: Vec<usize> = starts.filter(|row| encoder.refusal(batch, *row).is_some()).collect();
        let mut messages = Messages::default();
        encoder.encode(batch, &refused, &mut messages).expect("rows that are not refused can be written");
        let written: Vec<Pair> =
            messages.iter().map(|m| (m.key.map(<[u8]>::to_vec), m.value.map(<[u8]>::to_vec))).collect();
        let again = self::read(&mut *decoder, &written);
        let shown = || {
            let text = |part: &Option<Vec<u8>>| {
                part.as_ref().map_or_else(|| "-".into(), |b| String::from_utf8_lossy(b).into_owned())
            };
            written.iter().map(|(k, v)| format!("{} => {}\n", text(k), text(v))).collect::<String>()
        };
        assert!(!again.good.contains(&false), "{:?} of\n{}", again.reasons, shown());
        let mut kept: Vec<u32> = Vec::new();
        for row in 0..batch.num_rows() {
            let start = if batch.kinds()[row] == RowKind::UpdateAfter { row - 1 } else { row };
            if refused.binary_search(&start).is_err() {
                kept.push(u32::try_from(row).expect("inputs are small"));
            }
        }
        let kept = batch.take(&kept.into()).expect("rows are there");
        let back: Vec<String> = again.batches.iter().flat_map(changes).collect();
        assert_eq!(changes(&kept), back, "{}", shown());
    }
}

/// What changes come to, whatever the images before tell: `+ cells`, and `- key` (or all cells without a key).
fn changes(batch: &ChangeBatch) -> Vec<String> {
    let rows = cells(batch);
    let keys = batch.schema().key_indexes();
    let key = |row: usize| {
        if keys.is_empty() {
            rows[row].join("|")
        } else {
            keys.iter().map(|k| rows[row][*k].as_str()).collect::<Vec<_>>().join("|")
        }
    };
    let mut told = Vec::new();
    for (row, kind) in batch.kinds().iter().enumerate() {
        match kind {
            RowKind::Insert | RowKind::UpdateAfter => told.push(format!("+ {}", rows[row].join("|"))),
            RowKind::Delete => told.push(format!("- {}", key(row))),
            RowKind::UpdateBefore if keys.is_empty() || key(row) != key(row + 1) => {
                told.push(format!("- {}", key(row)));
            }
            RowKind::UpdateBefore => {}
        }
    }
    told
}

fn show(batch: &ChangeBatch) -> Vec<String> {
    let line = |(row, cells): (usize, Vec<String>)| {
        format!("{} {} {}", batch.schema().id, batch.kinds()[row].symbol(), cells.join("|"))
    };
    cells(batch).into_iter().enumerate().map(line).collect()
}

/// Cells as texts; NULL and unchanged cells cannot be mistaken for them.
fn cells(batch: &ChangeBatch) -> Vec<Vec<String>> {
    let columns = &batch.schema().columns;
    let cell = |index: usize, row: usize| {
        if batch.is_unchanged(index, row) {
            return "~".to_owned();
        }
        cell_to_text(batch.rows().column(index), &columns[index].ty, row)
            .map_or_else(|| "NULL".to_owned(), |text| format!("{text:?}"))
    };
    (0..batch.num_rows()).map(|row| (0..columns.len()).map(|index| cell(index, row)).collect()).collect()
}

/// Columns of MySQL, `name type`, the first of which is the key.
pub fn mysql_table(columns: &[(&str, &str)]) -> Arc<TableSchema> {
    let column = |(name, sql): &(&str, &str)| {
        let ty = TypeText::parse(sql).and_then(|text| text.logical(TinyInt1::Integer));
        let mut column = Column::new(*name, ty.expect("a type of MySQL"), *name != columns[0].0);
        column.native = Some(NativeType {
            dialect: "mysql".into(),
            sql: (*sql).into(),
            charset: None,
            collation: None,
            auto_increment: false,
            generated: None,
        });
        column
    };
    let key = vec![columns[0].0.to_owned()];
    Arc::new(TableSchema::new(TableId::new("shop", "t"), columns.iter().map(column).collect(), key))
}

/// The reference table of the contract of change formats.
pub fn orders() -> Arc<TableSchema> {
    mysql_table(&[
        ("id", "bigint unsigned"),
        ("amount", "decimal(10,2)"),
        ("qty", "int unsigned"),
        ("flag", "bit(1)"),
        ("bits", "bit(10)"),
        ("st", "enum('new','paid','done')"),
        ("tags", "set('a','b','c')"),
        ("d", "date"),
        ("t6", "time(6)"),
        ("dt", "datetime"),
        ("dt6", "datetime(6)"),
        ("ts", "timestamp"),
        ("y", "year"),
        ("doc", "json"),
        ("bin", "varbinary(8)"),
        ("txt", "text"),
        ("g", "geometry"),
        ("ok", "tinyint"),
        ("f", "float"),
        ("db", "double"),
    ])
}

/// `id`, `name`, `amt`.
pub fn triples() -> Arc<TableSchema> {
    mysql_table(&[("id", "int"), ("name", "varchar(20)"), ("amt", "decimal(8,2)")])
}
