//! Owns conversions and arithmetic of dates and times. Instants are seen in the session's zone.

use std::sync::Arc;

use arrow_array::{ArrayRef, builder::PrimitiveBuilder, cast::AsArray, types::TimestampMicrosecondType};
use arrow_schema::ArrowError;
use canalis_batch::arrow_type;
use canalis_types::{LogicalType, temporal::MICROS_PER_DAY};
use datafusion_common::ScalarValue;

use super::{
    Function,
    row::{integer_rows, text_rows},
    time_parts::{add, between, on_calendar},
};
use crate::{
    call::{Argument, Kernel, Volatility, refuse},
    cast::{parse_moment, truncate},
    compile::{
        Context, Typed,
        coerce::{as_integer, as_moment, as_text, convert},
        typed::call,
        types::{Family, fraction},
    },
    pattern::Pattern,
    syntax::{Mode, Unit},
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("DATE_FORMAT", 2, 2, date_format),
    Function::new("FROM_UNIXTIME", 1, 2, from_unixtime),
    Function::new("TO_DATE", 1, 2, to_date),
    Function::new("TO_TIMESTAMP", 1, 2, to_timestamp),
    Function::new("TO_TIMESTAMP_LTZ", 1, 3, to_timestamp_ltz),
    Function::new("DATE_ADD", 2, 2, |c, a| date_add(c, a, 1)),
    Function::new("DATE_SUB", 2, 2, |c, a| date_add(c, a, -1)),
    Function::with_unit("TIMESTAMPADD", 2, timestamp_add),
    Function::with_unit("TIMESTAMP_ADD", 2, timestamp_add),
    Function::with_unit("TIMESTAMPDIFF", 2, timestamp_diff),
    Function::with_unit("TIMESTAMP_DIFF", 2, timestamp_diff),
];

pub(super) const PLAIN: LogicalType = LogicalType::Timestamp { precision: 6 };

/// Dates and times as local date-times with microseconds.
pub(super) fn local(value: Typed, what: &str, context: &Context) -> Result<Typed, String> {
    let moment = as_moment(value, what, context.zone)?;
    convert(moment, &PLAIN, Mode::Strict, context.zone)
}

pub(super) fn pattern(argument: Option<&Typed>, otherwise: &str) -> Result<Pattern, String> {
    match argument {
        None => Pattern::parse(otherwise),
        Some(argument) => {
            Pattern::parse(argument.literal_text().ok_or("the date pattern must be a text constant")?)
        }
    }
}

pub(super) fn micros(argument: &Argument, row: usize) -> i64 {
    argument.array.as_primitive::<TimestampMicrosecondType>().value(argument.at(row))
}

pub(super) fn date_format(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let pattern = pattern(arguments.get(1), "")?;
    let time = local(arguments.swap_remove(0), "DATE_FORMAT", context)?;
    let kernel: Kernel = Arc::new(move |arguments, rows| {
        let mut out = arrow_array::builder::StringBuilder::with_capacity(rows, rows * 20);
        let mut text = String::new();
        for row in 0..rows {
            if arguments[0].is_null(row) {
                out.append_null();
                continue;
            }
            text.clear();
            pattern.write(micros(&arguments[0], row), &mut text);
            out.append_value(&text);
        }
        Ok(Arc::new(out.finish()) as ArrayRef)
    });
    call("DATE_FORMAT", &[time], LogicalType::Text, Volatility::Pure, kernel)
}

/// Text of seconds since the epoch, in the session's zone.
fn from_unixtime(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let zone = context.zone;
    let pattern = pattern(arguments.get(1), "yyyy-MM-dd HH:mm:ss")?;
    let seconds = as_integer(arguments.swap_remove(0), "the number of seconds", zone)?;
    text_rows("FROM_UNIXTIME", &[seconds], LogicalType::Text, move |row| {
        let local = row.integer(0).checked_mul(1_000_000).and_then(on_calendar).and_then(|m| zone.local(m));
        let mut out = String::new();
        pattern.write(local.ok_or_else(|| refuse("date-time is out of range"))?, &mut out);
        Ok(Some(out.into()))
    })
}

