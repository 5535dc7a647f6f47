//! Owns putting rows into tables inside an open transaction, row by row through prepared statements. A row that
//! SQLite refuses leaves no trace and becomes a dead letter.

use std::collections::{HashMap, HashSet};

use canalis_batch::{
    ChangeBatch, FoldedImages, KeyEncoder, Marked, MarkedImages, Patch, PatchOrder, RowRef, fold,
    fold_images, fold_marked, fold_marked_images, has_marks,
};
use canalis_connector_api::DeadLetter;
use canalis_types::{Error, Position, Result, RowKind};
use rusqlite::{
    CachedStatement, Connection, Row,
    types::{ToSqlOutput, Value, ValueRef},
};

use super::Window;
use crate::{
    cell::value,
    error::{is_unique_violation, row_reason, to_error},
    target::Target,
};

/// Up to this many images are looked for one by one; more by one pass over the table.
const SINGLE_DELETES: usize = 8;

/// Why a row that is known in part is refused when there is none that it could change.
const NO_ROW: &str = "the source did not send all columns of the row, and no row of the target has its key to keep the others of";
/// Why a change of a row without a key is refused.
const NO_KEY: &str = "the source did not send the key of the row";
/// Why a change of a table without a key is refused.
const NOT_WHOLE: &str =
    "the source did not send all columns of the row, and without a key it can be found by all of them only";

/// A row that SQLite cannot hold, and why.
type Refused = (RowRef, String);

/// Why the removal of an image is refused that no row has.
const MISSING: &str = "no row of the target is equal to the one that was removed at the source";

/// Whether a row is refused because rows that were there before are not.
pub fn is_about_rows_of_before(reason: &str) -> bool {
    reason == MISSING || reason == NO_ROW
}

/// Why a row was not written.
enum Failure {
    /// Its own fault.
    Row {
        reason: String,
        /// Whether another row holds the same unique value.
        unique: bool,
    },
    /// The database's.
    Fatal(Error),
}

/// Puts in the rows of a bounded split.
pub fn rows(connection: &Connection, target: &Target, batch: &ChangeBatch) -> Result<Vec<DeadLetter>> {
    let batches = std::slice::from_ref(batch);
    let count = u32::try_from(batch.num_rows()).unwrap_or(u32::MAX);
    let all: Vec<RowRef> = (0..count).map(|row| RowRef { batch: 0, row }).collect();
    let session = Session { connection, target, batches, position: None };
    let refused = session.put(&all)?;
    Ok(session.letters(refused))
}

/// Applies windows of changes.
pub fn windows(
    connection: &Connection,
    windows: &[Window],
    position: Option<&Position>,
) -> Result<Vec<DeadLetter>> {
    let mut letters = Vec::new();
    for Window { target, batches } in windows {
        let key =
            batches.first().filter(|_| target.has_key()).and_then(|b| KeyEncoder::for_table(b.schema()));
        if has_marks(batches) {
            letters.extend(marked_window(connection, target, batches, position, key)?);
            continue;
        }
        let session = Session { connection, target, batches, position };
        let Some(key) = key else {
            letters.extend(session.images(fold_images(batches)?)?);
            continue;
        };
        let folded = fold(batches, &key)?;
        letters.extend(session.delete_keys(&folded.deletes)?);
        letters.extend(session.letters(session.put(&folded.upserts)?));
    }
    Ok(letters)
}

/// Applies a window in which the source left cells out.
fn marked_window(
    connection: &Connection,
    target: &Target,
    batches: &[ChangeBatch],
    position: Option<&Position>,
    key: Option<KeyEncoder>,
) -> Result<Vec<DeadLetter>> {
    let session = |batches| Session { connection, target, batches, position };
    let Some(key) = key else {
        let MarkedImages { batches, folded, partial } = fold_marked_images(batches)?;
        let session = session(batches.as_slice());
        let mut letters = session.images(folded)?;
        letters.extend(session.counted(&partial).map(|at| session.letter(at, NOT_WHOLE.to_owned())));
        return Ok(letters);
    };
    let Marked { batches, stages, keyless } = fold_marked(batches, &key, PatchOrder::AsSent)?;
    let session = session(batches.as_slice());
    let mut letters: Vec<DeadLetter> =
        session.counted(&keyless).map(|at| session.letter(at, NO_KEY.to_owned())).collect();
    for stage in stages {
        letters.extend(session.delete_keys(&stage.deletes)?);
        letters.extend(session.letters(session.put(&stage.upserts)?));
        for patch in stage.patches {
            letters.extend(session.patch(patch)?);
        }
    }
    Ok(letters)
}

struct Session<'a> {
    connection: &'a Connection,
    target: &'a Target,
    batches: &'a [ChangeBatch],
    position: Option<&'a Position>,
}

