//! Owns the less usual functions of dates and times: other zones, names and numbers of days, parts of a clock.

use std::sync::Arc;

use arrow_array::{
    ArrayRef,
    builder::PrimitiveBuilder,
    cast::AsArray,
    types::{DurationMicrosecondType, Int64Type},
};
use arrow_schema::ArrowError;
use canalis_types::{
    LogicalType,
    temporal::{DateFields, MICROS_PER_DAY, civil_from_days, days_from_civil, days_in_month},
};

use super::{
    Function,
    row::{integer_rows, text_rows},
    time::{PLAIN, date_format, days, local, pattern, timestamps, to_date},
    time_parts::on_calendar,
};
use crate::{
    call::{Kernel, Volatility, refuse},
    cast::parse_moment,
    compile::{
        Context, Typed,
        coerce::{as_integer, as_moment, as_text, convert},
        typed::call,
        types::Family,
    },
    pattern::day_of_week,
    syntax::Mode,
    zone::Zone,
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("DATE_FORMAT_TZ", 2, 3, date_format_tz),
    Function::new("CONVERT_TZ", 3, 3, convert_tz),
    Function::new("DATE", 1, 1, to_date),
    Function::new("DATEDIFF", 2, 2, date_diff),
    Function::new("DATE_DIFF", 2, 2, date_diff),
    Function::new("LAST_DAY", 1, 1, last_day),
    Function::new("DAYNAME", 1, 1, |c, a| named(c, a, "EEEE")),
    Function::new("MONTHNAME", 1, 1, |c, a| named(c, a, "MMMM")),
    Function::new("WEEKDAY", 1, 1, weekday),
    Function::new("TO_DAYS", 1, 1, to_days),
    Function::new("FROM_DAYS", 1, 1, from_days),
    Function::new("MAKEDATE", 2, 2, make_date),
    Function::new("TIMEDIFF", 2, 2, time_diff),
    Function::new("SEC_TO_TIME", 1, 1, sec_to_time),
    Function::new("TIME_TO_SEC", 1, 1, time_to_sec),
];

/// A constant time zone.
fn zone(argument: &Typed) -> Result<Zone, String> {
    Zone::parse(argument.literal_text().ok_or("the time zone must be a text constant")?)
}

/// The text of a date-time in a zone of its own.
fn date_format_tz(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let there = zone(&arguments.pop().ok_or("a time zone is needed")?)?;
    let pattern = pattern(arguments.get(1), "yyyy-MM-dd HH:mm:ss")?;
    let instant = as_moment(arguments.swap_remove(0), "DATE_FORMAT_TZ", context.zone)?;
    let instant = convert(instant, &LogicalType::TimestampTz { precision: 6 }, Mode::Strict, context.zone)?;
    text_rows("DATE_FORMAT_TZ", &[instant], LogicalType::Text, move |row| {
        let local = there.local(row.micros(0)).ok_or_else(|| refuse("date-time is out of range"))?;
        let mut out = String::new();
        pattern.write(local, &mut out);
        Ok(Some(out.into()))
    })
}

/// The text of a local date-time of one zone in another.
fn convert_tz(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let (from, to) = (zone(&arguments[1])?, zone(&arguments[2])?);
    let pattern = pattern(None, "yyyy-MM-dd HH:mm:ss")?;
    let text = as_text(arguments.into_iter().next().ok_or("a date-time is needed")?, context.zone)?;
    text_rows("CONVERT_TZ", &[text], LogicalType::Text, move |row| {
        let moment = parse_moment(row.text(0)).ok_or_else(|| refuse("text is not a date-time"))?;
        let local = moment.instant(from).and_then(|instant| to.local(instant));
        let mut out = String::new();
        pattern.write(local.ok_or_else(|| refuse("date-time is out of range"))?, &mut out);
        Ok(Some(out.into()))
    })
}

/// The instant of a text in a zone, UTC unless it is named.
pub(super) fn instant_of_text(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let there = match arguments.get(2) {
        None => Zone::utc(),
        Some(argument) => zone(argument)?,
    };
    let pattern = arguments.get(1).map(|a| pattern(Some(a), "")).transpose()?;
    let text = as_text(arguments.swap_remove(0), context.zone)?;
    let ty = LogicalType::TimestampTz { precision: 3 };
    timestamps("TO_TIMESTAMP_LTZ", &[text], ty, move |arguments, row| {
        let text = arguments[0].array.as_string::<i32>().value(arguments[0].at(row));
        let instant = match &pattern {
            None => parse_moment(text).and_then(|m| m.instant(there)),
            Some(pattern) => pattern.read(text).and_then(|local| there.instant(local)),
        };
        instant.ok_or_else(|| refuse("text is not a date-time of this form"))
    })
}

fn day(context: &Context, value: Typed) -> Result<Typed, String> {
    local(value, "the function", context)
}

/// Days from the second date to the first; times of day do not count.
fn date_diff(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments: Vec<Typed> = arguments.into_iter().map(|a| day(context, a)).collect::<Result<_, _>>()?;
    integer_rows("DATEDIFF", &arguments, |row| {
        Ok(Some(i64::from(days(row.micros(0))) - i64::from(days(row.micros(1)))))
    })
}

/// A function from dates to dates.
fn dates(
    name: &str,
    context: &Context,
    arguments: &[Typed],
    compute: impl Fn(&[crate::call::Argument], usize) -> Result<i64, ArrowError> + Send + Sync + 'static,
) -> Result<Typed, String> {
    let moments = timestamps(name, arguments, PLAIN, move |arguments, row| {
        compute(arguments, row)?
            .checked_mul(MICROS_PER_DAY)
            .and_then(on_calendar)
            .ok_or_else(|| refuse("date is out of range"))
    })?;
    convert(moments, &LogicalType::Date, Mode::Strict, context.zone)
}

