//! Owns cutting a payload into its parts in one pass: both images member by member, the source block, the operation.

use super::wrapper::members;
use crate::json::scan::{ScanError, Scanner, Text, Value};

/// A member of a row image.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member<'a> {
    pub name: Text<'a>,
    pub value: Value<'a>,
}

/// What stands where a row image may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Side {
    #[default]
    Absent,
    /// Its members are gathered.
    Object,
    /// Neither null nor an object.
    Strange,
}

/// Where a row comes from.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Origin<'a> {
    pub db: Option<Text<'a>>,
    pub schema: Option<Text<'a>>,
    pub table: Option<Text<'a>>,
    pub is_postgres: bool,
    pub is_snapshot: bool,
    /// Commit time, milliseconds since the epoch.
    pub ts_ms: Option<i64>,
}

/// What a payload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Create,
    Update,
    Delete,
    Truncate,
    /// Nothing that carries rows: a logical message, a heartbeat, the end of a transaction, a schema-change event.
    Aside,
}

/// A payload in parts; the members of the images are in [`Images`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Payload<'a> {
    pub operation: Operation,
    pub before: Side,
    pub after: Side,
    pub origin: Origin<'a>,
}

/// Members of both images.
#[derive(Debug, Default)]
pub(super) struct Images<'a> {
    pub before: Vec<Member<'a>>,
    pub after: Vec<Member<'a>>,
}

/// The same room, empty, for members of other input.
pub(super) fn reuse<'b, T, U: 'b>(mut room: Vec<T>) -> Vec<U> {
    room.clear();
    // Never runs; collecting in place keeps the allocation.
    room.into_iter().filter_map(|_| None).collect()
}

impl Images<'_> {
    pub(super) fn reuse<'b>(self) -> Images<'b> {
        Images { before: reuse(self.before), after: reuse(self.after) }
    }
}

/// Members beside those of an envelope, by which messages without rows are known.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    time: bool,
    database: bool,
    ddl: bool,
    changes: bool,
    status: bool,
    events: bool,
    collections: bool,
    others: bool,
}

impl Seen {
    fn note(&mut self, name: &[u8], value: Value<'_>) {
        match name {
            b"ts_ms" | b"ts_us" | b"ts_ns" => self.time = true,
            b"databaseName" => self.database = true,
            b"ddl" => self.ddl = true,
            b"tableChanges" => self.changes = true,
            b"status" => {
                self.status = matches!(value, Value::Text(text) if matches!(text.raw, b"BEGIN" | b"END"));
            }
            b"event_count" => self.events = true,
            b"data_collections" => self.collections = true,
            _ => self.others = true,
        }
    }

    /// A schema-change event, the begin or end of a transaction, or a heartbeat.
    fn is_aside(self) -> bool {
        let is_ddl = self.ddl && (self.database || self.changes);
        let is_transaction = self.status && self.events && self.collections;
        let has_more = self.ddl || self.database || self.changes || self.status || self.others;
        is_ddl || is_transaction || (self.time && !has_more)
    }
}

/// Cuts an enveloped payload. `None` when the payload is null.
pub(super) fn enveloped<'a>(
    scanner: &mut Scanner<'a>,
    images: &mut Images<'a>,
) -> Result<Option<Payload<'a>>, String> {
    let mut before = Side::Absent;
    let mut after = Side::Absent;
    let mut origin = Origin::default();
    let mut op = Value::Null;
    let mut seen = Seen::default();
    if !open(scanner)? {
        return Ok(None);
    }
    members(scanner, |name, scanner| {
        match name.raw {
            b"before" => before = side(scanner, &mut images.before)?,
            b"after" => after = side(scanner, &mut images.after)?,
            b"source" => origin = source(scanner)?,
            b"op" => op = scanner.value()?,
            name => {
                let value = scanner.value()?;
                seen.note(name, value);
            }
        }
        Ok(())
    })
    .map_err(syntax)?;
    let operation = match op {
        Value::Text(text) => match text.raw {
            b"c" | b"r" => Operation::Create,
            b"u" => Operation::Update,
            b"d" => Operation::Delete,
            b"t" => Operation::Truncate,
            b"m" => Operation::Aside,
            _ => return Err("`op` is none of c, r, u, d, t and m".into()),
        },
        Value::Null if before == Side::Absent && after == Side::Absent && seen.is_aside() => Operation::Aside,
        _ => {
            return Err("the message is no change envelope: it has no `op` (rows alone, as the transform \
                 ExtractNewRecordState leaves them, are read with the option `unwrapped`)"
                .into());
        }
    };
    Ok(Some(Payload { operation, before, after, origin }))
}

