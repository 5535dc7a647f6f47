//! Owns what table maps and row events do.

use canalis_types::Code;

use super::Follower;
use crate::{
    binlog::{
        compressed,
        cursor::Cursor,
        event::{EventHeader, Format, event_type as t},
        reader::{
            failure::{Failure, Session, refused},
            pending::Pending,
            server,
            tables::Target,
            transaction::Transaction,
        },
        rows::{self, RowsHead, RowsKind, RowsVersion},
    },
    wire::WireError,
};

/// Table number of row events that only end a statement.
const NO_TABLE: u64 = 0xff_ffff;

/// How a row event is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowsForm {
    kind: RowsKind,
    version: RowsVersion,
    compressed: bool,
    /// Updates may hold changes of JSON documents instead of documents.
    partial_json: bool,
}

/// The form of an event type, if it is one of rows.
pub fn form(event_type: u8) -> Option<RowsForm> {
    use RowsKind::{Delete, Insert, Update};
    use RowsVersion::{V1, V2};
    let (kind, version, compressed) = match event_type {
        t::WRITE_ROWS_V1 => (Insert, V1, false),
        t::UPDATE_ROWS_V1 => (Update, V1, false),
        t::DELETE_ROWS_V1 => (Delete, V1, false),
        t::WRITE_ROWS_V2 => (Insert, V2, false),
        t::UPDATE_ROWS_V2 | t::PARTIAL_UPDATE_ROWS => (Update, V2, false),
        t::DELETE_ROWS_V2 => (Delete, V2, false),
        t::MARIADB_WRITE_ROWS_COMPRESSED_V1 => (Insert, V1, true),
        t::MARIADB_UPDATE_ROWS_COMPRESSED_V1 => (Update, V1, true),
        t::MARIADB_DELETE_ROWS_COMPRESSED_V1 => (Delete, V1, true),
        t::MARIADB_WRITE_ROWS_COMPRESSED => (Insert, V2, true),
        t::MARIADB_UPDATE_ROWS_COMPRESSED => (Update, V2, true),
        t::MARIADB_DELETE_ROWS_COMPRESSED => (Delete, V2, true),
        _ => return None,
    };
    Some(RowsForm { kind, version, compressed, partial_json: event_type == t::PARTIAL_UPDATE_ROWS })
}

impl Follower {
    pub(super) fn table_map(&mut self, body: &[u8], format: Format) -> Session<()> {
        if self.transaction.as_ref().is_some_and(|transaction| transaction.discard) {
            // The structure that a table had so long ago may not be known, and is of no use.
            return Ok(());
        }
        if self.tables.is_noted(body, format.table_id_len) {
            return Ok(());
        }
        let place = self.place_text();
        let config = &self.config;
        let charsets = &mut self.charsets;
        let mut lost: Option<WireError> = None;
        let mut load = |name: &str| {
            charsets.get(name, &mut |sql| match server::connect(config) {
                Ok(mut connection) => match connection.query(sql) {
                    Ok(rows) => Ok(rows.into_iter().next().unwrap_or_default()),
                    Err(error) => Err(keep_lost(refused(error, "asking for a character set"), &mut lost)),
                },
                Err(failure) => Err(keep_lost(failure, &mut lost)),
            })
        };
        let announced = self.tables.announce(body, format.table_id_len, &*self.tracker, &mut load, &place);
        match (announced, lost) {
            (Ok(()), _) => Ok(()),
            (Err(_), Some(lost)) => Err(Failure::Lost(lost)),
            (Err(error), None) => Err(Failure::Fatal(error)),
        }
    }

    pub(super) fn rows(
        &mut self,
        header: &EventHeader,
        body: &[u8],
        format: Format,
        form: RowsForm,
        begin: u64,
    ) -> Session<()> {
        let head = self.located(rows::parse_head(form.kind, form.version, body, format.table_id_len))?;
        if head.table_id == NO_TABLE && head.rows.is_empty() {
            return Ok(());
        }
        if self.transaction.is_none() {
            self.transaction = Some(Transaction::new(begin, i64::from(header.timestamp) * 1000));
        }
        let Some(transaction) = &mut self.transaction else { return Ok(()) };
        if transaction.skip > 0 {
            transaction.skip -= 1;
            transaction.consumed += 1;
            return Ok(());
        }
        if !transaction.discard {
            let Some(target) = self.tables.find(head.table_id) else {
                return self.fail(Code::SourceUndecodable, "row event names a table that was not announced");
            };
            if let Target::Slot(slot) = target {
                self.deliver_rows(&head, form, slot)?;
            }
        }
        let Some(transaction) = &mut self.transaction else { return Ok(()) };
        transaction.consumed += 1;
        if self.pending.is_hard_due() {
            if self.transaction.as_ref().is_some_and(|transaction| transaction.xa) {
                return self.fail(
                    Code::SourceEventUnknown,
                    "an XA transaction has more rows than can be held until its commit",
                );
            }
            self.watermark()?;
        }
        self.cut()
    }

    fn deliver_rows(&mut self, head: &RowsHead<'_>, form: RowsForm, slot: usize) -> Session<()> {
        let table = self.tables.slot(slot).decoder.schema().id.clone();
        let columns = self.tables.slot(slot).decoder.schema().columns.len();
        if form.partial_json {
            return self.fail(
                Code::SourceMisconfigured,
                format!(
                    "rows of {table} hold changes of JSON documents instead of documents; set \
                     binlog_row_value_options='' in every session,"
                ),
            );
        }
        if !head.full_images {
            return self.fail(
                Code::SourceMisconfigured,
                format!("rows of {table} are without some of their columns; set binlog_row_image=FULL in every session,"),
            );
        }
        if head.columns != columns {
            return self.fail(
                Code::SourceEventUnknown,
                format!("rows of {table} have {} columns instead of {columns}", head.columns),
            );
        }
        let mut expanded = std::mem::take(&mut self.expanded);
        let bytes = if form.compressed {
            let done = compressed::event_part(head.rows, &mut expanded);
            self.located(done)?;
            expanded.as_slice()
        } else {
            head.rows
        };
        let time_ms = self.transaction.as_mut().map(|transaction| {
            transaction.has_rows = true;
            transaction.time_ms
        });
        let xa = self.transaction.as_ref().is_some_and(|transaction| transaction.xa);
        let mut cursor = Cursor::new(bytes);
        while !cursor.is_empty() {
            let slot = self.tables.slot(slot);
            let (rows, size) = (slot.builder.len(), slot.builder.bytes());
            let decoded = slot.decoder.decode_row(form.kind, &mut cursor, &mut slot.builder);
            if let Err(error) = decoded {
                return self.located(Err(error));
            }
            self.pending.note(slot.builder.len() - rows, slot.builder.bytes() - size);
            if Pending::is_batch(slot) && !xa {
                slot.builder.note_event_time(time_ms.unwrap_or_default());
                self.pending.deliver(slot)?;
            }
        }
        let slot = self.tables.slot(slot);
        if !slot.builder.is_empty() {
            slot.builder.note_event_time(time_ms.unwrap_or_default());
        }
        self.expanded = expanded;
        Ok(())
    }
}

/// Keeps an error of the connection aside, which must not become a final one.
fn keep_lost(failure: Failure, lost: &mut Option<WireError>) -> canalis_types::Error {
    match failure {
        Failure::Fatal(error) => error,
        Failure::Lost(error) => {
            *lost = Some(error);
            canalis_types::Error::internal("the connection for a character set is lost")
        }
        Failure::Closed => canalis_types::Error::internal("the reader is closed"),
    }
}
