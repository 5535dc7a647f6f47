//! Owns the tests of the source.

use std::fs;

use canalis_connector_api::{Severity, SourceRestore};
use canalis_types::Code;
use serde_json::{Value, json};

use crate::support::{next_split, open, read, read_all, source};

fn file(dir: &tempfile::TempDir, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = dir.path().join(name);
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

fn big_csv(rows: usize) -> String {
    let row = |n: usize| {
        if n.is_multiple_of(100) { format!("{n},\"line\nbreak {n}\"\n") } else { format!("{n},text {n}\n") }
    };
    "id,t\n".to_owned() + &(0..rows).map(row).collect::<String>()
}

#[tokio::test]
async fn a_csv_file_with_a_header_needs_no_schema() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "shop.orders.csv", "id,t\r\n1,\"a\nb\"\r\n2,\r\n");
    let source = source(&path, &[]);
    let tables = source.tables().await.unwrap();
    assert_eq!(tables[0].id.to_string(), "shop.orders");
    assert_eq!(
        read_all(&*source).await.rows,
        [[Some("1".into()), Some("a\nb".into())], [Some("2".into()), None]]
    );
    assert!(source.check().await.iter().all(|f| f.severity == Severity::Ok));
}

#[tokio::test]
async fn reading_goes_on_behind_every_watermark() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "t.csv", big_csv(30_000) + "bad,\"x\"y\n30001,end\n");
    let source = source(&path, &[("schema", "id BIGINT NOT NULL, t STRING"), ("primary-keys", "id")]);
    let mut enumerator = open(&*source, None).await;
    let estimate = enumerator.estimate(&enumerator.tables()[0].id).unwrap().rows;
    assert!((20_000..40_000).contains(&estimate), "{estimate}");
    let split = next_split(&mut *enumerator).await.unwrap();
    let state = enumerator.state();
    let mut reader = enumerator.open_reader().await.unwrap();
    let whole = read(&mut *reader, split.clone()).await.unwrap();
    assert_eq!((whole.rows.len(), whole.letters.len()), (30_001, 1));
    assert!(whole.watermarks.len() >= 4);
    assert!(whole.watermarks.is_sorted_by(|a, b| a.2 < b.2));
    for (rows, letters, position) in &whole.watermarks {
        let mut running = split.clone();
        running.position = Some(position.clone());
        let restore =
            SourceRestore { state: state.clone(), running: vec![running], ..SourceRestore::default() };
        let mut enumerator = open(&*source, Some(restore)).await;
        let split = next_split(&mut *enumerator).await.unwrap();
        assert!(split.retried && next_split(&mut *enumerator).await.is_none());
        let mut reader = enumerator.open_reader().await.unwrap();
        let rest = read(&mut *reader, split).await.unwrap();
        assert!(rest.rows == whole.rows[*rows..]);
        let reasons = |l: &[canalis_connector_api::DeadLetter]| -> Vec<_> {
            l.iter().map(|l| (l.reason.clone(), l.position.as_ref().unwrap().to_string())).collect()
        };
        assert_eq!(reasons(&rest.letters), reasons(&whole.letters[*letters..]));
    }
}

#[tokio::test]
async fn records_that_do_not_decode_are_dead_letters_with_their_place() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "t.jsonl", b"{\"id\":1}\n{\"id\":\"x\"}\n\xff{\n{\"id\":4}\n");
    let source = source(&path, &[("schema", "id INT")]);
    let read = read_all(&*source).await;
    assert_eq!(read.rows.len(), 2);
    let first = &read.letters[0];
    assert_eq!((first.code, &first.payload), (Code::SourceUndecodable, &json!("{\"id\":\"x\"}")));
    let place: Value = serde_json::from_str(&first.position.as_ref().unwrap().detail).unwrap();
    assert_eq!(place, json!({ "file": path, "offset": 9, "line": 2 }));
    assert_eq!(read.letters[1].payload, json!({ "base64": "/3s=" }));
}

