//! Owns numbers from text. Nothing passes through floating point but floats.

use std::borrow::Cow;

use canalis_batch::ValueError;

use super::refuse;

/// Digits that surely fit 64 bits.
const SAFE_DIGITS: usize = 18;

const POWERS_OF_TEN: [i128; 39] = powers();

const fn powers() -> [i128; 39] {
    let mut table = [1; 39];
    let mut at = 1;
    while at < table.len() {
        table[at] = table[at - 1] * 10;
        at += 1;
    }
    table
}

/// The value of 1–18 digits; `None` for anything else.
fn short_digits(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || digits.len() > SAFE_DIGITS {
        return None;
    }
    let mut value: i64 = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(value)
}

fn parse<T: std::str::FromStr>(text: &[u8], what: &str) -> Result<T, ValueError> {
    std::str::from_utf8(text)
        .ok()
        .and_then(|t| t.parse().ok())
        .ok_or_else(|| refuse(format!("text is not {what}")))
}

/// A whole number of 64 bits.
pub(crate) fn whole_number(text: &[u8]) -> Result<i64, ValueError> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    match short_digits(digits) {
        Some(value) => Ok(if negative { -value } else { value }),
        None => parse(text, "a whole number of 64 bits"),
    }
}

/// An unsigned number of 64 bits.
pub(super) fn unsigned(text: &[u8]) -> Result<u64, ValueError> {
    match short_digits(text) {
        Some(value) => Ok(value.unsigned_abs()),
        None => parse(text, "an unsigned number of 64 bits"),
    }
}

/// A floating-point number; a text whose value is beyond the type's range is refused.
pub(super) fn float<T>(text: &[u8], is_infinite: fn(T) -> bool) -> Result<T, ValueError>
where
    T: std::str::FromStr + Copy,
{
    let value: T = parse(text, "a number")?;
    if is_infinite(value) && text.iter().any(u8::is_ascii_digit) {
        return Err(refuse("number is out of the column's range"));
    }
    Ok(value)
}

/// The unscaled value of a decimal text of at most 18 digits that fits scale and whole digits; `None` sends
/// everything else to the general way.
pub(super) fn short_decimal(text: &[u8], scale: u8, most_whole_digits: usize) -> Option<i128> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let (whole, fraction) = match digits.iter().position(|b| *b == b'.') {
        Some(point) => (&digits[..point], &digits[point + 1..]),
        None => (digits, &digits[..0]),
    };
    let missing = usize::from(scale).checked_sub(fraction.len())?;
    if whole.len() > most_whole_digits || whole.len() + fraction.len() > SAFE_DIGITS {
        return None;
    }
    let whole = short_digits(whole)?;
    let fraction_value = if fraction.is_empty() { 0 } else { short_digits(fraction)? };
    let power = |n: usize| POWERS_OF_TEN.get(n).copied();
    let value = (i128::from(whole) * power(fraction.len())? + i128::from(fraction_value)) * power(missing)?;
    Some(if negative { -value } else { value })
}

/// Refuses decimals with more digits before the point than the column has.
pub(super) fn check_whole_digits(text: &[u8], most: usize) -> Result<(), ValueError> {
    let digits = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    let whole = digits.split(|b| *b == b'.').next().unwrap_or_default();
    let zeros = whole.iter().take_while(|b| **b == b'0').count();
    if whole.len() - zeros > most {
        return Err(refuse(format!("decimal has more than {most} digits before the point")));
    }
    Ok(())
}

/// A JSON number without its exponent: `1.25e3` is `1250`, `5e-1` is `0.5`. Borrowed when there is none.
///
/// # Errors
/// When the exponent is beyond what any column holds.
pub(crate) fn expand_exponent(number: &[u8]) -> Result<Cow<'_, [u8]>, ValueError> {
    let Some(mark) = number.iter().position(|b| matches!(b, b'e' | b'E')) else {
        return Ok(Cow::Borrowed(number));
    };
    let beyond = || refuse("exponent is out of the column's range");
    let exponent: i64 = parse(&number[mark + 1..], "a number")?;
    let mantissa = &number[..mark];
    let (negative, mantissa) = match mantissa {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, mantissa),
    };
    let point = mantissa.iter().position(|b| *b == b'.').unwrap_or(mantissa.len());
    let mut digits = mantissa.to_vec();
    if point < digits.len() {
        digits.remove(point);
    }
    if digits.iter().all(|b| *b == b'0') {
        return Ok(Cow::Borrowed(b"0"));
    }
    if exponent.abs() > 1000 {
        return Err(beyond());
    }
    let point = i64::try_from(point).map_err(|_| beyond())? + exponent;
    let mut out = Vec::with_capacity(digits.len() + 8);
    if negative {
        out.push(b'-');
    }
    match usize::try_from(point) {
        Ok(whole) if whole >= digits.len() => {
            out.extend_from_slice(&digits);
            out.extend(std::iter::repeat_n(b'0', whole - digits.len()));
        }
        Ok(whole) if whole > 0 => {
            out.extend_from_slice(&digits[..whole]);
            out.push(b'.');
            out.extend_from_slice(&digits[whole..]);
        }
        _ => {
            out.extend_from_slice(b"0.");
            let zeros = usize::try_from(point.unsigned_abs()).map_err(|_| beyond())?;
            out.extend(std::iter::repeat_n(b'0', zeros));
            out.extend_from_slice(&digits);
        }
    }
    Ok(Cow::Owned(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_are_expanded_exactly() {
        for (text, expect) in [
            ("12", "12"),
            ("1.25e3", "1250"),
            ("1.25E1", "12.5"),
            ("-5e-1", "-0.5"),
            ("5e-3", "0.005"),
            ("0e99999", "0"),
            ("12e0", "12"),
            ("1.0e1", "10"),
        ] {
            assert_eq!(expand_exponent(text.as_bytes()).unwrap().as_ref(), expect.as_bytes(), "{text}");
        }
        assert!(expand_exponent(b"1e2000").is_err());
        assert!(expand_exponent(b"1e99999999999999999999").is_err());
    }
}
