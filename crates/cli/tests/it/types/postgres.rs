//! Every type in PostgreSQL, as `docs/types-postgres.md` promises.

use canalis_testkit::{Server, ServerKind};
use mysql_async::prelude::Queryable;
use tokio_postgres::Client;

use super::{
    columns::{all_columns, create, insert},
    documented::{Cells, Form, bits, compare, expected, promises},
};
use crate::it::process::{Canalis, sink, source};

/// What the source makes of a column: the text that PostgreSQL is to have.
fn at_source(column: &str, form: Form, kind: ServerKind) -> String {
    match form {
        // Without the zeros of ZEROFILL and YEAR.
        Form::Number => format!("CAST({column} + 0 AS CHAR)"),
        Form::Decimal | Form::Day | Form::Seconds => format!("CAST({column} AS CHAR)"),
        Form::Bits(length) => format!("LPAD(CONV({column} + 0, 10, 2), {length}, '0')"),
        Form::Local | Form::Instant => format!("DATE_FORMAT({column}, '%Y-%m-%d %H:%i:%s.%f')"),
        // PostgreSQL prints no zeros at the end of a fraction.
        Form::Micros => format!("TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM CAST({column} AS CHAR)))"),
        Form::Text => format!("LOWER(HEX(CONVERT({column} USING utf8mb4)))"),
        Form::Bytes => format!("LOWER(HEX({column}))"),
        Form::Plane => format!("LOWER(HEX(ST_AsBinary({column})))"),
        // EWKB: the type has the flag 0x20000000, and the SRID follows it.
        Form::Earth => {
            assert_eq!(kind, ServerKind::MySql);
            let wkb = format!("LOWER(HEX(ST_AsBinary({column}, 'axis-order=long-lat')))");
            format!("CONCAT(LEFT({wkb}, 8), '20', 'e6100000', SUBSTR({wkb}, 11))")
        }
        Form::Single | Form::Double => unreachable!("numbers come as they are"),
    }
}

fn at_target(column: &str, form: Form) -> String {
    match form {
        Form::Local => format!("to_char({column}, 'YYYY-MM-DD HH24:MI:SS.US')"),
        Form::Instant => format!("to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')"),
        Form::Text => format!("encode(convert_to({column}::text, 'UTF8'), 'hex')"),
        Form::Bytes | Form::Plane | Form::Earth => format!("encode({column}, 'hex')"),
        _ => format!("{column}::text"),
    }
}

async fn found(client: &Client, schema: &str, kind: ServerKind) -> Cells {
    let mut cells = Cells::new();
    for (column, form, ..) in promises(kind) {
        let list = match form {
            Form::Single | Form::Double => column.to_owned(),
            _ => at_target(column, form),
        };
        let query = format!("SELECT id::bigint, {list} FROM \"{schema}\".everything ORDER BY 1");
        let rows = client.query(&query, &[]).await.unwrap_or_else(|e| panic!("{query}: {e}"));
        let text = |row: &tokio_postgres::Row| match form {
            Form::Single => row.get::<_, Option<f32>>(1).map(|n| bits(n.into())),
            Form::Double => row.get::<_, Option<f64>>(1).map(bits),
            _ => row.get(1),
        };
        cells.insert(column, rows.iter().map(|row| (row.get(0), text(row))).collect());
    }
    cells
}

/// Names and types of the table in the order of the source, and the columns that are not NULL.
async fn structure(client: &Client, schema: &str) -> (Vec<(String, String)>, Vec<String>) {
    let query = format!(
        "SELECT attname::text, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute \
         WHERE attrelid = '\"{schema}\".everything'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attname"
    );
    let rows = client.query(&query, &[]).await.unwrap();
    let strict = rows.iter().filter(|row| row.get(2)).map(|row| row.get(0)).collect();
    (rows.iter().map(|row| (row.get(0), row.get(1))).collect(), strict)
}

/// Rows 1–4 by snapshot and 101–104 by stream, of equal values, then a new key for each.
async fn copy(from: Option<&'static Server>) {
    let (Some(from), Some(to)) = (from, canalis_testkit::postgres()) else { return };
    let columns = all_columns(from.kind);
    let schema = from.create_database("typespg").await;
    let mut conn = from.mysql().await;
    create(&mut conn, &schema, &columns).await;
    insert(&mut conn, &schema, &columns, 1).await;
    let database = to.create_database("types").await;
    let client = to.postgres(&database).await;
    let number = async |query: &str| -> Option<i64> {
        // Until the tool has made the table, the query fails.
        client
            .query_one(&query.replace("everything", &format!("\"{schema}\".everything")), &[])
            .await
            .ok()?
            .get(0)
    };
    let pipeline = format!("{}{}", source(from, &format!("{schema}.everything"), ""), sink(to, &database));
    let directory = tempfile::tempdir().unwrap();
    let mut canalis = Canalis::start(directory.path(), &pipeline);
    let check = async |conn: &mut mysql_async::Conn| {
        let wanted = expected(conn, from.kind, &schema, at_source, |n| bits(n.into()), bits).await;
        compare(&found(&client, &schema, from.kind).await, &wanted);
    };
    canalis.until(async || number("SELECT COUNT(*) FROM everything").await == Some(4)).await;
    let (types, strict) = structure(&client, &schema).await;
    let mut promised: Vec<(String, String)> =
        promises(from.kind).iter().map(|(name, _, ty, _)| ((*name).to_owned(), (*ty).to_owned())).collect();
    promised.sort();
    assert_eq!(types, promised);
    check(&mut conn).await;

    insert(&mut conn, &schema, &columns, 101).await;
    canalis.until(async || number("SELECT COUNT(*) FROM everything").await == Some(8)).await;
    check(&mut conn).await;
    let row = |alias: &str| {
        let cells: Vec<String> = columns.iter().map(|(name, ..)| format!("{alias}.{name}")).collect();
        format!("ROW({})::text", cells.join(", "))
    };
    let pairs = format!(
        "SELECT COUNT(*) FROM everything a JOIN everything b ON b.id = a.id + 100 WHERE {} = {}",
        row("a"),
        row("b")
    );
    assert_eq!(number(&pairs).await, Some(4), "snapshot and stream differ");

    conn.query_drop(format!("UPDATE {schema}.everything SET id = id + 1000")).await.unwrap();
    conn.query_drop(format!("UPDATE {schema}.everything SET c_bool = 5 WHERE id = 1103")).await.unwrap();
    conn.query_drop(format!("INSERT INTO {schema}.everything (id) VALUES (9999)")).await.unwrap();
    let done = "SELECT COUNT(*) FILTER (WHERE id > 1000 AND (id <> 1103 OR c_bool = 5)) - \
                COUNT(*) FILTER (WHERE id < 1000) FROM everything";
    canalis.until(async || number(done).await == Some(9)).await;
    check(&mut conn).await;
    assert!(canalis.stop().success(), "{}", canalis.log());
    // The key is made when the snapshot is in.
    assert_eq!(strict, ["id"]);
    let key = format!(
        "SELECT COUNT(*) FROM information_schema.table_constraints WHERE table_schema = '{schema}' \
         AND constraint_type = 'PRIMARY KEY'"
    );
    assert_eq!(number(&key).await, Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_type_of_mariadb_is_in_postgres_as_documented() {
    copy(canalis_testkit::mariadb()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_type_of_mysql_is_in_postgres_as_documented() {
    copy(canalis_testkit::mysql()).await;
}