#[tokio::test]
async fn files_of_other_character_sets_and_line_ends_are_read() {
    let dir = tempfile::tempdir().unwrap();
    // The second byte of this character is a backslash elsewhere, which is the escape here.
    let gbk = file(&dir, "gbk.csv", b"id,\xbf\x5c\r1,\xbf\x5c\r2,\xff\r3,\"a\\\"b\"\r");
    let options = [("charset", "gbk"), ("csv.line-end", "\\r"), ("csv.escape", "\\")];
    let tables = source(&gbk, &options).tables().await.unwrap();
    assert_eq!(tables[0].columns[1].name, "縗");
    let read = read_all(&*source(&gbk, &options)).await;
    assert_eq!(read.rows, [[Some("1".into()), Some("縗".into())], [Some("3".into()), Some("a\"b".into())]]);
    assert_eq!(read.letters[0].reason, "bytes at offset 13 are not GBK");
    assert_eq!(read.letters[0].payload, json!({ "base64": "Miz/" }));
    let place: Value = serde_json::from_str(&read.letters[0].position.as_ref().unwrap().detail).unwrap();
    assert_eq!((&place["offset"], &place["line"]), (&json!(11), &json!(3)));
    let lines: Vec<u8> = "{\"id\":1,\"t\":\"ü\"}\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let json = file(&dir, "wide.jsonl", lines);
    let read = read_all(&*source(&json, &[("charset", "utf-16le"), ("schema", "id INT, t STRING")])).await;
    assert_eq!(read.rows, [[Some("1".into()), Some("ü".into())]]);
}

#[tokio::test]
async fn reading_goes_on_behind_every_watermark_in_another_character_set() {
    let dir = tempfile::tempdir().unwrap();
    let text = big_csv(20_000).replace("text", "té");
    let path = file(&dir, "t.csv", text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>());
    let source = source(&path, &[("charset", "utf-16be")]);
    let mut enumerator = open(&*source, None).await;
    let split = next_split(&mut *enumerator).await.unwrap();
    let state = enumerator.state();
    let mut reader = enumerator.open_reader().await.unwrap();
    let whole = read(&mut *reader, split.clone()).await.unwrap();
    assert_eq!(whole.rows.len(), 20_000);
    for (rows, _, position) in &whole.watermarks {
        let mut running = split.clone();
        running.position = Some(position.clone());
        let restore =
            SourceRestore { state: state.clone(), running: vec![running], ..SourceRestore::default() };
        let mut enumerator = open(&*source, Some(restore)).await;
        let split = next_split(&mut *enumerator).await.unwrap();
        let mut reader = enumerator.open_reader().await.unwrap();
        assert!(read(&mut *reader, split).await.unwrap().rows == whole.rows[*rows..]);
    }
}

#[tokio::test]
async fn a_pattern_gives_a_split_for_every_file() {
    let dir = tempfile::tempdir().unwrap();
    for n in 0..5 {
        file(&dir, &format!("part-{n}.jsonl"), format!("{{\"id\":{n}}}\n"));
    }
    file(&dir, ".hidden.jsonl", "broken");
    file(&dir, "part-9.jsonl", "");
    let pattern = format!("{}/*.jsonl", dir.path().display());
    let source = source(&pattern, &[("schema", "id INT"), ("table", "d.all")]);
    assert_eq!(source.tables().await.unwrap().len(), 1);
    let mut enumerator = open(&*source, None).await;
    let mut splits = Vec::new();
    for _ in 0..3 {
        splits.push(next_split(&mut *enumerator).await.unwrap());
    }
    // The third was finished, the first is known to the sink to be complete, the second was under way.
    let restore = SourceRestore {
        state: enumerator.state(),
        running: vec![splits[0].clone(), splits[1].clone()],
        done: [splits[0].id.clone()].into(),
        cuts: Vec::new(),
    };
    let mut enumerator = open(&*source, Some(restore)).await;
    let mut rest = Vec::new();
    while let Some(split) = next_split(&mut *enumerator).await {
        rest.push(split.id.rsplit('/').next().unwrap().to_owned());
    }
    assert_eq!(rest, ["part-1.jsonl", "part-3.jsonl", "part-4.jsonl", "part-9.jsonl"]);
    let rows: Vec<_> = read_all(&*source).await.rows.into_iter().flatten().flatten().collect();
    assert_eq!(rows, ["0", "1", "2", "3", "4"]);
}

