//! Owns the commands that begin a binlog dump, and [`EventStream`], the events that come back.

use super::{Connection, PacketStream, WireError, query::server_error};

const COM_BINLOG_DUMP: u8 = 0x12;
const COM_REGISTER_SLAVE: u8 = 0x15;
const COM_BINLOG_DUMP_GTID: u8 = 0x1e;
/// The GTID set in the command says what not to send.
const THROUGH_GTID: u16 = 0x04;

/// From where a dump begins.
#[derive(Debug, Clone)]
pub enum DumpRequest {
    /// From an offset in a file. An empty file name is the oldest file for MySQL; for MariaDB it means that
    /// `@slave_connect_state` says where.
    File {
        /// Name of the file.
        file: String,
        /// Offset; the command has only 32 bits for it.
        offset: u32,
    },
    /// After the transactions of a set of MySQL, in its encoded form.
    Gtid(Vec<u8>),
}

impl Connection {
    /// Shows up among the server's replicas. Servers need it for nothing else.
    ///
    /// # Errors
    /// When the account may not replicate, or the connection breaks.
    pub fn register_replica(&mut self, server_id: u32) -> Result<(), WireError> {
        let mut command = vec![COM_REGISTER_SLAVE];
        command.extend_from_slice(&server_id.to_le_bytes());
        // Host, user, password (empty), port, rank and the source's id: the server fills in what it knows.
        command.extend_from_slice(&[0, 0, 0, 0, 0]);
        command.extend_from_slice(&[0; 8]);
        self.stream.reset_sequence();
        self.stream.send(&command)?;
        let answer = self.stream.receive()?;
        match answer.first() {
            Some(0x00) => Ok(()),
            Some(0xff) => Err(server_error(answer)),
            _ => Err(WireError::Protocol("the server answers a registration in an unknown way".to_owned())),
        }
    }

    /// Begins a dump. From now on the connection carries nothing but events.
    ///
    /// # Errors
    /// When the connection breaks. What the server has against the request comes with the first event.
    pub fn start_dump(mut self, server_id: u32, request: &DumpRequest) -> Result<EventStream, WireError> {
        let mut command = Vec::new();
        match request {
            DumpRequest::File { file, offset } => {
                command.push(COM_BINLOG_DUMP);
                command.extend_from_slice(&offset.to_le_bytes());
                command.extend_from_slice(&[0, 0]);
                command.extend_from_slice(&server_id.to_le_bytes());
                command.extend_from_slice(file.as_bytes());
            }
            DumpRequest::Gtid(set) => {
                let len = u32::try_from(set.len())
                    .map_err(|_| WireError::Protocol("the gtid set is too long".to_owned()))?;
                command.push(COM_BINLOG_DUMP_GTID);
                command.extend_from_slice(&THROUGH_GTID.to_le_bytes());
                command.extend_from_slice(&server_id.to_le_bytes());
                command.extend_from_slice(&0u32.to_le_bytes());
                command.extend_from_slice(&4u64.to_le_bytes());
                command.extend_from_slice(&len.to_le_bytes());
                command.extend_from_slice(set);
            }
        }
        self.stream.reset_sequence();
        self.stream.send(&command)?;
        Ok(EventStream { stream: self.stream })
    }
}

/// The events of a dump.
pub struct EventStream {
    stream: PacketStream,
}

impl EventStream {
    /// The next event with header and checksum, waiting for it.
    ///
    /// # Errors
    /// When the connection breaks or the server ends the dump.
    #[expect(
        clippy::should_implement_trait,
        reason = "an event borrows the read buffer, which no iterator can lend"
    )]
    pub fn next(&mut self) -> Result<&[u8], WireError> {
        let packet = self.stream.receive()?;
        match packet.split_first() {
            Some((0x00, event)) => Ok(event),
            Some((0xff, _)) => Err(server_error(packet)),
            Some((0xfe, _)) => Err(WireError::Io(std::io::Error::new(
                std::io::ErrorKind::UnexpectedEof,
                "the server ended the dump",
            ))),
            _ => Err(WireError::Protocol("a packet of the dump is no event".to_owned())),
        }
    }

    /// Whether [`EventStream::next`] would not wait.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn has_buffered(&mut self) -> Result<bool, WireError> {
        self.stream.has_buffered()
    }
}
