//! Owns the statements that carry rows: literals for small sets, COPY into a temporary table for large ones.

use std::fmt::Write;

use canalis_batch::RowRef;
use canalis_types::{Error, Result};

use super::{
    patch::{patch, relocate},
    rows::{Refused, RowSet},
};
use crate::{
    encode::Style,
    target::{Staging, Target},
};

/// Up to this many rows travel as literals inside one statement.
const LITERAL_ROWS: usize = 1000;
/// Up to about this many bytes travel as literals.
const LITERAL_BYTES: usize = 1 << 20;
/// Up to this many images are deleted by a statement each, which can stop at the first match.
const SINGLE_DELETES: usize = 8;

/// What is done with rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Adds rows; one that exists is an error.
    Insert,
    /// Adds rows or overwrites them by key in place.
    Upsert,
    /// Removes the rows of the same keys, then adds the rows.
    Replace,
    /// Removes the rows of the same keys.
    Delete,
    /// Removes one row per image, for tables without a key.
    DeleteImages,
    /// Sets the columns that were sent of rows that are there.
    Patch,
    /// As `Patch` for one row whose key changes as well.
    Move,
}

/// How the statements may look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// The cheapest way; each temporary table is used once in the transaction.
    Fast,
    /// Temporary tables may hold rows of an earlier statement of the same transaction.
    Again,
    /// As `Again`, and by COPY whatever the size: its errors name line and column.
    Traced,
}

/// A step to execute.
pub enum Piece {
    /// Statements ended by semicolons.
    Sql(String),
    /// COPY of rows (some columns of them).
    Copy {
        /// The statement.
        sql: String,
        /// The rows.
        rows: Vec<RowRef>,
        /// The columns.
        columns: Vec<usize>,
    },
}

/// The steps that do `op` with `rows`. Rows that cannot be written are noted and left out.
pub fn pieces(
    set: &RowSet<'_>,
    op: Op,
    rows: &[RowRef],
    route: Route,
    refused: &mut Refused,
) -> Result<Vec<Piece>> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let small = rows.len() <= LITERAL_ROWS && set.bytes(rows) <= LITERAL_BYTES;
    if small && route != Route::Traced {
        return Ok(by_literals(set, op, rows, refused)?.map(Piece::Sql).into_iter().collect());
    }
    let target = set.target;
    let copy = |sql: String, columns: Vec<usize>| Piece::Copy { sql, rows: rows.to_vec(), columns };
    let stage = |purpose: Staging, then: String| {
        let mut prepare = target.create_staging(purpose);
        if route != Route::Fast {
            let _ = write!(prepare, " TRUNCATE {};", target.staging(purpose));
        }
        vec![
            Piece::Sql(prepare),
            copy(target.copy_staging(purpose), target.staged(purpose)),
            Piece::Sql(then),
        ]
    };
    let insert = |tail: String| {
        let names = target.names(&target.all());
        format!("{}SELECT {names} FROM {}{tail};", target.insert_head(), target.staging(Staging::Rows))
    };
    Ok(match op {
        Op::Insert => vec![copy(target.copy(), target.all())],
        Op::Upsert => stage(Staging::Rows, insert(target.conflict_tail())),
        Op::Replace => stage(Staging::Rows, delete_staged(target, Staging::Rows) + &insert(String::new())),
        Op::Delete => stage(Staging::Keys, delete_staged(target, Staging::Keys)),
        // Rows of different columns fit no table.
        Op::Patch | Op::Move => by_literals(set, op, rows, refused)?.map(Piece::Sql).into_iter().collect(),
        Op::DeleteImages => {
            let images = target.list(&target.all(), |c| c.quoted.clone());
            let source =
                format!("SELECT ROW({images})::text AS image FROM {}", target.staging(Staging::Images));
            // Images that cannot be written are not staged and not counted.
            let copies = format!("(SELECT count(*) FROM {})", target.staging(Staging::Images));
            stage(Staging::Images, delete_images(target, &source, &copies))
        }
    })
}

