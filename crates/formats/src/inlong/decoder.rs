//! Owns [`InlongDecoder`].

use std::{borrow::Cow, sync::Arc};

use canalis_batch::{BatchBuilder, ChangeBatch};
use canalis_types::{Result, RowKind, TableId, TableSchema};

use super::{
    InlongBody, InlongOptions,
    split::{End, Marks, part},
};
use crate::{
    ValueDecoder,
    json::UnknownMembers,
    message::{Gatherer, Message, MessageDecoder, Slot, Step, StructureChange, Undecodable},
};

/// Reads InLong bodies as rows of one table.
#[derive(Debug)]
pub struct InlongDecoder {
    options: InlongOptions,
    marks: Marks,
    table: usize,
    rows: Gatherer<Plan>,
    value: Vec<u8>,
    name: Vec<u8>,
}

#[derive(Debug)]
struct Plan {
    columns: Vec<(Vec<u8>, ValueDecoder)>,
    seen: Vec<bool>,
}

impl Plan {
    fn new(schema: &TableSchema) -> Self {
        let columns = schema.columns.iter().map(|c| (c.name.clone().into_bytes(), ValueDecoder::new(c)));
        Self { columns: columns.collect(), seen: vec![false; schema.columns.len()] }
    }

    fn append(
        &mut self,
        builder: &mut BatchBuilder,
        index: usize,
        value: Option<&[u8]>,
    ) -> std::result::Result<(), String> {
        let (name, decoder) = &self.columns[index];
        let column = builder.column(index);
        self.seen[index] = true;
        let outcome = match value {
            Some(text) => decoder.append(column, text),
            None => decoder.append_null(column),
        };
        outcome.map_err(|e| format!("column `{}`: {e}", String::from_utf8_lossy(name)))
    }
}

impl InlongDecoder {
    /// A decoder of bodies that hold rows of `table`.
    pub fn new(options: InlongOptions, table: Arc<TableSchema>) -> Self {
        let separators = match options.body {
            InlongBody::Csv { separator } => vec![separator],
            InlongBody::KeyValue { entry_separator, kv_separator } => vec![entry_separator, kv_separator],
        };
        let (escape, quote, line) = (options.escape, options.quote, options.line_separator);
        let marks = Marks { separators, escape, quote, line };
        let plan = Plan::new(&table);
        let mut rows = Gatherer::default();
        let table = rows.put(table, plan);
        Self { options, marks, table, rows, value: Vec::new(), name: Vec::new() }
    }

    /// Appends the rows of a body; says whether there was one.
    fn body(&mut self, body: &[u8]) -> std::result::Result<bool, String> {
        let Self { options, marks, table, rows, value, name } = self;
        let Slot { plan, builder, .. } = rows.slot(*table);
        let before = builder.len();
        let mut rest = body;
        while !rest.is_empty() {
            // An empty line is no record of several fields.
            if plan.columns.len() > 1 && marks.line.is_some_and(|line| rest[0] == line) {
                rest = &rest[1..];
                continue;
            }
            let length = rest.len();
            match options.body {
                InlongBody::Csv { .. } => csv(&mut rest, marks, options, (plan, builder), value)?,
                InlongBody::KeyValue { .. } => {
                    key_value(&mut rest, marks, options, (plan, builder), (name, value))?;
                }
            }
            builder.end_row(RowKind::Insert, length - rest.len());
        }
        Ok(builder.len() > before)
    }
}

fn is_null(options: &InlongOptions, plain: bool, value: &[u8]) -> bool {
    plain && options.null_literal.as_deref() == Some(value)
}

fn csv(
    rest: &mut &[u8],
    marks: &Marks,
    options: &InlongOptions,
    (plan, builder): (&mut Plan, &mut BatchBuilder),
    value: &mut Vec<u8>,
) -> std::result::Result<(), String> {
    let wanted = plan.columns.len();
    for index in 0.. {
        let (plain, end) = part(rest, marks, value)?;
        if index == wanted {
            return Err(format!("record has more fields than the {wanted} columns of the table"));
        }
        let field = (!is_null(options, plain, value)).then_some(value.as_slice());
        plan.append(builder, index, field)?;
        if !matches!(end, End::Separator(_)) {
            if index + 1 < wanted {
                return Err(format!("record has {} fields, the table has {wanted} columns", index + 1));
            }
            break;
        }
    }
    Ok(())
}

fn key_value(
    rest: &mut &[u8],
    marks: &Marks,
    options: &InlongOptions,
    (plan, builder): (&mut Plan, &mut BatchBuilder),
    (name, value): (&mut Vec<u8>, &mut Vec<u8>),
) -> std::result::Result<(), String> {
    const ENTRY: usize = 0;
    const PAIR: usize = 1;
    plan.seen.fill(false);
    // A value may hold the separator of names.
    let in_value = Marks { separators: vec![marks.separators[ENTRY]], ..marks.clone() };
    loop {
        let (_, end) = part(rest, marks, name)?;
        if end != End::Separator(PAIR) {
            return Err("an entry has no separator between name and value".to_owned());
        }
        let (plain, end) = part(rest, &in_value, value)?;
        match plan.columns.iter().position(|(column, _)| column == name) {
            Some(index) if plan.seen[index] => {
                return Err(format!("entry `{}` stands twice", String::from_utf8_lossy(name)));
            }
            Some(index) => {
                let field = (!is_null(options, plain, value)).then_some(value.as_slice());
                plan.append(builder, index, field)?;
            }
            None if options.unknown == UnknownMembers::Ignore => {}
            None => return Err(format!("entry `{}` is no column", String::from_utf8_lossy(name))),
        }
        if !matches!(end, End::Separator(_)) {
            break;
        }
    }
    for index in 0..plan.columns.len() {
        if !plan.seen[index] {
            plan.append(builder, index, None)?;
        }
    }
    Ok(())
}

impl MessageDecoder for InlongDecoder {
    fn decode(&mut self, message: &Message<'_>) -> std::result::Result<Step, Undecodable> {
        let Some(value) = message.value else { return Ok(Step::Ignored) };
        let id = self.rows.slot(self.table).schema.id.clone();
        let most = self.options.max_message_bytes;
        if value.len() > most {
            return Err(Undecodable::of(&id, format!("message is longer than {most} bytes")));
        }
        let body = match self.options.charset {
            None => Cow::Borrowed(value),
            Some(charset) => match charset.decode(value) {
                Some(text) => Cow::Owned(text.into_owned().into_bytes()),
                None => return Err(Undecodable::of(&id, format!("message is not {}", charset.name()))),
            },
        };
        self.rows.slot(self.table).begin();
        match self.body(&body) {
            Ok(false) => Ok(Step::Ignored),
            Ok(true) => {
                if let Some(time) = message.timestamp_ms {
                    self.rows.slot(self.table).builder.note_event_time(time);
                }
                self.rows.taken(value.len());
                Ok(Step::Taken)
            }
            Err(reason) => {
                self.rows.slot(self.table).undo();
                Err(Undecodable::of(&id, reason))
            }
        }
    }

    fn apply(&mut self, change: &StructureChange) {
        self.table = self.rows.put(change.after.clone(), Plan::new(&change.after));
    }

    fn tables(&self) -> Vec<Arc<TableSchema>> {
        self.rows.tables()
    }

    fn rows(&self) -> usize {
        self.rows.rows()
    }

    fn newest(&self) -> Option<&TableId> {
        self.rows.newest()
    }

    fn bytes(&self) -> usize {
        self.rows.bytes()
    }

    fn take(&mut self) -> Result<Vec<ChangeBatch>> {
        self.rows.take()
    }
}
