//! Owns what `canalis check` finds out about the server: reachable, version, rights, and whether tables fit.

use std::sync::Arc;

use canalis_connector_api::Finding;
use canalis_types::{Result, TableSchema};
use tokio_postgres::Client;

use crate::{
    catalog,
    ddl::{self, KeyTime},
    error::to_error,
    quote::ident,
    sink::Shared,
    target::Target,
};

/// Oldest version whose catalog and statements are used: 12.0.
const OLDEST_VERSION: i32 = 120_000;

/// Looks at the server and at every table.
pub async fn check(shared: &Shared, tables: &[Arc<TableSchema>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let endpoint = &shared.options.endpoint;
    let client = match endpoint.connect().await {
        Ok(client) => client,
        Err(error) => {
            findings.push(Finding::error(
                subject("connection"),
                error.to_string(),
                "check hostname, port, username, password and database, and that pg_hba.conf lets this host in",
            ));
            return findings;
        }
    };
    findings.push(Finding::ok(subject("connection"), endpoint.address()));
    if let Err(error) = server(&client, shared, &mut findings).await {
        findings.push(Finding::error(subject("server"), error.to_string(), "see the message"));
        return findings;
    }
    for schema in tables {
        match table(&client, shared, schema).await {
            Ok(mut found) => findings.append(&mut found),
            Err(error) => findings.push(Finding::error(
                subject(&format!("table {}", schema.id)),
                error.to_string(),
                "change the target table, or send the rows to another table by a route",
            )),
        }
    }
    findings
}

fn subject(what: &str) -> String {
    format!("sink postgres: {what}")
}

async fn server(client: &Client, shared: &Shared, findings: &mut Vec<Finding>) -> Result<()> {
    let version = catalog::server_version(client).await?;
    let text = format!("{}.{}", version / 10_000, version % 10_000);
    findings.push(if version >= OLDEST_VERSION {
        Finding::ok(subject("version"), text)
    } else {
        Finding::error(subject("version"), text, "use PostgreSQL 12 or later")
    });
    let fail = |e| to_error("asking for settings and rights", e);
    let row = client
        .query_one(
            "SELECT pg_is_in_recovery(), has_database_privilege(current_database(), 'TEMP'), \
             has_database_privilege(current_database(), 'CREATE'), current_user::text, current_database()::text",
            &[],
        )
        .await
        .map_err(fail)?;
    let (standby, temporary, create): (bool, bool, bool) = (row.get(0), row.get(1), row.get(2));
    let (role, database): (String, String) = (row.get(3), row.get(4));
    if standby {
        findings.push(Finding::error(subject("mode"), "the server is a standby", "connect to the primary"));
    }
    let grant = |right: &str| format!("GRANT {right} ON DATABASE {} TO {}", ident(&database), ident(&role));
    if !temporary {
        let message = "the role may not make temporary tables, through which large windows are merged";
        findings.push(Finding::error(subject("rights"), message, grant("TEMPORARY")));
    }
    let schema = shared.options.schema.as_deref().unwrap_or("public");
    findings.push(schema_right(client, schema, create, &grant("CREATE"), &role).await?);
    Ok(())
}

/// Whether tables can be made in a schema, which may have to be made first.
async fn schema_right(
    client: &Client,
    schema: &str,
    create: bool,
    grant: &str,
    role: &str,
) -> Result<Finding> {
    let about = subject(&format!("schema {schema}"));
    let row = client
        .query_opt(
            "SELECT has_schema_privilege(oid, 'CREATE') FROM pg_namespace WHERE nspname = $1",
            &[&schema],
        )
        .await
        .map_err(|e| to_error(&format!("looking up schema {schema}"), e))?;
    Ok(match row.map(|r| r.get::<_, bool>(0)) {
        Some(true) => Finding::ok(about, "tables can be created"),
        Some(false) => Finding::error(
            about,
            "the role may not create tables",
            format!("GRANT CREATE, USAGE ON SCHEMA {} TO {}", ident(schema), ident(role)),
        ),
        None if create => Finding::ok(about, "will be created"),
        None => Finding::error(about, "it is missing and the role may not create it", grant.to_owned()),
    })
}

async fn table(client: &Client, shared: &Shared, schema: &TableSchema) -> Result<Vec<Finding>> {
    let options = &shared.options;
    let about = subject(&format!("table {}", schema.id));
    let name = ddl::qualified(&schema.id, options)?;
    let mut findings = Vec::new();
    let Some(actual) = catalog::load(client, &name).await? else {
        ddl::create_table(schema, KeyTime::Now, options)?;
        let (namespace, _) = ddl::place(&schema.id, options)?;
        let row = client
            .query_one(
                "SELECT has_database_privilege(current_database(), 'CREATE'), current_user::text, \
                 current_database()::text",
                &[],
            )
            .await
            .map_err(|e| to_error("asking for rights", e))?;
        let (create, role, database): (bool, String, String) = (row.get(0), row.get(1), row.get(2));
        let grant = format!("GRANT CREATE ON DATABASE {} TO {}", ident(&database), ident(&role));
        let right = schema_right(client, &namespace, create, &grant, &role).await?;
        return Ok(match right.remedy {
            Some(remedy) => {
                vec![Finding::error(about, format!("{}: {}", right.subject, right.message), remedy)]
            }
            None => vec![Finding::ok(about, format!("{name} will be created"))],
        });
    };
    let (_, notes) = Target::join(schema, &name, &actual, options)?;
    let rights: bool = client
        .query_one(
            "SELECT has_table_privilege(to_regclass($1::text), 'SELECT') \
             AND has_table_privilege(to_regclass($1::text), 'INSERT') \
             AND has_table_privilege(to_regclass($1::text), 'UPDATE') \
             AND has_table_privilege(to_regclass($1::text), 'DELETE')",
            &[&name],
        )
        .await
        .map_err(|e| to_error(&format!("asking for rights on {name}"), e))?
        .get(0);
    if !rights {
        let remedy = format!(
            "GRANT SELECT, INSERT, UPDATE, DELETE ON {name} TO {}",
            ident(&options.endpoint.username)
        );
        findings.push(Finding::error(about.clone(), "a right on the table is missing", remedy));
    }
    for note in notes {
        findings.push(Finding::warning(about.clone(), note, "see docs/types-postgres.md"));
    }
    if findings.is_empty() {
        findings.push(Finding::ok(about, format!("{name} exists and fits")));
    }
    Ok(findings)
}
