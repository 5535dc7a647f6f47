//! Owns decoding of one cell from its text into a column builder, checked against everything that the column's
//! type says: exactly that value, or a reason.

mod number;
mod time;

use base64::{Engine, engine::general_purpose::STANDARD};
use canalis_batch::{ColumnBuilder, ValueError};
use canalis_types::{Column, LogicalType};

pub(crate) use number::{expand_exponent, whole_number};
pub(crate) use time::{datetime, instant};

use crate::json;

pub(crate) fn refuse(reason: impl Into<String>) -> ValueError {
    ValueError { reason: reason.into() }
}

/// What the physical form alone does not guarantee.
#[derive(Debug, Clone)]
enum Check {
    Nothing,
    Characters(u32),
    AtMostBytes(u32),
    ExactBytes(u32),
    /// Most digits before the point.
    WholeDigits(usize),
    /// Microseconds that values are multiples of.
    Fraction(i64),
    /// Largest number.
    AtMost(u64),
    Year,
    Labels(Vec<String>),
    Set(Vec<String>),
    Json,
    Uuid,
}

/// Decodes texts of one column.
///
/// Texts are what the encoders of this crate write: numbers in decimal, `true` and `false`, dates and times as in ISO 8601
/// (a blank or `T` between), instants with `Z` or an offset (UTC without one), bytes as Base64.
#[derive(Debug, Clone)]
pub struct ValueDecoder {
    check: Check,
    zoned: bool,
    nullable: bool,
}

impl ValueDecoder {
    /// A decoder for `column`.
    pub fn new(column: &Column) -> Self {
        use LogicalType as L;
        let fraction = |precision: u8| Check::Fraction(10_i64.pow(u32::from(6 - precision.min(6))));
        let check = match &column.ty {
            L::Char { length } | L::Varchar { length } => Check::Characters(*length),
            L::Binary { length } => Check::ExactBytes(*length),
            L::Varbinary { length } => Check::AtMostBytes(*length),
            L::Decimal { precision, scale } => {
                Check::WholeDigits(usize::from(*precision) - usize::from(*scale.min(precision)))
            }
            L::Time { precision } | L::Timestamp { precision } | L::TimestampTz { precision } => {
                fraction(*precision)
            }
            L::Bit { length } => {
                Check::AtMost(1_u64.checked_shl(u32::from(*length)).map_or(u64::MAX, |top| top - 1))
            }
            L::Year => Check::Year,
            L::Enum { labels } => Check::Labels(labels.clone()),
            L::Set { labels } => Check::Set(labels.clone()),
            L::Json => Check::Json,
            L::Uuid => Check::Uuid,
            _ => Check::Nothing,
        };
        let zoned = matches!(column.ty, L::TimestampTz { .. });
        Self { check, zoned, nullable: column.nullable }
    }

    /// Appends NULL.
    ///
    /// # Errors
    /// When the column is declared NOT NULL; then nothing is appended.
    pub fn append_null(&self, builder: &mut ColumnBuilder) -> Result<(), ValueError> {
        if !self.nullable {
            return Err(refuse("NULL in a column that is NOT NULL"));
        }
        builder.append_null();
        Ok(())
    }

