//! Owns the sink: tables are made or joined, keys are built after a snapshot, columns are added, writers are opened.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use canalis_batch::ChangeBatch;
use canalis_connector_api::{
    Finding, Sink, SinkCapabilities, SinkContext, SinkPreview, SinkRecovery, SinkWriter, SplitMode,
    TablePlan, WriterContext,
};
use canalis_types::{Code, Error, Result, SchemaChange, SchemaChangeKind, TableId, TableSchema};
use tokio_postgres::{Client, error::SqlState};

use crate::{
    catalog, check,
    client::wait_for_owners,
    ddl::{self, Emptiness, KeyTime},
    error::to_error,
    options::{KeyBuild, PostgresOptions},
    progress::Progress,
    target::Target,
    writer::{self, PostgresWriter},
};

/// Rows go into one PostgreSQL database.
pub struct PostgresSink {
    shared: Arc<Shared>,
}

/// What the sink and its writers share.
pub struct Shared {
    /// Options.
    pub options: PostgresOptions,
    /// Where records are kept.
    pub progress: Progress,
    generation: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Whether progress tables are there, so that tables may wait for their key.
    open: bool,
    /// Which id each table at the sink belongs to.
    owners: BTreeMap<String, TableId>,
    /// Tables without their key, by qualified name.
    pending_keys: BTreeSet<String>,
    /// A session that nobody uses at the moment.
    idle: Option<Client>,
}

impl Shared {
    /// Changes whenever a table may look different, so that writers look again.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Whether the table still waits for its primary key, and held no row before this job.
    pub fn waits_for_key(&self, table: &str) -> bool {
        self.with_state(|s| s.pending_keys.contains(table))
    }

    fn changed(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    fn with_state<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks a table up and joins it with its source.
    ///
    /// # Errors
    /// `CNL-3004` when it is missing or does not fit.
    pub async fn target(&self, client: &Client, schema: &TableSchema) -> Result<(Target, Vec<String>)> {
        let table = ddl::qualified(&schema.id, &self.options)?;
        let Some(actual) = catalog::load(client, &table).await? else {
            return Err(Error::new(Code::TargetIncompatible, format!("table {table} does not exist")));
        };
        Target::join(schema, &table, &actual, &self.options)
    }

    /// Builds the key of a table that waits for it; whether it did. Idempotent, also for several writers at once.
    ///
    /// The session must have no transaction open.
    pub async fn build_key(&self, client: &Client, schema: &TableSchema) -> Result<bool> {
        let table = ddl::qualified(&schema.id, &self.options)?;
        let doing = format!("building the primary key of {table}");
        let fail = |e| to_error(&doing, e);
        client.batch_execute("BEGIN").await.map_err(fail)?;
        let taken = self.progress.take_pending_key(client, &table).await?;
        if taken {
            let has_key = match catalog::load(client, &table).await? {
                Some(actual) => actual.uniques.iter().any(|u| u.primary),
                // The table went away together with its need.
                None => true,
            };
            if !has_key {
                self.add_key(client, schema, &table).await?;
            }
        }
        client.batch_execute("COMMIT").await.map_err(fail)?;
        self.with_state(|s| s.pending_keys.remove(&table));
        self.changed();
        Ok(taken)
    }

    async fn add_key(&self, client: &Client, schema: &TableSchema, table: &str) -> Result<()> {
        let fail = |e| to_error(&format!("building the primary key of {table}"), e);
        let add = ddl::add_key(schema, &self.options)?;
        let Err(error) = client.batch_execute(&format!("SAVEPOINT canalis_key; {add}")).await else {
            return Ok(());
        };
        if error.code() != Some(&SqlState::UNIQUE_VIOLATION) {
            return Err(fail(error));
        }
        // Several tables of the source are merged into this one and share keys.
        tracing::warn!(%table, "equal keys came from several tables of the source, the youngest rows are kept");
        let keep = ddl::keep_youngest(schema, &self.options)?;
        let again = format!("ROLLBACK TO SAVEPOINT canalis_key; {keep}; {add}");
        client.batch_execute(&again).await.map_err(fail)
    }
}

impl PostgresSink {
    /// A sink that is not connected yet.
    pub fn new(options: PostgresOptions) -> Self {
        let progress = Progress::new(options.schema.as_deref().unwrap_or("public"));
        let shared =
            Shared { options, progress, generation: AtomicU64::new(0), state: Mutex::new(State::default()) };
        Self { shared: Arc::new(shared) }
    }

