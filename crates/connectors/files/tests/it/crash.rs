//! Owns the tests of the sink across crashes: a crash is a writer that is dropped, and a new sink that gets the states of
//! the last durable checkpoint.

use std::{fs, path::Path, sync::Arc};

use canalis_connector_api::{Sink, SinkContext, SinkWriter};
use canalis_types::Code;
use serde_json::Value;

use crate::support::{
    append_split, inserts, names, numbers_schema, sink, sink_context, visible_lines, writer,
};

async fn restart(root: &Path, pairs: &[(&str, &str)], state: &Value) -> (Arc<dyn Sink>, Box<dyn SinkWriter>) {
    let sink = sink(root, pairs);
    sink.open(&SinkContext { fresh: state.is_null(), ..sink_context() }).await.unwrap();
    sink.publish(std::slice::from_ref(state)).await.unwrap();
    let mut writer = writer(&*sink, "job", 0, &Arc::default()).await;
    writer.begin_split(&append_split()).await.unwrap();
    (sink, writer)
}

#[tokio::test]
async fn open_files_are_cut_back_to_their_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let schema = numbers_schema("d.t");
    let (sink, mut writer) = restart(dir.path(), &[], &Value::Null).await;
    writer.write(inserts(&schema, 0..10)).await.unwrap();
    let state = writer.prepare(1).await.unwrap();
    sink.publish(std::slice::from_ref(&state)).await.unwrap();
    assert_eq!(names(dir.path()).0.len(), 0);
    writer.write(inserts(&schema, 10..20)).await.unwrap();
    drop((sink, writer));
    // Recovery from one checkpoint may come again and again.
    for _ in 0..3 {
        let (_, mut writer) = restart(dir.path(), &[], &state).await;
        assert_eq!(visible_lines(dir.path()).len(), 10);
        assert_eq!(names(dir.path()).1.len(), 0);
        writer.write(inserts(&schema, 10..15)).await.unwrap();
        drop(writer);
    }
    let (sink, mut writer) = restart(dir.path(), &[], &state).await;
    writer.write(inserts(&schema, 10..20)).await.unwrap();
    let state = writer.finish(2).await.unwrap();
    sink.publish(&[state]).await.unwrap();
    assert_eq!(visible_lines(dir.path()).len(), 20);
    assert_eq!(names(dir.path()).1.len(), 0);
}

#[tokio::test]
async fn complete_files_are_published_after_a_crash_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let schema = numbers_schema("d.t");
    let pairs = &[("sink.rolling.max-rows", "4")];
    let (_, mut writer) = restart(dir.path(), pairs, &Value::Null).await;
    writer.write(inserts(&schema, 0..10)).await.unwrap();
    let state = writer.prepare(1).await.unwrap();
    drop(writer);
    assert_eq!(names(dir.path()).0.len(), 0);
    let (_, writer) = restart(dir.path(), pairs, &state).await;
    assert_eq!((names(dir.path()).0.len(), visible_lines(dir.path()).len()), (3, 10));
    // Someone has taken a published file away: that is no reason to stop.
    drop(writer);
    fs::remove_file(dir.path().join(&names(dir.path()).0[0])).unwrap();
    restart(dir.path(), pairs, &state).await;
}

#[tokio::test]
async fn an_aborted_checkpoint_loses_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let schema = numbers_schema("d.t");
    let pairs = &[("sink.rolling.max-rows", "4")];
    let (sink, mut writer) = restart(dir.path(), pairs, &Value::Null).await;
    writer.write(inserts(&schema, 0..8)).await.unwrap();
    writer.prepare(1).await.unwrap();
    writer.write(inserts(&schema, 8..12)).await.unwrap();
    let state = writer.prepare(2).await.unwrap();
    sink.publish(&[state]).await.unwrap();
    assert_eq!(visible_lines(dir.path()).len(), 12);
}

#[tokio::test]
async fn other_jobs_and_other_files_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let schema = numbers_schema("d.t");
    let other = sink(dir.path(), &[]);
    let mut theirs = writer(&*other, "other job", 0, &Arc::default()).await;
    theirs.write(inserts(&schema, 0..1)).await.unwrap();
    fs::write(dir.path().join("d.t/.mine-x.inprogress"), "").unwrap();
    let (_, mut ours) = restart(dir.path(), &[], &Value::Null).await;
    ours.write(inserts(&schema, 0..1)).await.unwrap();
    drop(ours);
    restart(dir.path(), &[], &Value::Null).await;
    assert_eq!(names(dir.path()).1.len(), 2);
    let state = theirs.finish(1).await.unwrap();
    other.publish(&[state]).await.unwrap();
    assert_eq!(names(dir.path()).0.len(), 1);
}

