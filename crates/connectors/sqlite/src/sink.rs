//! Owns the sink: tables are made or joined, columns are added, the one writer is opened.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use canalis_batch::ChangeBatch;
use canalis_connector_api::{
    Finding, Sink, SinkCapabilities, SinkContext, SinkPreview, SinkRecovery, SinkWriter, SplitMode,
    TablePlan, WriterContext,
};
use canalis_types::{Code, Error, Result, SchemaChange, SchemaChangeKind, TableId, TableSchema};
use rusqlite::{Connection, OptionalExtension};

use crate::{
    catalog, check,
    database::{Database, spawn},
    ddl::{self, Emptiness},
    error::to_error,
    options::SqliteOptions,
    progress::{self, Owner},
    target::Target,
    writer::{self, SqliteWriter},
};

/// Rows go into one SQLite database file.
pub struct SqliteSink {
    options: SqliteOptions,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Number of this opening of the job.
    opening: i64,
    /// Which id each table in the file belongs to, by name in lower case.
    owners: BTreeMap<String, TableId>,
}

/// Looks a table up and joins it with its source.
///
/// # Errors
/// `CNL-3004` when it is missing or does not fit.
pub fn target(connection: &Connection, schema: &TableSchema) -> Result<(Target, Vec<String>)> {
    let Some(actual) = catalog::load(connection, &schema.id.table)? else {
        let text = format!("table `{}` does not exist", schema.id.table);
        return Err(Error::new(Code::TargetIncompatible, text));
    };
    Target::join(schema, &actual)
}

impl SqliteSink {
    /// A sink whose file is not open yet.
    pub fn new(options: SqliteOptions) -> Self {
        Self { options, state: Mutex::new(State::default()) }
    }

    async fn database(&self) -> Result<Database> {
        Database::open(&self.options.path).await
    }

    fn with_state<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The file has one name space without regard to case: two ids must not meet in one table by accident.
    fn claim(&self, schema: &TableSchema) -> Result<()> {
        let name = schema.id.table.to_lowercase();
        let owner = self.with_state(|s| s.owners.entry(name).or_insert_with(|| schema.id.clone()).clone());
        if owner == schema.id {
            return Ok(());
        }
        Err(Error::new(
            Code::TargetIncompatible,
            format!(
                "{owner} and {} would both go into table `{}`; give one of them another name by a route",
                schema.id, owner.table
            ),
        ))
    }
}

fn prepare(connection: &Connection, schema: &TableSchema) -> Result<TablePlan> {
    ddl::check_name(&schema.id)?;
    let table = schema.id.clone();
    if let Some(actual) = catalog::load(connection, &schema.id.table)? {
        let (_, notes) = Target::join(schema, &actual)?;
        return Ok(TablePlan { table, statements: Vec::new(), notes });
    }
    let (sql, notes) = ddl::create_table(schema)?;
    connection
        .execute_batch(&sql)
        .map_err(|e| to_error(&format!("creating table `{}`", schema.id.table), e))?;
    Ok(TablePlan { table, statements: vec![sql], notes })
}

fn plan(connection: &Connection, schema: &TableSchema) -> Result<TablePlan> {
    let table = schema.id.clone();
    match catalog::load(connection, &schema.id.table)? {
        Some(actual) => {
            let (_, notes) = Target::join(schema, &actual)?;
            Ok(TablePlan { table, statements: Vec::new(), notes })
        }
        None => {
            let (sql, notes) = ddl::create_table(schema)?;
            Ok(TablePlan { table, statements: vec![sql], notes })
        }
    }
}

