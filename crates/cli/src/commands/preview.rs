//! `canalis preview FILE --rows N`.

mod show;

use std::{collections::BTreeSet, path::PathBuf, process::ExitCode, sync::Arc};

use anyhow::Result;
use canalis_batch::ChangeBatch;
use canalis_connector_api::{DeadLetter, Decoded, PreviewRecord, SplitMode};
use canalis_transforms::{TableTransform, Transforms};
use canalis_types::TableSchema;
use clap::Args;
use serde_json::json;

use crate::{
    display::Output,
    pipeline::{Loaded, load, transforms},
    registry::registry,
};

/// Arguments of `canalis preview`.
#[derive(Args)]
pub struct PreviewArguments {
    /// Pipeline file, YAML or JSON.
    file: PathBuf,
    /// Records to show.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rows: u16,
}

/// One record on its whole way.
struct Journey {
    record: PreviewRecord,
    /// Rows after transforms and routes.
    transformed: Vec<ChangeBatch>,
    /// Changes that a filter leaves out.
    filtered: u64,
    /// What the sink would do, with what it would do before the first row of a table.
    statements: Vec<String>,
    /// Rows that transforms or the sink refuse.
    refused: Vec<DeadLetter>,
    /// The error by which the job would stop here.
    stop: Option<canalis_types::Error>,
}

/// Shows records of the source on their way to the sink; nothing is written. Fails when one of them would stop the job.
pub async fn preview(arguments: PreviewArguments, output: &Output) -> Result<ExitCode> {
    let loaded = load(&arguments.file, &registry())?;
    let records = loaded.source.preview(usize::from(arguments.rows)).await?;
    let mut planner = Planner::new(&loaded, &records).await?;
    let mut journeys = Vec::with_capacity(records.len());
    for record in records {
        journeys.push(planner.travel(record).await?);
    }
    let stops = journeys.iter().any(|journey| journey.stop.is_some());
    let whole = json!({
        "name": loaded.plan.name,
        "source": loaded.plan.source.connector,
        "sink": loaded.plan.sink.connector,
        "records": journeys.iter().map(show::json).collect::<Vec<_>>(),
    });
    output.value(&whole, || {
        println!(
            "pipeline {}: {} → {}, nothing is written",
            loaded.plan.name, loaded.plan.source.connector, loaded.plan.sink.connector
        );
        if journeys.is_empty() {
            println!("\nthe source has no records");
        }
        for (index, journey) in journeys.iter().enumerate() {
            print!("\n{}", show::text(journey, index + 1, journeys.len()));
        }
    })?;
    Ok(if stops { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Plans transforms as a job does, and asks the sink.
struct Planner<'a> {
    loaded: &'a Loaded,
    transforms: Transforms,
    tables: Vec<Arc<TableTransform>>,
    /// Tables of the sink whose making has been shown.
    made: BTreeSet<canalis_types::TableId>,
}

impl<'a> Planner<'a> {
    async fn new(loaded: &'a Loaded, records: &[PreviewRecord]) -> Result<Self> {
        let transforms = transforms(loaded)?;
        let mut schemas = loaded.source.tables().await?;
        // A message may know a table better than the sample that was taken.
        for schema in records.iter().flat_map(batches).map(ChangeBatch::schema) {
            if !schemas.iter().any(|known| known.id == schema.id) {
                schemas.push(schema.clone());
            }
        }
        let tables = if schemas.is_empty() { Vec::new() } else { transforms.plan_all(&schemas)? };
        Ok(Self {
            loaded,
            transforms,
            tables: tables.into_iter().map(Arc::new).collect(),
            made: BTreeSet::new(),
        })
    }

    async fn travel(&mut self, record: PreviewRecord) -> Result<Journey> {
        let mut journey = Journey {
            record,
            transformed: Vec::new(),
            filtered: 0,
            statements: Vec::new(),
            refused: Vec::new(),
            stop: None,
        };
        let decoded: Vec<ChangeBatch> = batches(&journey.record).cloned().collect();
        for batch in &decoded {
            if let Err(error) = self.batch(batch, &mut journey).await {
                journey.stop = Some(error);
                break;
            }
        }
        Ok(journey)
    }

    async fn batch(&mut self, batch: &ChangeBatch, journey: &mut Journey) -> canalis_types::Result<()> {
        let applied = self.transform(batch.schema())?.apply(batch)?;
        journey.filtered += applied.filtered;
        journey.refused.extend(applied.rejected);
        for batch in applied.batches {
            if batch.num_rows() > 0 {
                let shown = self.sink(&batch, journey.record.mode).await;
                journey.transformed.push(batch);
                let (statements, refused) = shown?;
                journey.statements.extend(statements);
                journey.refused.extend(refused);
            }
        }
        Ok(())
    }

    /// The transform of exactly this structure.
    fn transform(&mut self, schema: &Arc<TableSchema>) -> canalis_types::Result<Arc<TableTransform>> {
        let same = |table: &&Arc<TableTransform>| *table.source() == *schema;
        if let Some(known) = self.tables.iter().find(same) {
            return Ok(known.clone());
        }
        // An older or newer structure of a table that is known.
        let current: Vec<&TableTransform> = self.tables.iter().map(|table| &**table).collect();
        let next = self.transforms.replan(&current, schema)?;
        for table in next.tables.into_iter().map(Arc::new) {
            self.tables.retain(|known| known.source().id != table.source().id);
            self.tables.push(table);
        }
        let planned = self.tables.iter().find(same).cloned();
        planned.ok_or_else(|| canalis_types::Error::internal("a planned table is missing"))
    }

    async fn sink(
        &mut self,
        batch: &ChangeBatch,
        mode: SplitMode,
    ) -> canalis_types::Result<(Vec<String>, Vec<DeadLetter>)> {
        let schema = batch.schema();
        let mut statements = Vec::new();
        if self.made.insert(schema.id.clone()) {
            statements = self.loaded.sink.plan_table(schema).await?.statements;
        }
        let preview = self.loaded.sink.preview(batch, mode).await?;
        statements.extend(preview.statements);
        Ok((statements, preview.refused))
    }
}

fn batches(record: &PreviewRecord) -> impl Iterator<Item = &ChangeBatch> {
    match &record.decoded {
        Decoded::Rows(batches) => batches.iter(),
        Decoded::Undecodable(_) => [].iter(),
    }
}
