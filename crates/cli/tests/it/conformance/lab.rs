//! Owns the systems under test: a fresh database, file or directory per test, a sink on it through the registry of the
//! binary, and what the system answers to its own SQL.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use canalis_connector_api::{
    Connector, ConnectorSpec, DeadLetter, DeadLetterQueue, DeliveryGuarantee, Options, Registry, Role, Sink,
    SinkContext, SinkRecovery, SinkWriter, WriterContext,
};
use canalis_testkit::Server;
use canalis_types::{Code, Error, Result, TableId};
use mysql_async::prelude::Queryable;
use tokio_postgres::SimpleQueryMessage;

#[path = "../../../src/registry.rs"]
mod wiring;

/// The connectors of the binary.
pub fn registry() -> Registry {
    wiring::registry()
}

/// The job of all tests.
pub const JOB: &str = "conformance job";

/// What keeps the rows.
enum System {
    /// A database of MySQL or MariaDB.
    MySql(&'static Server, String),
    /// A database of PostgreSQL; tables are in its schema `app`.
    Postgres(&'static Server, String),
    /// A file in the lab's directory.
    Sqlite,
    /// Files in the lab's directory.
    Files,
    /// Topics of a broker; all names begin with the prefix.
    Topics(&'static Server, String),
    /// Nothing that could be asked.
    Nowhere,
}

/// A sink's system, fresh for one test.
pub struct Lab {
    /// Name for messages.
    pub name: &'static str,
    connector: Arc<dyn Connector>,
    system: System,
    directory: tempfile::TempDir,
    /// What was refused.
    pub letters: Arc<Letters>,
}

/// The labs of every sink of the binary whose system can be had.
pub async fn all() -> Vec<Lab> {
    let mut labs = Vec::new();
    for connector in registry().iter().filter(|c| c.spec().role.allows(Role::Sink)) {
        let add = |name: &'static str, system| Lab {
            name,
            connector: connector.clone(),
            system,
            directory: tempfile::tempdir().unwrap(),
            letters: Arc::default(),
        };
        match connector.spec().name {
            "mysql" => {
                if let Some(server) = canalis_testkit::mariadb() {
                    let database = server.create_database("conformance").await;
                    labs.push(add("mysql on MariaDB", System::MySql(server, database)));
                }
                if let Some(server) = canalis_testkit::mysql() {
                    let database = server.create_database("conformance").await;
                    labs.push(add("mysql on MySQL", System::MySql(server, database)));
                }
            }
            "postgres" => {
                if let Some(server) = canalis_testkit::postgres() {
                    let database = server.create_database("conformance").await;
                    labs.push(add("postgres", System::Postgres(server, database)));
                }
            }
            "sqlite" => labs.push(add("sqlite", System::Sqlite)),
            "files" => labs.push(add("files", System::Files)),
            "kafka" => labs.extend(canalis_testkit::kafka().map(|s| add("kafka", topics(s)))),
            "pulsar" => labs.extend(canalis_testkit::pulsar().map(|s| add("pulsar", topics(s)))),
            "rocketmq" => labs.extend(canalis_testkit::rocketmq().map(|s| add("rocketmq", topics(s)))),
            "print" => labs.push(add("print", System::Nowhere)),
            "blackhole" => labs.push(add("blackhole", System::Nowhere)),
            other => panic!("the sink `{other}` has no place in the conformance suite"),
        }
    }
    labs
}

fn topics(server: &'static Server) -> System {
    System::Topics(server, format!("conformance-{:08x}", rand::random::<u32>()))
}

/// Those that promise exactly once, overwrite by key, and can be asked what they hold: databases.
pub async fn databases() -> Vec<Lab> {
    let mut labs = all().await;
    labs.retain(|lab| {
        lab.spec().guarantee == DeliveryGuarantee::ExactlyOnce
            && lab.sink().capabilities().upsert
            && !matches!(lab.system, System::Topics(..))
    });
    assert!(labs.iter().all(|lab| !matches!(lab.system, System::Files | System::Nowhere)));
    labs
}

impl Lab {
    /// Its connector's declaration.
    pub fn spec(&self) -> &'static ConnectorSpec {
        self.connector.spec()
    }

    /// Its directory, for files.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    fn sqlite_file(&self) -> PathBuf {
        self.directory.path().join("target.db")
    }

    /// A sink as a process that has just started would have it.
    pub fn sink(&self) -> Arc<dyn Sink> {
        let mut raw: BTreeMap<String, String> = BTreeMap::new();
        let mut give = |key: &str, value: &str| raw.insert(key.to_owned(), value.to_owned());
        match &self.system {
            System::MySql(server, database) | System::Postgres(server, database) => {
                give("hostname", "127.0.0.1");
                give("port", &server.port.to_string());
                give("username", &server.username);
                give("password", &server.password);
                give("database", database);
            }
            System::Sqlite => {
                give("path", self.sqlite_file().to_str().unwrap());
            }
            System::Files => {
                give("path", self.path().to_str().unwrap());
            }
            System::Topics(server, prefix) => {
                let address = format!("127.0.0.1:{}", server.port);
                match self.name {
                    "kafka" => {
                        give("properties.bootstrap.servers", &address);
                        // Labs share the job's name and the broker.
                        give("sink.transactional-id-prefix", prefix);
                        give("sink.progress.topic", &format!("{prefix}-progress"));
                    }
                    "pulsar" => {
                        give("service-url", &format!("pulsar://{address}"));
                    }
                    _ => {
                        give("name-server", &address);
                    }
                }
                give("topic", &format!("{prefix}-{{table}}"));
                give("value.format", "canal-json");
            }
            System::Nowhere => {}
        }
        let options = Options::validate(self.spec(), Role::Sink, &raw).unwrap();
        assert_eq!(self.connector.validate(Role::Sink, &options), []);
        self.connector.sink(&options).unwrap()
    }

