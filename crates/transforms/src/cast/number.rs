//! Owns conversions between booleans and numbers, and from text to them.

use std::{str::FromStr, sync::Arc};

use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, Int8Array, PrimitiveArray, Scalar, StringArray,
    builder::{BooleanBuilder, PrimitiveBuilder},
    cast::AsArray,
    types::{
        Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
        UInt8Type, UInt16Type, UInt32Type, UInt64Type,
    },
};
use arrow_buffer::i256;
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_schema::{ArrowError, DataType};
use canalis_batch::arrow_type;
use canalis_types::LogicalType;
use datafusion_common::arrow::compute::kernels;

use super::render;
use crate::{
    call::{Output, refuse},
    compile::types::{Family, family},
};

fn misfit(ty: &LogicalType) -> ArrowError {
    refuse(format!("value does not fit {ty}"))
}

/// Converts booleans and numbers to each other. Fractions are cut off on the way to whole numbers and rounded half
/// away from zero on the way to decimals.
pub(super) fn convert(array: &ArrayRef, from: &LogicalType, to: &LogicalType) -> Output {
    let target = arrow_type(to);
    match (family(from), family(to)) {
        (Family::Boolean, _) => exact(&cast(array, &DataType::Int8)?, to),
        (_, Family::Boolean) => Ok(Arc::new(is_not_zero(array)?)),
        // Through text: the nearest double of a decimal, and the shortest decimal of a double.
        (Family::Decimal, Family::Float) => parse(&render(array, from)?, to),
        (Family::Float, Family::Decimal) => {
            let texts: StringArray = match array.data_type() {
                DataType::Float32 => display(array.as_primitive::<Float32Type>()),
                _ => display(array.as_primitive::<Float64Type>()),
            };
            let texts: ArrayRef = Arc::new(texts);
            parse(&texts, to)
        }
        _ if *array.data_type() == target => Ok(array.clone()),
        _ => exact(array, to),
    }
}

fn exact(array: &ArrayRef, to: &LogicalType) -> Output {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let converted = cast_with_options(array, &arrow_type(to), &options).map_err(|_| misfit(to))?;
    validate(&converted, to)?;
    Ok(converted)
}

/// Checks that decimals have no more digits than their type.
pub(crate) fn validate(array: &ArrayRef, to: &LogicalType) -> Result<(), ArrowError> {
    match array.data_type() {
        DataType::Decimal128(precision, _) => {
            array.as_primitive::<Decimal128Type>().validate_decimal_precision(*precision)
        }
        DataType::Decimal256(precision, _) => {
            array.as_primitive::<Decimal256Type>().validate_decimal_precision(*precision)
        }
        _ => Ok(()),
    }
    .map_err(|_| misfit(to))
}

fn is_not_zero(array: &ArrayRef) -> Result<BooleanArray, ArrowError> {
    if let DataType::Decimal128(..) | DataType::Decimal256(..) = array.data_type() {
        let zero = Scalar::new(cast(&Int8Array::from(vec![0]), array.data_type())?);
        return kernels::cmp::neq(array, &zero);
    }
    Ok(cast(array, &DataType::Boolean)?.as_boolean().clone())
}

/// Rust prints the shortest digits that read back as the same number, without an exponent.
fn display<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>) -> StringArray
where
    T::Native: std::fmt::Display,
{
    array.iter().map(|v| v.map(|v| v.to_string())).collect()
}

