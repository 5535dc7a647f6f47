//! Owns functions on the bits, digits and divisors of whole numbers. They work on 64 bits.

use canalis_types::LogicalType;

use super::{
    Function,
    row::{Row, integer_rows, text_rows},
};
use crate::{
    call::refuse,
    compile::{
        Context, Typed,
        coerce::{as_integer, as_text},
    },
};

pub(super) const FUNCTIONS: &[Function] = &[
    // The operators & | ^ ~ << >>.
    Function::new("BITAND", 2, 2, |c, a| bits("BITAND", c, a, |r| r.integer(0) & r.integer(1))),
    Function::new("BITOR", 2, 2, |c, a| bits("BITOR", c, a, |r| r.integer(0) | r.integer(1))),
    Function::new("BITXOR", 2, 2, |c, a| bits("BITXOR", c, a, |r| r.integer(0) ^ r.integer(1))),
    Function::new("BITNOT", 1, 1, |c, a| bits("BITNOT", c, a, |r| !r.integer(0))),
    Function::new("SHIFTLEFT", 2, 2, |c, a| shift("SHIFTLEFT", c, a, |v, by| v.checked_shl(by).unwrap_or(0))),
    // The sign goes along, as in Java and PostgreSQL.
    Function::new("SHIFTRIGHT", 2, 2, |c, a| shift("SHIFTRIGHT", c, a, |v, by| v >> by.min(63))),
    Function::new("GCD", 2, 2, gcd),
    Function::new("LCM", 2, 2, lcm),
    Function::new("BIT_COUNT", 1, 1, |c, a| bits("BIT_COUNT", c, a, |r| r.integer(0).count_ones().into())),
    Function::new("BIN", 1, 1, bin),
    Function::new("CONV", 3, 3, conv),
];

fn integers(context: &Context, arguments: Vec<Typed>) -> Result<Vec<Typed>, String> {
    arguments.into_iter().map(|a| as_integer(a, "the argument", context.zone)).collect()
}

fn bits(
    name: &str,
    context: &Context,
    arguments: Vec<Typed>,
    of: for<'a> fn(Row<'a>) -> i64,
) -> Result<Typed, String> {
    let arguments = integers(context, arguments)?;
    integer_rows(name, &arguments, move |row| Ok(Some(of(row))))
}

fn shift(
    name: &str,
    context: &Context,
    arguments: Vec<Typed>,
    of: fn(i64, u32) -> i64,
) -> Result<Typed, String> {
    let arguments = integers(context, arguments)?;
    integer_rows(name, &arguments, move |row| {
        if row.integer(1) < 0 {
            return Err(refuse("the number of places to shift is negative"));
        }
        Ok(Some(of(row.integer(0), u32::try_from(row.integer(1)).unwrap_or(u32::MAX))))
    })
}

fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The greatest common divisor; 0 of two zeros.
fn gcd(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments = integers(context, arguments)?;
    integer_rows("GCD", &arguments, |row| {
        let divisor = common_divisor(row.integer(0).unsigned_abs(), row.integer(1).unsigned_abs());
        i64::try_from(divisor).map(Some).map_err(|_| refuse("number overflow"))
    })
}

/// The least common multiple; 0 when an argument is 0.
fn lcm(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments = integers(context, arguments)?;
    integer_rows("LCM", &arguments, |row| {
        let (a, b) = (row.integer(0).unsigned_abs(), row.integer(1).unsigned_abs());
        let multiple = match common_divisor(a, b) {
            0 => Some(0),
            divisor => (a / divisor).checked_mul(b),
        };
        let multiple = multiple.and_then(|m| i64::try_from(m).ok());
        multiple.map(Some).ok_or_else(|| refuse("number overflow"))
    })
}

fn bin(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments = integers(context, arguments)?;
    text_rows("BIN", &arguments, LogicalType::Text, |row| Ok(Some(format!("{:b}", row.integer(0)).into())))
}

/// The digits of a number in another base, 2 to 36; a negative target base writes a sign instead of the complement.
fn conv(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let [digits, from, to] = <[Typed; 3]>::try_from(arguments).map_err(|_| "three arguments are needed")?;
    let digits = as_text(digits, context.zone)?;
    let bases = integers(context, vec![from, to])?;
    let arguments: Vec<Typed> = std::iter::once(digits).chain(bases).collect();
    text_rows("CONV", &arguments, LogicalType::Text, |row| {
        let (from, to) = (base(row.integer(1))?, base(row.integer(2))?);
        let wrong = || refuse("text is not a number of 64 bits in its base");
        let text = row.text(0).trim();
        let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        if digits.starts_with('+') {
            return Err(wrong());
        }
        let size = u64::from_str_radix(digits, from).map_err(|_| wrong())?;
        let value = if negative { size.wrapping_neg() } else { size };
        // Read as signed only when the target base is negative.
        let signed = row.integer(2) < 0 && value > i64::MAX.unsigned_abs();
        let written = written(if signed { value.wrapping_neg() } else { value }, to);
        Ok(Some(if signed { format!("-{written}") } else { written }.into()))
    })
}

fn base(number: i64) -> Result<u32, arrow_schema::ArrowError> {
    match u32::try_from(number.unsigned_abs()) {
        Ok(base @ 2..=36) => Ok(base),
        _ => Err(refuse("a base is a number from 2 to 36")),
    }
}

fn written(mut value: u64, base: u32) -> String {
    let mut digits = Vec::new();
    loop {
        let digit = u32::try_from(value % u64::from(base)).unwrap_or(0);
        digits.push(char::from_digit(digit, base).unwrap_or('0').to_ascii_uppercase());
        value /= u64::from(base);
        if value == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}
