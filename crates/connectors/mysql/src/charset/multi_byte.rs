//! Owns the multi-byte sets: how long each character is, and where the server's tables differ from the common ones.

use encoding_rs::{DecoderResult, EUC_KR, Encoding, GB18030, GBK, SHIFT_JIS};

use super::Undecodable;

/// A multi-byte set.
#[derive(Debug)]
pub struct MultiByte {
    name: &'static str,
    encoding: &'static Encoding,
    shape: Shape,
    /// Codes that the server maps otherwise than the encoding, in ascending order.
    differences: &'static [(u32, char)],
}

/// How the length of a character follows from its first bytes.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// Two bytes from 0x80.
    Double,
    /// Two bytes from 0x80, except half-width katakana.
    ShiftJis,
    /// Two bytes, or four when the second is a digit.
    Gb18030,
}

static SETS: &[MultiByte] = &[
    MultiByte { name: "gbk", encoding: GBK, shape: Shape::Double, differences: &[] },
    MultiByte {
        name: "gb2312",
        encoding: GBK,
        shape: Shape::Double,
        differences: &[(0xa1a4, '\u{30fb}'), (0xa1aa, '\u{2015}')],
    },
    MultiByte {
        name: "gb18030",
        encoding: GB18030,
        shape: Shape::Gb18030,
        // The edition of 2005 has private characters where that of 2022 has public ones.
        differences: &[
            (0xa3a0, '\u{e5e5}'),
            (0xa6d9, '\u{e78d}'),
            (0xa6da, '\u{e78e}'),
            (0xa6db, '\u{e78f}'),
            (0xa6dc, '\u{e790}'),
            (0xa6dd, '\u{e791}'),
            (0xa6de, '\u{e792}'),
            (0xa6df, '\u{e793}'),
            (0xa6ec, '\u{e794}'),
            (0xa6ed, '\u{e795}'),
            (0xa6f3, '\u{e796}'),
            (0xfe59, '\u{e81e}'),
            (0xfe61, '\u{e826}'),
            (0xfe66, '\u{e82b}'),
            (0xfe67, '\u{e82c}'),
            (0xfe6d, '\u{e832}'),
            (0xfe7e, '\u{e843}'),
            (0xfe90, '\u{e854}'),
            (0xfea0, '\u{e864}'),
        ],
    },
    MultiByte { name: "euckr", encoding: EUC_KR, shape: Shape::Double, differences: &[] },
    MultiByte { name: "cp932", encoding: SHIFT_JIS, shape: Shape::ShiftJis, differences: &[] },
    MultiByte {
        name: "sjis",
        encoding: SHIFT_JIS,
        shape: Shape::ShiftJis,
        differences: &[
            (0x815f, '\\'),
            (0x8160, '\u{301c}'),
            (0x8161, '\u{2016}'),
            (0x817c, '\u{2212}'),
            (0x8191, '\u{a2}'),
            (0x8192, '\u{a3}'),
            (0x81ca, '\u{ac}'),
        ],
    },
];

/// The set of this name.
pub fn find(name: &str) -> Option<&'static MultiByte> {
    SETS.iter().find(|set| set.name == name)
}

impl MultiByte {
    /// Appends text as UTF-8.
    pub fn append(&self, bytes: &[u8], out: &mut String) -> Result<(), Undecodable> {
        if self.differences.is_empty() {
            return self.run(bytes, out);
        }
        let (mut start, mut at) = (0, 0);
        while at < bytes.len() {
            let len = self.shape.len(&bytes[at..]);
            let character = bytes.get(at..at + len).ok_or(Undecodable)?;
            let code = character.iter().fold(0u32, |code, byte| code << 8 | u32::from(*byte));
            if let Ok(found) = self.differences.binary_search_by_key(&code, |(code, _)| *code) {
                self.run(&bytes[start..at], out)?;
                out.push(self.differences[found].1);
                start = at + len;
            }
            at += len;
        }
        self.run(&bytes[start..], out)
    }

    /// Decodes bytes that hold no difference.
    fn run(&self, bytes: &[u8], out: &mut String) -> Result<(), Undecodable> {
        let mut decoder = self.encoding.new_decoder_without_bom_handling();
        let room = decoder.max_utf8_buffer_length_without_replacement(bytes.len()).ok_or(Undecodable)?;
        out.reserve(room);
        match decoder.decode_to_string_without_replacement(bytes, out, true) {
            (DecoderResult::InputEmpty, _) => Ok(()),
            _ => Err(Undecodable),
        }
    }
}

impl Shape {
    fn len(self, rest: &[u8]) -> usize {
        match (self, rest) {
            (_, [..=0x7f, ..] | []) | (Self::ShiftJis, [0xa1..=0xdf, ..]) => 1,
            (Self::Gb18030, [_, b'0'..=b'9', ..]) => 4,
            _ => 2,
        }
    }
}