/// `DELETE … USING` a temporary table. With an index over the key, a nested loop over it is the only plan that does
/// not read the whole table; the planner has no statistics of the temporary table and would guess.
fn delete_staged(target: &Target, purpose: Staging) -> String {
    let same = target.key.iter().map(|i| {
        let name = &target.columns[*i].quoted;
        format!("t.{name} = s.{name}")
    });
    let same: Vec<String> = same.collect();
    let delete = format!(
        "DELETE FROM {} t USING {} s WHERE {};",
        target.table,
        target.staging(purpose),
        same.join(" AND ")
    );
    if target.arbiter {
        let set = |value: &str| {
            format!(
                "SET LOCAL enable_hashjoin = {value}; SET LOCAL enable_mergejoin = {value}; SET LOCAL enable_seqscan = {value};"
            )
        };
        format!("{} {delete} {}", set("off"), set("on"))
    } else {
        delete
    }
}

/// Deletes one row per image that `source` gives, by the text of whole rows: it is exact for every type (JSON, −0.0
/// and NULL included), and it can be hashed. See [`all_found`] for images that no row has.
fn delete_images(target: &Target, source: &str, copies: &str) -> String {
    let table = &target.table;
    let columns = target.list(&target.all(), |c| format!("t.{}", c.quoted));
    let delete = format!(
        "DELETE FROM {table} WHERE ctid = ANY (ARRAY(SELECT place FROM (\
         SELECT t.ctid AS place, s.copies, row_number() OVER (PARTITION BY s.image) AS number \
         FROM {table} t JOIN (SELECT image, count(*) AS copies FROM ({source}) i GROUP BY image) s \
         ON ROW({columns})::text = s.image) m WHERE number <= copies))"
    );
    all_found(&format!("{delete} RETURNING 1"), &format!("(SELECT count(*) FROM d) = {copies}"))
}

/// Lets a statement fail when `d`, the rows that it returns, does not meet a condition: the division by zero is an error about a row, so the rows that
/// are missing are found like rows that are refused, at no cost for the others.
pub fn all_found(found: &str, condition: &str) -> String {
    format!("WITH d AS ({found}) SELECT 1 / ({condition})::int;")
}

/// One statement (or two) with the rows as literals; `None` when no row is left.
fn by_literals(set: &RowSet<'_>, op: Op, rows: &[RowRef], refused: &mut Refused) -> Result<Option<String>> {
    let target = set.target;
    let sql = match op {
        Op::Insert | Op::Upsert => {
            let tail = if op == Op::Upsert { target.conflict_tail() } else { String::new() };
            let (values, _) = values(set, &target.all(), rows, refused)?;
            values.map(|v| format!("{}VALUES {v}{tail};", target.insert_head()))
        }
        Op::Replace => {
            let (values, kept) = values(set, &target.all(), rows, refused)?;
            match values {
                Some(values) => {
                    let delete = delete_keys(set, &kept, refused)?.unwrap_or_default();
                    Some(format!("{delete}{}VALUES {values};", target.insert_head()))
                }
                None => None,
            }
        }
        Op::Delete => delete_keys(set, rows, refused)?,
        Op::Patch => patch(set, rows, refused)?,
        Op::Move => relocate(set, rows[0], refused)?,
        Op::DeleteImages if rows.len() <= SINGLE_DELETES => delete_singly(set, rows, refused)?,
        Op::DeleteImages => {
            let (values, kept) = values(set, &target.all(), rows, refused)?;
            values.map(|values| {
                let names: Vec<String> = (0..target.columns.len()).map(|i| format!("c{i}")).collect();
                let casts: Vec<String> =
                    target.columns.iter().enumerate().map(|(i, c)| format!("c{i}::{}", c.cast)).collect();
                let source = format!(
                    "SELECT ROW({})::text AS image FROM (VALUES {values}) v({})",
                    casts.join(", "),
                    names.join(", ")
                );
                delete_images(target, &source, &kept.len().to_string())
            })
        }
    };
    Ok(sql)
}

