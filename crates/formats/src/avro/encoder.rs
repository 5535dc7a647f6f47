//! Owns [`AvroEncoder`]: rows to messages in Avro.

use std::{
    collections::HashSet,
    fmt,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use canalis_batch::ChangeBatch;
use canalis_types::{Code, Error, Result, RowKind, TableId, TableSchema};

use super::{
    AvroKind, SchemaSource, SubjectNames,
    names::valid,
    out::{Out, Schemas},
    write::{has_nulls, refusal, write_bytes, write_cell, write_long, write_optional},
};
use crate::{
    cells::Cells,
    debezium::{Clock, UNAVAILABLE},
    message::{Change, MessageEncoder, Messages, changes},
};

/// Tells the topic of a table, after which subjects may be named.
pub type TopicOf = Arc<dyn Fn(&TableId) -> String + Send + Sync>;

/// How an [`AvroEncoder`] writes.
#[derive(Clone)]
pub struct AvroEncoderOptions {
    /// What messages hold.
    pub kind: AvroKind,
    /// Where schemas are registered; without it messages have no header.
    pub registry: Option<Arc<dyn SchemaSource>>,
    /// Names of subjects.
    pub subjects: SubjectNames,
    /// Topics of tables.
    pub topics: TopicOf,
    /// Name of the source in Debezium's form (`topic.prefix`).
    pub server_name: String,
    /// Version that messages in Debezium's form say they are of.
    pub version: String,
    /// Deletes in Debezium's form are followed by tombstones.
    pub tombstones: bool,
    /// Tells the time at which messages are made.
    pub clock: Clock,
}

impl AvroEncoderOptions {
    /// Plain rows without a registry; topics are named as tables are.
    pub fn new(kind: AvroKind) -> Self {
        Self {
            kind,
            registry: None,
            subjects: SubjectNames::default(),
            topics: Arc::new(ToString::to_string),
            server_name: "canalis".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            tombstones: true,
            clock: Arc::new(SystemTime::now),
        }
    }
}

/// Encodes Avro.
pub struct AvroEncoder {
    options: AvroEncoderOptions,
    plans: Vec<Plan>,
    keys: [Vec<u8>; 2],
    /// What stands behind the images, but for `op` in the middle of it.
    source: Vec<u8>,
    times: Vec<u8>,
}

impl fmt::Debug for AvroEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AvroEncoder").field("kind", &self.options.kind).finish_non_exhaustive()
    }
}

/// How to write a table.
struct Plan {
    schema: Arc<TableSchema>,
    columns: Vec<ColumnWriter>,
    key: Vec<usize>,
    schemas: Schemas,
    /// Headers of value and key, once the schemas are registered.
    headers: Option<[Vec<u8>; 2]>,
    /// Why no row of the table can be written.
    clash: Option<String>,
}

struct ColumnWriter {
    form: Out,
    nullable: bool,
    /// Whether the form has room for the placeholder of a value that is not known.
    is_text: bool,
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

impl Plan {
    fn new(schema: &Arc<TableSchema>, options: &AvroEncoderOptions) -> Self {
        let writer = |c: &canalis_types::Column| {
            let form = Out::of(c, options.kind);
            let is_text = form == Out::Iso || c.ty.is_text() || (c.ty.is_binary() && form == Out::Plain);
            ColumnWriter { form, nullable: c.nullable, is_text }
        };
        let mut names = HashSet::new();
        let twice = schema.columns.iter().find(|c| !names.insert(valid(&c.name)));
        Self {
            columns: schema.columns.iter().map(writer).collect(),
            key: schema.key_indexes(),
            schemas: Schemas::of(schema, options.kind, &options.server_name),
            headers: options.registry.is_none().then(Default::default),
            clash: twice.map(|c| format!("column `{}` has the Avro name of another column", c.name)),
            schema: schema.clone(),
        }
    }

