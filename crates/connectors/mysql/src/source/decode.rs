//! Owns the way of a text result set into column builders: which expression selects a column exactly, and how its
//! text becomes a value.

use std::sync::Arc;

use canalis_batch::{BatchBuilder, ChangeBatch, ColumnBuilder, ValueError};
use canalis_connector_api::DeadLetter;
use canalis_types::{Code, Column, LogicalType, Result, RowKind, TableSchema, mysql_type::TypeText};

use crate::{
    binlog::cursor::{Cursor, Decoded},
    quote,
};

/// The expression whose text is exact.
///
/// FLOAT and DOUBLE(m,d) print fewer digits than they hold; times one as a double they print all of them, and keep the
/// sign of zero, which a sum would lose.
fn selected(column: &Column) -> String {
    let name = quote::ident(&column.name);
    let native = column.native.as_ref().and_then(|n| TypeText::parse(&n.sql).ok());
    let has_digits = native.is_some_and(|t| t.arguments.len() == 2);
    match column.ty {
        LogicalType::Float32 => format!("{name} * 1e0"),
        LogicalType::Float64 if has_digits => format!("{name} * 1e0"),
        _ => name,
    }
}

/// `SELECT …` for all columns of a table, without what follows.
pub(crate) fn select_list(schema: &TableSchema) -> String {
    let columns: Vec<String> = schema.columns.iter().map(selected).collect();
    format!("SELECT {}", columns.join(", "))
}

/// How a cell's bytes are read, beyond what its builder says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cell {
    /// The canonical text of the builder's type.
    Text,
    /// Big-endian bytes of a bit field.
    Bits,
    /// A number that stands for true unless it is 0.
    Truth,
}

/// Turns rows into batches of +I.
pub(crate) struct RowDecoder {
    builder: BatchBuilder,
    cells: Vec<Cell>,
    refused: Vec<(u32, DeadLetter)>,
}

impl RowDecoder {
    /// A decoder for rows that [`select_list`] selects; batches have room for `rows`.
    pub(crate) fn new(schema: &Arc<TableSchema>, rows: usize) -> Self {
        let cell = |column: &Column| match column.ty {
            LogicalType::Bit { .. } => Cell::Bits,
            LogicalType::Boolean => Cell::Truth,
            _ => Cell::Text,
        };
        Self {
            builder: BatchBuilder::new(schema.clone(), rows),
            cells: schema.columns.iter().map(cell).collect(),
            refused: Vec::new(),
        }
    }

    /// Rows so far.
    pub(crate) fn len(&self) -> usize {
        self.builder.len()
    }

    /// Bytes so far.
    pub(crate) fn bytes(&self) -> usize {
        self.builder.bytes()
    }

    /// Takes one row in its packet form. A row with a value that does not decode becomes a dead letter, given out by
    /// [`RowDecoder::finish`].
    ///
    /// # Errors
    /// CNL-2006 when the packet is no row of the table.
    pub(crate) fn row(&mut self, packet: &[u8]) -> Result<()> {
        let mut cursor = Cursor::new(packet);
        let mut problem: Option<(usize, ValueError)> = None;
        for (index, (column, cell)) in self.builder.columns().iter_mut().zip(&self.cells).enumerate() {
            match field(&mut cursor) {
                Ok(Some(text)) if problem.is_none() => {
                    if let Err(why) = append(column, *cell, text) {
                        column.append_null();
                        problem = Some((index, why));
                    }
                }
                Ok(_) => column.append_null(),
                Err(error) => return Err(error.into_error("a row of the snapshot")),
            }
        }
        if let Some((index, why)) = problem {
            let number = u32::try_from(self.builder.len()).unwrap_or(u32::MAX);
            let letter = letter(self.builder.schema(), index, &why, packet);
            self.refused.push((number, letter));
        }
        self.builder.end_row(RowKind::Insert, packet.len());
        Ok(())
    }

    /// Takes out the rows and the dead letters; the decoder is empty then.
    pub(crate) fn finish(&mut self) -> Result<(ChangeBatch, Vec<DeadLetter>)> {
        let batch = self.builder.finish()?;
        if self.refused.is_empty() {
            return Ok((batch, Vec::new()));
        }
        let (numbers, letters): (Vec<u32>, Vec<DeadLetter>) = self.refused.drain(..).unzip();
        let all = 0..u32::try_from(batch.num_rows()).unwrap_or(u32::MAX);
        let kept: Vec<u32> = all.filter(|n| !numbers.contains(n)).collect();
        Ok((batch.take(&kept.into())?, letters))
    }
}

/// The fields of a row in packet form, separated by tabs, `\N` for NULL: for people.
pub(crate) fn fields(packet: &[u8], columns: usize) -> Vec<u8> {
    let mut cursor = Cursor::new(packet);
    let mut out = Vec::with_capacity(packet.len());
    for column in 0..columns {
        if column > 0 {
            out.push(b'\t');
        }
        match field(&mut cursor) {
            Ok(Some(bytes)) => out.extend_from_slice(bytes),
            _ => out.extend_from_slice(b"\\N"),
        }
    }
    out
}

