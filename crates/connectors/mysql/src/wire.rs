//! Owns a small blocking client of the MySQL protocol for reading the binlog on a thread of its own: login, simple
//! queries, the dump commands, and packets straight out of one read buffer.

mod dump;
mod login;
mod packet;
mod query;
mod tls;

pub use dump::{DumpRequest, EventStream};
pub use packet::PacketStream;
pub use query::RowPackets;

use std::{
    fmt, io,
    net::{TcpStream, ToSocketAddrs},
    time::{Duration, Instant},
};

use canalis_types::{Code, Error};

use crate::{Endpoint, TlsMode, tls::io_refusal};

/// What may go wrong on a connection.
#[derive(Debug)]
pub enum WireError {
    /// The connection could not be made, broke, or was silent for too long.
    Io(io::Error),
    /// The server answered with an error.
    Server {
        /// The server's error number.
        code: u16,
        /// The server's text.
        message: String,
    },
    /// Encryption failed for good: the server has none, its certificate is refused, or a file of ours cannot be used.
    Tls(String),
    /// The server sent something that the protocol does not allow, or wants something that this client cannot do.
    Protocol(String),
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Server { code, message } => write!(f, "error {code}: {message}"),
            Self::Tls(why) => write!(f, "encryption (`ssl.mode`): {why}"),
            Self::Protocol(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for WireError {}

impl From<io::Error> for WireError {
    fn from(error: io::Error) -> Self {
        io_refusal(&error).map_or(Self::Io(error), Self::Tls)
    }
}

impl WireError {
    /// Whether connecting again may help: the connection broke, or the server is going down, full, or ended the
    /// session.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Io(_) => true,
            Self::Server { code, .. } => {
                matches!(
                    *code,
                    1040 | 1042 | 1043 | 1053 | 1077 | 1079 | 1129 | 1152
                        ..=1161 | 1184 | 1203 | 1317 | 1927 | 2006 | 2013 | 3169 | 4031
                )
            }
            Self::Tls(_) | Self::Protocol(_) => false,
        }
    }

    /// The user-visible error; `doing` says what was being done.
    pub fn into_error(self, doing: impl Into<String>) -> Error {
        let code = match &self {
            _ if self.is_transient() => Code::SourceUnreachable,
            Self::Server { code: 1044 | 1045 | 1142 | 1143 | 1227 | 1698 | 3118, .. } => {
                Code::SourceAccessDenied
            }
            Self::Server { .. } | Self::Tls(_) => Code::SourceMisconfigured,
            _ => Code::SourceUndecodable,
        };
        Error::new(code, doing).with_source(self)
    }
}

/// A session.
pub struct Connection {
    stream: PacketStream,
    version: String,
}

impl Connection {
    /// Connects and logs in, encrypted as the endpoint says. Every later read waits at most `read_timeout`.
    ///
    /// # Errors
    /// When the server cannot be reached within the endpoint's time limit, refuses the account, wants a way to
    /// log in that is not known, or encryption fails.
    pub fn connect(endpoint: &Endpoint, read_timeout: Duration) -> Result<Self, WireError> {
        match Self::connect_with(endpoint, endpoint.tls.mode, read_timeout) {
            Err(WireError::Tls(why)) if endpoint.tls.mode == TlsMode::Preferred => {
                tracing::debug!(server = %endpoint.address(), why, "connecting without encryption");
                Self::connect_with(endpoint, TlsMode::Disabled, read_timeout)
            }
            answer => answer,
        }
    }

    fn connect_with(endpoint: &Endpoint, tls: TlsMode, read_timeout: Duration) -> Result<Self, WireError> {
        let socket = open_socket(endpoint)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(endpoint.connect_timeout))?;
        socket.set_write_timeout(Some(endpoint.connect_timeout))?;
        let mut stream = PacketStream::new(socket);
        let version = login::login(&mut stream, endpoint, tls)?;
        stream.socket().set_read_timeout(Some(read_timeout))?;
        Ok(Self { stream, version })
    }

    /// What the server calls its version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// A second handle of the socket, to shut it down from another thread.
    ///
    /// # Errors
    /// When the system has no handle left.
    pub fn socket(&self) -> Result<TcpStream, WireError> {
        Ok(self.stream.socket().try_clone()?)
    }
}

fn open_socket(endpoint: &Endpoint) -> Result<TcpStream, WireError> {
    let deadline = Instant::now() + endpoint.connect_timeout;
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host name has no address");
    for address in (endpoint.hostname.as_str(), endpoint.port).to_socket_addrs()? {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last.into())
}
