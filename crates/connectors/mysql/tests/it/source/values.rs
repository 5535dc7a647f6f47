//! Cases about values: what the snapshot reads, and that the stream gives the same (rule R0).

use canalis_testkit::Server;

use super::{Run, cells, execute, servers, source};

/// What a value case needs.
#[derive(Default)]
struct Case<'a> {
    /// Column definitions after the key.
    columns: &'a str,
    /// Value lists in SQL, one per row.
    rows: &'a [&'a str],
    /// Cell texts of each row; none where only equality of both paths is asked.
    expect: Option<&'a [&'a [Option<&'a str>]]>,
    /// Options of the source.
    options: &'a [(&'a str, &'a str)],
    /// Settings of the session that inserts.
    settings: &'a [&'a str],
}

async fn check_on(server: &Server, case: &Case<'_>) {
    let database = server.create_database("src_values").await;
    let create = format!("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, {})", case.columns);
    let inserts: Vec<String> =
        case.rows.iter().map(|values| format!("INSERT INTO t VALUES (NULL, {values})")).collect();
    let mut statements: Vec<&str> = case.settings.to_vec();
    statements.push("SET SESSION sql_mode = ''");
    let insert_only: Vec<&str> =
        statements.iter().copied().chain(inserts.iter().map(String::as_str)).collect();
    execute(server, &database, &[&statements[..], &[create.as_str()]].concat()).await;
    execute(server, &database, &insert_only).await;

    let source = source(server, &database, case.options);
    let mut run = Run::begin(&*source).await;
    let snapshot = cells(run.snapshot().await, 1);
    if let Some(expect) = case.expect {
        let mut expect: Vec<Vec<Option<String>>> =
            expect.iter().map(|row| row.iter().map(|cell| cell.map(str::to_owned)).collect()).collect();
        expect.sort();
        assert_eq!(snapshot, expect, "snapshot of {}", case.columns);
    }
    execute(server, &database, &insert_only).await;
    let stream = cells(run.stream(case.rows.len() as u64).await, 1);
    assert_eq!(stream, snapshot, "stream and snapshot of {} on {server}", case.columns);
}

async fn check(case: Case<'_>) {
    for server in servers() {
        check_on(server, &case).await;
    }
}

#[tokio::test]
async fn my_03_timestamps_are_instants_and_datetimes_wall_clock() {
    check(Case {
        columns: "ts TIMESTAMP(3) NULL, dt DATETIME(3)",
        rows: &["'2024-03-10 09:00:00.123', '2024-03-10 09:00:00.123'"],
        expect: Some(&[&[Some("2024-03-10 01:00:00.123"), Some("2024-03-10 09:00:00.123")]]),
        settings: &["SET time_zone = '+08:00'"],
        ..Case::default()
    })
    .await;
}

#[tokio::test]
async fn my_04_unsigned_bigints_are_exact() {
    check(Case {
        columns: "v BIGINT UNSIGNED",
        rows: &["18446744073709551615", "9223372036854775808", "0"],
        expect: Some(&[&[Some("18446744073709551615")], &[Some("9223372036854775808")], &[Some("0")]]),
        ..Case::default()
    })
    .await;
}

#[tokio::test]
async fn my_06_tinyint1_is_a_number_or_by_option_a_truth_value() {
    let rows = &["0", "1", "2", "-1", "127", "NULL"];
    check(Case {
        columns: "f TINYINT(1)",
        rows,
        expect: Some(&[&[Some("0")], &[Some("1")], &[Some("2")], &[Some("-1")], &[Some("127")], &[None]]),
        ..Case::default()
    })
    .await;
    let yes: &[Option<&str>] = &[Some("true")];
    check(Case {
        columns: "f TINYINT(1)",
        rows,
        expect: Some(&[&[Some("false")], yes, yes, yes, yes, &[None]]),
        options: &[("treat-tinyint1-as-boolean.enabled", "true")],
        ..Case::default()
    })
    .await;
}

