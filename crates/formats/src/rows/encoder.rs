//! Owns [`RowsEncoder`].

use std::sync::Arc;

use arrow_array::Array;
use canalis_batch::ChangeBatch;
use canalis_types::{Error, Result, RowKind, TableSchema};

use super::{RAW_KEY, RAW_VALUE, RowsKind, RowsOptions};
use crate::{
    ChangeColumn,
    cells::{Cells, TimeForm, Values},
    csv::{CsvDialect, CsvEncoder},
    json::{JsonEncoder, JsonEncoderOptions, open_columns},
    message::{Change, MessageEncoder, Messages, changes},
};

/// Writes rows as messages: +I and +U as the row with its key, −D as the key alone.
#[derive(Debug)]
pub struct RowsEncoder {
    kind: RowsKind,
    options: RowsOptions,
    plan: Option<Plan>,
    old_key: Vec<u8>,
    new_key: Vec<u8>,
}

/// What is worked out once for a structure.
#[derive(Debug)]
struct Plan {
    schema: Arc<TableSchema>,
    key: Vec<usize>,
    writer: Writer,
}

#[derive(Debug)]
enum Writer {
    Json(JsonEncoder),
    Csv(CsvEncoder),
    /// Columns of payload and key; `Err` says why the table cannot be written.
    Raw(std::result::Result<(usize, Option<usize>), String>),
}

impl RowsEncoder {
    /// An encoder for tables as they come.
    pub fn new(kind: RowsKind, options: RowsOptions) -> Self {
        Self { kind, options, plan: None, old_key: Vec::new(), new_key: Vec::new() }
    }

    fn plan(&mut self, schema: &Arc<TableSchema>) {
        let known = |plan: &Plan| Arc::ptr_eq(&plan.schema, schema) || plan.schema == *schema;
        if !self.plan.as_ref().is_some_and(known) {
            self.plan = Some(Plan::new(self.kind, &self.options, schema));
        }
    }
}

impl Plan {
    fn new(kind: RowsKind, options: &RowsOptions, schema: &Arc<TableSchema>) -> Self {
        let changes = ChangeColumn::Absent;
        let writer = match kind {
            RowsKind::Json => {
                let options = JsonEncoderOptions { decimals: options.decimals, changes };
                Writer::Json(JsonEncoder::new(schema, &options))
            }
            RowsKind::Csv => {
                let dialect = CsvDialect { header: false, ..options.csv.clone() };
                Writer::Csv(CsvEncoder::new(schema, &dialect, &changes))
            }
            RowsKind::Raw => Writer::Raw(raw_columns(schema)),
        };
        Self { schema: schema.clone(), key: schema.key_indexes(), writer }
    }

