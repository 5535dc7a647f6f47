//! Owns the secondary indexes of tables that the job has created: one pass over the rows after the snapshot.

use std::sync::Arc;

use canalis_types::{Index, Result, TableId, TableSchema};

use super::{
    ddl::{add_indexes, missing_indexes},
    existing::read_table,
    failure::Failure,
    session::Session,
    shared::Shared,
};

/// Builds what is missing of a table that the job has created. An index that the server does not understand is left out
/// with a warning; a unique one that the rows do not satisfy yet is left for later.
async fn build(session: &mut Session, schema: &TableSchema, place: &TableId) -> Result<Vec<String>> {
    let database = place.schema.as_deref().unwrap_or_default();
    let Some(existing) = read_table(session, database, &place.table).await? else { return Ok(Vec::new()) };
    let missing = missing_indexes(schema, &existing);
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    let all = add_indexes(place, &missing);
    match add(session, place, &all).await? {
        None => return Ok(vec![all]),
        Some(_) if missing.len() == 1 => {}
        Some(reason) => tracing::debug!(table = %place, reason, "indexes are built one by one"),
    }
    let mut built = Vec::new();
    for index in missing {
        let one = add_indexes(place, &[index]);
        match add(session, place, &one).await? {
            None => built.push(one),
            Some(reason) => {
                tracing::warn!(table = %place, index = index.name, reason, "index is not built");
            }
        }
    }
    Ok(built)
}

/// Runs ALTER TABLE; gives the reason when the rows or the server's grammar do not allow it.
async fn add(session: &mut Session, place: &TableId, sql: &str) -> Result<Option<String>> {
    let doing = format!("adding indexes to {place}");
    match session.run(&doing, sql.as_bytes()).await {
        Ok(_) => Ok(None),
        // Another attempt has been faster.
        Err(Failure::Fatal(error)) if error.to_string().contains("Duplicate key name") => Ok(None),
        Err(Failure::Row(refusal)) => Ok(Some(refusal.message)),
        Err(failure) => {
            let error = failure.into_error(&doing);
            if error.kind().is_retryable() || error.code() == canalis_types::Code::SinkAccessDenied {
                Err(error)
            } else {
                Ok(Some(error.to_string()))
            }
        }
    }
}

/// Whether a unique index is still missing after [`build`], because rows of different moments of the snapshot are
/// there side by side until the stream has caught up.
fn awaits_stream(schema: &TableSchema, missing: &[&Index]) -> bool {
    schema.has_key() && missing.iter().any(|index| index.unique)
}

/// Builds what is missing of a table that the job has created, and notes unique indexes that have to wait.
pub(super) async fn build_or_postpone(
    shared: &Shared,
    session: &mut Session,
    schema: &Arc<TableSchema>,
    place: &TableId,
) -> Result<Vec<String>> {
    let built = build(session, schema, place).await?;
    if let Some(existing) = shared.read(session, place).await? {
        if awaits_stream(schema, &missing_indexes(schema, &existing)) {
            shared.postpone(schema.clone());
        } else {
            shared.done(schema);
        }
    }
    Ok(built)
}

/// Builds the indexes of one table after its snapshot and makes its target anew.
pub(super) async fn complete(
    shared: &Shared,
    session: &mut Session,
    schema: &Arc<TableSchema>,
) -> Result<()> {
    let place = shared.place(&schema.id)?;
    if !shared.progress()?.has_created(session, &place).await? {
        return Ok(());
    }
    build_or_postpone(shared, session, schema, &place).await?;
    let filled = shared.targets.filled(&schema.id);
    shared.refresh(session, schema, filled).await.map(drop)
}
