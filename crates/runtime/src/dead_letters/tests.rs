//! Both stores: what they keep, across runs and after a crash.

use std::fs;

use canalis_types::{Position, RowKind, TableId};
use rusqlite::Connection;
use serde_json::{Value, json};

use super::*;

fn letter(id: i64, reason: &str) -> DeadLetter {
    DeadLetter {
        table: TableId::new("shop", "orders"),
        kind: RowKind::UpdateAfter,
        key: json!({ "id": id }),
        payload: json!({ "id": id, "placed": "0000-00-00", "note": "a\nb\u{0}'\"" }),
        code: Code::RowRefused,
        reason: reason.to_owned(),
        position: Some(Position::new([1, 2, 3], r#"{"file":"b.1"}"#)),
    }
}

fn undecodable(offset: u64, payload: &str) -> DeadLetter {
    DeadLetter {
        table: TableId::bare("lines"),
        kind: RowKind::Insert,
        key: Value::Null,
        payload: json!(payload),
        code: Code::SourceUndecodable,
        reason: "no JSON".to_owned(),
        position: Some(Position::new([0, offset, 0], format!(r#"{{"file":"a.jsonl","offset":{offset}}}"#))),
    }
}

fn queue(directory: &Path, format: DeadLetterFormat, limit: Option<u64>, count: u64) -> DeadLetters {
    DeadLetters::new(directory, DeadLetterPolicy { mode: DeadLetterMode::Queue, limit, format }, count)
}

/// Letters in the form of a JSON line, whatever the store.
fn kept(directory: &Path, format: DeadLetterFormat) -> Vec<Value> {
    if format == DeadLetterFormat::JsonLines {
        let text = fs::read_to_string(directory.join("dead-letters.jsonl")).unwrap();
        return text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    }
    let connection = Connection::open(directory.join("dead-letters.db")).unwrap();
    let parsed = |text: Option<String>| text.map_or(Value::Null, |t| serde_json::from_str(&t).unwrap());
    let mut statement = connection
        .prepare(
            "SELECT table_schema, table_name, kind, key, payload, code, reason, position, table_namespace \
             FROM dead_letters ORDER BY id",
        )
        .unwrap();
    let rows = statement.query_map([], |row| {
        assert_eq!(row.get::<_, Option<String>>(8)?, None);
        let mut table = json!({ "table": row.get::<_, String>(1)? });
        if let Some(schema) = row.get::<_, Option<String>>(0)? {
            table["schema"] = schema.into();
        }
        Ok(json!({
            "table": table,
            "kind": row.get::<_, String>(2)?,
            "key": parsed(row.get(3)?),
            "payload": parsed(row.get(4)?),
            "code": row.get::<_, String>(5)?,
            "reason": row.get::<_, String>(6)?,
            "position": parsed(row.get(7)?),
        }))
    });
    rows.unwrap().map(Result::unwrap).collect::<Vec<_>>()
}

const FORMATS: [DeadLetterFormat; 2] = [DeadLetterFormat::JsonLines, DeadLetterFormat::Sqlite];

#[tokio::test]
async fn both_formats_keep_the_same_fields_over_runs() {
    for format in FORMATS {
        let directory = tempfile::tempdir().unwrap();
        queue(directory.path(), format, None, 0)
            .reject(vec![letter(1, "first"), letter(2, "it's")])
            .await
            .unwrap();
        queue(directory.path(), format, None, 2).reject(vec![undecodable(7, "{")]).await.unwrap();
        let expect = [letter(1, "first"), letter(2, "it's"), undecodable(7, "{")];
        let expect: Vec<Value> = expect.iter().map(|l| serde_json::to_value(l).unwrap()).collect();
        assert_eq!(kept(directory.path(), format), expect, "{format:?}");
        assert_eq!(expect[0]["table"], json!({ "schema": "shop", "table": "orders" }));
        assert_eq!(expect[0]["code"], "CNL-3003");
    }
}

#[tokio::test]
async fn the_limit_counts_earlier_runs_and_the_letters_are_kept() {
    for format in FORMATS {
        let directory = tempfile::tempdir().unwrap();
        let queue = queue(directory.path(), format, Some(3), 2);
        queue.reject(vec![letter(1, "a")]).await.unwrap();
        let error = queue.reject(vec![letter(2, "b")]).await.unwrap_err();
        assert_eq!(error.code(), Code::DeadLetterLimit);
        assert!(error.to_string().contains("4 rows are in"), "{error}");
        assert_eq!(kept(directory.path(), format).len(), 2);
    }
}

#[tokio::test]
async fn without_a_queue_the_first_row_fails_and_no_file_is_made() {
    for format in FORMATS {
        let directory = tempfile::tempdir().unwrap();
        let policy = DeadLetterPolicy { mode: DeadLetterMode::Fail, limit: None, format };
        let error =
            DeadLetters::new(directory.path(), policy, 0).reject(vec![letter(1, "no")]).await.unwrap_err();
        assert_eq!((error.code(), error.kind()), (Code::RowRefused, ErrorKind::Row));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn half_a_line_of_a_crash_is_cut_off_and_a_whole_one_is_ended() {
    let whole = serde_json::to_string(&letter(1, "kept")).unwrap();
    let long = format!("{{\"payload\":\"{}", "x".repeat(200_000));
    for (before, lines) in [
        (String::new(), 1),
        (format!("{whole}\n"), 2),
        (whole.clone(), 2),
        (format!("{whole}\n{}", &whole[..whole.len() - 1]), 2),
        (format!("{whole}\n{long}"), 2),
        (long, 1),
    ] {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("dead-letters.jsonl"), before).unwrap();
        let queue = queue(directory.path(), DeadLetterFormat::JsonLines, None, 0);
        queue.reject(vec![letter(2, "next")]).await.unwrap();
        let kept = kept(directory.path(), DeadLetterFormat::JsonLines);
        assert_eq!(kept.len(), lines);
        assert_eq!(kept[lines - 1], serde_json::to_value(letter(2, "next")).unwrap());
    }
}

#[tokio::test]
async fn a_record_that_is_read_again_is_kept_once_in_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let format = DeadLetterFormat::Sqlite;
    let first = vec![undecodable(7, "{"), undecodable(9, "{")];
    queue(directory.path(), format, None, 0).reject(first.clone()).await.unwrap();
    // The process ends before the checkpoint: the next run reads the records again, and one more.
    let again = [first, vec![undecodable(20, "{"), undecodable(7, "other bytes")]].concat();
    queue(directory.path(), format, None, 0).reject(again).await.unwrap();
    let places: Vec<Value> =
        kept(directory.path(), format).iter().map(|l| l["position"]["order"][1].clone()).collect();
    assert_eq!(places, [7, 9, 20, 7]);
    // Rows that a sink refuses have no place of their own: each is kept.
    queue(directory.path(), format, None, 0).reject(vec![letter(1, "a"), letter(1, "a")]).await.unwrap();
    assert_eq!(kept(directory.path(), format).len(), 6);
}

#[tokio::test]
async fn a_file_that_is_not_ours_is_not_written_to() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("dead-letters.db");
    Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 9").unwrap();
    let queue = queue(directory.path(), DeadLetterFormat::Sqlite, None, 0);
    let error = queue.reject(vec![letter(1, "a")]).await.unwrap_err();
    assert_eq!(error.code(), Code::StateIncompatible);
    fs::write(&path, "this is no database, and long enough to be looked at as one".repeat(99)).unwrap();
    let error = queue.reject(vec![letter(1, "a")]).await.unwrap_err();
    assert_eq!(error.code(), Code::LocalIo);
}