    /// A session without transaction, if possible the one that was last given back.
    async fn session(&self) -> Result<Client> {
        match self.shared.with_state(|s| s.idle.take()).filter(|c| !c.is_closed()) {
            Some(client) => Ok(client),
            None => self.shared.options.endpoint.connect().await,
        }
    }

    /// Keeps a session for the next use; one that met an error is not given back.
    fn give_back(&self, client: Client) {
        self.shared.with_state(|s| s.idle = Some(client));
    }

    /// Two ids must not meet in one table only because the option `schema` hides what tells them apart.
    fn claim(&self, schema: &TableSchema, table: &str) -> Result<()> {
        let owner = self
            .shared
            .with_state(|s| s.owners.entry(table.to_owned()).or_insert_with(|| schema.id.clone()).clone());
        if owner == schema.id {
            return Ok(());
        }
        Err(Error::new(
            Code::TargetIncompatible,
            format!(
                "{owner} and {} would both go into {table}; give one of them another name by a route",
                schema.id
            ),
        ))
    }

    async fn create(&self, client: &Client, schema: &TableSchema, snapshot: bool) -> Result<TablePlan> {
        let options = &self.shared.options;
        let table = ddl::qualified(&schema.id, options)?;
        let open = self.shared.with_state(|s| s.open);
        let later = snapshot && open && schema.has_key() && options.key_build == KeyBuild::AfterSnapshot;
        let key = if later { KeyTime::Later } else { KeyTime::Now };
        let (statements, notes) = ddl::create_table(schema, key, options)?;
        let mut sql = format!("BEGIN; {};", statements.join("; "));
        if later {
            sql.push_str(&self.shared.progress.note_pending_key(&table));
        }
        sql.push_str(" COMMIT");
        client.batch_execute(&sql).await.map_err(|e| to_error(&format!("creating table {table}"), e))?;
        if later {
            self.shared.with_state(|s| s.pending_keys.insert(table));
        }
        Ok(TablePlan { table: schema.id.clone(), statements, notes })
    }

    async fn add_column(&self, client: &Client, change: &SchemaChange, name: &str) -> Result<()> {
        let options = &self.shared.options;
        let id = &change.after.id;
        let table = ddl::qualified(id, options)?;
        let Some(column) = change.after.column(name) else {
            return Err(Error::internal(format!(
                "added column `{name}` is not in the new structure of {id}"
            )));
        };
        let actual = catalog::load(client, &table).await?;
        if actual.is_some_and(|a| a.column(name).is_some()) {
            return Ok(());
        }
        let fail = |e| to_error(&format!("adding column `{name}` to {table}"), e);
        let rows = client.query_opt(&format!("SELECT 1 FROM {table} LIMIT 1"), &[]).await.map_err(fail)?;
        let empty = if rows.is_none() { Emptiness::Empty } else { Emptiness::HasRows };
        let sql = ddl::add_column(id, column, empty, options)?;
        client.batch_execute(&sql).await.map_err(fail)
    }
}

#[async_trait]
impl Sink for PostgresSink {
    fn capabilities(&self) -> SinkCapabilities {
        SinkCapabilities { upsert: true, parallel: true, add_column: true }
    }

    async fn check(&self, tables: &[Arc<TableSchema>]) -> Vec<Finding> {
        check::check(&self.shared, tables).await
    }

