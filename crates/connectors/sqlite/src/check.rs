//! Owns what `canalis check` finds out about the file: directory, rights, and whether tables fit.

use std::{
    fs::{self, File},
    io,
    path::Path,
    sync::Arc,
};

use canalis_connector_api::Finding;
use canalis_types::{Result, TableSchema};
use rusqlite::Connection;

use crate::{
    catalog,
    database::{Database, directory_of},
    ddl,
    error::to_error,
    target::Target,
};

/// Looks at the file and at every table.
pub async fn check(path: &Path, tables: &[Arc<TableSchema>]) -> Vec<Finding> {
    let about = subject(&path.display().to_string());
    if !path.exists() {
        let directory = closest(directory_of(path));
        if let Err(error) = probe(directory) {
            let text = format!("nothing can be created in {}: {error}", directory.display());
            let remedy = "correct `path`, or make a directory that the account of the job may write";
            return vec![Finding::error(about, text, remedy)];
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

/// A directory, or what there is of the way to it.
fn closest(directory: &Path) -> &Path {
    let found = directory.ancestors().find(|a| a.exists());
    found.filter(|a| !a.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether files can be created in a directory: tries one.
fn probe(directory: &Path) -> io::Result<()> {
    let probe = directory.join(format!(".canalis-check-{}", std::process::id()));
    File::create(&probe).and_then(|_| fs::remove_file(&probe))
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
