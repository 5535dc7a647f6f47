//! Functions of Flink CDC, InLong and their relatives beyond the everyday ones. Values are those of the manuals of MySQL,
//! Flink and Java, and of the standards that they name.

use canalis_types::LogicalType::*;

use super::harness::*;

#[test]
fn real_functions_compute_in_double() {
    let columns = [
        ("n", DOUBLE, "NULL"),
        ("i", INT, "4"),
        ("m", INT, "-4"),
        ("z", INT, "0"),
        ("p", decimal(10, 2), "-2.50"),
        ("d", DOUBLE, "1.999"),
        ("t", TEXT, "4"),
    ];
    check_values(
        &columns,
        &[
            ("SQRT(i)", "2.0 DOUBLE"),
            ("SQRT(m)", "! the function has no finite value there"),
            ("SQRT(n)", "NULL DOUBLE"),
            ("CBRT(27)", "3.0 DOUBLE"),
            ("POWER(2, i)", "16.0 DOUBLE"),
            ("POW(2, -2)", "0.25 DOUBLE"),
            ("POWER(10, 400 + z)", "! the function has no finite value there"),
            ("EXP(z)", "1.0 DOUBLE"),
            ("LN(E())", "1.0 DOUBLE"),
            ("LN(z)", "! the function has no finite value there"),
            ("LOG(E())", "1.0 DOUBLE"),
            ("LOG(2, 65536)", "16.0 DOUBLE"),
            ("LOG(10, 100)", "2.0 DOUBLE"),
            ("LOG10(100)", "2.0 DOUBLE"),
            ("LOG2(65536)", "16.0 DOUBLE"),
            ("SIN(z)", "0.0 DOUBLE"),
            ("COS(z)", "1.0 DOUBLE"),
            ("TAN(z)", "0.0 DOUBLE"),
            ("COT(z)", "! the function has no finite value there"),
            ("ROUND(COT(12), 8)", "-1.57267341 DOUBLE"),
            ("ASIN(z)", "0.0 DOUBLE"),
            ("ACOS(1)", "0.0 DOUBLE"),
            ("ASIN(i)", "! the function has no finite value there"),
            ("ATAN(z)", "0.0 DOUBLE"),
            ("ROUND(ATAN2(-2, 2), 8)", "-0.78539816 DOUBLE"),
            ("SINH(z)", "0.0 DOUBLE"),
            ("COSH(z)", "1.0 DOUBLE"),
            ("TANH(z)", "0.0 DOUBLE"),
            ("DEGREES(PI())", "180.0 DOUBLE"),
            ("RADIANS(180) = PI()", "true BOOLEAN"),
            ("ROUND(PI(), 6)", "3.141593 DOUBLE"),
            ("RAND() >= 0 AND RAND() < 1", "true BOOLEAN"),
            ("RAND_INTEGER(i) BETWEEN 0 AND 3", "true BOOLEAN"),
            ("RAND_INTEGER(z)", "! the bound of a random number must be positive"),
            ("RAND_INTEGER(CAST(n AS INT))", "NULL BIGINT"),
            ("FACTORIAL(i)", "24 BIGINT"),
            ("FACTORIAL(20)", "2432902008176640000 BIGINT"),
            ("FACTORIAL(m)", "! a factorial is of a number from 0 to 20"),
            ("FORMAT(12332.123456, 4)", "12,332.1235 STRING"),
            ("FORMAT(12332.1, 4)", "12,332.1000 STRING"),
            ("FORMAT(12332.2, 0)", "12,332 STRING"),
            ("FORMAT(p * 400000, 1)", "-1,000,000.0 STRING"),
            ("FORMAT(123, 0)", "123 STRING"),
            ("FORMAT(n, 2)", "NULL STRING"),
            ("SIGN(m)", "-1 INT"),
            ("SIGN(z)", "0 INT"),
            ("SIGN(p)", "-1 INT"),
            ("SIGN(d)", "1 INT"),
            ("SIGN(n)", "NULL INT"),
            ("TRUNCATE(d, 1)", "1.9 DOUBLE"),
            ("TRUNCATE(1.223, 1)", "1.2 DECIMAL(3, 1)"),
            ("TRUNCATE(-1.999, 1)", "-1.9 DECIMAL(3, 1)"),
            ("TRUNCATE(122 + z, -2)", "100 INT"),
            ("TRUNC(p)", "-2 DECIMAL(9, 0)"),
        ],
    );
    check_refused(&[("t", TEXT)], &[("SQRT(t) AS x", "takes numbers"), ("SQRT(-1) AS x", "no finite value")]);
}

