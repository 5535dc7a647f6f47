//! Owns the text that Java gives floating-point numbers, which the change formats carry: `0.1`, `1.0`, `1.0E10`.

/// Appends what `Double.toString` gives (JDK 19 and later: the shortest digits that read back as the same number).
/// `NaN`, `Infinity` and `-Infinity` as Java spells them; these are no JSON numbers.
pub fn write_java_f64(out: &mut Vec<u8>, value: f64) {
    if !value.is_finite() {
        return special(out, value.is_nan(), value < 0.0);
    }
    if value != 0.0 && value.abs() < 1e-321 {
        return from_shortest(out, &two_digits(value), false, value < 0.0);
    }
    from_shortest(out, ryu::Buffer::new().format_finite(value), value == 0.0, value.is_sign_negative());
}

/// Appends what `Float.toString` gives; see [`write_java_f64`].
pub fn write_java_f32(out: &mut Vec<u8>, value: f32) {
    if !value.is_finite() {
        return special(out, value.is_nan(), value < 0.0);
    }
    if value != 0.0 && value.abs() < 1e-42 {
        return from_shortest(out, &two_digits(value), false, value < 0.0);
    }
    from_shortest(out, ryu::Buffer::new().format_finite(value), value == 0.0, value.is_sign_negative());
}

/// The shortest text of at least two digits. Java prints two digits at least and takes the nearest of them, which matters where
/// numbers are so small that neighbours differ in the first digit: `4.9E-324`, not `5.0E-324`.
fn two_digits<T: std::fmt::LowerExp + std::str::FromStr + PartialEq + Copy>(value: T) -> String {
    (1..17)
        .map(|digits| format!("{value:.digits$e}"))
        .find(|text| text.parse().is_ok_and(|back: T| back == value))
        .unwrap_or_default()
}

fn special(out: &mut Vec<u8>, nan: bool, negative: bool) {
    out.extend_from_slice(match (nan, negative) {
        (true, _) => b"NaN".as_slice(),
        (false, true) => b"-Infinity",
        (false, false) => b"Infinity",
    });
}

/// Rearranges `ddd.ddd` or `d.ddde±n`: plain from 10⁻³ to below 10⁷, else one digit before the point and an exponent.
fn from_shortest(out: &mut Vec<u8>, text: &str, zero: bool, negative: bool) {
    if zero {
        out.extend_from_slice(if negative { b"-0.0" } else { b"0.0" });
        return;
    }
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    // Digits without leading and trailing zeros, and the power of ten of the first.
    let mut digits = [0_u8; 40];
    let mut length = 0;
    for byte in whole.bytes().chain(fraction.bytes()) {
        digits[length] = byte;
        length += 1;
    }
    let leading = digits[..length].iter().take_while(|d| **d == b'0').count();
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let power = exponent + i32::try_from(whole.len()).unwrap_or(0) - 1 - i32::try_from(leading).unwrap_or(0);
    let mut digits = &digits[leading..length];
    while let [rest @ .., b'0'] = digits {
        digits = rest;
    }
    if negative {
        out.push(b'-');
    }
    let fraction_of = |out: &mut Vec<u8>, rest: &[u8]| {
        out.push(b'.');
        out.extend_from_slice(if rest.is_empty() { b"0" } else { rest });
    };
    match power {
        0..=6 => {
            let before = usize::try_from(power).unwrap_or(0) + 1;
            let (head, rest) = digits.split_at(before.min(digits.len()));
            out.extend_from_slice(head);
            out.extend(std::iter::repeat_n(b'0', before - head.len()));
            fraction_of(out, rest);
        }
        -3..=-1 => {
            out.extend_from_slice(b"0.");
            out.extend(std::iter::repeat_n(b'0', usize::try_from(-power - 1).unwrap_or(0)));
            out.extend_from_slice(digits);
        }
        _ => {
            out.push(digits[0]);
            fraction_of(out, &digits[1..]);
            out.push(b'E');
            out.extend_from_slice(itoa::Buffer::new().format(power).as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn double(value: f64) -> String {
        let mut out = Vec::new();
        write_java_f64(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    /// Expected texts are those of the Java Language Specification's rules for `Double.toString`.
    #[test]
    fn doubles_are_spelt_as_in_java() {
        for (value, expect) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.1, "0.1"),
            (-12.5, "-12.5"),
            (100.0, "100.0"),
            (1e6, "1000000.0"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (1e10, "1.0E10"),
            (12_345_678.9, "1.23456789E7"),
            (0.001, "0.001"),
            (0.00123, "0.00123"),
            (9.99e-4, "9.99E-4"),
            (1e-5, "1.0E-5"),
            (f64::MAX, "1.7976931348623157E308"),
            (f64::MIN_POSITIVE, "2.2250738585072014E-308"),
            (5e-324, "4.9E-324"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(double(value), expect);
        }
    }

    #[test]
    fn every_text_reads_back_as_the_same_number() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..100_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let value = f64::from_bits(state ^ (state >> 29));
            if value.is_finite() {
                assert_eq!(double(value).parse::<f64>().unwrap().to_bits(), value.to_bits());
            }
            let mut out = Vec::new();
            let short = f32::from_bits(u32::try_from(state >> 32).unwrap());
            if short.is_finite() {
                write_java_f32(&mut out, short);
                let text = String::from_utf8(out).unwrap();
                assert_eq!(text.parse::<f32>().unwrap().to_bits(), short.to_bits(), "{text}");
            }
        }
    }
}
