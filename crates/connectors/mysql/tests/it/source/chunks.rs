//! Cases about keys and chunks.

use std::{collections::BTreeSet, sync::Arc};

use canalis_connector_api::{NextSplit, SourceEvent, Split};
use canalis_testkit::Server;
use tokio::sync::{Mutex, mpsc};

use super::{Run, cells, context, execute, servers, source, texts};

const SIZE: &str = "scan.incremental.snapshot.chunk.size";

/// Reads everything; gives the sizes of the chunks and the cell texts of all rows.
async fn read(
    server: &Server,
    database: &str,
    options: &[(&str, &str)],
) -> (Vec<usize>, Vec<Vec<Option<String>>>) {
    let source = source(server, database, options);
    let mut run = Run::begin(&*source).await;
    let (mut sizes, mut rows, mut ids) = (Vec::new(), Vec::new(), BTreeSet::new());
    while let Some((split, batches)) = run.chunk().await {
        assert!(ids.insert(split.id.clone()), "{} is dealt twice", split.id);
        let of_chunk: Vec<_> = batches.iter().flat_map(texts).collect();
        sizes.push(of_chunk.len());
        rows.extend(of_chunk);
    }
    (sizes, cells(rows, 0))
}

fn distinct(rows: &[Vec<Option<String>>], column: usize) -> usize {
    rows.iter().map(|row| &row[column]).collect::<BTreeSet<_>>().len()
}

#[tokio::test]
async fn my_05_unsigned_keys_across_the_sign_border() {
    for server in servers() {
        let database = server.create_database("src_ukey").await;
        execute(
            server,
            &database,
            &[
                "CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY)",
                "INSERT INTO t VALUES (1), (9223372036854775807), (9223372036854775808), (18446744073709551614)",
            ],
        )
        .await;
        let (sizes, rows) = read(server, &database, &[(SIZE, "2")]).await;
        assert_eq!((rows.len(), distinct(&rows, 0)), (4, 4));
        assert!(sizes.iter().all(|n| *n <= 2), "{sizes:?}");
    }
}

#[tokio::test]
async fn ky_05_text_keys_are_cut_by_the_databases_own_order() {
    for server in servers() {
        let database = server.create_database("src_ci").await;
        execute(
            server,
            &database,
            &[
                "CREATE TABLE t (k VARCHAR(36) COLLATE utf8mb4_general_ci PRIMARY KEY, v INT)",
                "INSERT INTO t VALUES ('10',1),('2b',2),('K7',3),('k8',4),('Mango',5),('melon',6),('ZEBRA',7),('zinc',8),\
                 ('Äpfel',9),('apfel2',10),('it''s',11),('tail ',12)",
            ],
        )
        .await;
        let (sizes, rows) = read(server, &database, &[(SIZE, "2")]).await;
        assert_eq!((rows.len(), distinct(&rows, 0)), (12, 12));
        assert!(sizes.iter().all(|n| *n <= 4), "{sizes:?}");
        assert!(sizes.len() >= 6);
    }
}

#[tokio::test]
async fn ky_06_binary_keys_are_cut_by_byte_value() {
    for server in servers() {
        let database = server.create_database("src_bin").await;
        execute(
            server,
            &database,
            &[
                "CREATE TABLE t (k BINARY(16) PRIMARY KEY)",
                "INSERT INTO t VALUES (X'00000000000000000000000000000000'), (X'7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF'), \
                 (X'80000000000000000000000000000000'), (X'FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF')",
                "CREATE TABLE v (k VARBINARY(16) PRIMARY KEY)",
                "INSERT INTO v VALUES (X''), (X'00'), (X'0000'), (X'5C27'), (X'FF')",
            ],
        )
        .await;
        let (sizes, rows) = read(server, &database, &[(SIZE, "2")]).await;
        assert_eq!((rows.len(), distinct(&rows, 0)), (9, 9));
        assert!(sizes.iter().all(|n| *n <= 2), "{sizes:?}");
    }
}

