//! Times in other zones, calendars and JSON. The session's zone is Europe/Paris.

use canalis_types::LogicalType::*;

use super::harness::*;

#[test]
fn times_have_zones_names_and_numbers() {
    let columns = [
        ("tz", TimestampTz { precision: 3 }, "1970-01-01 00:00:00"),
        ("ts", Timestamp { precision: 0 }, "2024-07-01 12:00:00"),
        ("d", Date, "2024-02-10"),
        ("n", Date, "NULL"),
        ("t", Time { precision: 0 }, "22:23:00"),
        ("s", TEXT, "1970-01-01 00:00:00"),
        ("x", TEXT, "no"),
        ("i", INT, "1"),
    ];
    check_values(
        &columns,
        &[
            ("DATE_FORMAT_TZ(tz, 'Asia/Shanghai')", "1970-01-01 08:00:00 STRING"),
            ("DATE_FORMAT_TZ(tz, 'yyyy/MM/dd HH', 'America/Los_Angeles')", "1969/12/31 16 STRING"),
            // A local time is meant in the session's zone: noon in Paris is 10 in UTC.
            ("DATE_FORMAT_TZ(ts, 'HH:mm', 'UTC')", "10:00 STRING"),
            ("DATE_FORMAT_TZ(n, 'UTC')", "NULL STRING"),
            ("CONVERT_TZ(s, 'UTC', 'America/Los_Angeles')", "1969-12-31 16:00:00 STRING"),
            ("CONVERT_TZ(x, 'UTC', 'America/Los_Angeles')", "! text is not a date-time"),
            ("TO_TIMESTAMP_LTZ(s)", "1970-01-01 00:00:00.000 TIMESTAMP_LTZ(3)"),
            ("TO_TIMESTAMP_LTZ('2023-01-01 00:00:00.123')", "2023-01-01 00:00:00.123 TIMESTAMP_LTZ(3)"),
            ("TO_TIMESTAMP_LTZ('2023/01/01', 'yyyy/MM/dd')", "2023-01-01 00:00:00.000 TIMESTAMP_LTZ(3)"),
            (
                "TO_TIMESTAMP_LTZ('2023-01-01 08:00', 'yyyy-MM-dd HH:mm', 'Asia/Shanghai')",
                "2023-01-01 00:00:00.000 TIMESTAMP_LTZ(3)",
            ),
            ("TO_TIMESTAMP_LTZ(x)", "! text is not a date-time of this form"),
            ("TO_TIMESTAMP_LTZ(i, 3)", "1970-01-01 00:00:00.001 TIMESTAMP_LTZ(3)"),
            ("TIMESTAMP_DIFF(DAY, '2003-01-02', '2003-01-01')", "-1 BIGINT"),
            ("TIMESTAMP_ADD(WEEK, 1, DATE '2003-01-02')", "2003-01-09 DATE"),
            ("DATEDIFF('2007-12-31 23:59:59', '2007-12-30')", "1 BIGINT"),
            ("DATEDIFF('2010-11-30 23:59:59', '2010-12-31')", "-31 BIGINT"),
            ("DATE_DIFF(n, d)", "NULL BIGINT"),
            ("DATE('2003-12-31 01:02:03')", "2003-12-31 DATE"),
            ("LAST_DAY('2003-02-05')", "2003-02-28 DATE"),
            ("LAST_DAY(d)", "2024-02-29 DATE"),
            ("LAST_DAY('2004-01-01 01:01:01')", "2004-01-31 DATE"),
            ("LAST_DAY(n)", "NULL DATE"),
            ("DAYNAME('2007-02-03')", "Saturday STRING"),
            ("MONTHNAME('2008-02-03')", "February STRING"),
            ("WEEKDAY('2008-02-03 22:23:00')", "6 BIGINT"),
            ("WEEKDAY('2007-11-06')", "1 BIGINT"),
            ("WEEKOFYEAR('2008-02-20')", "8 BIGINT"),
            ("DAY(d)", "10 BIGINT"),
            ("TO_DAYS('2007-10-07')", "733321 BIGINT"),
            ("TO_DAYS('1970-01-01')", "719528 BIGINT"),
            ("FROM_DAYS(730669)", "2000-07-03 DATE"),
            ("FROM_DAYS(i)", "! date is out of range"),
            ("MAKEDATE(2011, 31)", "2011-01-31 DATE"),
            ("MAKEDATE(2011, 365)", "2011-12-31 DATE"),
            ("MAKEDATE(2011, 366)", "2012-01-01 DATE"),
            ("TIMEDIFF('2000-01-01 00:00:00', '2000-01-01 00:00:00.000001')", "-00:00:00.000001 TIME(6)"),
            (
                "TIMEDIFF('2008-12-31 23:59:59.000001', '2008-12-30 01:01:01.000002')",
                "46:58:57.999999 TIME(6)",
            ),
            ("TIMEDIFF(t, t)", "00:00:00.000000 TIME(6)"),
            ("TIMEDIFF(d, '1970-01-01')", "! time is out of range"),
            ("TIMEDIFF(n, d)", "NULL TIME(6)"),
            ("SEC_TO_TIME(2378)", "00:39:38 TIME(0)"),
            ("SEC_TO_TIME(i * 9999999)", "! time is out of range"),
            ("TIME_TO_SEC(t)", "80580 BIGINT"),
            ("TIME_TO_SEC('00:39:38')", "2378 BIGINT"),
            ("LOCALDATE() = CURRENT_DATE", "true BOOLEAN"),
        ],
    );
    check_refused(
        &[("tz", TimestampTz { precision: 3 }), ("s", TEXT), ("i", INT)],
        &[
            ("DATE_FORMAT_TZ(tz, s) AS x", "the time zone must be a text constant"),
            ("DATE_FORMAT_TZ(tz, 'Mars') AS x", "is not a time zone"),
            ("TO_TIMESTAMP_LTZ(i, 3, 'UTC') AS x", "takes no pattern"),
            ("TO_TIMESTAMP_LTZ(i, 9) AS x", "0 for seconds or 3 for milliseconds"),
        ],
    );
}

