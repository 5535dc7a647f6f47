//! Owns names of records and fields: those that Avro does not allow are written in another form.

use std::fmt::Write;

/// A name that Avro allows: each other character as `_uXXXX` of its UTF-16 units.
pub(super) fn valid(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for (index, character) in name.chars().enumerate() {
        let is_plain =
            character.is_ascii_alphabetic() || character == '_' || (index > 0 && character.is_ascii_digit());
        if is_plain {
            out.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing into a text cannot fail.
            let _ = write!(out, "_u{unit:04x}");
        }
    }
    if out.is_empty() { "_".to_owned() } else { out }
}

/// The full name of a record of a table: parts joined by points.
pub(super) fn joined<'n>(parts: impl IntoIterator<Item = &'n str>) -> String {
    let parts: Vec<String> = parts.into_iter().filter(|p| !p.is_empty()).map(valid).collect();
    parts.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_characters_are_written_as_their_numbers() {
        for (name, expected) in
            [("a_1", "a_1"), ("1a", "_u0031a"), ("a-b", "a_u002db"), ("ä😀", "_u00e4_ud83d_ude00"), ("", "_")]
        {
            assert_eq!(valid(name), expected);
        }
        assert_eq!(joined(["shop", "", "my table", "Value"]), "shop.my_u0020table.Value");
    }
}
