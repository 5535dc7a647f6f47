//! Owns [`CanalEncoder`]: changes to messages.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use canalis_batch::ChangeBatch;
use canalis_types::{Error, Result, RowKind, TableId, TableSchema};

use super::{Zone, statement::statement, template::Template, write::has_top_bit};
use crate::{
    cells::Cells,
    json::{open_columns, string::write_string},
    message::{Change, MessageEncoder, Messages, StructureChange, changes},
};

/// How ENUM and SET are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EnumMode {
    /// By index and bit mask, as Canal does.
    #[default]
    Index,
    /// As labels, with the `sqlType` of texts.
    Label,
}

/// What becomes of an update that changes the primary key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyChanges {
    /// An UPDATE in the lane of the new key, as Canal does: where lanes are consumed apart, it may come before the last
    /// change of the old key.
    #[default]
    Update,
    /// A DELETE in the lane of the old key and an INSERT in that of the new one.
    DeleteInsert,
}

/// How a [`CanalEncoder`] writes.
#[derive(Debug, Clone, Copy)]
pub struct CanalEncoderOptions {
    /// ENUM and SET.
    pub enum_mode: EnumMode,
    /// Updates of the primary key.
    pub key_changes: KeyChanges,
    /// Zone of TIMESTAMP texts.
    pub time_zone: Zone,
    /// Whether messages have a key: a JSON object of the primary key. Canal's have none.
    pub key: bool,
    /// The field `id` of the first batch; the messages of a batch have the those of the next one more.
    pub first_id: u64,
    /// Milliseconds since the epoch, for the field `ts`, and for `es` where the time of the change is not known.
    pub clock: fn() -> i64,
}

impl Default for CanalEncoderOptions {
    fn default() -> Self {
        Self {
            enum_mode: EnumMode::default(),
            key_changes: KeyChanges::default(),
            time_zone: Zone::UTC,
            key: false,
            first_id: 1,
            clock: now,
        }
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Writes canal-json, one message a change. The lane of a message is its primary key as a JSON object of texts.
#[derive(Debug)]
pub struct CanalEncoder {
    options: CanalEncoderOptions,
    id: u64,
    templates: Vec<Template>,
    by_id: HashMap<TableId, usize>,
    last: usize,
    /// Parts of a message that are the same in a whole batch: `],"database":…,"old":` and `,"table":…,"type":"`.
    middle: Vec<u8>,
    end: Vec<u8>,
}

impl CanalEncoder {
    /// An encoder for all tables.
    pub fn new(options: CanalEncoderOptions) -> Self {
        Self {
            id: options.first_id,
            options,
            templates: Vec::new(),
            by_id: HashMap::new(),
            last: 0,
            middle: Vec::new(),
            end: Vec::new(),
        }
    }

    /// Where the template of a structure is; composed again when the structure is another.
    fn template(&mut self, schema: &Arc<TableSchema>) -> usize {
        if self.templates.get(self.last).is_some_and(|t| Arc::ptr_eq(&t.schema, schema)) {
            return self.last;
        }
        self.last = match self.by_id.get(&schema.id).copied() {
            Some(index) => {
                let known = &mut self.templates[index];
                if Arc::ptr_eq(&known.schema, schema) || known.schema == *schema {
                    known.schema = schema.clone();
                } else {
                    *known = Template::new(schema, &self.options);
                }
                index
            }
            None => {
                self.by_id.insert(schema.id.clone(), self.templates.len());
                self.templates.push(Template::new(schema, &self.options));
                self.templates.len() - 1
            }
        };
        self.last
    }

    /// Composes what is the same in a whole batch.
    fn begin_batch(&mut self, template: usize, event_time_ms: Option<i64>) {
        let template = &self.templates[template];
        let now = (self.options.clock)();
        let seconds = event_time_ms.unwrap_or(now).div_euclid(1000);
        self.middle.clear();
        self.middle.extend_from_slice(b"],");
        self.middle.extend_from_slice(&template.database);
        self.middle.extend_from_slice(itoa::Buffer::new().format(seconds * 1000).as_bytes());
        self.middle.extend_from_slice(b",\"gtid\":\"\",\"id\":");
        self.middle.extend_from_slice(itoa::Buffer::new().format(self.id).as_bytes());
        self.middle.push(b',');
        self.middle.extend_from_slice(&template.types);
        self.end.clear();
        self.end.push(b',');
        self.end.extend_from_slice(&template.table);
        self.end.extend_from_slice(itoa::Buffer::new().format(now).as_bytes());
        self.end.extend_from_slice(b",\"type\":\"");
        self.id += 1;
    }
}

/// A batch being written.
struct Writing<'w> {
    batch: &'w ChangeBatch,
    cells: &'w [Cells<'w>],
    template: &'w Template,
    middle: &'w [u8],
    end: &'w [u8],
    key: bool,
}