fn add_columns(connection: &Connection, change: &SchemaChange, names: &[String]) -> Result<()> {
    let id = &change.after.id;
    for name in names {
        let Some(column) = change.after.column(name) else {
            return Err(Error::internal(format!(
                "added column `{name}` is not in the new structure of {id}"
            )));
        };
        if catalog::load(connection, &id.table)?.is_some_and(|a| a.column(name).is_some()) {
            continue;
        }
        let fail = |e| to_error(&format!("adding column `{name}` to `{}`", id.table), e);
        let row: Option<i64> = connection
            .query_row(&format!("SELECT 1 FROM {} LIMIT 1", ddl::ident(&id.table)), [], |r| r.get(0))
            .optional()
            .map_err(fail)?;
        let rows = if row.is_none() { Emptiness::Empty } else { Emptiness::HasRows };
        connection.execute_batch(&ddl::add_column(id, column, rows)?).map_err(fail)?;
    }
    Ok(())
}

#[async_trait]
impl Sink for SqliteSink {
    fn capabilities(&self) -> SinkCapabilities {
        SinkCapabilities { upsert: true, parallel: false, add_column: true }
    }

    async fn check(&self, tables: &[Arc<TableSchema>]) -> Vec<Finding> {
        check::check(&self.options.path, tables).await
    }

    async fn plan_table(&self, schema: &TableSchema) -> Result<TablePlan> {
        if !self.options.path.exists() {
            let (sql, notes) = ddl::create_table(schema)?;
            return Ok(TablePlan { table: schema.id.clone(), statements: vec![sql], notes });
        }
        let schema = schema.clone();
        let database = Database::open_to_look(&self.options.path).await?;
        database.call(move |connection| plan(connection, &schema)).await
    }

    async fn preview(&self, batch: &ChangeBatch, _mode: SplitMode) -> Result<SinkPreview> {
        let schema = batch.schema();
        let mut structure = Vec::new();
        if self.options.path.exists() {
            let database = Database::open_to_look(&self.options.path).await?;
            let table = schema.id.table.clone();
            structure = database.call(move |connection| catalog::statements(connection, &table)).await?;
        }
        if structure.is_empty() {
            structure.push(ddl::create_table(schema)?.0);
        }
        let batch = batch.clone();
        spawn(move || writer::preview(&structure, &batch)).await
    }

    async fn open(&self, ctx: &SinkContext) -> Result<SinkRecovery> {
        let ctx = ctx.clone();
        let opened = self.database().await?.call(move |connection| progress::open(connection, &ctx)).await?;
        let (opening, recovery) = opened;
        self.with_state(|s| *s = State { opening, ..State::default() });
        Ok(recovery)
    }

    async fn prepare_table(&self, schema: &Arc<TableSchema>, _snapshot: bool) -> Result<TablePlan> {
        self.claim(schema)?;
        let schema = schema.clone();
        self.database().await?.call(move |connection| prepare(connection, &schema)).await
    }

    async fn snapshot_complete(&self, _tables: &[Arc<TableSchema>]) -> Result<()> {
        Ok(())
    }

    async fn apply_schema_change(&self, change: &SchemaChange) -> Result<()> {
        match &change.kind {
            SchemaChangeKind::CreateTable => self.prepare_table(&change.after, false).await.map(drop),
            SchemaChangeKind::AddColumns(columns) => {
                let names: Vec<String> = columns.iter().map(|(c, _)| c.name.clone()).collect();
                let change = change.clone();
                let database = self.database().await?;
                database.call(move |connection| add_columns(connection, &change, &names)).await
            }
            SchemaChangeKind::Other(tag) => Err(Error::new(
                Code::SchemaChangeRefused,
                format!("the SQLite sink does not carry out `{tag}` yet: {}", change.statement),
            )),
        }
    }

    async fn open_writer(&self, ctx: WriterContext) -> Result<Box<dyn SinkWriter>> {
        let owner = Owner {
            job: ctx.job.clone(),
            writer: ctx.index,
            writers: ctx.writers,
            opening: self.with_state(|s| s.opening),
        };
        Ok(Box::new(SqliteWriter::new(owner, ctx.dead_letters, self.database().await?)))
    }
}
