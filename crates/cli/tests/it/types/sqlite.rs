//! Every type in SQLite, as `docs/types-sqlite.md` promises.

use std::path::Path;

use canalis_testkit::{Server, ServerKind};
use mysql_async::prelude::Queryable;
use rusqlite::{Connection, OpenFlags};

use super::{
    columns::{all_columns, create, insert},
    documented::{Cells, Form, bits, compare, expected, promises},
};
use crate::it::process::{Canalis, source};

/// What the source makes of a column: the storage class and text that SQLite is to have.
fn at_source(column: &str, form: Form, _: ServerKind) -> String {
    let text = format!("CAST({column} AS CHAR)");
    match form {
        // Numbers above 2^63 − 1 are text.
        Form::Number | Form::Bits(_) => format!(
            "CONCAT(IF({column} + 0 > 9223372036854775807, 'text ', 'integer '), CAST({column} + 0 AS CHAR))"
        ),
        Form::Decimal | Form::Day | Form::Local | Form::Seconds | Form::Micros => {
            format!("CONCAT('text ', {text})")
        }
        Form::Instant => format!("CONCAT('text ', {text}, 'Z')"),
        Form::Text => format!("CONCAT('text ', HEX(CONVERT({column} USING utf8mb4)))"),
        // The stored form of a geometry is SRID and WKB.
        Form::Bytes | Form::Plane | Form::Earth => format!("CONCAT('blob ', HEX({column}))"),
        Form::Single | Form::Double => unreachable!("numbers come as they are"),
    }
}

/// A single has the digits that are enough to tell it.
fn single(number: f32) -> String {
    double(number.to_string().parse().unwrap())
}

/// SQLite has no negative zero.
fn double(number: f64) -> String {
    bits(if number == 0.0 { 0.0 } else { number })
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(std::time::Duration::from_secs(10))?;
    Ok(connection)
}

fn found(path: &Path, kind: ServerKind) -> Cells {
    let connection = open(path).unwrap();
    let mut cells = Cells::new();
    for (column, form, ..) in promises(kind) {
        let list = match form {
            Form::Single | Form::Double => column.to_owned(),
            Form::Text | Form::Bytes | Form::Plane | Form::Earth => {
                format!("IIF({column} IS NULL, NULL, typeof({column}) || ' ' || hex({column}))")
            }
            _ => format!("typeof({column}) || ' ' || {column}"),
        };
        let mut statement =
            connection.prepare(&format!("SELECT id, {list} FROM everything ORDER BY id")).unwrap();
        let number = matches!(form, Form::Single | Form::Double);
        let rows = statement.query_map([], |row| {
            let text = if number { row.get::<_, Option<f64>>(1)?.map(bits) } else { row.get(1)? };
            Ok((row.get(0)?, text))
        });
        cells.insert(column, rows.unwrap().collect::<rusqlite::Result<_>>().unwrap());
    }
    cells
}

/// Rows 1–4 by snapshot and 101–104 by stream, of equal values, then a new key for each.
async fn copy(from: Option<&'static Server>) {
    let Some(from) = from else { return };
    let columns = all_columns(from.kind);
    let database = from.create_database("typeslite").await;
    let mut conn = from.mysql().await;
    create(&mut conn, &database, &columns).await;
    insert(&mut conn, &database, &columns, 1).await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("target.db");
    let pipeline = format!(
        "{}sink:\n  type: sqlite\n  path: {}\n",
        source(from, &format!("{database}.everything"), ""),
        path.display()
    );
    let mut canalis = Canalis::start(directory.path(), &pipeline);
    // Until the tool has made file and table, there is nothing.
    let number =
        |query: &str| open(&path).and_then(|c| c.query_row(query, [], |row| row.get::<_, i64>(0))).ok();
    let check = async |conn: &mut mysql_async::Conn| {
        let wanted = expected(conn, from.kind, &database, at_source, single, double).await;
        compare(&found(&path, from.kind), &wanted);
    };
    canalis.until(async || number("SELECT COUNT(*) FROM everything") == Some(4)).await;
    let mut types: Vec<(String, String)> = {
        let connection = open(&path).unwrap();
        let mut statement =
            connection.prepare("SELECT name, type FROM pragma_table_info('everything')").unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.collect::<rusqlite::Result<_>>().unwrap()
    };
    types.sort();
    let mut promised: Vec<(String, String)> =
        promises(from.kind).iter().map(|(name, _, _, ty)| ((*name).to_owned(), (*ty).to_owned())).collect();
    promised.sort();
    assert_eq!(types, promised);
    assert_eq!(number("SELECT strict FROM pragma_table_list WHERE name = 'everything'"), Some(1));
    let key =
        "SELECT SUM(pk * (name = 'id') + 10 * pk * (name <> 'id')) FROM pragma_table_info('everything')";
    assert_eq!(number(key), Some(1));
    check(&mut conn).await;

    insert(&mut conn, &database, &columns, 101).await;
    canalis.until(async || number("SELECT COUNT(*) FROM everything") == Some(8)).await;
    check(&mut conn).await;
    let row = |alias: &str| {
        let cells: Vec<String> = columns.iter().map(|(name, ..)| format!("quote({alias}.{name})")).collect();
        cells.join(" || '|' || ")
    };
    let pairs = format!(
        "SELECT COUNT(*) FROM everything a JOIN everything b ON b.id = a.id + 100 WHERE {} = {}",
        row("a"),
        row("b")
    );
    assert_eq!(number(&pairs), Some(4), "snapshot and stream differ");

    conn.query_drop(format!("UPDATE {database}.everything SET id = id + 1000")).await.unwrap();
    conn.query_drop(format!("UPDATE {database}.everything SET c_bool = 5 WHERE id = 1103")).await.unwrap();
    conn.query_drop(format!("INSERT INTO {database}.everything (id) VALUES (9999)")).await.unwrap();
    // There is one writer, and a reader sees whole transactions.
    canalis.until(async || number("SELECT COUNT(*) FROM everything WHERE id = 9999") == Some(1)).await;
    assert_eq!(number("SELECT COUNT(*) FROM everything WHERE id > 1000"), Some(9));
    check(&mut conn).await;
    assert!(canalis.stop().success(), "{}", canalis.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_type_of_mariadb_is_in_sqlite_as_documented() {
    copy(canalis_testkit::mariadb()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_type_of_mysql_is_in_sqlite_as_documented() {
    copy(canalis_testkit::mysql()).await;
}