/// A message: its type, and the rows that it shows.
#[derive(Clone, Copy)]
struct Shown {
    kind: &'static [u8],
    row: usize,
    /// For an UPDATE the −U; for an INSERT out of an update the row that has what the other left out.
    before: Option<usize>,
}

const INSERT: &[u8] = b"INSERT";
const UPDATE: &[u8] = b"UPDATE";
const DELETE: &[u8] = b"DELETE";

impl Writing<'_> {
    fn change(&self, change: Change, mode: KeyChanges, out: &mut Messages) -> Result<(), &'static str> {
        let first = change.first();
        let shown = |kind, row, before| Shown { kind, row, before };
        match (change.kind, change.before) {
            (RowKind::Delete, _) => self.message(shown(DELETE, change.row, None), first, out),
            (_, None) => self.message(shown(INSERT, change.row, None), first, out),
            (_, Some(before)) if mode == KeyChanges::DeleteInsert && self.moves(before, change.row) => {
                self.message(shown(DELETE, before, None), first, out)?;
                self.message(shown(INSERT, change.row, Some(before)), first, out)
            }
            (_, before) => self.message(shown(UPDATE, change.row, before), first, out),
        }
    }

    /// Whether an update changes the key.
    fn moves(&self, before: usize, after: usize) -> bool {
        self.template.key.iter().any(|index| {
            !self.batch.is_unchanged(*index, after) && !self.cells[*index].is_same(before, after)
        })
    }

    fn message(&self, shown: Shown, first: usize, out: &mut Messages) -> Result<(), &'static str> {
        let mut writer = out.begin(first);
        writer.value(|out| self.value(shown, out))?;
        if !self.template.key.is_empty() {
            if self.key {
                writer.key(|out| self.key(shown, out))?;
            } else {
                writer.lane(|out| self.key(shown, out))?;
            }
        }
        writer.end();
        Ok(())
    }

    fn value(&self, shown: Shown, out: &mut Vec<u8>) -> Result<(), &'static str> {
        out.extend_from_slice(b"{\"data\":[");
        let stand_in = shown.before.filter(|_| shown.kind == INSERT);
        self.object(out, |index| match (self.batch.is_unchanged(index, shown.row), stand_in) {
            (false, _) => Some(shown.row),
            (true, Some(other)) if !self.batch.is_unchanged(index, other) => Some(other),
            (true, _) => None,
        })?;
        out.extend_from_slice(self.middle);
        match shown.before.filter(|_| shown.kind == UPDATE) {
            None => out.extend_from_slice(b"null"),
            Some(before) => {
                out.push(b'[');
                self.object(out, |index| {
                    let known = |row| !self.batch.is_unchanged(index, row);
                    let changed =
                        known(before) && known(shown.row) && !self.cells[index].is_same(before, shown.row);
                    changed.then_some(before)
                })?;
                out.push(b']');
            }
        }
        out.push(b',');
        out.extend_from_slice(&self.template.key_names);
        let top = |index: usize| has_top_bit(&self.cells[index], shown.row);
        if self.template.promoted.iter().any(|index| top(*index)) {
            self.template.write_sql_types(out, top);
        } else {
            out.extend_from_slice(&self.template.sql_types);
        }
        out.extend_from_slice(self.end);
        out.extend_from_slice(shown.kind);
        out.extend_from_slice(b"\"}");
        Ok(())
    }

    /// Appends an object of the columns for which `row_of` names a row to take the value from.
    fn object(&self, out: &mut Vec<u8>, row_of: impl Fn(usize) -> Option<usize>) -> Result<(), &'static str> {
        out.push(b'{');
        let mut separate = false;
        for (index, (column, cells)) in self.template.columns.iter().zip(self.cells).enumerate() {
            let Some(row) = row_of(index) else { continue };
            if separate {
                out.push(b',');
            }
            separate = true;
            out.extend_from_slice(&column.name);
            column.form.write(cells, row, out)?;
        }
        out.push(b'}');
        Ok(())
    }

    fn key(&self, shown: Shown, out: &mut Vec<u8>) -> Result<(), &'static str> {
        for (at, index) in self.template.key.iter().enumerate() {
            out.push(if at == 0 { b'{' } else { b',' });
            let row = match shown.before {
                Some(before) if self.batch.is_unchanged(*index, shown.row) => before,
                _ => shown.row,
            };
            let column = &self.template.columns[*index];
            out.extend_from_slice(&column.name);
            column.form.write(&self.cells[*index], row, out)?;
        }
        out.push(b'}');
        Ok(())
    }
}