    async fn plan_table(&self, schema: &TableSchema) -> Result<TablePlan> {
        let options = &self.shared.options;
        let table = ddl::qualified(&schema.id, options)?;
        let client = self.session().await?;
        let actual = catalog::load(&client, &table).await?;
        self.give_back(client);
        match actual {
            Some(actual) => {
                let (_, notes) = Target::join(schema, &table, &actual, options)?;
                Ok(TablePlan { table: schema.id.clone(), statements: Vec::new(), notes })
            }
            None => {
                let (statements, notes) = ddl::create_table(schema, KeyTime::Now, options)?;
                Ok(TablePlan { table: schema.id.clone(), statements, notes })
            }
        }
    }

    async fn preview(&self, batch: &ChangeBatch, _mode: SplitMode) -> Result<SinkPreview> {
        let options = &self.shared.options;
        let schema = batch.schema();
        let table = ddl::qualified(&schema.id, options)?;
        let client = self.session().await?;
        let actual = catalog::load(&client, &table).await?;
        self.give_back(client);
        let actual = actual.unwrap_or_else(|| ddl::foreseen_table(schema, options));
        let (target, _) = Target::join(schema, &table, &actual, options)?;
        writer::preview(&target, batch, options.invalid_date)
    }

    async fn open(&self, ctx: &SinkContext) -> Result<SinkRecovery> {
        let client = self.session().await?;
        self.shared.progress.open(&client).await?;
        wait_for_owners(&client, &ctx.job).await?;
        let recovery = self.shared.progress.recover(&client, ctx).await?;
        self.shared.with_state(|s| *s = State { open: true, idle: Some(client), ..State::default() });
        self.shared.changed();
        Ok(recovery)
    }

    async fn prepare_table(&self, schema: &Arc<TableSchema>, snapshot: bool) -> Result<TablePlan> {
        let options = &self.shared.options;
        let table = ddl::qualified(&schema.id, options)?;
        self.claim(schema, &table)?;
        let client = self.session().await?;
        let Some(actual) = catalog::load(&client, &table).await? else {
            let plan = self.create(&client, schema, snapshot).await?;
            self.shared.changed();
            self.give_back(client);
            return Ok(plan);
        };
        let open = self.shared.with_state(|s| s.open);
        // A table that this run has just made waits for its key on purpose; one of an earlier run has rows
        // that may come again, so it gets its key now.
        let mut actual = actual;
        if open
            && schema.has_key()
            && !self.shared.waits_for_key(&table)
            && self.shared.build_key(&client, schema).await?
        {
            actual = catalog::load(&client, &table).await?.unwrap_or(actual);
        }
        self.give_back(client);
        let (_, notes) = Target::join(schema, &table, &actual, options)?;
        Ok(TablePlan { table: schema.id.clone(), statements: Vec::new(), notes })
    }

    async fn snapshot_complete(&self, tables: &[Arc<TableSchema>]) -> Result<()> {
        let keyed: Vec<&Arc<TableSchema>> = tables.iter().filter(|t| t.has_key()).collect();
        if keyed.is_empty() || !self.shared.with_state(|s| s.open) {
            return Ok(());
        }
        let client = self.session().await?;
        for schema in keyed {
            self.shared.build_key(&client, schema).await?;
        }
        Ok(())
    }

    async fn apply_schema_change(&self, change: &SchemaChange) -> Result<()> {
        match &change.kind {
            SchemaChangeKind::CreateTable => {
                self.prepare_table(&change.after, false).await?;
            }
            SchemaChangeKind::AddColumns(columns) => {
                let client = self.session().await?;
                for (column, _) in columns {
                    self.add_column(&client, change, &column.name).await?;
                }
            }
            SchemaChangeKind::Other(tag) => {
                return Err(Error::new(
                    Code::SchemaChangeRefused,
                    format!("the PostgreSQL sink does not carry out `{tag}` yet: {}", change.statement),
                ));
            }
        }
        self.shared.changed();
        Ok(())
    }

    async fn open_writer(&self, ctx: WriterContext) -> Result<Box<dyn SinkWriter>> {
        let client = self.session().await?;
        Ok(Box::new(PostgresWriter::open(ctx, self.shared.clone(), client).await?))
    }
}