    /// Appends the value that `text` stands for.
    ///
    /// # Errors
    /// When the text is not a value of the column's type; then nothing is appended. The reason does not show the value.
    pub fn append(&self, builder: &mut ColumnBuilder, text: &[u8]) -> Result<(), ValueError> {
        match builder {
            ColumnBuilder::Int64(b) => b.append_value(whole_number(text)?),
            ColumnBuilder::Int32(b) => b.append_value(fit(whole_number(text)?)?),
            ColumnBuilder::Int16(b) => b.append_value(fit(whole_number(text)?)?),
            ColumnBuilder::Int8(b) => b.append_value(fit(whole_number(text)?)?),
            ColumnBuilder::UInt32(b) => b.append_value(fit(whole_number(text)?)?),
            ColumnBuilder::UInt16(b) => {
                let value = fit(whole_number(text)?)?;
                if matches!(self.check, Check::Year) && value != 0 && !(1901..=2155).contains(&value) {
                    return Err(refuse("year is neither 0 nor between 1901 and 2155"));
                }
                b.append_value(value);
            }
            ColumnBuilder::UInt8(b) => b.append_value(fit(whole_number(text)?)?),
            ColumnBuilder::UInt64(b) => {
                let value = number::unsigned(text)?;
                if let Check::AtMost(most) = self.check
                    && value > most
                {
                    return Err(refuse("bit field has more bits than the column"));
                }
                b.append_value(value);
            }
            ColumnBuilder::Float32(b) => b.append_value(number::float(text, f32::is_infinite)?),
            ColumnBuilder::Float64(b) => b.append_value(number::float(text, f64::is_infinite)?),
            ColumnBuilder::Decimal128(b, scale) => {
                let Check::WholeDigits(most) = self.check else { return builder.append_text(text) };
                match number::short_decimal(text, *scale, most) {
                    Some(value) => b.append_value(value),
                    None => {
                        number::check_whole_digits(text, most)?;
                        return builder.append_text(text);
                    }
                }
            }
            ColumnBuilder::Decimal256(..) => {
                if let Check::WholeDigits(most) = self.check {
                    number::check_whole_digits(text, most)?;
                }
                return builder.append_text(text);
            }
            ColumnBuilder::Date(b) => b.append_value(time::date(text)?),
            ColumnBuilder::Duration(b) => b.append_value(time::duration(text, self.unit())?),
            ColumnBuilder::Timestamp(b) if self.zoned => b.append_value(time::instant(text, self.unit())?),
            ColumnBuilder::Timestamp(b) => b.append_value(time::datetime(text, self.unit())?),
            ColumnBuilder::Utf8(b) => {
                let text = std::str::from_utf8(text).map_err(|_| refuse("text is not UTF-8"))?;
                self.check_text(text)?;
                b.append_value(text);
            }
            ColumnBuilder::Binary(b) => {
                let bytes = STANDARD.decode(text).map_err(|_| refuse("bytes are not Base64 with padding"))?;
                match self.check {
                    Check::ExactBytes(n) if bytes.len() as u64 != u64::from(n) => {
                        return Err(refuse(format!("needs exactly {n} bytes, has {}", bytes.len())));
                    }
                    Check::AtMostBytes(n) if bytes.len() as u64 > u64::from(n) => {
                        return Err(refuse(format!("holds at most {n} bytes, has {}", bytes.len())));
                    }
                    _ => b.append_value(bytes),
                }
            }
            ColumnBuilder::Boolean(_) => return builder.append_text(text),
        }
        Ok(())
    }

    fn unit(&self) -> i64 {
        if let Check::Fraction(unit) = self.check { unit } else { 1 }
    }