#[tokio::test]
async fn my_07_bits_are_unsigned_numbers() {
    check(Case {
        columns: "a BIT(1), b BIT(8), c BIT(64)",
        rows: &[
            "b'1', b'10101010', b'1000000000000000000000000000000000000000000000000000000000000001'",
            "NULL, 0, 0",
        ],
        expect: Some(&[
            &[Some("1"), Some("170"), Some("9223372036854775809")],
            &[None, Some("0"), Some("0")],
        ]),
        ..Case::default()
    })
    .await;
}

#[tokio::test]
async fn my_01_02_09_dates_outside_the_calendar_and_before_1970_are_exact() {
    check(Case {
        columns: "d DATE, dt DATETIME(6)",
        rows: &[
            "'0001-01-01', '1969-12-31 23:59:59.999999'",
            "'9999-12-31', '1000-01-01 00:00:00.000001'",
            "'2024-02-29', '9999-12-31 23:59:59.999999'",
            "'0000-00-00', '0000-00-00 00:00:00'",
            "'2025-00-15', '2025-06-00 10:20:30.5'",
        ],
        expect: Some(&[
            &[Some("0001-01-01"), Some("1969-12-31 23:59:59.999999")],
            &[Some("9999-12-31"), Some("1000-01-01 00:00:00.000001")],
            &[Some("2024-02-29"), Some("9999-12-31 23:59:59.999999")],
            &[Some("0000-00-00"), Some("0000-00-00 00:00:00.000000")],
            &[Some("2025-00-15"), Some("2025-06-00 10:20:30.500000")],
        ]),
        ..Case::default()
    })
    .await;
    check(Case {
        columns: "c TIMESTAMP NOT NULL DEFAULT 0",
        rows: &["0", "'2038-01-19 03:14:07'"],
        expect: Some(&[&[Some("0000-00-00 00:00:00")], &[Some("2038-01-19 03:14:07")]]),
        settings: &["SET time_zone = '+00:00'"],
        ..Case::default()
    })
    .await;
}

#[tokio::test]
async fn my_10_floats_keep_every_digit() {
    check(Case {
        columns: "f FLOAT, fm FLOAT(10,2), d DOUBLE UNSIGNED ZEROFILL, dm DOUBLE(10,2), m DECIMAL(10,2) UNSIGNED",
        rows: &[
            "0.1, 12345678.12, 0.1, 0.1, 99999999.99",
            "16777216, 0.01, 1.7976931348623157e308, 12345678.12, 0",
            "3.4028234e38, 1, 5e-324, 0.33, 0.01",
            "-0e0, -0e0, 0, -0e0, 1",
        ],
        ..Case::default()
    })
    .await;
    check(Case {
        columns: "f FLOAT, m DECIMAL(10,2) UNSIGNED ZEROFILL",
        rows: &["0.1, 99999999.99", "16777217, 5"],
        expect: Some(&[&[Some("0.1"), Some("99999999.99")], &[Some("16777216.0"), Some("5.00")]]),
        ..Case::default()
    })
    .await;
}

#[tokio::test]
async fn my_11_four_byte_characters_and_other_charsets_arrive() {
    check(Case {
        columns: "s VARCHAR(10) CHARACTER SET utf8mb4, l VARCHAR(10) CHARACTER SET latin1, \
                  g CHAR(10) CHARACTER SET gbk, u TEXT CHARACTER SET utf16, c CHAR(5) CHARACTER SET utf8mb4",
        rows: &["'😀😀😀😀😀😀😀😀😀😀', 'Äpfel€', '中文', '😀x', 'ab  '", "'𠮷野家', '', '', '', ''"],
        expect: Some(&[
            &[Some("😀😀😀😀😀😀😀😀😀😀"), Some("Äpfel€"), Some("中文"), Some("😀x"), Some("ab")],
            &[Some("𠮷野家"), Some(""), Some(""), Some(""), Some("")],
        ]),
        ..Case::default()
    })
    .await;
}

#[tokio::test]
async fn my_13_times_are_signed_durations() {
    check(Case {
        columns: "t TIME(6), s TIME",
        rows: &[
            "'-838:59:59.000000', '-838:59:59'",
            "'838:59:59.000000', '100:00:00'",
            "'-00:00:00.000001', '-00:00:01'",
        ],
        expect: Some(&[
            &[Some("-838:59:59.000000"), Some("-838:59:59")],
            &[Some("838:59:59.000000"), Some("100:00:00")],
            &[Some("-00:00:00.000001"), Some("-00:00:01")],
        ]),
        ..Case::default()
    })
    .await;
}