#[tokio::test]
async fn recovery_waits_for_the_writers_of_an_earlier_attempt() {
    let dir = tempfile::tempdir().unwrap();
    let (sink, mut writer) = restart(dir.path(), &[], &Value::Null).await;
    writer.write(inserts(&numbers_schema("d.t"), 0..10)).await.unwrap();
    let state = writer.prepare(1).await.unwrap();
    sink.open(&SinkContext { fresh: false, ..sink_context() }).await.unwrap();
    let error = sink.publish(std::slice::from_ref(&state)).await.err().unwrap();
    assert!(error.kind().is_retryable(), "{error}");
    drop(writer);
    sink.publish(&[state]).await.unwrap();
    assert_eq!(visible_lines(dir.path()).len(), 10);
}

#[tokio::test]
async fn damage_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let (sink, mut writer) = restart(dir.path(), &[], &Value::Null).await;
    writer.write(inserts(&numbers_schema("d.t"), 0..10)).await.unwrap();
    let state = writer.prepare(1).await.unwrap();
    drop(writer);
    sink.open(&sink_context()).await.unwrap();
    let code = async |state: Value| sink.publish(&[state]).await.err().map(|e| e.code());
    for (field, value) in [("directory", "../x"), ("directory", "/x"), ("name", "a/b"), ("name", "")] {
        let mut wrong = state.clone();
        wrong["open"][0][field] = value.into();
        assert_eq!(code(wrong).await, Some(Code::CheckpointDamaged), "{value}");
    }
    assert_eq!(
        code(serde_json::json!({"version": 2, "finished": [], "open": []})).await,
        Some(Code::StateIncompatible)
    );
    let hidden = dir.path().join(&names(dir.path()).1[0]);
    fs::write(hidden, "short").unwrap();
    assert_eq!(code(state).await, Some(Code::StateIncompatible));
}

/// A run with crashes at many moments gives the rows of a run without: each row once.
#[tokio::test]
async fn rs_every_row_is_there_once_whenever_the_crash_comes() {
    for seed in 0..40_u64 {
        let dir = tempfile::tempdir().unwrap();
        let schema = numbers_schema("d.t");
        let pairs = &[("sink.rolling.max-rows", "7"), ("format", "csv"), ("csv.header", "false")];
        let mut random = seed;
        let mut below = |limit: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % limit
        };
        // The durable checkpoint: state of the sink, rows before it.
        let mut checkpoint = (Value::Null, 0_i64);
        let (mut live, mut at) = (restart(dir.path(), pairs, &Value::Null).await, 0);
        while at < 200 {
            match below(8) {
                0..=3 => {
                    let end = (at + 1 + i64::try_from(below(9)).unwrap()).min(200);
                    live.1.write(inserts(&schema, at..end)).await.unwrap();
                    at = end;
                }
                4 => {
                    let state = live.1.prepare(1).await.unwrap();
                    checkpoint = (state.clone(), at);
                    live.0.publish(&[state]).await.unwrap();
                }
                // The checkpoint is durable, the crash comes before its publication.
                5 => checkpoint = (live.1.prepare(1).await.unwrap(), at),
                // The checkpoint does not become durable.
                6 => drop(live.1.prepare(1).await.unwrap()),
                _ => {
                    drop(live);
                    live = restart(dir.path(), pairs, &checkpoint.0).await;
                    at = checkpoint.1;
                }
            }
        }
        let state = live.1.finish(9).await.unwrap();
        drop(live.1);
        live.0.publish(&[state]).await.unwrap();
        let mut ids: Vec<i64> =
            visible_lines(dir.path()).iter().map(|l| l.split(',').next().unwrap().parse().unwrap()).collect();
        ids.sort_unstable();
        assert_eq!(ids, (0..200).collect::<Vec<_>>(), "seed {seed}");
        assert_eq!(names(dir.path()).1, Vec::<String>::new());
    }
}
