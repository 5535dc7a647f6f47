//! Dates and times. The session's zone is Europe/Paris.

use canalis_types::LogicalType::*;

use super::harness::*;

#[test]
fn dates_and_times_convert_and_compute() {
    let columns = [
        ("ts", Timestamp { precision: 6 }, "2024-03-31 01:30:45.123456"),
        ("tz", TimestampTz { precision: 3 }, "2024-03-30 23:30:00.5"),
        ("d", Date, "2024-02-29"),
        ("t", Time { precision: 0 }, "-101:02:03"),
        ("n", Date, "NULL"),
        ("s", TEXT, "2024-07-01 12:00:00"),
        ("bad", TEXT, "2024-02-30"),
        ("i", INT, "1"),
    ];
    check_values(
        &columns,
        &[
            ("CAST(ts AS STRING)", "2024-03-31 01:30:45.123456 STRING"),
            ("CAST(ts AS TIMESTAMP(3))", "2024-03-31 01:30:45.123 TIMESTAMP(3)"),
            ("CAST(ts AS DATE)", "2024-03-31 DATE"),
            ("CAST(d AS TIMESTAMP)", "2024-02-29 00:00:00.000000 TIMESTAMP(6)"),
            ("CAST(tz AS TIMESTAMP(0))", "2024-03-31 00:30:00 TIMESTAMP(0)"),
            ("CAST(tz AS DATE)", "2024-03-31 DATE"),
            ("CAST(ts AS TIMESTAMP_LTZ(0))", "2024-03-31 00:30:45 TIMESTAMP_LTZ(0)"),
            ("CAST(s AS TIMESTAMP(0))", "2024-07-01 12:00:00 TIMESTAMP(0)"),
            ("CAST('2024-07-01T12:00:00Z' AS TIMESTAMP(0))", "2024-07-01 14:00:00 TIMESTAMP(0)"),
            ("CAST(s AS TIMESTAMP_LTZ(0))", "2024-07-01 10:00:00 TIMESTAMP_LTZ(0)"),
            ("CAST(bad AS DATE)", "! text is not a DATE"),
            ("TRY_CAST(bad AS DATE)", "NULL DATE"),
            ("CAST(t AS STRING)", "-101:02:03 STRING"),
            ("CAST('12:30:00' AS TIME(0))", "12:30:00 TIME(0)"),
            ("DATE '2024-02-29'", "2024-02-29 DATE"),
            ("TIMESTAMP '2024-02-29 10:00:00'", "2024-02-29 10:00:00.000000 TIMESTAMP(6)"),
            ("d = '2024-02-29'", "true BOOLEAN"),
            ("ts > '2024-03-31'", "true BOOLEAN"),
            ("ts > d", "true BOOLEAN"),
            ("tz < ts", "true BOOLEAN"),
            ("t < '00:00:00'", "true BOOLEAN"),
            ("d BETWEEN '2024-01-01' AND '2024-12-31'", "true BOOLEAN"),
            ("YEAR(ts)", "2024 BIGINT"),
            ("QUARTER(d)", "1 BIGINT"),
            ("MONTH(d)", "2 BIGINT"),
            ("DAYOFMONTH(tz)", "31 BIGINT"),
            ("DAYOFYEAR(d)", "60 BIGINT"),
            ("DAYOFWEEK(d)", "5 BIGINT"),
            ("WEEK(d)", "9 BIGINT"),
            ("HOUR(ts)", "1 BIGINT"),
            ("HOUR(d)", "0 BIGINT"),
            ("HOUR(tz)", "0 BIGINT"),
            ("HOUR(t)", "101 BIGINT"),
            ("SECOND(ts)", "45 BIGINT"),
            ("EXTRACT(YEAR FROM ts)", "2024 BIGINT"),
            ("EXTRACT(DOW FROM d)", "5 BIGINT"),
            ("EXTRACT(EPOCH FROM tz)", "1711841400 BIGINT"),
            ("YEAR(n)", "NULL BIGINT"),
            ("DATE_FORMAT(ts, 'yyyy/MM/dd HH:mm:ss.SSS')", "2024/03/31 01:30:45.123 STRING"),
            ("DATE_FORMAT(tz, 'yyyyMMdd')", "20240331 STRING"),
            ("DATE_FORMAT(s, 'dd MMM yyyy')", "01 Jul 2024 STRING"),
            ("DATE_FORMAT(n, 'yyyy')", "NULL STRING"),
            ("DATE_ADD(d, 1)", "2024-03-01 DATE"),
            ("DATE_ADD(ts, -31)", "2024-02-29 DATE"),
            ("DATE_SUB(d, i)", "2024-02-28 DATE"),
            ("DATE_ADD(d, INTERVAL 1 MONTH)", "2024-03-29 DATE"),
            ("d + INTERVAL '1' YEAR", "2025-02-28 DATE"),
            ("d - INTERVAL '1' DAY", "2024-02-28 DATE"),
            ("d + INTERVAL '1' HOUR", "2024-02-29 01:00:00 TIMESTAMP(0)"),
            ("ts + INTERVAL '-1' MONTH", "2024-02-29 01:30:45.123456 TIMESTAMP(6)"),
            // In the night of 31 March clocks skip from 2 to 3: a day is 23 hours long, an hour is an hour.
            ("tz + INTERVAL '1' DAY", "2024-03-31 22:30:00.500 TIMESTAMP_LTZ(3)"),
            ("tz + INTERVAL '24' HOUR", "2024-03-31 23:30:00.500 TIMESTAMP_LTZ(3)"),
            ("TIMESTAMPADD(MONTH, 1, d)", "2024-03-29 DATE"),
            ("TIMESTAMPADD(SECOND, -45, ts)", "2024-03-31 01:30:00.123456 TIMESTAMP(6)"),
            ("TIMESTAMPADD(YEAR, 9000 * i, d)", "! date-time is out of range"),
            ("TIMESTAMPDIFF(DAY, d, ts)", "31 BIGINT"),
            ("TIMESTAMPDIFF(MONTH, d, ts)", "1 BIGINT"),
            ("TIMESTAMPDIFF(HOUR, ts, d)", "-745 BIGINT"),
            ("TO_DATE('2024-02-29')", "2024-02-29 DATE"),
            ("TO_DATE(ts)", "2024-03-31 DATE"),
            ("TO_DATE('29.02.2024', 'dd.MM.yyyy')", "2024-02-29 DATE"),
            ("TO_DATE(bad, 'yyyy-MM-dd')", "! text does not have the form of the date pattern"),
            ("TO_TIMESTAMP(s)", "2024-07-01 12:00:00.000000 TIMESTAMP(6)"),
            ("TO_TIMESTAMP('20240701120000', 'yyyyMMddHHmmss')", "2024-07-01 12:00:00.000 TIMESTAMP(3)"),
            ("TO_TIMESTAMP_LTZ(1711841400500)", "2024-03-30 23:30:00.500 TIMESTAMP_LTZ(3)"),
            ("TO_TIMESTAMP_LTZ(i, 0)", "1970-01-01 00:00:01.000 TIMESTAMP_LTZ(3)"),
            ("FROM_UNIXTIME(1711841400)", "2024-03-31 00:30:00 STRING"),
            ("FROM_UNIXTIME(i, 'yyyy-MM-dd')", "1970-01-01 STRING"),
            ("UNIX_TIMESTAMP('2024-03-31 00:30:00')", "1711841400 BIGINT"),
            ("UNIX_TIMESTAMP(tz)", "1711841400 BIGINT"),
            ("UNIX_TIMESTAMP(bad)", "! text is not a date-time"),
            ("COALESCE(n, '1970-01-01')", "1970-01-01 DATE"),
            ("UNIX_TIMESTAMP() > 1700000000", "true BOOLEAN"),
            ("CURRENT_DATE >= DATE '2024-01-01'", "true BOOLEAN"),
            ("CURRENT_TIMESTAMP > tz AND NOW() > tz AND LOCALTIMESTAMP > ts", "true BOOLEAN"),
            ("LOCALTIME >= CAST('00:00:00' AS TIME)", "true BOOLEAN"),
        ],
    );
    check_refused(
        &[("d", Date), ("i", INT), ("t", Time { precision: 0 })],
        &[
            ("d = '2024-02-30' AS x", "text is not a DATE"),
            ("YEAR(i) AS x", "takes a date or time, not INT"),
            ("EXTRACT(YEAR FROM t) AS x", "hours, minutes and seconds only"),
            ("INTERVAL '1' DAY AS x", "an INTERVAL can only be added"),
            ("d + INTERVAL 'x' DAY AS x", "not a whole number"),
        ],
    );
}

#[test]
fn my_02_impossible_dates_pass_untouched_and_are_refused_by_expressions() {
    let columns = [("id", INT), ("d", Date), ("ts", Timestamp { precision: 0 })];
    let rows =
        ["+I 1|0000-00-00|0000-00-00 00:00:00", "+I 2|2024-06-00|2024-06-01 00:00:00", "+I 3|NULL|NULL"];
    check(&columns, "*", "id > 0", &rows, &rows);
    check(
        &columns,
        "id, d, YEAR(d) AS y",
        "",
        &rows,
        &[
            "+I 3|NULL|NULL",
            "! +I: column `y`: column `d` holds a date that no calendar has",
            "! +I: column `y`: column `d` holds a date that no calendar has",
        ],
    );
    check(
        &columns,
        "id",
        "ts IS NULL OR ts > '2024-01-01'",
        &rows,
        &["+I 2", "+I 3", "! +I: filter: column `ts` holds a date that no calendar has"],
    );
}
