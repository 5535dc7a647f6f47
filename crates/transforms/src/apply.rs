//! Owns the run of one table's transform over a batch: filter, then computed columns for what is left, then the checks
//! and the refused rows.

mod keep;
mod letters;

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Int64Array, NullArray, RecordBatch, RecordBatchOptions, StringArray,
    UInt32Array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::take::take;
use canalis_batch::{ChangeBatch, arrow_schema};
use canalis_connector_api::DeadLetter;
use canalis_types::{Error, Result, RowKind, TableSchema};

use crate::evaluate::{Prepared, Refused};

use keep::Kept;

/// Where an output column comes from.
#[derive(Debug)]
pub(crate) enum OutputSource {
    /// The source column of this index.
    Pass(usize),
    /// An expression.
    Computed(Prepared),
}

/// What has to be done to the rows of a table.
#[derive(Debug)]
pub(crate) struct Work {
    /// Structure of the result, before it goes to the targets.
    output: Arc<TableSchema>,
    /// Its physical form.
    rows: SchemaRef,
    columns: Vec<OutputSource>,
    filter: Option<Prepared>,
    /// Output columns in which NULL refuses the row.
    not_null: Vec<usize>,
    soft_delete: bool,
    /// Source columns that the output needs.
    needed: Vec<bool>,
}

/// The result of a run.
pub(crate) struct Done {
    /// `None` when nothing is left.
    pub batch: Option<ChangeBatch>,
    pub filtered: u64,
    pub rejected: Vec<DeadLetter>,
}

impl Work {
    /// Plans the run; `None` when rows stay as they are.
    pub fn new(
        source: &TableSchema,
        output: &TableSchema,
        columns: Vec<OutputSource>,
        filter: Option<Prepared>,
        not_null: Vec<usize>,
        soft_delete: bool,
    ) -> Option<Self> {
        let is_whole = columns.len() == source.columns.len()
            && columns.iter().enumerate().all(|(i, c)| matches!(c, OutputSource::Pass(index) if *index == i));
        if is_whole && filter.is_none() && not_null.is_empty() && !soft_delete {
            return None;
        }
        let mut needed = vec![false; source.columns.len()];
        for column in &columns {
            match column {
                OutputSource::Pass(index) => needed[*index] = true,
                OutputSource::Computed(prepared) => {
                    for index in prepared.reads.iter().filter(|i| **i < source.columns.len()) {
                        needed[*index] = true;
                    }
                }
            }
        }
        Some(Self {
            output: Arc::new(output.clone()),
            rows: arrow_schema(output),
            columns,
            filter,
            not_null,
            soft_delete,
            needed,
        })
    }

