//! Owns `+ - * / %`: result types and exact, checked kernels. Overflow and division by zero refuse the row.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, Datum, PrimitiveArray,
    builder::PrimitiveBuilder,
    cast::AsArray,
    types::{Decimal128Type, Decimal256Type, DecimalType, Float32Type, Float64Type},
};
use arrow_buffer::i256;
use arrow_schema::{ArrowError, DataType};
use canalis_batch::arrow_type;
use canalis_types::LogicalType;
use datafusion_common::{ScalarValue, arrow::compute::kernels::numeric};
use datafusion_expr::Operator;

use super::{
    coerce::{as_number, convert},
    typed::{Typed, call},
    types::{Family, common, decimal, digits, integer_work_type},
};
use crate::{
    call::{Argument, Kernel, Output, Volatility, refuse},
    cast::validate,
    syntax::Mode,
    zone::Zone,
};

/// Compiles an arithmetic operation.
///
/// # Errors
/// The operands are not numbers, or the result would need too many digits.
pub(crate) fn arithmetic(operator: Operator, left: Typed, right: Typed, zone: Zone) -> Result<Typed, String> {
    let name = operator.to_string();
    let left = as_number(left, &format!("`{name}`"))?;
    let right = as_number(right, &format!("`{name}`"))?;
    let plan = match (&left.value, &right.ty) {
        // Changing the sign needs no further digit.
        (Some(ScalarValue::Int32(Some(0))), ty @ LogicalType::Decimal { .. })
            if operator == Operator::Minus =>
        {
            Plan { left: ty.clone(), right: ty.clone(), result: ty.clone() }
        }
        _ => plan(operator, &shape(&left, &right), &shape(&right, &left))?,
    };
    let left = convert(left, &plan.left, Mode::Strict, zone)?;
    let right = convert(right, &plan.right, Mode::Strict, zone)?;
    let result = plan.result.clone();
    let kernel: Kernel =
        Arc::new(move |arguments, rows| compute(operator, &arguments[0], &arguments[1], rows, &result));
    call(&name, &[left, right], plan.result, Volatility::Pure, kernel)
}

/// The type that counts for the result: beside a decimal, a whole constant has the digits that it has.
fn shape(value: &Typed, other: &Typed) -> LogicalType {
    let digits = match value.value {
        Some(ScalarValue::Int32(Some(number))) => number.unsigned_abs().checked_ilog10(),
        Some(ScalarValue::Int64(Some(number))) => number.unsigned_abs().checked_ilog10(),
        _ => return value.ty.clone(),
    };
    if other.family() != Family::Decimal {
        return value.ty.clone();
    }
    decimal(u8::try_from(digits.unwrap_or(0) + 1).unwrap_or(19), 0)
}

/// Types of an operation.
struct Plan {
    left: LogicalType,
    right: LogicalType,
    result: LogicalType,
}

fn plan(operator: Operator, left: &LogicalType, right: &LogicalType) -> Result<Plan, String> {
    use super::types::family;
    if family(left) == Family::Float || family(right) == Family::Float {
        let ty = common(left, right)?;
        return Ok(Plan { left: ty.clone(), right: ty.clone(), result: ty });
    }
    if family(left) == Family::Integer && family(right) == Family::Integer {
        let ty = common(&integer_work_type(left), &integer_work_type(right))?;
        if family(&ty) == Family::Integer {
            return Ok(Plan { left: ty.clone(), right: ty.clone(), result: ty });
        }
    }
    let ((w1, s1), (w2, s2)) = match (digits(left), digits(right)) {
        (Some(left), Some(right)) => (left, right),
        _ => return Err(format!("{left} {operator} {right} is not arithmetic of numbers")),
    };
    let both_whole = s1 == 0 && s2 == 0;
    let result = match operator {
        Operator::Multiply => {
            if s1 + s2 > 76 {
                return Err(format!("{left} * {right} needs more than 76 fraction digits; cast to fewer"));
            }
            decimal(w1 + w2, s1 + s2)
        }
        // Whole numbers divide to whole numbers, whatever their size.
        Operator::Divide if both_whole && !is_decimal(left) && !is_decimal(right) => decimal(w1.max(1), 0),
        Operator::Divide => quotient(w1, s1, w2, s2),
        Operator::Modulo => decimal(w1.max(w2), s1.max(s2)),
        _ => decimal(w1.max(w2) + 1, s1.max(s2)),
    };
    if matches!(operator, Operator::Multiply | Operator::Divide) {
        // Operands keep their scale; only the width of the integers must agree.
        let wide = [&result, left, right].into_iter().any(is_wide);
        let side = |whole: u8, scale: u8| match (wide, decimal(whole, scale)) {
            (true, LogicalType::Decimal { precision, scale }) => {
                LogicalType::Decimal { precision: precision.max(39), scale }
            }
            (_, ty) => ty,
        };
        return Ok(Plan { left: side(w1, s1), right: side(w2, s2), result });
    }
    Ok(Plan { left: result.clone(), right: result.clone(), result })
}

