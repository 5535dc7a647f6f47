//! Writers that get in each other's way.

use canalis_batch::BatchBuilder;
use canalis_types::RowKind;

use crate::lab::{Lab, at, counts, pairs};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sk_02_writers_with_overlapping_keys_lose_nothing() {
    let Some(lab) = Lab::new().await else { return };
    // A deadlock is noticed after this long.
    lab.run(&format!("ALTER DATABASE \"{}\" SET deadlock_timeout = '10ms'", lab.database)).await;
    let (one, two) = (pairs("one"), pairs("two"));
    let sink = lab.open(&[], &[&one, &two]).await;
    let mut tasks = Vec::new();
    for index in 0..4usize {
        let mut writer = lab.writer_of(&sink, index, 4).await;
        // Two tables in different order and the same keys: a deadlock waiting to happen.
        let tables = if index % 2 == 0 { [one.clone(), two.clone()] } else { [two.clone(), one.clone()] };
        tasks.push(tokio::spawn(async move {
            for round in 0..10u64 {
                for schema in &tables {
                    let mut builder = BatchBuilder::new(schema.clone(), 200);
                    for id in 0..200 {
                        builder.column(0).append_i64(id).unwrap();
                        builder.column(1).append_text(format!("{index}/{round}").as_bytes()).unwrap();
                        builder.end_row(RowKind::Insert, 0);
                    }
                    writer.write(builder.finish().unwrap()).await.unwrap();
                }
                let report = writer.commit(&at(round + 1)).await.unwrap();
                assert_eq!(counts(&report), (400, 0));
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    for name in ["one", "two"] {
        // The last window of somebody, whole.
        let rows = lab
            .lines(&format!("SELECT count(*), count(DISTINCT v), bool_and(v LIKE '%/9') FROM app.{name}"))
            .await;
        assert_eq!(rows, ["200|1|t"]);
    }
    assert!(lab.letters.take().is_empty());
}