#[test]
fn bits_and_bases_are_those_of_64_bits() {
    let columns =
        [("a", INT, "29"), ("b", BIGINT, "15"), ("m", INT, "-1"), ("n", INT, "NULL"), ("h", TEXT, "6E")];
    check_values(
        &columns,
        &[
            ("a & b", "13 BIGINT"),
            ("a | b", "31 BIGINT"),
            ("a ^ b", "18 BIGINT"),
            ("~b", "-16 BIGINT"),
            ("1 << 2", "4 BIGINT"),
            ("4 >> 2", "1 BIGINT"),
            ("m >> 1", "-1 BIGINT"),
            ("a << 64", "0 BIGINT"),
            ("a << m", "! the number of places to shift is negative"),
            ("a & n", "NULL BIGINT"),
            ("BITAND(a, b)", "13 BIGINT"),
            ("BIT_COUNT(a)", "4 BIGINT"),
            ("BIT_COUNT(m)", "64 BIGINT"),
            ("GCD(1071, 462)", "21 BIGINT"),
            ("GCD(m, 0)", "1 BIGINT"),
            ("LCM(1071, 462)", "23562 BIGINT"),
            ("LCM(a, 0)", "0 BIGINT"),
            ("LCM(9223372036854775807, a + 1)", "! number overflow"),
            ("GCD(n, 1)", "NULL BIGINT"),
            ("BIN(12)", "1100 STRING"),
            ("CONV('a', 16, 2)", "1010 STRING"),
            ("CONV(h, 18, 8)", "172 STRING"),
            ("CONV(-17, 10, -18)", "-H STRING"),
            ("CONV(-1, 10, 16)", "FFFFFFFFFFFFFFFF STRING"),
            ("CONV(h, 10, 16)", "! text is not a number of 64 bits in its base"),
            ("CONV(n, 10, 16)", "NULL STRING"),
        ],
    );
}

