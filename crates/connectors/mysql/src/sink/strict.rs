//! Owns storing rows by strict statements, and finding the rows of a failed statement that cannot be held: they
//! become dead letters, the others land.

use canalis_batch::RowRef;
use canalis_connector_api::DeadLetter;

use super::{
    failure::{Failure, Refusal},
    session::{Outcome, Session, Strictness},
    statement::{Match, Room, Rows, Verb, delete, store, write_key_condition},
    target::{Form, Mode},
};

/// How warnings are dealt with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Care {
    /// Unexpected ones end in [`Failure::Suspicious`]; the caller gives up the transaction and comes again.
    Quick,
    /// Each statement can be undone by itself.
    Careful,
}

/// What became of one statement.
pub(super) enum Checked {
    /// Done as told.
    Done(Outcome),
    /// Undone, because values would have been altered; with the server's reason.
    Altered(String),
}

/// Runs a statement that must give exactly `expected` warnings, which are those of ENUM error values. The server takes
/// such values only when it is not strict, so anything else that it then adjusts shows as one warning more.
pub(super) async fn run_checked(
    session: &mut Session,
    doing: &str,
    sql: &[u8],
    expected: u64,
    care: Care,
) -> Result<Checked, Failure> {
    if expected == 0 && care == Care::Quick {
        let outcome = session.run(doing, sql).await?;
        return if outcome.warnings == 0 { Ok(Checked::Done(outcome)) } else { Err(Failure::Suspicious) };
    }
    session.run("setting a savepoint", b"SAVEPOINT canalis_row").await?;
    if expected > 0 {
        session.set_strictness(Strictness::Counted).await?;
    }
    let result = session.run(doing, sql).await;
    let altered = match &result {
        Ok(outcome) if u64::from(outcome.warnings) != expected && !session.is_recording() => {
            let warnings = session.warnings().await?;
            alteration(&warnings, u64::from(outcome.warnings), expected)
        }
        _ => None,
    };
    session.set_strictness(Strictness::Strict).await?;
    let outcome = result?;
    match altered {
        None => Ok(Checked::Done(outcome)),
        Some(reason) => {
            session.run("undoing a statement", b"ROLLBACK TO SAVEPOINT canalis_row").await?;
            Ok(Checked::Altered(reason))
        }
    }
}

/// The first warning that stands for an altered value, if there is one.
fn alteration(warnings: &[(u16, String)], count: u64, expected: u64) -> Option<String> {
    // Deprecations and remarks on logging.
    let is_harmless = |code: u16| matches!(code, 1287 | 1592 | 1681 | 3719 | 3778);
    let telling: Vec<&(u16, String)> = warnings.iter().filter(|(code, _)| !is_harmless(*code)).collect();
    let all_seen = count == warnings.len() as u64;
    if all_seen && telling.len() as u64 == expected && telling.iter().all(|(code, _)| *code == 1265) {
        return None;
    }
    // The last one: those of ENUM error values come in column order among them and mean no harm.
    let other = telling.iter().find(|(code, _)| *code != 1265).or(telling.last());
    Some(other.map_or_else(|| "the server altered a value".to_owned(), |(_, message)| message.clone()))
}

/// Stores rows in order.
pub(super) async fn store_rows(
    session: &mut Session,
    rows: Rows<'_>,
    refs: &[RowRef],
    verb: Verb,
    care: Care,
    room: Room,
) -> Result<Vec<DeadLetter>, Failure> {
    let mut letters = Vec::new();
    let mut sql = Vec::new();
    let facts = session.facts.clone();
    let room = Room { bytes: room.bytes.min(facts.statement_limit()), ..room };
    let mut parts: Vec<&[RowRef]> = vec![refs];
    while let Some(part) = parts.pop() {
        if part.is_empty() {
            continue;
        }
        let taken = store(&mut sql, rows, part, verb, &facts, room);
        let (now, later) = part.split_at(taken);
        parts.push(later);
        if let [row] = now
            && sql.len() > facts.statement_limit()
        {
            letters.push(letter(rows, *row, too_large(sql.len(), facts.max_allowed_packet)));
            continue;
        }
        let expected = rows.expected_of(now);
        match run_checked(session, "storing rows", &sql, expected, care).await {
            Ok(Checked::Done(_)) => {}
            Ok(Checked::Altered(reason)) => match now {
                [row] => letters.push(letter(rows, *row, reason)),
                _ => split(&mut parts, now, None),
            },
            Err(Failure::Row(refusal)) => match now {
                [row] if verb == Verb::Insert && refusal.is_duplicate() => {
                    if let Some(reason) = collide(session, rows, *row, &refusal, room).await? {
                        letters.push(letter(rows, *row, reason));
                    }
                }
                [row] => letters.push(letter(rows, *row, refusal.message)),
                _ => split(&mut parts, now, refusal.row()),
            },
            Err(other) => return Err(other),
        }
    }
    Ok(letters)
}

