//! Owns implicit conversions: what may meet what, and as which type.

use std::sync::Arc;

use canalis_batch::arrow_type;
use canalis_types::LogicalType;
use datafusion_common::ScalarValue;

use super::{
    typed::{Typed, call},
    types::{Family, common, family, is_number},
};
use crate::{
    call::{Kernel, Volatility},
    cast,
    syntax::Mode,
    zone::Zone,
};

/// Converts to a type, as CAST does.
///
/// # Errors
/// The types cannot be converted, or a constant does not fit.
pub(crate) fn convert(value: Typed, to: &LogicalType, mode: Mode, zone: Zone) -> Result<Typed, String> {
    if value.untyped {
        return Typed::null(to.clone());
    }
    let Some(cast) = cast::plan(&value.ty, to, zone)? else { return Ok(value.retyped(to.clone())) };
    let ty = arrow_type(to);
    let kernel: Kernel = match mode {
        Mode::Strict => Arc::new(move |arguments, _| cast(&arguments[0].array)),
        Mode::Try => Arc::new(move |arguments, _| cast::tolerant(&cast, &arguments[0].array, &ty)),
    };
    call("CAST", &[value], to.clone(), Volatility::Pure, kernel)
}

/// Brings values to one type: for CASE branches, IN lists and comparisons. Text constants take the type of the others.
///
/// # Errors
/// There is no common type, or a text constant does not have it.
pub(crate) fn unify(values: Vec<Typed>, zone: Zone) -> Result<(Vec<Typed>, LogicalType), String> {
    let ty = common_of(&values)?;
    let mut out = Vec::with_capacity(values.len());
    for value in values {
        out.push(widen(value, &ty, zone)?);
    }
    Ok((out, ty))
}

/// Brings two values to one type for a comparison. A number constant takes the column's own type when it fits exactly,
/// so that the column need not be converted.
///
/// # Errors
/// As [`unify`].
pub(crate) fn unify_pair(left: Typed, right: Typed, zone: Zone) -> Result<(Typed, Typed), String> {
    if let Some(right) = narrowed(&right, &left, zone) {
        return Ok((left, right));
    }
    if let Some(left) = narrowed(&left, &right, zone) {
        return Ok((left, right));
    }
    let (pair, _) = unify(vec![left, right], zone)?;
    match <[Typed; 2]>::try_from(pair) {
        Ok([left, right]) => Ok((left, right)),
        Err(_) => Err("a comparison has two sides".into()),
    }
}

/// A number constant as the type of the other side, if that is exact.
fn narrowed(constant: &Typed, other: &Typed, zone: Zone) -> Option<Typed> {
    let applies = constant.is_literal()
        && other.value.is_none()
        && constant.ty != other.ty
        && matches!(constant.family(), Family::Integer | Family::Decimal)
        && matches!(other.family(), Family::Integer | Family::Decimal);
    if !applies {
        return None;
    }
    let there = convert(constant.clone(), &other.ty, Mode::Strict, zone).ok()?;
    let back = convert(there.clone(), &constant.ty, Mode::Strict, zone).ok()?;
    (back.value == constant.value).then_some(there)
}

fn common_of(values: &[Typed]) -> Result<LogicalType, String> {
    let mut ty: Option<LogicalType> = None;
    // Text constants only count when there is nothing else.
    let has_other = values.iter().any(|v| !v.untyped && v.family() != Family::Text);
    let has_boolean = values.iter().any(|v| !v.untyped && v.family() == Family::Boolean);
    for value in values {
        let adapts =
            value.untyped || (has_other && value.is_text_literal()) || (has_boolean && is_zero_or_one(value));
        if adapts {
            continue;
        }
        ty = Some(match ty {
            None => value.ty.clone(),
            Some(ty) => common(&ty, &value.ty)
                .map_err(|why| format!("{why}; write CAST(… AS type) around one of them"))?,
        });
    }
    Ok(ty.unwrap_or(LogicalType::Text))
}

/// `flag = 1` is usual where databases keep booleans as small numbers.
fn is_zero_or_one(value: &Typed) -> bool {
    matches!(value.value, Some(ScalarValue::Int32(Some(0 | 1))))
}

fn widen(value: Typed, ty: &LogicalType, zone: Zone) -> Result<Typed, String> {
    if value.ty == *ty && !value.untyped {
        return Ok(value);
    }
    // Texts and bytes meet without a limit: lengths are only enforced by CAST.
    if value.family() == family(ty)
        && matches!(value.family(), Family::Text | Family::Binary)
        && !value.untyped
    {
        return Ok(value.retyped(ty.clone()));
    }
    let text = value.is_text_literal();
    convert(value, ty, Mode::Strict, zone)
        .map_err(|why| if text { format!("{why}: it is compared as {ty}") } else { why })
}

/// Text of any value, for functions on text.
///
/// # Errors
/// A constant that is not UTF-8.
pub(crate) fn as_text(value: Typed, zone: Zone) -> Result<Typed, String> {
    if value.family() == Family::Text && !value.untyped {
        return Ok(value);
    }
    convert(value, &LogicalType::Text, Mode::Strict, zone)
}

/// A whole number of 64 bits, for lengths, positions and amounts.
///
/// # Errors
/// The value is not a whole number.
pub(crate) fn as_integer(value: Typed, what: &str, zone: Zone) -> Result<Typed, String> {
    if !value.untyped && value.family() != Family::Integer {
        return Err(format!("{what} is a whole number, not {}", value.ty));
    }
    convert(value, &LogicalType::Int64, Mode::Strict, zone)
}

/// A condition.
///
/// # Errors
/// The value is not a boolean.
pub(crate) fn as_condition(value: Typed, zone: Zone) -> Result<Typed, String> {
    if value.untyped {
        return Typed::null(LogicalType::Boolean);
    }
    if is_zero_or_one(&value) {
        return convert(value, &LogicalType::Boolean, Mode::Strict, zone);
    }
    if value.family() != Family::Boolean {
        return Err(format!("a condition is needed here, but this is {}", value.ty));
    }
    Ok(value)
}

/// A number.
///
/// # Errors
/// The value is not a number.
pub(crate) fn as_number(value: Typed, what: &str) -> Result<Typed, String> {
    if value.untyped {
        return Typed::null(LogicalType::Int32);
    }
    if !is_number(&value.ty) {
        return Err(format!("{what} takes numbers, not {}; write CAST(… AS type)", value.ty));
    }
    Ok(value)
}

/// A date, local date-time or instant; texts are read as one.
///
/// # Errors
/// The value is none of them.
pub(crate) fn as_moment(value: Typed, what: &str, zone: Zone) -> Result<Typed, String> {
    if value.untyped || value.family() == Family::Text {
        return convert(value, &LogicalType::Timestamp { precision: 6 }, Mode::Strict, zone);
    }
    if matches!(value.family(), Family::Date | Family::Timestamp | Family::Instant) {
        return Ok(value);
    }
    Err(format!("{what} takes a date or time, not {}", value.ty))
}