/// `(…), (…)` and the rows in it.
fn values(
    set: &RowSet<'_>,
    columns: &[usize],
    rows: &[RowRef],
    refused: &mut Refused,
) -> Result<(Option<String>, Vec<RowRef>)> {
    let mut out = Vec::with_capacity(rows.len() * 64);
    let mut kept = Vec::with_capacity(rows.len());
    for at in rows {
        let start = out.len();
        if !kept.is_empty() {
            out.extend_from_slice(b",\n");
        }
        match set.some(columns, *at, Style::Literal, &mut out) {
            Ok(()) => kept.push(*at),
            Err(refusal) => {
                out.truncate(start);
                refused.note(*at, refusal.reason);
            }
        }
    }
    let text = if kept.is_empty() { None } else { Some(utf8(out)?) };
    Ok((text, kept))
}

fn delete_keys(set: &RowSet<'_>, rows: &[RowRef], refused: &mut Refused) -> Result<Option<String>> {
    let target = set.target;
    let (values, _) = values(set, &target.key, rows, refused)?;
    let Some(values) = values else { return Ok(None) };
    if let [key] = target.key.as_slice() {
        let name = &target.columns[*key].quoted;
        return Ok(Some(format!("DELETE FROM {} WHERE {name} IN ({values});", target.table)));
    }
    let names: Vec<String> = (0..target.key.len()).map(|i| format!("k{i}")).collect();
    let same: Vec<String> = target
        .key
        .iter()
        .enumerate()
        .map(|(i, c)| {
            let column = &target.columns[*c];
            format!("t.{} = v.k{i}::{}", column.quoted, column.cast)
        })
        .collect();
    Ok(Some(format!(
        "DELETE FROM {} t USING (VALUES {values}) v({}) WHERE {};",
        target.table,
        names.join(", "),
        same.join(" AND ")
    )))
}

/// A statement per image. Plain equality can use an index of the target; the text of the row settles what equality
/// takes for the same (−0.0 and 0.0, JSON, letters under a loose collation).
fn delete_singly(set: &RowSet<'_>, rows: &[RowRef], refused: &mut Refused) -> Result<Option<String>> {
    let target = set.target;
    let all = target.all();
    let mut sql = String::new();
    for at in rows {
        let mut conditions = Vec::with_capacity(all.len());
        let mut casts = Vec::with_capacity(all.len());
        let mut failed = None;
        for index in &all {
            let column = &target.columns[*index];
            let mut literal = Vec::new();
            match set.literal(*index, *at, &mut literal) {
                Ok(true) => {
                    let literal = utf8(literal)?;
                    if comparable(&column.cast) {
                        conditions.push(format!("t.{} = {literal}", column.quoted));
                    }
                    casts.push(format!("{literal}::{}", column.cast));
                }
                Ok(false) => {
                    conditions.push(format!("t.{} IS NULL", column.quoted));
                    casts.push(format!("NULL::{}", column.cast));
                }
                Err(refusal) => failed = Some(refusal.reason),
            }
        }
        if let Some(reason) = failed {
            refused.note(*at, reason);
            continue;
        }
        let names = target.list(&all, |c| format!("t.{}", c.quoted));
        conditions.push(format!("ROW({names})::text = ROW({})::text", casts.join(", ")));
        let delete = format!(
            "DELETE FROM {0} WHERE ctid = (SELECT t.ctid FROM {0} t WHERE {1} LIMIT 1)",
            target.table,
            conditions.join(" AND ")
        );
        sql.push_str(&all_found(&format!("{delete} RETURNING 1"), "(SELECT count(*) FROM d) = 1"));
    }
    Ok((!sql.is_empty()).then_some(sql))
}

/// Whether the type has an equality.
fn comparable(cast: &str) -> bool {
    cast != "json"
}

/// Literals as text.
pub fn utf8(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|e| Error::internal("literals are not UTF-8").with_source(e))
}
