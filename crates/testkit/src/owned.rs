//! Owns a server of one owner: starting it from a prepared data directory, killing, restarting and removing it.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::guard::{Guard, Order};
use crate::install::{self, copy_tree};
use crate::server::{Server, ServerKind};
use crate::wait::{Attempt, free_port, poll_until};
use crate::{kafka, mysql_family, postgres, pulsar, rocketmq};

/// How long a server may take to accept connections; generous, for small and busy machines.
const READY_DEADLINE: Duration = Duration::from_secs(120);

/// The name of the account that every server gets.
pub(crate) const ACCOUNT: &str = "canalis";
/// Its password; with characters that need care in files and addresses.
pub(crate) const PASSWORD: &str = "canalis-Pass'1";

/// Where one server keeps its things.
pub(crate) struct Place {
    /// The directory as we see it.
    pub directory: PathBuf,
    /// The same directory as the server sees it (another path when it runs in a changed root).
    pub inside: PathBuf,
}

/// A server that belongs to one test; it is killed and its data removed when it is dropped.
pub struct OwnedServer {
    server: Server,
    place: Place,
    extra_args: Vec<String>,
    guard: Option<Guard>,
}

impl OwnedServer {
    /// Starts a fresh server of `kind` and waits until it takes connections; `Err` says why it cannot be had.
    pub fn start(kind: ServerKind, extra_args: &[&str]) -> Result<Self, String> {
        let template = match kind {
            ServerKind::MariaDb => mysql_family::mariadb_template()?,
            ServerKind::MySql => mysql_family::mysql_template()?,
            ServerKind::Postgres => postgres::template()?,
            ServerKind::Kafka => kafka::template()?,
            ServerKind::Pulsar => pulsar::template()?,
            ServerKind::RocketMq => rocketmq::template()?,
        };
        let place = fresh_place(kind)?;
        copy_tree(&template, &place.directory.join("data"))?;
        let mut owned = Self {
            server: Server {
                kind,
                port: 0,
                username: ACCOUNT.to_owned(),
                password: PASSWORD.to_owned(),
                server_id: rand::random_range(1_000..=u32::from(u16::MAX) * 1_000),
                log: place.directory.join("server.log"),
            },
            place,
            extra_args: extra_args.iter().map(|&argument| argument.to_owned()).collect(),
            guard: None,
        };
        // Somebody may take the port between our looking and the server's listening.
        let mut attempts = 3;
        loop {
            owned.server.port = free_port();
            match owned.launch() {
                Ok(()) => return Ok(owned),
                Err(_) if attempts > 1 && owned.server.log_tail().contains("ddress already in use") => {
                    attempts -= 1
                }
                Err(reason) => return Err(reason),
            }
        }
    }

    /// The process id of the running server.
    ///
    /// # Panics
    /// When the server was ended.
    pub fn pid(&self) -> u32 {
        self.guard.as_ref().expect("the server is running").pid()
    }

    /// Kills the server as a crash would; its data stays.
    pub fn kill9(&mut self) {
        self.end(Order::Kill);
    }

    /// Shuts the server down the orderly way; its data stays.
    pub fn stop(&mut self) {
        self.end(Order::Stop);
    }

    /// Starts the server again on the same port and data, after an orderly stop if it still runs.
    ///
    /// # Panics
    /// When it does not come up.
    pub fn restart(&mut self) {
        self.stop();
        if let Err(reason) = self.launch() {
            panic!("restarting {}: {reason}", self.server);
        }
    }

    /// Like [`OwnedServer::restart`], with other additional arguments.
    ///
    /// # Panics
    /// When it does not come up.
    pub fn restart_with(&mut self, extra_args: &[&str]) {
        self.extra_args = extra_args.iter().map(|&argument| argument.to_owned()).collect();
        self.restart();
    }

    fn end(&mut self, order: Order) {
        if let Some(guard) = self.guard.take() {
            guard.end(order);
        }
    }

