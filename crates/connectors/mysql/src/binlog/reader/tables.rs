//! Owns the tables that the log has announced: which are passed over, and decoder and batch of the others.

use std::collections::HashMap;

use canalis_batch::BatchBuilder;
use canalis_types::{Code, Error, Result, TableId};

use super::SchemaTracker;
use crate::{
    binlog::{
        rows::TableDecoder,
        table_map::{self, TableMap},
    },
    charset::Charset,
};

/// Rows that a batch has room for at first; it grows with its table's traffic.
const FIRST_ROOM: usize = 64;
/// Announcements kept; numbers change with every reopening of a table.
const MAX_MAPS: usize = 4096;

/// Where rows of a table number go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Nowhere.
    Skip,
    /// To this slot.
    Slot(usize),
}

struct Announced {
    /// The whole body of the TABLE_MAP, which comes again before every statement.
    body: Vec<u8>,
    target: Target,
}

/// Decoder and pending rows of one table.
pub struct Slot {
    /// Decodes its rows.
    pub decoder: TableDecoder,
    /// Rows that wait for more.
    pub builder: BatchBuilder,
}

/// All announced tables.
#[derive(Default)]
pub struct Tables {
    announced: HashMap<u64, Announced>,
    by_name: HashMap<TableId, usize>,
    slots: Vec<Slot>,
}

impl Tables {
    /// Whether this very TABLE_MAP was noted before; it comes again with every statement.
    pub fn is_noted(&self, body: &[u8], id_len: usize) -> bool {
        table_map::table_id(body, id_len)
            .is_ok_and(|id| self.announced.get(&id).is_some_and(|announced| announced.body == body))
    }

    /// Takes note of a TABLE_MAP. `place` is for messages.
    ///
    /// # Errors
    /// When a captured table has no known structure, or another one than the log says; and those of `charsets`.
    pub fn announce(
        &mut self,
        body: &[u8],
        id_len: usize,
        tracker: &dyn SchemaTracker,
        charsets: &mut dyn FnMut(&str) -> Result<Charset>,
        place: &str,
    ) -> Result<()> {
        let id = table_map::table_id(body, id_len).map_err(|e| e.into_error(place))?;
        let map = table_map::parse(body, id_len);
        let target = match map {
            Ok(map) => self.target(&map, tracker, charsets).map_err(|e| e.context(place))?,
            // A type that nobody knows matters only in a captured table.
            Err(error) => match table_map::parse_name(body, id_len) {
                Ok(table) if !tracker.is_captured(&table) => Target::Skip,
                _ => return Err(error.into_error(place)),
            },
        };
        self.announced.insert(id, Announced { body: body.to_vec(), target });
        Ok(())
    }

    fn target(
        &mut self,
        map: &TableMap<'_>,
        tracker: &dyn SchemaTracker,
        charsets: &mut dyn FnMut(&str) -> Result<Charset>,
    ) -> Result<Target> {
        let table = TableId::new(map.database, map.table);
        if !tracker.is_captured(&table) {
            return Ok(Target::Skip);
        }
        let schema = tracker.schema(&table).ok_or_else(|| {
            Error::new(
                Code::TableNotFound,
                format!("the log has rows of {table}, whose structure is not known"),
            )
        })?;
        if let Some(slot) = self.by_name.get(&table)
            && self.slots[*slot].decoder.fits(&schema, map)
        {
            return Ok(Target::Slot(*slot));
        }
        let decoder = TableDecoder::new(schema.clone(), map, charsets)?;
        let slot = self.slots.len();
        self.slots.push(Slot { decoder, builder: BatchBuilder::new(schema, FIRST_ROOM) });
        self.by_name.insert(table, slot);
        Ok(Target::Slot(slot))
    }

    /// Where rows of a table number go; `None` when it was not announced.
    pub fn find(&self, id: u64) -> Option<Target> {
        self.announced.get(&id).map(|announced| announced.target)
    }

    /// A slot.
    pub fn slot(&mut self, index: usize) -> &mut Slot {
        &mut self.slots[index]
    }

    /// All slots in the order in which they were made.
    pub fn slots(&mut self) -> &mut [Slot] {
        &mut self.slots
    }

    /// Forgets old announcements when there are many. Only between transactions: the rows of a statement come
    /// behind all its announcements.
    pub fn trim(&mut self) {
        if self.announced.len() > MAX_MAPS {
            self.announced.clear();
        }
    }

    /// Forgets all announcements, keeping decoders and pending rows: numbers belong to one session.
    pub fn forget_announcements(&mut self) {
        self.announced.clear();
    }

    /// Forgets everything: after a change of structure, when no rows are pending.
    pub fn clear(&mut self) {
        self.announced.clear();
        self.by_name.clear();
        self.slots.clear();
    }
}
