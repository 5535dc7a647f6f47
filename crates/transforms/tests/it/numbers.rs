//! Arithmetic, decimals and casts.

use canalis_types::LogicalType::*;

use super::harness::*;

#[test]
fn fm_08_decimal_arithmetic_and_casts_are_exact_or_refused() {
    let columns = [
        ("amt", decimal(38, 18), "12345678901234567890.123456789012345678"),
        ("n", INT, "300"),
        ("s", TEXT, "12a"),
    ];
    check_values(
        &columns,
        &[
            ("amt * 1.17", "14444444314444444431.44444444314444444326 DECIMAL(41, 20)"),
            ("amt + 0.000000000000000001", "12345678901234567890.123456789012345679 DECIMAL(39, 18)"),
            ("CAST(amt * 1.17 AS DECIMAL(30, 2))", "14444444314444444431.44 DECIMAL(30, 2)"),
            ("CAST(amt * 1.17 AS DECIMAL(10, 2))", "! value does not fit DECIMAL(10, 2)"),
            ("TRY_CAST(amt * 1.17 AS DECIMAL(10, 2))", "NULL DECIMAL(10, 2)"),
            ("CAST(n AS TINYINT)", "! value does not fit TINYINT"),
            ("TRY_CAST(n AS TINYINT)", "NULL TINYINT"),
            ("CAST(s AS INT)", "! text is not a INT"),
            ("TRY_CAST(s AS INT)", "NULL INT"),
        ],
    );
    check_refused(
        &[("id", INT)],
        &[
            ("CAST(300 AS TINYINT) AS x", "line 1, column 6: value does not fit TINYINT"),
            ("CAST('12a' AS INT) AS x", "text is not a INT"),
        ],
    );
}

#[test]
fn integers_are_checked() {
    let columns = [
        ("t", Int8, "127"),
        ("i", INT, "2147483647"),
        ("m", INT, "-2147483648"),
        ("b", BIGINT, "9223372036854775807"),
        ("u", UInt64, "18446744073709551615"),
        ("u4", UInt32, "4294967295"),
        ("z", INT, "0"),
        ("k", INT, "NULL"),
        ("y", Year, "2024"),
        ("bit", Bit { length: 3 }, "5"),
    ];
    check_values(
        &columns,
        &[
            ("t + t", "254 INT"),
            ("i + 1", "! `+` overflows INT"),
            ("i - 1", "2147483646 INT"),
            ("i * 2", "! `*` overflows INT"),
            ("CAST(i AS BIGINT) * 2", "4294967294 BIGINT"),
            ("-m", "! `-` overflows INT"),
            ("-i", "-2147483647 INT"),
            ("m / -1", "! `/` overflows INT"),
            ("b + 1", "! `+` overflows BIGINT"),
            ("b + 1.0", "9223372036854775808.0 DECIMAL(21, 1)"),
            ("u + 1", "18446744073709551616 DECIMAL(21, 0)"),
            ("u * u", "340282366920938463426481119284349108225 DECIMAL(40, 0)"),
            ("u / 2", "9223372036854775807 DECIMAL(20, 0)"),
            ("u % 10", "5 DECIMAL(20, 0)"),
            ("u4 + 1", "4294967296 BIGINT"),
            ("y + 1", "2025 INT"),
            ("bit + 1", "6 DECIMAL(21, 0)"),
            ("i / z", "! division by zero"),
            ("i % z", "! division by zero"),
            ("7 / 2", "3 INT"),
            ("(z - 7) / 2", "-3 INT"),
            ("(z - 7) % 2", "-1 INT"),
            ("k + 1", "NULL INT"),
            ("NULL + i", "NULL INT"),
            ("1 + 2 * 3 - 4", "3 INT"),
            ("MOD(i, 10)", "7 INT"),
            ("ABS(t)", "127 TINYINT"),
            ("ABS(m)", "! number overflow"),
            ("ABS(u)", "18446744073709551615 BIGINT UNSIGNED"),
            ("ROUND(i, -3)", "! value does not fit INT"),
            ("ROUND(i - 1000, -3)", "2147483000 INT"),
            ("FLOOR(i)", "2147483647 INT"),
        ],
    );
}

#[test]
fn decimals_keep_every_digit() {
    let columns = [
        ("p", decimal(10, 2), "12.35"),
        ("q", decimal(10, 4), "-0.0001"),
        ("w", decimal(65, 30), "12345678901234567890123456789012345.000000000000000000000000000001"),
        ("z", decimal(5, 1), "0.0"),
        ("n", decimal(5, 2), "NULL"),
        ("i", INT, "3"),
    ];
    check_values(
        &columns,
        &[
            ("p + q", "12.3499 DECIMAL(13, 4)"),
            ("p - q", "12.3501 DECIMAL(13, 4)"),
            ("p * q", "-0.001235 DECIMAL(20, 6)"),
            ("p * i", "37.05 DECIMAL(20, 2)"),
            ("p / i", "4.1166666666667 DECIMAL(21, 13)"),
            ("-p / i", "-4.1166666666667 DECIMAL(21, 13)"),
            ("-p", "-12.35 DECIMAL(10, 2)"),
            ("p * 2", "24.70 DECIMAL(11, 2)"),
            ("i / p", "0.24291497976 DECIMAL(23, 11)"),
            ("10 / 4.0", "2.500000 DECIMAL(9, 6)"),
            ("p / z", "! division by zero"),
            ("p % 5", "2.35 DECIMAL(10, 2)"),
            ("w + 1", "12345678901234567890123456789012346.000000000000000000000000000001 DECIMAL(66, 30)"),
            ("n + p", "NULL DECIMAL(11, 2)"),
            ("CEIL(p)", "13 DECIMAL(9, 0)"),
            ("CEILING(q)", "0 DECIMAL(7, 0)"),
            ("FLOOR(q)", "-1 DECIMAL(7, 0)"),
            ("ROUND(p, 1)", "12.4 DECIMAL(10, 1)"),
            ("ROUND(-12.35, 1)", "-12.4 DECIMAL(4, 1)"),
            ("ROUND(p)", "12 DECIMAL(9, 0)"),
            ("ROUND(p, 5)", "12.35 DECIMAL(10, 2)"),
            ("ROUND(p, -1)", "10 DECIMAL(9, 0)"),
            ("ABS(q)", "0.0001 DECIMAL(10, 4)"),
            ("0.1 + 0.2", "0.3 DECIMAL(2, 1)"),
            ("12345678901234567890", "12345678901234567890 DECIMAL(20, 0)"),
            ("1.50", "1.50 DECIMAL(3, 2)"),
        ],
    );
    check_refused(
        &[("w", decimal(70, 40))],
        &[("w * w AS x", "more than 76 fraction digits"), ("w + 'a' AS x", "takes numbers")],
    );
}

