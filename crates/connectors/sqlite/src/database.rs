//! Owns the connection: its settings, and that SQLite's blocking work never runs on a thread of the async runtime.

use std::{
    fs::{self, File},
    io,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use canalis_types::{Code, Error, Result};
use rusqlite::{Connection, OpenFlags};

use crate::error::to_error;

/// How long a statement waits for the lock of another connection.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Prepared statements that are kept.
const STATEMENTS: usize = 256;

/// Readers are not blocked (WAL), and a commit is on the disk when it returns (FULL). Foreign keys are not
/// enforced, as is SQLite's own default: rows of different tables do not arrive in the order of the source.
const SETTINGS: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = OFF; \
    PRAGMA recursive_triggers = OFF; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16384;";

/// A connection that is used by one caller at a time.
#[derive(Clone)]
pub struct Database {
    connection: Arc<Mutex<Connection>>,
}

impl Database {
    /// Opens or creates the file, and the directories above it.
    ///
    /// # Errors
    /// `CNL-4006` when a directory cannot be created, else what SQLite says.
    pub async fn open(path: &Path) -> Result<Self> {
        let path = path.to_owned();
        spawn(move || {
            let doing = format!("opening {}", path.display());
            create_directories(&path).map_err(|e| {
                Error::new(Code::LocalIo, format!("creating the directory of {}", path.display()))
                    .with_source(e)
            })?;
            let fail = |e| to_error(&doing, e);
            let connection = Connection::open(&path).map_err(fail)?;
            connection.busy_timeout(BUSY_TIMEOUT).map_err(fail)?;
            connection.set_prepared_statement_cache_capacity(STATEMENTS);
            connection.execute_batch(SETTINGS).map_err(fail)?;
            Ok(Self { connection: Arc::new(Mutex::new(connection)) })
        })
        .await
    }

    /// Opens a file that is there, to look and not to touch.
    ///
    /// # Errors
    /// What SQLite says.
    pub async fn open_to_look(path: &Path) -> Result<Self> {
        let path = path.to_owned();
        spawn(move || {
            let fail = |e| to_error(&format!("opening {}", path.display()), e);
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(&path, flags).map_err(fail)?;
            connection.busy_timeout(BUSY_TIMEOUT).map_err(fail)?;
            Ok(Self { connection: Arc::new(Mutex::new(connection)) })
        })
        .await
    }

    /// Runs `work` on a thread that may block. Dropping the future does not stop the work.
    pub async fn call<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        let connection = self.connection.clone();
        spawn(move || work(&connection.lock().unwrap_or_else(PoisonError::into_inner))).await
    }
}

/// The directory that a path names a file in.
pub fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates missing directories above a file, durably: a name lives in the directory above it.
fn create_directories(path: &Path) -> io::Result<()> {
    let directory = directory_of(path);
    let missing: Vec<&Path> = directory.ancestors().take_while(|a| !a.exists()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(directory)?;
    missing.iter().try_for_each(|created| File::open(directory_of(created))?.sync_all())
}

/// Runs work that blocks on a thread that may.
pub async fn spawn<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|e| Error::internal("a thread of the SQLite sink ended early").with_source(e))?
}