#[tokio::test]
async fn changed_files_and_options_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "t.csv", "id,t\n1,a\n");
    let columns = ("schema", "id INT, t STRING");
    let first = source(&path, &[columns]);
    let mut enumerator = open(&*first, None).await;
    let state = enumerator.state();
    let split = next_split(&mut *enumerator).await.unwrap();
    // Rows that are added later are not read; a file that has shrunk is refused.
    fs::write(&path, "id,t\n1,a\n2,b\n").unwrap();
    let mut reader = enumerator.open_reader().await.unwrap();
    assert_eq!(read(&mut *reader, split.clone()).await.unwrap().rows.len(), 1);
    fs::write(&path, "id,t\n").unwrap();
    assert_eq!(read(&mut *reader, split).await.err().unwrap().code(), Code::PositionLost);
    fs::write(&path, "id,other\n1,a\n").unwrap();
    let mut enumerator = open(&*first, None).await;
    let split = next_split(&mut *enumerator).await.unwrap();
    let mut reader = enumerator.open_reader().await.unwrap();
    let error = read(&mut *reader, split).await.err().unwrap();
    assert!(error.code() == Code::SourceUndecodable && error.message().contains("`other`"), "{error}");
    let other = source(&path, &[("schema", "id BIGINT, t STRING")]);
    let ctx = canalis_connector_api::SourceContext { job: "j".into(), parallelism: 1, upsert_sink: true };
    let restore = SourceRestore { state, ..SourceRestore::default() };
    assert_eq!(other.open(ctx, Some(restore)).await.err().unwrap().code(), Code::StateIncompatible);
    let missing = source(&format!("{path}x.csv"), &[columns]);
    assert_eq!(missing.tables().await.err().unwrap().code(), Code::TableNotFound);
    assert_eq!(missing.check().await[0].severity, Severity::Error);
}

#[tokio::test]
async fn large_records_pass_and_oversized_ones_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let large = "x".repeat(20 << 20);
    let path = file(&dir, "t.csv", format!("id,t\n1,{large}\n2,\"{large}\n\"\n3,c\n"));
    let columns = ("schema", "id INT, t STRING");
    let read = read_all(&*source(&path, &[columns])).await;
    let lengths: Vec<usize> = read.rows.iter().map(|r| r[1].as_ref().unwrap().len()).collect();
    assert_eq!(lengths, [20 << 20, (20 << 20) + 1, 1]);
    let read = read_all(&*source(&path, &[columns, ("max-record-bytes", "1mb")])).await;
    assert_eq!((read.rows.len(), read.letters.len()), (1, 2));
}

#[tokio::test]
async fn a_reader_that_is_dropped_leaves_no_thread_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "t.csv", big_csv(200_000));
    let source = source(&path, &[]);
    for _ in 0..20 {
        let mut enumerator = open(&*source, None).await;
        let split = next_split(&mut *enumerator).await.unwrap();
        let mut reader = enumerator.open_reader().await.unwrap();
        reader.start(split).await.unwrap();
        reader.next().await.unwrap();
    }
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let readers = || {
        let names = fs::read_dir("/proc/self/task").unwrap();
        names
            .filter_map(|t| fs::read_to_string(t.ok()?.path().join("comm")).ok())
            .filter(|n| n.starts_with("files-reader"))
            .count()
    };
    while readers() > 8 {
        assert!(std::time::Instant::now() < deadline, "{} threads are left", readers());
        tokio::task::yield_now().await;
    }
}