/// Reads booleans and numbers from text; blanks around them do not count.
pub(super) fn parse(array: &ArrayRef, to: &LogicalType) -> Output {
    let ty = arrow_type(to);
    Ok(match &ty {
        DataType::Boolean => {
            let mut out = BooleanBuilder::with_capacity(array.len());
            for text in array.as_string::<i32>() {
                out.append_option(text.map(|t| boolean(t).ok_or_else(|| misread(to))).transpose()?);
            }
            Arc::new(out.finish())
        }
        DataType::Int8 => each::<Int8Type>(array, to, from_str)?,
        DataType::Int16 => each::<Int16Type>(array, to, from_str)?,
        DataType::Int32 => each::<Int32Type>(array, to, from_str)?,
        DataType::Int64 => each::<Int64Type>(array, to, from_str)?,
        DataType::UInt8 => each::<UInt8Type>(array, to, from_str)?,
        DataType::UInt16 => each::<UInt16Type>(array, to, from_str)?,
        DataType::UInt32 => each::<UInt32Type>(array, to, from_str)?,
        DataType::UInt64 => each::<UInt64Type>(array, to, from_str)?,
        DataType::Float32 => each::<Float32Type>(array, to, |t| from_str(t).filter(|v: &f32| v.is_finite()))?,
        DataType::Float64 => each::<Float64Type>(array, to, |t| from_str(t).filter(|v: &f64| v.is_finite()))?,
        DataType::Decimal128(p, s) => {
            let (p, s) = (*p, u8::try_from(*s).unwrap_or(0));
            each::<Decimal128Type>(array, to, |t| decimal_from_text(t, p, s).and_then(i256::to_i128))?
        }
        DataType::Decimal256(p, s) => {
            let (p, s) = (*p, u8::try_from(*s).unwrap_or(0));
            each::<Decimal256Type>(array, to, |t| decimal_from_text(t, p, s))?
        }
        other => return Err(refuse(format!("text cannot be read as {other}"))),
    })
}

fn misread(to: &LogicalType) -> ArrowError {
    refuse(format!("text is not a {to}"))
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
            Some(text) => out.append_value(read(text.trim()).ok_or_else(|| misread(to))?),
        }
    }
    let finished: PrimitiveArray<T> = out.finish();
    Ok(Arc::new(finished))
}

fn from_str<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

fn boolean(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "t" | "yes" | "y" | "1" => Some(true),
        "false" | "f" | "no" | "n" | "0" => Some(false),
        _ => None,
    }
}

/// The unscaled integer of a decimal text, rounded half away from zero to `scale`; `None` when the text is not a
/// decimal or has more than `precision` digits.
pub(crate) fn decimal_from_text(text: &str, precision: u8, scale: u8) -> Option<i256> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_decimal = !(whole.is_empty() && fraction.is_empty())
        && whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit());
    if !is_decimal {
        return None;
    }
    let whole = whole.trim_start_matches('0');
    let (precision, scale) = (usize::from(precision), usize::from(scale));
    if whole.len() > precision - scale {
        return None;
    }
    let (kept, rest) = fraction.split_at(fraction.len().min(scale));
    let mut all = String::with_capacity(precision + 2);
    all.push('0');
    all.push_str(whole);
    all.push_str(kept);
    all.extend(std::iter::repeat_n('0', scale - kept.len()));
    let mut value = match all.parse::<i128>() {
        Ok(value) => i256::from_i128(value),
        Err(_) => i256::from_string(&all)?,
    };
    if rest.as_bytes().first().is_some_and(|b| *b >= b'5') {
        value = value.checked_add(i256::ONE)?;
    }
    let limit = i256::from_i128(10).checked_pow(u32::try_from(precision).ok()?)?;
    (value < limit).then(|| if negative { value.wrapping_neg() } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_round_half_away_from_zero_or_are_refused() {
        for (text, precision, scale, expect) in [
            ("1.005", 5, 2, Some(101)),
            ("-1.005", 5, 2, Some(-101)),
            ("1.0049", 5, 2, Some(100)),
            ("999.99", 5, 2, Some(99_999)),
            ("999.995", 5, 2, None),
            ("1000", 5, 2, None),
            (".5", 3, 1, Some(5)),
            ("0007", 3, 0, Some(7)),
            ("1e3", 9, 0, None),
            ("", 9, 0, None),
            (".", 9, 0, None),
            ("-", 9, 0, None),
        ] {
            assert_eq!(decimal_from_text(text, precision, scale), expect.map(i256::from_i128), "{text}");
        }
    }
}
