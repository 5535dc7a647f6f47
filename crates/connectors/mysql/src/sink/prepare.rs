//! Owns making tables, checking existing ones, and carrying out added columns.

use std::sync::Arc;

use canalis_connector_api::TablePlan;
use canalis_types::{Code, Error, Result, SchemaChange, SchemaChangeKind, TableId, TableSchema};

use super::{
    column_sql::Fidelity,
    config::SecondaryIndexes,
    ddl::{add_column, add_indexes, carried_indexes, check_names, create_table},
    existing::{ExistingTable, same_name},
    failure::Failure,
    progress::{Entry, create_database},
    session::Session,
    shared::Shared,
    target::{Filled, Target},
};
use crate::quote;

/// What preparing would do, without doing it.
pub(super) async fn plan(shared: &Shared, session: &mut Session, schema: &TableSchema) -> Result<TablePlan> {
    let place = shared.place(&schema.id)?;
    check_names(schema, &place)?;
    if let Some(existing) = shared.read(session, &place).await? {
        let (_, notes) =
            Target::build(&Arc::new(schema.clone()), &place, &existing, &session.facts, Filled::Perhaps)?;
        return Ok(TablePlan { table: schema.id.clone(), statements: Vec::new(), notes });
    }
    let creation = create_table(schema, &place, &session.facts, Fidelity::Full)?;
    let mut statements = vec![creation.statement];
    let indexes: Vec<_> = carried_indexes(schema).collect();
    if !indexes.is_empty() {
        statements.push(add_indexes(&place, &indexes));
    }
    Ok(TablePlan { table: schema.id.clone(), statements, notes: creation.notes })
}

/// When a table is prepared.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// A snapshot is going to fill it.
    pub before_snapshot: bool,
    /// The job starts from nothing.
    pub fresh: bool,
}

/// Creates a missing table or checks that an existing one fits, and keeps its target for the writers.
pub(super) async fn prepare(
    shared: &Shared,
    session: &mut Session,
    schema: &Arc<TableSchema>,
    moment: Moment,
) -> Result<TablePlan> {
    let place = shared.place(&schema.id)?;
    check_names(schema, &place)?;
    check_apart(shared, session, &schema.id, &place)?;
    let progress = shared.progress()?;
    let mut plan = TablePlan { table: schema.id.clone(), statements: Vec::new(), notes: Vec::new() };
    let is_new = shared.read(session, &place).await?.is_none();
    let ours;
    if is_new {
        create_database(session, place.schema.as_deref().unwrap_or_default()).await?;
        let (statement, notes) = create(session, schema, &place).await?;
        plan.statements.push(statement);
        plan.notes = notes;
        let record = progress.store(Entry::Created(&place), 0, 0);
        session.execute("recording a created table", &record).await?;
        ours = true;
    } else {
        ours = progress.has_created(session, &place).await?;
    }
    let deferred = moment.before_snapshot && shared.config.indexes == SecondaryIndexes::Deferred;
    if ours && !deferred {
        plan.statements.extend(super::indexes::build_or_postpone(shared, session, schema, &place).await?);
    }
    let filled =
        if !is_new && (moment.fresh || !ours) { has_rows(session, &place).await? } else { Filled::No };
    let (_, notes) = shared.refresh(session, schema, filled).await?;
    plan.notes.extend(notes);
    Ok(plan)
}

/// Refuses two tables that would go into one: the target has no third part of names, and some systems fold the case.
fn check_apart(shared: &Shared, session: &Session, id: &TableId, place: &TableId) -> Result<()> {
    let folded =
        if session.facts.folds_table_names { place.to_string().to_lowercase() } else { place.to_string() };
    match shared.targets.claim(id, folded) {
        None => Ok(()),
        Some(other) => Err(Error::new(
            Code::TargetIncompatible,
            format!(
                "tables {other} and {id} are one table at the target, {place}; add a route for one of them"
            ),
        )),
    }
}

async fn has_rows(session: &mut Session, place: &TableId) -> Result<Filled> {
    let rows: Vec<u8> =
        session.ask("looking for rows", &format!("SELECT 1 FROM {} LIMIT 1", quote::table(place))).await?;
    Ok(if rows.is_empty() { Filled::No } else { Filled::Perhaps })
}

/// Runs CREATE TABLE, giving up defaults that the server does not know.
async fn create(
    session: &mut Session,
    schema: &TableSchema,
    place: &TableId,
) -> Result<(String, Vec<String>)> {
    let doing = format!("creating table {place}");
    let mut fidelity = Fidelity::Full;
    loop {
        let creation = create_table(schema, place, &session.facts, fidelity)?;
        match session.run(&doing, creation.statement.as_bytes()).await {
            Ok(_) => return Ok((creation.statement, creation.notes)),
            Err(failure) => fidelity = less(fidelity, failure, &doing)?,
        }
    }
}

/// The next step of giving up, or the error.
fn less(fidelity: Fidelity, failure: Failure, doing: &str) -> Result<Fidelity> {
    let error = failure.into_error(doing);
    let may_help = matches!(error.code(), Code::SinkFailed);
    match fidelity {
        Fidelity::Full if may_help => Ok(Fidelity::Constants),
        Fidelity::Constants if may_help => Ok(Fidelity::Bare),
        _ => Err(error),
    }
}

/// Carries out a change of structure.
pub(super) async fn change(shared: &Shared, session: &mut Session, change: &SchemaChange) -> Result<()> {
    let SchemaChangeKind::AddColumns(columns) = &change.kind else {
        return Err(Error::new(
            Code::SchemaChangeRefused,
            format!(
                "the sink does not carry out `{}` yet: {} at {}",
                change.tag(),
                change.statement,
                change.position
            ),
        ));
    };
    let schema = &change.after;
    let place = shared.place(&schema.id)?;
    check_names(schema, &place)?;
    for (column, column_place) in columns {
        let existing: ExistingTable = shared
            .read(session, &place)
            .await?
            .ok_or_else(|| Error::new(Code::TargetIncompatible, format!("table {place} is not there")))?;
        if existing.columns.iter().any(|stored| same_name(&stored.name, &column.name)) {
            continue;
        }
        let doing = format!("adding column `{}` to {place}", column.name);
        let mut fidelity = Fidelity::Full;
        loop {
            let (sql, notes) =
                add_column(schema, &place, column, column_place, &existing, &session.facts, fidelity);
            match session.run(&doing, sql.as_bytes()).await {
                Ok(_) => {
                    for note in notes {
                        tracing::warn!(table = %place, note, "column was added in another form");
                    }
                    break;
                }
                Err(failure) => fidelity = less(fidelity, failure, &doing)?,
            }
        }
    }
    let filled = shared.targets.filled(&schema.id);
    shared.refresh(session, schema, filled).await.map(drop)
}
