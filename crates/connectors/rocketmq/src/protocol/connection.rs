//! Owns connections: one that asks and waits, and one whose answers come by a channel.

use std::{
    io::{self, BufRead, BufReader, Write},
    net::{Shutdown, TcpStream, ToSocketAddrs},
    sync::mpsc::Sender,
    time::Duration,
};

use super::frame::{self, Account, Answer, Fields};

/// How long making a connection may take.
const CONNECT: Duration = Duration::from_secs(5);
/// How long one question may take.
const ANSWER: Duration = Duration::from_secs(20);
/// How long the rest of a frame may take once it has begun.
const SILENCE: Duration = Duration::from_secs(40);
/// How much is read at once.
const BUFFER: usize = 128 << 10;

fn connect(address: &str, silence: Duration) -> io::Result<TcpStream> {
    let mut failed = io::Error::new(io::ErrorKind::NotFound, format!("`{address}` is no address"));
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(silence))?;
                stream.set_write_timeout(Some(ANSWER))?;
                return Ok(stream);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// A connection for one question after another.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    opaque: i32,
}

impl Connection {
    pub(crate) fn open(address: &str) -> io::Result<Self> {
        Ok(Self { stream: BufReader::new(connect(address, ANSWER)?), opaque: 0 })
    }

    /// Asks, and waits for the answer. After an error the connection is of no use.
    pub(crate) fn call(
        &mut self,
        code: u16,
        fields: &Fields,
        body: &[u8],
        account: Option<&Account>,
    ) -> io::Result<Answer> {
        self.opaque = self.opaque.wrapping_add(1);
        let request = frame::request(code, self.opaque, fields.clone(), body, account);
        self.stream.get_mut().write_all(&request)?;
        loop {
            let answer = frame::read(&mut self.stream)?;
            if answer.is_answer && answer.opaque == self.opaque {
                return Ok(answer);
            }
        }
    }
}

/// What came over one of many connections.
#[derive(Debug)]
pub(crate) struct Arrival {
    /// Number that the connection was opened with.
    pub link: usize,
    /// The answer, or why there will be no more.
    pub answer: io::Result<Answer>,
}

/// A connection that is written by its owner while a thread of its own reads it. Closed when dropped, and the thread ends.
#[derive(Debug)]
pub(crate) struct Link {
    stream: TcpStream,
}

impl Link {
    /// Opens it; answers go to `arrivals` under this number.
    pub(crate) fn open(address: &str, link: usize, arrivals: Sender<Arrival>) -> io::Result<Self> {
        let stream = connect(address, SILENCE)?;
        let mut reader = BufReader::with_capacity(BUFFER, stream.try_clone()?);
        std::thread::Builder::new().name("rocketmq".to_owned()).spawn(move || {
            loop {
                // Between two frames anything may take its time; whoever asked knows how long an answer may take.
                match reader.fill_buf() {
                    Err(error) if is_silence(&error) => continue,
                    _ => {}
                }
                let answer = frame::read(&mut reader);
                let ended = answer.is_err();
                if arrivals.send(Arrival { link, answer }).is_err() || ended {
                    return;
                }
            }
        })?;
        Ok(Self { stream })
    }

    /// Sends a request; its answer comes to the channel.
    pub(crate) fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.stream.write_all(request)
    }
}

fn is_silence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

impl Drop for Link {
    fn drop(&mut self) {
        // A connection that is already gone needs no closing.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}
