//! Every type arrives as documented, and the same by snapshot and by stream.

use canalis_connector_api::SplitMode;
use canalis_types::{LogicalType, RowKind};

use crate::lab::{Lab, at, batch, counts, split, splits, table};

/// Writes rows `(id, v)` as a snapshot (ids from 0) and as a stream (ids from 100), and gives `id|expression` of both.
async fn both_ways(
    lab: &Lab,
    given: &[(&str, &str)],
    ty: LogicalType,
    values: &[Option<&[u8]>],
    expression: &str,
) -> (Vec<String>, Vec<String>) {
    let schema = table("t", &[("id", LogicalType::Int32, false), ("v", ty, true)], &["id"]);
    let sink = lab.open(given, &[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    let rows = |from: usize| {
        let ids: Vec<String> = (0..values.len()).map(|i| (from + i).to_string()).collect();
        let cells: Vec<[Option<&[u8]>; 2]> =
            values.iter().zip(&ids).map(|(v, id)| [Some(id.as_bytes()), *v]).collect();
        let rows: Vec<(RowKind, &[Option<&[u8]>])> =
            cells.iter().map(|c| (RowKind::Insert, c.as_slice())).collect();
        batch(&schema, &rows)
    };
    writer.begin_split(&split("s", &schema, SplitMode::Snapshot, false)).await.unwrap();
    writer.write(rows(0)).await.unwrap();
    let report = writer.commit(&splits(&["s"])).await.unwrap();
    let total = u64::try_from(values.len()).unwrap();
    let (written, refused) = counts(&report);
    assert_eq!(written + refused, total);
    writer.write(rows(100)).await.unwrap();
    assert_eq!(counts(&writer.commit(&at(1)).await.unwrap()), (written, refused));
    let read = |low: usize, high: usize| {
        format!("SELECT {expression} FROM app.t WHERE id >= {low} AND id < {high} ORDER BY id")
    };
    (lab.lines(&read(0, 100)).await, lab.lines(&read(100, 200)).await)
}

/// As above, all rows land and both ways give `expect`.
async fn check_with(
    given: &[(&str, &str)],
    ty: LogicalType,
    values: &[&str],
    expression: &str,
    expect: &[&str],
) {
    let Some(lab) = Lab::new().await else { return };
    let cells: Vec<Option<&[u8]>> = values.iter().map(|v| (*v != "NULL").then_some(v.as_bytes())).collect();
    let (snapshot, stream) = both_ways(&lab, given, ty.clone(), &cells, expression).await;
    assert_eq!(snapshot, expect, "{ty} by snapshot");
    assert_eq!(stream, expect, "{ty} by stream");
    assert!(lab.letters.take().is_empty());
}

async fn check(ty: LogicalType, values: &[&str], expression: &str, expect: &[&str]) {
    check_with(&[], ty, values, expression, expect).await;
}

/// Texts come back as they went in.
async fn check_same(ty: LogicalType, values: &[&str]) {
    check(ty, values, "v::text", values).await;
}

#[tokio::test]
async fn my_01_my_02_impossible_dates_follow_the_policy() {
    let zeros = ["0000-00-00 00:00:00", "2025-00-15 10:20:30", "2025-06-00 00:00:00", "2025-06-01 00:00:00"];
    let ty = LogicalType::Timestamp { precision: 0 };
    let good = "2025-06-01 00:00:00";
    let null = [("invalid-date.policy", "null")];
    check_with(&null, ty.clone(), &zeros, "v::text", &["NULL", "NULL", "NULL", good]).await;
    let epoch = [("invalid-date.policy", "epoch")];
    let first = "1970-01-01 00:00:00";
    check_with(&epoch, ty.clone(), &zeros, "v::text", &[first, first, first, good]).await;
    check_with(&epoch, LogicalType::Date, &["0000-00-00"], "v::text", &["1970-01-01"]).await;
    let instant = LogicalType::TimestampTz { precision: 0 };
    check_with(&epoch, instant, &["0000-00-00 00:00:00"], "v::text", &["1970-01-01 00:00:00+00"]).await;

    let Some(lab) = Lab::new().await else { return };
    let cells: Vec<Option<&[u8]>> = zeros.iter().map(|z| Some(z.as_bytes())).collect();
    let (snapshot, stream) = both_ways(&lab, &[], ty, &cells, "v::text").await;
    assert_eq!((snapshot, stream), (vec![good.to_owned()], vec![good.to_owned()]));
    let letters = lab.letters.take();
    assert_eq!(letters.len(), 6);
    assert!(letters.iter().all(|l| l.reason.contains("column `v`")), "{letters:?}");
}

#[tokio::test]
async fn my_01_null_for_an_impossible_date_in_a_not_null_column_is_a_dead_letter() {
    let Some(lab) = Lab::new().await else { return };
    let ty = LogicalType::Timestamp { precision: 0 };
    let schema = table("t_zd", &[("id", LogicalType::Int32, false), ("b", ty, false)], &["id"]);
    let sink = lab.open(&[("invalid-date.policy", "null")], &[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    let zero: &[Option<&[u8]>] = &[Some(b"1"), Some(b"0000-00-00 00:00:00")];
    let good: &[Option<&[u8]>] = &[Some(b"2"), Some(b"2025-01-01 00:00:00")];
    writer.write(batch(&schema, &[(RowKind::Insert, zero), (RowKind::Insert, good)])).await.unwrap();
    assert_eq!(counts(&writer.commit(&at(1)).await.unwrap()), (1, 1));
    let letters = lab.letters.take();
    assert!(letters[0].reason.contains("column `b`"), "{}", letters[0].reason);
    assert_eq!(letters[0].key["id"], 1);
    assert!(letters[0].position.is_some());
    assert_eq!(lab.lines("SELECT id FROM app.t_zd").await, ["2"]);
}

#[tokio::test]
async fn my_04_unsigned_numbers_are_exact() {
    check_same(LogicalType::UInt64, &["18446744073709551615", "9223372036854775808", "0"]).await;
    check_same(LogicalType::UInt32, &["4294967295", "42"]).await;
    check_same(LogicalType::UInt16, &["65535"]).await;
    check_same(LogicalType::UInt8, &["255"]).await;
    check_same(LogicalType::Int8, &["0", "1", "2", "-1", "127", "-128", "NULL"]).await;
    check_same(LogicalType::Int64, &["-9223372036854775808", "9223372036854775807"]).await;
}

#[tokio::test]
async fn my_07_bits_keep_their_pattern() {
    let eight = LogicalType::Bit { length: 8 };
    check(eight, &["170", "0", "NULL"], "v::text", &["10101010", "00000000", "NULL"]).await;
    check(LogicalType::Bit { length: 1 }, &["1"], "v::text", &["1"]).await;
    let all = LogicalType::Bit { length: 64 };
    let expect = format!("1{}1", "0".repeat(62));
    check(all, &["9223372036854775809"], "v::text", &[&expect]).await;
}

#[tokio::test]
async fn my_09_dates_on_both_sides_of_the_epoch() {
    let texts = ["1969-12-31 23:59:59.999999", "1000-01-01 00:00:00.000001", "9999-12-31 23:59:59.999999"];
    check_same(LogicalType::Timestamp { precision: 6 }, &texts).await;
    check_same(LogicalType::Date, &["0001-01-01", "9999-12-31", "1969-12-31"]).await;
    let instants: Vec<String> = texts.iter().map(|t| format!("{t}+00")).collect();
    let expect: Vec<&str> = instants.iter().map(String::as_str).collect();
    check(LogicalType::TimestampTz { precision: 6 }, &texts, "v::text", &expect).await;
}

#[tokio::test]
async fn my_10_floats_have_no_invented_digits() {
    check_same(LogicalType::Float32, &["0.1", "1.2345679e+07", "-0", "3.4028235e+38", "1e-45"]).await;
    check_same(LogicalType::Float64, &["0.1", "1.7976931348623157e+308", "-0", "5e-324"]).await;
    check_same(LogicalType::Decimal { precision: 10, scale: 2 }, &["99999999.99", "-0.01"]).await;
}

#[tokio::test]
async fn my_11_four_byte_characters_fit() {
    check_same(
        LogicalType::Varchar { length: 10 },
        &["😀😀😀😀😀😀😀😀😀😀", "𠮷野家", "", "\\b\tc\nd\re'f"],
    )
    .await;
}

#[tokio::test]
async fn my_13_durations_keep_sign_and_hours() {
    let values = ["-838:59:59.000000", "838:59:59.000000", "-00:00:00.000001", "24:00:00.000000"];
    let time = LogicalType::Time { precision: 6 };
    check(time.clone(), &values, "v::text", &["-838:59:59", "838:59:59", "-00:00:00.000001", "24:00:00"])
        .await;
    check_with(&[("time.type", "text")], time, &values, "v", &values).await;
}

#[tokio::test]
async fn my_14_labels_are_texts() {
    let labels = ["a(b)", "c,d", "it's", ""].map(String::from).to_vec();
    check_same(LogicalType::Enum { labels }, &["a(b)", "c,d", "it's", "", "NULL"]).await;
    let labels = ["x", "y(z)", "w"].map(String::from).to_vec();
    check_same(LogicalType::Set { labels }, &["x,w", ""]).await;
}

#[tokio::test]
async fn my_16_json_keeps_its_text() {
    let json = r#"{"n":12345678901234567890,"d":1.10,"u":"é😀\"\\","e":{},"z":null,"b":true,"k":"\u0000"}"#;
    check_same(LogicalType::Json, &[json, "null", "NULL"]).await;
    let binary = [("json.type", "jsonb")];
    check_with(&binary, LogicalType::Json, &[r#"{"b":1.10,"a":2}"#], "v", &[r#"{"a": 2, "b": 1.10}"#]).await;
}

#[tokio::test]
async fn my_20_years_are_small_numbers() {
    check_same(LogicalType::Year, &["0", "1901", "2155", "1970"]).await;
}

#[tokio::test]
async fn my_21_rows_of_20_mib() {
    let Some(lab) = Lab::new().await else { return };
    // No power of two long, so that no block equals the one before.
    let pattern: Vec<u8> = (0..=250).chain((0..=255).rev()).collect();
    let mut big = pattern.repeat((20 << 20) / pattern.len() + 1);
    big.truncate(20 << 20);
    let values: [Option<&[u8]>; 2] = [Some(&big), Some(b"")];
    let (snapshot, stream) =
        both_ways(&lab, &[], LogicalType::Bytes, &values, "length(v), md5(v), encode(sha256(v), 'hex')")
            .await;
    assert!(snapshot[0].starts_with(&format!("{}|", 20 << 20)), "{}", snapshot[0]);
    assert_eq!(snapshot, stream);
    lab.client.execute("INSERT INTO app.t VALUES (1000, $1)", &[&big]).await.unwrap();
    assert_eq!(
        lab.lines("SELECT count(*) FROM app.t a, app.t b WHERE b.id = 1000 AND a.v = b.v").await,
        ["3"]
    );
}

#[tokio::test]
async fn my_22_long_decimals_are_exact() {
    let nines = "99999999999999999999999999999999999.999999999999999999999999999999";
    let least = "0.000000000000000000000000000001";
    check_same(LogicalType::Decimal { precision: 65, scale: 30 }, &[nines, &format!("-{nines}"), least])
        .await;
}

#[tokio::test]
async fn booleans_bytes_and_uuids() {
    check(LogicalType::Boolean, &["1", "0", "NULL"], "v::text", &["true", "false", "NULL"]).await;
    check(LogicalType::Varbinary { length: 4 }, &["\0\\'\n"], "encode(v, 'hex')", &["005c270a"]).await;
    check_same(LogicalType::Uuid, &["6fa459ea-ee8a-3ca4-894e-db77e160355e"]).await;
}

#[tokio::test]
async fn my_17_geometry_is_ewkb_with_its_srid() {
    let Some(lab) = Lab::new().await else { return };
    let mut point = 4326u32.to_le_bytes().to_vec();
    point.extend([1, 1, 0, 0, 0]);
    point.extend(31.5f64.to_le_bytes());
    point.extend(121.5f64.to_le_bytes());
    let mut plain = point.clone();
    plain[..4].fill(0);
    let values: [Option<&[u8]>; 2] = [Some(&point), Some(&plain)];
    let (snapshot, stream) = both_ways(&lab, &[], LogicalType::Geometry, &values, "encode(v, 'hex')").await;
    let coordinates = "0000000000803f400000000000605e40";
    let expect = [format!("0101000020e6100000{coordinates}"), format!("0101000000{coordinates}")];
    assert_eq!(snapshot, expect);
    assert_eq!(stream, expect);
}