    /// The id that leads to a table of this name.
    pub fn id(&self, table: &str) -> TableId {
        match &self.system {
            System::MySql(_, database) => TableId::new(database, table),
            _ => TableId::new("app", table),
        }
    }

    /// The table in the system's own SQL.
    pub fn sql_name(&self, table: &str) -> String {
        let quoted = |quote: char, name: &str| {
            format!("{quote}{}{quote}", name.replace(quote, &format!("{quote}{quote}")))
        };
        match &self.system {
            System::MySql(_, database) => format!("{}.{}", quoted('`', database), quoted('`', table)),
            System::Postgres(..) => format!("app.{}", quoted('"', table)),
            _ => quoted('"', table),
        }
    }

    /// Runs a statement in which `{t}` stands for the table.
    pub async fn run(&self, table: &str, sql: &str) {
        let sql = sql.replace("{t}", &self.sql_name(table));
        match &self.system {
            System::MySql(server, _) => server.mysql().await.query_drop(sql).await.unwrap(),
            System::Postgres(server, database) => {
                let client = server.postgres(database).await;
                client.batch_execute(&format!("CREATE SCHEMA IF NOT EXISTS app; {sql}")).await.unwrap();
            }
            System::Sqlite => {
                rusqlite::Connection::open(self.sqlite_file()).unwrap().execute_batch(&sql).unwrap()
            }
            System::Files | System::Topics(..) | System::Nowhere => panic!("{} has no SQL", self.name),
        }
    }

    /// All rows of a table, cells as text joined by `|`, NULL as `NULL`, sorted.
    pub async fn rows(&self, table: &str) -> Vec<String> {
        let sql = format!("SELECT * FROM {}", self.sql_name(table));
        let mut rows: Vec<Vec<Option<String>>> = Vec::new();
        match &self.system {
            System::MySql(server, _) => {
                let found: Vec<mysql_async::Row> = server.mysql().await.query(sql).await.unwrap();
                rows.extend(found.into_iter().map(|row| row.unwrap().into_iter().map(mysql_text).collect()));
            }
            System::Postgres(server, database) => {
                for message in server.postgres(database).await.simple_query(&sql).await.unwrap() {
                    if let SimpleQueryMessage::Row(row) = message {
                        rows.push((0..row.len()).map(|i| row.get(i).map(str::to_owned)).collect());
                    }
                }
            }
            System::Sqlite => {
                let connection = rusqlite::Connection::open(self.sqlite_file()).unwrap();
                let mut statement = connection.prepare(&sql).unwrap();
                let columns = statement.column_count();
                let mut found = statement.query([]).unwrap();
                while let Some(row) = found.next().unwrap() {
                    rows.push((0..columns).map(|i| sqlite_text(row.get_ref(i).unwrap())).collect());
                }
            }
            System::Files | System::Topics(..) | System::Nowhere => panic!("{} has no SQL", self.name),
        }
        super::model::lines(rows)
    }

    /// Opens a sink for [`JOB`].
    pub async fn open(&self, sink: &dyn Sink, writers: usize, start: Start) -> SinkRecovery {
        let fresh = start == Start::Fresh;
        let ctx = SinkContext { job: JOB.into(), writers, fresh, tables: vec![self.id("t")] };
        sink.open(&ctx).await.unwrap()
    }

    /// Opens a writer whose refused rows go to [`Lab::letters`].
    pub async fn writer(&self, sink: &dyn Sink, index: usize, writers: usize) -> Box<dyn SinkWriter> {
        let dead_letters = self.letters.clone();
        sink.open_writer(WriterContext { job: JOB.into(), index, writers, dead_letters }).await.unwrap()
    }
}

/// Whether a job starts from nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Start {
    Fresh,
    Again,
}

fn mysql_text(value: mysql_async::Value) -> Option<String> {
    match value {
        mysql_async::Value::NULL => None,
        mysql_async::Value::Bytes(bytes) => Some(String::from_utf8(bytes).unwrap()),
        other => Some(other.as_sql(true)),
    }
}

fn sqlite_text(value: rusqlite::types::ValueRef<'_>) -> Option<String> {
    use rusqlite::types::ValueRef;
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8(bytes.to_vec()).unwrap()),
    }
}

/// Keeps what is refused, or refuses to: the policy `fail`.
#[derive(Default)]
pub struct Letters {
    letters: Mutex<Vec<DeadLetter>>,
    fails: bool,
}

impl Letters {
    /// The policy `fail`.
    pub fn failing() -> Self {
        Self { fails: true, ..Self::default() }
    }

    /// Takes out what was refused so far.
    pub fn take(&self) -> Vec<DeadLetter> {
        std::mem::take(&mut *self.letters.lock().unwrap())
    }
}

#[async_trait]
impl DeadLetterQueue for Letters {
    async fn reject(&self, letters: Vec<DeadLetter>) -> Result<()> {
        if self.fails {
            let reason = letters.first().map_or("nothing was handed over", |letter| &letter.reason);
            return Err(Error::new(Code::RowRefused, reason));
        }
        self.letters.lock().unwrap().extend(letters);
        Ok(())
    }
}
