//! Owns the schemas seen in messages, found again by their bytes so that each is parsed once.

use std::collections::HashMap;

use super::connect_schema::Field;

/// Bytes of schemas that are kept; beyond it all are forgotten.
const MOST_BYTES: usize = 64 << 20;

/// A schema by its bytes.
#[derive(Debug)]
pub(super) struct Known {
    raw: Vec<u8>,
    /// Stands for it in plans; never used again.
    pub number: u64,
    /// Fields of a row.
    pub row: Vec<Field>,
}

/// Where the fields of a row are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    Enveloped,
    Unwrapped,
}

#[derive(Debug)]
pub(super) struct Schemas {
    layout: Layout,
    by_raw: HashMap<Vec<u8>, usize>,
    known: Vec<Known>,
    bytes: usize,
    last: usize,
    next: u64,
}

impl Schemas {
    pub(super) fn new(layout: Layout) -> Self {
        Self { layout, by_raw: HashMap::new(), known: Vec::new(), bytes: 0, last: 0, next: 0 }
    }

    /// Bytes of the schema of the last message that had one.
    pub(super) fn last_raw(&self) -> &[u8] {
        self.known.get(self.last).map_or(&[], |k| k.raw.as_slice())
    }

    /// # Errors
    /// When the bytes are no schema of a row.
    pub(super) fn get(&mut self, raw: &[u8]) -> Result<&Known, String> {
        if self.last_raw() != raw {
            self.last = match self.by_raw.get(raw) {
                Some(index) => *index,
                None => self.add(raw)?,
            };
        }
        Ok(&self.known[self.last])
    }

    fn add(&mut self, raw: &[u8]) -> Result<usize, String> {
        let schema = Field::parse(raw)?;
        let row = match self.layout {
            Layout::Unwrapped => schema.fields,
            Layout::Enveloped => {
                let side = schema.child("after").or_else(|| schema.child("before"));
                side.ok_or("the schema in the message has neither `after` nor `before`")?.fields.clone()
            }
        };
        if self.bytes + raw.len() > MOST_BYTES {
            self.by_raw.clear();
            self.known.clear();
            self.bytes = 0;
        }
        self.bytes += 2 * raw.len();
        self.next += 1;
        self.known.push(Known { raw: raw.to_vec(), number: self.next, row });
        self.by_raw.insert(raw.to_vec(), self.known.len() - 1);
        Ok(self.known.len() - 1)
    }
}
