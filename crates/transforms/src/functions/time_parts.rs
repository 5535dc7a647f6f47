//! Owns parts of dates and times, and the calendar arithmetic behind steps and differences.

use std::sync::Arc;

use arrow_array::{
    ArrayRef,
    cast::AsArray,
    types::{DurationMicrosecondType, Int64Type, TimestampMicrosecondType},
};
use canalis_types::{
    LogicalType,
    temporal::{DateFields, DateTimeFields, MICROS_PER_DAY, civil_from_days, days_from_civil, days_in_month},
};

use super::{
    Function,
    time::{days, local},
};
use crate::{
    call::{Kernel, Volatility},
    compile::{
        Context, Typed,
        coerce::{as_moment, convert},
        typed::call,
        types::Family,
    },
    pattern::{day_of_week, day_of_year},
    syntax::{Mode, Unit},
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::with_unit("EXTRACT", 1, extract),
    Function::new("YEAR", 1, 1, |c, a| extract(c, Unit::Year, a)),
    Function::new("QUARTER", 1, 1, |c, a| extract(c, Unit::Quarter, a)),
    Function::new("MONTH", 1, 1, |c, a| extract(c, Unit::Month, a)),
    Function::new("WEEK", 1, 1, |c, a| extract(c, Unit::Week, a)),
    Function::new("WEEKOFYEAR", 1, 1, |c, a| extract(c, Unit::Week, a)),
    Function::new("DAY", 1, 1, |c, a| extract(c, Unit::Day, a)),
    Function::new("DAYOFYEAR", 1, 1, |c, a| extract(c, Unit::DayOfYear, a)),
    Function::new("DAYOFMONTH", 1, 1, |c, a| extract(c, Unit::Day, a)),
    Function::new("DAYOFWEEK", 1, 1, |c, a| extract(c, Unit::DayOfWeek, a)),
    Function::new("HOUR", 1, 1, |c, a| extract(c, Unit::Hour, a)),
    Function::new("MINUTE", 1, 1, |c, a| extract(c, Unit::Minute, a)),
    Function::new("SECOND", 1, 1, |c, a| extract(c, Unit::Second, a)),
];

fn extract(context: &Context, unit: Unit, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let value = arguments.swap_remove(0);
    if value.family() == Family::Time {
        return extract_of_time(unit, value);
    }
    if unit == Unit::Epoch {
        let instant = as_moment(value, "EXTRACT", context.zone)?;
        let instant =
            convert(instant, &LogicalType::TimestampTz { precision: 6 }, Mode::Strict, context.zone)?;
        return parts(instant, |micros| micros.div_euclid(1_000_000));
    }
    let time = local(value, "the function", context)?;
    parts(time, move |micros| part(unit, micros))
}

fn parts(time: Typed, of: impl Fn(i64) -> i64 + Send + Sync + 'static) -> Result<Typed, String> {
    let kernel: Kernel = Arc::new(move |arguments, _| {
        let array = arguments[0].array.as_primitive::<TimestampMicrosecondType>();
        Ok(Arc::new(array.unary::<_, Int64Type>(&of)) as ArrayRef)
    });
    call("EXTRACT", &[time], LogicalType::Int64, Volatility::Pure, kernel)
}

/// Parts of a TIME do not carry its sign.
fn extract_of_time(unit: Unit, time: Typed) -> Result<Typed, String> {
    let divide: fn(i64) -> i64 = match unit {
        Unit::Hour => |m| m / 3_600_000_000,
        Unit::Minute => |m| m / 60_000_000 % 60,
        Unit::Second => |m| m / 1_000_000 % 60,
        _ => return Err("a TIME has hours, minutes and seconds only".into()),
    };
    let kernel: Kernel = Arc::new(move |arguments, _| {
        let array = arguments[0].array.as_primitive::<DurationMicrosecondType>();
        Ok(Arc::new(array.unary::<_, Int64Type>(|m| divide(m.saturating_abs()))) as ArrayRef)
    });
    call("EXTRACT", &[time], LogicalType::Int64, Volatility::Pure, kernel)
}

fn part(unit: Unit, micros: i64) -> i64 {
    let t = DateTimeFields::decode(micros);
    match unit {
        Unit::Year => i64::from(t.date.year),
        Unit::Quarter => (i64::from(t.date.month) + 2) / 3,
        Unit::Month => i64::from(t.date.month),
        Unit::Week => iso_week(days(micros)),
        Unit::Day => i64::from(t.date.day),
        Unit::DayOfYear => day_of_year(t.date),
        Unit::DayOfWeek => i64::try_from(day_of_week(days(micros))).unwrap_or(0) + 1,
        Unit::Hour => i64::from(t.hour),
        Unit::Minute => i64::from(t.minute),
        Unit::Second => i64::from(t.second),
        Unit::Millisecond => i64::from(t.second) * 1_000 + i64::from(t.micro / 1_000),
        Unit::Microsecond => i64::from(t.second) * 1_000_000 + i64::from(t.micro),
        Unit::Epoch => micros.div_euclid(1_000_000),
    }
}

/// ISO 8601: weeks begin on Monday, and week 1 holds the first Thursday.
fn iso_week(days: i32) -> i64 {
    // Monday is 0.
    let weekday = i32::try_from((day_of_week(days) + 6) % 7).unwrap_or(0);
    let thursday = days - weekday + 3;
    let year = civil_from_days(thursday).year;
    i64::from((thursday - days_from_civil(year, 1, 1)) / 7 + 1)
}

