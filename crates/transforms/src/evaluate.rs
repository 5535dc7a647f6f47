//! Owns the evaluation of one expression over a batch: whole columns first, and only when that fails a search for the
//! rows that are to blame, by halves.

use std::collections::BTreeMap;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt32Array, cast::AsArray, new_null_array};
use arrow_schema::{ArrowError, DataType};
use arrow_select::{
    concat::concat,
    take::{take, take_record_batch},
};
use canalis_types::{Error, LogicalType, Result, TableSchema, temporal};
use datafusion_common::DataFusionError;
use datafusion_physical_expr::{PhysicalExpr, utils::collect_columns};

use std::sync::Arc;

/// Rows that cannot be handled, with the reason.
pub(crate) type Refused = BTreeMap<usize, String>;

/// An expression that is ready to run.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    /// How messages name it: `column` and its alias, or the filter.
    pub name: String,
    /// The expression over source columns and metadata columns.
    pub expr: Arc<dyn PhysicalExpr>,
    /// Physical type of the result.
    pub ty: DataType,
    /// Columns that it reads.
    pub reads: Vec<usize>,
}

impl Prepared {
    /// Prepares an expression.
    pub fn new(name: String, expr: Arc<dyn PhysicalExpr>, ty: DataType) -> Self {
        let mut reads: Vec<usize> = collect_columns(&expr).iter().map(|c| c.index()).collect();
        reads.sort_unstable();
        reads.dedup();
        Self { name, expr, ty, reads }
    }

    /// Values of all rows; refused ones are NULL. Rows that fail are added to `refused`.
    ///
    /// # Errors
    /// Internal, when the expression itself is broken.
    pub fn evaluate(&self, rows: &RecordBatch, refused: &mut Refused) -> Result<ArrayRef> {
        let count = rows.num_rows();
        if refused.is_empty()
            && let Ok(array) = self.run(rows)
        {
            return Ok(array);
        }
        let mut pieces = Vec::new();
        let mut order = Vec::with_capacity(count);
        let good: Vec<u32> =
            (0..count).filter(|row| !refused.contains_key(row)).map(index).collect::<Result<_>>()?;
        self.search(rows, &good, &mut pieces, &mut order, refused)?;
        if pieces.is_empty() {
            return Ok(new_null_array(&self.ty, count));
        }
        let parts: Vec<&dyn Array> = pieces.iter().map(|p| &**p).collect();
        let found = concat(&parts).map_err(|e| Error::internal("cannot join results").with_source(e))?;
        let mut places: Vec<Option<u32>> = vec![None; count];
        for (place, row) in order.into_iter().enumerate() {
            places[usize::try_from(row).unwrap_or(usize::MAX)] = Some(index(place)?);
        }
        take(&found, &UInt32Array::from(places), None)
            .map_err(|e| Error::internal("cannot order results").with_source(e))
    }

    fn run(&self, rows: &RecordBatch) -> Result<ArrayRef, DataFusionError> {
        self.expr.evaluate(rows)?.into_array(rows.num_rows())
    }

    fn search(
        &self,
        rows: &RecordBatch,
        candidates: &[u32],
        pieces: &mut Vec<ArrayRef>,
        order: &mut Vec<u32>,
        refused: &mut Refused,
    ) -> Result<()> {
        if candidates.is_empty() {
            return Ok(());
        }
        let some = take_record_batch(rows, &UInt32Array::from(candidates.to_vec()))
            .map_err(|e| Error::internal("cannot take rows").with_source(e))?;
        match self.run(&some) {
            Ok(array) => {
                pieces.push(array);
                order.extend_from_slice(candidates);
            }
            Err(error) if is_defect(&error) => {
                return Err(Error::internal(format!("cannot compute {}", self.name)).with_source(error));
            }
            Err(error) => {
                if let [row] = candidates {
                    let row = usize::try_from(*row).unwrap_or(usize::MAX);
                    refused.insert(row, format!("{}: {}", self.name, reason(&error)));
                } else {
                    let (left, right) = candidates.split_at(candidates.len() / 2);
                    self.search(rows, left, pieces, order, refused)?;
                    self.search(rows, right, pieces, order, refused)?;
                }
            }
        }
        Ok(())
    }

    /// Refuses rows in which the expression would read a cell that has no usable value: one that the source did not
    /// send, or a date that no calendar has.
    pub fn refuse_unusable(
        &self,
        rows: &RecordBatch,
        unchanged: Option<&[Option<BooleanArray>]>,
        schema: &TableSchema,
        refused: &mut Refused,
    ) {
        for &column in &self.reads {
            let Some(declared) = schema.columns.get(column) else { continue };
            let mut note = |row: usize, why: &str| {
                refused
                    .entry(row)
                    .or_insert_with(|| format!("{}: column `{}` {why}", self.name, declared.name));
            };
            if let Some(Some(mask)) = unchanged.map(|masks| &masks[column]) {
                for row in mask.values().set_indices() {
                    note(row, "was not sent by the source because it is unchanged");
                }
            }
            for row in off_the_calendar(rows.column(column), &declared.ty) {
                note(row, "holds a date that no calendar has");
            }
        }
    }
}

/// Rows whose date or date-time is one of MySQL's impossible ones.
fn off_the_calendar(array: &ArrayRef, ty: &LogicalType) -> Vec<usize> {
    use arrow_array::types::{Date32Type, TimestampMicrosecondType};
    let is_valid = |row: &usize| array.is_valid(*row);
    match ty {
        LogicalType::Date => {
            let values = array.as_primitive::<Date32Type>().values();
            let partial = |row: &usize| temporal::is_partial_date(values[*row]);
            (0..array.len()).filter(partial).filter(is_valid).collect()
        }
        LogicalType::Timestamp { .. } | LogicalType::TimestampTz { .. } => {
            let values = array.as_primitive::<TimestampMicrosecondType>().values();
            let partial = |row: &usize| temporal::is_partial_datetime(values[*row]);
            (0..array.len()).filter(partial).filter(is_valid).collect()
        }
        _ => Vec::new(),
    }
}

fn index(row: usize) -> Result<u32> {
    u32::try_from(row).map_err(|_| Error::internal("a batch has more than 2^32 rows"))
}

/// Whether an error speaks of the expression and not of the row.
fn is_defect(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::Internal(_) | DataFusionError::NotImplemented(_) | DataFusionError::Plan(_) => true,
        DataFusionError::ArrowError(e, _) => {
            matches!(**e, ArrowError::NotYetImplemented(_) | ArrowError::SchemaError(_))
        }
        _ => false,
    }
}

/// Why a row is refused, without its values.
pub(crate) fn reason(error: &DataFusionError) -> String {
    match error.find_root() {
        DataFusionError::ArrowError(e, _) => match &**e {
            ArrowError::ComputeError(why) => why.clone(),
            ArrowError::DivideByZero => "division by zero".into(),
            ArrowError::ArithmeticOverflow(_) => "number overflow".into(),
            _ => "value cannot be computed".into(),
        },
        other => other.strip_backtrace(),
    }
}
