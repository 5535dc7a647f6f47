//! Losing and going on: the middle of a transaction, a killed connection, a restarted server, a lost position.

use canalis_mysql::binlog::{BinlogPosition, Reader, StartPosition};
use canalis_testkit::{OwnedServer, Server, ServerKind, mariadb, mysql};
use canalis_types::{Code, Position, RowKind};
use mysql_async::{Conn, prelude::Queryable};

use super::support::{Taken, Tracker, config, end_of_log, reader, take_until, take_while};

async fn setup(server: &Server, table: &str) -> (Conn, Tracker) {
    let database = server.create_database("binlog_restart").await;
    let mut conn = server.mysql().await;
    conn.query_drop(format!("USE `{database}`")).await.unwrap();
    conn.query_drop(table).await.unwrap();
    let tracker = Tracker::new(&database);
    tracker.learn(&mut conn, "t").await;
    (conn, tracker)
}

fn ids(taken: &Taken) -> Vec<u64> {
    taken.rows.iter().map(|row| row.cells[0].as_deref().unwrap().parse().unwrap()).collect()
}

fn at(position: &Position) -> StartPosition {
    StartPosition::File(BinlogPosition::parse(position).unwrap())
}

const ROWS: u64 = 50_000;

/// One transaction of many row events.
async fn giant(server: &Server, conn: &mut Conn) -> (BinlogPosition, BinlogPosition) {
    let start = end_of_log(server, conn).await;
    let digits = "(SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL \
                  SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)";
    let sql = format!(
        "INSERT INTO t SELECT a.d * 10000 + b.d * 1000 + c.d * 100 + e.d * 10 + f.d, REPEAT('x', 20) \
         FROM {digits} a, {digits} b, {digits} c, {digits} e, {digits} f WHERE a.d < 5 ORDER BY 1"
    );
    conn.query_drop("BEGIN").await.unwrap();
    conn.query_drop(sql).await.unwrap();
    conn.query_drop("INSERT INTO other SELECT id FROM t LIMIT 3000").await.unwrap();
    conn.query_drop("COMMIT").await.unwrap();
    (start, end_of_log(server, conn).await)
}