    fn write_key(&self, columns: &[Cells<'_>], row: usize, out: &mut Vec<u8>) {
        match (&self.writer, self.key.as_slice()) {
            (Writer::Json(json), key) => json.write_columns(columns, key, row, out),
            (Writer::Csv(_) | Writer::Raw(_), [column]) => write_bare(&columns[*column], row, out),
            (Writer::Csv(csv), key) => csv.write_fields(key.iter().map(|i| &columns[*i]), row, out),
            // The only column that can be a key beside the payload.
            (Writer::Raw(_), _) => {}
        }
    }

    fn write_value(&self, batch: &ChangeBatch, columns: &[Cells<'_>], row: usize, out: &mut Vec<u8>) {
        match &self.writer {
            Writer::Json(json) => json.write_object(batch, columns, row, out),
            Writer::Csv(csv) => csv.write_fields(columns.iter(), row, out),
            Writer::Raw(Ok((value, _))) => write_bare(&columns[*value], row, out),
            Writer::Raw(Err(_)) => {}
        }
    }
}

fn raw_columns(schema: &TableSchema) -> std::result::Result<(usize, Option<usize>), String> {
    let fits = |c: &canalis_types::Column| c.ty.is_text() || c.ty.is_binary();
    let value = schema.column_index(RAW_VALUE).filter(|i| fits(&schema.columns[*i])).ok_or_else(|| {
        format!("raw messages are the column `value` of a text or bytes; {} has none", schema.id)
    })?;
    let key = schema.column_index(RAW_KEY).filter(|i| fits(&schema.columns[*i]));
    if let Some(other) = (0..schema.columns.len()).find(|i| *i != value && Some(*i) != key) {
        let name = &schema.columns[other].name;
        return Err(format!("raw messages have no place for column `{name}`"));
    }
    if schema.has_key() && schema.primary_key != [RAW_KEY] {
        return Err("the key of a table of raw messages is the column `key`".to_owned());
    }
    Ok((value, key))
}

fn write_bare(cells: &Cells<'_>, row: usize, out: &mut Vec<u8>) {
    match &cells.values {
        Values::Binary(bytes) => out.extend_from_slice(bytes.value(row)),
        values => values.write(row, TimeForm::Blank, out),
    }
}

/// A part of a message whose writing cannot fail.
fn filled(write: impl FnOnce(&mut Vec<u8>)) -> impl FnOnce(&mut Vec<u8>) -> Result<()> {
    move |out| {
        write(out);
        Ok(())
    }
}

impl MessageEncoder for RowsEncoder {
    fn encode(&mut self, batch: &ChangeBatch, skip: &[usize], out: &mut Messages) -> Result<()> {
        self.plan(batch.schema());
        let Self { plan: Some(plan), old_key, new_key, .. } = self else {
            return Err(Error::internal("no plan for a table that was planned"));
        };
        let columns = open_columns(batch)?;
        for change in changes(batch, skip) {
            new_key.clear();
            let keyed = !plan.key.is_empty();
            if keyed {
                plan.write_key(&columns, change.row, new_key);
            }
            if let (true, Some(before)) = (keyed, change.before) {
                old_key.clear();
                plan.write_key(&columns, before, old_key);
                if old_key != new_key {
                    let mut tombstone = out.begin(change.first());
                    tombstone.key(filled(|out| out.extend_from_slice(old_key)))?;
                    tombstone.end();
                }
            }
            let mut message = out.begin(change.first());
            if keyed {
                message.key(filled(|out| out.extend_from_slice(new_key)))?;
            } else if let Writer::Raw(Ok((_, Some(key)))) = plan.writer
                && !columns[key].is_null(change.row)
            {
                message.key(filled(|out| write_bare(&columns[key], change.row, out)))?;
            }
            if change.kind != RowKind::Delete {
                message.value(filled(|out| plan.write_value(batch, &columns, change.row, out)))?;
            }
            message.end();
        }
        Ok(())
    }

    fn refusal(&mut self, batch: &ChangeBatch, row: usize) -> Option<String> {
        self.plan(batch.schema());
        let plan = self.plan.as_ref()?;
        let change = Change::at(batch, row);
        if plan.key.is_empty() && change.kind != RowKind::Insert {
            return Some(
                "the table has no key, and a message of a plain row cannot say which row changed".into(),
            );
        }
        if let Some(null) = plan.key.iter().find(|i| batch.rows().column(**i).is_null(change.row)) {
            return Some(format!("key column `{}` is NULL", plan.schema.columns[*null].name));
        }
        if change.kind != RowKind::Delete {
            let count = plan.schema.columns.len();
            if let Some(column) = (0..count).find(|c| batch.is_unchanged(*c, change.row)) {
                return Some(format!(
                    "column `{}` was left unchanged by the source and its value is not known; a plain row cannot say so",
                    plan.schema.columns[column].name
                ));
            }
        }
        match &plan.writer {
            Writer::Raw(Err(why)) => Some(why.clone()),
            Writer::Raw(Ok((value, _)))
                if change.kind != RowKind::Delete && batch.rows().column(*value).is_null(change.row) =>
            {
                Some("column `value` is NULL, and a message without payload is a delete".into())
            }
            _ => None,
        }
    }
}
