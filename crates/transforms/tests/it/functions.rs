//! Functions on text, digests, masks, and the functions that read the clock.

use canalis_types::LogicalType::*;

use super::harness::*;

#[test]
fn text_functions_count_characters() {
    let columns = [
        ("s", TEXT, "Straße 上海"),
        ("n", TEXT, "NULL"),
        ("id", BIGINT, "42"),
        ("p", TEXT, "a,b,,c"),
        ("b", TEXT, "  x  "),
        ("bin", Bytes, "abc"),
        ("d", Date, "2024-02-29"),
    ];
    check_values(
        &columns,
        &[
            ("UPPER(s)", "STRASSE 上海 STRING"),
            ("lower(s)", "straße 上海 STRING"),
            ("Reverse(s)", "海上 eßartS STRING"),
            ("UPPER('ab1')", "AB1 STRING"),
            ("LOWER('AB1')", "ab1 STRING"),
            ("LOWER('ΑΣ')", "ας STRING"),
            ("UPPER(n)", "NULL STRING"),
            ("s || '-' || id", "Straße 上海-42 STRING"),
            ("s || n", "NULL STRING"),
            ("CONCAT('前缀-', id, '/', d)", "前缀-42/2024-02-29 STRING"),
            ("CONCAT(s, NULL)", "NULL STRING"),
            ("CONCAT_WS('-', 'a', n, 'b')", "a-b STRING"),
            ("CONCAT_WS(n, 'a', 'b')", "NULL STRING"),
            ("TRIM(b)", "x STRING"),
            ("CONCAT('<', LTRIM(b), '>')", "<x  > STRING"),
            ("CONCAT('<', RTRIM(b), '>')", "<  x> STRING"),
            ("TRIM(BOTH 'x' FROM 'xxaxx')", "a STRING"),
            ("TRIM(LEADING 'x' FROM 'xxaxx')", "axx STRING"),
            ("TRIM(TRAILING 'x' FROM 'xxaxx')", "xxa STRING"),
            ("BTRIM('xyaxy', 'xy')", "a STRING"),
            ("SUBSTR(s, 8)", "上海 STRING"),
            ("SUBSTR(s, 8, 1)", "上 STRING"),
            ("SUBSTRING(s FROM 1 FOR 6)", "Straße STRING"),
            ("SUBSTRING(s, 0, 2)", "St STRING"),
            ("SUBSTR(s, -2)", "上海 STRING"),
            ("SUBSTR(s, -99)", " STRING"),
            ("SUBSTR(s, 99)", " STRING"),
            ("SUBSTR(s, 1, id - 43)", "! a length is negative"),
            ("CHAR_LENGTH(s)", "9 BIGINT"),
            ("LENGTH(s)", "9 BIGINT"),
            ("OCTET_LENGTH(s)", "14 BIGINT"),
            ("LENGTH(bin)", "3 BIGINT"),
            ("REPLACE(s, 'ß', 'ss')", "Strasse 上海 STRING"),
            ("REPLACE(s, '', 'x')", "Straße 上海 STRING"),
            ("LPAD('7', 3, '0')", "007 STRING"),
            ("RPAD('7', 4, 'ab')", "7aba STRING"),
            ("LPAD(s, 2)", "St STRING"),
            ("LPAD(s, -1, 'x')", "NULL STRING"),
            ("LPAD(s, 20, '')", "NULL STRING"),
            ("LEFT(s, 3)", "Str STRING"),
            ("RIGHT(s, 2)", "上海 STRING"),
            ("LEFT(s, -1)", " STRING"),
            ("POSITION('上' IN s)", "8 BIGINT"),
            ("POSITION('x' IN s)", "0 BIGINT"),
            ("INSTR(s, '海')", "9 BIGINT"),
            ("LOCATE('a', 'banana')", "2 BIGINT"),
            ("LOCATE('a', 'banana', 3)", "4 BIGINT"),
            ("LOCATE('a', 'banana', 0)", "0 BIGINT"),
            ("REPEAT('ab', 3)", "ababab STRING"),
            ("REPEAT('ab', -1)", " STRING"),
            ("REPLACE(LPAD(s, 1000000, 'x'), 'x', REPEAT('y', 1000))", "! the resulting text is too long"),
            (
                "REGEXP_REPLACE(LPAD(s, 1000000, 'x'), 'x', REPEAT('y', 1000))",
                "! the resulting text is too long",
            ),
            ("REPEAT(s, id * 100000000)", "! the resulting text is too long"),
            ("STARTSWITH(s, 'Str')", "true BOOLEAN"),
            ("ENDS_WITH(s, '海')", "true BOOLEAN"),
            ("STARTSWITH(s, n)", "NULL BOOLEAN"),
            ("SPLIT_PART(p, ',', 2)", "b STRING"),
            ("SPLIT_PART(p, ',', 3)", " STRING"),
            ("SPLIT_PART(p, ',', -1)", "c STRING"),
            ("SPLIT_PART(p, ',', 9)", " STRING"),
            ("SPLIT_PART(p, ',', id - 42)", "! parts are counted from 1, or from -1 at the end"),
            ("REGEXP_LIKE(p, '[bc],')", "true BOOLEAN"),
            ("REGEXP_LIKE(p, '^b')", "false BOOLEAN"),
            ("REGEXP_REPLACE(p, '[a-c]', '$0')", "$0,$0,,$0 STRING"),
            ("REGEXP_REPLACE(n, 'a', 'b')", "NULL STRING"),
        ],
    );
}

