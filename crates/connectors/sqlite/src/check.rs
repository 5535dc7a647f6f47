//! Owns what `canalis check` finds out about the file: directory, rights, and whether tables fit.

use std::{path::Path, sync::Arc};

use canalis_connector_api::Finding;
use canalis_types::{Result, TableSchema};
use rusqlite::Connection;

use crate::{catalog, database::Database, ddl, error::to_error, target::Target};

/// Looks at the file and at every table.
pub async fn check(path: &Path, tables: &[Arc<TableSchema>]) -> Vec<Finding> {
    let about = subject(&path.display().to_string());
    if !path.exists() {
        let directory = match path.parent() {
            Some(directory) if !directory.as_os_str().is_empty() => directory,
            _ => Path::new("."),
        };
        if !directory.is_dir() {
            let remedy = format!("mkdir -p {}", directory.display());
            return vec![Finding::error(about, "the directory does not exist", remedy)];
        }
        let mut findings = vec![Finding::ok(about, "the file will be created")];
        for schema in tables {
            findings.push(match ddl::create_table(schema) {
                Ok(_) => Finding::ok(table_subject(schema), "will be created"),
                Err(error) => table_error(schema, &error),
            });
        }
        return findings;
    }
    let tables = tables.to_vec();
    let looked = match Database::open(path).await {
        Ok(database) => database.call(move |connection| look(connection, &tables)).await,
        Err(error) => Err(error),
    };
    match looked {
        Ok(mut findings) => {
            findings.insert(0, Finding::ok(about, "the file can be written"));
            findings
        }
        Err(error) => {
            let remedy = "check that the file is an SQLite database and that this account may write it and its directory";
            vec![Finding::error(about, error.to_string(), remedy)]
        }
    }
}

fn subject(what: &str) -> String {
    format!("sink sqlite: {what}")
}

fn table_subject(schema: &TableSchema) -> String {
    subject(&format!("table {}", schema.id))
}

fn table_error(schema: &TableSchema, error: &canalis_types::Error) -> Finding {
    let remedy = "change the target table, or send the rows to another table by a route";
    Finding::error(table_subject(schema), error.to_string(), remedy)
}

fn look(connection: &Connection, tables: &[Arc<TableSchema>]) -> Result<Vec<Finding>> {
    // Takes the write lock for a moment: rights and a foreign owner show at once.
    connection
        .execute_batch("BEGIN IMMEDIATE; ROLLBACK")
        .map_err(|e| to_error("taking the write lock", e))?;
    let mut findings = Vec::new();
    for schema in tables {
        match table(connection, schema) {
            Ok(mut found) => findings.append(&mut found),
            Err(error) => findings.push(table_error(schema, &error)),
        }
    }
    Ok(findings)
}

fn table(connection: &Connection, schema: &TableSchema) -> Result<Vec<Finding>> {
    let about = table_subject(schema);
    let Some(actual) = catalog::load(connection, &schema.id.table)? else {
        ddl::create_table(schema)?;
        return Ok(vec![Finding::ok(about, "will be created")]);
    };
    ddl::check_name(&schema.id)?;
    let (_, notes) = Target::join(schema, &actual)?;
    if notes.is_empty() {
        return Ok(vec![Finding::ok(about, "exists and fits")]);
    }
    let warn = |note| Finding::warning(about.clone(), note, "see docs/types-sqlite.md");
    Ok(notes.into_iter().map(warn).collect())
}