#[tokio::test]
async fn ky_08_sparse_numeric_keys_give_few_chunks() {
    for server in servers() {
        let database = server.create_database("src_sparse").await;
        let values: Vec<String> = (1..=1000).map(|id| format!("({id})")).collect();
        execute(
            server,
            &database,
            &[
                "CREATE TABLE t (id BIGINT PRIMARY KEY)",
                &format!("INSERT INTO t VALUES {}, (9000000000000000000)", values.join(",")),
                "ANALYZE TABLE t",
            ],
        )
        .await;
        let (sizes, rows) = read(server, &database, &[(SIZE, "100")]).await;
        assert_eq!((rows.len(), distinct(&rows, 0)), (1001, 1001));
        assert!(sizes.len() <= 30, "{sizes:?}");
    }
}

#[tokio::test]
async fn dense_numeric_keys_are_cut_by_arithmetic() {
    for server in servers() {
        let database = server.create_database("src_dense").await;
        let values: Vec<String> = (-500..500).map(|id| format!("({})", id * 2)).collect();
        execute(
            server,
            &database,
            &[
                "CREATE TABLE t (id INT PRIMARY KEY)",
                &format!("INSERT INTO t VALUES {}", values.join(",")),
                "ANALYZE TABLE t",
                "CREATE TABLE empty_table (id INT PRIMARY KEY)",
            ],
        )
        .await;
        let (sizes, rows) = read(server, &database, &[(SIZE, "100")]).await;
        assert_eq!((rows.len(), distinct(&rows, 0)), (1000, 1000));
        assert!(sizes.len() <= 13 && sizes.iter().all(|n| *n <= 110), "{sizes:?}");
    }
}

#[tokio::test]
async fn ky_09_rows_that_end_a_chunk_may_vanish() {
    for server in servers() {
        let database = server.create_database("src_vanish").await;
        let values: Vec<String> = (1..=100).map(|id| format!("('k{id:03}')")).collect();
        execute(
            server,
            &database,
            &[
                "CREATE TABLE t (k VARCHAR(10) PRIMARY KEY)",
                &format!("INSERT INTO t VALUES {}", values.join(",")),
            ],
        )
        .await;
        let source = source(server, &database, &[(SIZE, "10")]);
        let mut run = Run::begin(&*source).await;
        let mut rows = Vec::new();
        let mut last = 100;
        while let Some((_, batches)) = run.chunk().await {
            rows.extend(batches.iter().flat_map(texts));
            // The view still shows them; borders are found without it.
            execute(server, &database, &[&format!("DELETE FROM t WHERE k > 'k{:03}'", last - 7)]).await;
            last = (last - 7).max(8);
        }
        assert_eq!(distinct(&cells(rows, 0), 0), 100);
    }
}

#[tokio::test]
async fn ky_10_composite_keys_are_cut_by_the_whole_tuple() {
    for server in servers() {
        let database = server.create_database("src_tuple").await;
        let many: Vec<String> = (1..=2000).map(|id| format!("(1, {id})")).collect();
        execute(
            server,
            &database,
            &[
                "CREATE TABLE t (tenant INT, id INT, PRIMARY KEY (tenant, id))",
                &format!("INSERT INTO t VALUES {}", many.join(",")),
                "INSERT INTO t SELECT 2, id FROM t WHERE id <= 10",
            ],
        )
        .await;
        let (sizes, rows) = read(server, &database, &[(SIZE, "100")]).await;
        assert_eq!(rows.iter().collect::<BTreeSet<_>>().len(), 2010);
        assert_eq!(rows.len(), 2010);
        assert!(sizes.iter().all(|n| *n <= 100), "{sizes:?}");
    }
}