    /// Runs over a batch.
    ///
    /// # Errors
    /// Internal, when an expression is broken.
    pub fn run(&self, source: &TableSchema, batch: &ChangeBatch) -> Result<Done> {
        let mut rejected = Vec::new();
        let (kept, filtered) = match &self.filter {
            None => (Kept::all(batch), 0),
            Some(filter) => {
                let mut refused = Refused::new();
                let rows = with_metadata(batch.rows(), batch.kinds(), batch.event_time_ms, &[filter])?;
                filter.refuse_unusable(&rows, batch.unchanged(), source, &mut refused);
                let passes = filter.evaluate(&rows, &mut refused)?;
                let kept = keep::select(batch.kinds(), &passes, &refused)?;
                letters::write(source, batch, &Kept::all(batch), &refused, &mut rejected);
                kept
            }
        };
        if kept.kinds.is_empty() {
            return Ok(Done { batch: None, filtered, rejected });
        }
        let rows = self.gather(batch, &kept)?;
        let masks = kept.masks(batch)?;
        let computed: Vec<&Prepared> = self
            .columns
            .iter()
            .filter_map(|c| if let OutputSource::Computed(p) = c { Some(p) } else { None })
            .collect();
        let rows = with_metadata(&rows, &kept.kinds, batch.event_time_ms, &computed)?;
        let mut refused = Refused::new();
        for prepared in &computed {
            prepared.refuse_unusable(&rows, masks.as_deref(), source, &mut refused);
        }
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        let mut unchanged: Vec<Option<BooleanArray>> = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            match column {
                OutputSource::Pass(index) => {
                    arrays.push(rows.column(*index).clone());
                    unchanged.push(masks.as_ref().and_then(|m| m[*index].clone()));
                }
                OutputSource::Computed(prepared) => {
                    arrays.push(prepared.evaluate(&rows, &mut refused)?);
                    unchanged.push(None);
                }
            }
        }
        self.refuse_null_keys(&arrays, &mut refused);
        letters::write(source, batch, &kept, &refused, &mut rejected);
        let batch = self.finish(batch, kept.kinds, arrays, unchanged, &refused)?;
        Ok(Done { batch, filtered, rejected })
    }

    /// The source's columns after the filter; columns that nobody needs are left empty.
    fn gather(&self, batch: &ChangeBatch, kept: &Kept) -> Result<RecordBatch> {
        let Some(indexes) = &kept.indexes else { return Ok(batch.rows().clone()) };
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.needed.len());
        let mut fields: Vec<Arc<Field>> = Vec::with_capacity(self.needed.len());
        let schema = batch.rows().schema();
        for (index, needed) in self.needed.iter().enumerate() {
            if *needed {
                arrays.push(kept.take(batch.rows().column(index))?);
                fields.push(schema.fields()[index].clone());
            } else {
                arrays.push(Arc::new(NullArray::new(indexes.len())));
                fields.push(Arc::new(Field::new(schema.field(index).name(), DataType::Null, true)));
            }
        }
        assemble(Arc::new(Schema::new(fields)), arrays, indexes.len())
    }

    fn refuse_null_keys(&self, arrays: &[ArrayRef], refused: &mut Refused) {
        for &index in &self.not_null {
            let array = &arrays[index];
            if array.null_count() == 0 {
                continue;
            }
            for row in (0..array.len()).filter(|row| array.is_null(*row)) {
                let name = &self.output.columns[index].name;
                refused
                    .entry(row)
                    .or_insert_with(|| format!("column `{name}`: a primary key cannot be NULL"));
            }
        }
    }

    fn finish(
        &self,
        batch: &ChangeBatch,
        mut kinds: Vec<RowKind>,
        mut arrays: Vec<ArrayRef>,
        mut unchanged: Vec<Option<BooleanArray>>,
        refused: &Refused,
    ) -> Result<Option<ChangeBatch>> {
        if !refused.is_empty() {
            let good = keep::without(&kinds, refused)?;
            if good.is_empty() {
                return Ok(None);
            }
            for array in &mut arrays {
                *array = take(array, &good, None)
                    .map_err(|e| Error::internal("cannot take rows").with_source(e))?;
            }
            for mask in unchanged.iter_mut().flatten() {
                *mask = keep::take_mask(mask, &good);
            }
            kinds = keep::take_kinds(&kinds, &good);
        }
        if self.soft_delete {
            for kind in kinds.iter_mut().filter(|k| **k == RowKind::Delete) {
                *kind = RowKind::Insert;
            }
        }
        let rows = assemble(self.rows.clone(), arrays, kinds.len())?;
        let made = ChangeBatch::new(self.output.clone(), rows, kinds)?
            .with_event_time(batch.event_time_ms)
            .with_unchanged(unchanged);
        Ok(Some(made))
    }
}

fn assemble(schema: SchemaRef, arrays: Vec<ArrayRef>, count: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    RecordBatch::try_new_with_options(schema, arrays, &options)
        .map_err(|e| Error::internal("cannot assemble a transformed batch").with_source(e))
}

/// Adds the metadata columns that depend on the batch, if any expression reads them.
fn with_metadata(
    rows: &RecordBatch,
    kinds: &[RowKind],
    event_time: Option<i64>,
    readers: &[&Prepared],
) -> Result<RecordBatch> {
    let width = rows.num_columns();
    if !readers.iter().any(|p| p.reads.last().is_some_and(|last| *last >= width)) {
        return Ok(rows.clone());
    }
    let mut fields: Vec<Arc<Field>> = rows.schema().fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new("__data_event_type__", DataType::Utf8, true)));
    fields.push(Arc::new(Field::new("op_ts", DataType::Int64, true)));
    let mut arrays = rows.columns().to_vec();
    arrays.push(Arc::new(StringArray::from_iter_values(kinds.iter().map(|k| k.symbol()))));
    // Rows of a snapshot have no commit time; as in the original they show 0.
    arrays.push(Arc::new(Int64Array::from(vec![event_time.unwrap_or(0); kinds.len()])));
    assemble(Arc::new(Schema::new(fields)), arrays, kinds.len())
}

/// Row numbers as Arrow wants them.
fn indexes(rows: Vec<u32>) -> UInt32Array {
    UInt32Array::from(rows)
}
