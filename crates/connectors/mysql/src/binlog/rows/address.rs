//! Owns MariaDB's UUID, INET4 and INET6: fixed bytes in row events, text when selected.

use std::fmt::Write;

/// Appends a UUID as text. Row events carry it in the order of the text, whatever order the table stores.
pub fn write_uuid(out: &mut String, bytes: [u8; 16]) {
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        write_hex(out, *byte);
    }
}

fn write_hex(out: &mut String, byte: u8) {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    out.push(DIGITS[usize::from(byte >> 4)]);
    out.push(DIGITS[usize::from(byte & 15)]);
}

/// Appends an IPv4 address as text.
pub fn write_inet4(out: &mut String, bytes: [u8; 4]) {
    let [a, b, c, d] = bytes;
    write!(out, "{a}.{b}.{c}.{d}").expect("a string takes any text");
}

/// Appends an IPv6 address as the server prints it: the longest run of zero groups, even of one, as `::`, and
/// mapped or compatible IPv4 addresses with their dotted tail.
pub fn write_inet6(out: &mut String, bytes: [u8; 16]) {
    let mut groups = [0u16; 8];
    for (group, pair) in groups.iter_mut().zip(bytes.chunks_exact(2)) {
        *group = u16::from_be_bytes([pair[0], pair[1]]);
    }
    let (gap_start, gap_len) = longest_gap(&groups);
    let mapped = groups[..5] == [0; 5] && groups[5] == 0xffff;
    let compatible = groups[..6] == [0; 6] && groups[6] != 0;
    let dotted = mapped || compatible;
    let end = if dotted { 6 } else { 8 };
    let mut index = 0;
    while index < end {
        if gap_len > 0 && index == gap_start {
            out.push_str("::");
            index += gap_len;
            continue;
        }
        if index > 0 && !out.ends_with(':') {
            out.push(':');
        }
        write!(out, "{:x}", groups[index]).expect("a string takes any text");
        index += 1;
    }
    if dotted {
        if !out.ends_with(':') {
            out.push(':');
        }
        let [.., a, b, c, d] = bytes;
        write_inet4(out, [a, b, c, d]);
    }
}

/// Start and length of the longest run of zeros, the first of equals.
fn longest_gap(groups: &[u16; 8]) -> (usize, usize) {
    let (mut best_start, mut best_len, mut len) = (0, 0, 0);
    for (index, group) in groups.iter().enumerate() {
        len = if *group == 0 { len + 1 } else { 0 };
        if len > best_len {
            best_len = len;
            best_start = index + 1 - len;
        }
    }
    (best_start, best_len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_print_as_the_server_does() {
        for (groups, text) in [
            ([0u16; 8], "::"),
            ([0, 0, 0, 0, 0, 0, 0, 1], "::1"),
            ([0, 0, 0, 0, 0, 0xffff, 0x0102, 0x0304], "::ffff:1.2.3.4"),
            ([0, 0, 0, 0, 0, 0, 0x0102, 0x0304], "::1.2.3.4"),
            ([0xfe80, 0, 0, 1, 0, 0, 0, 1], "fe80:0:0:1::1"),
            ([0x2001, 0xdb8, 0, 1, 1, 1, 1, 1], "2001:db8::1:1:1:1:1"),
            ([1, 0, 0, 0, 0, 0, 0, 0], "1::"),
        ] {
            let mut bytes = [0; 16];
            for (pair, group) in bytes.chunks_exact_mut(2).zip(groups) {
                pair.copy_from_slice(&group.to_be_bytes());
            }
            let mut out = String::new();
            write_inet6(&mut out, bytes);
            assert_eq!(out, text);
        }
    }
}