    fn register(&mut self, options: &AvroEncoderOptions) -> Result<()> {
        let (None, Some(registry)) = (&self.headers, &options.registry) else { return Ok(()) };
        let topic = (options.topics)(&self.schema.id);
        let header = |part: &str, (name, text): &(String, String)| -> Result<Vec<u8>> {
            let subject = options.subjects.subject(&topic, part, name);
            let doing = || format!("registering the schema of {} as `{subject}`", self.schema.id);
            let id = registry.register(&subject, text).map_err(|e| e.context(doing()))?;
            let mut header = vec![0];
            header.extend_from_slice(&id.to_be_bytes());
            Ok(header)
        };
        let value = header("value", &self.schemas.value)?;
        let key = if self.key.is_empty() { Vec::new() } else { header("key", &self.schemas.key)? };
        self.headers = Some([value, key]);
        Ok(())
    }

    fn header(&self, part: usize) -> &[u8] {
        self.headers.as_ref().map_or(&[], |headers| &headers[part])
    }

    fn write_key(&self, cells: &[Cells<'_>], row: usize, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(self.header(1));
        for column in &self.key {
            write_cell(self.columns[*column].form, &cells[*column], row, out);
        }
    }

    fn write_row(&self, rows: &Rows<'_>, row: usize, out: &mut Vec<u8>) {
        for (index, (column, cells)) in self.columns.iter().zip(&rows.cells).enumerate() {
            let is_unchanged = rows.is_unchanged(index, row);
            let is_null = cells.is_null(row) && !is_unchanged;
            if column.nullable {
                write_long(out, i64::from(!is_null));
            }
            if is_unchanged {
                write_bytes(out, UNAVAILABLE.as_bytes());
            } else if !is_null {
                write_cell(column.form, cells, row, out);
            }
        }
    }

    /// Whether an image lacks cells: then it is not written where it stands before a change.
    fn is_partial(&self, rows: &Rows<'_>, row: usize) -> bool {
        self.columns.iter().enumerate().any(|(index, column)| {
            rows.is_unchanged(index, row) || (!column.nullable && rows.cells[index].is_null(row))
        })
    }

    fn image(&self, rows: &Rows<'_>, row: Option<usize>, out: &mut Vec<u8>) {
        write_long(out, i64::from(row.is_some()));
        if let Some(row) = row {
            self.write_row(rows, row, out);
        }
    }
}

/// One message in Debezium's form.
struct Event<'a> {
    op: u8,
    /// Row with which its change begins.
    first: usize,
    before: Option<usize>,
    after: Option<usize>,
    key: &'a [u8],
}

impl AvroEncoder {
    /// An encoder for tables as they come.
    pub fn new(options: AvroEncoderOptions) -> Self {
        let keys = [Vec::new(), Vec::new()];
        Self { options, plans: Vec::new(), keys, source: Vec::new(), times: Vec::new() }
    }

    fn plan(&mut self, schema: &Arc<TableSchema>) -> usize {
        if let Some(index) = self.plans.iter().position(|p| Arc::ptr_eq(&p.schema, schema)) {
            return index;
        }
        let mut plan = Plan::new(schema, &self.options);
        match self.plans.iter().position(|p| p.schema.id == schema.id) {
            Some(index) => {
                let before = &self.plans[index];
                let is_same = before.schemas.value.1 == plan.schemas.value.1;
                if is_same && before.schemas.key.1 == plan.schemas.key.1 {
                    plan.headers = before.headers.clone();
                } else if self.options.registry.is_none() {
                    let why = "its structure has changed, and messages without a schema registry hold one structure only";
                    plan.clash = Some(why.to_owned());
                }
                self.plans[index] = plan;
                index
            }
            None => {
                self.plans.push(plan);
                self.plans.len() - 1
            }
        }
    }

