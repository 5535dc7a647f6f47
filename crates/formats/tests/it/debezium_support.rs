//! Owns driving the debezium codec: rows as texts, messages as texts.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use canalis_batch::{BatchBuilder, ChangeBatch, cell_to_text};
use canalis_formats::{
    ValueDecoder,
    debezium::{DebeziumDecoder, DebeziumDecoderOptions, DebeziumEncoder, DebeziumEncoderOptions},
    message::{Message, MessageDecoder, MessageEncoder, Messages, Step, StructureChange, Undecodable},
};
use canalis_types::{Column, LogicalType, NativeType, RowKind, TableId, TableSchema};

pub const COMMIT_MS: i64 = 1_710_469_230_000;
pub const NOW_NS: u64 = 1_710_469_230_456_789_000;

pub fn column(name: &str, ty: LogicalType, nullable: bool) -> Column {
    Column::new(name, ty, nullable)
}

pub fn native(mut column: Column, sql: &str) -> Column {
    column.native = Some(NativeType {
        dialect: "mysql".into(),
        sql: sql.into(),
        charset: None,
        collation: None,
        auto_increment: false,
        generated: None,
    });
    column
}

pub fn table(name: &str, columns: Vec<Column>, key: &[&str]) -> Arc<TableSchema> {
    let key = key.iter().map(|k| (*k).to_owned()).collect();
    Arc::new(TableSchema::new(TableId::new("shop", name), columns, key))
}

/// Rows from their texts; `NULL` and `~` (unchanged) stand for themselves. Bytes are hexadecimal.
pub fn batch(schema: &Arc<TableSchema>, rows: &[(RowKind, &[&str])]) -> ChangeBatch {
    let mut builder = BatchBuilder::new(schema.clone(), rows.len());
    for (kind, cells) in rows {
        for (index, (text, column)) in cells.iter().zip(&schema.columns).enumerate() {
            match *text {
                "NULL" => builder.column(index).append_null(),
                "~" => builder.append_unchanged(index),
                text if column.ty.is_binary() => {
                    builder.column(index).append_text(&hex(text)).unwrap();
                }
                text => {
                    ValueDecoder::new(column).append(builder.column(index), text.as_bytes()).unwrap();
                }
            }
        }
        builder.end_row(*kind, 0);
    }
    builder.finish().unwrap().with_event_time(Some(COMMIT_MS))
}

pub fn hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
}

pub fn encoder(options: DebeziumEncoderOptions) -> DebeziumEncoder {
    DebeziumEncoder::with_clock(options, Arc::new(|| UNIX_EPOCH + Duration::from_nanos(NOW_NS)))
}

/// Key and value.
pub type Pair = (Option<String>, Option<String>);

pub fn encode(options: &DebeziumEncoderOptions, batch: &ChangeBatch) -> Vec<Pair> {
    let mut messages = Messages::default();
    encoder(options.clone()).encode(batch, &[], &mut messages).unwrap();
    let text = |bytes: Option<&[u8]>| bytes.map(|b| String::from_utf8(b.to_vec()).unwrap());
    messages.iter().map(|m| (text(m.key), text(m.value))).collect()
}

/// What came of messages.
#[derive(Debug, Default)]
pub struct Read {
    /// Rows: the kind, then cells with bars between; unchanged cells are `~`.
    pub rows: Vec<String>,
    pub changes: Vec<StructureChange>,
    pub ignored: usize,
    pub tables: Vec<Arc<TableSchema>>,
}

pub struct Reader {
    pub decoder: DebeziumDecoder,
    pub topic: String,
    pub read: Read,
}

impl Reader {
    pub fn new(options: DebeziumDecoderOptions, tables: Vec<Arc<TableSchema>>) -> Self {
        Self {
            decoder: DebeziumDecoder::new(options, tables),
            topic: "dbserver1.shop.t".into(),
            read: Read::default(),
        }
    }

    pub fn take(&mut self, key: Option<&str>, value: Option<&str>) -> Result<(), Undecodable> {
        let topic = self.topic.clone();
        let message = Message {
            topic: &topic,
            key: key.map(str::as_bytes),
            value: value.map(str::as_bytes),
            timestamp_ms: None,
        };
        for _ in 0..3 {
            match self.decoder.decode(&message)? {
                Step::Taken => return Ok(()),
                Step::Failed(why) => panic!("{why}"),
                Step::Ignored => {
                    self.read.ignored += 1;
                    return Ok(());
                }
                Step::Structure(change) => {
                    self.flush();
                    self.decoder.apply(&change);
                    let alone = change.alone;
                    self.read.changes.push(*change);
                    if alone {
                        return Ok(());
                    }
                }
            }
        }
        panic!("the structure of a message is never settled: {:?}", self.read.changes);
    }

    fn flush(&mut self) {
        for batch in self.decoder.take().unwrap() {
            self.read.rows.extend(texts(&batch));
        }
        self.read.tables = self.decoder.tables();
    }

    pub fn all(mut self, pairs: &[Pair]) -> Read {
        for (key, value) in pairs {
            self.take(key.as_deref(), value.as_deref()).unwrap_or_else(|e| panic!("{e}: {value:?}"));
        }
        self.end()
    }

    pub fn end(mut self) -> Read {
        self.flush();
        self.read
    }
}

pub fn texts(batch: &ChangeBatch) -> Vec<String> {
    let columns = &batch.schema().columns;
    let row = |row: usize| {
        let cell = |(index, column): (usize, &Column)| {
            if batch.is_unchanged(index, row) {
                return "~".to_owned();
            }
            let text = cell_to_text(batch.rows().column(index), &column.ty, row);
            text.map_or_else(|| "NULL".to_owned(), |text| normal(&column.ty, text))
        };
        let cells: Vec<String> = columns.iter().enumerate().map(cell).collect();
        format!("{} {}", batch.kinds()[row].symbol(), cells.join("|"))
    };
    (0..batch.num_rows()).map(row).collect()
}

/// The text of a value without what only the column's type adds to it.
fn normal(ty: &LogicalType, text: String) -> String {
    let is_time = matches!(
        ty,
        LogicalType::Time { .. } | LogicalType::Timestamp { .. } | LogicalType::TimestampTz { .. }
    );
    match ty {
        _ if is_time && text.contains('.') => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        LogicalType::Boolean => if text == "true" { "1" } else { "0" }.to_owned(),
        _ => text,
    }
}

/// Applies rows to a table by the key in the first column.
pub fn apply(rows: &[String], state: &mut BTreeMap<String, String>) {
    for row in rows {
        let (kind, cells) = row.split_once(' ').unwrap();
        let key = cells.split('|').next().unwrap().to_owned();
        match kind {
            "+I" | "+U" => {
                state.insert(key, cells.to_owned());
            }
            "-U" | "-D" => {
                state.remove(&key);
            }
            other => panic!("{other}"),
        }
    }
}
