//! Owns the merging of tables that share a target: the widest structure that holds the rows of all of them without losing
//! anything, and the step that brings the rows of one table to it.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, cast::AsArray, new_null_array};
use arrow_schema::{DataType, SchemaRef};
use canalis_batch::{ChangeBatch, arrow_schema, arrow_type};
use canalis_types::{
    Code, Column, Error, LogicalType, Result, TableId, TableSchema,
    temporal::{DateFields, DateTimeFields},
};

use crate::{
    cast::{self, Cast},
    compile::types::{Family, common, family},
    zone::Zone,
};

/// The structure of a target that several tables share. The first table gives key, partition keys, indexes, options and
/// comment; columns are matched by their exact names, new ones follow in the order of the tables. A column that some table
/// lacks allows NULL.
///
/// # Errors
/// `CNL-1005` when keys differ, or a column has types that no type holds exactly.
pub(crate) fn merge(target: &TableId, tables: &[(&TableId, &TableSchema)]) -> Result<TableSchema> {
    let refuse = |why: String| {
        let names: Vec<String> = tables.iter().map(|(source, _)| source.to_string()).collect();
        let text = format!("tables {} cannot share the target {target}: {why}", names.join(", "));
        Error::new(Code::ExpressionInvalid, text)
    };
    let Some(((_, first), others)) = tables.split_first() else {
        return Err(Error::internal(format!("target {target} has no table")));
    };
    let mut merged = TableSchema { id: target.clone(), ..(*first).clone() };
    for (source, table) in others {
        if table.primary_key != merged.primary_key {
            return Err(refuse(format!(
                "their primary keys are ({}) and, in {source}, ({}); declare `primary-keys` in a transform",
                merged.primary_key.join(", "),
                table.primary_key.join(", ")
            )));
        }
        for column in &table.columns {
            match merged.columns.iter_mut().find(|c| c.name == column.name) {
                None => merged.columns.push(Column { nullable: true, ..column.clone() }),
                Some(known) => join(known, column).map_err(|why| refuse(format!("{why} in {source}")))?,
            }
        }
        for column in merged.columns.iter_mut().filter(|c| table.column(&c.name).is_none()) {
            column.nullable = true;
        }
        merged.version = merged.version.max(table.version);
    }
    let is_equal = others.iter().all(|(_, t)| t.columns == first.columns);
    if !is_equal {
        for native in merged.columns.iter_mut().filter_map(|c| c.native.as_mut()) {
            // Rows of a table that lacks the column, or what it is made from, would disagree with the expression.
            native.generated = None;
        }
    }
    Ok(merged)
}

/// Widens a column of the target so that it holds another of the same name, too.
fn join(known: &mut Column, other: &Column) -> std::result::Result<(), String> {
    let ty = widest(&known.ty, &other.ty).ok_or_else(|| {
        format!("column `{}` is {}, but {}; cast one of them in a transform", known.name, known.ty, other.ty)
    })?;
    if ty != known.ty || known.native != other.native {
        let is_same = |c: &Column| c.ty == ty;
        // The declaration of the one that was wide enough already still fits.
        known.native = match (is_same(known), is_same(other)) {
            (true, false) => known.native.take(),
            (false, true) => other.native.clone(),
            _ => None,
        };
    }
    if known.default != other.default {
        known.default = None;
    }
    known.ty = ty;
    known.nullable |= other.nullable;
    Ok(())
}

/// The narrowest type that holds every value of both exactly; `None` when there is none.
fn widest(a: &LogicalType, b: &LogicalType) -> Option<LogicalType> {
    use Family::*;
    use LogicalType as Ty;
    if a == b {
        return Some(a.clone());
    }
    match (a, b) {
        (Ty::Bit { length: x }, Ty::Bit { length: y }) => return Some(Ty::Bit { length: *x.max(y) }),
        (Ty::Enum { labels: x }, Ty::Enum { labels: y }) | (Ty::Set { labels: x }, Ty::Set { labels: y }) => {
            let within = |x: &[String], y: &[String]| x.iter().all(|label| y.contains(label));
            return Some(match (within(x, y), within(y, x)) {
                (true, _) => b.clone(),
                (_, true) => a.clone(),
                _ => Ty::Text,
            });
        }
        (Ty::Geometry, _) | (_, Ty::Geometry) => return None,
        (
            Ty::Binary { length: x } | Ty::Varbinary { length: x },
            Ty::Binary { length: y } | Ty::Varbinary { length: y },
        ) => {
            return Some(Ty::Varbinary { length: *x.max(y) });
        }
        _ => {}
    }
    match (family(a), family(b)) {
        (Float, Float) => Some(Ty::Float64),
        (Float, Integer) => float_with(a, b),
        (Integer, Float) => float_with(b, a),
        (Integer | Decimal, Integer | Decimal)
        | (Text, Text)
        | (Binary, Binary)
        | (Time, Time)
        | (Date | Timestamp, Date | Timestamp)
        | (Instant, Instant) => common(a, b).ok(),
        _ => None,
    }
}

/// A float that holds a whole-number type exactly: 24 bits fit a FLOAT, 53 a DOUBLE.
fn float_with(float: &LogicalType, whole: &LogicalType) -> Option<LogicalType> {
    use LogicalType::*;
    match whole {
        Int8 | UInt8 | Int16 | UInt16 | Year => Some(float.clone()),
        Int32 | UInt32 => Some(Float64),
        _ => None,
    }
}

