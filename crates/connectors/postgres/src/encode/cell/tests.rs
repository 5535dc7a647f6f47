//! Tests of cell texts.

use std::sync::Arc;

use canalis_batch::BatchBuilder;
use canalis_types::{
    Column as SourceColumn, LogicalType, RowKind, TableId, TableSchema, temporal::parse_datetime,
};

use super::*;
use crate::{
    encode::RowEncoder,
    options::tests::options,
    target::{Target, TargetColumn},
    types::{ActualType, fit},
};

/// Texts of one cell in both styles, or the refusal.
fn cell_with(
    ty: LogicalType,
    actual: (&str, i32),
    not_null: bool,
    given: &[(&str, &str)],
    value: Option<&[u8]>,
) -> Result<(String, String), String> {
    let options = options(given);
    let schema =
        TableSchema::new(TableId::bare("t"), vec![SourceColumn::new("v", ty.clone(), true)], Vec::new());
    let mut builder = BatchBuilder::new(Arc::new(schema), 1);
    match (value, &ty) {
        (None, _) => builder.column(0).append_null(),
        (Some(text), LogicalType::Bit { .. }) => {
            builder.column(0).append_u64(std::str::from_utf8(text).unwrap().parse().unwrap()).unwrap();
        }
        (Some(text), _) => builder.column(0).append_text(text).unwrap(),
    }
    builder.end_row(RowKind::Insert, 0);
    let batch = builder.finish().unwrap();
    let actual = ActualType {
        name: actual.0.into(),
        kind: 'b',
        modifier: actual.1,
        deterministic: true,
        sql: actual.0.into(),
    };
    let (form, _) = fit(&ty, &actual, false, &options).unwrap();
    let target = Target {
        id: TableId::bare("t"),
        table: "t".into(),
        columns: vec![TargetColumn {
            source: 0,
            name: "v".into(),
            quoted: "\"v\"".into(),
            cast: actual.sql,
            uncut: String::new(),
            form,
            not_null,
            any_date: actual.name == "text",
        }],
        key: Vec::new(),
        arbiter: false,
        other_unique: false,
        number: 0,
    };
    let encoder = RowEncoder::new(&target, batch.rows(), options.invalid_date).unwrap();
    let text = |style| {
        let mut out = b"before ".to_vec();
        match encoder.row(0, style, &mut out) {
            Ok(()) => Ok(String::from_utf8(out).unwrap()["before ".len()..].to_owned()),
            Err(refusal) => {
                assert_eq!(out, b"before ");
                Err(refusal.reason)
            }
        }
    };
    Ok((text(Style::Copy)?.trim_end_matches('\n').to_owned(), text(Style::Literal)?))
}

#[track_caller]
fn check(ty: LogicalType, actual: (&str, i32), value: &str, copy: &str, literal: &str) {
    let got = cell_with(ty, actual, false, &[], Some(value.as_bytes())).unwrap();
    assert_eq!(got, (copy.to_owned(), literal.to_owned()));
}

#[test]
fn values_have_exact_texts() {
    use LogicalType::*;
    check(
        UInt64,
        ("numeric", -1),
        "18446744073709551615",
        "18446744073709551615",
        "('18446744073709551615')",
    );
    check(Float32, ("float4", -1), "0.1", "0.1", "('0.1')");
    check(Float64, ("float8", -1), "-0.0", "-0.0", "('-0.0')");
    check(Bit { length: 8 }, ("bit", 8), "170", "10101010", "('10101010')");
    check(Bit { length: 64 }, ("bit", 64), "1", &format!("{:064b}", 1), &format!("('{:064b}')", 1));
    check(Bit { length: 8 }, ("int4", -1), "170", "170", "('170')");
    check(Boolean, ("bool", -1), "1", "true", "('true')");
    check(
        Time { precision: 6 },
        ("interval", 6),
        "-00:00:00.000001",
        "-00:00:00.000001",
        "('-00:00:00.000001')",
    );
    check(Text, ("text", -1), "a\\b\n\t'\r", "a\\\\b\\n\\t'\\r", "('a\\b\n\t''\r')");
    check(Text, ("text", -1), "\\N", "\\\\N", "('\\N')");
    check(Bytes, ("bytea", -1), "\u{1}A", "\\\\x0141", "('\\x0141')");
    let moment = "2024-03-10 01:00:00.123";
    check(
        TimestampTz { precision: 3 },
        ("timestamptz", 3),
        moment,
        &format!("{moment}+00"),
        &format!("('{moment}+00')"),
    );
}

