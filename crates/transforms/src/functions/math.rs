//! Owns functions of real numbers: roots, powers, logarithms, angles. They compute in DOUBLE whatever they get, and refuse
//! a row outside of their domain; exact functions on numbers are in `number`.

use std::{
    f64::consts::{E, PI},
    sync::Arc,
};

use arrow_array::{
    Array, ArrayRef,
    builder::{Float64Builder, Int64Builder},
    cast::AsArray,
    types::Int64Type,
};
use canalis_types::LogicalType;
use datafusion_common::ScalarValue;
use rand::Rng;

use super::{
    Function,
    row::{float_rows, integer_rows},
};
use crate::{
    call::{Kernel, Volatility, refuse},
    compile::{
        Context, Typed,
        coerce::{as_integer, as_number, convert},
        typed::call,
    },
    syntax::Mode,
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("SQRT", 1, 1, |c, a| real("SQRT", c, a, f64::sqrt)),
    Function::new("CBRT", 1, 1, |c, a| real("CBRT", c, a, f64::cbrt)),
    Function::new("EXP", 1, 1, |c, a| real("EXP", c, a, f64::exp)),
    Function::new("LN", 1, 1, |c, a| real("LN", c, a, f64::ln)),
    Function::new("LOG10", 1, 1, |c, a| real("LOG10", c, a, f64::log10)),
    Function::new("LOG2", 1, 1, |c, a| real("LOG2", c, a, f64::log2)),
    Function::new("LOG", 1, 2, log),
    Function::new("POWER", 2, 2, power),
    Function::new("POW", 2, 2, power),
    Function::new("SIN", 1, 1, |c, a| real("SIN", c, a, f64::sin)),
    Function::new("COS", 1, 1, |c, a| real("COS", c, a, f64::cos)),
    Function::new("TAN", 1, 1, |c, a| real("TAN", c, a, f64::tan)),
    Function::new("COT", 1, 1, |c, a| real("COT", c, a, |x| 1.0 / x.tan())),
    Function::new("ASIN", 1, 1, |c, a| real("ASIN", c, a, f64::asin)),
    Function::new("ACOS", 1, 1, |c, a| real("ACOS", c, a, f64::acos)),
    Function::new("ATAN", 1, 1, |c, a| real("ATAN", c, a, f64::atan)),
    Function::new("ATAN2", 2, 2, atan2),
    Function::new("SINH", 1, 1, |c, a| real("SINH", c, a, f64::sinh)),
    Function::new("COSH", 1, 1, |c, a| real("COSH", c, a, f64::cosh)),
    Function::new("TANH", 1, 1, |c, a| real("TANH", c, a, f64::tanh)),
    Function::new("DEGREES", 1, 1, |c, a| real("DEGREES", c, a, f64::to_degrees)),
    Function::new("RADIANS", 1, 1, |c, a| real("RADIANS", c, a, f64::to_radians)),
    Function::new("PI", 0, 0, |_, _| Ok(double(PI))),
    Function::new("E", 0, 0, |_, _| Ok(double(E))),
    Function::new("RAND", 0, 0, random),
    Function::new("RAND_INTEGER", 1, 1, random_integer),
    Function::new("FACTORIAL", 1, 1, factorial),
];

fn double(value: f64) -> Typed {
    Typed::constant(ScalarValue::Float64(Some(value)), LogicalType::Float64)
}

fn doubles(context: &Context, arguments: Vec<Typed>) -> Result<Vec<Typed>, String> {
    let mut out = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let number = as_number(argument, "the function")?;
        out.push(convert(number, &LogicalType::Float64, Mode::Strict, context.zone)?);
    }
    Ok(out)
}

fn real(name: &str, context: &Context, arguments: Vec<Typed>, of: fn(f64) -> f64) -> Result<Typed, String> {
    let arguments = doubles(context, arguments)?;
    float_rows(name, &arguments, move |row| of(row.float(0)))
}

/// The natural logarithm of one argument; with two, the first is the base.
fn log(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments = doubles(context, arguments)?;
    float_rows("LOG", &arguments, |row| match row.len() {
        1 => row.float(0).ln(),
        // The two usual bases give whole results for whole powers.
        _ if row.float(0) == 2.0 => row.float(1).log2(),
        _ if row.float(0) == 10.0 => row.float(1).log10(),
        _ => row.float(1).log(row.float(0)),
    })
}

fn power(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments = doubles(context, arguments)?;
    float_rows("POWER", &arguments, |row| row.float(0).powf(row.float(1)))
}

fn atan2(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments = doubles(context, arguments)?;
    float_rows("ATAN2", &arguments, |row| row.float(0).atan2(row.float(1)))
}

/// A random number from 0 to below 1 for each row.
fn random(_: &Context, _: Vec<Typed>) -> Result<Typed, String> {
    let kernel: Kernel = Arc::new(|_, rows| {
        let mut out = Float64Builder::with_capacity(rows);
        let mut random = rand::rng();
        for _ in 0..rows {
            out.append_value(random.random::<f64>());
        }
        Ok(Arc::new(out.finish()) as ArrayRef)
    });
    call("RAND", &[], LogicalType::Float64, Volatility::PerRow, kernel)
}

/// A random whole number from 0 to below the argument for each row.
fn random_integer(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let bound = as_integer(arguments.swap_remove(0), "the bound", context.zone)?;
    let kernel: Kernel = Arc::new(|arguments, rows| {
        let bounds = arguments[0].array.as_primitive::<Int64Type>();
        let mut out = Int64Builder::with_capacity(rows);
        let mut random = rand::rng();
        for row in 0..rows {
            let at = arguments[0].at(row);
            if bounds.is_null(at) {
                out.append_null();
                continue;
            }
            let bound = bounds.value(at);
            if bound < 1 {
                return Err(refuse("the bound of a random number must be positive"));
            }
            out.append_value(random.random_range(0..bound));
        }
        Ok(Arc::new(out.finish()) as ArrayRef)
    });
    call("RAND_INTEGER", &[bound], LogicalType::Int64, Volatility::PerRow, kernel)
}

fn factorial(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let number = as_integer(arguments.swap_remove(0), "the argument", context.zone)?;
    integer_rows("FACTORIAL", &[number], |row| match row.integer(0) {
        n @ 0..=20 => Ok(Some((1..=n).product())),
        _ => Err(refuse("a factorial is of a number from 0 to 20")),
    })
}
