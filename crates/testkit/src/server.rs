//! Owns the description of a running server and connections to it.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder};
use tokio_postgres::{Client, NoTls};

/// What kind of server it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServerKind {
    /// MariaDB of the machine's own Debian release.
    MariaDb,
    /// MySQL 9 from a Debian sid file tree.
    MySql,
    /// PostgreSQL of the machine's own Debian release.
    Postgres,
    /// Apache Kafka 4, a single node.
    Kafka,
    /// Apache Pulsar 4, a single process.
    Pulsar,
    /// Apache RocketMQ 5: a broker and its name server, whose port it is.
    RocketMq,
}

impl ServerKind {
    /// A short lower-case word, good for names of files and databases.
    pub fn word(self) -> &'static str {
        match self {
            ServerKind::MariaDb => "mariadb",
            ServerKind::MySql => "mysql",
            ServerKind::Postgres => "postgres",
            ServerKind::Kafka => "kafka",
            ServerKind::Pulsar => "pulsar",
            ServerKind::RocketMq => "rocketmq",
        }
    }
}

impl fmt::Display for ServerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A running server. It listens on 127.0.0.1 only; the account may do everything.
#[derive(Debug, Clone)]
pub struct Server {
    /// What it is.
    pub kind: ServerKind,
    /// Where it listens.
    pub port: u16,
    /// The account to use.
    pub username: String,
    /// Its password.
    pub password: String,
    /// The server id in its change log (MySQL and MariaDB).
    pub server_id: u32,
    /// The file that its output goes to.
    pub log: PathBuf,
}

impl Server {
    /// Connects to MySQL or MariaDB with the driver's defaults and no default database.
    ///
    /// # Panics
    /// When the server cannot be reached.
    pub async fn mysql(&self) -> Conn {
        self.try_mysql().await.unwrap_or_else(|error| panic!("connecting to {self}: {error}"))
    }

    /// Like [`Server::mysql`], for tests in which the server may be away.
    pub async fn try_mysql(&self) -> Result<Conn, mysql_async::Error> {
        assert!(
            matches!(self.kind, ServerKind::MariaDb | ServerKind::MySql),
            "a MySQL connection to {} was asked for",
            self.kind
        );
        let options = OptsBuilder::default()
            .ip_or_hostname("127.0.0.1")
            .tcp_port(self.port)
            .user(Some(&self.username))
            .pass(Some(&self.password))
            .prefer_socket(false)
            .max_allowed_packet(Some(256 << 20));
        Conn::new(options).await
    }

    /// Connects to a database of PostgreSQL; the connection is driven by a task of its own.
    ///
    /// # Panics
    /// When the server cannot be reached.
    pub async fn postgres(&self, database: &str) -> Client {
        self.try_postgres(database).await.unwrap_or_else(|error| panic!("connecting to {self}: {error}"))
    }

    /// Like [`Server::postgres`], for tests in which the server may be away.
    pub async fn try_postgres(&self, database: &str) -> Result<Client, tokio_postgres::Error> {
        assert_eq!(self.kind, ServerKind::Postgres, "a PostgreSQL connection to {} was asked for", self.kind);
        let (client, connection) = tokio_postgres::Config::new()
            .host("127.0.0.1")
            .port(self.port)
            .user(&self.username)
            .password(&self.password)
            .dbname(database)
            .connect(NoTls)
            .await?;
        // The task ends with the client; an error also reaches whoever uses the client.
        tokio::spawn(connection);
        Ok(client)
    }

    /// Creates a database of a fresh name that starts with `prefix` and returns the name.
    ///
    /// # Panics
    /// When the server cannot be reached or refuses.
    pub async fn create_database(&self, prefix: &str) -> String {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{prefix}_{}_{number}_{:06x}", std::process::id(), rand::random::<u32>() >> 8);
        match self.kind {
            ServerKind::MariaDb | ServerKind::MySql => {
                let mut conn = self.mysql().await;
                conn.query_drop(format!("CREATE DATABASE `{name}`"))
                    .await
                    .expect("the account may create databases");
                // The answer is in; how the goodbye goes does not matter.
                let _ = conn.disconnect().await;
            }
            ServerKind::Postgres => {
                let client = self.postgres("postgres").await;
                let statement = format!("CREATE DATABASE \"{name}\"");
                client.batch_execute(&statement).await.expect("the account may create databases");
            }
            ServerKind::Kafka | ServerKind::Pulsar | ServerKind::RocketMq => {
                panic!("{self} has no databases")
            }
        }
        name
    }

    /// The last lines that the server has written to its log.
    pub fn log_tail(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at 127.0.0.1:{}", self.kind, self.port)
    }
}
