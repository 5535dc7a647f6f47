//! Owns functions on numbers. Decimals stay exact; results grow by a digit where rounding may need it.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, Int8Array, Int32Array, PrimitiveArray, Scalar,
    cast::AsArray,
    types::{
        Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    },
};
use arrow_buffer::i256;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType};
use canalis_batch::arrow_type;
use canalis_types::LogicalType;
use datafusion_common::{ScalarValue, arrow::compute::kernels::cmp};
use datafusion_expr::Operator;

use super::{Function, row::written_rows};
use crate::{
    call::{Kernel, Output, Volatility, refuse},
    cast::validate,
    compile::{
        Context, Typed,
        arithmetic::arithmetic,
        coerce::{as_number, as_text, convert},
        typed::call,
        types::{Family, decimal, digits},
    },
    syntax::Mode,
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("ABS", 1, 1, abs),
    Function::new("CEIL", 1, 1, |c, a| round_to("CEIL", c, a, Rounding::Up)),
    Function::new("CEILING", 1, 1, |c, a| round_to("CEIL", c, a, Rounding::Up)),
    Function::new("FLOOR", 1, 1, |c, a| round_to("FLOOR", c, a, Rounding::Down)),
    Function::new("ROUND", 1, 2, |c, a| round_to("ROUND", c, a, Rounding::HalfAway)),
    Function::new("TRUNCATE", 1, 2, |c, a| round_to("TRUNCATE", c, a, Rounding::ToZero)),
    Function::new("TRUNC", 1, 2, |c, a| round_to("TRUNCATE", c, a, Rounding::ToZero)),
    Function::new("MOD", 2, 2, modulo),
    Function::new("SIGN", 1, 1, sign),
    Function::new("FORMAT", 2, 2, format_number),
];

fn modulo(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let [left, right] = <[Typed; 2]>::try_from(arguments).map_err(|_| "two arguments are needed")?;
    arithmetic(Operator::Modulo, left, right, context.zone)
}

fn abs(_: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let value = as_number(arguments.swap_remove(0), "the function")?;
    let ty = value.ty.clone();
    let kernel: Kernel = Arc::new(|arguments, _| {
        let array = &arguments[0].array;
        match array.data_type() {
            DataType::Int8 => checked::<Int8Type>(array, i8::checked_abs),
            DataType::Int16 => checked::<Int16Type>(array, i16::checked_abs),
            DataType::Int32 => checked::<Int32Type>(array, i32::checked_abs),
            DataType::Int64 => checked::<Int64Type>(array, i64::checked_abs),
            DataType::Float32 => checked::<Float32Type>(array, |v| Some(v.abs())),
            DataType::Float64 => checked::<Float64Type>(array, |v| Some(v.abs())),
            DataType::Decimal128(..) => checked::<Decimal128Type>(array, i128::checked_abs),
            DataType::Decimal256(..) => checked::<Decimal256Type>(array, i256::checked_abs),
            _ => Ok(array.clone()),
        }
    });
    call("ABS", &[value], ty, Volatility::Pure, kernel)
}

/// The text of a number with commas between thousands and a constant number of fraction digits.
fn format_number(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let scale = match arguments[1].value {
        Some(ScalarValue::Int32(Some(places))) => u8::try_from(places.clamp(0, 30)).unwrap_or(0),
        _ => return Err("the number of digits must be a whole constant".into()),
    };
    let value = as_number(arguments.into_iter().next().ok_or("a number is needed")?, "FORMAT")?;
    let decimal = convert(value, &LogicalType::Decimal { precision: 76, scale }, Mode::Strict, context.zone)?;
    let text = as_text(decimal, context.zone)?;
    written_rows("FORMAT", &[text], LogicalType::Text, |row, out| {
        let text = row.text(0);
        let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
        let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(w, f)| (w, Some(f)));
        out.push_str(sign);
        for (at, digit) in whole.chars().enumerate() {
            if at > 0 && (whole.len() - at).is_multiple_of(3) {
                out.push(',');
            }
            out.push(digit);
        }
        if let Some(fraction) = fraction {
            out.push('.');
            out.push_str(fraction);
        }
    })
}

/// -1, 0 or 1.
fn sign(_: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let value = as_number(arguments.swap_remove(0), "the function")?;
    let kernel: Kernel = Arc::new(|arguments, _| {
        let array = &arguments[0].array;
        let zero = strict(&(Arc::new(Int8Array::from(vec![0])) as ArrayRef), array.data_type())?;
        let zero = Scalar::new(zero);
        let (above, below) = (cmp::gt(array, &zero)?, cmp::lt(array, &zero)?);
        let sign = |row: usize| i32::from(above.value(row)) - i32::from(below.value(row));
        let signs: Int32Array = (0..array.len()).map(|row| array.is_valid(row).then(|| sign(row))).collect();
        Ok(Arc::new(signs) as ArrayRef)
    });
    call("SIGN", &[value], LogicalType::Int32, Volatility::Pure, kernel)
}

