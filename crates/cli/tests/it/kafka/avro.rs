//! Rows in Avro through a topic, with a schema registry. No registry can be had from the package indexes that tests use, so this one is a
//! double: it speaks the documented REST protocol, with basic authentication and the rule that a new field needs a default.

use std::sync::{Arc, Mutex};

use axum::{
    Json, Router,
    extract::{Path, Request, State},
    http::StatusCode,
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use canalis_testkit::{kafka, mariadb, postgres};
use mysql_async::prelude::Queryable;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use serde_json::{Value, json};

use super::{
    client::{config, create, fresh},
    paths::broker,
};
use crate::it::process::{Canalis, sink, source};

/// `user:secret`.
const AUTHORIZATION: &str = "Basic dXNlcjpzZWNyZXQ=";

/// Subject, schema.
type Schemas = Arc<Mutex<Vec<(String, String)>>>;

/// A registry that lives as long as the test.
struct Registry {
    port: u16,
    schemas: Schemas,
}

impl Registry {
    async fn start() -> Self {
        let schemas = Schemas::default();
        let router = Router::new()
            .route("/schemas/ids/{id}", get(by_id))
            .route("/subjects/{subject}/versions", post(register))
            .route("/subjects/{subject}/versions/latest", get(latest))
            .route("/compatibility/subjects/{subject}/versions/latest", post(explain))
            .layer(middleware::from_fn(authenticated))
            .with_state(schemas.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { port, schemas }
    }

    fn options(&self) -> String {
        format!(
            "  avro.schema-registry.url: http://127.0.0.1:{}\n  avro.schema-registry.username: user\n  \
             avro.schema-registry.password: secret\n",
            self.port
        )
    }

    fn subjects(&self) -> Vec<String> {
        self.schemas.lock().unwrap().iter().map(|(subject, _)| subject.clone()).collect()
    }

    fn put(&self, subject: &str, schema: &str) -> u32 {
        let mut schemas = self.schemas.lock().unwrap();
        schemas.push((subject.to_owned(), schema.to_owned()));
        u32::try_from(schemas.len()).unwrap()
    }
}

fn refusal(status: StatusCode, code: u32, message: &str) -> Response {
    (status, Json(json!({ "error_code": code, "message": message }))).into_response()
}

async fn authenticated(request: Request, next: Next) -> Response {
    match request.headers().get("authorization") {
        Some(given) if given == AUTHORIZATION => next.run(request).await,
        _ => refusal(StatusCode::UNAUTHORIZED, 401, "Unauthorized"),
    }
}

async fn by_id(State(schemas): State<Schemas>, Path(id): Path<usize>) -> Response {
    match schemas.lock().unwrap().get(id - 1) {
        Some((_, schema)) => Json(json!({ "schema": schema })).into_response(),
        None => refusal(StatusCode::NOT_FOUND, 40403, "Schema not found"),
    }
}

/// The first field of a schema that an older one lacks and that has no default.
fn incompatible(old: &str, new: &str) -> Option<String> {
    let fields = |text: &str| -> Vec<Value> {
        serde_json::from_str::<Value>(text).unwrap()["fields"].as_array().unwrap().clone()
    };
    let old = fields(old);
    let is_fresh = |field: &Value| old.iter().all(|known| known["name"] != field["name"]);
    let fresh = fields(new).into_iter().find(|f| is_fresh(f) && f.get("default").is_none())?;
    Some(format!("READER_FIELD_MISSING_DEFAULT_VALUE: {}", fresh["name"]))
}

fn newest(schemas: &Schemas, subject: &str) -> Option<String> {
    schemas.lock().unwrap().iter().rev().find(|(s, _)| s == subject).map(|(_, schema)| schema.clone())
}

async fn register(
    State(schemas): State<Schemas>,
    Path(subject): Path<String>,
    Json(body): Json<Value>,
) -> Response {
    let schema = body["schema"].as_str().unwrap().to_owned();
    if newest(&schemas, &subject).is_some_and(|old| incompatible(&old, &schema).is_some()) {
        let message = "Schema being registered is incompatible with an earlier schema";
        return refusal(StatusCode::CONFLICT, 409, message);
    }
    let mut schemas = schemas.lock().unwrap();
    let entry = (subject, schema);
    let at = schemas.iter().position(|known| *known == entry).unwrap_or_else(|| {
        schemas.push(entry);
        schemas.len() - 1
    });
    Json(json!({ "id": at + 1 })).into_response()
}

async fn latest(State(schemas): State<Schemas>, Path(subject): Path<String>) -> Response {
    match newest(&schemas, &subject) {
        Some(schema) => Json(json!({ "subject": subject, "version": 1, "schema": schema })).into_response(),
        None => refusal(StatusCode::NOT_FOUND, 40401, "Subject not found"),
    }
}

async fn explain(
    State(schemas): State<Schemas>,
    Path(subject): Path<String>,
    Json(body): Json<Value>,
) -> Response {
    let why = newest(&schemas, &subject).and_then(|old| incompatible(&old, body["schema"].as_str().unwrap()));
    Json(json!({ "is_compatible": why.is_none(), "messages": why.into_iter().collect::<Vec<_>>() }))
        .into_response()
}

const ROWS: &str =
    "SELECT string_agg(concat_ws('|', id, amount, big, day, coalesce(note, 'NULL')), ' ' ORDER BY id)";

async fn a_table_goes_through_avro_while_it_grows(format: &str, more: &str) {
    let (Some(kafka), Some(maria), Some(postgres)) = (kafka(), mariadb(), postgres()) else { return };
    let registry = Registry::start().await;
    let database = maria.create_database("avro").await;
    let target = postgres.create_database("avro").await;
    let topic = fresh("avro");
    create(kafka, &topic, 1, &[]).await;
    let mut conn = maria.mysql().await;
    for statement in [
        format!("USE {database}"),
        "CREATE TABLE orders (id INT PRIMARY KEY, amount DECIMAL(40,10), big BIGINT UNSIGNED, day DATE, \
         note VARCHAR(30))"
            .to_owned(),
        "INSERT INTO orders VALUES (1, 123456789012345678901234567890.0123456789, 18446744073709551615, \
         '1969-12-31', 'häß'), (2, -0.5, 0, '9999-12-31', NULL), (3, 0, 7, '2024-02-29', 'gone')"
            .to_owned(),
    ] {
        conn.query_drop(statement).await.unwrap();
    }
    let registry_options = registry.options();
    let write = source(maria, &format!("{database}.orders"), "")
        + &broker("sink", kafka, &format!("  topic: {topic}\n  value.format: {format}\n{registry_options}"));
    let read = broker(
        "source",
        kafka,
        &format!("  topic: {topic}\n  value.format: {format}\n{more}{registry_options}"),
    ) + &sink(postgres, &target);
    let (there, here) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut writer = Canalis::start(there.path(), &write);
    writer.until(async || registry.subjects().len() == 2).await;
    assert_eq!(registry.subjects(), [format!("{topic}-value"), format!("{topic}-key")]);
    let mut reader = Canalis::start(here.path(), &read);
    let client = postgres.postgres(&target).await;
    let schema = if more.is_empty() { database.as_str() } else { "public" };
    let holds = async |columns: &str, expected: &str| {
        let query = format!("{columns} FROM \"{schema}\".orders");
        let row = client.query_one(&query, &[]).await;
        row.is_ok_and(|row| row.get::<_, Option<String>>(0).as_deref() == Some(expected))
    };
    let first = "1|123456789012345678901234567890.0123456789|18446744073709551615|1969-12-31|häß";
    let expected = format!("{first} 2|-0.5000000000|0|9999-12-31|NULL 3|0.0000000000|7|2024-02-29|gone");
    reader.until(async || holds(ROWS, &expected).await).await;

    for statement in [
        "UPDATE orders SET amount = 0.0000000001 WHERE id = 2",
        "ALTER TABLE orders ADD COLUMN extra DATETIME(6)",
        "INSERT INTO orders VALUES (4, 4, 4, '2024-04-04', 'd', '2024-03-15 10:20:30.123456')",
        "UPDATE orders SET id = 5, extra = '2000-01-01 00:00:00' WHERE id = 1",
        "DELETE FROM orders WHERE id = 3",
    ] {
        conn.query_drop(statement).await.unwrap();
    }
    let rows =
        "SELECT string_agg(concat_ws('|', id, amount, coalesce(extra::text, 'NULL')), ' ' ORDER BY id)";
    let expected = "2|0.0000000001|NULL 4|4.0000000000|2024-03-15 10:20:30.123456 \
                    5|123456789012345678901234567890.0123456789|2000-01-01 00:00:00";
    reader.until(async || holds(rows, expected).await).await;
    assert_eq!(registry.subjects().len(), 3, "the new structure is a version of the same subject");
    assert!(writer.stop().success(), "{}", writer.log());
    assert!(reader.stop().success(), "{}", reader.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_goes_through_rows_in_avro_while_it_grows() {
    a_table_goes_through_avro_while_it_grows("avro", "  table: public.orders\n").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_goes_through_envelopes_in_avro_while_it_grows() {
    a_table_goes_through_avro_while_it_grows("debezium-avro", "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_the_registry_refuses_stops_the_job_and_says_why() {
    let (Some(kafka), Some(maria)) = (kafka(), mariadb()) else { return };
    let registry = Registry::start().await;
    let database = maria.create_database("avro").await;
    let topic = fresh("avro");
    create(kafka, &topic, 1, &[]).await;
    let old = r#"{"type":"record","name":"x","fields":[]}"#;
    registry.put(&format!("{topic}-value"), old);
    let mut conn = maria.mysql().await;
    conn.query_drop(format!("CREATE TABLE {database}.t (id INT PRIMARY KEY)")).await.unwrap();
    conn.query_drop(format!("INSERT INTO {database}.t VALUES (1)")).await.unwrap();
    let pipeline = source(maria, &format!("{database}.t"), "")
        + &broker("sink", kafka, &format!("  topic: {topic}\n  value.format: avro\n{}", registry.options()));
    let directory = tempfile::tempdir().unwrap();
    let mut canalis = Canalis::start(directory.path(), &pipeline);
    assert!(!canalis.wait().success());
    let log = canalis.log();
    for part in
        ["CNL-3007", "incompatible with an earlier schema", "READER_FIELD_MISSING_DEFAULT_VALUE", "version 1"]
    {
        assert!(log.contains(part), "`{part}` is not in: {log}");
    }
    assert!(!log.contains("secret"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_another_writer_become_rows_and_strange_ones_dead_letters() {
    let (Some(kafka), Some(postgres)) = (kafka(), postgres()) else { return };
    let registry = Registry::start().await;
    let target = postgres.create_database("avro").await;
    let topic = fresh("avro");
    create(kafka, &topic, 1, &[]).await;
    // Written by fastavro, see the README beside the file.
    let golden = include_str!("../../../../formats/tests/golden/avro/messages.json");
    let golden: Vec<Value> = serde_json::from_str(golden).unwrap();
    let id = registry.put("foreign", &golden[1]["schema"].to_string());
    let framed = |id: u32, message: &Value| {
        let hex = message["hex"].as_str().unwrap();
        let byte = |at: usize| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).unwrap();
        [vec![0], id.to_be_bytes().to_vec(), (0..hex.len() / 2).map(byte).collect()].concat()
    };
    let messages = golden[1]["messages"].as_array().unwrap();
    let producer: BaseProducer = config(kafka).create().unwrap();
    let values = [
        framed(id, &messages[0]),
        framed(id + 40, &messages[0]),
        b"plain text".to_vec(),
        framed(id, &messages[1]),
    ];
    for value in &values {
        let record: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(&topic).partition(0).payload(value);
        producer.send(record).map_err(|(error, _)| error).unwrap();
    }
    producer.flush(std::time::Duration::from_secs(30)).unwrap();
    let pipeline = broker(
        "source",
        kafka,
        &format!(
            "  topic: {topic}\n  value.format: avro\n  table: public.numbers\n  scan.bounded.mode: latest-offset\n{}",
            registry.options()
        ),
    ) + &sink(postgres, &target)
        + "pipeline:\n  dead-letter.policy: queue\n";
    let directory = tempfile::tempdir().unwrap();
    let mut canalis = Canalis::start(directory.path(), &pipeline);
    assert!(canalis.wait().success(), "{}", canalis.log());
    let query =
        "SELECT string_agg(concat_ws('|', small, long, fixed), ' ' ORDER BY small DESC) FROM public.numbers";
    let row = postgres.postgres(&target).await.query_one(query, &[]).await.unwrap();
    let expected: Vec<&str> = messages.iter().map(|m| m["row"].as_str().unwrap()).collect();
    assert_eq!(row.get::<_, String>(0), expected.join(" "));
}