#[test]
fn texts_are_lists_and_words() {
    let columns = [
        ("s", TEXT, "a,b,,c"),
        ("u", TEXT, "www.mysql.com"),
        ("n", TEXT, "NULL"),
        ("i", INT, "2"),
        ("q", TEXT, "Quadratic"),
        ("cn", TEXT, "上海市"),
    ];
    check_values(
        &columns,
        &[
            ("SPLIT_INDEX(s, ',', 0)", "a STRING"),
            ("SPLIT_INDEX(s, ',', i)", " STRING"),
            ("SPLIT_INDEX(s, ',', 4)", "NULL STRING"),
            ("SPLIT_INDEX(s, ',', -1)", "NULL STRING"),
            ("SPLIT_INDEX(n, ',', 0)", "NULL STRING"),
            ("SUBSTRING_INDEX(u, '.', 2)", "www.mysql STRING"),
            ("SUBSTRING_INDEX(u, '.', -2)", "mysql.com STRING"),
            ("SUBSTRING_INDEX(u, '.', 9)", "www.mysql.com STRING"),
            ("SUBSTRING_INDEX(u, '.', 0)", " STRING"),
            ("FIND_IN_SET('b', 'a,b,c,d')", "2 BIGINT"),
            ("FIND_IN_SET('x', s)", "0 BIGINT"),
            ("FIND_IN_SET('', '')", "0 BIGINT"),
            ("ELT(1, 'Aa', 'Bb', 'Cc', 'Dd')", "Aa VARCHAR(2)"),
            ("ELT(i + 2, 'Aa', 'Bb', 'Cc', 'Dd')", "Dd VARCHAR(2)"),
            ("ELT(9, 'Aa', 'Bb')", "NULL VARCHAR(2)"),
            ("STRCMP('text', 'text2')", "-1 BIGINT"),
            ("STRCMP('text2', 'text')", "1 BIGINT"),
            ("STRCMP('text', 'text')", "0 BIGINT"),
            ("CONTAINS(u, 'mysql')", "true BOOLEAN"),
            ("CONTAINS(u, n)", "NULL BOOLEAN"),
            ("CONCAT('<', SPACE(3), '>')", "<   > STRING"),
            ("REPLICATE('ab', i)", "abab STRING"),
            ("TRANSLATE('12345', '143', 'ax')", "a2x5 STRING"),
            ("TRANSLATE(cn, '海市', '京')", "上京 STRING"),
            ("OVERLAY('Txxxxas' PLACING 'hom' FROM 2 FOR 4)", "Thomas STRING"),
            ("OVERLAY('This is an old string' PLACING ' new' FROM 10 FOR 5)", "This is a new string STRING"),
            ("OVERLAY(cn PLACING '北' FROM 1)", "北海市 STRING"),
            ("OVERLAY(cn PLACING '北' FROM 9)", "上海市 STRING"),
            ("OVERLAY(n PLACING 'a' FROM 1)", "NULL STRING"),
            ("INSERT(q, 3, 4, 'What')", "QuWhattic STRING"),
            ("INSERT(q, -1, 4, 'What')", "Quadratic STRING"),
            ("INSERT(q, 3, 100, 'What')", "QuWhat STRING"),
            ("INITCAP('hello wORLD, naïve')", "Hello World, Naïve STRING"),
            ("UCASE('a')", "A STRING"),
            ("LCASE('A')", "a STRING"),
            ("ASCII('2')", "50 BIGINT"),
            ("ASCII('dx')", "100 BIGINT"),
            ("ASCII('')", "0 BIGINT"),
            ("CHR(97)", "a VARCHAR(1)"),
            ("CHR(19978)", "上 VARCHAR(1)"),
            ("CHR(i - 3)", "! there is no character of this number"),
            ("SOUNDEX('Robert')", "R163 VARCHAR(4)"),
            ("SOUNDEX('Rubin')", "R150 VARCHAR(4)"),
            ("SOUNDEX('Ashcraft')", "A261 VARCHAR(4)"),
            ("SOUNDEX('Tymczak')", "T522 VARCHAR(4)"),
            ("SOUNDEX('Pfister')", "P236 VARCHAR(4)"),
            ("BIT_LENGTH('text')", "32 BIGINT"),
            ("BIT_LENGTH(cn)", "72 BIGINT"),
            ("IS_ALPHA('abc')", "true BOOLEAN"),
            ("IS_ALPHA('ab1')", "false BOOLEAN"),
            ("IS_DIGIT('123')", "true BOOLEAN"),
            ("IS_DIGIT('')", "false BOOLEAN"),
            ("IS_DECIMAL('-12.5')", "true BOOLEAN"),
            ("IS_DECIMAL('12a')", "false BOOLEAN"),
            ("IS_DECIMAL(n)", "NULL BOOLEAN"),
        ],
    );
}

#[test]
fn choices_follow_their_names() {
    let columns = [
        ("i", INT, "34"),
        ("k", INT, "NULL"),
        ("z", INT, "0"),
        ("p", decimal(5, 1), "3.5"),
        ("s", TEXT, "B"),
        ("d", Date, "2024-02-29"),
    ];
    check_values(
        &columns,
        &[
            ("GREATEST(2, 0)", "2 INT"),
            ("GREATEST(i, 3, 5, 767)", "767 INT"),
            ("GREATEST('B', s, 'C', 'A')", "C STRING"),
            ("LEAST(2, 0)", "0 INT"),
            ("LEAST(i, p, 5)", "3.5 DECIMAL(11, 1)"),
            ("LEAST(s, 'A')", "A STRING"),
            ("GREATEST(i, k)", "NULL INT"),
            ("LEAST(k, i, 1)", "NULL INT"),
            ("GREATEST(d, '2024-03-01')", "2024-03-01 DATE"),
            ("GREATEST(i)", "34 INT"),
            ("NVL(k, 7)", "7 INT"),
            ("NVL2(k, 'has', 'none')", "none VARCHAR(4)"),
            ("NVL2(i, 'has', 'none')", "has VARCHAR(4)"),
            ("NULLIFZERO(z)", "NULL INT"),
            ("NULLIFZERO(i)", "34 INT"),
            ("ZEROIFNULL(k)", "0 INT"),
            ("ZEROIFNULL(p)", "3.5 DECIMAL(5, 1)"),
            ("ISNULL(k)", "true BOOLEAN"),
            ("ISNULL(i)", "false BOOLEAN"),
            ("NUM_NULLS(1, NULL, 2)", "1 INT"),
            ("NUM_NONNULLS(1, k, s)", "2 INT"),
        ],
    );
}