#[test]
fn floats_are_approximate_but_never_infinite() {
    let columns = [
        ("f", Float32, "1.5"),
        ("d", DOUBLE, "0.1"),
        ("h", DOUBLE, "1e308"),
        ("z", DOUBLE, "0"),
        ("p", decimal(10, 2), "2.50"),
    ];
    check_values(
        &columns,
        &[
            ("f + f", "3.0 FLOAT"),
            ("f + d", "1.6 DOUBLE"),
            ("p * d", "0.25 DOUBLE"),
            ("1 + d", "1.1 DOUBLE"),
            ("1e2", "100.0 DOUBLE"),
            ("h * 10", "! floating-point overflow"),
            ("d / z", "! division by zero or overflow"),
            ("ROUND(d * 25, 0)", "3.0 DOUBLE"),
            ("CEIL(f)", "2.0 FLOAT"),
        ],
    );
}

#[test]
fn casts_convert_exactly_or_refuse() {
    let columns = [
        ("i", INT, "42"),
        ("d", DOUBLE, "1.9"),
        ("neg", DOUBLE, "-1.9"),
        ("third", DOUBLE, "0.1"),
        ("p", decimal(10, 4), "12.3456"),
        ("t", TEXT, " 12.3456 "),
        ("word", TEXT, "héllo"),
        ("yes", TEXT, "TRUE"),
        ("flag", Boolean, "true"),
        ("bin", Bytes, "abc"),
        ("n", TEXT, "NULL"),
    ];
    check_values(
        &columns,
        &[
            ("CAST(i AS STRING)", "42 STRING"),
            ("CAST(i AS DECIMAL(10, 2))", "42.00 DECIMAL(10, 2)"),
            ("CAST(i AS DECIMAL(3, 2))", "! value does not fit DECIMAL(3, 2)"),
            ("CAST(i AS BOOLEAN)", "true BOOLEAN"),
            ("CAST(i AS DOUBLE)", "42.0 DOUBLE"),
            ("CAST(d AS INT)", "1 INT"),
            ("CAST(neg AS INTEGER)", "-1 INT"),
            ("CAST(1e10 AS BIGINT)", "10000000000 BIGINT"),
            ("CAST(third AS DECIMAL(38, 20))", "0.10000000000000000000 DECIMAL(38, 20)"),
            ("CAST(p AS DECIMAL(6, 2))", "12.35 DECIMAL(6, 2)"),
            ("CAST(p AS INT)", "12 INT"),
            ("CAST(p AS DOUBLE)", "12.3456 DOUBLE"),
            ("CAST(t AS DECIMAL(6, 3))", "12.346 DECIMAL(6, 3)"),
            ("CAST(t AS DECIMAL)", "12 DECIMAL(10, 0)"),
            ("CAST(t AS DOUBLE)", "12.3456 DOUBLE"),
            ("CAST(t AS INT)", "! text is not a INT"),
            ("CAST(word AS VARCHAR(5))", "héllo VARCHAR(5)"),
            ("CAST(word AS VARCHAR(4))", "! text is longer than VARCHAR(4)"),
            ("CAST(word AS CHAR(4))", "! text is longer than CHAR(4)"),
            ("TRY_CAST(word AS VARCHAR(4))", "NULL VARCHAR(4)"),
            ("CAST(word AS VARCHAR)", "héllo STRING"),
            ("CAST(yes AS BOOLEAN)", "true BOOLEAN"),
            ("CAST(word AS BOOLEAN)", "! text is not a BOOLEAN"),
            ("CAST(flag AS INT)", "1 INT"),
            ("CAST(flag AS STRING)", "true STRING"),
            ("CAST(bin AS STRING)", "abc STRING"),
            ("CAST(word AS BYTES)", "68C3A96C6C6F BYTES"),
            ("CAST(X'ff' AS BYTES)", "FF BYTES"),
            ("CAST(n AS INT)", "NULL INT"),
            ("CAST(NULL AS DECIMAL(5, 1))", "NULL DECIMAL(5, 1)"),
        ],
    );
    check_refused(
        &[("i", INT), ("b", Bytes), ("d", Date)],
        &[
            ("CAST(i AS MONEY) AS x", "is not a type to cast to"),
            ("CAST(i AS DECIMAL(80, 2)) AS x", "precision is 1 to 76"),
            ("CAST(b AS INT) AS x", "BYTES cannot be converted to INT"),
            ("CAST(i AS DATE) AS x", "INT cannot be converted to DATE"),
            ("CAST(d AS INT) AS x", "DATE cannot be converted to INT"),
            ("NULL AS x", "NULL has no type"),
        ],
    );
}
