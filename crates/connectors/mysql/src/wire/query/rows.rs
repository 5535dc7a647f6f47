//! Owns queries with large results: rows as packets straight out of the read buffer.

use super::{COM_QUERY, is_eof, malformed, server_error, skip_definitions};
use crate::{
    binlog::cursor::Cursor,
    wire::{Connection, PacketStream, WireError},
};

/// The rows of a running query. They have to be read to their end before the session takes another command.
pub struct RowPackets<'a> {
    stream: &'a mut PacketStream,
    ended: bool,
}

impl Connection {
    /// Sends a statement without waiting for its answer, which [`Connection::rows`] takes.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn send_query(&mut self, sql: &str) -> Result<(), WireError> {
        self.stream.reset_sequence();
        let mut command = vec![COM_QUERY];
        command.extend_from_slice(sql.as_bytes());
        self.stream.send(&command)
    }

    /// The answer to a statement that was sent. A statement without a result has no rows.
    ///
    /// # Errors
    /// Those of the server and of the connection.
    pub fn rows(&mut self) -> Result<RowPackets<'_>, WireError> {
        let stream = &mut self.stream;
        let head = stream.receive()?;
        let columns = match head.first() {
            Some(0x00) => return Ok(RowPackets { stream, ended: true }),
            Some(0xff) => return Err(server_error(head)),
            Some(0xfb) => return Err(WireError::Protocol("the server asks for a file".to_owned())),
            _ => Cursor::new(head).lenenc_len().map_err(malformed)?,
        };
        skip_definitions(stream, columns)?;
        Ok(RowPackets { stream, ended: false })
    }
}

impl RowPackets<'_> {
    /// The next row: for each column 0xFB for NULL, or bytes behind a length-encoded length. `None` at the end.
    ///
    /// # Errors
    /// Those of the server and of the connection.
    #[inline]
    pub fn next_row(&mut self) -> Result<Option<&[u8]>, WireError> {
        if self.ended {
            return Ok(None);
        }
        let packet = self.stream.receive()?;
        if is_eof(packet) {
            self.ended = true;
            return Ok(None);
        }
        if packet.first() == Some(&0xff) {
            return Err(server_error(packet));
        }
        Ok(Some(packet))
    }
}
