//! Three-valued logic, patterns, membership, CASE.

use canalis_types::LogicalType::*;

use super::harness::*;

#[test]
fn logic_has_three_values() {
    let columns = [
        ("i", INT, "1"),
        ("b", BIGINT, "1"),
        ("u", UInt64, "1"),
        ("k", INT, "NULL"),
        ("s", TEXT, "abc"),
        ("p", decimal(5, 2), "1.00"),
        ("f", Boolean, "true"),
        ("e", Enum { labels: vec!["abc".into()] }, "abc"),
    ];
    check_values(
        &columns,
        &[
            ("i = b", "true BOOLEAN"),
            ("i = u AND u = b AND i = p", "true BOOLEAN"),
            ("k <> 1", "NULL BOOLEAN"),
            ("k = k", "NULL BOOLEAN"),
            ("NULL = NULL", "NULL BOOLEAN"),
            ("k IS NULL", "true BOOLEAN"),
            ("i IS NOT NULL", "true BOOLEAN"),
            ("k = 1 AND i = 2", "false BOOLEAN"),
            ("k = 1 OR i = 1", "true BOOLEAN"),
            ("k = 1 AND i = 1", "NULL BOOLEAN"),
            ("NOT (k = 1)", "NULL BOOLEAN"),
            ("k IS DISTINCT FROM 1", "true BOOLEAN"),
            ("k IS NOT DISTINCT FROM NULL", "true BOOLEAN"),
            ("(k = 1) IS UNKNOWN", "true BOOLEAN"),
            ("(k = 1) IS NOT TRUE", "true BOOLEAN"),
            ("f IS TRUE", "true BOOLEAN"),
            ("f = 1", "true BOOLEAN"),
            ("f AND 1", "true BOOLEAN"),
            ("s = e", "true BOOLEAN"),
            ("i = '1'", "true BOOLEAN"),
            ("p = '1'", "true BOOLEAN"),
            ("i < 1.5", "true BOOLEAN"),
            ("i >= 1e0", "true BOOLEAN"),
            ("i BETWEEN 0 AND 1", "true BOOLEAN"),
            ("k BETWEEN 0 AND 1", "NULL BOOLEAN"),
            ("i NOT BETWEEN 2 AND k", "true BOOLEAN"),
            ("i IN (2, 3)", "false BOOLEAN"),
            ("i IN (2, 1, NULL)", "true BOOLEAN"),
            ("i IN (2, NULL)", "NULL BOOLEAN"),
            ("i NOT IN (2, NULL)", "NULL BOOLEAN"),
            ("k IN (1)", "NULL BOOLEAN"),
            ("i IN (b, 7)", "true BOOLEAN"),
            ("s IN ('abc', 'x')", "true BOOLEAN"),
            ("1 = 1.0", "true BOOLEAN"),
        ],
    );
    check_refused(
        &[("i", INT), ("s", TEXT), ("d", Date)],
        &[
            ("i = s AS x", "INT and STRING have no common type"),
            ("i = 'x' AS x", "text is not a INT: it is compared as INT"),
            ("i AND TRUE AS x", "a condition is needed here, but this is INT"),
            ("d = 1 AS x", "no common type"),
        ],
    );
}

#[test]
fn like_is_the_like_of_sql() {
    let columns = [("s", TEXT, r"a%b\c"), ("pat", TEXT, "a%"), ("k", TEXT, "NULL"), ("u", TEXT, "naïve 😀")];
    check_values(
        &columns,
        &[
            ("s LIKE 'a%'", "true BOOLEAN"),
            ("s LIKE 'b'", "false BOOLEAN"),
            ("s LIKE '%b%'", "true BOOLEAN"),
            ("s LIKE 'a_b_c'", "true BOOLEAN"),
            ("s LIKE '.*'", "false BOOLEAN"),
            (r"s LIKE '%\%'", "true BOOLEAN"),
            (r"s LIKE '%c\%'", "false BOOLEAN"),
            (r"s LIKE 'a%b\c'", "true BOOLEAN"),
            ("s LIKE 'a!%b%' ESCAPE '!'", "true BOOLEAN"),
            ("s LIKE 'a!_b%' ESCAPE '!'", "false BOOLEAN"),
            (r"s LIKE 'a\%b_c' ESCAPE '\'", "true BOOLEAN"),
            ("s LIKE pat", "true BOOLEAN"),
            ("s NOT LIKE 'x%'", "true BOOLEAN"),
            ("k LIKE 'a'", "NULL BOOLEAN"),
            ("s LIKE k", "NULL BOOLEAN"),
            ("u LIKE 'na_ve _'", "true BOOLEAN"),
            ("u LIKE 'NA%'", "false BOOLEAN"),
        ],
    );
    check_refused(
        &[("s", TEXT)],
        &[
            ("s LIKE 'a!b' ESCAPE '!' AS x", "the escape character stands before"),
            ("s LIKE 'a' ESCAPE 'ab' AS x", "exactly one character"),
            ("s ILIKE 'a' AS x", "UPPER"),
        ],
    );
}