/// Brings the rows of one table to the structure of a shared target. Every step is exact and cannot fail for a value of
/// the declared type.
pub(crate) struct Alignment {
    schema: Arc<TableSchema>,
    rows: SchemaRef,
    columns: Vec<Source>,
}

enum Source {
    Same(usize),
    Widened(usize, Cast),
    Missing(DataType),
}

impl Alignment {
    /// Plans the step; `None` when the structures are the same for rows.
    ///
    /// # Errors
    /// Internal, when the target is not wide enough.
    pub fn plan(from: &TableSchema, to: &Arc<TableSchema>) -> Result<Option<Self>> {
        let mut columns = Vec::with_capacity(to.columns.len());
        for column in &to.columns {
            columns.push(match from.column_index(&column.name) {
                None => Source::Missing(arrow_type(&column.ty)),
                Some(index) => match widening(&from.columns[index].ty, &column.ty)? {
                    None => Source::Same(index),
                    Some(cast) => Source::Widened(index, cast),
                },
            });
        }
        let is_same = columns.len() == from.columns.len()
            && columns.iter().enumerate().all(|(i, c)| matches!(c, Source::Same(index) if *index == i));
        Ok((!is_same).then(|| Self { schema: to.clone(), rows: arrow_schema(to), columns }))
    }

    /// The rows under the structure of the target; cells that the table lacks are NULL.
    ///
    /// # Errors
    /// Internal, when a value is not of its declared type.
    pub fn apply(&self, batch: &ChangeBatch) -> Result<ChangeBatch> {
        let count = batch.num_rows();
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        let mut masks: Vec<Option<BooleanArray>> = Vec::with_capacity(self.columns.len());
        for (source, column) in self.columns.iter().zip(&self.schema.columns) {
            let mask = |index: usize| batch.unchanged().and_then(|masks| masks[index].clone());
            match source {
                Source::Missing(ty) => {
                    arrays.push(new_null_array(ty, count));
                    masks.push(None);
                }
                Source::Same(index) => {
                    arrays.push(batch.rows().column(*index).clone());
                    masks.push(mask(*index));
                }
                Source::Widened(index, cast) => {
                    arrays.push(cast(batch.rows().column(*index)).map_err(|e| {
                        let (name, target) = (&column.name, &self.schema.id);
                        Error::internal(format!("cannot widen column `{name}` for {target}")).with_source(e)
                    })?);
                    masks.push(mask(*index));
                }
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let rows = RecordBatch::try_new_with_options(self.rows.clone(), arrays, &options)
            .map_err(|e| Error::internal("cannot assemble a merged batch").with_source(e))?;
        Ok(ChangeBatch::new(self.schema.clone(), rows, batch.kinds().to_vec())?
            .with_event_time(batch.event_time_ms)
            .with_unchanged(masks))
    }
}

/// The conversion of values to a wider type; `None` when they are right as they are.
fn widening(from: &LogicalType, to: &LogicalType) -> Result<Option<Cast>> {
    if arrow_type(from) == arrow_type(to) {
        return Ok(None);
    }
    if let (LogicalType::Date, LogicalType::Timestamp { .. }) = (from, to) {
        return Ok(Some(Arc::new(midnight)));
    }
    // Zones do not matter: local date-times and instants are never merged.
    cast::plan(from, to, Zone::utc()).map_err(|why| Error::internal(format!("merged structure: {why}")))
}

/// The first moment of each date; MySQL's impossible dates stay impossible.
fn midnight(dates: &ArrayRef) -> crate::call::Output {
    use arrow_array::types::{Date32Type, TimestampMicrosecondType};
    let moments = dates.as_primitive::<Date32Type>().unary::<_, TimestampMicrosecondType>(|days| {
        DateTimeFields { date: DateFields::decode(days), hour: 0, minute: 0, second: 0, micro: 0 }.encode()
    });
    Ok(Arc::new(moments))
}

#[cfg(test)]
mod tests {
    use LogicalType::*;

    use super::*;

    #[test]
    fn the_widest_type_holds_both_exactly_or_there_is_none() {
        let dec = |precision, scale| Decimal { precision, scale };
        let labels = |l: &[&str]| Enum { labels: l.iter().map(|l| (*l).to_owned()).collect() };
        for (a, b, expect) in [
            (Int8, Int64, Some(Int64)),
            (Int32, UInt32, Some(Int64)),
            (dec(10, 2), dec(8, 6), Some(dec(14, 6))),
            (dec(10, 2), Int32, Some(dec(12, 2))),
            (Float32, Int16, Some(Float32)),
            (Float32, Int32, Some(Float64)),
            (Float64, Int64, None),
            (Float64, dec(5, 2), None),
            (Varchar { length: 10 }, Varchar { length: 20 }, Some(Varchar { length: 20 })),
            (Varchar { length: 10 }, Text, Some(Text)),
            (Binary { length: 4 }, Varbinary { length: 2 }, Some(Varbinary { length: 4 })),
            (labels(&["a"]), labels(&["b", "a"]), Some(labels(&["b", "a"]))),
            (labels(&["a"]), labels(&["b"]), Some(Text)),
            (Date, Timestamp { precision: 3 }, Some(Timestamp { precision: 3 })),
            (Timestamp { precision: 0 }, TimestampTz { precision: 0 }, None),
            (Int32, Text, None),
            (Boolean, Int8, None),
            (Geometry, Bytes, None),
        ] {
            assert_eq!(widest(&a, &b), expect, "{a} and {b}");
            assert_eq!(widest(&b, &a), expect, "{b} and {a}");
        }
    }
}
