//! Owns tables and messages of canal-json tests.

use std::sync::Arc;

use canalis_batch::{BatchBuilder, ChangeBatch, ColumnBuilder};
use canalis_formats::canal::{CanalDecoder, CanalDecoderOptions, CanalEncoderOptions};
use canalis_types::{
    Column, NativeType, RowKind, TableId, TableSchema,
    mysql_type::{TinyInt1, TypeText},
};

/// A column as MySQL declares it.
pub fn column(name: &str, sql: &str) -> Column {
    let ty = TypeText::parse(sql).unwrap().logical(TinyInt1::Integer).unwrap();
    let mut column = Column::new(name, ty, true);
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

/// `shop.NAME` with columns `name TYPE`, the first of which is the key if there is one.
pub fn table(name: &str, columns: &[(&str, &str)], key: &[&str]) -> Arc<TableSchema> {
    let mut columns: Vec<Column> = columns.iter().map(|(name, sql)| column(name, sql)).collect();
    for column in columns.iter_mut().filter(|c| key.contains(&c.name.as_str())) {
        column.nullable = false;
    }
    let key = key.iter().map(|k| (*k).to_owned()).collect();
    Arc::new(TableSchema::new(TableId::new("shop", name), columns, key))
}

/// A batch of rows in texts, bytes in hex, NULL as `None`, `~` for unchanged.
pub fn batch(schema: &Arc<TableSchema>, rows: &[(RowKind, &[Option<&str>])]) -> ChangeBatch {
    let mut builder = BatchBuilder::new(schema.clone(), rows.len());
    for (kind, cells) in rows {
        for (index, text) in cells.iter().enumerate() {
            match (text, builder.column(index)) {
                (None, column) => column.append_null(),
                (Some("~"), _) => builder.append_unchanged(index),
                (Some(hex), ColumnBuilder::Binary(column)) => {
                    let byte =
                        |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
                    column.append_value(hex.as_bytes().chunks(2).map(byte).collect::<Vec<u8>>());
                }
                (Some(text), column) => column.append_text(text.as_bytes()).unwrap(),
            }
        }
        builder.end_row(*kind, 0);
    }
    builder.finish().unwrap()
}

pub fn decoder(tables: &[&Arc<TableSchema>]) -> CanalDecoder {
    CanalDecoder::new(CanalDecoderOptions::default(), tables.iter().map(|t| (*t).clone()).collect())
}

/// As the reference row has them.
pub fn encoder_options(first_id: u64) -> CanalEncoderOptions {
    CanalEncoderOptions { first_id, clock: || 1_710_469_230_123, ..CanalEncoderOptions::default() }
}

/// A message of `shop.t` with these values of the fields `data`, `mysqlType` and `type`.
pub fn message(kind: &str, data: &str, mysql_type: &str) -> String {
    format!(
        "{{\"data\":{data},\"database\":\"shop\",\"es\":1710469230000,\"id\":1,\"isDdl\":false,\
         \"mysqlType\":{mysql_type},\"old\":null,\"pkNames\":[\"id\"],\"table\":\"t\",\"type\":\"{kind}\"}}"
    )
}
