//! RS-03: going on at another server by GTIDs, and every reason not to.

use canalis_mysql::binlog::{BinlogPosition, Reader, StartPosition};
use canalis_testkit::{OwnedServer, Server, ServerKind};
use canalis_types::{Code, Position};
use mysql_async::{Conn, prelude::Queryable};

use super::support::{Taken, Tracker, config, end_of_log, reader, take_until, take_while};

fn ids(taken: &Taken) -> Vec<&str> {
    taken.rows.iter().map(|row| row.cells[0].as_deref().unwrap()).collect()
}

fn parsed(position: &Position) -> BinlogPosition {
    BinlogPosition::parse(position).unwrap()
}

async fn run(conn: &mut Conn, statements: &[&str]) {
    for statement in statements {
        conn.query_drop(*statement).await.unwrap_or_else(|e| panic!("{statement}: {e}"));
    }
}

/// Makes `replica` follow `primary`.
async fn replicate(primary: &Server, replica: &mut Conn) {
    let to = |prefix: &str| {
        format!(
            "{prefix}_HOST = '127.0.0.1', {prefix}_PORT = {}, {prefix}_USER = '{}', {prefix}_PASSWORD = '{}'",
            primary.port,
            primary.username,
            primary.password.replace('\'', "''")
        )
    };
    let statements = match primary.kind {
        ServerKind::MySql => [
            format!(
                "CHANGE REPLICATION SOURCE TO {}, SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1",
                to("SOURCE")
            ),
            "START REPLICA".to_owned(),
        ],
        _ => [
            format!("CHANGE MASTER TO {}, MASTER_USE_GTID = slave_pos", to("MASTER")),
            "START SLAVE".to_owned(),
        ],
    };
    run(replica, &statements.each_ref().map(String::as_str)).await;
}

/// Waits until the replica has what the primary has, then makes it a server of its own.
async fn promote(primary: &mut Conn, replica: &mut Conn, kind: ServerKind) {
    let (executed, wait, stop) = match kind {
        ServerKind::MySql => ("@@global.gtid_executed", "WAIT_FOR_EXECUTED_GTID_SET", "STOP REPLICA"),
        _ => ("@@global.gtid_binlog_pos", "MASTER_GTID_WAIT", "STOP SLAVE"),
    };
    let set: String = primary.query_first(format!("SELECT {executed}")).await.unwrap().unwrap();
    let done: Option<i32> = replica.query_first(format!("SELECT {wait}('{set}', 60)")).await.unwrap();
    assert_eq!(done, Some(0), "the replica catches up with {set}");
    run(replica, &[stop]).await;
}

