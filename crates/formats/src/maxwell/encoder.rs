//! Owns [`MaxwellEncoder`].

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use canalis_batch::ChangeBatch;
use canalis_types::{Error, Result, RowKind, TableSchema};

use super::write::{ColumnWriter, write_text};
use crate::{
    cells::Cells,
    json::open_columns,
    message::{Change, MessageEncoder, Messages, changes},
};

/// Form of the message key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyFormat {
    /// `{"database":"shop","table":"orders","pk.id":1}`.
    #[default]
    Hash,
    /// `["shop","orders",[{"id":1}]]`.
    Array,
}

/// Whether messages tell where transactions end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CommitInfo {
    /// Without `xid` and `commit`.
    Absent,
    /// Every batch is a transaction: the same `xid` in its messages, `commit` in the last.
    #[default]
    Batch,
}

/// What becomes of the SRID of a geometry, for which the format has no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Srid {
    /// Rows with another SRID than 0 are refused.
    #[default]
    Refuse,
    /// It is left out, as Maxwell does.
    Drop,
}

/// How a [`MaxwellEncoder`] writes.
#[derive(Debug, Clone, Copy)]
pub struct MaxwellEncoderOptions {
    /// Form of the key.
    pub key_format: KeyFormat,
    /// `xid` and `commit`.
    pub commit_info: CommitInfo,
    /// `xid` of the first batch; those of the next ones follow.
    pub first_xid: u64,
    /// Whether `data` holds columns that are NULL. `old` always does, else a reader would take the new value for the old one.
    pub output_nulls: bool,
    /// Whether messages have `primary_key`, the values, and `primary_key_columns`, the names.
    pub output_primary_keys: bool,
    /// SRIDs.
    pub srid: Srid,
    /// Milliseconds since the epoch, for the field `ts` of rows whose time of change is not known.
    pub clock: fn() -> i64,
}