    fn plain(
        &self,
        plan: &Plan,
        rows: &Rows<'_>,
        change: Change,
        keys: &mut [Vec<u8>; 2],
        out: &mut Messages,
    ) {
        let [old, new] = keys;
        let keyed = !plan.key.is_empty();
        if keyed {
            plan.write_key(&rows.cells, change.row, new);
        }
        if let (true, Some(before)) = (keyed, change.before) {
            plan.write_key(&rows.cells, before, old);
            if old != new {
                tombstone(change.first(), old, out);
            }
        }
        if change.kind == RowKind::Delete {
            return tombstone(change.first(), new, out);
        }
        let mut message = out.begin(change.first());
        if keyed {
            let Ok(()) = message.key(|out| copy(out, new));
        }
        let Ok(()) = message.value(|out| {
            out.extend_from_slice(plan.header(0));
            plan.write_row(rows, change.row, out);
            copy(out, &[])
        });
        message.end();
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
        plan.write_key(&rows.cells, row, new);
        let event = |op, before, after, key| Event { op, first, before, after, key };
        let whole = |row: usize| (!plan.is_partial(rows, row)).then_some(row);
        match (change.kind, change.before) {
            (RowKind::Delete, _) => self.delete(plan, rows, &event(b'd', whole(row), None, new), out),
            (_, Some(before)) => {
                plan.write_key(&rows.cells, before, old);
                if old != new {
                    self.delete(plan, rows, &event(b'd', whole(before), None, old), out);
                    return self.event(plan, rows, &event(b'c', None, Some(row), new), out);
                }
                self.event(plan, rows, &event(b'u', whole(before), Some(row), new), out);
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
            tombstone(event.first, event.key, out);
        }
    }

    fn event(&self, plan: &Plan, rows: &Rows<'_>, event: &Event<'_>, out: &mut Messages) {
        let mut message = out.begin(event.first);
        if !plan.key.is_empty() {
            let Ok(()) = message.key(|out| copy(out, event.key));
        }
        let Ok(()) = message.value(|out| {
            copy(out, plan.header(0))?;
            plan.image(rows, event.before, out);
            plan.image(rows, event.after, out);
            out.extend_from_slice(&self.source);
            // No transaction.
            write_long(out, 0);
            write_bytes(out, &[event.op]);
            copy(out, &self.times)
        });
        message.end();
    }

    /// `source` and the times, which are the same for all rows of a batch.
    fn frame(&mut self, batch: &ChangeBatch) -> Result<()> {
        let now = (self.options.clock)().duration_since(UNIX_EPOCH);
        let now = now.map_err(|e| Error::internal("the clock is before 1970").with_source(e))?;
        let now_ns = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        let time = batch.event_time_ms;
        let (ms, us, ns) = match time {
            Some(ms) => (ms, ms.saturating_mul(1000), ms.saturating_mul(1_000_000)),
            None => (now_ns / 1_000_000, now_ns / 1000, now_ns),
        };
        let id = &batch.schema().id;
        let out = &mut self.source;
        out.clear();
        for text in [&self.options.version, "mysql", &self.options.server_name] {
            write_bytes(out, text.as_bytes());
        }
        write_long(out, ms);
        // The text is the first branch of `snapshot`.
        write_long(out, 0);
        write_bytes(out, if time.is_none() { b"true" } else { b"false" });
        write_bytes(out, id.schema.as_deref().unwrap_or_default().as_bytes());
        write_optional(out, None);
        for number in [us, ns] {
            write_long(out, 1);
            write_long(out, number);
        }
        write_optional(out, Some(&id.table));
        // server_id, gtid, file, pos, row, thread, query: what a batch does not carry.
        write_long(out, 0);
        write_optional(out, None);
        write_bytes(out, b"");
        write_long(out, 0);
        write_long(out, 0);
        write_optional(out, None);
        write_optional(out, None);
        self.times.clear();
        for number in [now_ns / 1_000_000, now_ns / 1000, now_ns] {
            write_long(&mut self.times, 1);
            write_long(&mut self.times, number);
        }
        Ok(())
    }
}

fn tombstone(first: usize, key: &[u8], out: &mut Messages) {
    let mut message = out.begin(first);
    let Ok(()) = message.key(|out| copy(out, key));
    message.end();
}

fn copy(out: &mut Vec<u8>, bytes: &[u8]) -> std::result::Result<(), std::convert::Infallible> {
    out.extend_from_slice(bytes);
    Ok(())
}

impl MessageEncoder for AvroEncoder {
    fn encode(&mut self, batch: &ChangeBatch, skip: &[usize], out: &mut Messages) -> Result<()> {
        let index = self.plan(batch.schema());
        if let Some(why) = &self.plans[index].clash {
            if changes(batch, skip).next().is_none() {
                return Ok(());
            }
            return Err(Error::new(Code::TargetIncompatible, format!("{}: {why}", batch.schema().id)));
        }
        let options = &self.options;
        self.plans[index].register(options)?;
        let columns = batch.rows().columns().iter().zip(&batch.schema().columns);
        let cells = columns.map(|(array, column)| Cells::new(array, &column.ty)).collect::<Result<_>>()?;
        let rows = Rows { batch, cells, has_marks: batch.unchanged().is_some() };
        if self.options.kind == AvroKind::Debezium {
            self.frame(batch)?;
        }
        let mut keys = std::mem::take(&mut self.keys);
        for change in changes(batch, skip) {
            match self.options.kind {
                AvroKind::Rows => self.plain(&self.plans[index], &rows, change, &mut keys, out),
                AvroKind::Debezium => self.change(&self.plans[index], &rows, change, &mut keys, out),
            }
        }
        self.keys = keys;
        Ok(())
    }

