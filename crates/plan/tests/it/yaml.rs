//! What YAML and JSON bring along: scalars as written, duplicates, aliases, documents, syntax errors.

use crate::harness::{check, check_warnings, file, plan};

#[test]
fn scalars_are_taken_as_written() {
    let text = |value: &str| file(&format!(", server-id: {value}"), "", "");
    for (value, expect) in [
        ("1.10", Some("1.10")),
        ("0123", Some("0123")),
        ("1_000", Some("1_000")),
        ("yes", Some("yes")),
        ("'~'", Some("~")),
        ("!!str null", Some("null")),
        ("!!int 5", Some("5")),
        ("! null", Some("null")),
        ("\"a\\tb\"", Some("a\tb")),
        ("~", None),
        ("null", None),
        ("!!null x", None),
        ("", None),
    ] {
        assert_eq!(plan(&text(value)).source.options.text("server-id"), expect, "{value}");
    }
}

#[test]
fn duplicate_keys_name_both_lines() {
    check(
        "source: {type: mysql, hostname: h, username: u, password: p, tables: a.b}\nsink:\n  type: print\n  limit: 1\n  limit: 2\nsource: {}\n",
        "5:3: CNL-1002 `limit` is given twice, first on line 4
         6:1: CNL-1002 `source` is given twice, first on line 1",
    );
}

#[test]
fn aliases_share_nodes_and_merge_keys_are_refused() {
    let plan = plan(
        "source: {type: mysql, hostname: &h db, username: *h, password: p, tables: a.b}\nsink: {type: print}\n",
    );
    assert_eq!(plan.source.options.text("username"), Some("db"));
    check(
        &file("", "", "pipeline:\n  <<: x\nroute: &r [*r]\n"),
        "5:12: CNL-1001 an alias stands inside its own anchor",
    );
    check(
        &file("", "", "pipeline:\n  <<: x\n"),
        "4:3: CNL-1002 `pipeline` has no option `<<` (YAML merge keys are not supported; write the keys out)",
    );
    let bomb: String = (1..40).map(|n| format!("b{n}: &b{n} [*b{0}, *b{0}]\n", n - 1)).collect();
    check(
        &format!("b0: &b0 [x]\n{bomb}"),
        "16:12: CNL-1001 the file holds more values than a pipeline definition can have",
    );
}

#[test]
fn only_the_first_document_is_read() {
    check_warnings(
        &file("", "", "---\nnonsense: [\n"),
        "3:1: CNL-1002 only the first YAML document of a file is read; this one is not",
    );
}

#[test]
fn syntax_errors_have_a_place_and_a_remedy() {
    check(
        "source:\n  type: mysql\n  tables: \"a.\\.*\"\n",
        r"3:11: CNL-1001 not YAML: while parsing a quoted scalar, found unknown escape character (in double quotes a backslash begins an escape: use single quotes, or write `\\.`)",
    );
    check(
        "projection: *\n",
        r"1:13: CNL-1001 not YAML: while scanning an anchor or alias, did not find expected alphabetic or numeric character",
    );
    check(
        "source:\n\ttype: mysql\n",
        "2:2: CNL-1001 not YAML: tabs disallowed within this context (block indentation) (indent with spaces, not with tabs)",
    );
    check(
        "? [a]\n: b\n",
        "1:1: CNL-1002 the block `source` is missing\n1:1: CNL-1002 the block `sink` is missing\n1:3: CNL-1002 a key must be a single word, here it is a list",
    );
    let deep = format!("a: {}", "[".repeat(100_000));
    assert_eq!(crate::harness::parse(&deep).unwrap_err().len(), 1);
    check(
        &file(", server-id: !secret x", "", ""),
        "1:86: CNL-1002 the YAML tag `!secret` has no meaning here (remove the tag)",
    );
}

#[test]
fn json_is_accepted() {
    let plan = plan(
        "{\n\t\"source\": {\"type\": \"mysql\", \"hostname\":\"h\", \"port\":3307, \"username\": \"\\ud83d\\ude00\\\\ud83d\\u00e9\", \"password\": \"a\\/b\", \"tables\": \"a\\\\.*.b\"},\n\
         \t\"sink\": {\"type\": \"print\", \"limit\": null},\n\t\"pipeline\": {\"parallelism\": 2},\n\t\"route\": []\n}\n",
    );
    assert_eq!(plan.source.options.text("username"), Some("\u{1f600}\\ud83dé"));
    assert_eq!(plan.source.options.text("password"), Some("a/b"));
    assert_eq!(plan.source.options.text("tables"), Some(r"a\.*.b"));
    assert_eq!(plan.runtime.parallelism, 2);
    check(
        "{\"source\": {\"type\": \"mysql\", \"hostname\": \"h\", \"username\": \"u\", \"password\": \"p\", \"tables\": \"a.b\"},\n \"sinc\": {\"type\": \"print\"}}",
        "1:1: CNL-1002 the block `sink` is missing
         2:2: CNL-1002 a pipeline definition has no top-level key `sinc` (did you mean `sink`?)",
    );
}