fn checked<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    change: impl Fn(T::Native) -> Option<T::Native>,
) -> Output {
    let out: PrimitiveArray<T> = array
        .as_primitive::<T>()
        .try_unary::<_, T, ArrowError>(|v| change(v).ok_or_else(|| refuse("number overflow")))?;
    Ok(Arc::new(out.with_data_type(array.data_type().clone())))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rounding {
    Up,
    Down,
    ToZero,
    HalfAway,
}

fn round_to(
    name: &str,
    context: &Context,
    mut arguments: Vec<Typed>,
    rounding: Rounding,
) -> Result<Typed, String> {
    let places = match arguments.get(1).map(|a| &a.value) {
        None => 0,
        Some(Some(ScalarValue::Int32(Some(places)))) => (*places).clamp(-76, 76),
        Some(_) => return Err("the number of digits must be a whole constant".into()),
    };
    let value = as_number(arguments.swap_remove(0), name)?;
    match value.family() {
        Family::Integer if places >= 0 => Ok(value),
        Family::Integer => {
            let back = value.ty.clone();
            convert(decimals(name, value, places, rounding)?, &back, Mode::Strict, context.zone)
        }
        Family::Decimal => decimals(name, value, places, rounding),
        _ => {
            let back = value.ty.clone();
            let value = convert(value, &LogicalType::Float64, Mode::Strict, context.zone)?;
            let kernel: Kernel = Arc::new(move |arguments, _| {
                let array = arguments[0].array.as_primitive::<Float64Type>();
                Ok(Arc::new(array.unary::<_, Float64Type>(|v| float(v, places, rounding))) as ArrayRef)
            });
            let rounded = call(name, &[value], LogicalType::Float64, Volatility::Pure, kernel)?;
            convert(rounded, &back, Mode::Strict, context.zone)
        }
    }
}

fn float(value: f64, places: i32, rounding: Rounding) -> f64 {
    let factor = 10_f64.powi(places);
    let scaled = value * factor;
    if !scaled.is_finite() || factor == 0.0 {
        return value;
    }
    let rounded = match rounding {
        Rounding::Up => scaled.ceil(),
        Rounding::Down => scaled.floor(),
        Rounding::ToZero => scaled.trunc(),
        Rounding::HalfAway => scaled.round(),
    };
    rounded / factor
}

/// Rounds exact numbers; the result has `places` fraction digits, but not more than before.
fn decimals(name: &str, value: Typed, places: i32, rounding: Rounding) -> Result<Typed, String> {
    let (whole, scale) = digits(&value.ty).ok_or("an exact number is needed")?;
    let kept = u8::try_from(places.clamp(0, i32::from(scale))).unwrap_or(scale);
    let ty = decimal(whole.saturating_add(1), kept);
    if places >= i32::from(scale) && matches!(value.ty, LogicalType::Decimal { .. }) {
        return Ok(value);
    }
    let result = ty.clone();
    // Digits to lose, and how many of them come back as zeros before the point.
    let lost = i32::from(scale) - places;
    let zeros = (-places).max(0);
    let kernel: Kernel = Arc::new(move |arguments, _| {
        let wide = DataType::Decimal256(76, i8::try_from(scale).unwrap_or(0));
        let array = strict(&arguments[0].array, &wide)?;
        let overflow = || refuse(format!("number does not fit {result}"));
        let power = |n: i32| u32::try_from(n).ok().and_then(|n| i256::from_i128(10).checked_pow(n));
        let out = array.as_primitive::<Decimal256Type>().try_unary::<_, Decimal256Type, ArrowError>(|v| {
            let Some(divisor) = power(lost) else { return Ok(i256::ZERO) };
            round(v, divisor, rounding).checked_mul(power(zeros).ok_or_else(overflow)?).ok_or_else(overflow)
        })?;
        let out: ArrayRef =
            Arc::new(out.with_data_type(DataType::Decimal256(76, i8::try_from(kept).unwrap_or(0))));
        let out = strict(&out, &arrow_type(&result))?;
        validate(&out, &result)?;
        Ok(out)
    });
    call(name, &[value], ty, Volatility::Pure, kernel)
}

fn strict(array: &ArrayRef, ty: &DataType) -> Output {
    if array.data_type() == ty {
        return Ok(array.clone());
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, ty, &options).map_err(|_| refuse("number overflow"))
}

fn round(value: i256, divisor: i256, rounding: Rounding) -> i256 {
    let quotient = value.wrapping_div(divisor);
    let rest = value.wrapping_rem(divisor);
    if rest == i256::ZERO {
        return quotient;
    }
    let negative = value.is_negative();
    let size = rest.wrapping_abs();
    let away = match rounding {
        Rounding::Up => !negative,
        Rounding::Down => negative,
        Rounding::ToZero => false,
        Rounding::HalfAway => size >= divisor.wrapping_sub(size),
    };
    match (away, negative) {
        (false, _) => quotient,
        (true, true) => quotient.wrapping_sub(i256::ONE),
        (true, false) => quotient.wrapping_add(i256::ONE),
    }
}
