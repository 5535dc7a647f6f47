//! Owns functions that choose between their arguments; only the chosen one is computed.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Datum, Int32Array, UInt32Array};
use arrow_schema::ArrowError;
use arrow_select::{nullif, take::take, zip::zip};
use canalis_types::LogicalType;
use datafusion_common::{
    ScalarValue,
    arrow::compute::{is_null, kernels::cmp},
};
use datafusion_expr::Operator;

use super::{Function, MANY};
use crate::{
    call::{Argument, Kernel, Output, Volatility, refuse},
    compile::{
        Context, Typed,
        coerce::{as_condition, as_number, convert, unify},
        condition::{case, compare, is_not_null},
        typed::call,
    },
    syntax::Mode,
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("COALESCE", 1, MANY, coalesce),
    Function::new("IFNULL", 2, 2, coalesce),
    Function::new("IF", 3, 3, choose),
    Function::new("NVL", 2, 2, coalesce),
    Function::new("NVL2", 3, 3, nvl2),
    Function::new("NULLIF", 2, 2, nullif),
    Function::new("NULLIFZERO", 1, 1, nullifzero),
    Function::new("ZEROIFNULL", 1, 1, zeroifnull),
    Function::new("ISNULL", 1, 1, isnull),
    Function::new("NUM_NULLS", 1, MANY, |_, a| nulls("NUM_NULLS", &a, true)),
    Function::new("NUM_NONNULLS", 1, MANY, |_, a| nulls("NUM_NONNULLS", &a, false)),
    Function::new("GREATEST", 1, MANY, |c, a| extreme("GREATEST", c, a, cmp::gt_eq)),
    Function::new("LEAST", 1, MANY, |c, a| extreme("LEAST", c, a, cmp::lt_eq)),
];

fn integer(value: i32) -> Typed {
    Typed::constant(ScalarValue::Int32(Some(value)), LogicalType::Int32)
}

/// The second argument when the first is not NULL, otherwise the third.
fn nvl2(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let [value, then, otherwise] =
        <[Typed; 3]>::try_from(arguments).map_err(|_| "three arguments are needed")?;
    case(vec![is_not_null(&value)?], vec![then], Some(otherwise), context.zone)
}

fn nullifzero(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let value = as_number(arguments.swap_remove(0), "the function")?;
    nullif(context, vec![value, integer(0)])
}

fn zeroifnull(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let value = as_number(arguments.swap_remove(0), "the function")?;
    let zero = convert(integer(0), &value.ty, Mode::Strict, context.zone)?;
    coalesce(context, vec![value, zero])
}

fn isnull(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let truth = |value: bool| Typed::constant(ScalarValue::Boolean(Some(value)), LogicalType::Boolean);
    let [value] = <[Typed; 1]>::try_from(arguments).map_err(|_| "one argument is needed")?;
    case(vec![is_not_null(&value)?], vec![truth(false)], Some(truth(true)), context.zone)
}

/// The number of arguments that are NULL, or are not.
fn nulls(name: &str, arguments: &[Typed], wanted: bool) -> Result<Typed, String> {
    let kernel: Kernel = Arc::new(move |arguments, rows| {
        let count = |row: usize| arguments.iter().filter(|a| a.is_null(row) == wanted).count();
        let counts = (0..rows).map(|row| i32::try_from(count(row)).unwrap_or(i32::MAX));
        Ok(Arc::new(Int32Array::from_iter_values(counts)) as ArrayRef)
    });
    call(name, arguments, LogicalType::Int32, Volatility::Pure, kernel)
}

/// The largest or smallest argument; NULL when any of them is NULL.
fn extreme(
    name: &str,
    context: &Context,
    arguments: Vec<Typed>,
    wins: fn(&dyn Datum, &dyn Datum) -> Result<BooleanArray, ArrowError>,
) -> Result<Typed, String> {
    let (arguments, ty) = unify(arguments, context.zone)?;
    let kernel: Kernel = Arc::new(move |arguments, rows| {
        let full = |a: &Argument| -> Output {
            match a.scalar && rows != 1 {
                true => take(&a.array, &UInt32Array::from(vec![0; rows]), None),
                false => Ok(a.array.clone()),
            }
        };
        let Some((first, others)) = arguments.split_first() else {
            return Err(refuse("an argument is needed"));
        };
        let mut best = full(first)?;
        for other in others {
            let other = full(other)?;
            let ahead = wins(&best, &other)?;
            let unknown = is_null(&ahead)?;
            best = nullif::nullif(&zip(&ahead, &best, &other)?, &unknown)?;
        }
        Ok(best)
    });
    call(name, &arguments, ty, Volatility::Pure, kernel)
}

/// The first argument that is not NULL.
fn coalesce(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let Some(last) = arguments.pop() else { return Err("at least one argument is needed".into()) };
    if arguments.is_empty() {
        return Ok(last);
    }
    let whens = arguments.iter().map(is_not_null).collect::<Result<_, _>>()?;
    case(whens, arguments, Some(last), context.zone)
}

/// The second argument when the first is true, otherwise the third.
fn choose(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let [when, then, otherwise] =
        <[Typed; 3]>::try_from(arguments).map_err(|_| "three arguments are needed")?;
    case(vec![as_condition(when, context.zone)?], vec![then], Some(otherwise), context.zone)
}

/// NULL when both are equal, otherwise the first.
fn nullif(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let [value, other] = <[Typed; 2]>::try_from(arguments).map_err(|_| "two arguments are needed")?;
    let equal = compare(Operator::Eq, value.clone(), other, context.zone)?;
    let null = if value.untyped { Typed::null(LogicalType::Text)? } else { Typed::null(value.ty.clone())? };
    case(vec![equal], vec![null], Some(value), context.zone)
}