#[tokio::test]
async fn keys_of_every_sortable_type_are_cut() {
    for server in servers() {
        for (ty, values) in [
            ("DECIMAL(20,5)", "(-1.5), (0), (0.00001), (99999.5), (123456789012345.12345)"),
            ("DATE", "('0000-00-00'), ('1969-12-31'), ('2024-02-29'), ('9999-12-31'), ('2025-00-01')"),
            (
                "DATETIME(6)",
                "('1000-01-01 00:00:00.000001'), ('1969-12-31 23:59:59.999999'), ('2024-01-01'), ('9999-12-31 23:59:59'), ('2000-01-01')",
            ),
            (
                "TIMESTAMP(3)",
                "('1970-01-02 00:00:01'), ('2001-01-01 00:00:00.001'), ('2024-01-01'), ('2037-12-31 23:59:59'), ('2000-01-01')",
            ),
            ("TIME", "('-838:59:59'), ('-00:00:01'), ('00:00:00'), ('100:00:00'), ('838:59:59')"),
            ("YEAR", "(0), (1901), (1970), (2000), (2155)"),
            ("BIT(40)", "(0), (1), (255), (65536), (1099511627775)"),
            ("TINYINT UNSIGNED", "(0), (1), (127), (128), (255)"),
            ("CHAR(5) CHARACTER SET utf16", "('a'), ('B'), ('é'), ('中'), ('😀')"),
            ("ENUM('z','y','x','w','v')", "('z'), ('y'), ('x'), ('w'), ('v')"),
            ("DOUBLE", "(-1e300), (0.1), (0.3), (1e-300), (5)"),
        ] {
            let database = server.create_database("src_keys").await;
            execute(
                server,
                &database,
                &[
                    "SET SESSION sql_mode = ''",
                    &format!("CREATE TABLE t (k {ty} NOT NULL PRIMARY KEY)"),
                    &format!("INSERT INTO t VALUES {values}"),
                ],
            )
            .await;
            let (sizes, rows) = read(server, &database, &[(SIZE, "2")]).await;
            assert_eq!((rows.len(), distinct(&rows, 0)), (5, 5), "{ty} on {server}: {sizes:?}");
            let whole = ty.starts_with("ENUM") || ty == "DOUBLE";
            assert_eq!(sizes.len() == 1, whole, "{ty} on {server}: {sizes:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_readers_than_sessions_take_turns() {
    for server in servers() {
        let database = server.create_database("src_turns").await;
        let values: Vec<String> = (1..=500).map(|id| format!("('{id:05}')")).collect();
        execute(
            server,
            &database,
            &[
                "CREATE TABLE t (k VARCHAR(10) PRIMARY KEY)",
                &format!("INSERT INTO t VALUES {}", values.join(",")),
            ],
        )
        .await;
        let source = source(server, &database, &[(SIZE, "20"), ("connection.pool.size", "2")]);
        let mut enumerator = source.open(context(5), None).await.unwrap();
        let (sender, receiver) = async_channel(64);
        let mut readers = Vec::new();
        for _ in 0..5 {
            let (mut reader, receiver) = (enumerator.open_reader().await.unwrap(), receiver.clone());
            readers.push(tokio::spawn(async move {
                let mut rows = Vec::new();
                loop {
                    let split = receiver.lock().await.recv().await;
                    let Some(split) = split else { return rows };
                    reader.start(split).await.unwrap();
                    loop {
                        match reader.next().await.unwrap() {
                            SourceEvent::Batch(batch) => rows.extend(texts(&batch)),
                            SourceEvent::SplitEnd => break,
                            other => panic!("unexpected {other:?}"),
                        }
                    }
                }
            }));
        }
        let mut ids = Vec::new();
        while let NextSplit::Split(split) = enumerator.next(0).await.unwrap() {
            ids.push(split.id.clone());
            sender.send(*split).await.unwrap();
        }
        drop(sender);
        let mut rows = Vec::new();
        for reader in readers {
            rows.extend(reader.await.unwrap());
        }
        assert!(ids.len() >= 25);
        assert_eq!(distinct(&cells(rows, 0), 0), 500);
    }
}

/// A channel with several receivers.
fn async_channel(size: usize) -> (mpsc::Sender<Split>, Arc<Mutex<mpsc::Receiver<Split>>>) {
    let (sender, receiver) = mpsc::channel(size);
    (sender, Arc::new(Mutex::new(receiver)))
}

#[tokio::test]
async fn names_that_need_quoting_and_declared_chunk_columns_work() {
    for server in servers() {
        let database = server.create_database("src_names").await;
        execute(
            server,
            &database,
            &[
                "CREATE TABLE `or``der $1` (`i d` INT PRIMARY KEY, `select` INT, KEY (`select`))",
                "INSERT INTO `or``der $1` VALUES (1, NULL), (2, 5), (3, 5), (4, 6), (5, 9), (6, NULL)",
            ],
        )
        .await;
        let options = [(SIZE, "2"), ("scan.incremental.snapshot.chunk.key-column", r"\.*.\.*:SELECT")];
        let (sizes, rows) = read(server, &database, &options).await;
        assert_eq!((rows.len(), distinct(&rows, 0)), (6, 6));
        assert!(sizes.len() > 1, "{sizes:?}");
    }
}
