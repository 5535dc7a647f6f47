//! Cases about going on after a crash: the enumerator is restored from the state that it gave.

use std::collections::BTreeSet;

use canalis_connector_api::{NextSplit, SourceRestore, Split};
use canalis_types::RowKind;
use mysql_async::prelude::Queryable;

use super::{Run, cells, context, execute, servers, source, texts};

const SIZE: &str = "scan.incremental.snapshot.chunk.size";

fn restore(state: serde_json::Value, running: Vec<Split>, done: &[String]) -> Option<SourceRestore> {
    // As it comes back from a file.
    let state = serde_json::from_str(&state.to_string()).unwrap();
    Some(SourceRestore { state, running, done: done.iter().cloned().collect(), cuts: Vec::new() })
}

#[tokio::test]
async fn rs_05_a_snapshot_goes_on_where_it_was() {
    for server in servers() {
        let database = server.create_database("src_resume").await;
        let values: Vec<String> = (1..=100).map(|id| format!("('k{id:03}', {id})")).collect();
        execute(
            server,
            &database,
            &[
                "CREATE TABLE t (k VARCHAR(10) PRIMARY KEY, v INT)",
                &format!("INSERT INTO t VALUES {}", values.join(",")),
                "CREATE TABLE keyless (a INT, b TEXT)",
                "INSERT INTO keyless VALUES (1, 'x'), (1, 'x'), (2, NULL)",
            ],
        )
        .await;
        let source = source(server, &database, &[(SIZE, "10")]);
        let mut first = Run::begin(&*source).await;
        let (mut rows, mut done) = (Vec::new(), Vec::new());
        // The table without a key comes first by name; it and three chunks are complete.
        for _ in 0..4 {
            let (split, batches) = first.chunk().await.unwrap();
            assert!(!split.retried);
            rows.extend(batches.iter().flat_map(texts));
            done.push(split.id);
        }
        // One chunk is under way, then the state is made.
        let NextSplit::Split(running) = first.enumerator.next(0).await.unwrap() else { panic!("a chunk") };
        let state = first.enumerator.state();
        // After the state, one more chunk becomes complete in the sink.
        let (later, batches) = first.chunk().await.unwrap();
        rows.extend(batches.iter().flat_map(texts));
        done.push(later.id.clone());
        drop(first);

        execute(
            server,
            &database,
            &[
                "UPDATE t SET v = -1 WHERE k IN ('k005', 'k095')",
                "DELETE FROM t WHERE k IN ('k006', 'k096')",
                "INSERT INTO keyless VALUES (3, 'new')",
            ],
        )
        .await;
        let mut second = Run::open(&*source, restore(state, vec![(*running).clone()], &done)).await.unwrap();
        let mut seen = BTreeSet::new();
        while let Some((split, batches)) = second.chunk().await {
            assert!(split.retried && !done.contains(&split.id), "{split:?}");
            seen.insert(split.id);
            rows.extend(batches.iter().flat_map(texts));
        }
        assert!(seen.contains(&running.id));
        // The rest of the keys and the one chunk; the last chunk took a row less.
        assert_eq!(seen.len(), 6, "{seen:?}");
        let snapshot = cells(rows, 0);
        let keys: Vec<_> =
            snapshot.iter().filter(|row| row[0].as_ref().is_some_and(|k| k.starts_with('k'))).collect();
        // k006 was read before it went, k096 was not.
        assert_eq!(keys.len(), 99);
        assert_eq!(snapshot.len(), 99 + 3);
        // The stream begins where the first view was: all four changes are in it.
        let changes = second.stream(5).await;
        let kinds: Vec<RowKind> = changes.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds.iter().filter(|k| **k == RowKind::Delete).count(), 2, "{changes:?}");
        assert_eq!(kinds.iter().filter(|k| **k == RowKind::UpdateAfter).count(), 2);
        assert_eq!(kinds.iter().filter(|k| **k == RowKind::Insert).count(), 1);
    }
}

#[tokio::test]
async fn rs_03_the_rest_of_a_snapshot_is_not_read_from_another_server() {
    for server in servers() {
        let database = server.create_database("src_moved").await;
        execute(server, &database, &["CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)"])
            .await;
        let source = source(server, &database, &[]);
        let mut state = Run::begin(&*source).await.enumerator.state();
        assert!(Run::open(&*source, restore(state.clone(), Vec::new(), &[])).await.is_ok());
        // As it would be from the server that stood here before.
        let mut place: serde_json::Value =
            serde_json::from_str(state["view"]["detail"].as_str().unwrap()).unwrap();
        assert!(place["server"].is_string(), "{place}");
        place["server"] = "another".into();
        state["view"]["detail"] = place.to_string().into();
        let error = Run::open(&*source, restore(state, Vec::new(), &[])).await.err().unwrap();
        assert_eq!(error.code(), canalis_types::Code::PositionLost);
        assert!(error.message().contains("another"), "{error}");
    }
}