impl Session<'_> {
    /// Applies what a window of a table without a key comes to.
    fn images(&self, folded: FoldedImages) -> Result<Vec<DeadLetter>> {
        let missing = self.delete_images(&folded.deletes)?;
        let mut refused = self.put(&folded.inserts)?;
        self.put(&self.replaced(&refused, &missing))?;
        // An update is one change: when both of its images are refused, the image after stands for it.
        let after: HashSet<(u32, u32)> = refused.iter().map(|(at, _)| (at.batch, at.row)).collect();
        let alone = |(at, _): &Refused| !after.contains(&(at.batch, at.row + 1));
        refused.extend(missing.into_iter().filter(alone));
        Ok(self.letters(refused))
    }

    /// Inserts rows, or overwrites them by key; gives those that are refused.
    fn put(&self, rows: &[RowRef]) -> Result<Vec<Refused>> {
        let all: Vec<usize> = (0..self.target.columns.len()).collect();
        let mut insert = self.statement(&self.target.upsert)?;
        let replaces = self.target.has_key() && !self.target.arbiter;
        let mut delete = if replaces { Some(self.statement(&self.target.delete)?) } else { None };
        let mut refused = Vec::new();
        let mut again = Vec::new();
        for at in rows {
            let outcome = match &mut delete {
                // Without an index over the key: an undo is needed when the new row is refused.
                Some(delete) => self.replace(*at, delete, &mut insert)?,
                None => self.run(&mut insert, &all, *at),
            };
            match outcome {
                Ok(()) => {}
                // A unique value may have moved from row to row: such rows are replaced together.
                Err(Failure::Row { unique: true, .. }) if self.target.has_key() => again.push(*at),
                Err(Failure::Row { reason, .. }) => refused.push((*at, reason)),
                Err(Failure::Fatal(error)) => return Err(error),
            }
        }
        refused.extend(self.replace_together(again)?);
        Ok(refused)
    }

    /// The images before those updates that were refused, as far as they were found: rows that stay.
    fn replaced(&self, refused: &[Refused], missing: &[Refused]) -> Vec<RowRef> {
        let after = |at: &RowRef| {
            let (batch, row) = self.place(*at);
            batch.kinds()[row] == RowKind::UpdateAfter
        };
        // −U stands right before its +U.
        let before = |(at, _): &Refused| RowRef { batch: at.batch, row: at.row - 1 };
        let missing: HashSet<(u32, u32)> = missing.iter().map(|(at, _)| (at.batch, at.row)).collect();
        let found = |at: &RowRef| !missing.contains(&(at.batch, at.row));
        refused.iter().filter(|(at, _)| after(at)).map(before).filter(found).collect()
    }

    fn replace(
        &self,
        at: RowRef,
        delete: &mut CachedStatement<'_>,
        insert: &mut CachedStatement<'_>,
    ) -> Result<Result<(), Failure>> {
        let all: Vec<usize> = (0..self.target.columns.len()).collect();
        self.control("SAVEPOINT canalis_row")?;
        let outcome = match self.run(delete, &self.target.key, at) {
            Ok(()) => self.run(insert, &all, at),
            failed => failed,
        };
        if outcome.is_err() {
            self.control("ROLLBACK TO canalis_row")?;
        }
        self.control("RELEASE canalis_row")?;
        Ok(outcome)
    }

    /// Removes the old rows of all keys, then adds the new ones. When some cannot be added everything is undone and
    /// done again without them, so that their old rows stay.
    fn replace_together(&self, mut rows: Vec<RowRef>) -> Result<Vec<Refused>> {
        let all: Vec<usize> = (0..self.target.columns.len()).collect();
        let mut refused = Vec::new();
        while !rows.is_empty() {
            let mut bad = Vec::new();
            self.control("SAVEPOINT canalis_all")?;
            let mut delete = self.statement(&self.target.delete)?;
            for at in &rows {
                self.note(*at, self.run(&mut delete, &self.target.key, *at), &mut bad)?;
            }
            let mut insert = self.statement(&self.target.insert)?;
            for at in &rows {
                self.note(*at, self.run(&mut insert, &all, *at), &mut bad)?;
            }
            if !bad.is_empty() {
                self.control("ROLLBACK TO canalis_all")?;
            }
            self.control("RELEASE canalis_all")?;
            if bad.is_empty() {
                break;
            }
            let gone: HashSet<(u32, u32)> = bad.iter().map(|(at, _)| (at.batch, at.row)).collect();
            rows.retain(|at| !gone.contains(&(at.batch, at.row)));
            refused.extend(bad);
        }
        Ok(refused)
    }

    fn note(&self, at: RowRef, outcome: Result<(), Failure>, bad: &mut Vec<Refused>) -> Result<()> {
        match outcome {
            Ok(()) => Ok(()),
            Err(Failure::Row { reason, .. }) => {
                bad.push((at, reason));
                Ok(())
            }
            Err(Failure::Fatal(error)) => Err(error),
        }
    }

    /// Deletes by key. A key that cannot be stored is in no row, so its removal is done.
    fn delete_keys(&self, rows: &[RowRef]) -> Result<Vec<DeadLetter>> {
        let mut statement = self.statement(&self.target.delete)?;
        let mut letters = Vec::new();
        for at in rows {
            if self.values(&self.target.key, *at).is_err() {
                continue;
            }
            match self.run(&mut statement, &self.target.key, *at) {
                Ok(()) => {}
                Err(Failure::Row { reason, .. }) => letters.push(self.letter(*at, reason)),
                Err(Failure::Fatal(error)) => return Err(error),
            }
        }
        Ok(letters)
    }

    /// Deletes one row per image; gives the images that no row has. An image that cannot be stored is in no row, so its
    /// removal is done.
    fn delete_images(&self, rows: &[RowRef]) -> Result<Vec<Refused>> {
        let all: Vec<usize> = (0..self.target.columns.len()).collect();
        let doing = format!("removing rows of `{}`", self.target.id.table);
        let fail = |e| to_error(&doing, e);
        let mut missing = Vec::new();
        if rows.len() <= SINGLE_DELETES || !self.target.keeps_class {
            let mut statement = self.statement(&self.target.delete_image)?;
            for at in rows {
                let Ok(values) = self.values(&all, *at) else { continue };
                for (place, value) in values.into_iter().enumerate() {
                    statement.raw_bind_parameter(place + 1, value).map_err(fail)?;
                }
                if statement.raw_execute().map_err(fail)? == 0 {
                    missing.push((*at, MISSING.to_owned()));
                }
            }
            return Ok(missing);
        }
        let mut wanted: HashMap<Vec<u8>, Vec<RowRef>> = HashMap::with_capacity(rows.len());
        let mut left = 0u64;
        for at in rows {
            if let Ok(values) = self.values(&all, *at) {
                let mut image = Vec::new();
                for value in &values {
                    encode(as_ref(value), &mut image);
                }
                wanted.entry(image).or_default().push(*at);
                left += 1;
            }
        }
        let mut found: Vec<i64> = Vec::new();
        {
            let mut scan = self.statement(&self.target.scan)?;
            let mut cursor = scan.query([]).map_err(fail)?;
            let mut image = Vec::new();
            while left > 0 {
                let Some(row) = cursor.next().map_err(fail)? else { break };
                image.clear();
                read(row, all.len(), &mut image).map_err(fail)?;
                if wanted.get_mut(image.as_slice()).and_then(Vec::pop).is_some() {
                    left -= 1;
                    found.push(row.get(0).map_err(fail)?);
                }
            }
        }
        let mut delete = self.statement(&self.target.delete_rowid)?;
        for rowid in found {
            delete.execute([rowid]).map_err(fail)?;
        }
        missing.extend(wanted.into_values().flatten().map(|at| (at, MISSING.to_owned())));
        Ok(missing)
    }

    /// The rows without images before updates: an update is one change.
    fn counted(&self, rows: &[RowRef]) -> impl Iterator<Item = RowRef> {
        let is_counted = |at: &RowRef| {
            let (batch, row) = self.place(*at);
            batch.kinds()[row].is_counted()
        };
        rows.iter().copied().filter(is_counted)
    }

    /// Sets the columns that were sent of a row that is there.
    fn patch(&self, Patch { before, after }: Patch) -> Result<Option<DeadLetter>> {
        let (batch, row) = self.place(after);
        let target = self.target;
        let moves = before != after;
        let mut sent: Vec<usize> = (0..target.columns.len())
            .filter(|c| !batch.is_unchanged(target.columns[*c].source, row))
            .filter(|c| moves || !target.key.contains(c))
            .collect();
        if sent.is_empty() {
            // Nothing changes, but the row has to be there.
            sent.clone_from(&target.key);
        }
        let mut values = Vec::with_capacity(sent.len() + target.key.len());
        for (columns, at) in [(&sent, after), (&target.key, before)] {
            match self.values(columns, at) {
                Ok(more) => values.extend(more),
                Err(reason) => return Ok(Some(self.letter(after, reason))),
            }
        }
        let mut statement = self.statement(&target.patch(&sent))?;
        let fatal = |e| to_error(&format!("writing into `{}`", target.id.table), e);
        let mut bound = Ok(());
        for (place, value) in values.into_iter().enumerate() {
            bound = bound.and_then(|()| statement.raw_bind_parameter(place + 1, value));
        }
        match bound.and_then(|()| statement.raw_execute()) {
            Ok(0) => Ok(Some(self.letter(after, NO_ROW.to_owned()))),
            Ok(_) => Ok(None),
            Err(error) => match row_reason(&error) {
                Some(reason) => Ok(Some(self.letter(after, reason))),
                None => Err(fatal(error)),
            },
        }
    }

    fn statement(&self, sql: &str) -> Result<CachedStatement<'_>> {
        let doing = || format!("preparing to write into `{}`", self.target.id.table);
        self.connection.prepare_cached(sql).map_err(|e| to_error(&doing(), e))
    }

    fn control(&self, sql: &str) -> Result<()> {
        self.connection.execute_batch(sql).map_err(|e| to_error(sql, e))
    }

    /// The values of some columns, or why one cannot be stored.
    fn values(&self, columns: &[usize], at: RowRef) -> Result<Vec<ToSqlOutput<'_>>, String> {
        let (batch, row) = self.place(at);
        let mut values = Vec::with_capacity(columns.len());
        for index in columns {
            let column = &self.target.columns[*index];
            let array = batch.rows().column(column.source);
            values.push(
                value(array, &column.ty, column.storage, row)
                    .map_err(|reason| format!("column `{}`: {reason}", column.name))?,
            );
        }
        Ok(values)
    }

    fn run(&self, statement: &mut CachedStatement<'_>, columns: &[usize], at: RowRef) -> Result<(), Failure> {
        let (batch, row) = self.place(at);
        let fatal = |e| Failure::Fatal(to_error(&format!("writing into `{}`", self.target.id.table), e));
        for (place, index) in columns.iter().enumerate() {
            let column = &self.target.columns[*index];
            let array = batch.rows().column(column.source);
            let value = value(array, &column.ty, column.storage, row).map_err(|reason| Failure::Row {
                reason: format!("column `{}`: {reason}", column.name),
                unique: false,
            })?;
            match statement.raw_bind_parameter(place + 1, value) {
                Ok(()) => {}
                Err(error) => match row_reason(&error) {
                    Some(reason) => {
                        let reason = format!("column `{}`: {reason}", column.name);
                        return Err(Failure::Row { reason, unique: false });
                    }
                    None => return Err(fatal(error)),
                },
            }
        }
        match statement.raw_execute() {
            Ok(_) => Ok(()),
            Err(error) => match row_reason(&error) {
                Some(reason) => Err(Failure::Row { reason, unique: is_unique_violation(&error) }),
                None => Err(fatal(error)),
            },
        }
    }

    fn place(&self, at: RowRef) -> (&ChangeBatch, usize) {
        // Both are indexes of things in memory.
        let batch = usize::try_from(at.batch).unwrap_or(usize::MAX);
        (&self.batches[batch], usize::try_from(at.row).unwrap_or(usize::MAX))
    }

    fn letters(&self, refused: Vec<Refused>) -> Vec<DeadLetter> {
        refused.into_iter().map(|(at, reason)| self.letter(at, reason)).collect()
    }

    fn letter(&self, at: RowRef, reason: String) -> DeadLetter {
        let (batch, row) = self.place(at);
        DeadLetter { position: self.position.cloned(), ..DeadLetter::refused(batch, row, reason) }
    }
}