fn is_decimal(ty: &LogicalType) -> bool {
    matches!(ty, LogicalType::Decimal { .. })
}

fn is_wide(ty: &LogicalType) -> bool {
    matches!(arrow_type(ty), DataType::Decimal256(..))
}

/// The standard rule: scale max(6, s1 + p2 + 1), cut so that 38 digits are enough, but not below 6.
fn quotient(w1: u8, s1: u8, w2: u8, s2: u8) -> LogicalType {
    let whole = w1.saturating_add(s2).min(70);
    let wanted = (s1.saturating_add(w2).saturating_add(s2).saturating_add(1)).max(6);
    let scale = wanted.min(38_u8.saturating_sub(whole).max(6));
    decimal(whole, scale)
}

fn compute(
    operator: Operator,
    left: &Argument,
    right: &Argument,
    rows: usize,
    result: &LogicalType,
) -> Output {
    let ty = arrow_type(result);
    if let (Operator::Divide, DataType::Decimal128(..) | DataType::Decimal256(..)) = (operator, &ty) {
        return divide(left, right, rows, result);
    }
    let sides: (&dyn Datum, &dyn Datum) = (left, right);
    let out = match operator {
        Operator::Plus => numeric::add(sides.0, sides.1),
        Operator::Minus => numeric::sub(sides.0, sides.1),
        Operator::Multiply => numeric::mul(sides.0, sides.1),
        Operator::Divide => numeric::div(sides.0, sides.1),
        _ => numeric::rem(sides.0, sides.1),
    }
    .map_err(|e| match e {
        ArrowError::DivideByZero => refuse("division by zero"),
        _ => refuse(format!("`{operator}` overflows {result}")),
    })?;
    match &ty {
        DataType::Float32 | DataType::Float64 => finite(&out, left, right, operator)?,
        DataType::Decimal128(..) => {
            let out = out.as_primitive::<Decimal128Type>().clone().with_data_type(ty);
            return fitting(Arc::new(out), result);
        }
        DataType::Decimal256(..) => {
            let out = out.as_primitive::<Decimal256Type>().clone().with_data_type(ty);
            return fitting(Arc::new(out), result);
        }
        _ => {}
    }
    Ok(out)
}

fn fitting(out: ArrayRef, result: &LogicalType) -> Output {
    validate(&out, result)?;
    Ok(out)
}

/// Refuses infinities and NaN that come from finite operands.
fn finite(out: &ArrayRef, left: &Argument, right: &Argument, operator: Operator) -> Result<(), ArrowError> {
    let is_finite = |array: &ArrayRef, row: usize| match array.data_type() {
        DataType::Float32 => array.as_primitive::<Float32Type>().value(row).is_finite(),
        _ => array.as_primitive::<Float64Type>().value(row).is_finite(),
    };
    for row in 0..out.len() {
        let broken = out.is_valid(row)
            && !is_finite(out, row)
            && is_finite(&left.array, left.at(row))
            && is_finite(&right.array, right.at(row));
        if broken {
            return Err(refuse(match operator {
                Operator::Divide | Operator::Modulo => "division by zero or overflow",
                _ => "floating-point overflow",
            }));
        }
    }
    Ok(())
}