/// Without arguments the clock, otherwise the seconds since the epoch of a local date-time or its text.
pub(super) fn unix_timestamp(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let zone = context.zone;
    if arguments.is_empty() {
        return super::clock::unix_now();
    }
    if arguments.len() == 1 && arguments[0].family() != Family::Text {
        let instant = as_moment(arguments.swap_remove(0), "UNIX_TIMESTAMP", zone)?;
        let instant = convert(instant, &LogicalType::TimestampTz { precision: 6 }, Mode::Strict, zone)?;
        let kernel: Kernel = Arc::new(|arguments, _| {
            let array = arguments[0].array.as_primitive::<TimestampMicrosecondType>();
            let out = array.unary::<_, arrow_array::types::Int64Type>(|m| m.div_euclid(1_000_000));
            Ok(Arc::new(out) as ArrayRef)
        });
        return call("UNIX_TIMESTAMP", &[instant], LogicalType::Int64, Volatility::Pure, kernel);
    }
    let pattern = arguments.get(1).map(|a| pattern(Some(a), "")).transpose()?;
    let text = as_text(arguments.swap_remove(0), zone)?;
    integer_rows("UNIX_TIMESTAMP", &[text], move |row| {
        let instant = match &pattern {
            None => parse_moment(row.text(0)).and_then(|m| m.instant(zone)),
            Some(pattern) => pattern.read(row.text(0)).and_then(|local| zone.instant(local)),
        };
        Ok(Some(instant.ok_or_else(|| refuse("text is not a date-time"))?.div_euclid(1_000_000)))
    })
}

pub(super) fn to_date(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let zone = context.zone;
    if arguments.len() == 1 {
        let value = arguments.swap_remove(0);
        if value.family() != Family::Text {
            as_moment(value.clone(), "TO_DATE", zone)?;
        }
        return convert(value, &LogicalType::Date, Mode::Strict, zone);
    }
    let read = read("TO_DATE", context, arguments, PLAIN)?;
    convert(read, &LogicalType::Date, Mode::Strict, zone)
}

/// Without a pattern all six fraction digits are kept; with one, as many as it shows but at least three.
fn to_timestamp(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    if arguments.len() == 1 {
        let value = as_moment(arguments.swap_remove(0), "TO_TIMESTAMP", context.zone)?;
        return convert(value, &PLAIN, Mode::Strict, context.zone);
    }
    let precision = pattern(arguments.get(1), "")?.fraction_digits().max(3);
    read("TO_TIMESTAMP", context, arguments, LogicalType::Timestamp { precision })
}

fn read(name: &str, context: &Context, mut arguments: Vec<Typed>, ty: LogicalType) -> Result<Typed, String> {
    let pattern = pattern(arguments.get(1), "")?;
    let text = as_text(arguments.swap_remove(0), context.zone)?;
    timestamps(name, &[text], ty, move |arguments, row| {
        let text = arguments[0].array.as_string::<i32>().value(arguments[0].at(row));
        pattern.read(text).ok_or_else(|| refuse("text does not have the form of the date pattern"))
    })
}

/// The instant of a number of seconds (precision 0) or milliseconds (precision 3, also without one), or of a text.
fn to_timestamp_ltz(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    if arguments[0].family() == Family::Text && !arguments[0].untyped {
        return super::calendar::instant_of_text(context, arguments);
    }
    if arguments.len() == 3 {
        return Err("a number takes no pattern and no time zone".into());
    }
    let factor = match arguments.get(1).map(|a| &a.value) {
        None | Some(Some(ScalarValue::Int32(Some(3)))) => 1_000,
        Some(Some(ScalarValue::Int32(Some(0)))) => 1_000_000,
        Some(_) => return Err("the second argument is 0 for seconds or 3 for milliseconds".into()),
    };
    let value = arguments.swap_remove(0);
    let number = as_integer(value, "the first argument", context.zone)?;
    timestamps(
        "TO_TIMESTAMP_LTZ",
        &[number],
        LogicalType::TimestampTz { precision: 3 },
        move |arguments, row| {
            let number = arguments[0].array.as_primitive::<arrow_array::types::Int64Type>();
            let number = number.value(arguments[0].at(row));
            number
                .checked_mul(factor)
                .and_then(on_calendar)
                .ok_or_else(|| refuse("date-time is out of range"))
        },
    )
}

/// A function with date-times as its result; NULL in any argument gives NULL.
pub(super) fn timestamps(
    name: &str,
    arguments: &[Typed],
    ty: LogicalType,
    compute: impl Fn(&[Argument], usize) -> Result<i64, ArrowError> + Send + Sync + 'static,
) -> Result<Typed, String> {
    let (physical, precision) = (arrow_type(&ty), fraction(&ty));
    let kernel: Kernel = Arc::new(move |arguments, rows| {
        let mut out = PrimitiveBuilder::<TimestampMicrosecondType>::with_capacity(rows)
            .with_data_type(physical.clone());
        for row in 0..rows {
            if arguments.iter().any(|a| a.is_null(row)) {
                out.append_null();
            } else {
                out.append_value(truncate(compute(arguments, row)?, precision));
            }
        }
        Ok(Arc::new(out.finish()) as ArrayRef)
    });
    call(name, arguments, ty, Volatility::Pure, kernel)
}

