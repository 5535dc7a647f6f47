//! `canalis preview`: what it shows is what `run` then does, and it writes nothing.

use std::path::Path;

use canalis_testkit::{Server, kafka, mariadb, postgres};
use mysql_async::prelude::Queryable;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use serde_json::{Value, json};

use super::{
    behaviour::run as execute,
    kafka::{
        client::{config, create, fresh, put},
        paths::broker,
    },
    process::{Canalis, sink, source},
};

/// The JSON form of a preview.
fn preview(directory: &Path, pipeline: &str, rows: u32) -> Value {
    let (success, output, errors) = command(directory, pipeline, &["--json"], rows);
    assert!(success, "{output}{errors}");
    serde_json::from_str(&output).unwrap()
}

fn command(directory: &Path, pipeline: &str, more: &[&str], rows: u32) -> (bool, String, String) {
    let file = directory.join("pipeline.yaml");
    std::fs::write(&file, pipeline).unwrap();
    let rows = rows.to_string();
    let mut arguments = vec!["preview", file.to_str().unwrap(), "--rows", &rows];
    arguments.extend(more);
    Canalis::command(&arguments)
}

fn run_to_end(directory: &Path, pipeline: &str) {
    let mut canalis = Canalis::start(directory, pipeline);
    assert!(canalis.wait().success(), "{}", canalis.log());
}

fn records(preview: &Value) -> &[Value] {
    preview["records"].as_array().unwrap()
}

/// Statements of a record without those that make its table.
fn changes(record: &Value) -> Vec<&str> {
    let statements = record["sink"].as_array().unwrap().iter().map(|s| s.as_str().unwrap());
    statements.filter(|s| !s.starts_with("CREATE ") && !s.starts_with("ALTER ")).collect()
}

