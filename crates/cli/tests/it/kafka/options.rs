//! Options of the connector: where reading begins, what is told of messages, what is refused, encryption.

use std::{fs, time::Duration};

use canalis_testkit::{free_port, kafka, mariadb, start_kafka};
use mysql_async::prelude::Queryable;
use rdkafka::{
    consumer::{BaseConsumer, CommitMode, Consumer},
    message::{Header, OwnedHeaders},
    producer::{BaseProducer, BaseRecord, Producer},
};

use super::{
    client::{committed, config, create, fresh, put},
    paths::broker,
};
use crate::it::process::{Canalis, sink, source};

/// Runs a pipeline that ends by itself into a table `t`, and returns `select` of it.
async fn read_once(source_more: &str, select: &str) -> Option<Vec<String>> {
    let (Some(kafka), Some(maria)) = (kafka(), mariadb()) else { return None };
    let database = maria.create_database("kafkaopt").await;
    let pipeline = broker(
        "source",
        kafka,
        &format!("  scan.bounded.mode: latest-offset\n  table: {database}.t\n{source_more}"),
    ) + &sink(maria, &database)
        + "pipeline:\n  dead-letter.policy: queue\n";
    let directory = tempfile::tempdir().unwrap();
    let mut canalis = Canalis::start(directory.path(), &pipeline);
    assert!(canalis.wait().success(), "{}", canalis.log());
    let mut conn = maria.mysql().await;
    conn.query_drop(format!("USE {database}")).await.unwrap();
    Some(conn.query(select).await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_begins_where_it_is_told() {
    let Some(kafka) = kafka() else { return };
    let topic = fresh("start");
    create(kafka, &topic, 2, &[]).await;
    for partition in 0..2 {
        for n in 0..5 {
            let value = format!(r#"{{"id":{}}}"#, partition * 10 + n);
            put(kafka, &topic, partition, &[(None, Some(&value))]);
        }
    }
    let group = fresh("group");
    let consumer: BaseConsumer = config(kafka).set("group.id", &group).create().unwrap();
    let mut list = rdkafka::TopicPartitionList::new();
    for (partition, at) in [(0, 3), (1, 4)] {
        list.add_partition_offset(&topic, partition, rdkafka::Offset::Offset(at)).unwrap();
    }
    consumer.commit(&list, CommitMode::Sync).unwrap();
    let base = format!("  topic: {topic}\n  value.format: json\n  schema: id INT\n  primary-keys: id\n");
    for (more, expected) in [
        ("", "0 1 2 3 4 10 11 12 13 14"),
        (
            "  scan.startup.mode: specific-offsets\n  scan.startup.specific-offsets: partition:0,offset:4;partition:1,offset:2\n",
            "4 12 13 14",
        ),
        (&format!("  scan.startup.mode: group-offsets\n  properties.group.id: {group}\n"), "3 4 14"),
        (
            "  scan.startup.mode: timestamp\n  scan.startup.timestamp-millis: 1000\n",
            "0 1 2 3 4 10 11 12 13 14",
        ),
    ] {
        let select = "SELECT GROUP_CONCAT(id ORDER BY id SEPARATOR ' ') FROM t";
        let rows = read_once(&format!("{base}{more}"), select).await.unwrap();
        assert_eq!(rows, [expected], "{more}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_columns_tell_of_each_message() {
    let Some(kafka) = kafka() else { return };
    let topic = fresh("meta");
    create(kafka, &topic, 1, &[]).await;
    let producer: BaseProducer = config(kafka).create().unwrap();
    for (id, key) in [(1, "k1"), (2, "k2")] {
        let headers = OwnedHeaders::new().insert(Header { key: "from", value: Some("test") });
        let value = format!(r#"{{"id":{id}}}"#);
        let record =
            BaseRecord::to(&topic).partition(0).key(key).payload(&value).timestamp(1_700_000_000_123 + id);
        producer.send(record.headers(headers)).map_err(|(error, _)| error).unwrap();
    }
    producer.flush(Duration::from_secs(30)).unwrap();
    let select = "SELECT CONCAT_WS('|', id, __topic__, __partition__, __offset__, UNIX_TIMESTAMP(__timestamp__), __key__, __headers__) \
                  FROM t ORDER BY id";
    let options = format!(
        "  topic: {topic}\n  value.format: json\n  schema: id INT\n  primary-keys: id\n  \
         metadata.list: topic, partition, offset, timestamp, key, headers\n"
    );
    let Some(rows) = read_once(&options, select).await else { return };
    let row =
        |n: i32| format!(r#"{n}|{topic}|{topic}-0|{}|1700000000.12{}|k{n}|{{"from":"test"}}"#, n - 1, 3 + n);
    assert_eq!(rows, [row(1), row(2)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_character_sets_and_delimiters_are_read() {
    let Some(kafka) = kafka() else { return };
    for (format, more, text) in [
        ("csv", "  csv.delimiter: ;\n  charset: gbk\n", "1;\"\u{4e0a}\u{6d77};x\""),
        ("inlong-csv", "  inlong.escape: \\\n", "1|\u{4e0a}\u{6d77};x"),
        ("inlong-kv", "", "v=\u{4e0a}\u{6d77};x&id=1"),
    ] {
        let topic = fresh("charset");
        create(kafka, &topic, 1, &[]).await;
        let bytes = if more.contains("gbk") {
            // "上海" in GBK.
            [&b"1;\""[..], &[0xc9, 0xcf, 0xba, 0xa3], b";x\""].concat()
        } else {
            text.as_bytes().to_vec()
        };
        let producer: BaseProducer = config(kafka).create().unwrap();
        let record: BaseRecord<'_, str, [u8]> = BaseRecord::to(&topic).partition(0).payload(&bytes);
        producer.send(record).map_err(|(error, _)| error).unwrap();
        producer.flush(Duration::from_secs(30)).unwrap();
        let options = format!(
            "  topic: {topic}\n  value.format: {format}\n  schema: id INT, v STRING\n  primary-keys: id\n{more}"
        );
        let Some(rows) = read_once(&options, "SELECT CONCAT_WS('|', id, v) FROM t").await else { return };
        assert_eq!(rows, ["1|\u{4e0a}\u{6d77};x"], "{format}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_too_large_becomes_a_dead_letter_with_its_size() {
    let (Some(kafka), Some(maria)) = (kafka(), mariadb()) else { return };
    let database = maria.create_database("kafkaopt").await;
    let mut conn = maria.mysql().await;
    for statement in [
        format!("CREATE TABLE {database}.t (id INT PRIMARY KEY, v LONGTEXT)"),
        format!("INSERT INTO {database}.t VALUES (1, 'a'), (2, REPEAT('x', 300000)), (3, 'c')"),
    ] {
        conn.query_drop(statement).await.unwrap();
    }
    let topic = fresh("large");
    create(kafka, &topic, 1, &[("max.message.bytes", "100000")]).await;
    for guarantee in ["exactly-once", "at-least-once"] {
        let pipeline = source(maria, &format!("{database}.t"), "  scan.startup.mode: snapshot\n")
            + &broker(
                "sink",
                kafka,
                &format!("  topic: {topic}\n  value.format: json\n  sink.delivery-guarantee: {guarantee}\n"),
            )
            + &format!("pipeline:\n  name: large {guarantee}\n  dead-letter.policy: queue\n");
        let directory = tempfile::tempdir().unwrap();
        let mut canalis = Canalis::start(directory.path(), &pipeline);
        assert!(canalis.wait().success(), "{}", canalis.log());
        let letters = fs::read_to_string(directory.path().join("state/dead-letters.jsonl")).unwrap();
        let letter: serde_json::Value = serde_json::from_str(letters.trim()).unwrap();
        assert_eq!(letter["key"]["id"], 2);
        let reason = letter["reason"].as_str().unwrap();
        assert!(reason.contains("300") && reason.contains("100000"), "{reason}");
    }
    let keys: Vec<String> = committed(kafka, &topic).into_iter().map(|m| m.key.unwrap()).collect();
    assert_eq!(keys, [r#"{"id":1}"#, r#"{"id":3}"#, r#"{"id":1}"#, r#"{"id":3}"#]);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_go_to_partitions_by_key_by_table_or_in_turn() {
    let (Some(kafka), Some(maria)) = (kafka(), mariadb()) else { return };
    let database = maria.create_database("kafkaopt").await;
    let mut conn = maria.mysql().await;
    conn.query_drop(format!("CREATE TABLE {database}.t (id INT PRIMARY KEY)")).await.unwrap();
    let ids: Vec<String> = (0..60).map(|id| format!("({id})")).collect();
    conn.query_drop(format!("INSERT INTO {database}.t VALUES {}", ids.join(","))).await.unwrap();
    for (strategy, partitions) in
        [("hash-by-key", 3), ("by-table", 1), ("all-to-zero", 1), ("round-robin", 3)]
    {
        let topic = fresh("strategy");
        let pipeline = source(maria, &format!("{database}.t"), "  scan.startup.mode: snapshot\n")
            + &broker(
                "sink",
                kafka,
                &format!(
                    "  topic: {topic}\n  value.format: json\n  sink.topic.partitions: 3\n  partition.strategy: {strategy}\n"
                ),
            )
            + &format!("pipeline:\n  name: strategy {topic}\n");
        let directory = tempfile::tempdir().unwrap();
        let mut canalis = Canalis::start(directory.path(), &pipeline);
        assert!(canalis.wait().success(), "{}", canalis.log());
        let messages = committed(kafka, &topic);
        assert_eq!(messages.len(), 60);
        let mut used: Vec<i32> = messages.iter().map(|m| m.partition).collect();
        used.dedup();
        assert_eq!(used.len(), partitions, "{strategy}");
        if strategy == "hash-by-key" {
            // Where Kafka's own clients put the key: the broker's client library is asked.
            let key = messages[0].key.clone().unwrap();
            let again = fresh("strategy");
            create(kafka, &again, 3, &[]).await;
            let producer: BaseProducer = config(kafka).set("partitioner", "murmur2_random").create().unwrap();
            producer.send(BaseRecord::to(&again).key(&key).payload("x")).map_err(|(error, _)| error).unwrap();
            producer.flush(Duration::from_secs(30)).unwrap();
            assert_eq!(committed(kafka, &again)[0].partition, messages[0].partition);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_encrypted_listener_wants_the_right_certificate_and_password() {
    let directory = tempfile::tempdir().unwrap();
    let certified = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let (ca, store) = (directory.path().join("ca.pem"), directory.path().join("server.pem"));
    fs::write(&ca, certified.cert.pem()).unwrap();
    fs::write(&store, certified.signing_key.serialize_pem() + &certified.cert.pem()).unwrap();
    let port = free_port();
    let listeners = format!(
        "listeners=PLAINTEXT://127.0.0.1:{{port}},CONTROLLER://127.0.0.1:{{controller}},SASL_SSL://127.0.0.1:{port}"
    );
    let advertised =
        format!("advertised.listeners=PLAINTEXT://127.0.0.1:{{port}},SASL_SSL://127.0.0.1:{port}");
    let store = format!("ssl.keystore.location={}", store.display());
    let Some(kafka) = start_kafka(&[
        &listeners,
        &advertised,
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL",
        "ssl.keystore.type=PEM",
        &store,
        "sasl.enabled.mechanisms=PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_canalis=\"right\";",
    ]) else {
        return;
    };
    create(&kafka, "secret", 1, &[]).await;
    put(&kafka, "secret", 0, &[(None, Some(r#"{"id":1}"#))]);
    let run = |password: &str, authority: &str| {
        let pipeline = format!(
            "source:\n  type: kafka\n  properties.bootstrap.servers: 127.0.0.1:{port}\n  topic: secret\n  value.format: json\n  \
             scan.bounded.mode: latest-offset\n  properties.security.protocol: sasl_ssl\n  properties.sasl.mechanism: PLAIN\n  \
             properties.sasl.username: canalis\n  properties.sasl.password: {password}\n{authority}sink:\n  type: print\n\
             pipeline:\n  restart-strategy.type: none\n"
        );
        let state = tempfile::tempdir().unwrap();
        let mut canalis = Canalis::start(state.path(), &pipeline);
        (canalis.wait().success(), canalis.log())
    };
    let authority = format!("  properties.ssl.ca.location: {}\n", ca.display());
    let (success, log) = run("right", &authority);
    assert!(success && log.contains("+I {\"id\":1}"), "{log}");
    let (success, log) = run("wrong-secret", &authority);
    assert!(!success && !log.contains("wrong-secret"), "{log}");
    let (success, log) = run("right", "");
    assert!(!success && !log.contains("+I {\"id\":1}"), "{log}");
}
