//! Owns conversions between dates, times, local date-times and instants, and from text to them.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray,
    builder::PrimitiveBuilder,
    cast::AsArray,
    types::{Date32Type, DurationMicrosecondType, TimestampMicrosecondType},
};
use arrow_schema::ArrowError;
use canalis_batch::arrow_type;
use canalis_types::{
    LogicalType,
    temporal::{self, MICROS_PER_DAY},
};

use crate::{
    call::{Output, refuse},
    compile::types::{Family, family},
    zone::Zone,
};

/// A moment as a text states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Without a zone.
    Local(i64),
    /// With a zone or an offset.
    Instant(i64),
}

impl Moment {
    /// As a local date-time.
    pub fn local(self, zone: Zone) -> Option<i64> {
        match self {
            Moment::Local(micros) => Some(micros),
            Moment::Instant(micros) => zone.local(micros),
        }
    }

    /// As an instant.
    pub fn instant(self, zone: Zone) -> Option<i64> {
        match self {
            Moment::Local(micros) => zone.instant(micros),
            Moment::Instant(micros) => Some(micros),
        }
    }
}

/// Cuts a time to the fraction digits of its type.
pub(crate) fn truncate(micros: i64, precision: u8) -> i64 {
    micros - micros.rem_euclid(10_i64.pow(6 - u32::from(precision.min(6))))
}

/// Reads `YYYY-MM-DD`, or that and `HH:MM:SS[.ffffff]` after a blank or `T`, with an optional `Z` or `±hh:mm`.
pub(crate) fn parse_moment(text: &str) -> Option<Moment> {
    let text = text.trim();
    if let Some(days) = temporal::parse_date(text.as_bytes()) {
        return (!temporal::is_partial_date(days)).then(|| Moment::Local(i64::from(days) * MICROS_PER_DAY));
    }
    let whole = |text: &str| {
        temporal::parse_datetime(text.as_bytes()).filter(|micros| !temporal::is_partial_datetime(*micros))
    };
    if let Some(text) = text.strip_suffix(['Z', 'z']) {
        return whole(text).map(Moment::Instant);
    }
    // An offset can only stand behind the time of day.
    if let Some(at) = text.rfind(['+', '-']).filter(|at| *at >= 19) {
        let (text, offset) = text.split_at(at);
        let (hours, minutes) = offset[1..].split_once(':').unwrap_or((&offset[1..], "0"));
        let (hours, minutes): (u32, u32) = (hours.parse().ok()?, minutes.parse().ok()?);
        if hours > 18 || minutes > 59 {
            return None;
        }
        let distance = i64::from(hours * 60 + minutes) * 60_000_000;
        let distance = if offset.starts_with('-') { -distance } else { distance };
        return whole(text).map(|micros| Moment::Instant(micros - distance));
    }
    whole(text).map(Moment::Local)
}

/// Reads dates and times from text.
pub(super) fn parse(array: &ArrayRef, to: &LogicalType, zone: Zone) -> Output {
    match to {
        LogicalType::Date => each::<Date32Type>(array, to, |text| {
            i32::try_from(parse_moment(text)?.local(zone)?.div_euclid(MICROS_PER_DAY)).ok()
        }),
        LogicalType::Time { precision } => each::<DurationMicrosecondType>(array, to, |text| {
            temporal::parse_duration(text.trim().as_bytes()).map(|micros| truncate(micros, *precision))
        }),
        LogicalType::TimestampTz { precision } => each::<TimestampMicrosecondType>(array, to, |text| {
            parse_moment(text)?.instant(zone).map(|micros| truncate(micros, *precision))
        }),
        LogicalType::Timestamp { precision } => each::<TimestampMicrosecondType>(array, to, |text| {
            parse_moment(text)?.local(zone).map(|micros| truncate(micros, *precision))
        }),
        other => Err(refuse(format!("text cannot be read as {other}"))),
    }
}

