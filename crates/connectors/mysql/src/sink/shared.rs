//! Owns what the sink and its writers share: options, what the server is, targets, and the job's records.

use std::sync::{Arc, Mutex, PoisonError};

use canalis_types::{Code, Error, Result, TableId, TableSchema};

use super::{
    config::SinkConfig,
    ddl::check_names,
    existing::{ExistingTable, read_table},
    progress::Progress,
    session::{ServerFacts, Session},
    target::{Filled, Target, Targets},
};

/// State of a sink.
pub(super) struct Shared {
    /// Options.
    pub config: SinkConfig,
    /// Targets by table.
    pub targets: Targets,
    facts: Mutex<Option<Arc<ServerFacts>>>,
    progress: Mutex<Option<Progress>>,
    /// Between calls, a session for structure; one call at a time takes it out.
    idle: Mutex<Option<Session>>,
    /// Tables with unique indexes that wait for the stream to catch up.
    postponed: Mutex<Vec<Arc<TableSchema>>>,
}

impl Shared {
    /// State before anything is known.
    pub(super) fn new(config: SinkConfig) -> Self {
        Self {
            config,
            targets: Targets::default(),
            facts: Mutex::new(None),
            progress: Mutex::new(None),
            idle: Mutex::new(None),
            postponed: Mutex::new(Vec::new()),
        }
    }

    /// A new session for rows.
    pub(super) async fn connect(&self) -> Result<Session> {
        let known = lock(&self.facts).clone();
        let session = Session::open(&self.config, known).await?;
        *lock(&self.facts) = Some(session.facts.clone());
        Ok(session)
    }

    /// The session for structure. Give it back with [`Shared::keep`] when nothing has failed.
    pub(super) async fn session(&self) -> Result<Session> {
        let idle = lock(&self.idle).take();
        if let Some(mut session) = idle
            && session.rollback().await.is_ok()
        {
            return Ok(session);
        }
        self.connect().await
    }

    /// Keeps a session for the next call.
    pub(super) fn keep(&self, session: Session) {
        *lock(&self.idle) = Some(session);
    }

    /// The job's records.
    ///
    /// # Errors
    /// Internal before the sink is opened.
    pub(super) fn progress(&self) -> Result<Progress> {
        lock(&self.progress).clone().ok_or_else(|| Error::internal("the sink is used before it is opened"))
    }

    /// Sets the job's records.
    pub(super) fn set_progress(&self, progress: Progress) {
        *lock(&self.progress) = Some(progress);
    }

    /// Puts a table's unique indexes off.
    pub(super) fn postpone(&self, schema: Arc<TableSchema>) {
        let mut postponed = lock(&self.postponed);
        postponed.retain(|other| other.id != schema.id);
        postponed.push(schema);
    }

    /// Notes that a table has all its indexes.
    pub(super) fn done(&self, schema: &TableSchema) {
        lock(&self.postponed).retain(|other| other.id != schema.id);
    }

    /// Tables whose unique indexes were put off.
    pub(super) fn postponed(&self) -> Vec<Arc<TableSchema>> {
        lock(&self.postponed).clone()
    }

    /// Where a table is: its database is the id's second part or the option `database`.
    pub(super) fn place(&self, id: &TableId) -> Result<TableId> {
        let database = id.schema.clone().or_else(|| self.config.database.clone()).ok_or_else(|| {
            Error::new(
                Code::PipelineInvalid,
                format!("table {id} names no database: give the sink the option `database`"),
            )
        })?;
        Ok(TableId::new(database, id.table.clone()))
    }

    /// Reads a table as it is.
    pub(super) async fn read(&self, session: &mut Session, place: &TableId) -> Result<Option<ExistingTable>> {
        read_table(session, place.schema.as_deref().unwrap_or_default(), &place.table).await
    }

    /// The target for rows of this structure, made anew when it is not known.
    pub(super) async fn target(&self, schema: &Arc<TableSchema>) -> Result<Arc<Target>> {
        if let Some(target) = self.targets.get(schema) {
            return Ok(target);
        }
        let mut session = self.session().await?;
        let filled = self.targets.filled(&schema.id);
        let (target, _) = self.refresh(&mut session, schema, filled).await?;
        self.keep(session);
        Ok(target)
    }

    /// Makes a target from the table as it is now.
    pub(super) async fn refresh(
        &self,
        session: &mut Session,
        schema: &Arc<TableSchema>,
        filled: Filled,
    ) -> Result<(Arc<Target>, Vec<String>)> {
        let place = self.place(&schema.id)?;
        check_names(schema, &place)?;
        let existing = self
            .read(session, &place)
            .await?
            .ok_or_else(|| Error::new(Code::TargetIncompatible, format!("table {place} is not there")))?;
        let (target, notes) = Target::build(schema, &place, &existing, &session.facts, filled)?;
        Ok((self.targets.put(target), notes))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