    fn launch(&mut self) -> Result<(), String> {
        let (argv, final_signal) = match self.server.kind {
            ServerKind::MariaDb => {
                (mysql_family::mariadb_command(&self.place, &self.server, &self.extra_args)?, "KILL")
            }
            ServerKind::MySql => {
                (mysql_family::mysql_command(&self.place, &self.server, &self.extra_args)?, "KILL")
            }
            // Orderly enough to give shared memory back, quick enough not to wait for clients.
            ServerKind::Postgres => (postgres::command(&self.place, &self.server, &self.extra_args)?, "QUIT"),
            ServerKind::Kafka => (kafka::command(&self.place, &self.server, &self.extra_args)?, "KILL"),
            ServerKind::Pulsar => (pulsar::command(&self.place, &self.server, &self.extra_args)?, "KILL"),
            ServerKind::RocketMq => (rocketmq::command(&self.place, &self.server, &self.extra_args)?, "KILL"),
        };
        let server = self.server.clone();
        let spawn = || Guard::spawn(&argv, &self.place.directory, final_signal, &server.log);
        let mut guard = spawn()?;
        let waited = poll_until(READY_DEADLINE, || {
            if !guard.is_running() {
                // The processes of a killed PostgreSQL hold its memory for a moment longer.
                if server.log_tail().contains("pre-existing shared memory block") {
                    return match spawn() {
                        Ok(again) => {
                            std::mem::replace(&mut guard, again).end(Order::Kill);
                            Attempt::NotYet("the former server still holds its memory".to_owned())
                        }
                        Err(reason) => Attempt::Failed(reason),
                    };
                }
                return Attempt::Failed("the server ended at once".to_owned());
            }
            match greet(&server) {
                Ok(()) => Attempt::Done(()),
                Err(reason) => Attempt::NotYet(reason),
            }
        });
        if let Err(reason) = waited {
            guard.end(Order::Kill);
            return Err(format!("{reason}; its log ends:\n{}", server.log_tail()));
        }
        self.guard = Some(guard);
        Ok(())
    }
}

impl Deref for OwnedServer {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl Drop for OwnedServer {
    fn drop(&mut self) {
        self.end(Order::Remove);
        // The guard has removed it, unless the server had been ended before.
        let _ = fs::remove_dir_all(&self.place.directory);
    }
}

/// Makes a directory of a unique name where a server of `kind` may live.
pub(crate) fn fresh_place(kind: ServerKind) -> Result<Place, String> {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let name = format!(
        "canalis-{kind}-{}-{}-{:04x}",
        std::process::id(),
        COUNTER.fetch_add(1, Ordering::Relaxed),
        rand::random::<u16>()
    );
    let place = match kind {
        ServerKind::MySql => Place {
            directory: install::mysql_root()?.join("var/canalis").join(&name),
            inside: PathBuf::from("/var/canalis").join(&name),
        },
        ServerKind::MariaDb
        | ServerKind::Postgres
        | ServerKind::Kafka
        | ServerKind::Pulsar
        | ServerKind::RocketMq => {
            let directory = std::env::temp_dir().join(&name);
            Place { inside: directory.clone(), directory }
        }
    };
    fs::create_dir_all(&place.directory)
        .map_err(|error| format!("creating {}: {error}", place.directory.display()))?;
    Ok(place)
}

/// Exchanges the first bytes of the protocol: only a server that is ready for accounts answers as expected.
fn greet(server: &Server) -> Result<(), String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port));
    let step = Duration::from_secs(2);
    let mut stream = TcpStream::connect_timeout(&address, step)
        .map_err(|error| format!("connecting to {server}: {error}"))?;
    stream.set_read_timeout(Some(step)).map_err(|error| error.to_string())?;
    let expected: fn(&[u8]) -> bool = match server.kind {
        // The server speaks first: packet header, then protocol version 10.
        ServerKind::MariaDb | ServerKind::MySql => |bytes| bytes[4] == 10,
        // The client speaks first; the answer of a ready server is a request for authentication.
        ServerKind::Postgres => {
            stream
                .write_all(&postgres::startup_message(&server.username))
                .map_err(|error| format!("greeting {server}: {error}"))?;
            |bytes| bytes[0] == b'R'
        }
        // The client speaks first; the answer begins with its length and the request's correlation id.
        ServerKind::Kafka => {
            stream.write_all(&kafka::greeting()).map_err(|error| format!("greeting {server}: {error}"))?;
            |bytes| bytes[0] == 0 && bytes[4] == 0
        }
        ServerKind::Pulsar => return pulsar::greet(server),
        ServerKind::RocketMq => return rocketmq::greet(server),
    };
    let mut answer = [0_u8; 5];
    stream
        .read_exact(&mut answer)
        .map_err(|error| format!("waiting for the greeting of {server}: {error}"))?;
    if expected(&answer) { Ok(()) } else { Err(format!("{server} is not ready: it answered {answer:?}")) }
}
