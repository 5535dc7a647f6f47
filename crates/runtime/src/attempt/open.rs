//! Opens source, sink and tables of an attempt, fresh or from a checkpoint.

use std::{collections::BTreeSet, sync::Arc};

use canalis_connector_api::{
    SinkContext, SinkRecovery, SourceContext, SourceRestore, SplitEnumerator, SplitMode, TablePlan,
};
use canalis_types::{Code, Error, Position, Result, TableId, TableSchema};

use super::Setup;
use crate::{checkpoint::Checkpoint, reader::TableTransforms, writer::Skip};

pub(super) type Opened =
    (Box<dyn SplitEnumerator>, Checkpoint, SinkRecovery, TableTransforms, Vec<Arc<TableSchema>>);

/// First start: the start position is durable before anything is read or written.
pub(super) async fn open_fresh(setup: &Setup<'_>, context: SourceContext, writers: usize) -> Result<Opened> {
    let enumerator = setup.source.open(context, None).await?;
    let (transforms, outputs) = plan_tables(setup, enumerator.as_ref())?;
    let tables: Vec<TableId> = outputs.iter().map(|o| o.id.clone()).collect();
    let sink_context =
        SinkContext { job: setup.job.to_owned(), writers, fresh: true, tables: tables.clone() };
    let recovery = setup.sink.open(&sink_context).await?;
    let mut checkpoint = Checkpoint::empty(setup.job, setup.connectors.clone());
    for output in &outputs {
        let plan = prepare_table(setup, output, true).await?;
        if !plan.statements.is_empty() {
            checkpoint.created.push(output.id.clone());
        }
    }
    checkpoint.source = enumerator.state();
    checkpoint.tables = tables;
    setup.store.save(&checkpoint)?;
    Ok((enumerator, checkpoint, recovery, transforms, outputs))
}

pub(super) async fn open_restored(
    setup: &Setup<'_>,
    context: SourceContext,
    writers: usize,
    checkpoint: Checkpoint,
) -> Result<Opened> {
    let sink_context =
        SinkContext { job: setup.job.to_owned(), writers, fresh: false, tables: checkpoint.tables.clone() };
    let recovery = setup.sink.open(&sink_context).await?;
    setup.sink.publish(&checkpoint.prepared).await?;
    let stream = checkpoint.running.iter().find(|s| s.mode == SplitMode::Stream);
    let from = stream.and_then(|s| s.position.as_ref());
    let mut cuts: Vec<Position> = (0..writers)
        .filter_map(|index| match skip_for(&checkpoint, &recovery, index) {
            Skip::Nothing => None,
            Skip::All(position) | Skip::Keyless(position) => Some(position),
        })
        .filter(|p| from.is_none_or(|from| p > from))
        .collect();
    cuts.sort();
    cuts.dedup();
    let restore = SourceRestore {
        state: checkpoint.source.clone(),
        running: checkpoint.running.clone(),
        done: recovery.done_splits.clone(),
        cuts,
    };
    let enumerator = setup.source.open(context, Some(restore)).await?;
    let (transforms, outputs) = plan_tables(setup, enumerator.as_ref())?;
    for output in &outputs {
        prepare_table(setup, output, !checkpoint.snapshot_complete).await?;
    }
    Ok((enumerator, checkpoint, recovery, transforms, outputs))
}

/// Prepares a table at the sink; creates it only if `create.table` is not excluded.
pub(super) async fn prepare_table(
    setup: &Setup<'_>,
    output: &Arc<TableSchema>,
    snapshot: bool,
) -> Result<TablePlan> {
    if !setup.schema_rules.accepted.contains("create.table") {
        let plan = setup.sink.plan_table(output).await?;
        if !plan.statements.is_empty() {
            return Err(Error::new(
                Code::TargetIncompatible,
                format!(
                    "table {} does not exist at the sink as it is needed, and `create.table` is excluded; needed: {}",
                    plan.table,
                    plan.statements.join("; ")
                ),
            ));
        }
    }
    setup.sink.prepare_table(output, snapshot).await
}

fn plan_tables(
    setup: &Setup<'_>,
    enumerator: &dyn SplitEnumerator,
) -> Result<(TableTransforms, Vec<Arc<TableSchema>>)> {
    let mut transforms = TableTransforms::new();
    let mut outputs: Vec<Arc<TableSchema>> = Vec::new();
    for transform in setup.transforms.plan_all(&enumerator.tables())? {
        outputs.extend(transform.outputs().iter().cloned());
        let id = transform.source().id.clone();
        let estimate = enumerator.estimate(&id).map(|e| e.rows);
        setup.progress.table(&id, |t| t.estimated_rows = estimate);
        transforms.insert(id, Arc::new(transform));
    }
    let mut seen = BTreeSet::new();
    outputs.retain(|o| seen.insert(o.id.clone()));
    Ok((transforms, outputs))
}

/// What writer `index` has to skip after a restore.
pub(super) fn skip_for(checkpoint: &Checkpoint, recovery: &SinkRecovery, index: usize) -> Skip {
    let Some(Some(position)) = recovery.positions.get(index) else { return Skip::Nothing };
    let stream = checkpoint.running.iter().find(|s| s.mode == SplitMode::Stream);
    if stream.and_then(|s| s.position.as_ref()).is_some_and(|from| position <= from) {
        return Skip::Nothing;
    }
    if index == 0 && recovery.other_writers {
        Skip::Keyless(position.clone())
    } else {
        Skip::All(position.clone())
    }
}
