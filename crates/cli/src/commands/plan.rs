//! `canalis plan FILE`.

use std::{path::Path, process::ExitCode};

use anyhow::Result;
use serde_json::{Value, json};

use crate::{
    display::Output,
    pipeline::{load, outputs},
    registry::registry,
};

/// Shows what would be read and created.
pub async fn plan(file: &Path, output: &Output) -> Result<ExitCode> {
    let loaded = load(file, &registry())?;
    let mut tables = Vec::new();
    for (schema, targets) in outputs(&loaded).await? {
        for target in targets {
            let made = loaded.sink.plan_table(&target).await?;
            tables.push((schema.clone(), target, made));
        }
    }
    let side = |instance: &canalis_plan::ConnectorInstance| json!({ "type": instance.connector, "name": instance.name, "options": instance.options.masked() });
    let listed: Vec<Value> = tables
        .iter()
        .map(|(schema, target, made)| {
            json!({
                "source": schema.id.to_string(),
                "sink": made.table.to_string(),
                "primary-key": target.primary_key,
                "columns": target.columns.iter().map(|c| json!({
                    "name": c.name, "type": c.ty.to_string(), "nullable": c.nullable,
                })).collect::<Vec<_>>(),
                "statements": made.statements,
                "notes": made.notes,
            })
        })
        .collect();
    let whole = json!({
        "name": loaded.plan.name,
        "source": side(&loaded.plan.source),
        "sink": side(&loaded.plan.sink),
        "parallelism": loaded.plan.runtime.parallelism,
        "tables": listed,
    });
    output.value(&whole, || {
        println!(
            "pipeline {}: {} → {}",
            loaded.plan.name, loaded.plan.source.connector, loaded.plan.sink.connector
        );
        for (schema, _, made) in &tables {
            println!("\n{} → {}", schema.id, made.table);
            if made.statements.is_empty() {
                println!("  exists and fits");
            }
            for statement in &made.statements {
                println!("  {}", statement.replace('\n', "\n  "));
            }
            for note in &made.notes {
                println!("  note: {note}");
            }
        }
    })?;
    Ok(ExitCode::SUCCESS)
}