#[test]
fn digests_and_encodings_are_the_usual_ones() {
    let columns =
        [("s", TEXT, "abc"), ("n", TEXT, "NULL"), ("i", INT, "255"), ("b", Bytes, "abc"), ("x", TEXT, "!")];
    check_values(
        &columns,
        &[
            ("MD5(s)", "900150983cd24fb0d6963f7d28e17f72 VARCHAR(32)"),
            ("MD5(b)", "900150983cd24fb0d6963f7d28e17f72 VARCHAR(32)"),
            ("MD5(n)", "NULL VARCHAR(32)"),
            ("SHA224(s)", "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7 VARCHAR(56)"),
            ("SHA256(s)", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad VARCHAR(64)"),
            ("SHA2(s, 256)", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad VARCHAR(64)"),
            ("LEFT(SHA384(s), 8)", "cb00753f STRING"),
            ("LEFT(SHA512(s), 8)", "ddaf35a1 STRING"),
            ("CRC32(s)", "891568578 BIGINT"),
            ("HEX(s)", "616263 STRING"),
            ("HEX(i)", "FF STRING"),
            ("UNHEX('6162')", "6162 BYTES"),
            ("UNHEX(x)", "! text is not hexadecimal"),
            ("TO_BASE64(s)", "YWJj STRING"),
            ("FROM_BASE64('YWJj')", "abc STRING"),
            ("FROM_BASE64(x)", "! text is not Base64"),
            ("CHAR_LENGTH(UUID())", "36 BIGINT"),
        ],
    );
}

#[test]
fn masks_hide_and_keep_joins() {
    let columns = [("phone", TEXT, "13812345678"), ("n", TEXT, "NULL"), ("id", INT, "42"), ("t", TEXT, "42")];
    check_values(
        &columns,
        &[
            ("MASK(phone)", "*********** STRING"),
            ("MASK(phone, 3)", "138******** STRING"),
            ("MASK(phone, 3, 4)", "138****5678 STRING"),
            ("MASK(phone, 3, 4, '#')", "138####5678 STRING"),
            ("MASK('上海市浦东', 1, 1)", "上***东 STRING"),
            // Too short to hide anything: hidden whole.
            ("MASK(id, 1, 1)", "** STRING"),
            ("MASK(n, 1, 1)", "NULL STRING"),
            ("MASK_HASH(id, 'key') = MASK_HASH(t, 'key')", "true BOOLEAN"),
            ("MASK_HASH(id, 'key') = MASK_HASH(id, 'other')", "false BOOLEAN"),
            (
                "MASK_HASH('what do ya want for nothing?', 'Jefe')",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843 VARCHAR(64)",
            ),
            ("MASK_HASH(n, 'key')", "NULL VARCHAR(64)"),
            ("MASK_NULL(id)", "NULL INT"),
            ("MASK_NULL(phone)", "NULL STRING"),
        ],
    );
    check_refused(
        &[("id", INT), ("s", TEXT)],
        &[
            ("MASK_HASH(s, s) AS x", "the key must be a text constant"),
            ("MASK_HASH(s, '') AS x", "not empty"),
            ("MASK(s, 1, 1, 'ab') AS x", "exactly one character"),
            ("MASK(s, s) AS x", "is a whole number"),
            ("MASK_NULL(NULL) AS x", "another value with a type"),
        ],
    );
}

#[test]
fn every_row_gets_its_own_uuid_and_the_clock_stands_still_in_a_batch() {
    let schema = table(&[("id", INT)]);
    let transform = plan(&schema, "id, UUID() AS u, LOCALTIMESTAMP AS now", "").unwrap();
    let applied = transform.apply(&batch(&schema, &["+I 1", "+I 2"])).unwrap();
    let rows = lines(&applied.batches[0]);
    let cells: Vec<Vec<&str>> = rows.iter().map(|r| r.split('|').collect()).collect();
    assert_ne!(cells[0][1], cells[1][1]);
    assert_eq!(cells[0][2], cells[1][2]);
}

#[test]
fn unknown_functions_and_wrong_arguments_are_refused_with_their_place() {
    check_refused(
        &[("id", INT), ("s", TEXT)],
        &[
            ("id, UPER(s) AS x", "line 1, column 5: function `UPER` is not known; did you mean `UPPER`?"),
            ("id, LOWER(UPER(s)) AS x", "column 11"),
            ("UPPER(s, s) AS x", "UPPER takes 1 argument, not 2"),
            ("REPLACE(s, 'a') AS x", "REPLACE takes 3 arguments, not 2"),
            ("CONCAT_WS('a') AS x", "2 or more arguments"),
            ("SUBSTR(s, 'a') AS x", "a whole number"),
            ("REGEXP_LIKE(s, s) AS x", "must be a text constant"),
            ("REGEXP_LIKE(s, '(') AS x", "not a regular expression"),
            ("SUM(id) AS x", "function `SUM` is not known"),
            ("DATE_FORMAT(s, 'yyyy-QQ') AS x", "`QQ` in the date pattern"),
            ("TIMESTAMPADD(FORTNIGHT, 1, s) AS x", "`FORTNIGHT` is not a unit of time"),
        ],
    );
}
