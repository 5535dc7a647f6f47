//! Owns the look at the live target before a job runs.

use std::{collections::BTreeSet, sync::Arc};

use canalis_connector_api::Finding;
use canalis_types::{Error, Result, TableSchema};

use super::{
    config::{ChangeLog, LoadData},
    existing::read_table,
    prepare,
    session::Session,
    shared::Shared,
};
use crate::quote;

/// Packets below this size make wide rows fail.
const SMALL_PACKET: usize = 16 << 20;

/// Findings about the server and each table. Never fails.
pub(super) async fn check(shared: &Shared, tables: &[Arc<TableSchema>]) -> Vec<Finding> {
    let address = shared.config.endpoint.address();
    let mut session = match shared.session().await {
        Ok(session) => session,
        Err(error) => {
            return vec![Finding::error(
                "sink mysql: connection",
                error.to_string(),
                "check `hostname`, `port`, `username` and `password`, and that the server is up",
            )];
        }
    };
    let facts = session.facts.clone();
    let mut findings = vec![Finding::ok(
        "sink mysql: connection",
        format!("{address} answers as {}", facts.info.version_text),
    )];
    if shared.config.load_data == LoadData::Auto && !facts.load_data {
        findings.push(Finding::warning(
            "sink mysql: local_infile",
            "LOAD DATA LOCAL is off, so tables are filled by INSERT, which costs the server about twice as much",
            "SET GLOBAL local_infile = ON",
        ));
    }
    let packet = facts.max_allowed_packet;
    findings.push(if packet < SMALL_PACKET {
        Finding::warning(
            "sink mysql: max_allowed_packet",
            format!("rows whose statement is larger than {packet} bytes are refused"),
            "SET GLOBAL max_allowed_packet = 67108864",
        )
    } else {
        Finding::ok("sink mysql: max_allowed_packet", format!("{packet} bytes"))
    });
    if shared.config.change_log == ChangeLog::Skipped {
        findings.push(Finding::warning(
            "sink mysql: sink.binlog",
            "rows are kept out of the target's change log",
            "leave it so only when nothing replicates from the target",
        ));
    }
    match rights(shared, &mut session, tables).await {
        Ok(found) => findings.extend(found),
        Err(error) => findings.push(problem("sink mysql: rights", &error)),
    }
    for schema in tables {
        let subject = format!("sink mysql: table {}", schema.id);
        match prepare::plan(shared, &mut session, schema).await {
            Ok(plan) => {
                let message = if plan.statements.is_empty() { "exists and fits" } else { "will be created" };
                findings.push(Finding::ok(&subject, message));
                findings.extend(
                    plan.notes.into_iter().map(|note| {
                        Finding::warning(&subject, note, "change the target's column or accept it")
                    }),
                );
            }
            Err(error) => findings.push(problem(&subject, &error)),
        }
    }
    shared.keep(session);
    findings
}

fn problem(subject: &str, error: &Error) -> Finding {
    Finding::error(subject, error.to_string(), format!("see docs/errors/{}.md", error.code()))
}

/// Tries the rights on a table of its own in each database, because grants come in too many forms to be read.
async fn rights(shared: &Shared, session: &mut Session, tables: &[Arc<TableSchema>]) -> Result<Vec<Finding>> {
    let mut databases = BTreeSet::new();
    for schema in tables {
        databases.extend(shared.place(&schema.id)?.schema);
    }
    databases.extend(shared.config.database.clone());
    let mut findings = Vec::new();
    for database in databases {
        let subject = format!("sink mysql: rights on {database}");
        let there: Vec<u8> = session
            .ask(
                "looking for the database",
                &format!(
                    "SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = {}",
                    quote::text(&database)
                ),
            )
            .await?;
        if there.is_empty() {
            findings.push(Finding::warning(
                &subject,
                "the database is not there and will be created",
                format!("CREATE DATABASE {}, or GRANT CREATE ON *.* to the account", quote::ident(&database)),
            ));
            continue;
        }
        findings.push(match try_rights(session, &database).await {
            Ok(()) => Finding::ok(&subject, "CREATE, ALTER, INDEX, SELECT, INSERT, UPDATE, DELETE, DROP"),
            Err(error) => Finding::error(
                &subject,
                error.to_string(),
                format!(
                    "GRANT CREATE, ALTER, INDEX, SELECT, INSERT, UPDATE, DELETE, DROP ON {}.* TO the account",
                    quote::ident(&database)
                ),
            ),
        });
    }
    Ok(findings)
}

async fn try_rights(session: &mut Session, database: &str) -> Result<()> {
    let name = "canalis_check";
    if read_table(session, database, name).await?.is_some() {
        // Left by a check that was interrupted, or of another one that runs now.
        return Ok(());
    }
    let table = format!("{}.{name}", quote::ident(database));
    let steps = [
        format!("CREATE TABLE {table} (id INT PRIMARY KEY, v INT) ENGINE=InnoDB"),
        format!("ALTER TABLE {table} ADD INDEX i (v)"),
        format!("INSERT INTO {table} VALUES (1, 1)"),
        format!("UPDATE {table} SET v = 2"),
        format!("DELETE FROM {table}"),
    ];
    let mut result = Ok(());
    for step in &steps {
        if result.is_ok() {
            result = session.execute("trying the account's rights", step).await;
        }
    }
    let dropped =
        session.execute("removing the table of the check", &format!("DROP TABLE IF EXISTS {table}")).await;
    result.and(dropped)
}
