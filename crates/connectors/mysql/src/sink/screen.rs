//! Owns the checks that the server does not make: it would round decimals and seconds, take part of a year
//! beyond 9999 for a date, and end the connection over a row larger than its packet limit.

use std::collections::{HashMap, HashSet};

use arrow_array::Array;
use arrow_buffer::i256;
use canalis_batch::RowRef;
use canalis_connector_api::DeadLetter;
use canalis_types::{Column, temporal};

use super::{
    cells::{BatchCells, Cells},
    fit::Guard,
    statement::Rows,
    strict::letter,
    target::{Target, WriteColumn},
};

/// A row from this many bytes on travels in a statement of its own.
const LARGE_ROW: usize = 1 << 20;

/// What is known of the rows of a window that need care.
#[derive(Debug, Default)]
pub(super) struct Sieve {
    refused: HashMap<(u32, u32), String>,
    large: HashSet<(u32, u32)>,
}

/// Rows after the sink's own checks.
pub(super) struct Sifted {
    /// Rows of ordinary size.
    pub ordinary: Vec<RowRef>,
    /// Rows that travel alone.
    pub large: Vec<RowRef>,
    /// Rows that the target cannot hold.
    pub letters: Vec<DeadLetter>,
}

impl Sieve {
    /// Looks through all batches.
    pub(super) fn new(rows: Rows<'_>) -> Self {
        let mut sieve = Self::default();
        for (at, (batch, cells)) in (0u32..).zip(rows.batches.iter().zip(rows.cells)) {
            let found = screen(rows.target, cells, batch.num_rows());
            sieve.refused.extend(found.refused.into_iter().map(|(row, reason)| ((at, row), reason)));
            sieve.large.extend(found.large.into_iter().map(|row| (at, row)));
        }
        sieve
    }

    /// Puts rows that need care aside. `refs` keep their order.
    pub(super) fn sift(&self, rows: Rows<'_>, refs: Vec<RowRef>) -> Sifted {
        if self.refused.is_empty() && self.large.is_empty() {
            return Sifted { ordinary: refs, large: Vec::new(), letters: Vec::new() };
        }
        let mut sifted =
            Sifted { ordinary: Vec::with_capacity(refs.len()), large: Vec::new(), letters: Vec::new() };
        for row in refs {
            if let Some(reason) = self.refused.get(&(row.batch, row.row)) {
                sifted.letters.push(letter(rows, row, reason.clone()));
            } else if self.large.contains(&(row.batch, row.row)) {
                sifted.large.push(row);
            } else {
                sifted.ordinary.push(row);
            }
        }
        sifted
    }
}

/// Rows of a batch that need care.
#[derive(Debug, Default)]
struct Screened {
    /// Rows that the target cannot hold, with the reason. In row order.
    refused: Vec<(u32, String)>,
    /// Rows of at least [`LARGE_ROW`] bytes of text and binary values. In row order.
    large: Vec<u32>,
}

fn screen(target: &Target, cells: &BatchCells, rows: usize) -> Screened {
    let mut found = Screened::default();
    for (column, values) in target.columns.iter().zip(&cells.written) {
        let declared = &target.schema.columns[column.index];
        match values {
            Cells::Date(days) if days.values().iter().any(|d| date_is_foreign(*d)) => {
                refuse(&mut found, values, rows, declared, "a year outside 0–9999", |row| {
                    date_is_foreign(days.value(row))
                });
            }
            Cells::Timestamp(micros, _) if micros.values().iter().any(|m| datetime_is_foreign(*m)) => {
                refuse(&mut found, values, rows, declared, "a year outside 0–9999", |row| {
                    datetime_is_foreign(micros.value(row))
                });
            }
            _ => {}
        }
        guard(&mut found, column, values, rows, declared);
    }
    found.refused.sort_by_key(|(row, _)| *row);
    found.refused.dedup_by_key(|(row, _)| *row);
    let widest: usize = cells.written.iter().map(|values| widest(values, rows)).sum();
    if widest >= LARGE_ROW {
        found.large = (0..rows)
            .filter(|row| cells.written.iter().map(|values| size(values, *row)).sum::<usize>() >= LARGE_ROW)
            .filter_map(|row| u32::try_from(row).ok())
            .collect();
    }
    found
}

fn refuse(
    found: &mut Screened,
    values: &Cells,
    rows: usize,
    column: &Column,
    what: &str,
    is_bad: impl Fn(usize) -> bool,
) {
    for row in 0..rows {
        if !values.is_null(row)
            && is_bad(row)
            && let Ok(index) = u32::try_from(row)
        {
            found.refused.push((index, format!("column `{}` cannot hold {what}", column.name)));
        }
    }
}

fn guard(found: &mut Screened, column: &WriteColumn, values: &Cells, rows: usize, declared: &Column) {
    let Guard { scale, fraction } = column.guard;
    if let Some(kept) = scale {
        let what = format!("more than {kept} fraction digits");
        match values {
            Cells::Decimal128(decimals, scale) => {
                let unit = 10i128.pow(u32::from(scale.saturating_sub(kept)));
                refuse(found, values, rows, declared, &what, |row| decimals.value(row) % unit != 0);
            }
            Cells::Decimal256(decimals, scale) => {
                let unit = i256::from_i128(10).wrapping_pow(u32::from(scale.saturating_sub(kept)));
                refuse(found, values, rows, declared, &what, |row| {
                    decimals.value(row).wrapping_rem(unit) != i256::ZERO
                });
            }
            _ => {}
        }
    }
    if let Some(kept) = fraction {
        let unit = 10i64.pow(6 - u32::from(kept.min(6)));
        let what = format!("more than {kept} fraction digits of seconds");
        match values {
            Cells::Time(micros, _) => {
                refuse(found, values, rows, declared, &what, |row| micros.value(row) % unit != 0);
            }
            Cells::Timestamp(micros, _) => refuse(found, values, rows, declared, &what, |row| {
                let micro = temporal::DateTimeFields::decode(micros.value(row)).micro;
                i64::from(micro) % unit != 0
            }),
            _ => {}
        }
    }
}

/// 0001-01-01 and 9999-12-31, as days.
const CALENDAR: std::ops::RangeInclusive<i32> = -719_162..=2_932_896;

fn date_is_foreign(days: i32) -> bool {
    !CALENDAR.contains(&days) && !temporal::is_partial_date(days)
}

fn datetime_is_foreign(micros: i64) -> bool {
    let first = i64::from(*CALENDAR.start()) * temporal::MICROS_PER_DAY;
    let end = (i64::from(*CALENDAR.end()) + 1) * temporal::MICROS_PER_DAY;
    !(first..end).contains(&micros) && !temporal::is_partial_datetime(micros)
}

/// Bytes of the longest value.
fn widest(values: &Cells, rows: usize) -> usize {
    let longest = |offsets: &[i32]| {
        let longest = offsets.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
        usize::try_from(longest).unwrap_or(0)
    };
    match values {
        Cells::Text(a) => longest(&a.value_offsets()[..=rows.min(a.len())]),
        Cells::Bytes(a) => longest(&a.value_offsets()[..=rows.min(a.len())]),
        _ => 16,
    }
}

fn size(values: &Cells, row: usize) -> usize {
    match values {
        Cells::Text(a) => a.value_length(row).unsigned_abs() as usize,
        Cells::Bytes(a) => a.value_length(row).unsigned_abs() as usize,
        _ => 16,
    }
}
