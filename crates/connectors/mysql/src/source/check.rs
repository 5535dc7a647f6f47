//! Owns what `check` looks at on the live source, and which of it a start insists on.

use canalis_connector_api::{Finding, Severity};
use canalis_types::{Code, Error, Result};
use mysql_async::{Conn, Row, prelude::Queryable};

use super::{mapping, place::BinlogServer, session::connect};
use crate::{
    Flavor,
    catalog::{self, Match},
    options::SourceOptions,
    quote,
};

/// Shortest binlog retention that is not worth a warning, seconds.
const SHORT_RETENTION: u64 = 24 * 3600;
/// Tables whose structure and rights are looked at one by one.
const TABLES_LOOKED_AT: usize = 500;

fn subject(what: &str) -> String {
    format!("source mysql: {what}")
}

/// Looks at everything. Never fails; problems are findings.
pub(crate) async fn check(options: &SourceOptions) -> Vec<Finding> {
    let (mut conn, info) = match connect(options).await {
        Ok(connected) => connected,
        Err(error) => {
            return vec![Finding::error(
                subject("connection"),
                error.to_string(),
                "check hostname, port, username and password, and that the server is up",
            )];
        }
    };
    let server = BinlogServer { endpoint: &options.endpoint, info: &info };
    let mut findings = vec![version(&server, options)];
    if options.startup.has_stream() {
        findings.extend(settings(&server, &mut conn, options).await);
        findings.push(rights(&server, &mut conn, options).await);
    }
    let matches =
        catalog::discover(&options.endpoint, &mut conn, &options.include, options.exclude.as_ref()).await;
    match matches {
        Ok(matches) => findings.extend(tables(&server, &mut conn, options, &matches).await),
        Err(error) => findings.push(Finding::error(
            subject("tables"),
            error.message(),
            "correct `tables`, or grant SELECT on the tables to the account",
        )),
    }
    findings
}

/// The settings without which a stream would be wrong.
///
/// # Errors
/// CNL-2003 with the remedy, for the first that is not as it must be.
pub(crate) async fn require(
    server: &BinlogServer<'_>,
    conn: &mut Conn,
    options: &SourceOptions,
) -> Result<()> {
    for finding in settings(server, conn, options).await {
        if finding.severity == Severity::Error {
            let remedy = finding.remedy.unwrap_or_default();
            return Err(Error::new(Code::SourceMisconfigured, format!("{}; {remedy}", finding.message)));
        }
    }
    Ok(())
}

fn version(server: &BinlogServer<'_>, options: &SourceOptions) -> Finding {
    let info = server.info;
    let text = format!("{} at {}", info.version_text, options.endpoint.address());
    let oldest = if info.flavor == Flavor::MySql { (8, 0, 0) } else { (10, 5, 0) };
    if info.version >= oldest {
        Finding::ok(subject("server"), text)
    } else {
        Finding::warning(subject("server"), text, "use MySQL 8 or later, or MariaDB 10.11 or later")
    }
}

async fn settings(server: &BinlogServer<'_>, conn: &mut Conn, options: &SourceOptions) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut values = std::collections::HashMap::new();
    for name in [
        "log_bin",
        "binlog_format",
        "binlog_row_image",
        "binlog_row_metadata",
        "binlog_row_value_options",
        "binlog_expire_logs_seconds",
        "gtid_mode",
        "server_id",
        "time_zone",
        "system_time_zone",
    ] {
        match server.variable(conn, name).await {
            Ok(value) => drop(values.insert(name, value)),
            Err(error) => {
                findings.push(Finding::error(subject(name), error.to_string(), "check the connection"));
                return findings;
            }
        }
    }
    let value = |name: &str| values.get(name).cloned().flatten();
    let is = |name: &str, wanted: &[&str]| {
        value(name).is_none_or(|v| wanted.iter().any(|w| v.eq_ignore_ascii_case(w)))
    };
    let shown = |name: &str| format!("{name} is {}", value(name).unwrap_or_else(|| "not known".into()));
    let mut must = |name: &str, wanted: &[&str], remedy: &str| {
        findings.push(if is(name, wanted) {
            Finding::ok(subject(name), shown(name))
        } else {
            Finding::error(subject(name), shown(name), remedy)
        });
    };
    must("log_bin", &["ON", "1"], "set log_bin in the server's configuration and restart it");
    must("binlog_format", &["ROW"], "SET GLOBAL binlog_format = 'ROW', and in the server's configuration");
    must(
        "binlog_row_image",
        &["FULL"],
        "SET GLOBAL binlog_row_image = 'FULL', and in the server's configuration",
    );
    must("binlog_row_value_options", &[""], "SET GLOBAL binlog_row_value_options = ''");
    if value("server_id").as_deref() == Some(options.server_id.to_string().as_str()) {
        findings.push(Finding::error(
            subject("server-id"),
            format!("`server-id` {} is the id of the server itself", options.server_id),
            "choose an id that no server or replica has",
        ));
    } else if value("server_id").as_deref() == Some("0") {
        findings.push(Finding::error(subject("server_id"), "server_id is 0", "SET GLOBAL server_id = 1"));
    }
    if !is("binlog_row_metadata", &["FULL"]) {
        findings.push(Finding::warning(
            subject("binlog_row_metadata"),
            shown("binlog_row_metadata"),
            "SET GLOBAL binlog_row_metadata = 'FULL', so that rows of another structure are told by column names",
        ));
    }
    if let Some(seconds) = value("binlog_expire_logs_seconds").and_then(|s| s.parse::<u64>().ok())
        && (1..SHORT_RETENTION).contains(&seconds)
    {
        findings.push(Finding::warning(
            subject("binlog_expire_logs_seconds"),
            format!("the binlog is kept for {seconds} s; a job that is stopped longer loses its position"),
            "SET GLOBAL binlog_expire_logs_seconds = 604800",
        ));
    }
    if server.info.flavor == Flavor::MySql && !is("gtid_mode", &["ON"]) {
        findings.push(Finding::warning(
            subject("gtid_mode"),
            format!(
                "{}; positions are files and offsets, and the place of a snapshot is certain on a quiet server only",
                shown("gtid_mode")
            ),
            "turn GTIDs on: enforce_gtid_consistency = ON, gtid_mode = ON",
        ));
    }
    let zone = value("time_zone").unwrap_or_default();
    let zone = if zone == "SYSTEM" { value("system_time_zone").unwrap_or_default() } else { zone };
    findings.push(Finding::ok(
        subject("time_zone"),
        format!("the server's zone is {zone}; TIMESTAMP values are read in UTC whatever it is"),
    ));
    findings
}

