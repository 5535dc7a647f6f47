//! Owns [`DebeziumEncoder`]: rows to messages of Debezium.

use std::{
    fmt,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use canalis_batch::ChangeBatch;
use canalis_types::{Error, Result, RowKind, TableSchema};

use super::{
    BigintUnsignedMode, BinaryMode, Connector, DecimalMode, TimeMode, ZeroDates,
    refuse::{self, Check},
    source_block::{write_source, write_times},
    write_cell::{CellWriter, Out},
    write_schema::{write_envelope, write_key},
};
use crate::{
    cells::Cells,
    json::string::write_string,
    message::{Change, MessageEncoder, Messages, changes},
};

/// How a [`DebeziumEncoder`] writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DebeziumEncoderOptions {
    /// Messages carry their schema (`schemas.enable`).
    pub schema: bool,
    /// Decimals.
    pub decimal_mode: DecimalMode,
    /// `BIGINT UNSIGNED`.
    pub bigint_unsigned: BigintUnsignedMode,
    /// Bytes.
    pub binary_mode: BinaryMode,
    /// Dates and times.
    pub time_mode: TimeMode,
    /// Dates that no calendar has.
    pub zero_dates: ZeroDates,
    /// Name of the source in messages and of their schemas (`topic.prefix`).
    pub server_name: String,
    /// Connector that messages say they are of.
    pub connector: Connector,
    /// Version that messages say they are of.
    pub version: String,
    /// Deletes are followed by tombstones (`tombstones.on.delete`).
    pub tombstones: bool,
}

impl Default for DebeziumEncoderOptions {
    fn default() -> Self {
        Self {
            schema: false,
            decimal_mode: DecimalMode::default(),
            bigint_unsigned: BigintUnsignedMode::default(),
            binary_mode: BinaryMode::default(),
            time_mode: TimeMode::default(),
            zero_dates: ZeroDates::default(),
            server_name: "canalis".into(),
            connector: Connector::default(),
            version: env!("CARGO_PKG_VERSION").into(),
            tombstones: true,
        }
    }
}

/// Tells the time at which messages are made.
pub type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// Encodes debezium-json.
pub struct DebeziumEncoder {
    options: DebeziumEncoderOptions,
    clock: Clock,
    plans: Vec<Plan>,
    /// `,"source":…,"op":"` of the batch under way.
    source: Vec<u8>,
    /// `","ts_ms":…}` of the batch under way.
    times: Vec<u8>,
    keys: [Vec<u8>; 2],
}

impl fmt::Debug for DebeziumEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DebeziumEncoder").field("options", &self.options).finish_non_exhaustive()
    }
}

/// How to write a table.
struct Plan {
    schema: Arc<TableSchema>,
    columns: Vec<ColumnWriter>,
    key: Vec<KeyWriter>,
    checks: Vec<(usize, Check)>,
    /// Everything before the value of `before`.
    head: Vec<u8>,
    /// Everything before the members of the key.
    key_head: Vec<u8>,
    /// Everything behind them.
    key_tail: &'static [u8],
    /// Everything behind the payload.
    tail: &'static [u8],
}

struct ColumnWriter {
    /// `"name":`, a comma before all but the first.
    member: Vec<u8>,
    cell: CellWriter,
    is_key: bool,
}

struct KeyWriter {
    column: usize,
    member: Vec<u8>,
}

impl Plan {
    fn new(schema: &Arc<TableSchema>, options: &DebeziumEncoderOptions) -> Self {
        let key = schema.key_indexes();
        let cell = |index: usize| {
            let column = &schema.columns[index];
            CellWriter {
                form: Out::of(column, options),
                nullable: column.nullable,
                zero_dates: options.zero_dates,
            }
        };
        let columns = (0..schema.columns.len()).map(|index| ColumnWriter {
            member: member(&schema.columns[index].name, index),
            cell: cell(index),
            is_key: key.contains(&index),
        });
        let keys = key.iter().enumerate().map(|(at, column)| KeyWriter {
            column: *column,
            member: member(&schema.columns[*column].name, at),
        });
        let checks = (0..schema.columns.len())
            .filter_map(|index| Some((index, refuse::check(cell(index), &schema.columns[index].ty)?)));
        let (mut head, mut key_head) = (Vec::new(), Vec::new());
        if options.schema {
            head.extend_from_slice(b"{\"schema\":");
            write_envelope(&mut head, &schema.id, &schema.columns, options);
            head.extend_from_slice(b",\"payload\":");
            key_head.extend_from_slice(b"{\"schema\":");
            write_key(&mut key_head, &schema.id, key.iter().map(|index| &schema.columns[*index]), options);
            key_head.extend_from_slice(b",\"payload\":");
        }
        head.extend_from_slice(b"{\"before\":");
        key_head.push(b'{');
        Self {
            columns: columns.collect(),
            key: keys.collect(),
            checks: checks.collect(),
            schema: schema.clone(),
            head,
            key_head,
            key_tail: if options.schema { b"}}" } else { b"}" },
            tail: if options.schema { b"}" } else { b"" },
        }
    }