    fn refusal(&mut self, batch: &ChangeBatch, row: usize) -> Option<String> {
        let index = self.plan(batch.schema());
        let plan = &self.plans[index];
        if plan.clash.is_some() {
            return plan.clash.clone();
        }
        let change = Change::at(batch, row);
        let is_plain = self.options.kind == AvroKind::Rows;
        if plan.key.is_empty() && change.kind != RowKind::Insert && is_plain {
            return Some(
                "the table has no key, and a message of a plain row cannot say which row changed".into(),
            );
        }
        let images = if is_plain { None } else { change.before };
        let has_marks = batch.unchanged().is_some();
        for (column, writer) in plan.columns.iter().enumerate() {
            let named = |why: &str| Some(format!("column `{}`: {why}", plan.schema.columns[column].name));
            let array = batch.rows().column(column);
            let is_key = plan.key.contains(&column);
            let can_lack = has_nulls(array) && (is_key || !writer.nullable || has_marks);
            if !can_lack && !writer.can_fail(&plan.schema.columns[column].ty) {
                continue;
            }
            let Ok(cells) = Cells::new(array, &plan.schema.columns[column].ty) else { continue };
            for image in change.before.into_iter().chain([change.row]) {
                let is_after = image == change.row && change.kind != RowKind::Delete;
                let is_unchanged = has_marks && batch.is_unchanged(column, image);
                if is_key && cells.is_null(image) {
                    return named("it is of the key, and NULL or not known");
                }
                if is_after && is_unchanged && (is_plain || !writer.is_text) {
                    return named("it was left unchanged by the source and its value is not known");
                }
                if is_after && cells.is_null(image) && !is_unchanged && !writer.nullable {
                    return named("NULL in a column that is NOT NULL");
                }
                let is_written = is_key || is_after || !is_plain;
                if is_written
                    && !cells.is_null(image)
                    && let Some(why) = refusal(writer.form, &cells, image)
                {
                    return named(why);
                }
            }
        }
        let has_row =
            |image: usize| (0..plan.columns.len()).any(|c| has_marks && batch.is_unchanged(c, image));
        let lacks_before = images.is_some_and(has_row) || (change.kind == RowKind::Delete && has_row(row));
        (plan.key.is_empty() && lacks_before)
            .then(|| "the row before the change is not known, and the table has no key".to_owned())
    }
}

impl ColumnWriter {
    fn can_fail(&self, ty: &canalis_types::LogicalType) -> bool {
        use canalis_types::LogicalType as L;
        matches!(ty, L::Date | L::Time { .. } | L::Timestamp { .. } | L::TimestampTz { .. } | L::Geometry)
    }
}
