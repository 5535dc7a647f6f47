//! The ledger: every sink reports exactly the changes that it took since its last commit, per table; an update is one.

use super::{
    lab::{Start, all},
    model::{batch, begin, delete, ends, insert, keyed, keyless, point, update},
};

#[tokio::test(flavor = "multi_thread")]
async fn every_sink_accounts_for_what_it_took() {
    for lab in all().await {
        let name = lab.name;
        let sink = lab.sink();
        let schemas = [keyed(&lab, "t"), keyless(&lab, "u")];
        lab.open(&*sink, 1, Start::Fresh).await;
        for schema in &schemas {
            sink.prepare_table(schema, true).await.unwrap();
        }
        let mut writer = lab.writer(&*sink, 0, 1).await;
        // A snapshot split of each table.
        for schema in &schemas {
            let split = format!("split of {}", schema.id.table);
            writer.begin_split(&begin(&split, schema)).await.unwrap();
            let rows = [insert(&["1", "a"]), insert(&["2", "b"]), insert(&["3", "c"])].concat();
            writer.write(batch(schema, &rows)).await.unwrap();
            let report = writer.commit(&ends(&[&split])).await.unwrap();
            assert_eq!(report.written, [(schema.id.clone(), 3)], "{name}");
        }
        sink.snapshot_complete(&schemas).await.unwrap();

        // Changes, some of which make others needless.
        let changes = [
            update(&["1", "a"], &["1", "b"]),
            update(&["1", "b"], &["1", "c"]),
            delete(&["2", "b"]),
            insert(&["4", "d"]),
            delete(&["4", "d"]),
            update(&["3", "c"], &["5", "c"]),
        ]
        .concat();
        for schema in &schemas {
            writer.write(batch(schema, &changes)).await.unwrap();
            writer.write(batch(schema, &insert(&["6", "e"]))).await.unwrap();
        }
        let mut report = writer.commit(&point(1)).await.unwrap();
        report.written.sort();
        let expect = schemas.each_ref().map(|schema| (schema.id.clone(), 7));
        assert_eq!(report.written, expect, "{name}");

        // Nothing new, nothing told.
        let report = writer.commit(&point(2)).await.unwrap();
        assert!(report.written.iter().all(|(_, changes)| *changes == 0), "{name}: {report:?}");
        assert!(report.dead_lettered.iter().all(|(_, changes)| *changes == 0), "{name}: {report:?}");

        // A checkpoint, and the last one.
        let state = writer.prepare(1).await.unwrap();
        sink.publish(&[state]).await.unwrap();
        let state = writer.finish(2).await.unwrap();
        for _ in 0..2 {
            sink.publish(std::slice::from_ref(&state)).await.unwrap();
        }
        assert!(lab.letters.take().is_empty(), "{name}");
    }
}
