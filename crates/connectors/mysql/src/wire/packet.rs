//! Owns [`PacketStream`]: packets in and out of a socket, without an allocation per packet.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
};

use super::{WireError, tls::TlsStream};

/// Size of the read buffer.
const BUFFER: usize = 1 << 20;
/// Length of a packet that is continued by the next one.
const FULL: usize = 0xff_ffff;
/// More than any server sends: its greatest packet is 1 GiB.
const MAX_LEN: usize = (1 << 30) + (1 << 26);
/// A buffer for great packets beyond this is given back.
const KEEP: usize = 4 << 20;
/// Bytes of a packet's header.
const HEADER: usize = 4;

enum Io {
    Plain(TcpStream),
    Tls(Box<TlsStream>),
}

impl Io {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(into),
            Self::Tls(stream) => stream.read(into),
        }
    }

    fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => stream.get_ref(),
        }
    }
}

/// Where a packet lies.
enum Place {
    Buffer(usize, usize),
    Large,
}

/// A socket seen as packets.
pub struct PacketStream {
    io: Io,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// A packet that does not fit the buffer, or was sent in several.
    large: Vec<u8>,
    sequence: u8,
}

impl PacketStream {
    /// Packets over a socket.
    pub fn new(socket: TcpStream) -> Self {
        Self {
            io: Io::Plain(socket),
            buffer: vec![0; BUFFER].into_boxed_slice(),
            start: 0,
            end: 0,
            large: Vec::new(),
            sequence: 0,
        }
    }

    /// The socket underneath.
    pub fn socket(&self) -> &TcpStream {
        self.io.socket()
    }

    /// Whether the connection is encrypted.
    pub fn is_tls(&self) -> bool {
        matches!(self.io, Io::Tls(_))
    }

    /// Goes on encrypted.
    pub(super) fn upgrade(
        self,
        wrap: impl FnOnce(TcpStream) -> Result<TlsStream, WireError>,
    ) -> Result<Self, WireError> {
        match self.io {
            Io::Plain(socket) => Ok(Self { io: Io::Tls(Box::new(wrap(socket)?)), ..self }),
            Io::Tls(_) => Ok(self),
        }
    }

    /// Begins a new exchange of packets.
    pub fn reset_sequence(&mut self) {
        self.sequence = 0;
    }

    /// Sends one packet, which must be shorter than 16 MiB.
    pub fn send(&mut self, payload: &[u8]) -> Result<(), WireError> {
        let len = u32::try_from(payload.len()).ok().filter(|_| payload.len() < FULL);
        let Some(len) = len else {
            return Err(WireError::Protocol("a command is longer than one packet".to_owned()));
        };
        let mut packet = Vec::with_capacity(HEADER + payload.len());
        packet.extend_from_slice(&len.to_le_bytes()[..3]);
        packet.push(self.sequence);
        packet.extend_from_slice(payload);
        self.sequence = self.sequence.wrapping_add(1);
        match &mut self.io {
            Io::Plain(socket) => socket.write_all(&packet)?,
            Io::Tls(stream) => {
                stream.write_all(&packet)?;
                stream.flush()?;
            }
        }
        Ok(())
    }

    /// The next packet's payload, waiting for it.
    ///
    /// # Errors
    /// When the connection breaks, ends, or is silent for longer than the socket's time limit.
    pub fn receive(&mut self) -> Result<&[u8], WireError> {
        if self.large.capacity() > KEEP {
            self.large = Vec::new();
        }
        match self.locate()? {
            Place::Buffer(from, to) => Ok(&self.buffer[from..to]),
            Place::Large => Ok(&self.large),
        }
    }