#[tokio::test]
async fn ky_01_a_table_without_a_key_that_was_not_finished_is_read_again_as_a_whole() {
    for server in servers() {
        let database = server.create_database("src_nk").await;
        execute(
            server,
            &database,
            &[
                "CREATE TABLE a_keyed (id INT PRIMARY KEY)",
                "INSERT INTO a_keyed VALUES (1)",
                "CREATE TABLE nk (a INT, b TEXT)",
                "INSERT INTO nk VALUES (1, 'x'), (1, 'x'), (2, NULL)",
            ],
        )
        .await;
        let source = source(server, &database, &[]);
        let mut first = Run::begin(&*source).await;
        let (keyed, _) = first.chunk().await.unwrap();
        let NextSplit::Split(running) = first.enumerator.next(0).await.unwrap() else { panic!("a chunk") };
        let state = first.enumerator.state();
        drop(first);
        // Between both views: the re-read shows it, so the stream must not.
        execute(server, &database, &["INSERT INTO nk VALUES (3, 'y')", "INSERT INTO a_keyed VALUES (2)"])
            .await;
        let mut second =
            Run::open(&*source, restore(state, vec![(*running).clone()], &[keyed.id])).await.unwrap();
        let rows = cells(second.snapshot().await, 0);
        assert_eq!(rows.len(), 4, "{rows:?}");
        execute(server, &database, &["INSERT INTO nk VALUES (4, 'z')"]).await;
        let stream = cells(second.stream(2).await, 0);
        let cell = |text: &str| Some(text.to_owned());
        assert_eq!(stream, [vec![cell("2")], vec![cell("4"), cell("z")]]);
    }
}

/// What the third run finds.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Left {
    /// The first run's state; the sink has the second run's reading.
    FirstState,
    /// The second run's state from before it dealt anything; the sink has its reading.
    SecondState,
    /// The same, and the sink has nothing.
    Nothing,
}

#[tokio::test]
async fn readings_of_runs_that_left_no_state_are_known_by_their_names() {
    for (server, left) in servers()
        .into_iter()
        .flat_map(|s| [Left::FirstState, Left::SecondState, Left::Nothing].map(|left| (s, left)))
    {
        let database = server.create_database("src_lostrun").await;
        execute(server, &database, &["CREATE TABLE nk (a INT)", "INSERT INTO nk VALUES (1), (1)"]).await;
        let source = source(server, &database, &[]);
        let mut first = Run::begin(&*source).await;
        let NextSplit::Split(running) = first.enumerator.next(0).await.unwrap() else { panic!("a chunk") };
        let state = first.enumerator.state();
        drop(first);
        execute(server, &database, &["INSERT INTO nk VALUES (2)"]).await;
        // The second run reads the table from its own view, which the sink keeps, and is lost before any checkpoint.
        let mut second =
            Run::open(&*source, restore(state.clone(), vec![(*running).clone()], &[])).await.unwrap();
        // What it has still to deal is in its state.
        let unread = second.enumerator.state();
        let (split, batches) = second.chunk().await.unwrap();
        assert_ne!(split.id, running.id);
        assert_eq!(batches.iter().map(|b| b.num_rows()).sum::<usize>(), 3);
        drop(second);
        execute(server, &database, &["INSERT INTO nk VALUES (3)"]).await;
        let restored = match left {
            Left::FirstState => restore(state, vec![*running], &[split.id]),
            Left::SecondState => restore(unread, Vec::new(), &[split.id]),
            Left::Nothing => restore(unread, Vec::new(), &[]),
        };
        let mut third = Run::open(&*source, restored).await.unwrap();
        let read_again = third.snapshot().await.len();
        assert_eq!(read_again, if left == Left::Nothing { 4 } else { 0 }, "{left:?} on {server}");
        execute(server, &database, &["INSERT INTO nk VALUES (4)"]).await;
        let expect: &[&str] = if left == Left::Nothing { &["4"] } else { &["3", "4"] };
        let stream = cells(third.stream(expect.len() as u64).await, 0);
        let got: Vec<&str> = stream.iter().filter_map(|row| row[0].as_deref()).collect();
        assert_eq!(got, expect, "{left:?} on {server}");
    }
}

