//! Recovery: what was committed is there with its position, what was not is gone, and nothing comes twice.

use canalis_connector_api::{DeliveryGuarantee, Sink, SinkContext};
use canalis_types::Code;
use serde_json::Value;

use super::{
    lab::{JOB, Lab, Start, all, databases},
    model::{Changes, Model, batch, begin, delete, ends, insert, keyed, keyless, point, position, update},
};

#[tokio::test(flavor = "multi_thread")]
async fn rows_and_position_are_committed_together_or_not_at_all() {
    for lab in databases().await {
        for schema in [keyed(&lab, "by_key"), keyless(&lab, "without_key")] {
            let table = &schema.id.table;
            let name = format!("{}: {table}", lab.name);
            let windows: [Changes; 4] = [
                [insert(&["1", "a"]), insert(&["2", "b"])].concat(),
                [update(&["1", "a"], &["1", "c"]), insert(&["3", "d"])].concat(),
                [delete(&["2", "b"]), insert(&["4", "e"])].concat(),
                [update(&["4", "e"], &["5", "f"]), delete(&["1", "c"])].concat(),
            ];
            let mut model = Model::default();
            let sink = lab.sink();
            let recovery = lab.open(&*sink, 1, Start::Fresh).await;
            assert_eq!(recovery.positions.into_iter().flatten().count(), 0, "{name}");
            sink.prepare_table(&schema, false).await.unwrap();
            let mut writer = lab.writer(&*sink, 0, 1).await;
            for (number, window) in (1..).zip(&windows) {
                writer.write(batch(&schema, window)).await.unwrap();
                // A crash before the commit, and again after it.
                let sink = lab.sink();
                for committed in [false, true] {
                    if committed {
                        writer.commit(&point(number)).await.unwrap();
                        model.apply(window);
                    }
                    drop(writer);
                    let recovery = lab.open(&*sink, 1, Start::Again).await;
                    let expect = if committed { number } else { number - 1 };
                    let expect = (expect > 0).then(|| position(expect));
                    let found = recovery.positions.first().cloned().flatten();
                    assert_eq!(found, expect, "{name} after window {number}");
                    if let (Some(found), Some(expect)) = (found, expect) {
                        assert_eq!(found.detail, expect.detail, "{name}");
                    }
                    sink.prepare_table(&schema, false).await.unwrap();
                    assert_eq!(lab.rows(table).await, model.lines(), "{name} after window {number}");
                    writer = lab.writer(&*sink, 0, 1).await;
                    if !committed {
                        writer.write(batch(&schema, window)).await.unwrap();
                    }
                }
            }
        }
    }
}