    fn check_text(&self, text: &str) -> Result<(), ValueError> {
        match &self.check {
            Check::Characters(most) => {
                let most = *most as usize;
                if text.len() > most && text.chars().count() > most {
                    return Err(refuse(format!("text is longer than {most} characters")));
                }
            }
            // The empty text stands for MySQL's error value and for the empty set.
            Check::Labels(_) | Check::Set(_) if text.is_empty() => {}
            Check::Labels(labels) if !labels.iter().any(|l| l == text) => {
                return Err(refuse("text is none of the column's labels"));
            }
            Check::Set(labels) if !text.split(',').all(|part| labels.iter().any(|l| l == part)) => {
                return Err(refuse("text is not a list of the column's labels"));
            }
            Check::Json if !json::is_valid(text.as_bytes()) => return Err(refuse("text is not JSON")),
            Check::Uuid => {
                let form = |(at, byte): (usize, u8)| match at {
                    8 | 13 | 18 | 23 => byte == b'-',
                    _ => byte.is_ascii_hexdigit(),
                };
                if text.len() != 36 || !text.bytes().enumerate().all(form) {
                    return Err(refuse("text is not a UUID"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn fit<T: TryFrom<i64>>(value: i64) -> Result<T, ValueError> {
    T::try_from(value).map_err(|_| refuse("number is out of the column's range"))
}

#[cfg(test)]
mod tests {
    use canalis_batch::cell_to_text;

    use super::*;

    fn decode(ty: &LogicalType, text: &str) -> Result<String, String> {
        let decoder = ValueDecoder::new(&Column::new("c", ty.clone(), true));
        let mut builder = ColumnBuilder::new(ty, 1);
        decoder.append(&mut builder, text.as_bytes()).map_err(|e| e.reason)?;
        Ok(cell_to_text(&builder.finish(), ty, 0).unwrap())
    }

    #[test]
    fn values_are_exact_or_refused() {
        use LogicalType as L;
        let decimal = L::Decimal { precision: 5, scale: 2 };
        let wide = L::Decimal { precision: 40, scale: 0 };
        for (ty, text, expect) in [
            (&L::Int8, "-128", Some("-128")),
            (&L::Int8, "128", None),
            (&L::Int32, "0012", Some("12")),
            (&L::Int64, "-9223372036854775808", Some("-9223372036854775808")),
            (&L::Int64, "9223372036854775808", None),
            (&L::UInt64, "18446744073709551615", Some("18446744073709551615")),
            (&L::UInt8, "-1", None),
            (&L::Int64, "", None),
            (&L::Int64, "-", None),
            (&L::Int64, "1 ", None),
            (&decimal, "999.99", Some("999.99")),
            (&decimal, "-0.5", Some("-0.50")),
            (&decimal, "1000", None),
            (&decimal, "1.005", None),
            (&decimal, "1.0500", Some("1.05")),
            (&decimal, "000001", Some("1.00")),
            (&decimal, ".5", Some("0.50")),
            (&decimal, ".", None),
            (&decimal, "1e2", None),
            (
                &wide,
                "9999999999999999999999999999999999999999",
                Some("9999999999999999999999999999999999999999"),
            ),
            (&wide, "10000000000000000000000000000000000000000", None),
            (&L::Float64, "1e400", None),
            (&L::Float64, "inf", Some("inf")),
            (&L::Float32, "1e39", None),
            (&L::Float64, "0.1", Some("0.1")),
            (&L::Bit { length: 3 }, "7", Some("7")),
            (&L::Bit { length: 3 }, "8", None),
            (&L::Bit { length: 64 }, "18446744073709551615", Some("18446744073709551615")),
            (&L::Year, "1900", None),
            (&L::Varchar { length: 2 }, "äö", Some("äö")),
            (&L::Varchar { length: 2 }, "abc", None),
            (&L::Binary { length: 2 }, "AQI=", Some("0102")),
            (&L::Binary { length: 2 }, "AQ==", None),
            (&L::Bytes, "A", None),
            (&L::Json, "{\"a\":[1]}", Some("{\"a\":[1]}")),
            (&L::Json, "{a:1}", None),
            (&L::Uuid, "123e4567-e89b-12d3-a456-426614174000", Some("123e4567-e89b-12d3-a456-426614174000")),
            (&L::Uuid, "123e4567e89b12d3a456426614174000", None),
            (&L::Boolean, "true", Some("true")),
            (&L::Boolean, "yes", None),
        ] {
            assert_eq!(decode(ty, text).ok().as_deref(), expect, "{ty} from `{text}`");
        }
    }

    #[test]
    fn labels_are_checked() {
        let labels = vec!["a".to_owned(), "b c".to_owned()];
        let (one, many) = (LogicalType::Enum { labels: labels.clone() }, LogicalType::Set { labels });
        for (ty, text, fine) in
            [(&one, "b c", true), (&one, "c", false), (&many, "a,b c", true), (&many, "a,", false)]
        {
            assert_eq!(decode(ty, text).is_ok(), fine, "{text}");
        }
    }
}