impl MessageEncoder for CanalEncoder {
    fn encode(&mut self, batch: &ChangeBatch, skip: &[usize], out: &mut Messages) -> Result<()> {
        let template = self.template(batch.schema());
        self.begin_batch(template, batch.event_time_ms);
        let cells = open_columns(batch)?;
        let writing = Writing {
            batch,
            cells: &cells,
            template: &self.templates[template],
            middle: &self.middle,
            end: &self.end,
            key: self.options.key,
        };
        for change in changes(batch, skip) {
            writing.change(change, self.options.key_changes, out).map_err(|why| {
                Error::internal(format!("row {} of {}: {why}", change.first(), batch.schema().id))
            })?;
        }
        Ok(())
    }

    fn refusal(&mut self, batch: &ChangeBatch, row: usize) -> Option<String> {
        let index = self.template(batch.schema());
        let template = &self.templates[index];
        let change = Change::at(batch, row);
        for index in &template.refusing {
            let column = &batch.schema().columns[*index];
            let cells = match Cells::new(batch.rows().column(*index), &column.ty) {
                Ok(cells) => cells,
                Err(error) => return Some(error.to_string()),
            };
            for row in change.before.into_iter().chain([change.row]) {
                let form = &template.columns[*index].form;
                if !batch.is_unchanged(*index, row)
                    && let Err(why) = form.write(&cells, row, &mut self.middle)
                {
                    return Some(format!("column `{}`: {why}", column.name));
                }
                self.middle.clear();
            }
        }
        None
    }

    fn encode_structure(&mut self, change: &StructureChange, out: &mut Messages) -> Result<()> {
        let (kind, sql) = statement(change);
        let now = (self.options.clock)();
        let id = &change.after.id;
        let mut writer = out.begin(0);
        writer.value(|out| -> Result<()> {
            out.extend_from_slice(b"{\"data\":null,\"database\":");
            write_string(out, id.schema.as_deref().unwrap_or_default().as_bytes());
            let seconds = now.div_euclid(1000) * 1000;
            out.extend_from_slice(format!(",\"es\":{seconds},\"gtid\":\"\",\"id\":{}", self.id).as_bytes());
            out.extend_from_slice(
                b",\"isDdl\":true,\"mysqlType\":null,\"old\":null,\"pkNames\":null,\"sql\":",
            );
            write_string(out, sql.as_bytes());
            out.extend_from_slice(b",\"sqlType\":null,\"table\":");
            write_string(out, id.table.as_bytes());
            out.extend_from_slice(format!(",\"ts\":{now},\"type\":\"{kind}\"}}").as_bytes());
            Ok(())
        })?;
        writer.end();
        self.id += 1;
        Ok(())
    }
}