async fn failover(mut primary: OwnedServer, replica: OwnedServer) {
    let kind = primary.kind;
    let (mut old, mut new) = (primary.mysql().await, replica.mysql().await);
    replicate(&primary, &mut new).await;
    // The log of the primary is in later files than that of the replica.
    run(&mut old, &["FLUSH BINARY LOGS", "FLUSH BINARY LOGS", "FLUSH BINARY LOGS"]).await;
    let database = primary.create_database("binlog_moved").await;
    run(&mut old, &[&format!("USE `{database}`"), "CREATE TABLE t (id INT PRIMARY KEY)"]).await;
    let tracker = Tracker::new(&database);
    tracker.learn(&mut old, "t").await;

    // Read at the primary: the checkpoint, and two places up to which writers have committed.
    let executed = if kind == ServerKind::MySql { "gtid_executed" } else { "gtid_binlog_pos" };
    let set: Option<String> = old.query_first(format!("SELECT @@global.{executed}")).await.unwrap();
    let mut from = end_of_log(&primary, &mut old).await.with_gtid_set(set);
    let mut places = Vec::new();
    for id in 1..=3 {
        // The statement behind the row makes the reader let go of its decoders.
        let insert = format!("INSERT INTO t VALUES ({id})");
        run(&mut old, &[&insert, &format!("ALTER TABLE t COMMENT = '{id}'")]).await;
        let end = end_of_log(&primary, &mut old).await;
        let mut first = reader(&primary, StartPosition::File(from), &tracker);
        let taken = take_until(&mut first, &end).await.unwrap();
        assert_eq!(taken.rows.len(), 1);
        places.push(taken.watermarks.last().unwrap().clone());
        first.close().await;
        from = parsed(places.last().unwrap());
    }
    let [checkpoint, writers @ ..] = places.as_slice() else { panic!("three places") };
    run(&mut old, &["INSERT INTO t VALUES (4)"]).await;
    promote(&mut old, &mut new, kind).await;
    // This one never reaches the replica.
    run(&mut old, &["INSERT INTO t VALUES (99)"]).await;
    let end = end_of_log(&primary, &mut old).await;
    let mut first = reader(&primary, StartPosition::File(from), &tracker);
    let ahead = parsed(take_until(&mut first, &end).await.unwrap().watermarks.last().unwrap());
    first.close().await;
    drop(old);
    primary.kill9();
    run(&mut new, &[&format!("USE `{database}`"), "INSERT INTO t VALUES (5)"]).await;

    let mut config_of_moved = config(&replica, StartPosition::File(parsed(checkpoint)));
    config_of_moved.cuts = writers.to_vec();
    let mut moved = Reader::spawn(config_of_moved, Box::new(tracker.clone())).unwrap();
    let taken = take_while(&mut moved, |taken| taken.rows.len() < 4).await.unwrap();
    moved.close().await;
    assert_eq!(ids(&taken), ["2", "3", "4", "5"]);
    // Writers find their places exactly, and what comes then is behind them.
    assert_eq!(taken.watermarks[..2], *writers);
    assert_eq!(taken.rows_at[..2], [1, 2]);
    assert!(taken.watermarks.is_sorted());
    let last = parsed(taken.watermarks.last().unwrap());
    assert_eq!(last.term, 1);
    assert_ne!(last.server, parsed(checkpoint).server);

    // From there it goes on as at any server.
    run(&mut new, &["INSERT INTO t VALUES (6)"]).await;
    let mut rest = reader(&replica, StartPosition::File(last.clone()), &tracker);
    let taken = take_while(&mut rest, |taken| taken.rows.is_empty()).await.unwrap();
    rest.close().await;
    assert_eq!(ids(&taken), ["6"]);
    assert_eq!(parsed(taken.watermarks.last().unwrap()).term, 1);

    let lost = async |start: BinlogPosition, cuts: Vec<Position>, why: &str| {
        let mut config = config(&replica, StartPosition::File(start));
        config.cuts = cuts;
        let mut reader = Reader::spawn(config, Box::new(tracker.clone())).unwrap();
        let error = take_while(&mut reader, |_| true).await.unwrap_err();
        reader.close().await;
        assert_eq!(error.code(), Code::PositionLost, "{error}");
        assert!(error.message().contains(why), "{error}");
    };
    // The number is there, but another server's transaction has it: MariaDB looks at that when the dump begins.
    let missing = if kind == ServerKind::MySql { "has not executed" } else { "not in the master's binlog" };
    lost(ahead, Vec::new(), missing).await;
    let start = parsed(checkpoint);
    lost(BinlogPosition { gtid_set: None, ..start.clone() }, Vec::new(), "without GTIDs").await;
    lost(BinlogPosition { events: 1, ..start.clone() }, Vec::new(), "inside a transaction").await;
    let blind = BinlogPosition { gtid_set: None, ..parsed(&writers[0]) }.to_position().unwrap();
    lost(start.clone(), vec![blind], "the sink holds rows up to there").await;

    run(&mut new, &["FLUSH BINARY LOGS", "INSERT INTO t VALUES (7)"]).await;
    let newest = end_of_log(&replica, &mut new).await.file;
    // A file that a dump still reads is not purged, and a dump notices late that nobody reads it.
    canalis_testkit::wait_until(std::time::Duration::from_secs(30), || async {
        let mut conn = replica.mysql().await;
        super::restart::kill_dumps(&mut conn).await;
        conn.query_drop(format!("PURGE BINARY LOGS TO '{newest}'")).await.unwrap();
        let files: Vec<mysql_async::Row> = conn.query("SHOW BINARY LOGS").await.unwrap();
        files.len() == 1
    })
    .await;
    lost(start, Vec::new(), "purged").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_03_a_promoted_mariadb_goes_on_by_gtids() {
    let Some(primary) = canalis_testkit::start_mariadb(&[]) else { return };
    let Some(replica) = canalis_testkit::start_mariadb(&["--log-slave-updates=ON"]) else { return };
    failover(primary, replica).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_03_a_promoted_mysql_goes_on_by_gtids() {
    let Some(primary) = canalis_testkit::start_mysql(&[]) else { return };
    let Some(replica) = canalis_testkit::start_mysql(&[]) else { return };
    failover(primary, replica).await;
}