/// Whether the place of a commit without rows is kept is the sink's own affair: from an older one nothing comes twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_without_rows_never_leads_back() {
    for lab in databases().await {
        let name = lab.name;
        let schema = keyless(&lab, "t");
        let sink = lab.sink();
        lab.open(&*sink, 1, Start::Fresh).await;
        sink.prepare_table(&schema, false).await.unwrap();
        let mut writer = lab.writer(&*sink, 0, 1).await;
        writer.commit(&point(1)).await.unwrap();
        writer.write(batch(&schema, &insert(&["1", "a"]))).await.unwrap();
        writer.commit(&point(4)).await.unwrap();
        for number in [7, 7, 9] {
            let report = writer.commit(&point(number)).await.unwrap();
            assert!(report.written.iter().chain(&report.dead_lettered).all(|(_, n)| *n == 0), "{name}");
        }
        drop(writer);
        let recovery = lab.open(&*lab.sink(), 1, Start::Again).await;
        let found = recovery.positions.into_iter().flatten().next();
        assert!(found.as_ref().is_some_and(|p| (position(4)..=position(9)).contains(p)), "{name}: {found:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn records_belong_to_one_job_and_go_with_a_fresh_start() {
    for lab in databases().await {
        let name = lab.name;
        let schema = keyless(&lab, "t");
        let sink = lab.sink();
        lab.open(&*sink, 1, Start::Fresh).await;
        sink.prepare_table(&schema, true).await.unwrap();
        let mut writer = lab.writer(&*sink, 0, 1).await;
        writer.begin_split(&begin("a split", &schema)).await.unwrap();
        writer.write(batch(&schema, &insert(&["1", "a"]))).await.unwrap();
        writer.commit(&ends(&["a split"])).await.unwrap();
        writer.write(batch(&schema, &insert(&["2", "b"]))).await.unwrap();
        writer.commit(&point(5)).await.unwrap();
        drop(writer);

        for (job, fresh, known) in [
            ("another job", false, false),
            ("another job", true, false),
            (JOB, false, true),
            (JOB, true, false),
            (JOB, false, false),
        ] {
            let ctx = SinkContext { job: job.into(), writers: 1, fresh, tables: vec![schema.id.clone()] };
            let recovery = lab.sink().open(&ctx).await.unwrap();
            let place = format!("{name}: {job}, fresh {fresh}");
            assert_eq!(recovery.positions.into_iter().flatten().next().is_some(), known, "{place}");
            assert_eq!(recovery.done_splits.contains("a split"), known, "{place}");
        }
        assert_eq!(lab.rows("t").await, ["1|a", "2|b"], "{name}: rows stay");
    }
}

/// Two runs of a job must not both write: either the second does not begin while the first is at work, or the first can
/// commit no more.
#[tokio::test(flavor = "multi_thread")]
async fn a_writer_of_an_earlier_run_cannot_commit_behind_the_back_of_a_later_one() {
    for lab in databases().await {
        let name = lab.name;
        let schema = keyless(&lab, "t");
        let sink = lab.sink();
        lab.open(&*sink, 1, Start::Fresh).await;
        sink.prepare_table(&schema, false).await.unwrap();
        let mut writer = lab.writer(&*sink, 0, 1).await;
        writer.write(batch(&schema, &insert(&["1", "a"]))).await.unwrap();
        writer.commit(&point(1)).await.unwrap();
        writer.write(batch(&schema, &insert(&["2", "b"]))).await.unwrap();

        let later = lab.sink();
        let ctx = SinkContext { job: JOB.into(), writers: 1, fresh: false, tables: vec![schema.id.clone()] };
        match later.open(&ctx).await {
            Err(error) => assert_eq!(error.code(), Code::SinkContention, "{name}: {error}"),
            Ok(recovery) => {
                assert_eq!(recovery.positions, [Some(position(1))], "{name}");
                later.prepare_table(&schema, false).await.unwrap();
                let mut later = lab.writer(&*later, 0, 1).await;
                later.write(batch(&schema, &insert(&["2", "b"]))).await.unwrap();
                later.commit(&point(2)).await.unwrap();
                assert!(writer.commit(&point(2)).await.is_err(), "{name}: both runs have committed");
                assert_eq!(lab.rows("t").await, ["1|a", "2|b"], "{name}");
            }
        }
    }
}

/// Lines of the files that are visible.
fn visible(lab: &Lab) -> Vec<String> {
    let mut lines = Vec::new();
    for directory in std::fs::read_dir(lab.path()).unwrap().flatten().filter(|e| e.path().is_dir()) {
        for file in std::fs::read_dir(directory.path()).unwrap().flatten() {
            if !file.file_name().to_string_lossy().starts_with('.') {
                let text = std::fs::read_to_string(file.path()).unwrap();
                lines.extend(text.lines().map(str::to_owned));
            }
        }
    }
    lines.sort();
    lines
}

/// Sinks that keep the promise in two phases: rows show with the checkpoint that covers them.
#[tokio::test(flavor = "multi_thread")]
async fn what_no_checkpoint_covers_is_never_seen() {
    let mut labs = all().await;
    labs.retain(|lab| {
        lab.spec().guarantee == DeliveryGuarantee::ExactlyOnce && !lab.sink().capabilities().upsert
    });
    assert!(!labs.is_empty());
    for lab in labs {
        let name = lab.name;
        let schema = keyless(&lab, "t");
        let window = |n: usize| [insert(&[&n.to_string(), "a"]), insert(&[&n.to_string(), "b"])].concat();
        let seen = async |sink: &dyn Sink, states: &[Value], count: usize| {
            for _ in 0..2 {
                sink.publish(states).await.unwrap();
                assert_eq!(visible(&lab).len(), count, "{name}: {:?}", visible(&lab));
            }
        };
        let sink = lab.sink();
        lab.open(&*sink, 1, Start::Fresh).await;
        sink.prepare_table(&schema, false).await.unwrap();
        let mut writer = lab.writer(&*sink, 0, 1).await;
        writer.write(batch(&schema, &window(1))).await.unwrap();
        writer.commit(&point(1)).await.unwrap();
        let state = writer.prepare(1).await.unwrap();
        assert_eq!(visible(&lab).len(), 0, "{name}: nothing is seen before it is published");
        sink.publish(std::slice::from_ref(&state)).await.unwrap();
        // Of the second epoch the rows are committed, but there is no checkpoint.
        writer.write(batch(&schema, &window(2))).await.unwrap();
        writer.commit(&point(2)).await.unwrap();
        writer.prepare(2).await.unwrap();
        writer.write(batch(&schema, &window(3))).await.unwrap();
        drop(writer);

        let sink = lab.sink();
        lab.open(&*sink, 1, Start::Again).await;
        seen(&*sink, std::slice::from_ref(&state), 2).await;
        sink.prepare_table(&schema, false).await.unwrap();
        let mut writer = lab.writer(&*sink, 0, 1).await;
        for n in 2..=4 {
            writer.write(batch(&schema, &window(n))).await.unwrap();
            writer.commit(&point(u64::try_from(n).unwrap())).await.unwrap();
        }
        let state = writer.finish(4).await.unwrap();
        seen(&*sink, std::slice::from_ref(&state), 8).await;
        drop(writer);
        let sink = lab.sink();
        lab.open(&*sink, 1, Start::Again).await;
        seen(&*sink, &[state], 8).await;
        let lines = visible(&lab);
        for n in 1..=4 {
            let of = lines.iter().filter(|line| line.contains(&format!("\"id\":{n}"))).count();
            assert_eq!(of, 2, "{name}: {lines:?}");
        }
    }
}