/// TX-01: a checkpoint in the middle of a transaction, and everything again from there: nothing lost, nothing twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tx_01_a_giant_transaction_is_cut_and_goes_on() {
    for (server, compressed) in [(mariadb(), false), (mysql(), false), (mysql(), true)] {
        let Some(server) = server else { continue };
        let (mut conn, tracker) = setup(server, "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(30))").await;
        conn.query_drop("CREATE TABLE other (id INT)").await.unwrap();
        tracker.learn(&mut conn, "other").await;
        if compressed {
            conn.query_drop("SET SESSION binlog_transaction_compression = ON").await.unwrap();
        }
        let (start, end) = giant(server, &mut conn).await;
        conn.query_drop("INSERT INTO t VALUES (1000000, 'last')").await.unwrap();
        let end_of_all = end_of_log(server, &mut conn).await;

        let mut whole = reader(server, StartPosition::File(start.clone()), &tracker);
        let taken = take_until(&mut whole, &end_of_all).await.unwrap();
        let total = usize::try_from(ROWS).unwrap() + 3000 + 1;
        assert_eq!(taken.rows.len(), total);
        let inside: Vec<usize> =
            (0..taken.watermarks.len()).filter(|i| taken.watermarks[*i].order[2] > 0).collect();
        assert!(!inside.is_empty(), "the transaction is greater than the rows between watermarks");
        whole.close().await;

        // From each watermark on, exactly the rest follows.
        for index in 0..taken.watermarks.len() - 1 {
            let mut rest = reader(server, at(&taken.watermarks[index]), &tracker);
            let again = take_until(&mut rest, &end_of_all).await.unwrap();
            assert_eq!(again.rows, taken.rows[taken.rows_at[index]..], "{}", taken.watermarks[index]);
        }

        // Read from the front with a cut there, a watermark stands exactly there.
        let cut = taken.watermarks[inside[0]].clone();
        let mut config = config(server, StartPosition::File(start.clone()));
        config.cuts = vec![cut.clone(), end.to_position().unwrap()];
        let mut cutting = Reader::spawn(config, Box::new(tracker.clone())).unwrap();
        let again = take_until(&mut cutting, &end_of_all).await.unwrap();
        for (position, rows) in [(&cut, taken.rows_at[inside[0]]), (&end.to_position().unwrap(), total - 1)] {
            let index = again.watermarks.iter().position(|w| w == position).expect("a watermark at the cut");
            assert_eq!(again.rows_at[index], rows);
        }
        assert_eq!(again.rows, taken.rows);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_that_the_log_does_not_have_is_an_error() {
    let Some(server) = mariadb() else { return };
    let (mut conn, tracker) = setup(server, "CREATE TABLE t (id INT PRIMARY KEY)").await;
    let start = end_of_log(server, &mut conn).await;
    conn.query_drop("INSERT INTO t VALUES (1)").await.unwrap();
    let end = end_of_log(server, &mut conn).await;
    let mut config = config(server, StartPosition::File(start.clone()));
    config.cuts = vec![BinlogPosition::new(start.file.clone(), start.offset + 1).to_position().unwrap()];
    let mut reader = Reader::spawn(config, Box::new(tracker)).unwrap();
    assert_eq!(take_until(&mut reader, &end).await.unwrap_err().code(), Code::StateIncompatible);
}

pub async fn kill_dumps(conn: &mut Conn) -> usize {
    let ids: Vec<u64> = conn
        .query("SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'")
        .await
        .unwrap();
    for id in &ids {
        // It may have gone in between.
        conn.query_drop(format!("KILL {id}")).await.ok();
    }
    ids.len()
}

async fn lost_connections(mut server: OwnedServer) {
    let (mut conn, tracker) =
        setup(&server, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(300))").await;
    let start = end_of_log(&server, &mut conn).await;
    let mut reader = reader(&server, StartPosition::File(start), &tracker);
    let mut all = Vec::new();
    let mut killed = 0;
    let mut written = 0usize;
    for round in 0..6 {
        conn.query_drop("INSERT INTO t (v) VALUES ('a'), ('b')").await.unwrap();
        written += 2;
        let target = written;
        let before = all.len();
        let taken = take_while(&mut reader, |taken| before + taken.rows.len() < target).await.unwrap();
        all.extend(ids(&taken));
        if round == 3 {
            drop(conn);
            server.restart();
            conn = server.mysql().await;
            let name: String = conn
                .query_first("SELECT table_schema FROM information_schema.tables WHERE table_name = 't' AND table_schema LIKE 'binlog_restart%'")
                .await
                .unwrap()
                .unwrap();
            conn.query_drop(format!("USE `{name}`")).await.unwrap();
        } else {
            killed += kill_dumps(&mut conn).await;
        }
    }
    assert!(killed >= 4);
    let expected: Vec<u64> = (1..=u64::try_from(written).unwrap()).collect();
    let mut sorted = all.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), all.len(), "no row comes twice");
    assert_eq!(all.len(), expected.len());
    reader.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_connection_to_mariadb_loses_nothing() {
    let Some(server) = canalis_testkit::start_mariadb(&[]) else { return };
    lost_connections(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_connection_to_mysql_loses_nothing() {
    let Some(server) = canalis_testkit::start_mysql(&[]) else { return };
    lost_connections(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stays_away_ends_the_reader() {
    let port = canalis_testkit::free_port();
    let Some(server) = mariadb() else { return };
    let mut config = config(server, StartPosition::File(BinlogPosition::new("bin.000001", 4)));
    config.endpoint.port = port;
    config.max_retries = 2;
    let mut reader = Reader::spawn(config, Box::new(Tracker::new("x"))).unwrap();
    let error = reader.next().await.unwrap_err();
    assert_eq!(error.code(), Code::SourceUnreachable);
    assert!(error.message().contains("2 attempts"), "{error}");
}

/// RS-01 and RS-03: a purged file, a log begun anew, another server.
async fn lost_positions(server: OwnedServer) {
    let (mut conn, tracker) = setup(&server, "CREATE TABLE t (id INT PRIMARY KEY)").await;
    let start = end_of_log(&server, &mut conn).await;
    conn.query_drop("INSERT INTO t VALUES (1)").await.unwrap();
    let end = end_of_log(&server, &mut conn).await;
    let mut first = reader(&server, StartPosition::File(start.clone()), &tracker);
    let position = take_until(&mut first, &end).await.unwrap().watermarks.pop().unwrap();
    first.close().await;
    let parsed = BinlogPosition::parse(&position).unwrap();
    assert!(parsed.server.is_some() && parsed.file_time.is_some() && parsed.time_ms.is_some());

    let lost = async |start: BinlogPosition, why: &str| {
        let mut reader = reader(&server, StartPosition::File(start), &tracker);
        let error = take_while(&mut reader, |_| true).await.unwrap_err();
        assert_eq!(error.code(), Code::PositionLost, "{error}");
        assert!(error.message().contains(why), "{error}");
    };
    let other = BinlogPosition { server: Some("another".into()), gtid_set: None, ..parsed.clone() };
    lost(other, "another").await;
    let beyond = BinlogPosition { file: "binlog.000900".into(), gtid_set: None, ..parsed.clone() };
    lost(beyond, "begun anew").await;
    let beyond = BinlogPosition { offset: 1 << 40, gtid_set: None, ..parsed.clone() };
    lost(beyond, "begun anew").await;

    for id in 2..5 {
        conn.query_drop("FLUSH BINARY LOGS").await.unwrap();
        conn.query_drop(format!("INSERT INTO t VALUES ({id})")).await.unwrap();
    }
    let newest = end_of_log(&server, &mut conn).await.file;
    // A file that a dump still reads is not purged, and a dump notices late that nobody reads it.
    canalis_testkit::wait_until(std::time::Duration::from_secs(30), || async {
        let mut conn = server.mysql().await;
        kill_dumps(&mut conn).await;
        conn.query_drop(format!("PURGE BINARY LOGS TO '{newest}'")).await.unwrap();
        let files: Vec<mysql_async::Row> = conn.query("SHOW BINARY LOGS").await.unwrap();
        files.len() == 1
    })
    .await;
    lost(parsed.clone(), &format!("purged the file; the oldest position that the server has is {newest}:4"))
        .await;

    // A file is told from another by the second in which it was begun.
    let begun = parsed.file_time.unwrap();
    canalis_testkit::wait_until(std::time::Duration::from_secs(10), || async {
        let now: u32 = server.mysql().await.query_first("SELECT UNIX_TIMESTAMP()").await.unwrap().unwrap();
        now > begun + 1
    })
    .await;

    // The log is begun anew and grows beyond the old position: only its GTIDs or the time of its file tell.
    let reset = if server.kind == ServerKind::MySql { "RESET BINARY LOGS AND GTIDS" } else { "RESET MASTER" };
    conn.query_drop(reset).await.unwrap();
    while end_of_log(&server, &mut conn).await.file < parsed.file {
        conn.query_drop("FLUSH BINARY LOGS").await.unwrap();
    }
    conn.query_drop("DELETE FROM t").await.unwrap();
    while end_of_log(&server, &mut conn).await.offset <= parsed.offset + 100 {
        conn.query_drop("INSERT INTO t SELECT COALESCE(MAX(id), 0) + 1 FROM t").await.unwrap();
    }
    let without_gtids = BinlogPosition { gtid_set: None, ..parsed.clone() };
    lost(without_gtids, "begun anew").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_01_rs_03_lost_positions_of_mariadb() {
    let Some(server) = canalis_testkit::start_mariadb(&[]) else { return };
    lost_positions(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_01_rs_03_lost_positions_of_mysql() {
    let Some(server) = canalis_testkit::start_mysql(&[]) else { return };
    lost_positions(server).await;
}

/// Rows that a sink holds from before a kill come again in the same batches' order after the cut.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn positions_between_transactions_are_exact() {
    for server in [mariadb(), mysql()].into_iter().flatten() {
        let (mut conn, tracker) = setup(server, "CREATE TABLE t (id INT PRIMARY KEY)").await;
        let start = end_of_log(server, &mut conn).await;
        let mut ends = Vec::new();
        for id in 0..20 {
            conn.query_drop(format!("INSERT INTO t VALUES ({id})")).await.unwrap();
            ends.push(end_of_log(server, &mut conn).await);
        }
        for (index, end) in ends.iter().enumerate().step_by(6) {
            let mut config = config(server, StartPosition::File(start.clone()));
            config.cuts = vec![end.to_position().unwrap()];
            let mut reader = Reader::spawn(config, Box::new(tracker.clone())).unwrap();
            let taken = take_until(&mut reader, end).await.unwrap();
            assert_eq!(taken.of("t", RowKind::Insert).len(), index + 1);
            let mut rest = super::support::reader(server, StartPosition::File(end.clone()), &tracker);
            let taken = take_until(&mut rest, &ends[19]).await.unwrap_or_default();
            assert_eq!(taken.rows.len(), 19 - index);
        }
    }
}

/// A way to the server that breaks each connection after some bytes, later each time. Gives its port and the number of
/// broken connections.
fn breaking_proxy(server_port: u16, step: usize) -> (u16, std::sync::Arc<std::sync::atomic::AtomicUsize>) {
    use std::{
        io::{Read, Write},
        net::{Shutdown, TcpListener, TcpStream},
        sync::{Arc, atomic::AtomicUsize, atomic::Ordering},
        thread,
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let broken = Arc::new(AtomicUsize::new(0));
    let count = broken.clone();
    thread::spawn(move || {
        for (index, client) in listener.incoming().enumerate() {
            let Ok(client) = client else { return };
            let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)) else { return };
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || {
                // Ends with the connection.
                let _ = std::io::copy(&mut from, &mut to);
            });
            let count = count.clone();
            thread::spawn(move || {
                let (mut server, mut client) = (server, client);
                let mut left = step * (index + 1);
                let mut buffer = vec![0; 16 << 10];
                while left > 0 {
                    let Ok(read @ 1..) = server.read(&mut buffer) else { break };
                    let some = read.min(left);
                    if client.write_all(&buffer[..some]).is_err() {
                        break;
                    }
                    left -= some;
                }
                if left == 0 {
                    count.fetch_add(1, Ordering::Relaxed);
                }
                let _ = client.shutdown(Shutdown::Both);
                let _ = server.shutdown(Shutdown::Both);
            });
        }
    });
    (port, broken)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_break_inside_transactions_lose_nothing() {
    for (server, compressed) in [(mariadb(), false), (mysql(), false), (mysql(), true)] {
        let Some(server) = server else { continue };
        let (mut conn, tracker) = setup(server, "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(30))").await;
        conn.query_drop("CREATE TABLE other (id INT)").await.unwrap();
        tracker.learn(&mut conn, "other").await;
        if compressed {
            conn.query_drop("SET SESSION binlog_transaction_compression = ON").await.unwrap();
        }
        let (start, _) = giant(server, &mut conn).await;
        for id in 0..200 {
            conn.query_drop(format!("UPDATE t SET v = {id} WHERE id >= {id} AND id < {id} + 100"))
                .await
                .unwrap();
        }
        conn.query_drop("UPDATE t SET v = 'x' WHERE id < 20000").await.unwrap();
        let end = end_of_log(server, &mut conn).await;
        let mut direct = reader(server, StartPosition::File(start.clone()), &tracker);
        let expected = take_until(&mut direct, &end).await.unwrap();
        let (port, broken) = breaking_proxy(server.port, if compressed { 40_000 } else { 250_000 });
        let mut config = config(server, StartPosition::File(start));
        config.endpoint.port = port;
        let mut reader = Reader::spawn(config, Box::new(tracker)).unwrap();
        let taken = take_until(&mut reader, &end).await.unwrap();
        assert!(broken.load(std::sync::atomic::Ordering::Relaxed) >= 3);
        assert!(taken.watermarks.is_sorted());
        // Batches of two tables may come in another order; each table's rows may not.
        for table in ["t", "other"] {
            let of = |taken: &Taken| -> Vec<_> {
                taken.rows.iter().filter(|row| row.table == table).cloned().collect()
            };
            assert!(of(&taken) == of(&expected), "{table}");
        }
    }
}
