//! Owns what cannot be written: values that a form would change in silence.

use arrow_array::{Array, cast::AsArray, types::*};
use canalis_batch::ChangeBatch;
use canalis_types::{LogicalType, temporal};

use super::{
    ZeroDates,
    types::Unit,
    write_cell::{CellWriter, Out},
};

/// What must be looked at in each value of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    Date,
    Timestamp(Unit),
    Time(Unit),
    /// A time of day that a clock shows.
    Clock,
    Geometry,
}

/// The check of a column, if its form can fail.
pub(super) fn check(writer: CellWriter, ty: &LogicalType) -> Option<Check> {
    let keeps_zero_dates = writer.zero_dates == ZeroDates::Refuse;
    match (writer.form, ty) {
        (Out::Timestamp(unit @ (Unit::Millis | Unit::Nanos)), _) => Some(Check::Timestamp(unit)),
        (_, LogicalType::Date) => keeps_zero_dates.then_some(Check::Date),
        (_, LogicalType::Timestamp { .. } | LogicalType::TimestampTz { .. }) => {
            keeps_zero_dates.then_some(Check::Timestamp(Unit::Micros))
        }
        (Out::Time(unit @ (Unit::Millis | Unit::Nanos)), _) => Some(Check::Time(unit)),
        (Out::IsoTime(_), _) => Some(Check::Clock),
        (_, LogicalType::Geometry) => Some(Check::Geometry),
        _ => None,
    }
}

const ZERO_DATE: &str = "a date that is on no calendar would be lost (`zero-dates` can allow it)";
const FINER: &str = "the value is finer than a millisecond, which the form of times cannot hold";
const BEYOND: &str = "the value is beyond what the form of times can hold";

/// Why the value of a cell cannot be written.
pub(super) fn refusal(
    check: Check,
    zero_dates: ZeroDates,
    batch: &ChangeBatch,
    column: usize,
    row: usize,
) -> Option<&'static str> {
    let array = batch.rows().column(column);
    if array.is_null(row) {
        return None;
    }
    match check {
        Check::Date => {
            let days = array.as_primitive_opt::<Date32Type>()?.value(row);
            temporal::is_partial_date(days).then_some(ZERO_DATE)
        }
        Check::Timestamp(unit) => {
            let micros = array.as_primitive_opt::<TimestampMicrosecondType>()?.value(row);
            if temporal::is_partial_datetime(micros) {
                return (zero_dates == ZeroDates::Refuse).then_some(ZERO_DATE);
            }
            match unit {
                Unit::Millis if micros % 1000 != 0 => Some(FINER),
                Unit::Nanos => micros.checked_mul(1000).is_none().then_some(BEYOND),
                Unit::Millis | Unit::Micros => None,
            }
        }
        Check::Time(unit) => {
            let micros = array.as_primitive_opt::<DurationMicrosecondType>()?.value(row);
            match unit {
                Unit::Millis if micros % 1000 != 0 => Some(FINER),
                Unit::Millis => i32::try_from(micros / 1000).is_err().then_some(BEYOND),
                Unit::Nanos => micros.checked_mul(1000).is_none().then_some(BEYOND),
                Unit::Micros => None,
            }
        }
        Check::Clock => {
            let micros = array.as_primitive_opt::<DurationMicrosecondType>()?.value(row);
            let is_of_day = (0..temporal::MICROS_PER_DAY).contains(&micros);
            (!is_of_day).then_some("a negative time or one of 24 hours and more is no time of day")
        }
        Check::Geometry => {
            let bytes = array.as_binary_opt::<i32>()?.value(row);
            (bytes.len() < 4).then_some("a geometry is shorter than its SRID")
        }
    }
}