    fn write_key(&self, cells: &[Cells<'_>], row: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.key_head);
        for key in &self.key {
            out.extend_from_slice(&key.member);
            self.columns[key.column].cell.write(&cells[key.column], row, out);
        }
        out.extend_from_slice(self.key_tail);
    }

    fn write_image(&self, rows: &Rows<'_>, row: Option<usize>, out: &mut Vec<u8>) {
        let Some(row) = row else { return out.extend_from_slice(b"null") };
        out.push(b'{');
        for (index, (column, cells)) in self.columns.iter().zip(&rows.cells).enumerate() {
            out.extend_from_slice(&column.member);
            if !rows.is_unchanged(index, row) {
                column.cell.write(cells, row, out);
            } else if rows.batch.kinds()[row] != RowKind::UpdateAfter
                || !column.cell.form.write_unavailable(out)
            {
                out.extend_from_slice(b"null");
            }
        }
        out.push(b'}');
    }

    /// Whether the image before an update lacks cells beside its key: then it is not written.
    fn is_partial(&self, rows: &Rows<'_>, row: usize) -> bool {
        rows.has_marks && (0..self.columns.len()).any(|index| rows.batch.is_unchanged(index, row))
    }
}

fn member(name: &str, index: usize) -> Vec<u8> {
    let mut out = Vec::new();
    if index > 0 {
        out.push(b',');
    }
    write_string(&mut out, name.as_bytes());
    out.push(b':');
    out
}

/// A batch with its columns opened.
struct Rows<'a> {
    batch: &'a ChangeBatch,
    cells: Vec<Cells<'a>>,
    has_marks: bool,
}

impl Rows<'_> {
    fn is_unchanged(&self, column: usize, row: usize) -> bool {
        self.has_marks && self.batch.is_unchanged(column, row)
    }
}

/// One message.
struct Event<'a> {
    op: u8,
    /// Row with which its change begins.
    first: usize,
    before: Option<usize>,
    after: Option<usize>,
    key: &'a [u8],
}

impl DebeziumEncoder {
    /// An encoder that takes the time from the system.
    pub fn new(options: DebeziumEncoderOptions) -> Self {
        Self::with_clock(options, Arc::new(SystemTime::now))
    }

    /// An encoder that takes the time from `clock`.
    pub fn with_clock(options: DebeziumEncoderOptions, clock: Clock) -> Self {
        Self {
            options,
            clock,
            plans: Vec::new(),
            source: Vec::new(),
            times: Vec::new(),
            keys: [Vec::new(), Vec::new()],
        }
    }

    fn plan(&mut self, schema: &Arc<TableSchema>) -> usize {
        if let Some(index) = self.plans.iter().position(|p| Arc::ptr_eq(&p.schema, schema)) {
            return index;
        }
        let plan = Plan::new(schema, &self.options);
        match self.plans.iter().position(|p| p.schema.id == schema.id) {
            Some(index) => {
                self.plans[index] = plan;
                index
            }
            None => {
                self.plans.push(plan);
                self.plans.len() - 1
            }
        }
    }