fn divide(left: &Argument, right: &Argument, rows: usize, result: &LogicalType) -> Output {
    let out = match arrow_type(result) {
        DataType::Decimal128(..) if matches!(left.array.data_type(), DataType::Decimal128(..)) => {
            quotients::<Decimal128Type>(left, right, rows, result, i256::from_i128, i256::to_i128)?
        }
        DataType::Decimal128(..) => {
            narrow(&quotients::<Decimal256Type>(left, right, rows, result, |v| v, Some)?, result)?
        }
        _ => quotients::<Decimal256Type>(left, right, rows, result, |v| v, Some)?,
    };
    validate(&out, result)?;
    Ok(out)
}

fn narrow(wide: &ArrayRef, result: &LogicalType) -> Output {
    let overflow = || refuse(format!("`/` overflows {result}"));
    let out = wide
        .as_primitive::<Decimal256Type>()
        .try_unary::<_, Decimal128Type, ArrowError>(|v| v.to_i128().ok_or_else(overflow))?;
    Ok(Arc::new(out.with_data_type(arrow_type(result))))
}

/// Quotients rounded half away from zero at the result's scale; of whole numbers, cut off.
fn quotients<T: DecimalType>(
    left: &Argument,
    right: &Argument,
    rows: usize,
    result: &LogicalType,
    widen: impl Fn(T::Native) -> i256,
    narrow: impl Fn(i256) -> Option<T::Native>,
) -> Output {
    let scale_of = |argument: &Argument| match argument.array.data_type() {
        DataType::Decimal128(_, s) | DataType::Decimal256(_, s) => i32::from(*s),
        _ => 0,
    };
    let LogicalType::Decimal { precision, scale } = result else {
        return Err(refuse("a quotient of decimals is a decimal"));
    };
    let overflow = || refuse(format!("`/` overflows {result}"));
    let power = |exponent: i32| {
        u32::try_from(exponent.max(0))
            .ok()
            .and_then(|e| i256::from_i128(10).checked_pow(e))
            .ok_or_else(overflow)
    };
    let shift = i32::from(*scale) + scale_of(right) - scale_of(left);
    let (up, down) = (power(shift)?, power(-shift)?);
    let (dividends, divisors) = (left.array.as_primitive::<T>(), right.array.as_primitive::<T>());
    let ty = if T::BYTE_LENGTH == 16 {
        DataType::Decimal128(*precision, i8::try_from(*scale).unwrap_or(0))
    } else {
        DataType::Decimal256(76, i8::try_from(*scale).unwrap_or(0))
    };
    let mut out = PrimitiveBuilder::<T>::with_capacity(rows).with_data_type(ty);
    for row in 0..rows {
        if left.is_null(row) || right.is_null(row) {
            out.append_null();
            continue;
        }
        let dividend = widen(dividends.value(left.at(row)));
        let divisor = widen(divisors.value(right.at(row)));
        if divisor == i256::ZERO {
            return Err(refuse("division by zero"));
        }
        let dividend = dividend.checked_mul(up).ok_or_else(overflow)?;
        let divisor = divisor.checked_mul(down).ok_or_else(overflow)?;
        let mut quotient = dividend.checked_div(divisor).ok_or_else(overflow)?;
        let rest = dividend.checked_rem(divisor).ok_or_else(overflow)?;
        // |rest| is below |divisor|; half or more rounds away from zero.
        if *scale > 0 && exceeds_half(rest, divisor) {
            let step =
                if dividend.is_negative() == divisor.is_negative() { i256::ONE } else { i256::MINUS_ONE };
            quotient = quotient.checked_add(step).ok_or_else(overflow)?;
        }
        out.append_value(narrow(quotient).ok_or_else(overflow)?);
    }
    let finished: PrimitiveArray<T> = out.finish();
    let finished: ArrayRef = Arc::new(finished);
    match finished.data_type() {
        DataType::Decimal256(..) if is_wide(result) => {
            let out = finished.as_primitive::<Decimal256Type>().clone().with_data_type(arrow_type(result));
            Ok(Arc::new(out))
        }
        _ => Ok(finished),
    }
}

fn exceeds_half(rest: i256, divisor: i256) -> bool {
    let (rest, divisor) = (rest.wrapping_abs(), divisor.wrapping_abs());
    // rest ≥ divisor − rest, without doubling.
    rest != i256::ZERO && rest >= divisor.wrapping_sub(rest)
}