fn each<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    to: &LogicalType,
    read: impl Fn(&str) -> Option<T::Native>,
) -> Output {
    let mut out = PrimitiveBuilder::<T>::with_capacity(array.len()).with_data_type(arrow_type(to));
    for text in array.as_string::<i32>() {
        match text {
            None => out.append_null(),
            Some(text) => {
                out.append_value(read(text).ok_or_else(|| refuse(format!("text is not a {to}")))?);
            }
        }
    }
    let finished: PrimitiveArray<T> = out.finish();
    Ok(Arc::new(finished))
}

/// Converts dates and times to each other. A time of day is that of the local date-time; fractions are cut.
pub(super) fn convert(array: &ArrayRef, from: &LogicalType, to: &LogicalType, zone: Zone) -> Output {
    if let (LogicalType::Time { .. }, LogicalType::Time { precision }) = (from, to) {
        let out = array.as_primitive::<DurationMicrosecondType>();
        return Ok(Arc::new(out.unary::<_, DurationMicrosecondType>(|micros| truncate(micros, *precision))));
    }
    if let (LogicalType::TimestampTz { .. }, LogicalType::TimestampTz { precision }) = (from, to) {
        return map_micros(array, to, |micros| Some(truncate(micros, *precision)));
    }
    let local = locals(array, from, zone)?;
    match to {
        LogicalType::Date => {
            let days = |micros: i64| {
                i32::try_from(micros.div_euclid(MICROS_PER_DAY)).map_err(|_| refuse("date is out of range"))
            };
            let out = local
                .as_primitive::<TimestampMicrosecondType>()
                .try_unary::<_, Date32Type, ArrowError>(days)?;
            Ok(Arc::new(out))
        }
        LogicalType::Time { precision } => {
            let out = local.as_primitive::<TimestampMicrosecondType>().unary::<_, DurationMicrosecondType>(
                |micros| truncate(micros.rem_euclid(MICROS_PER_DAY), *precision),
            );
            Ok(Arc::new(out))
        }
        LogicalType::Timestamp { precision } => map_micros(&local, to, |m| Some(truncate(m, *precision))),
        LogicalType::TimestampTz { precision } => {
            map_micros(&local, to, |m| zone.instant(m).map(|m| truncate(m, *precision)))
        }
        other => Err(refuse(format!("{from} cannot be converted to {other}"))),
    }
}

/// Local date-times in microseconds of dates, date-times and instants.
pub(crate) fn locals(array: &ArrayRef, from: &LogicalType, zone: Zone) -> Output {
    let to = LogicalType::Timestamp { precision: 6 };
    match family(from) {
        Family::Date => {
            let micros = array
                .as_primitive::<Date32Type>()
                .unary::<_, TimestampMicrosecondType>(|days| i64::from(days) * MICROS_PER_DAY);
            Ok(Arc::new(micros))
        }
        Family::Instant => map_micros(array, &to, |micros| zone.local(micros)),
        _ => Ok(array.clone()),
    }
}

fn map_micros(array: &ArrayRef, to: &LogicalType, map: impl Fn(i64) -> Option<i64>) -> Output {
    let out = array
        .as_primitive::<TimestampMicrosecondType>()
        .try_unary::<_, TimestampMicrosecondType, ArrowError>(|micros| {
            map(micros).ok_or_else(|| refuse("date-time is out of range"))
        })?;
    Ok(Arc::new(out.with_data_type(arrow_type(to))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_with_and_without_a_zone() {
        for (text, expect) in [
            ("1970-01-02", Some(Moment::Local(MICROS_PER_DAY))),
            ("1970-01-01 00:00:01", Some(Moment::Local(1_000_000))),
            ("1970-01-01T00:00:01.5", Some(Moment::Local(1_500_000))),
            ("1970-01-01T00:00:01Z", Some(Moment::Instant(1_000_000))),
            ("1970-01-01T01:00:01+01:00", Some(Moment::Instant(1_000_000))),
            ("1969-12-31 22:30:01-01:30", Some(Moment::Instant(1_000_000))),
            ("2024-02-30", None),
            ("0000-00-00", None),
            ("2024-01-01 25:00:00", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(parse_moment(text), expect, "{text}");
        }
    }
}