/// A message at a time of its own, so that partitions have an order.
fn put_at(server: &Server, topic: &str, partition: i32, millis: i64, value: &str) {
    let producer: BaseProducer = config(server).create().unwrap();
    let record: BaseRecord<'_, str, str> =
        BaseRecord::to(topic).partition(partition).timestamp(millis).payload(value);
    producer.send(record).map_err(|(error, _)| error).unwrap();
    producer.flush(std::time::Duration::from_secs(30)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn fm_09_the_newest_messages_are_shown_as_the_run_loads_them() {
    let (Some(kafka), Some(maria)) = (kafka(), mariadb()) else { return };
    let topic = fresh("fm09");
    create(kafka, &topic, 2, &[]).await;
    let now = 1_750_000_000_000;
    for (partition, at, value) in [
        (0, 0, "1|first|0.10"),
        (1, 1, r"2|pipe\|inside|2.25"),
        (0, 2, "3|\"quo\\\"ted|bar\"|3.00"),
        (0, 3, "4|two\\\nlines|4.75"),
        (1, 4, r"5|back\\slash|5.5"),
    ] {
        put_at(kafka, &topic, partition, now + at, value);
    }
    let database = maria.create_database("preview").await;
    let pipeline = broker(
        "source",
        kafka,
        &format!(
            "  topic: {topic}\n  value.format: csv\n  csv.delimiter: '|'\n  csv.escape: '\\'\n  table: {database}.t\n  \
             schema: id INT NOT NULL, note VARCHAR(40), amount DECIMAL(8,2)\n  primary-keys: id\n  \
             scan.bounded.mode: latest-offset\n"
        ),
    ) + &sink(maria, &database);
    let directory = tempfile::tempdir().unwrap();
    let shown = preview(directory.path(), &pipeline, 4);
    let rows: Vec<&Value> = records(&shown).iter().map(|r| &r["decoded"][0]["row"]).collect();
    let row = |id: u32, note: &str, amount: &str| json!({ "id": id, "note": note, "amount": amount });
    assert_eq!(
        rows,
        [
            &row(5, "back\\slash", "5.50"),
            &row(4, "two\nlines", "4.75"),
            &row(3, "quo\"ted|bar", "3.00"),
            &row(2, "pipe|inside", "2.25")
        ]
    );
    let newest = &records(&shown)[0];
    assert_eq!(newest["place"], format!("{topic}-1@1"));
    assert_eq!(newest["raw"]["value"], r"5|back\\slash|5.5");
    assert_eq!(newest["raw"]["timestamp-ms"], now + 4);
    let statements = newest["sink"].as_array().unwrap();
    assert!(statements[0].as_str().unwrap().starts_with("CREATE TABLE"), "{newest}");
    assert_eq!(records(&shown)[1]["sink"].as_array().unwrap().len(), 1, "the table is made once");
    let mut conn = maria.mysql().await;
    let tables = format!("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{database}'");
    assert_eq!(conn.query_first::<u32, _>(&tables).await.unwrap(), Some(0));
    // More than there are, and from where the run begins: the same rows, no more.
    assert_eq!(records(&preview(directory.path(), &pipeline, 1000)).len(), 5);
    run_to_end(directory.path(), &pipeline);
    let loaded: Vec<(u32, String, String)> = conn
        .query(format!(
            "SELECT id, note, CAST(amount AS CHAR) FROM {database}.t WHERE id > 1 ORDER BY id DESC"
        ))
        .await
        .unwrap();
    let loaded: Vec<Value> = loaded.iter().map(|(id, note, amount)| row(*id, note, amount)).collect();
    assert_eq!(loaded.iter().collect::<Vec<_>>(), rows);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_message_shows_the_reason_of_its_dead_letter() {
    let (Some(kafka), Some(maria)) = (kafka(), mariadb()) else { return };
    let topic = fresh("preview-bad");
    create(kafka, &topic, 1, &[]).await;
    let messages = [r#"{"id":1,"n":7}"#, r#"{"id":2,"n":"x"}"#, r#"{"id":3,"n":300}"#];
    put(kafka, &topic, 0, &messages.map(|m| (None, Some(m))));
    let database = maria.create_database("preview").await;
    let mut conn = maria.mysql().await;
    execute(&mut conn, &[&format!("CREATE TABLE {database}.t (id INT PRIMARY KEY, n DECIMAL(5,0))")]).await;
    let pipeline = broker(
        "source",
        kafka,
        &format!(
            "  topic: {topic}\n  value.format: json\n  table: {database}.t\n  schema: id INT, n DECIMAL(6,1)\n  \
             primary-keys: id\n  scan.bounded.mode: latest-offset\n"
        ),
    ) + &sink(maria, &database)
        + "pipeline:\n  dead-letter.policy: queue\n";
    put(kafka, &topic, 0, &[(None, Some(r#"{"id":4,"n":0.5}"#))]);
    let directory = tempfile::tempdir().unwrap();
    let shown = preview(directory.path(), &pipeline, 10);
    let reasons = |preview: &Value| -> Vec<(Value, Value)> {
        records(preview)
            .iter()
            .flat_map(|r| {
                r.get("undecodable").cloned().into_iter().chain(r["refused"].as_array().unwrap().clone())
            })
            .map(|letter| (letter["code"].clone(), letter["reason"].clone()))
            .collect()
    };
    let mut expected = reasons(&shown);
    assert_eq!(expected.len(), 2, "one does not decode, one does not fit: {shown:#}");
    assert_eq!(records(&shown)[2]["raw"]["value"], messages[1]);
    assert_eq!(records(&shown)[2]["sink"], json!([]));
    let (success, text, errors) = command(directory.path(), &pipeline, &[], 10);
    assert!(success, "{errors}");
    for (_, reason) in &expected {
        assert!(text.contains(reason.as_str().unwrap()), "{text}");
    }
    run_to_end(directory.path(), &pipeline);
    let letters = std::fs::read_to_string(directory.path().join("state/dead-letters.jsonl")).unwrap();
    let mut written: Vec<(Value, Value)> = letters
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|letter| (letter["code"].clone(), letter["reason"].clone()))
        .collect();
    let order = |pair: &(Value, Value)| pair.0.to_string();
    written.sort_by_key(order);
    expected.sort_by_key(order);
    assert_eq!(written, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn previews_into_databases_write_nothing_and_show_what_the_real_tables_get() {
    let Some(maria) = mariadb() else { return };
    let database = maria.create_database("preview").await;
    let mut conn = maria.mysql().await;
    execute(
        &mut conn,
        &[
            &format!("USE {database}"),
            "CREATE TABLE t (id INT UNSIGNED, name VARCHAR(20) COLLATE utf8mb4_unicode_ci, amount DECIMAL(12,3), \
             born DATE, at DATETIME(3), stamp TIMESTAMP(6) NULL, doc JSON, raw VARBINARY(9), f FLOAT, flags BIT(5), \
             kind ENUM('a','b'), PRIMARY KEY (name, id), UNIQUE KEY u (amount))",
            "CREATE TABLE keyless (a INT, b TEXT)",
            "SET time_zone = '+00:00'",
            "INSERT INTO t VALUES (7, 'O''Hara', 12.500, '2024-02-29', '2024-02-29 01:02:03.004', \
             '2024-02-29 01:02:03.000005', '{\"k\":1}', x'00FF', 0.1, b'10101', 'b'), (8, 'x', NULL, NULL, NULL, NULL, \
             NULL, NULL, NULL, NULL, NULL)",
            "INSERT INTO keyless VALUES (1, 'one')",
        ],
    )
    .await;
    let from = |sink: &str| {
        source(maria, &format!("{database}.\\.*"), "  scan.startup.mode: snapshot\n")
            + sink
            + &format!(
                "route:\n  - source-table: {database}.\\.*\n    sink-table: {database}_copy.<>\n    replace-symbol: <>\n"
            )
    };
    let files = tempfile::tempdir().unwrap();
    let lite = files.path().join("out.db");
    let mut sinks = vec![
        ("mysql", sink(maria, "")),
        ("sqlite", format!("sink:\n  type: sqlite\n  path: {}\n", lite.display())),
    ];
    let server = postgres();
    if let Some(postgres) = server {
        sinks.push(("postgres", sink(postgres, &postgres.create_database("preview").await)));
    }
    for (kind, sink) in sinks {
        let directory = tempfile::tempdir().unwrap();
        let pipeline = from(&sink);
        let before = preview(directory.path(), &pipeline, 4);
        assert_eq!(records(&before).len(), 3, "{before:#}");
        for password in [&maria.password, &server.map_or_else(String::new, |s| s.password.clone())] {
            assert!(password.is_empty() || !before.to_string().contains(password.as_str()), "{before}");
        }
        match kind {
            "sqlite" => assert!(!lite.exists()),
            "mysql" => {
                let made = format!("SHOW DATABASES LIKE '{database}_copy'");
                assert_eq!(conn.query_first::<String, _>(made).await.unwrap(), None);
            }
            _ => {}
        }
        let creation = records(&before)[0]["sink"].to_string();
        assert!(creation.contains("CREATE TABLE"), "{kind}: {creation}");
        run_to_end(directory.path(), &pipeline);
        // Nothing of the preview was there: the run has made the tables itself. With them the same statements are composed.
        let after = preview(directory.path(), &pipeline, 4);
        for (before, after) in records(&before).iter().zip(records(&after)) {
            assert_eq!(before["transformed"], after["transformed"], "{kind}");
            assert_eq!(changes(before), changes(after), "{kind}");
            assert_eq!(after["sink"].as_array().unwrap().len(), changes(after).len(), "{kind}: {after}");
            assert_eq!(changes(before).len(), 1, "{kind}: {before}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_into_postgres_leaves_no_table() {
    let (Some(maria), Some(postgres)) = (mariadb(), postgres()) else { return };
    let database = maria.create_database("preview").await;
    let mut conn = maria.mysql().await;
    execute(
        &mut conn,
        &[
            &format!("CREATE TABLE {database}.t (id INT PRIMARY KEY, d DATE)"),
            "SET sql_mode = ''",
            &format!("INSERT INTO {database}.t VALUES (1, '2024-05-06'), (2, '0000-00-00')"),
        ],
    )
    .await;
    let target = postgres.create_database("preview").await;
    let pipeline =
        source(maria, &format!("{database}.t"), "  scan.startup.mode: snapshot\n") + &sink(postgres, &target);
    let directory = tempfile::tempdir().unwrap();
    let shown = preview(directory.path(), &pipeline, 3);
    let [first, second] = records(&shown) else { panic!("{shown}") };
    assert_eq!(first["raw"]["value"], "1\t2024-05-06");
    assert_eq!(
        changes(first),
        [format!(
            "INSERT INTO \"{database}\".\"t\" (\"id\", \"d\") OVERRIDING SYSTEM VALUE VALUES ('1','2024-05-06') \
             ON CONFLICT (\"id\") DO UPDATE SET \"d\" = EXCLUDED.\"d\""
        )]
    );
    assert_eq!(second["sink"], json!([]));
    let reason = second["refused"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("no calendar has this date"), "{reason}");
    let client = postgres.postgres(&target).await;
    let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'preview%'";
    let found: i64 = client.query_one(schemas, &[]).await.unwrap().get(0);
    assert_eq!(found, 0);
    let tables =
        "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace";
    let found: i64 = client.query_one(tables, &[]).await.unwrap().get(0);
    assert_eq!(found, 0);
}

#[test]
fn files_are_shown_line_by_line_with_their_four_parts() {
    let directory = tempfile::tempdir().unwrap();
    let input = directory.path().join("people.csv");
    std::fs::write(&input, "id;name;age\n\n1;\"Ann\nLee\";41\n2;Bo;x\r\n3;Cy;17\n4;Di;50").unwrap();
    let pipeline = format!(
        "source:\n  type: files\n  path: {}\n  csv.delimiter: ';'\n  schema: id INT NOT NULL, name STRING, age INT\n  \
         table: app.people\nsink:\n  type: print\ntransform:\n  - source-table: app.people\n    \
         projection: id, UPPER(name) AS name\n    filter: age >= 18\n",
        input.display()
    );
    let shown = preview(directory.path(), &pipeline, 3);
    let raw: Vec<&Value> = records(&shown).iter().map(|r| &r["raw"]["value"]).collect();
    assert_eq!(raw, ["1;\"Ann\nLee\";41", "2;Bo;x", "3;Cy;17"]);
    let [first, second, third] = records(&shown) else { panic!("{shown}") };
    assert_eq!(first["decoded"][0]["row"], json!({ "id": 1, "name": "Ann\nLee", "age": 41 }));
    assert_eq!(first["transformed"][0]["row"], json!({ "id": 1, "name": "ANN\nLEE" }));
    assert_eq!(first["sink"], json!(["[app.people] +I {\"id\":1,\"name\":\"ANN\\nLEE\"}"]));
    assert!(second["undecodable"]["reason"].as_str().unwrap().contains("age"), "{second}");
    assert_eq!(third["filtered"], 1);
    assert_eq!(third["sink"], json!([]));
    let (success, text, errors) = command(directory.path(), &pipeline, &[], 1);
    assert!(success, "{errors}");
    let place = format!("1 of 1: {}, line 3\n", input.display());
    let expected = "  source       14 bytes: 1;\"Ann\\nLee\";41\n\
                    \x20 decoded      +I app.people\n\
                    \x20                id    1  (INT)\n";
    assert!(text.contains(&place) && text.contains(expected), "{text}");
    for part in ["\n  transformed  +I app.people\n", "\n  sink         [app.people] +I {"] {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
}

#[test]
fn generated_rows_have_no_bytes_and_the_number_of_rows_is_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let pipeline =
        "source:\n  type: datagen\n  update-ratio: 0\n  delete-ratio: 0\nsink:\n  type: blackhole\n";
    let shown = preview(directory.path(), pipeline, 5);
    assert_eq!(records(&shown).len(), 5);
    assert!(records(&shown).iter().all(|r| r.get("raw").is_none() && r["decoded"][0]["kind"] == "+I"));
    for rows in [0, 1001] {
        let (success, _, errors) = command(directory.path(), pipeline, &[], rows);
        assert!(!success && errors.contains("--rows"), "{errors}");
    }
}