#[tokio::test]
async fn rs_09_the_start_position_is_fixed_at_the_first_start() {
    for server in servers() {
        let database = server.create_database("src_latest").await;
        execute(server, &database, &["CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)"])
            .await;
        let source = source(server, &database, &[("scan.startup.mode", "latest-offset")]);
        let state = Run::begin(&*source).await.enumerator.state();
        // The worker is lost before anything is read.
        execute(server, &database, &["INSERT INTO t VALUES (2)"]).await;
        let mut run = Run::open(&*source, restore(state, Vec::new(), &[])).await.unwrap();
        assert!(run.chunk().await.is_none());
        assert_eq!(cells(run.stream(1).await, 0), [vec![Some("2".to_owned())]]);
    }
}

#[tokio::test]
async fn the_stream_goes_on_from_a_checkpoint_with_the_structure_of_its_place() {
    for server in servers() {
        let database = server.create_database("src_ddl").await;
        execute(server, &database, &["CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)"])
            .await;
        let source = source(server, &database, &[]);
        let mut run = Run::begin(&*source).await;
        assert_eq!(run.snapshot().await.len(), 1);
        execute(server, &database, &["INSERT INTO t VALUES (2)"]).await;
        run.stream(1).await;
        let before = (run.enumerator.state(), run.at.clone().unwrap());
        execute(
            server,
            &database,
            &["ALTER TABLE t ADD COLUMN z INT(6) ZEROFILL, ADD COLUMN f VARCHAR(5) CHARACTER SET latin1 FIRST",
              "INSERT INTO t VALUES ('é', 3, 42), (NULL, 4, 4294967295)"],
        )
        .await;
        let cell = |text: &str| Some(text.to_owned());
        let expect = [vec![None, cell("4"), cell("4294967295")], vec![cell("é"), cell("3"), cell("42")]];
        assert_eq!(cells(run.stream(2).await, 0), expect);
        let after = (run.enumerator.state(), run.at.clone().unwrap());
        execute(server, &database, &["INSERT INTO t VALUES ('x', 5, 5)"]).await;
        drop(run);
        // From before the statement with a state made after it, and from after it.
        for (state, position, changes) in
            [(before.0, before.1.clone(), 3), (after.0.clone(), before.1, 3), (after.0, after.1, 1)]
        {
            let split = Split {
                id: "stream".into(),
                mode: canalis_connector_api::SplitMode::Stream,
                table: None,
                payload: serde_json::json!({}),
                position: Some(position),
                retried: false,
            };
            let mut again = Run::open(&*source, restore(state, vec![split], &[])).await.unwrap();
            assert!(again.chunk().await.is_none());
            let rows = cells(again.stream(changes).await, 0);
            assert!(rows.contains(&vec![cell("x"), cell("5"), cell("5")]), "{rows:?}");
            assert_eq!(rows.len() as u64, changes);
        }
    }
}

#[tokio::test]
async fn snapshot_and_stream_together_are_the_table_while_it_changes() {
    for server in servers() {
        let database = server.create_database("src_busy").await;
        execute(
            server,
            &database,
            &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)", "CREATE TABLE nk (a INT)"],
        )
        .await;
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let writers: Vec<_> = (0..3)
            .map(|_| {
                let (stop, database) = (stop.clone(), database.clone());
                tokio::spawn(async move {
                    let mut conn = server.mysql().await;
                    conn.query_drop(format!("USE `{database}`")).await.unwrap();
                    let mut written = 0u64;
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        conn.query_drop("BEGIN").await.unwrap();
                        conn.query_drop("INSERT INTO t (v) VALUES (1)").await.unwrap();
                        conn.query_drop("INSERT INTO nk VALUES (1)").await.unwrap();
                        conn.query_drop("COMMIT").await.unwrap();
                        written += 1;
                    }
                    written
                })
            })
            .collect();
        let source = source(server, &database, &[(SIZE, "50")]);
        let mut totals = Vec::new();
        let mut enumerator = None;
        for round in 0..5 {
            // Several views on a busy server; the last one is read.
            let run = source.open(context(3), None).await.unwrap();
            if round == 4 {
                enumerator = Some(run);
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        for writer in writers {
            totals.push(writer.await.unwrap());
        }
        let total: u64 = totals.iter().sum();
        let mut run = Run { enumerator: enumerator.unwrap(), reader: None, stream: None, at: None };
        let snapshot = run.snapshot().await;
        let rest = 2 * total - snapshot.len() as u64;
        let mut all = snapshot;
        if rest > 0 {
            all.extend(run.stream(rest).await);
        }
        let keyed: BTreeSet<String> =
            all.iter().filter(|(_, c)| c.len() == 2).filter_map(|(_, c)| c[0].clone()).collect();
        assert_eq!(keyed.len() as u64, total, "every keyed row once on {server}");
        assert_eq!(all.len() as u64, 2 * total, "no row is doubled on {server}");
    }
}