fn as_ref<'a>(value: &'a ToSqlOutput<'_>) -> ValueRef<'a> {
    match value {
        ToSqlOutput::Borrowed(value) => *value,
        ToSqlOutput::Owned(value) => value_ref(value),
        // Our own values are of these two kinds.
        _ => ValueRef::Null,
    }
}

fn value_ref(value: &Value) -> ValueRef<'_> {
    match value {
        Value::Null => ValueRef::Null,
        Value::Integer(number) => ValueRef::Integer(*number),
        Value::Real(number) => ValueRef::Real(*number),
        Value::Text(text) => ValueRef::Text(text.as_bytes()),
        Value::Blob(bytes) => ValueRef::Blob(bytes),
    }
}

fn read(row: &Row<'_>, columns: usize, out: &mut Vec<u8>) -> rusqlite::Result<()> {
    for index in 1..=columns {
        encode(row.get_ref(index)?, out);
    }
    Ok(())
}

/// Appends a value so that equal bytes mean the same value of the same storage class. Zero has no sign in SQLite.
fn encode(value: ValueRef<'_>, out: &mut Vec<u8>) {
    let mut sized = |tag: u8, bytes: &[u8]| {
        out.push(tag);
        out.extend_from_slice(&u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_le_bytes());
        out.extend_from_slice(bytes);
    };
    match value {
        ValueRef::Null => out.push(0),
        ValueRef::Integer(number) => sized(1, &number.to_le_bytes()),
        ValueRef::Real(number) => sized(2, &(number + 0.0).to_bits().to_le_bytes()),
        ValueRef::Text(text) => sized(3, text),
        ValueRef::Blob(bytes) => sized(4, bytes),
    }
}