fn last_day(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let value = day(context, arguments.swap_remove(0))?;
    dates("LAST_DAY", context, &[value], |arguments, row| {
        let date = civil_from_days(days(super::time::micros(&arguments[0], row)));
        let day = days_in_month(date.year, date.month);
        Ok(i64::from(DateFields { day, ..date }.encode()))
    })
}

fn named(context: &Context, mut arguments: Vec<Typed>, pattern: &str) -> Result<Typed, String> {
    arguments.push(Typed::text(pattern));
    date_format(context, arguments)
}

/// Monday is 0.
fn weekday(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let value = day(context, arguments.swap_remove(0))?;
    integer_rows("WEEKDAY", &[value], |row| {
        Ok(Some(i64::try_from((day_of_week(days(row.micros(0))) + 6) % 7).unwrap_or(0)))
    })
}

/// Days from the year 0 to 1970-01-01.
const DAYS_TO_EPOCH: i64 = 719_528;

fn to_days(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let value = day(context, arguments.swap_remove(0))?;
    integer_rows("TO_DAYS", &[value], |row| Ok(Some(i64::from(days(row.micros(0))) + DAYS_TO_EPOCH)))
}

fn integer_at(argument: &crate::call::Argument, row: usize) -> i64 {
    argument.array.as_primitive::<Int64Type>().value(argument.at(row))
}

fn from_days(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let value = as_integer(arguments.swap_remove(0), "the number of days", context.zone)?;
    dates("FROM_DAYS", context, &[value], |arguments, row| {
        Ok(integer_at(&arguments[0], row).saturating_sub(DAYS_TO_EPOCH))
    })
}

/// The day of a year by its number, from 1; a number beyond the year reaches into the next.
fn make_date(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let numbers: Vec<Typed> = arguments
        .into_iter()
        .map(|a| as_integer(a, "the argument", context.zone))
        .collect::<Result<_, _>>()?;
    dates("MAKEDATE", context, &numbers, |arguments, row| {
        let (year, day) = (integer_at(&arguments[0], row), integer_at(&arguments[1], row));
        let out = || refuse("date is out of range");
        if !(1..=9999).contains(&year) || day < 1 {
            return Err(out());
        }
        let first = days_from_civil(i32::try_from(year).map_err(|_| out())?, 1, 1);
        i64::from(first).checked_add(day - 1).ok_or_else(out)
    })
}

/// MySQL's TIME ends at 838:59:59.
const LONGEST_TIME: i64 = (838 * 3600 + 59 * 60 + 59) * 1_000_000;

/// The time from the second argument to the first: of two times, or of two dates with times.
fn time_diff(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let are_times = arguments.iter().all(|a| a.family() == Family::Time);
    let mut micros = Vec::with_capacity(2);
    for argument in arguments {
        micros.push(if are_times { argument } else { day(context, argument)? });
    }
    let kernel: Kernel = Arc::new(move |arguments, rows| {
        let at = |argument: &crate::call::Argument, row: usize| {
            if are_times {
                argument.array.as_primitive::<DurationMicrosecondType>().value(argument.at(row))
            } else {
                super::time::micros(argument, row)
            }
        };
        let mut out = PrimitiveBuilder::<DurationMicrosecondType>::with_capacity(rows);
        for row in 0..rows {
            if arguments.iter().any(|a| a.is_null(row)) {
                out.append_null();
                continue;
            }
            let difference = at(&arguments[0], row).saturating_sub(at(&arguments[1], row));
            if difference.saturating_abs() > LONGEST_TIME {
                return Err(refuse("time is out of range"));
            }
            out.append_value(difference);
        }
        Ok(Arc::new(out.finish()) as ArrayRef)
    });
    call("TIMEDIFF", &micros, LogicalType::Time { precision: 6 }, Volatility::Pure, kernel)
}

fn sec_to_time(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let seconds = as_integer(arguments.swap_remove(0), "the number of seconds", context.zone)?;
    let kernel: Kernel = Arc::new(|arguments, _| {
        let array = arguments[0].array.as_primitive::<Int64Type>();
        let out = array.try_unary::<_, DurationMicrosecondType, ArrowError>(|seconds| {
            let micros = seconds.checked_mul(1_000_000).filter(|m| m.saturating_abs() <= LONGEST_TIME);
            micros.ok_or_else(|| refuse("time is out of range"))
        })?;
        Ok(Arc::new(out) as ArrayRef)
    });
    call("SEC_TO_TIME", &[seconds], LogicalType::Time { precision: 0 }, Volatility::Pure, kernel)
}

fn time_to_sec(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let value = arguments.swap_remove(0);
    let time = match value.family() {
        Family::Text | Family::Time | Family::Timestamp | Family::Instant => {
            convert(value, &LogicalType::Time { precision: 0 }, Mode::Strict, context.zone)?
        }
        _ => return Err(format!("the function takes a time, not {}", value.ty)),
    };
    let kernel: Kernel = Arc::new(|arguments, _| {
        let array = arguments[0].array.as_primitive::<DurationMicrosecondType>();
        Ok(Arc::new(array.unary::<_, Int64Type>(|micros| micros / 1_000_000)) as ArrayRef)
    });
    call("TIME_TO_SEC", &[time], LogicalType::Int64, Volatility::Pure, kernel)
}