#[test]
fn case_computes_only_the_chosen_branch() {
    let columns = [("i", INT, "0"), ("s", TEXT, "b"), ("k", INT, "NULL"), ("c", Varchar { length: 9 }, "x")];
    check_values(
        &columns,
        &[
            ("CASE WHEN i <> 0 THEN 10 / i ELSE -1 END", "-1 INT"),
            ("CASE s WHEN 'a' THEN 1 WHEN 'b' THEN 2 END", "2 INT"),
            ("CASE s WHEN 'z' THEN 1 END", "NULL INT"),
            ("CASE WHEN k = 1 THEN 'yes' ELSE 'no' END", "no VARCHAR(3)"),
            ("CASE WHEN i = 0 THEN 1 ELSE 2.5 END", "1.0 DECIMAL(11, 1)"),
            ("CASE WHEN i = 0 THEN NULL ELSE i END", "NULL INT"),
            ("CASE k WHEN NULL THEN 'same' ELSE 'other' END", "other VARCHAR(5)"),
            ("i <> 0 AND 10 / i > 1", "false BOOLEAN"),
            ("i = 0 OR 10 / i > 1", "true BOOLEAN"),
            ("COALESCE(k, i, 10 / i)", "0 INT"),
            ("COALESCE(k, k)", "NULL INT"),
            ("COALESCE(c, 'n/a')", "x VARCHAR(9)"),
            ("IFNULL(k, 7)", "7 INT"),
            ("IF(i = 0, 'zero', 'more')", "zero VARCHAR(4)"),
            ("IF(k = 0, 'zero', 'more')", "more VARCHAR(4)"),
            ("NULLIF(i, 0)", "NULL INT"),
            ("NULLIF(s, 'x')", "b STRING"),
            ("NULLIF(k, 0)", "NULL INT"),
        ],
    );
    check_refused(
        &[("i", INT), ("s", TEXT)],
        &[
            ("CASE WHEN i = 0 THEN i ELSE s END AS x", "no common type"),
            ("IF(i, 1, 2) AS x", "a condition is needed"),
        ],
    );
}

#[test]
fn every_type_can_be_compared_listed_and_chosen() {
    let columns = [
        ("flag", Boolean, "false"),
        ("i1", Int8, "-1"),
        ("u8", UInt64, "18446744073709551615"),
        ("f", Float32, "1.5"),
        ("wide", decimal(65, 30), "1.500000000000000000000000000000"),
        ("d", Date, "2024-01-01"),
        ("t", Time { precision: 0 }, "10:00:00"),
        ("ts", Timestamp { precision: 0 }, "2024-01-01 10:00:00"),
        ("tz", TimestampTz { precision: 0 }, "2024-01-01 09:00:00"),
        ("bin", Binary { length: 2 }, "ab"),
        ("js", Json, "{}"),
        ("st", Set { labels: vec!["a".into(), "b".into()] }, "a,b"),
        ("uu", Uuid, "0e1f8d2c-6a55-4b0e-9d7e-111111111111"),
        ("bit", Bit { length: 4 }, "9"),
        ("y", Year, "2024"),
    ];
    for (name, ty, value) in &columns {
        let (quoted, shown) = match ty {
            Binary { .. } => ("X'6162'".to_owned(), "6162"),
            // Without a zone it would be a time of the session's zone.
            TimestampTz { .. } => (format!("'{value}Z'"), *value),
            Float32 | Boolean => ((*value).to_owned(), *value),
            _ => (format!("'{value}'"), *value),
        };
        check_values(
            &columns,
            &[
                (&format!("{name} = {quoted}"), "true BOOLEAN"),
                (&format!("{name} > {quoted} OR {name} < {quoted}"), "false BOOLEAN"),
                (&format!("{name} IN ({quoted}, NULL)"), "true BOOLEAN"),
                (&format!("{name} NOT IN ({quoted}, {name})"), "false BOOLEAN"),
                (&format!("{name} IS DISTINCT FROM {quoted}"), "false BOOLEAN"),
                (&format!("NULLIF({name}, {quoted}) IS NULL"), "true BOOLEAN"),
                (&format!("IF(i1 < 0, {name}, NULL)"), &format!("{shown} {ty}")),
                (&format!("COALESCE(NULL, {name}, {name})"), &format!("{shown} {ty}")),
            ],
        );
    }
}

#[test]
fn transforms_can_be_shared_between_tasks() {
    fn shared<T: Send + Sync>() {}
    shared::<canalis_transforms::TableTransform>();
    shared::<canalis_transforms::Transforms>();
}

#[test]
fn long_chains_do_not_nest() {
    let any: Vec<String> = (1..1900).map(|n| format!("i = {n}")).collect();
    check(&[("i", INT)], "", &any.join(" OR "), &["+I 1899", "+I 1900"], &["+I 1899", "filtered 1"]);
    let all: Vec<String> = (1..1900).map(|n| format!("i <> {n}")).collect();
    check(&[("i", INT)], "", &all.join(" AND "), &["+I 1899", "+I 1900"], &["+I 1900", "filtered 1"]);
}