#[test]
fn json_is_read_and_written_with_every_digit() {
    let columns = [
        (
            "j",
            Json,
            r#"{"a": {"b": [1, 12345678901234567890.123456789012345678]}, "s": "x\"y", "t": true, "z": null}"#,
        ),
        ("s", TEXT, r#"{"k":1}"#),
        ("bad", TEXT, "{k}"),
        ("twice", TEXT, r#"{"k":1,"k":2}"#),
        ("n", TEXT, "NULL"),
        ("i", INT, "2"),
        ("p", decimal(30, 10), "12345678901234567890.0123456789"),
        ("l", TEXT, r#"[1, "b", [2], null]"#),
        ("d", Date, "2024-02-29"),
    ];
    check_values(
        &columns,
        &[
            ("PARSE_JSON(s)", r#"{"k":1} JSON"#),
            ("PARSE_JSON(bad)", "! text is not JSON"),
            ("PARSE_JSON(n)", "NULL JSON"),
            ("PARSE_JSON(twice)", "! text is not JSON"),
            ("PARSE_JSON(twice, TRUE)", r#"{"k":1,"k":2} JSON"#),
            ("TRY_PARSE_JSON(bad)", "NULL JSON"),
            ("TRY_PARSE_JSON(twice)", "NULL JSON"),
            ("TRY_PARSE_JSON(twice, TRUE)['k']", "2 STRING"),
            ("JSON_VALID(s)", "true BOOLEAN"),
            ("JSON_VALID(bad)", "false BOOLEAN"),
            ("JSON_VALUE(j, '$.a.b[1]')", "12345678901234567890.123456789012345678 STRING"),
            ("JSON_VALUE(j, 'lax $.s')", "x\"y STRING"),
            ("JSON_VALUE(j, '$.t')", "true STRING"),
            ("JSON_VALUE(j, '$.z')", "NULL STRING"),
            ("JSON_VALUE(j, '$.a')", "NULL STRING"),
            ("JSON_VALUE(j, '$.nope')", "NULL STRING"),
            ("JSON_VALUE(bad, '$.a')", "NULL STRING"),
            ("JSON_QUERY(j, '$.a.b')", "[1, 12345678901234567890.123456789012345678] JSON"),
            ("JSON_QUERY(j, '$.t')", "NULL JSON"),
            ("JSON_EXISTS(j, '$.z')", "true BOOLEAN"),
            ("JSON_EXISTS(j, '$.a.c')", "false BOOLEAN"),
            ("JSON_EXISTS(n, '$')", "NULL BOOLEAN"),
            ("JSON_QUOTE('a\"b')", "\"a\\\"b\" STRING"),
            ("JSON_UNQUOTE('\"abc\"')", "abc STRING"),
            ("JSON_UNQUOTE('[1]')", "[1] STRING"),
            ("JSON_STRING(i)", "2 STRING"),
            ("JSON_STRING('a')", "\"a\" STRING"),
            ("JSON_STRING(n)", "NULL STRING"),
            ("JSON_ARRAY(i, 'a', n, TRUE, p)", r#"[2,"a",null,true,12345678901234567890.0123456789] JSON"#),
            ("ARRAY[1, 2]", "[1,2] JSON"),
            ("ROW(i, d)", r#"[2,"2024-02-29"] JSON"#),
            ("JSON_OBJECT('k', i, 'j', PARSE_JSON(s))", r#"{"k":2,"j":{"k":1}} JSON"#),
            ("MAP['k', i, 'l', ARRAY[1, MAP['m', NULL]]]", r#"{"k":2,"l":[1,{"m":null}]} JSON"#),
            ("map ['k', 7]['k']", "7 STRING"),
            ("CARDINALITY(MAP['a', 1, 'b', 2])", "2 BIGINT"),
            ("JSON_OBJECT(n, i)", "! a name in an object is NULL"),
            ("STR_TO_MAP('k1=v1,k2=v2')", r#"{"k1":"v1","k2":"v2"} JSON"#),
            ("STR_TO_MAP('k1:v1;k2: v2;k3', ';', ':')", r#"{"k1":"v1","k2":" v2","k3":null} JSON"#),
            ("STR_TO_MAP(n)", "NULL JSON"),
            ("CARDINALITY(l)", "4 BIGINT"),
            ("CARDINALITY(j)", "4 BIGINT"),
            ("CARDINALITY(n)", "NULL BIGINT"),
            ("CARDINALITY(bad)", "! text is not JSON"),
            ("ELEMENT(ARRAY[7])", "7 STRING"),
            ("ELEMENT('[]')", "NULL STRING"),
            ("ELEMENT(l)", "! the array has more than one item"),
            ("ARRAY_CONTAINS(l, 'b')", "true BOOLEAN"),
            ("ARRAY_CONTAINS(l, 7)", "false BOOLEAN"),
            ("ARRAY_POSITION(l, 'b')", "2 BIGINT"),
            ("ARRAY_POSITION(l, 'x')", "0 BIGINT"),
            ("l[2]", "b STRING"),
            ("l[3]", "[2] STRING"),
            ("l[4]", "NULL STRING"),
            ("l[9]", "NULL STRING"),
            ("j['a']['b'][1]", "1 STRING"),
            ("j['nope']", "NULL STRING"),
            ("n[1]", "NULL STRING"),
        ],
    );
    // A column of that name is meant by back quotes.
    check_values(&[("map", TEXT, "[5]")], &[("`map`[1]", "5 STRING"), ("map", "[5] STRING")]);
    check_refused(
        &[("s", TEXT), ("b", Bytes)],
        &[
            ("JSON_VALUE(s, 'a') AS x", "is not a path"),
            ("MAP['a'] AS x", "come in pairs"),
            ("MAP['a', 1) AS x", "line 1"),
            ("JSON_OBJECT('a') AS x", "come in pairs"),
            ("JSON_ARRAY(b) AS x", "bytes are not JSON"),
            ("s.a[1] AS x", ""),
        ],
    );
}