#[test]
fn null_has_its_own_text_and_is_refused_where_it_cannot_stand() {
    let ty = LogicalType::Int32;
    let got = cell_with(ty.clone(), ("int4", -1), false, &[], None).unwrap();
    assert_eq!(got, ("\\N".to_owned(), "(NULL)".to_owned()));
    let reason = cell_with(ty, ("int4", -1), true, &[], None).unwrap_err();
    assert!(reason.contains("column `v`"), "{reason}");
}

#[test]
fn my_01_my_02_impossible_dates_follow_the_policy() {
    for text in ["0000-00-00 00:00:00", "2025-00-15 10:20:30", "2025-06-00 00:00:00"] {
        let cell = |policy, not_null| {
            let ty = LogicalType::Timestamp { precision: 0 };
            let given = [("invalid-date.policy", policy)];
            cell_with(ty, ("timestamp", 0), not_null, &given, Some(text.as_bytes()))
        };
        assert!(cell("error", false).unwrap_err().contains("column `v`"));
        assert_eq!(cell("null", false).unwrap().1, "(NULL)");
        assert!(cell("null", true).unwrap_err().contains("column `v`"));
        assert_eq!(cell("epoch", true).unwrap().0, "1970-01-01 00:00:00");
        let ty = LogicalType::Timestamp { precision: 0 };
        let kept = cell_with(ty, ("text", -1), false, &[], Some(text.as_bytes())).unwrap();
        assert_eq!(kept.0, text);
    }
}

#[test]
fn sk_08_nul_characters_follow_the_policy() {
    let cell = |policy, ty: LogicalType, actual, text: &str| {
        cell_with(ty, actual, false, &[("nul-character.policy", policy)], Some(text.as_bytes())).map(|t| t.0)
    };
    let varchar = LogicalType::Varchar { length: 10 };
    assert!(cell("error", varchar.clone(), ("varchar", 14), "ab\0cd").is_err());
    assert_eq!(cell("strip", varchar.clone(), ("varchar", 14), "ab\0cd").unwrap(), "abcd");
    assert_eq!(cell("replace", varchar, ("varchar", 14), "ab\0cd").unwrap(), "ab\u{fffd}cd");
    let json = r#"{"k":"\u0000","e":"\\u0000"}"#;
    assert!(cell("error", LogicalType::Json, ("jsonb", -1), json).is_err());
    let stripped = r#"{"k":"","e":"\\u0000"}"#.replace('\\', "\\\\");
    assert_eq!(cell("strip", LogicalType::Json, ("jsonb", -1), json).unwrap(), stripped);
    assert_eq!(cell("error", LogicalType::Json, ("json", -1), json).unwrap(), json.replace('\\', "\\\\"));
}

#[test]
fn sk_07_long_texts_are_refused_by_characters() {
    let cell = |text: &str| {
        cell_with(LogicalType::Varchar { length: 10 }, ("varchar", 9), false, &[], Some(text.as_bytes()))
    };
    assert!(cell("abcdef").unwrap_err().contains("6 characters"));
    // Trailing blanks count: the server would drop them in silence.
    assert!(cell("abcde ").is_err());
    assert!(cell("😀😀😀😀😀").is_ok());
}

#[test]
fn geometry_becomes_ewkb() {
    // SRID 4326, little-endian point (1, 2).
    let mut value = 4326u32.to_le_bytes().to_vec();
    value.extend([1, 1, 0, 0, 0]);
    value.extend(1f64.to_le_bytes());
    value.extend(2f64.to_le_bytes());
    let mut out = Vec::new();
    geometry(&value, Style::Literal, &mut out).unwrap();
    assert_eq!(out, b"\\x0101000020e6100000000000000000f03f0000000000000040");
    assert!(geometry(&value[..6], Style::Literal, &mut out).is_err());
}

#[test]
fn dates_before_the_common_era_have_an_era() {
    let mut out = Vec::new();
    // 44 BC is year −43.
    date(&mut out, canalis_types::temporal::days_from_civil(-43, 3, 15));
    assert_eq!(out, b"0044-03-15 BC");
    assert_eq!(parse_datetime(b"2024-01-01 00:00:00").map(|m| m > 0), Some(true));
}