    /// Whether the next [`PacketStream::receive`] will not wait for the network (or is in the middle of a packet
    /// greater than the buffer). Reads what the socket holds, without waiting.
    ///
    /// # Errors
    /// When the connection breaks or ends.
    pub fn has_buffered(&mut self) -> Result<bool, WireError> {
        if self.whole_packet() {
            return Ok(true);
        }
        self.socket().set_nonblocking(true)?;
        let read = self.fill();
        self.socket().set_nonblocking(false)?;
        match read {
            Ok(()) => Ok(self.whole_packet()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Length of the packet whose header is at the front of the buffer.
    fn next_len(&self) -> Option<usize> {
        let header = self.buffer[self.start..self.end].first_chunk::<HEADER>()?;
        let [a, b, c, _] = *header;
        usize::try_from(u32::from_le_bytes([a, b, c, 0])).ok()
    }

    fn whole_packet(&self) -> bool {
        self.next_len().is_some_and(|len| len + HEADER > BUFFER || self.end - self.start >= len + HEADER)
    }

    fn locate(&mut self) -> Result<Place, WireError> {
        loop {
            match self.next_len() {
                Some(len) if len == FULL || len + HEADER > BUFFER => {
                    self.receive_large()?;
                    return Ok(Place::Large);
                }
                Some(len) if self.end - self.start >= len + HEADER => {
                    self.sequence = self.buffer[self.start + 3].wrapping_add(1);
                    let from = self.start + HEADER;
                    self.start = from + len;
                    return Ok(Place::Buffer(from, from + len));
                }
                _ => self.fill()?,
            }
        }
    }

    /// Joins a packet that does not fit the buffer with those that continue it.
    fn receive_large(&mut self) -> Result<(), WireError> {
        self.large.clear();
        loop {
            let Some(len) = self.next_len() else {
                self.fill()?;
                continue;
            };
            if self.large.len() + len > MAX_LEN {
                return Err(WireError::Protocol("a packet is longer than any server sends".to_owned()));
            }
            self.sequence = self.buffer[self.start + 3].wrapping_add(1);
            self.start += HEADER;
            let buffered = len.min(self.end - self.start);
            self.large.extend_from_slice(&self.buffer[self.start..self.start + buffered]);
            self.start += buffered;
            let mut at = self.large.len();
            self.large.resize(at + len - buffered, 0);
            while at < self.large.len() {
                match self.io.read(&mut self.large[at..]) {
                    Ok(0) => return Err(closed().into()),
                    Ok(read) => at += read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error.into()),
                }
            }
            if len < FULL {
                return Ok(());
            }
        }
    }

    /// Reads once into the buffer's free end.
    fn fill(&mut self) -> io::Result<()> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == BUFFER {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        loop {
            match self.io.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Err(closed()),
                Ok(read) => {
                    self.end += read;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use super::*;

    fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = u32::try_from(payload.len()).unwrap().to_le_bytes()[..3].to_vec();
        packet.push(sequence);
        packet.extend_from_slice(payload);
        packet
    }

    #[test]
    fn my_21_packets_of_every_size_arrive_whole() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let sizes = [0, 1, 700_000, 700_000, BUFFER - HEADER, BUFFER, FULL - 1, FULL, FULL + 5, 20 << 20, 3];
        let sender = thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            for size in sizes {
                let payload: Vec<u8> = (0..size).map(|i| u8::try_from(i % 253).unwrap()).collect();
                let mut chunks: Vec<&[u8]> = payload.chunks(FULL).collect();
                if size % FULL == 0 {
                    chunks.push(&[]);
                }
                for chunk in chunks {
                    socket.write_all(&packet(0, chunk)).unwrap();
                }
            }
            socket
        });
        let mut stream = PacketStream::new(TcpStream::connect(address).unwrap());
        for size in sizes {
            let payload = stream.receive().unwrap();
            assert_eq!(payload.len(), size);
            assert!(payload.iter().enumerate().all(|(i, b)| *b == u8::try_from(i % 253).unwrap()));
        }
        let socket = sender.join().unwrap();
        assert!(!stream.has_buffered().unwrap());
        (&socket).write_all(&packet(0, b"x")).unwrap();
        drop(socket);
        assert_eq!(stream.receive().unwrap(), b"x");
        assert!(stream.receive().is_err());
    }
}