/// Cuts a payload that is the row alone. `None` when it is null.
pub(super) fn unwrapped<'a>(
    scanner: &mut Scanner<'a>,
    images: &mut Images<'a>,
) -> Result<Option<Payload<'a>>, String> {
    let mut origin = Origin::default();
    let mut operation = None;
    let mut deleted = false;
    if !open(scanner)? {
        return Ok(None);
    }
    members(scanner, |name, scanner| {
        let value = scanner.value()?;
        images.after.push(Member { name, value });
        if !name.raw.starts_with(b"__") {
            return Ok(());
        }
        let text = text_of(value);
        match name.raw {
            b"__deleted" => deleted = value == Value::Boolean(true) || text.is_some_and(|t| t.raw == b"true"),
            b"__op" => operation = text.map(|t| t.raw),
            b"__db" | b"__source_db" => origin.db = text,
            b"__schema" | b"__source_schema" => origin.schema = text,
            b"__table" | b"__source_table" => origin.table = text,
            b"__source_ts_ms" => origin.ts_ms = whole(value),
            _ => {}
        }
        Ok(())
    })
    .map_err(syntax)?;
    origin.is_snapshot = operation == Some(b"r");
    let operation = match operation {
        _ if deleted => Operation::Delete,
        Some(b"d") => Operation::Delete,
        Some(b"u") => Operation::Update,
        _ => Operation::Create,
    };
    Ok(Some(Payload { operation, before: Side::Absent, after: Side::Object, origin }))
}

fn syntax(why: ScanError) -> String {
    format!("the message is not JSON: {why}")
}

/// Takes the opening brace; false for null.
fn open(scanner: &mut Scanner<'_>) -> Result<bool, String> {
    if scanner.take(b'{') {
        return Ok(true);
    }
    match scanner.value().map_err(syntax)? {
        Value::Null => Ok(false),
        _ => Err("the payload is no object".into()),
    }
}

fn side<'a>(scanner: &mut Scanner<'a>, room: &mut Vec<Member<'a>>) -> Result<Side, ScanError> {
    // The last of two members of the same name counts.
    room.clear();
    if !scanner.take(b'{') {
        return Ok(if scanner.value()? == Value::Null { Side::Absent } else { Side::Strange });
    }
    members(scanner, |name, scanner| {
        room.push(Member { name, value: scanner.value()? });
        Ok(())
    })?;
    Ok(Side::Object)
}

fn source<'a>(scanner: &mut Scanner<'a>) -> Result<Origin<'a>, ScanError> {
    let mut origin = Origin::default();
    if !scanner.take(b'{') {
        scanner.value()?;
        return Ok(origin);
    }
    members(scanner, |name, scanner| {
        let value = scanner.value()?;
        match name.raw {
            b"db" => origin.db = text_of(value),
            b"schema" => origin.schema = text_of(value),
            b"table" => origin.table = text_of(value),
            b"ts_ms" => origin.ts_ms = whole(value),
            b"connector" => origin.is_postgres = text_of(value).is_some_and(|t| t.raw == b"postgresql"),
            b"snapshot" => {
                origin.is_snapshot = match value {
                    Value::Boolean(value) => value,
                    Value::Text(text) => text.raw != b"false",
                    _ => false,
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(origin)
}

fn text_of(value: Value<'_>) -> Option<Text<'_>> {
    match value {
        Value::Text(text) if !text.raw.is_empty() => Some(text),
        _ => None,
    }
}

fn whole(value: Value<'_>) -> Option<i64> {
    let raw = match value {
        Value::Number(raw) => raw,
        Value::Text(text) => text.raw,
        _ => return None,
    };
    crate::text::whole_number(raw).ok()
}