/// A field of a row in packet form; `None` for NULL.
#[inline]
fn field<'a>(cursor: &mut Cursor<'a>) -> Decoded<Option<&'a [u8]>> {
    if cursor.rest().first() == Some(&0xfb) {
        cursor.skip(1)?;
        return Ok(None);
    }
    cursor.lenenc_bytes().map(Some)
}

#[cold]
fn letter(schema: &TableSchema, index: usize, why: &ValueError, packet: &[u8]) -> DeadLetter {
    let mut cursor = Cursor::new(packet);
    let mut values = Vec::new();
    for _ in &schema.columns {
        values.push(match field(&mut cursor) {
            Ok(Some(bytes)) => serde_json::Value::String(String::from_utf8_lossy(bytes).into_owned()),
            _ => serde_json::Value::Null,
        });
    }
    let object = |names: &mut dyn Iterator<Item = (usize, &str)>| {
        let pairs = names.map(|(i, name)| (name.to_owned(), values.get(i).cloned().unwrap_or_default()));
        serde_json::Value::Object(pairs.collect())
    };
    let keys = schema.key_indexes();
    DeadLetter {
        table: schema.id.clone(),
        kind: RowKind::Insert,
        key: if keys.is_empty() {
            serde_json::Value::Null
        } else {
            object(&mut keys.iter().map(|i| (*i, schema.columns[*i].name.as_str())))
        },
        payload: object(&mut schema.columns.iter().enumerate().map(|(i, c)| (i, c.name.as_str()))),
        code: Code::SourceUndecodable,
        reason: format!("column {}: {why}", schema.columns[index].name),
        position: None,
    }
}

/// Digits with an optional minus, as servers print whole numbers; `None` for anything else or an overflow of 64 bits.
fn whole(text: &[u8]) -> Option<i128> {
    let (negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > 38 {
        return None;
    }
    if digits.len() <= 18 {
        let mut value: i64 = 0;
        for byte in digits {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            value = value * 10 + i64::from(digit);
        }
        return Some(i128::from(if negative { -value } else { value }));
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn append(column: &mut ColumnBuilder, cell: Cell, text: &[u8]) -> std::result::Result<(), ValueError> {
    macro_rules! number {
        ($builder:expr) => {
            match whole(text).and_then(|value| value.try_into().ok()) {
                Some(value) => $builder.append_value(value),
                None => {
                    return Err(ValueError { reason: "text is not a number of the column's range".into() })
                }
            }
        };
    }
    match (column, cell) {
        (ColumnBuilder::UInt64(builder), Cell::Bits) => {
            if text.len() > 8 {
                return Err(ValueError { reason: "bit field is longer than 64 bits".into() });
            }
            builder.append_value(text.iter().fold(0, |bits, byte| (bits << 8) | u64::from(*byte)));
        }
        (ColumnBuilder::Boolean(builder), Cell::Truth) => builder.append_value(whole(text) != Some(0)),
        (ColumnBuilder::Int8(builder), _) => number!(builder),
        (ColumnBuilder::Int16(builder), _) => number!(builder),
        (ColumnBuilder::Int32(builder), _) => number!(builder),
        (ColumnBuilder::Int64(builder), _) => number!(builder),
        (ColumnBuilder::UInt8(builder), _) => number!(builder),
        (ColumnBuilder::UInt16(builder), _) => number!(builder),
        (ColumnBuilder::UInt32(builder), _) => number!(builder),
        (ColumnBuilder::UInt64(builder), _) => number!(builder),
        (column, _) => return column.append_text(text),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn my_04_whole_numbers_are_read_to_their_bounds() {
        for (text, expect) in [
            ("0", Some(0)),
            ("-128", Some(-128)),
            ("000042", Some(42)),
            ("18446744073709551615", Some(18_446_744_073_709_551_615)),
            ("-9223372036854775808", Some(-9_223_372_036_854_775_808)),
            ("00000000000000000000", Some(0)),
            ("", None),
            ("-", None),
            ("1.5", None),
            ("1e3", None),
        ] {
            assert_eq!(whole(text.as_bytes()), expect, "{text}");
        }
        let mut tiny = ColumnBuilder::new(&LogicalType::UInt8, 1);
        assert!(append(&mut tiny, Cell::Text, b"256").is_err());
        assert!(append(&mut tiny, Cell::Text, b"-1").is_err());
    }

    #[test]
    fn my_10_floats_are_selected_with_all_their_digits() {
        let column = |ty: LogicalType, sql: &str| {
            let mut column = Column::new("c", ty, true);
            column.native = Some(canalis_types::NativeType {
                dialect: "mysql".into(),
                sql: sql.into(),
                charset: None,
                collation: None,
                auto_increment: false,
                generated: None,
            });
            column
        };
        for (column, expect) in [
            (column(LogicalType::Float32, "float"), "`c` * 1e0"),
            (column(LogicalType::Float32, "float(10,2)"), "`c` * 1e0"),
            (column(LogicalType::Float64, "double(10,2)"), "`c` * 1e0"),
            (column(LogicalType::Float64, "double"), "`c`"),
            (column(LogicalType::Int32, "int(11)"), "`c`"),
        ] {
            assert_eq!(selected(&column), expect);
        }
    }
}
