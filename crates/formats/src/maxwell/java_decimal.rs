//! Owns the text that Java's `BigDecimal.toString` gives a decimal: plain, but with an exponent when it begins with six or more
//! zeros behind the point (`0E-10`, `1.230E-7`).

/// Appends the number of `digits` (with a minus, without needless zeros) at `scale`.
pub(super) fn write_java_decimal(out: &mut Vec<u8>, digits: &str, scale: u8) {
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(rest) => ("-", rest.as_bytes()),
        None => ("", digits.as_bytes()),
    };
    let scale = usize::from(scale);
    out.extend_from_slice(sign.as_bytes());
    if scale == 0 {
        return out.extend_from_slice(digits);
    }
    // The power of ten of the first digit is `length - 1 - scale`; below −6 Java writes an exponent.
    if digits.len() + 5 < scale {
        out.push(digits[0]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.extend_from_slice(b"E-");
        out.extend_from_slice(itoa::Buffer::new().format(scale + 1 - digits.len()).as_bytes());
    } else if digits.len() > scale {
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        out.extend_from_slice(whole);
        out.push(b'.');
        out.extend_from_slice(fraction);
    } else {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', scale - digits.len()));
        out.extend_from_slice(digits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected texts follow the rules of `BigDecimal.toString` in the Java API documentation.
    #[test]
    fn decimals_are_spelt_as_in_java() {
        for (digits, scale, expect) in [
            ("0", 0, "0"),
            ("0", 2, "0.00"),
            ("0", 6, "0.000000"),
            ("0", 7, "0E-7"),
            ("0", 10, "0E-10"),
            ("1", 6, "0.000001"),
            ("1", 7, "1E-7"),
            ("-1230", 10, "-1.230E-7"),
            ("12300", 10, "0.0000012300"),
            ("-128", 2, "-1.28"),
            ("-12", 2, "-0.12"),
            ("9999999999", 2, "99999999.99"),
        ] {
            let mut out = Vec::new();
            write_java_decimal(&mut out, digits, scale);
            assert_eq!(String::from_utf8(out).unwrap(), expect, "{digits} at {scale}");
        }
    }
}