#[test]
fn regular_expressions_find_parts() {
    let columns =
        [("s", TEXT, "foothebar"), ("n", TEXT, "NULL"), ("l", TEXT, "id=1;id=22"), ("c", TEXT, "上海市abc")];
    check_values(
        &columns,
        &[
            ("REGEXP_EXTRACT(s, 'foo(.*?)(bar)', 2)", "bar STRING"),
            ("REGEXP_EXTRACT(s, 'foo(.*?)(bar)')", "foothebar STRING"),
            ("REGEXP_EXTRACT(s, 'x(y)', 1)", "NULL STRING"),
            ("REGEXP_EXTRACT(n, 'a')", "NULL STRING"),
            (r"REGEXP_EXTRACT_ALL(l, 'id=(\d+)')", r#"["1","22"] JSON"#),
            (r"REGEXP_EXTRACT_ALL(l, 'id=(\d+)', 0)", r#"["id=1","id=22"] JSON"#),
            ("REGEXP_EXTRACT_ALL(l, '(x)')", "[] JSON"),
            ("REGEXP_EXTRACT_ALL(n, '(x)')", "NULL JSON"),
            (r"REGEXP_SPLIT_TO_ARRAY('hello world', '\s+')", r#"["hello","world"] JSON"#),
            ("REGEXP_SPLIT_TO_ARRAY(l, ';')", r#"["id=1","id=22"] JSON"#),
            ("REGEXP_SUBSTR(l, '[0-9]{2}')", "22 STRING"),
            ("REGEXP_SUBSTR(l, 'x')", "NULL STRING"),
            ("REGEXP_COUNT(l, 'id')", "2 BIGINT"),
            ("REGEXP_COUNT(l, 'x')", "0 BIGINT"),
            ("REGEXP_INSTR(c, '[a-z]+')", "4 BIGINT"),
            ("REGEXP_INSTR(c, 'x')", "0 BIGINT"),
            ("REGEXP_INSTR(n, 'x')", "NULL BIGINT"),
            ("REGEXP('abc', '^a')", "true BOOLEAN"),
            ("s RLIKE 'the'", "true BOOLEAN"),
            ("s NOT REGEXP '^the'", "true BOOLEAN"),
            ("s SIMILAR TO 'foo%'", "true BOOLEAN"),
            ("s SIMILAR TO 'foo'", "false BOOLEAN"),
            ("s SIMILAR TO '%(the|a)%'", "true BOOLEAN"),
            ("s NOT SIMILAR TO 'f(o){3}%'", "true BOOLEAN"),
            ("'100%' SIMILAR TO '[0-9]+!%' ESCAPE '!'", "true BOOLEAN"),
            ("n SIMILAR TO 'a'", "NULL BOOLEAN"),
            ("s SIMILAR TO NULL", "NULL BOOLEAN"),
        ],
    );
    check_refused(
        &[("s", TEXT)],
        &[
            ("REGEXP_EXTRACT(s, '(a)', 2) AS x", "the pattern has 1 groups, there is no group 2"),
            ("REGEXP_EXTRACT_ALL(s, 'a') AS x", "the pattern has 0 groups, there is no group 1"),
            ("REGEXP_COUNT(s, '(') AS x", "not a regular expression"),
            ("s SIMILAR TO s AS x", "must be a text constant"),
            ("s SIMILAR TO '(' AS x", "not a pattern of SIMILAR TO"),
        ],
    );
}

#[test]
fn bytes_have_other_forms() {
    let columns = [("s", TEXT, "abc"), ("n", TEXT, "NULL"), ("cn", TEXT, "中文"), ("bad", Bytes, "ab")];
    check_values(
        &columns,
        &[
            // FIPS 180-1.
            ("SHA1(s)", "a9993e364706816aba3e25717850c26c9cd0d89d VARCHAR(40)"),
            ("SHA(n)", "NULL VARCHAR(40)"),
            ("FROM_BASE64_BINARY('YWJj')", "616263 BYTES"),
            ("ENCODE(cn, 'GBK')", "D6D0CEC4 BYTES"),
            ("DECODE(X'D6D0CEC4', 'GBK')", "中文 STRING"),
            ("DECODE(X'4E2D6587', 'UTF-16BE')", "中文 STRING"),
            ("ENCODE(cn, 'ISO-8859-2')", "! a character is not in ISO-8859-2"),
            ("UNCOMPRESS(COMPRESS(cn)) = CAST(cn AS BYTES)", "true BOOLEAN"),
            ("UNCOMPRESS(COMPRESS(''))", " BYTES"),
            ("UNCOMPRESS(bad)", "! bytes are not a compressed value"),
            // zlib of "abc" by RFC 1950, behind its length.
            ("UNCOMPRESS(X'03000000789c4b4c4a0600024d0127')", "616263 BYTES"),
            ("URL_ENCODE('a b&c=上')", "a+b%26c%3D%E4%B8%8A STRING"),
            ("URL_DECODE('a+b%26c%3D%E4%B8%8A')", "a b&c=上 STRING"),
            ("URL_DECODE(CONCAT(s, '%zz'))", "! text is not percent-encoded UTF-8"),
            (
                "PARSE_URL('http://user@facebook.com:80/path1/p.php?k1=v1&k2=v2#Ref1', 'HOST')",
                "facebook.com STRING",
            ),
            ("PARSE_URL('http://facebook.com/path1/p.php?k1=v1&k2=v2#Ref1', 'PATH')", "/path1/p.php STRING"),
            ("PARSE_URL('http://facebook.com/path1/p.php?k1=v1&k2=v2#Ref1', 'QUERY')", "k1=v1&k2=v2 STRING"),
            ("PARSE_URL('http://facebook.com/path1/p.php?k1=v1&k2=v2#Ref1', 'QUERY', 'k2')", "v2 STRING"),
            ("PARSE_URL('http://facebook.com/path1/p.php?k1=v1#Ref1', 'REF')", "Ref1 STRING"),
            ("PARSE_URL('http://facebook.com/p?k1=v1#Ref1', 'PROTOCOL')", "http STRING"),
            ("PARSE_URL('http://u@facebook.com/p?k1=v1', 'FILE')", "/p?k1=v1 STRING"),
            ("PARSE_URL('http://u:p@facebook.com/p', 'USERINFO')", "u:p STRING"),
            ("PARSE_URL('http://[::1]:80/p', 'HOST')", "[::1] STRING"),
            ("PARSE_URL('no url', 'HOST')", "NULL STRING"),
            ("PARSE_URL(n, 'HOST')", "NULL STRING"),
        ],
    );
    // Constants that cannot be computed are found while the file is planned.
    check_refused(
        &[("s", TEXT)],
        &[
            ("FROM_BASE64_BINARY('!') AS x", "text is not Base64"),
            ("DECODE(X'D6', 'GBK') AS x", "bytes are not text in GBK"),
            ("ENCODE(s, 'UTF-16LE') AS x", "can be read but not written"),
            ("ENCODE(s, 'EBCDIC') AS x", "character set `EBCDIC` is not known"),
            // One byte more than the length says.
            ("UNCOMPRESS(X'02000000789c4b4c4a0600024d0127') AS x", "not a compressed value"),
            ("PARSE_URL(s, 'PORT') AS x", "`PORT` is not a part of a URL"),
            ("PARSE_URL(s, 'PATH', 'k') AS x", "only looked for in the QUERY"),
        ],
    );
}