#[tokio::test]
async fn my_14_labels_arrive_as_text_whatever_is_in_them() {
    check(Case {
        columns: "e ENUM('a(b)','c,d','it''s','back\\\\slash','é') CHARACTER SET utf8mb4, \
                  s SET('x','y(z)','w') CHARACTER SET latin1",
        rows: &[
            "'a(b)', 'w,x'",
            "'c,d', 'y(z)'",
            "'it''s', ''",
            "'back\\\\slash', 'x,y(z),w'",
            "'é', 'x'",
            "'nonsense', NULL",
        ],
        expect: Some(&[
            &[Some("a(b)"), Some("x,w")],
            &[Some("c,d"), Some("y(z)")],
            &[Some("it's"), Some("")],
            &[Some("back\\slash"), Some("x,y(z),w")],
            &[Some("é"), Some("x")],
            &[Some(""), None],
        ]),
        ..Case::default()
    })
    .await;
}

#[tokio::test]
async fn my_20_years_are_small_numbers() {
    check(Case {
        columns: "y YEAR",
        rows: &["'0000'", "1901", "2155", "'70'", "NULL"],
        expect: Some(&[&[Some("0")], &[Some("1901")], &[Some("2155")], &[Some("1970")], &[None]]),
        ..Case::default()
    })
    .await;
}

#[tokio::test]
async fn my_22_long_decimals_are_exact() {
    let big = "99999999999999999999999999999999999.999999999999999999999999999999";
    let negative = format!("-{big}");
    check(Case {
        columns: "d DECIMAL(65,30)",
        rows: &[big, &negative, "0.000000000000000000000000000001", "0"],
        expect: Some(&[
            &[Some(big)],
            &[Some(&negative)],
            &[Some("0.000000000000000000000000000001")],
            &[Some("0.000000000000000000000000000000")],
        ]),
        ..Case::default()
    })
    .await;
}

#[tokio::test]
async fn my_21_rows_of_20_mib_arrive() {
    for server in servers() {
        let database = server.create_database("src_big").await;
        let insert = "INSERT INTO t (b) VALUES (REPEAT('0123456789abcdef', 1310720))";
        execute(
            server,
            &database,
            &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, b LONGBLOB)", insert],
        )
        .await;
        let source = source(server, &database, &[]);
        let mut run = Run::begin(&*source).await;
        let snapshot = cells(run.snapshot().await, 1);
        // Bytes are rendered as hex.
        assert_eq!(snapshot[0][0].as_ref().map(String::len), Some(2 * 20 * 1024 * 1024));
        execute(server, &database, &[insert]).await;
        assert!(cells(run.stream(1).await, 1) == snapshot, "stream and snapshot differ");
    }
}

#[tokio::test]
async fn my_16_json_has_the_same_text_on_both_paths() {
    check(Case {
        columns: "j JSON",
        rows: &[
            r#"'{"n":12345678901234567890,"d":1.10,"u":"é😀\\"\\\\","e":{},"z":null,"b":true}'"#,
            "'[1, 2.5, -3, 1e100, \"x\", [], {\"a\": [true, false, null]}]'",
            "'null'",
            "NULL",
            "'\"text\"'",
        ],
        ..Case::default()
    })
    .await;
}

#[tokio::test]
async fn my_17_geometries_are_srid_and_wkb() {
    for server in servers() {
        let srid = if server.kind == canalis_testkit::ServerKind::MySql { " SRID 4326" } else { "" };
        check_on(
            server,
            &Case {
                columns: &format!("p POINT NOT NULL{srid}, g GEOMETRY"),
                rows: &[
                    "ST_GeomFromText('POINT(31.2 121.5)', 4326), ST_GeomFromText('LINESTRING(-3.5 2, 8 9.25, 0 0)')",
                    "ST_GeomFromText('POINT(1 2)', 4326), NULL",
                ],
                ..Case::default()
            },
        )
        .await;
    }
}