impl Default for MaxwellEncoderOptions {
    fn default() -> Self {
        Self {
            key_format: KeyFormat::default(),
            commit_info: CommitInfo::default(),
            first_xid: 1,
            output_nulls: true,
            output_primary_keys: false,
            srid: Srid::default(),
            clock: now,
        }
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Writes maxwell-json, one message a change, with the primary key as the message's key. A table without a primary key gives
/// messages without a key (Maxwell makes up a different one for each).
#[derive(Debug)]
pub struct MaxwellEncoder {
    options: MaxwellEncoderOptions,
    xid: u64,
    plan: Option<Plan>,
    /// `,"ts":…,"xid":…`, the same in a whole batch.
    batch_part: Vec<u8>,
}

/// What is worked out once for a structure.
#[derive(Debug)]
struct Plan {
    schema: Arc<TableSchema>,
    columns: Vec<ColumnWriter>,
    key: Vec<usize>,
    /// `{"database":…,"table":…,"type":"`.
    head: Vec<u8>,
    /// What stands before the first value of the key.
    key_head: Vec<u8>,
    /// What stands before each value of the key.
    key_names: Vec<Vec<u8>>,
    /// `,"primary_key_columns":[…]`.
    key_columns: Vec<u8>,
}

impl Plan {
    fn new(schema: &Arc<TableSchema>, format: KeyFormat) -> Self {
        let text = |text: &str| {
            let mut out = Vec::new();
            write_text(&mut out, text.as_bytes());
            out
        };
        let database = text(schema.id.schema.as_deref().unwrap_or_default());
        let table = text(&schema.id.table);
        let name = |name: &String| match format {
            KeyFormat::Hash => [b"," as &[u8], &text(&format!("pk.{}", name.to_lowercase())), b":"].concat(),
            KeyFormat::Array => [b"{" as &[u8], &text(name), b":"].concat(),
        };
        let names: Vec<Vec<u8>> = schema.primary_key.iter().map(|n| text(n)).collect();
        Self {
            columns: schema.columns.iter().map(ColumnWriter::new).collect(),
            key: schema.key_indexes(),
            head: [b"{\"database\":" as &[u8], &database, b",\"table\":", &table, b",\"type\":\""].concat(),
            key_head: match format {
                KeyFormat::Hash => [b"{\"database\":" as &[u8], &database, b",\"table\":", &table].concat(),
                KeyFormat::Array => [b"[" as &[u8], &database, b",", &table, b",["].concat(),
            },
            key_names: schema.primary_key.iter().map(name).collect(),
            key_columns: [b",\"primary_key_columns\":[" as &[u8], &names.join(&b","[..]), b"]"].concat(),
            schema: schema.clone(),
        }
    }

    fn write_key(&self, format: KeyFormat, cells: &[Cells<'_>], row: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.key_head);
        for (at, (column, name)) in self.key.iter().zip(&self.key_names).enumerate() {
            if at > 0 && format == KeyFormat::Array {
                out.push(b',');
            }
            out.extend_from_slice(name);
            self.columns[*column].write(&cells[*column], row, out);
            if format == KeyFormat::Array {
                out.push(b'}');
            }
        }
        out.extend_from_slice(if format == KeyFormat::Array { b"]]" } else { b"}" });
    }

    fn write_primary_key(&self, cells: &[Cells<'_>], row: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(b",\"primary_key\":[");
        for (at, column) in self.key.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            self.columns[*column].write(&cells[*column], row, out);
        }
        out.push(b']');
        out.extend_from_slice(&self.key_columns);
    }

    fn write_data(&self, cells: &[Cells<'_>], row: usize, nulls: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(b",\"data\":{");
        let start = out.len();
        for (column, cells) in self.columns.iter().zip(cells) {
            if !nulls && column.is_null(cells, row) {
                continue;
            }
            if out.len() > start {
                out.push(b',');
            }
            out.extend_from_slice(&column.name);
            column.write(cells, row, out);
        }
        out.push(b'}');
    }

    /// Previous values of the columns that changed, if any did.
    fn write_old(&self, cells: &[Cells<'_>], [before, after]: [usize; 2], out: &mut Vec<u8>) {
        let mut any = false;
        for (column, cells) in self.columns.iter().zip(cells) {
            if cells.is_same(before, after) {
                continue;
            }
            out.extend_from_slice(if any { b",".as_slice() } else { b",\"old\":{" });
            any = true;
            out.extend_from_slice(&column.name);
            column.write(cells, before, out);
        }
        if any {
            out.push(b'}');
        }
    }
}

impl MaxwellEncoder {
    /// An encoder for tables as they come.
    pub fn new(options: MaxwellEncoderOptions) -> Self {
        Self { xid: options.first_xid, options, plan: None, batch_part: Vec::new() }
    }

    fn plan(&mut self, schema: &Arc<TableSchema>) {
        let known = |plan: &Plan| Arc::ptr_eq(&plan.schema, schema) || plan.schema == *schema;
        if !self.plan.as_ref().is_some_and(known) {
            self.plan = Some(Plan::new(schema, self.options.key_format));
        }
    }

    fn begin_batch(&mut self, batch: &ChangeBatch) {
        let millis = batch.event_time_ms.unwrap_or_else(self.options.clock);
        let mut digits = itoa::Buffer::new();
        self.batch_part.clear();
        self.batch_part.extend_from_slice(b"\",\"ts\":");
        self.batch_part.extend_from_slice(digits.format(millis.div_euclid(1000)).as_bytes());
        if self.options.commit_info == CommitInfo::Batch {
            self.batch_part.extend_from_slice(b",\"xid\":");
            self.batch_part.extend_from_slice(digits.format(self.xid).as_bytes());
        }
    }

    fn write_message(
        &self,
        plan: &Plan,
        cells: &[Cells<'_>],
        (change, is_last): (Change, bool),
        out: &mut Vec<u8>,
    ) {
        out.extend_from_slice(&plan.head);
        out.extend_from_slice(match change.kind {
            RowKind::Insert => b"insert",
            RowKind::Delete => b"delete",
            RowKind::UpdateBefore | RowKind::UpdateAfter => b"update",
        });
        out.extend_from_slice(&self.batch_part);
        if is_last && self.options.commit_info == CommitInfo::Batch {
            out.extend_from_slice(b",\"commit\":true");
        }
        if self.options.output_primary_keys && !plan.key.is_empty() {
            plan.write_primary_key(cells, change.row, out);
        }
        plan.write_data(cells, change.row, self.options.output_nulls, out);
        if let Some(before) = change.before {
            plan.write_old(cells, [before, change.row], out);
        }
        out.push(b'}');
    }
}

impl MessageEncoder for MaxwellEncoder {
    fn encode(&mut self, batch: &ChangeBatch, skip: &[usize], out: &mut Messages) -> Result<()> {
        self.plan(batch.schema());
        self.begin_batch(batch);
        let Some(plan) = &self.plan else {
            return Err(Error::internal("no plan for a table that was planned"));
        };
        let cells = open_columns(batch)?;
        let mut changes = changes(batch, skip).peekable();
        let mut wrote = false;
        while let Some(change) = changes.next() {
            let is_last = changes.peek().is_none();
            let mut message = out.begin(change.first());
            if !plan.key.is_empty() {
                message.key(|out| {
                    plan.write_key(self.options.key_format, &cells, change.row, out);
                    Ok::<(), Error>(())
                })?;
            }
            message.value(|out| {
                self.write_message(plan, &cells, (change, is_last), out);
                Ok::<(), Error>(())
            })?;
            message.end();
            wrote = true;
        }
        self.xid = self.xid.wrapping_add(u64::from(wrote));
        Ok(())
    }

    fn refusal(&mut self, batch: &ChangeBatch, row: usize) -> Option<String> {
        self.plan(batch.schema());
        let plan = self.plan.as_ref()?;
        let change = Change::at(batch, row);
        let column =
            |index: usize, why: String| Some(format!("column `{}`: {why}", plan.schema.columns[index].name));
        let arrays = batch.rows().columns().iter().zip(&plan.schema.columns);
        for (index, (array, declared)) in arrays.enumerate() {
            if change.kind != RowKind::Delete && batch.is_unchanged(index, change.row) {
                let why = "it was left unchanged by the source and its value is not known; maxwell-json cannot say so";
                return column(index, why.to_owned());
            }
            let cells = match Cells::new(array, &declared.ty) {
                Ok(cells) => cells,
                Err(error) => return column(index, error.message().to_owned()),
            };
            let writer = &plan.columns[index];
            for row in change.before.into_iter().chain([change.row]) {
                if let Some(why) = writer.refusal(&cells, row) {
                    return column(index, why);
                }
                match writer.srid(&cells, row) {
                    Some(srid) if srid != 0 && self.options.srid == Srid::Refuse => {
                        return column(index, format!("maxwell-json has no place for SRID {srid}"));
                    }
                    _ => {}
                }
            }
        }
        None
    }
}
