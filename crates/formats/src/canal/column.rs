//! Owns reading a cell: what stands in `data` or `old` to the column's value, checked against its type.

use std::borrow::Cow;

use canalis_batch::{ColumnBuilder, ValueError};
use canalis_types::{Column, LogicalType, mysql_type::TypeText, temporal};

use super::{
    Zone,
    java_sql::{BLOB, VARCHAR, is_binary},
};
use crate::{
    ValueDecoder,
    json::{
        scan::{Scanner, Value},
        string::unescape,
    },
    text::{datetime, expand_exponent, instant, refuse},
};

/// Buffers for values that do not stand in the message as they are.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    text: Vec<u8>,
    value: Vec<u8>,
}

/// Reads the cells of one column.
#[derive(Debug)]
pub(super) struct ColumnReader {
    pub name: Vec<u8>,
    column: Column,
    value: ValueDecoder,
    form: Form,
}

/// How the texts of a column are meant.
#[derive(Debug)]
enum Form {
    Boolean,
    /// Numbers without a point: integers, years, bits.
    Whole,
    Decimal,
    Plain,
    Document,
    /// Local time of the zone; the microseconds that values are multiples of.
    Instant(i64),
    /// One character per byte.
    Latin1(Length),
    /// The bytes of the text.
    Bytes(Length),
    /// A text that was written with one character per byte.
    Latin1Text,
    Label(Labels),
    Set(Labels),
}

#[derive(Debug, Clone, Copy)]
enum Length {
    /// Filled up with zeros.
    Exactly(usize),
    AtMost(usize),
    Any,
}

#[derive(Debug)]
struct Labels {
    labels: Vec<String>,
    /// Texts of digits are labels too, not indexes or masks.
    only_labels: bool,
}

/// What a message says about the texts of a column.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Written<'a> {
    pub mysql_type: Option<&'a TypeText>,
    pub sql_type: Option<i32>,
}

impl ColumnReader {
    pub(super) fn new(column: &Column) -> Self {
        let mut reader = Self {
            name: column.name.clone().into_bytes(),
            column: column.clone(),
            value: ValueDecoder::new(column),
            form: Form::Plain,
        };
        let own = column.native.as_ref().filter(|native| native.dialect == "mysql");
        let own = own.and_then(|native| TypeText::parse(&native.sql).ok());
        reader.expect(Written { mysql_type: own.as_ref(), sql_type: None });
        reader
    }

    /// Prepares for messages with these types.
    pub(super) fn expect(&mut self, written: Written<'_>) {
        self.form = form(&self.column.ty, written);
    }

    /// Whether `sqlType` decides how texts are meant: when the type text is missing, or labels look like indexes.
    pub(super) fn depends_on_sql_type(&self, mysql_type: Option<&TypeText>) -> bool {
        let texts = self.column.ty.is_text() || self.column.ty.is_binary();
        match &self.form {
            Form::Label(labels) | Form::Set(labels) => {
                labels.labels.iter().any(|label| !label.is_empty() && is_digits(label.as_bytes()))
            }
            _ => texts && mysql_type.is_none(),
        }
    }

    /// Appends NULL for a column that the message does not have.
    pub(super) fn append_missing(&self, builder: &mut ColumnBuilder) -> Result<(), ValueError> {
        self.value.append_null(builder)
    }

    /// Appends a value.
    pub(super) fn append(
        &self,
        builder: &mut ColumnBuilder,
        value: Value<'_>,
        zone: Zone,
        scratch: &mut Scratch,
    ) -> Result<(), ValueError> {
        let Scratch { text: unescaped, value: converted } = scratch;
        let text: Cow<'_, [u8]> = match (value, &self.form) {
            (Value::Null, _) => return self.value.append_null(builder),
            (Value::Text(text), _) if text.escaped => {
                unescape(text.raw, unescaped).map_err(refuse)?;
                Cow::Borrowed(unescaped)
            }
            (Value::Text(text), _) => Cow::Borrowed(text.raw),
            (Value::Number(raw), Form::Whole | Form::Decimal) => expand_exponent(raw)?,
            (Value::Number(raw), _) => Cow::Borrowed(raw),
            (Value::Boolean(value), Form::Whole | Form::Boolean) => {
                Cow::Borrowed(if value { b"1" } else { b"0" })
            }
            (Value::Boolean(value), _) => Cow::Borrowed(if value { b"true" } else { b"false" }),
            (Value::Container(raw), Form::Document) => Cow::Borrowed(raw),
            (Value::Container(_), _) => {
                return Err(refuse("an object or array does not fit the column's type"));
            }
        };
        match &self.form {
            Form::Instant(unit) => append_instant(builder, &text, *unit, zone),
            Form::Latin1(length) => append_bytes(builder, latin1(&text, converted)?, *length),
            Form::Bytes(length) => append_bytes(builder, &text, *length),
            Form::Latin1Text => self.value.append(builder, latin1(&text, converted)?),
            Form::Label(labels) => self.value.append(builder, labels.one(&text)?),
            Form::Set(labels) => self.value.append(builder, labels.many(&text, converted)?),
            Form::Decimal => self.append_decimal(builder, &text),
            Form::Boolean | Form::Whole | Form::Plain | Form::Document => self.value.append(builder, &text),
        }
    }

    /// A decimal; a text with an exponent is what other tools write.
    fn append_decimal(&self, builder: &mut ColumnBuilder, text: &[u8]) -> Result<(), ValueError> {
        let plain = self.value.append(builder, text);
        if plain.is_ok() || memchr::memchr2(b'e', b'E', text).is_none() {
            return plain;
        }
        let mut scanner = Scanner::new(text);
        match scanner.value() {
            Ok(Value::Number(number)) if scanner.end().is_ok() => {
                self.value.append(builder, &expand_exponent(number)?)
            }
            _ => plain,
        }
    }
}

