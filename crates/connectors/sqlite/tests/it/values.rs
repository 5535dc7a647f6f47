//! Every type arrives as documented, and the same by snapshot and by stream.

use canalis_connector_api::SplitMode;
use canalis_types::{LogicalType, RowKind};

use crate::lab::{Lab, at, batch, counts, split, splits, table};

/// Writes the values by a split (ids from 0) and by a window (ids from 100); both must give `expect`, as
/// `class|value`.
async fn check(ty: LogicalType, values: &[Option<&[u8]>], expect: &[&str]) {
    let lab = Lab::new();
    let schema = table("t", &[("id", LogicalType::Int32, false), ("v", ty.clone(), true)], &["id"]);
    let sink = lab.open(&[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    let rows = |from: usize| {
        let ids: Vec<String> = (0..values.len()).map(|i| (from + i).to_string()).collect();
        let cells: Vec<[Option<&[u8]>; 2]> =
            values.iter().zip(&ids).map(|(v, id)| [Some(id.as_bytes()), *v]).collect();
        let rows: Vec<(RowKind, &[Option<&[u8]>])> =
            cells.iter().map(|c| (RowKind::Insert, c.as_slice())).collect();
        batch(&schema, &rows)
    };
    let total = u64::try_from(values.len()).unwrap();
    writer.begin_split(&split("s", &schema, SplitMode::Snapshot)).await.unwrap();
    writer.write(rows(0)).await.unwrap();
    assert_eq!(counts(&writer.commit(&splits(&["s"])).await.unwrap()), (total, 0), "{ty}");
    writer.write(rows(100)).await.unwrap();
    assert_eq!(counts(&writer.commit(&at(1)).await.unwrap()), (total, 0), "{ty}");
    for condition in ["id < 100", "id >= 100"] {
        let got = lab.lines(&format!("SELECT typeof(v), v FROM t WHERE {condition} ORDER BY id"));
        assert_eq!(got, expect, "{ty} where {condition}");
    }
}

/// Texts come back as text.
async fn check_text(ty: LogicalType, values: &[&str]) {
    let cells: Vec<Option<&[u8]>> = values.iter().map(|v| Some(v.as_bytes())).collect();
    let expect: Vec<String> = values.iter().map(|v| format!("text|{v}")).collect();
    check(ty, &cells, &expect.iter().map(String::as_str).collect::<Vec<_>>()).await;
}

#[tokio::test]
async fn my_01_my_02_impossible_dates_are_kept() {
    let texts = ["0000-00-00 00:00:00", "2025-00-15 10:20:30", "2025-06-00 00:00:00"];
    check_text(LogicalType::Timestamp { precision: 0 }, &texts).await;
    check_text(LogicalType::Date, &["0000-00-00", "2025-06-00"]).await;
}

#[tokio::test]
async fn my_04_unsigned_numbers_are_exact() {
    let values: [Option<&[u8]>; 4] = [
        Some(b"18446744073709551615"),
        Some(b"9223372036854775808"),
        Some(b"9223372036854775807"),
        Some(b"0"),
    ];
    let expect =
        ["text|18446744073709551615", "text|9223372036854775808", "integer|9223372036854775807", "integer|0"];
    check(LogicalType::UInt64, &values, &expect).await;
    check(LogicalType::Int8, &[Some(b"-128"), None], &["integer|-128", "null|NULL"]).await;
    check(LogicalType::UInt32, &[Some(b"4294967295")], &["integer|4294967295"]).await;
    check(LogicalType::Int64, &[Some(b"-9223372036854775808")], &["integer|-9223372036854775808"]).await;
    check(LogicalType::Year, &[Some(b"2155"), Some(b"0")], &["integer|2155", "integer|0"]).await;
    check(LogicalType::Boolean, &[Some(b"1"), Some(b"0")], &["integer|1", "integer|0"]).await;
}

#[tokio::test]
async fn my_07_bits_are_numbers() {
    check(LogicalType::Bit { length: 8 }, &[Some(b"170"), None], &["integer|170", "null|NULL"]).await;
    let all = LogicalType::Bit { length: 64 };
    check(all, &[Some(b"9223372036854775809"), Some(b"1")], &["text|9223372036854775809", "integer|1"]).await;
}

#[tokio::test]
async fn my_09_my_13_times_are_canonical_texts() {
    let texts = ["1969-12-31 23:59:59.999999", "1000-01-01 00:00:00.000001", "9999-12-31 23:59:59.999999"];
    check_text(LogicalType::Timestamp { precision: 6 }, &texts).await;
    check(
        LogicalType::TimestampTz { precision: 3 },
        &[Some(b"2024-03-10 01:00:00.123")],
        &["text|2024-03-10 01:00:00.123Z"],
    )
    .await;
    check_text(LogicalType::Date, &["0001-01-01"]).await;
    let durations = ["-838:59:59.000000", "838:59:59.000000", "-00:00:00.000001"];
    check_text(LogicalType::Time { precision: 6 }, &durations).await;
}

#[tokio::test]
async fn my_10_my_22_decimals_and_floats() {
    let nines = "99999999999999999999999999999999999.999999999999999999999999999999";
    check_text(LogicalType::Decimal { precision: 65, scale: 30 }, &[nines, &format!("-{nines}")]).await;
    check_text(LogicalType::Decimal { precision: 10, scale: 2 }, &["99999999.90"]).await;
    check(LogicalType::Float32, &[Some(b"0.1"), Some(b"12345678")], &["real|0.1", "real|12345678.0"]).await;
    check(LogicalType::Float64, &[Some(b"5e-324"), Some(b"0.1")], &["real|5e-324", "real|0.1"]).await;
}

#[tokio::test]
async fn my_11_my_14_my_16_texts() {
    check_text(LogicalType::Varchar { length: 10 }, &["😀😀😀😀😀😀😀😀😀😀", "it's \\ \n", "", "ab\0cd"])
        .await;
    check_text(LogicalType::Set { labels: vec!["x".into(), "w".into()] }, &["x,w", ""]).await;
    check_text(LogicalType::Json, &[r#"{"n":12345678901234567890,"d":1.10}"#, "null"]).await;
}

#[tokio::test]
async fn my_21_rows_of_20_mib() {
    let lab = Lab::new();
    let schema = table("t", &[("id", LogicalType::Int32, false), ("v", LogicalType::Bytes, true)], &["id"]);
    let sink = lab.open(&[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    let pattern: Vec<u8> = (0..=250).chain((0..=255).rev()).collect();
    let big = pattern.repeat((20 << 20) / pattern.len() + 1);
    let row: &[Option<&[u8]>] = &[Some(b"1"), Some(&big)];
    writer.write(batch(&schema, &[(RowKind::Insert, row)])).await.unwrap();
    writer.commit(&at(1)).await.unwrap();
    let connection = rusqlite::Connection::open(lab.path()).unwrap();
    let got: Vec<u8> = connection.query_row("SELECT v FROM t", [], |r| r.get(0)).unwrap();
    assert!(got == big);
}

#[tokio::test]
async fn bytes_are_blobs() {
    check(LogicalType::Varbinary { length: 4 }, &[Some(b"\x00\xff'"), Some(b"")], &["blob|00ff27", "blob|"])
        .await;
}