/// Why a row is larger than the server takes.
pub(super) fn too_large(bytes: usize, limit: usize) -> String {
    format!("the row takes a statement of {bytes} bytes, the server's max_allowed_packet is {limit}")
}

/// Puts the pieces of a failed statement on the stack, the first on top. A row that the server has named is tried
/// alone; without a name the statement is halved.
fn split<'a>(parts: &mut Vec<&'a [RowRef]>, failed: &'a [RowRef], named: Option<usize>) {
    match named.filter(|row| *row < failed.len()) {
        Some(row) => {
            parts.push(&failed[row + 1..]);
            parts.push(&failed[row..=row]);
            parts.push(&failed[..row]);
        }
        None => {
            let (front, back) = failed.split_at(failed.len() / 2);
            parts.push(back);
            parts.push(front);
        }
    }
}

/// Deals with a key that is there already: the very same key is overwritten; another key of the source that the
/// target takes for the same is a collision, whose reason is given.
async fn collide(
    session: &mut Session,
    rows: Rows<'_>,
    row: RowRef,
    refusal: &Refusal,
    room: Room,
) -> Result<Option<String>, Failure> {
    let target = rows.target;
    if target.mode == Mode::Ordered {
        return Ok(Some(refusal.message.clone()));
    }
    let look_up = |what: &str, how: Match| {
        let mut sql = format!("SELECT {what} FROM {} WHERE ", target.name).into_bytes();
        write_key_condition(&mut sql, rows, row, how);
        sql.extend_from_slice(b" LIMIT 1");
        sql
    };
    let same: Vec<u64> = session.rows("looking for a key", look_up("COUNT(*)", Match::Exact)).await?;
    if same.iter().any(|count| *count > 0) {
        session.run("setting a savepoint", b"SAVEPOINT canalis_key").await?;
        let mut sql = Vec::new();
        delete(&mut sql, rows, &[row], Match::Exact, room);
        session.run("deleting a row", &sql).await?;
        let facts = session.facts.clone();
        store(&mut sql, rows, &[row], Verb::Insert, &facts, room);
        let expected = rows.expected_warnings(row);
        let reason = match run_checked(session, "storing a row", &sql, expected, Care::Careful).await {
            Ok(Checked::Done(_)) => return Ok(None),
            Ok(Checked::Altered(reason)) => reason,
            Err(Failure::Row(refusal)) => refusal.message,
            Err(other) => return Err(other),
        };
        session.run("undoing a statement", b"ROLLBACK TO SAVEPOINT canalis_key").await?;
        return Ok(Some(reason));
    }
    let columns: Vec<String> = target
        .key
        .iter()
        .map(|k| &target.columns[*k])
        .map(|column| match column.form {
            Form::Hex => format!("HEX({})", column.name),
            _ => format!("CONVERT({} USING utf8mb4)", column.name),
        })
        .collect();
    let what = format!("CONCAT_WS(', ', {})", columns.join(", "));
    let stored: Vec<String> = session.rows("looking for a key", look_up(&what, Match::Key)).await?;
    Ok(Some(match stored.first() {
        Some(stored) => format!(
            "its key ({}) is equal to the stored key ({stored}) under the target's collation",
            key_text(rows, row)
        ),
        None => refusal.message.clone(),
    }))
}

fn key_text(rows: Rows<'_>, row: RowRef) -> String {
    let (cells, index) = rows.batch(row);
    let mut out = Vec::new();
    for (at, values) in cells.key.iter().enumerate() {
        if at > 0 {
            out.extend_from_slice(b", ");
        }
        values.write_plain(index, &mut out);
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// A dead letter for a row.
pub(super) fn letter(rows: Rows<'_>, row: RowRef, reason: String) -> DeadLetter {
    DeadLetter::refused(&rows.batches[row.batch as usize], row.row as usize, reason)
}