/// Adds days to the date of a date or time.
fn date_add(context: &Context, arguments: Vec<Typed>, sign: i64) -> Result<Typed, String> {
    let [time, days] = <[Typed; 2]>::try_from(arguments).map_err(|_| "two arguments are needed")?;
    let time = local(time, "the function", context)?;
    let days = as_integer(days, "the number of days", context.zone)?;
    let added = timestamps("DATE_ADD", &[time, days], PLAIN, move |arguments, row| {
        let days = arguments[1].array.as_primitive::<arrow_array::types::Int64Type>();
        let days = days.value(arguments[1].at(row)).saturating_mul(sign);
        add(Unit::Day, days, micros(&arguments[0], row)).ok_or_else(|| refuse("date is out of range"))
    })?;
    convert(added, &LogicalType::Date, Mode::Strict, context.zone)
}

/// Adds a number of units. A date stays a date when the unit is a day or more; instants move in the session's zone for
/// days and more, and by exact time below.
fn timestamp_add(context: &Context, unit: Unit, arguments: Vec<Typed>) -> Result<Typed, String> {
    let zone = context.zone;
    let [amount, time] = <[Typed; 2]>::try_from(arguments).map_err(|_| "two arguments are needed")?;
    if matches!(unit, Unit::DayOfWeek | Unit::DayOfYear | Unit::Epoch) {
        return Err("this unit can be extracted but not added".into());
    }
    let amount = as_integer(amount, "the number of units", zone)?;
    let time = as_moment(time, "the function", zone)?;
    let ty = time.ty.clone();
    let is_calendar = matches!(unit, Unit::Day | Unit::Week | Unit::Month | Unit::Quarter | Unit::Year);
    let finest = match unit {
        Unit::Microsecond => 6,
        Unit::Millisecond => 3,
        _ => 0,
    };
    let (work, result) = match &ty {
        LogicalType::Date if is_calendar => (PLAIN, LogicalType::Date),
        LogicalType::TimestampTz { precision } => {
            let precision = (*precision).max(finest);
            (LogicalType::TimestampTz { precision: 6 }, LogicalType::TimestampTz { precision })
        }
        other => (PLAIN, LogicalType::Timestamp { precision: fraction(other).max(finest) }),
    };
    let is_instant = matches!(work, LogicalType::TimestampTz { .. });
    let time = convert(time, &work, Mode::Strict, zone)?;
    let moved = timestamps("TIMESTAMPADD", &[amount, time], work, move |arguments, row| {
        let amount = arguments[0].array.as_primitive::<arrow_array::types::Int64Type>();
        let amount = amount.value(arguments[0].at(row));
        let start = micros(&arguments[1], row);
        let end = if is_instant && is_calendar {
            zone.local(start).and_then(|l| add(unit, amount, l)).and_then(|l| zone.instant(l))
        } else {
            add(unit, amount, start)
        };
        end.ok_or_else(|| refuse("date-time is out of range"))
    })?;
    convert(moved, &result, Mode::Strict, zone)
}

/// Whole units from the first to the second.
fn timestamp_diff(context: &Context, unit: Unit, arguments: Vec<Typed>) -> Result<Typed, String> {
    let [from, to] = <[Typed; 2]>::try_from(arguments).map_err(|_| "two arguments are needed")?;
    if matches!(unit, Unit::DayOfWeek | Unit::DayOfYear | Unit::Epoch) {
        return Err("this unit can be extracted but not counted".into());
    }
    let (from, to) = (local(from, "the function", context)?, local(to, "the function", context)?);
    let kernel: Kernel = Arc::new(move |arguments, rows| {
        let mut out = arrow_array::builder::Int64Builder::with_capacity(rows);
        for row in 0..rows {
            let is_null = arguments.iter().any(|a| a.is_null(row));
            out.append_option(
                (!is_null).then(|| between(unit, micros(&arguments[0], row), micros(&arguments[1], row))),
            );
        }
        Ok(Arc::new(out.finish()) as ArrayRef)
    });
    call("TIMESTAMPDIFF", &[from, to], LogicalType::Int64, Volatility::Pure, kernel)
}

/// Days of a local date-time.
pub(super) fn days(micros: i64) -> i32 {
    i32::try_from(micros.div_euclid(MICROS_PER_DAY)).unwrap_or(i32::MAX)
}