async fn rights(server: &BinlogServer<'_>, conn: &mut Conn, options: &SourceOptions) -> Finding {
    let grants: Vec<String> = match conn.query::<Row, _>("SHOW GRANTS").await {
        Ok(rows) => rows.into_iter().filter_map(|mut row| row.take(0)).collect(),
        Err(error) => {
            return Finding::error(
                subject("rights"),
                error.to_string(),
                "allow the account to see its grants",
            );
        }
    };
    let global = |right: &str| {
        grants.iter().map(|g| g.to_ascii_uppercase()).any(|g| {
            let Some((rights, _)) = g.split_once(" ON *.*") else { return false };
            rights.contains("ALL PRIVILEGES") || rights.contains(right)
        })
    };
    let (position_right, sees_positions) = match server.info.flavor {
        Flavor::MySql => ("REPLICATION CLIENT", global("REPLICATION CLIENT")),
        Flavor::MariaDb => ("BINLOG MONITOR", global("BINLOG MONITOR") || global("REPLICATION CLIENT")),
    };
    let mut missing = Vec::new();
    if !(global("REPLICATION SLAVE") || global("REPLICATION REPLICA")) {
        missing.push("REPLICATION SLAVE");
    }
    // A role may give the right without standing in the list.
    if !sees_positions && server.end(conn).await.is_err() {
        missing.push(position_right);
    }
    if missing.is_empty() {
        Finding::ok(subject("rights"), "the account may read the binlog")
    } else {
        let list = missing.join(", ");
        Finding::error(
            subject("rights"),
            format!("the account `{}` lacks {list}", options.endpoint.username),
            format!("GRANT {list} ON *.* TO '{}'", options.endpoint.username),
        )
    }
}

async fn tables(
    server: &BinlogServer<'_>,
    conn: &mut Conn,
    options: &SourceOptions,
    matches: &[Match],
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mapping = mapping(options, server.info);
    let (mut keyless, mut generated, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
    let mut other_engines = Vec::new();
    for found in matches.iter().take(TABLES_LOOKED_AT) {
        let id = &found.id;
        match catalog::load(&options.endpoint, conn, id, mapping).await {
            Ok(table) => {
                if !table.schema.has_key() {
                    keyless.push(id.to_string());
                }
                if table
                    .schema
                    .columns
                    .iter()
                    .any(|c| c.native.as_ref().is_some_and(|n| n.generated.is_some()))
                {
                    generated.push(id.to_string());
                }
            }
            Err(error) => {
                findings.push(Finding::error(
                    subject(&format!("table {id}")),
                    error.message(),
                    "leave the table out with `tables.exclude`, or alter it",
                ));
                continue;
            }
        }
        if conn.query_drop(format!("SELECT 1 FROM {} LIMIT 0", quote::table(id))).await.is_err() {
            unreadable.push(id.to_string());
        }
        let engine: std::result::Result<Option<Option<String>>, _> = conn
            .query_first(format!(
                "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {}",
                quote::text(id.schema.as_deref().unwrap_or_default()),
                quote::text(&id.table)
            ))
            .await;
        if let Ok(Some(Some(engine))) = engine
            && !["innodb", "rocksdb"].contains(&engine.to_lowercase().as_str())
        {
            other_engines.push(format!("{id} ({engine})"));
        }
    }
    findings.push(Finding::ok(subject("tables"), format!("{} tables match", matches.len())));
    let list = |names: &[String]| {
        let shown: Vec<&str> = names.iter().take(10).map(String::as_str).collect();
        let more = names.len().saturating_sub(shown.len());
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{rest}", shown.join(", "))
    };
    if !unreadable.is_empty() {
        findings.push(Finding::error(
            subject("rights"),
            format!("the account may not read {}", list(&unreadable)),
            format!("GRANT SELECT ON the tables TO '{}'", options.endpoint.username),
        ));
    }
    if !keyless.is_empty() {
        findings.push(Finding::warning(
            subject("keys"),
            format!(
                "without a primary key: {}. Such a table is read in one piece, which is read again as a whole after \
                 a crash; its rows arrive once in sinks with transactions, and an update or delete concerns one of \
                 several equal rows",
                list(&keyless)
            ),
            "add a primary key where you can",
        ));
    }
    if !other_engines.is_empty() && options.startup.has_snapshot() {
        findings.push(Finding::warning(
            subject("engine"),
            format!(
                "no consistent view of {}: changes made during the snapshot may be missed or repeated",
                list(&other_engines)
            ),
            "ALTER TABLE … ENGINE = InnoDB",
        ));
    }
    if !generated.is_empty() {
        findings.push(Finding::ok(
            subject("generated columns"),
            format!("values of generated columns are carried like others: {}", list(&generated)),
        ));
    }
    findings
}