/// A date-time moved by so many units; `None` outside the calendar.
pub(super) fn add(unit: Unit, amount: i64, micros: i64) -> Option<i64> {
    let step = match unit {
        Unit::Microsecond => 1,
        Unit::Millisecond => 1_000,
        Unit::Second => 1_000_000,
        Unit::Minute => 60_000_000,
        Unit::Hour => 3_600_000_000,
        Unit::Day => MICROS_PER_DAY,
        Unit::Week => 7 * MICROS_PER_DAY,
        Unit::Month => return add_months(amount, micros),
        Unit::Quarter => return add_months(amount.checked_mul(3)?, micros),
        Unit::Year => return add_months(amount.checked_mul(12)?, micros),
        Unit::DayOfWeek | Unit::DayOfYear | Unit::Epoch => return None,
    };
    on_calendar(micros.checked_add(amount.checked_mul(step)?)?)
}

/// The day stays, or becomes the last one of a shorter month.
fn add_months(months: i64, micros: i64) -> Option<i64> {
    let t = DateTimeFields::decode(micros);
    let total = (i64::from(t.date.year) * 12 + i64::from(t.date.month) - 1).checked_add(months)?;
    let year = i32::try_from(total.div_euclid(12)).ok()?;
    if !(1..=9999).contains(&year) {
        return None;
    }
    let month = u8::try_from(total.rem_euclid(12) + 1).ok()?;
    let day = t.date.day.min(days_in_month(year, month));
    Some(DateTimeFields { date: DateFields { year, month, day }, ..t }.encode())
}

/// Years 1 to 9999, which every system can hold.
pub(super) fn on_calendar(micros: i64) -> Option<i64> {
    let first = i64::from(days_from_civil(1, 1, 1)) * MICROS_PER_DAY;
    let end = i64::from(days_from_civil(9999, 12, 31)) * MICROS_PER_DAY + MICROS_PER_DAY;
    (first..end).contains(&micros).then_some(micros)
}

/// Whole units from one date-time to another; negative when it lies before.
pub(super) fn between(unit: Unit, from: i64, to: i64) -> i64 {
    let step = match unit {
        Unit::Microsecond => 1,
        Unit::Millisecond => 1_000,
        Unit::Second => 1_000_000,
        Unit::Minute => 60_000_000,
        Unit::Hour => 3_600_000_000,
        Unit::Day => MICROS_PER_DAY,
        Unit::Week => 7 * MICROS_PER_DAY,
        Unit::Month => return months_between(from, to),
        Unit::Quarter => return months_between(from, to) / 3,
        _ => return months_between(from, to) / 12,
    };
    to.saturating_sub(from) / step
}

fn months_between(from: i64, to: i64) -> i64 {
    let (a, b) = (DateTimeFields::decode(from), DateTimeFields::decode(to));
    let count = |t: &DateTimeFields| i64::from(t.date.year) * 12 + i64::from(t.date.month);
    let rest = |t: &DateTimeFields, micros: i64| (t.date.day, micros.rem_euclid(MICROS_PER_DAY));
    let months = count(&b) - count(&a);
    // The last month counts only when it is complete.
    if months > 0 && rest(&b, to) < rest(&a, from) {
        months - 1
    } else if months < 0 && rest(&b, to) > rest(&a, from) {
        months + 1
    } else {
        months
    }
}

#[cfg(test)]
mod tests {
    use canalis_types::temporal::parse_datetime;

    use super::*;

    fn at(text: &str) -> i64 {
        parse_datetime(text.as_bytes()).unwrap()
    }

    #[test]
    fn months_end_where_the_calendar_ends() {
        for (start, unit, amount, end) in [
            ("2024-01-31 10:00:00", Unit::Month, 1, "2024-02-29 10:00:00"),
            ("2024-03-31 00:00:00", Unit::Month, -1, "2024-02-29 00:00:00"),
            ("2024-02-29 00:00:00", Unit::Year, 1, "2025-02-28 00:00:00"),
            ("1969-12-31 23:00:00", Unit::Hour, 2, "1970-01-01 01:00:00"),
            ("2024-11-15 00:00:00", Unit::Quarter, 1, "2025-02-15 00:00:00"),
        ] {
            assert_eq!(add(unit, amount, at(start)), Some(at(end)), "{start} {unit:?} {amount}");
        }
        assert_eq!(add(Unit::Year, 9000, at("2024-01-01 00:00:00")), None);
        assert_eq!(add(Unit::Day, i64::MAX, 0), None);
    }

    #[test]
    fn only_complete_units_count() {
        for (from, to, unit, expect) in [
            ("2024-01-31 00:00:00", "2024-02-29 00:00:00", Unit::Month, 0),
            ("2024-01-29 00:00:00", "2024-02-29 00:00:00", Unit::Month, 1),
            ("2024-02-29 12:00:00", "2024-01-29 12:00:00", Unit::Month, -1),
            ("2024-02-29 11:00:00", "2024-01-29 12:00:00", Unit::Month, 0),
            ("2020-02-29 00:00:00", "2024-02-28 00:00:00", Unit::Year, 3),
            ("2024-01-01 00:00:00", "2024-01-02 23:59:59", Unit::Day, 1),
        ] {
            assert_eq!(between(unit, at(from), at(to)), expect, "{from} {to} {unit:?}");
        }
    }

    #[test]
    fn iso_weeks_follow_the_first_thursday() {
        for (day, week) in [("2021-01-03", 53), ("2021-01-04", 1), ("2024-12-30", 1), ("2024-06-15", 24)] {
            let micros = at(&format!("{day} 00:00:00"));
            assert_eq!(iso_week(days(micros)), week, "{day}");
        }
    }
}
