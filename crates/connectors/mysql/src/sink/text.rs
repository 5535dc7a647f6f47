//! Owns the two text forms of values on their way to the server: SQL literals and the fields of LOAD DATA.

use super::cells::Cells;

/// Appends a literal that stores the cell's value exactly.
pub(super) fn write_literal(out: &mut Vec<u8>, cells: &Cells, row: usize) {
    if cells.is_null(row) {
        out.extend_from_slice(b"NULL");
        return;
    }
    match cells {
        Cells::Boolean(_)
        | Cells::Int8(_)
        | Cells::Int16(_)
        | Cells::Int32(_)
        | Cells::Int64(_)
        | Cells::UInt8(_)
        | Cells::UInt16(_)
        | Cells::UInt32(_)
        | Cells::UInt64(_) => cells.write_plain(row, out),
        Cells::Text(a) => quote(out, a.value(row).as_bytes()),
        Cells::Bytes(a) => {
            out.extend_from_slice(b"_binary");
            quote(out, a.value(row));
        }
        // As text, numbers keep their sign of zero and more digits than the parser's own numbers have.
        _ => {
            out.push(b'\'');
            cells.write_plain(row, out);
            out.push(b'\'');
        }
    }
}

/// Appends an operand that compares with a stored value without loss.
pub(super) fn write_operand(out: &mut Vec<u8>, cells: &Cells, row: usize) {
    if cells.is_null(row) {
        out.extend_from_slice(b"NULL");
        return;
    }
    match cells {
        // A stored single widens to a double in comparisons.
        Cells::Float32(a) => double(out, f64::from(a.value(row))),
        Cells::Float64(a) => double(out, a.value(row)),
        // A text compared with a decimal would turn both into doubles.
        Cells::Decimal128(..) | Cells::Decimal256(..) | Cells::Year(_) => cells.write_plain(row, out),
        _ => write_literal(out, cells, row),
    }
}

/// A literal of double precision: without an exponent it would be a decimal.
fn double(out: &mut Vec<u8>, value: f64) {
    let mut buffer = ryu::Buffer::new();
    let text = buffer.format(value);
    out.extend_from_slice(text.as_bytes());
    if !text.contains('e') {
        out.extend_from_slice(b"e0");
    }
}

/// Appends a quoted string. The session never has NO_BACKSLASH_ESCAPES, and in utf8mb4 neither a quote nor
/// a backslash can be part of a longer character.
pub(super) fn quote(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'\'');
    let mut rest = bytes;
    while let Some(at) = memchr::memchr3(b'\'', b'\\', 0, rest) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(&[b'\\', if rest[at] == 0 { b'0' } else { rest[at] }]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'\'');
}

/// Upper-case hexadecimal digits.
pub(super) fn write_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.reserve(bytes.len() * 2);
    for byte in bytes {
        out.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}

/// Appends the row as one line of LOAD DATA: fields ended by tabs, `\N` for NULL, backslash as the escape.
/// Bytes are written as hexadecimal digits, which the statement turns back.
pub(super) fn write_line(out: &mut Vec<u8>, columns: &[Cells], row: usize) {
    for (index, cells) in columns.iter().enumerate() {
        if index > 0 {
            out.push(b'\t');
        }
        if cells.is_null(row) {
            out.extend_from_slice(b"\\N");
            continue;
        }
        match cells {
            Cells::Text(a) => escape(out, a.value(row).as_bytes()),
            Cells::Bytes(a) => write_hex(out, a.value(row)),
            _ => cells.write_plain(row, out),
        }
    }
    out.push(b'\n');
}

fn escape(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut rest = bytes;
    while let Some(at) = memchr::memchr3(b'\t', b'\n', b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let escaped: &[u8] = match rest[at] {
            b'\t' => b"\\t",
            b'\n' => b"\\n",
            _ => b"\\\\",
        };
        out.extend_from_slice(escaped);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, BinaryArray, Float32Array, StringArray, UInt16Array};
    use canalis_types::LogicalType;

    use super::*;

    fn literal(array: ArrayRef, ty: &LogicalType) -> String {
        let mut out = Vec::new();
        write_literal(&mut out, &Cells::new(&array, ty).unwrap(), 0);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn literals_hold_any_character() {
        for (value, expect) in [
            ("plain", "'plain'"),
            ("it's", "'it\\'s'"),
            ("back\\slash", "'back\\\\slash'"),
            ("nul\0end", "'nul\\0end'"),
            ("列\n😀", "'列\n😀'"),
            ("", "''"),
        ] {
            let array: ArrayRef = Arc::new(StringArray::from(vec![value]));
            assert_eq!(literal(array, &LogicalType::Text), expect);
        }
        let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![&b"a'\0"[..]]));
        assert_eq!(literal(bytes, &LogicalType::Bytes), "_binary'a\\'\\0'");
        let null: ArrayRef = Arc::new(StringArray::from(vec![None::<&str>]));
        assert_eq!(literal(null, &LogicalType::Text), "NULL");
        let year: ArrayRef = Arc::new(UInt16Array::from(vec![0]));
        assert_eq!(literal(year, &LogicalType::Year), "'0000'");
    }

    #[test]
    fn operands_of_singles_are_the_stored_double() {
        let array: ArrayRef = Arc::new(Float32Array::from(vec![0.1]));
        let mut out = Vec::new();
        write_operand(&mut out, &Cells::new(&array, &LogicalType::Float32).unwrap(), 0);
        assert_eq!(out, b"0.10000000149011612e0");
    }

    #[test]
    fn fields_are_escaped() {
        let mut out = Vec::new();
        escape(&mut out, b"a\tb\nc\\d\0e\r");
        assert_eq!(out, b"a\\tb\\nc\\\\d\0e\r");
    }
}