fn form(ty: &LogicalType, written: Written<'_>) -> Form {
    use LogicalType as L;
    let sql_type = written.sql_type;
    let bytes = match written.mysql_type {
        Some(ty) => is_binary(ty),
        None => sql_type.map_or(ty.is_binary(), |number| number == BLOB),
    };
    let unit = |precision: u8| 10_i64.pow(u32::from(6 - precision.min(6)));
    let size = |length: u32| length as usize;
    let length = match ty {
        L::Binary { length } => Length::Exactly(size(*length)),
        L::Varbinary { length } => Length::AtMost(size(*length)),
        _ => Length::Any,
    };
    match ty {
        L::Boolean => Form::Boolean,
        L::Int8 | L::Int16 | L::Int32 | L::Int64 | L::Year | L::Bit { .. } => Form::Whole,
        L::UInt8 | L::UInt16 | L::UInt32 | L::UInt64 => Form::Whole,
        L::Decimal { .. } => Form::Decimal,
        L::Json => Form::Document,
        L::TimestampTz { precision } => Form::Instant(unit(*precision)),
        L::Binary { .. } | L::Varbinary { .. } | L::Bytes | L::Geometry if bytes => Form::Latin1(length),
        L::Binary { .. } | L::Varbinary { .. } | L::Bytes | L::Geometry => Form::Bytes(length),
        L::Char { .. } | L::Varchar { .. } | L::Text | L::Enum { .. } | L::Set { .. } => {
            let own = match ty {
                L::Enum { labels } => Some(("enum", labels)),
                L::Set { labels } => Some(("set", labels)),
                _ => None,
            };
            let (name, labels) = match written.mysql_type {
                Some(ty) => (ty.name.as_str(), &ty.arguments),
                None => own.unwrap_or(("", const { &Vec::new() })),
            };
            let labels = || Labels { labels: labels.clone(), only_labels: sql_type == Some(VARCHAR) };
            match name {
                "enum" => Form::Label(labels()),
                "set" => Form::Set(labels()),
                _ if bytes => Form::Latin1Text,
                _ => Form::Plain,
            }
        }
        L::Uuid | L::Float32 | L::Float64 | L::Date | L::Time { .. } | L::Timestamp { .. } => Form::Plain,
    }
}

fn is_digits(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_digit)
}

/// A short number out of digits.
fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !is_digits(text) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

impl Labels {
    /// The number that `text` is; `None` when it is made of labels. Only where labels are numbers too, `sqlType` decides.
    fn number(&self, text: &[u8]) -> Result<Option<u64>, ValueError> {
        if text.is_empty() || !is_digits(text) {
            return Ok(None);
        }
        if self.only_labels && self.labels.iter().any(|label| label.as_bytes() == text) {
            return Ok(None);
        }
        number(text).map(Some).ok_or_else(|| refuse("number is no index of the column's labels"))
    }

    fn one<'t>(&'t self, text: &'t [u8]) -> Result<&'t [u8], ValueError> {
        match self.number(text)? {
            Some(0) => Ok(b""),
            Some(index) => usize::try_from(index - 1)
                .ok()
                .and_then(|at| self.labels.get(at))
                .map(|label| label.as_bytes())
                .ok_or_else(|| refuse("number is no index of the column's labels")),
            None if text.is_empty() || self.labels.iter().any(|label| label.as_bytes() == text) => Ok(text),
            None => Err(refuse("text is none of the column's labels")),
        }
    }

