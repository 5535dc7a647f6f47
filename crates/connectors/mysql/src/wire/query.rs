//! Owns queries with small results.

mod rows;

pub use rows::RowPackets;

use super::{Connection, PacketStream, WireError};
use crate::binlog::cursor::{Cursor, DecodeError};

const COM_QUERY: u8 = 0x03;

/// Turns an error packet into an error.
pub fn server_error(packet: &[u8]) -> WireError {
    let mut cursor = Cursor::new(packet);
    let _ = cursor.skip(1);
    let code = cursor.u16().unwrap_or(0);
    let rest = cursor.rest();
    // A marker and five characters of state stand before the text, once the login is under way.
    let text = if rest.first() == Some(&b'#') { rest.get(6..).unwrap_or_default() } else { rest };
    WireError::Server { code, message: String::from_utf8_lossy(text).into_owned() }
}

fn malformed(error: DecodeError) -> WireError {
    WireError::Protocol(format!("result of a query: {error}"))
}

fn is_eof(packet: &[u8]) -> bool {
    packet.first() == Some(&0xfe) && packet.len() < 9
}

impl Connection {
    /// Runs a statement and gives its rows as text, `None` for NULL.
    ///
    /// # Errors
    /// Those of the server and of the connection.
    pub fn query(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, WireError> {
        let stream = &mut self.stream;
        stream.reset_sequence();
        let mut command = vec![COM_QUERY];
        command.extend_from_slice(sql.as_bytes());
        stream.send(&command)?;
        let head = stream.receive()?;
        match head.first() {
            Some(0x00) => return Ok(Vec::new()),
            Some(0xff) => return Err(server_error(head)),
            Some(0xfb) => return Err(WireError::Protocol("the server asks for a file".to_owned())),
            _ => {}
        }
        let columns = Cursor::new(head).lenenc_len().map_err(malformed)?;
        skip_definitions(stream, columns)?;
        let mut rows = Vec::new();
        loop {
            let packet = stream.receive()?;
            if is_eof(packet) {
                return Ok(rows);
            }
            if packet.first() == Some(&0xff) {
                return Err(server_error(packet));
            }
            let mut cursor = Cursor::new(packet);
            let mut row = Vec::with_capacity(columns.min(packet.len()));
            for _ in 0..columns {
                row.push(field(&mut cursor).map_err(malformed)?);
            }
            rows.push(row);
        }
    }

    /// Runs a statement and gives the first field of its first row.
    ///
    /// # Errors
    /// Those of the server and of the connection.
    pub fn query_one(&mut self, sql: &str) -> Result<Option<String>, WireError> {
        Ok(self.query(sql)?.into_iter().next().and_then(|row| row.into_iter().next()).flatten())
    }
}

fn skip_definitions(stream: &mut PacketStream, columns: usize) -> Result<(), WireError> {
    for _ in 0..columns {
        stream.receive()?;
    }
    if is_eof(stream.receive()?) {
        return Ok(());
    }
    Err(WireError::Protocol("result of a query has more columns than it says".to_owned()))
}

fn field(cursor: &mut Cursor<'_>) -> Result<Option<String>, DecodeError> {
    if cursor.rest().first() == Some(&0xfb) {
        cursor.skip(1)?;
        return Ok(None);
    }
    Ok(Some(String::from_utf8_lossy(cursor.lenenc_bytes()?).into_owned()))
}