    fn change(
        &self,
        plan: &Plan,
        rows: &Rows<'_>,
        change: Change,
        keys: &mut [Vec<u8>; 2],
        out: &mut Messages,
    ) {
        let (first, row) = (change.first(), change.row);
        let [old, new] = keys;
        new.clear();
        plan.write_key(&rows.cells, row, new);
        let event = |op, before, after, key| Event { op, first, before, after, key };
        match (change.kind, change.before) {
            (RowKind::Delete, _) => self.delete(plan, rows, &event(b'd', Some(row), None, new), out),
            (_, Some(before)) => {
                old.clear();
                plan.write_key(&rows.cells, before, old);
                if old != new {
                    self.delete(plan, rows, &event(b'd', Some(before), None, old), out);
                    return self.event(plan, rows, &event(b'c', None, Some(row), new), out);
                }
                let before = (!plan.is_partial(rows, before)).then_some(before);
                self.event(plan, rows, &event(b'u', before, Some(row), new), out);
            }
            _ => {
                let op = if rows.batch.event_time_ms.is_none() { b'r' } else { b'c' };
                self.event(plan, rows, &event(op, None, Some(row), new), out);
            }
        }
    }

    fn delete(&self, plan: &Plan, rows: &Rows<'_>, event: &Event<'_>, out: &mut Messages) {
        self.event(plan, rows, event, out);
        if self.options.tombstones && !plan.key.is_empty() {
            let mut message = out.begin(event.first);
            let Ok(()) = message.key(|out| copy(out, event.key));
            message.end();
        }
    }

    fn event(&self, plan: &Plan, rows: &Rows<'_>, event: &Event<'_>, out: &mut Messages) {
        let mut message = out.begin(event.first);
        if !plan.key.is_empty() {
            let Ok(()) = message.key(|out| copy(out, event.key));
        }
        let Ok(()) = message.value(|out| {
            out.extend_from_slice(&plan.head);
            plan.write_image(rows, event.before, out);
            out.extend_from_slice(b",\"after\":");
            plan.write_image(rows, event.after, out);
            out.extend_from_slice(&self.source);
            out.push(event.op);
            out.extend_from_slice(&self.times);
            copy(out, plan.tail)
        });
        message.end();
    }
}

fn copy(out: &mut Vec<u8>, bytes: &[u8]) -> std::result::Result<(), std::convert::Infallible> {
    out.extend_from_slice(bytes);
    Ok(())
}

impl MessageEncoder for DebeziumEncoder {
    fn encode(&mut self, batch: &ChangeBatch, skip: &[usize], out: &mut Messages) -> Result<()> {
        let columns = batch.rows().columns().iter().zip(&batch.schema().columns);
        let cells = columns.map(|(array, column)| Cells::new(array, &column.ty)).collect::<Result<_>>()?;
        let rows = Rows { batch, cells, has_marks: batch.unchanged().is_some() };
        let now = (self.clock)().duration_since(UNIX_EPOCH);
        let now = now.map_err(|e| Error::internal("the clock is before 1970").with_source(e))?;
        let now_ns = i128::try_from(now.as_nanos()).unwrap_or(i128::MAX);
        let index = self.plan(batch.schema());
        self.source.clear();
        write_source(&mut self.source, &batch.schema().id, &self.options, batch.event_time_ms, now_ns);
        self.times.clear();
        write_times(&mut self.times, now_ns);
        let mut keys = std::mem::take(&mut self.keys);
        for change in changes(batch, skip) {
            self.change(&self.plans[index], &rows, change, &mut keys, out);
        }
        self.keys = keys;
        Ok(())
    }

    fn refusal(&mut self, batch: &ChangeBatch, row: usize) -> Option<String> {
        let index = self.plan(batch.schema());
        let plan = &self.plans[index];
        if plan.checks.is_empty() && batch.unchanged().is_none() {
            return None;
        }
        let change = Change::at(batch, row);
        let name =
            |column: usize, why: &str| Some(format!("column `{}`: {why}", plan.schema.columns[column].name));
        for row in change.before.into_iter().chain([change.row]) {
            for (column, check) in &plan.checks {
                if let Some(why) = refuse::refusal(*check, self.options.zero_dates, batch, *column, row) {
                    return name(*column, why);
                }
            }
        }
        if batch.unchanged().is_some() {
            for (index, column) in plan.columns.iter().enumerate() {
                let is_missing = |row: usize| batch.is_unchanged(index, row);
                let in_key =
                    column.is_key && (is_missing(change.row) || change.before.is_some_and(is_missing));
                let in_row = is_missing(change.row) && change.kind != RowKind::Delete;
                if in_key || (in_row && !column.cell.form.write_unavailable(&mut Vec::new())) {
                    return name(
                        index,
                        "its value was not sent by the source, and the format has nothing to say that with",
                    );
                }
            }
        }
        None
    }
}