    fn many<'t>(&self, text: &'t [u8], out: &'t mut Vec<u8>) -> Result<&'t [u8], ValueError> {
        let Some(mask) = self.number(text)? else {
            let known = |part: &[u8]| self.labels.iter().any(|label| label.as_bytes() == part);
            if !text.is_empty() && !text.split(|b| *b == b',').all(known) {
                return Err(refuse("text is not a list of the column's labels"));
            }
            return Ok(text);
        };
        let bits = u32::try_from(self.labels.len()).unwrap_or(u32::MAX);
        if mask.checked_shr(bits).unwrap_or(0) != 0 {
            return Err(refuse("mask has bits that are no labels of the column"));
        }
        out.clear();
        for (at, label) in self.labels.iter().take(64).enumerate() {
            if mask >> at & 1 == 1 {
                if !out.is_empty() {
                    out.push(b',');
                }
                out.extend_from_slice(label.as_bytes());
            }
        }
        Ok(out)
    }
}

/// The bytes of which every character is one.
fn latin1<'t>(text: &'t [u8], out: &'t mut Vec<u8>) -> Result<&'t [u8], ValueError> {
    if text.is_ascii() {
        return Ok(text);
    }
    out.clear();
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match (*first, after) {
            (0..0x80, _) => out.push(*first),
            // U+0080 to U+00FF are two bytes, the first of which is one of these.
            (0xc2 | 0xc3, [second @ 0x80..0xc0, after @ ..]) => {
                out.push((first & 3) << 6 | second & 0x3f);
                rest = after;
            }
            _ => return Err(refuse("text has a character above U+00FF, which stands for no byte")),
        }
    }
    Ok(out)
}

fn append_bytes(builder: &mut ColumnBuilder, bytes: &[u8], length: Length) -> Result<(), ValueError> {
    let most = match length {
        Length::Exactly(most) | Length::AtMost(most) => most,
        Length::Any => usize::MAX,
    };
    if bytes.len() > most {
        return Err(refuse(format!("holds at most {most} bytes, has {}", bytes.len())));
    }
    let ColumnBuilder::Binary(builder) = builder else { return builder.append_text(bytes) };
    match length {
        Length::Exactly(wanted) if wanted > bytes.len() => {
            let mut padded = bytes.to_vec();
            padded.resize(wanted, 0);
            builder.append_value(padded);
        }
        _ => builder.append_value(bytes),
    }
    Ok(())
}

fn append_instant(builder: &mut ColumnBuilder, text: &[u8], unit: i64, zone: Zone) -> Result<(), ValueError> {
    let micros = match datetime(text, unit) {
        // An impossible date, zero above all, is the same in every zone.
        Ok(local) if zone.is_utc() || temporal::is_partial_datetime(local) => local,
        Ok(local) => zone.instant(local).map_err(refuse)?,
        // With a `Z` or an offset, as other tools write it.
        Err(error) => {
            if text.len() < 20 || memchr::memchr3(b'Z', b'+', b'-', &text[19..]).is_none() {
                return Err(error);
            }
            instant(text, unit)?
        }
    };
    match builder {
        ColumnBuilder::Timestamp(builder) => builder.append_value(micros),
        other => return other.append_text(text),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_bytes_up_to_255() {
        let mut out = Vec::new();
        assert_eq!(
            latin1("a\u{0}\u{7f}\u{80}\u{ff}þ".as_bytes(), &mut out).unwrap(),
            b"a\x00\x7f\x80\xff\xfe"
        );
        for text in ["\u{100}".as_bytes(), "a漢".as_bytes(), b"\xc3", b"\xc0\x80", b"\xff"] {
            assert!(latin1(text, &mut out).is_err(), "{text:?}");
        }
    }

    #[test]
    fn labels_that_are_numbers_are_told_by_the_sql_type() {
        let labels = |only_labels| Labels { labels: vec!["3".into(), "1".into(), "x".into()], only_labels };
        assert_eq!(labels(false).one(b"1").unwrap(), b"3");
        assert_eq!(labels(true).one(b"1").unwrap(), b"1");
        assert_eq!(labels(true).one(b"2").unwrap(), b"1");
        assert_eq!(labels(false).one(b"x").unwrap(), b"x");
        assert!(labels(false).one(b"4").is_err());
        assert!(labels(false).one(b"99999999999999999999").is_err());
    }

    #[test]
    fn masks_take_64_labels() {
        let labels = Labels { labels: (0..64).map(|at| format!("l{at}")).collect(), only_labels: false };
        let mut out = Vec::new();
        let all = labels.many(b"18446744073709551615", &mut out).unwrap();
        assert_eq!(all.split(|b| *b == b',').count(), 64);
        let labels = Labels { labels: vec!["a".into(), "b".into(), "c".into()], only_labels: false };
        for (text, expect) in [
            ("5", Some("a,c")),
            ("0", Some("")),
            ("", Some("")),
            ("a,c", Some("a,c")),
            ("8", None),
            ("a,d", None),
        ] {
            let mut out = Vec::new();
            assert_eq!(labels.many(text.as_bytes(), &mut out).ok(), expect.map(str::as_bytes), "{text}");
        }
    }
}
