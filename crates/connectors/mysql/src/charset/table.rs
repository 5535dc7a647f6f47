//! Owns tables of characters as the server has them: asking for one ([`Request`]) and decoding by it ([`Table`]).

use canalis_types::{Code, Error, Result};

use super::{Undecodable, unknown};

/// Characters that one query asks for; servers allow 4096 columns.
const CHUNK: usize = 512;

/// How the length of a character follows from its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Single,
    /// Two bytes from 0x80.
    Double,
    /// Two bytes from 0x80, three after 0x8f.
    EucJp,
}

impl Shape {
    fn of(name: &str) -> Self {
        match name {
            "big5" => Self::Double,
            "ujis" | "eucjpms" => Self::EucJp,
            _ => Self::Single,
        }
    }

    fn len(self, first: u8) -> usize {
        match (self, first) {
            (Self::Single, _) | (_, ..=0x7f) => 1,
            (Self::EucJp, 0x8f) => 3,
            _ => 2,
        }
    }

    /// Every code that may stand for a character.
    fn codes(self) -> Vec<u32> {
        let pairs = |lead: u32, trail: u32| {
            (lead..=0xfe).flat_map(move |first| (trail..=0xfe).map(move |second| first << 8 | second))
        };
        match self {
            Self::Single => (0..=0xff).collect(),
            Self::Double => pairs(0x81, 0x40).collect(),
            Self::EucJp => {
                let kana = (0xa1..=0xdf).map(|second| 0x8e00 | second);
                kana.chain(pairs(0xa1, 0xa1)).chain(pairs(0xa1, 0xa1).map(|code| 0x8f_0000 | code)).collect()
            }
        }
    }
}

/// A table on its way from the server.
#[derive(Debug)]
pub struct Request {
    name: String,
    shape: Shape,
    codes: Vec<u32>,
    /// Codes that were answered.
    done: usize,
    found: Vec<(u32, char)>,
}

impl Request {
    /// A request for the table of a set.
    ///
    /// # Errors
    /// When the name is none that a server could have; it is put into SQL.
    pub fn new(name: &str) -> Result<Self> {
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            return Err(unknown(name));
        }
        let shape = Shape::of(name);
        Ok(Self { name: name.to_owned(), shape, codes: shape.codes(), done: 0, found: Vec::new() })
    }

    fn chunk(&self) -> &[u32] {
        let rest = &self.codes[self.done..];
        &rest[..rest.len().min(CHUNK)]
    }

    /// The next query to run, which gives one row; `None` when the table is complete.
    pub fn query(&self) -> Option<String> {
        let name = &self.name;
        let columns: Vec<String> = self
            .chunk()
            .iter()
            .map(|code| {
                let digits = if *code > 0xffff {
                    6
                } else if *code > 0xff {
                    4
                } else {
                    2
                };
                format!("CONVERT(CONVERT(X'{code:0digits$X}' USING {name}) USING utf8mb4)")
            })
            .collect();
        (!columns.is_empty()).then(|| format!("SELECT {}", columns.join(", ")))
    }

    /// Takes the fields of the row that [`Request::query`] gave.
    ///
    /// # Errors
    /// When there are not as many as were asked for.
    pub fn answer(&mut self, fields: Vec<Option<String>>) -> Result<()> {
        let chunk = self.chunk();
        if fields.len() != chunk.len() {
            return Err(unknown(&self.name));
        }
        let done = self.done + chunk.len();
        for (code, field) in self.codes[self.done..done].iter().zip(fields) {
            let mut characters = field.iter().flat_map(|field| field.chars());
            // Servers show NULL or question marks for what stands for nothing.
            if let (Some(character), None) = (characters.next(), characters.next())
                && (character != '?' || *code == u32::from(b'?'))
            {
                self.found.push((*code, character));
            }
        }
        self.done = done;
        Ok(())
    }

    /// The table.
    ///
    /// # Errors
    /// When the server has given hardly any character.
    pub fn finish(mut self) -> Result<Table> {
        if self.found.len() < 100 {
            return Err(Error::new(
                Code::SourceEventUnknown,
                format!("the source has no characters for character set {}", self.name),
            ));
        }
        self.found.sort_unstable();
        let mut low: Box<[Option<char>; 256]> = Box::new([None; 256]);
        if self.shape != Shape::Single {
            for byte in 0..0x80u8 {
                low[usize::from(byte)] = Some(char::from(byte));
            }
        }
        for (code, character) in &self.found {
            if let Ok(byte) = u8::try_from(*code) {
                low[usize::from(byte)] = Some(*character);
            }
        }
        let has_ascii = (0..0x80u8).all(|byte| low[usize::from(byte)] == Some(char::from(byte)));
        Ok(Table { shape: self.shape, has_ascii, low, characters: self.found })
    }
}

/// A character for each code that a set has.
#[derive(Debug)]
pub struct Table {
    shape: Shape,
    has_ascii: bool,
    /// Characters of one byte.
    low: Box<[Option<char>; 256]>,
    /// All characters in ascending order of codes.
    characters: Vec<(u32, char)>,
}

impl Table {
    /// Whether the first 128 characters are those of ASCII.
    pub fn has_ascii(&self) -> bool {
        self.has_ascii
    }

    /// Appends text as UTF-8.
    pub fn append(&self, bytes: &[u8], out: &mut String) -> Result<(), Undecodable> {
        let mut rest = bytes;
        while let Some(first) = rest.first() {
            let len = self.shape.len(*first);
            let (character, after) = rest.split_at_checked(len).ok_or(Undecodable)?;
            let found = if len == 1 {
                self.low[usize::from(*first)]
            } else {
                let code = character.iter().fold(0u32, |code, byte| code << 8 | u32::from(*byte));
                let found = self.characters.binary_search_by_key(&code, |(code, _)| *code);
                found.ok().map(|index| self.characters[index].1)
            };
            out.push(found.ok_or(Undecodable)?);
            rest = after;
        }
        Ok(())
    }
}
