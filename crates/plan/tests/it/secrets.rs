//! References to secrets, and that their values are never shown.

use crate::harness::{check, check_warnings, file, plan};

fn with_password(value: &str) -> String {
    format!(
        "source: {{type: mysql, hostname: h, username: u, tables: a.b, password: {value}}}\nsink: {{type: print}}\n"
    )
}

#[test]
fn references_are_replaced_in_any_value() {
    for (value, expect) in [
        ("'${env:DB_PASSWORD}'", "s3cret"),
        ("'a${env:DB_PASSWORD}b${env:DB_PASSWORD}'", "as3cretbs3cret"),
        ("'${file:/run/secrets/db}'", "from file "),
        ("'$1 ${'", "$1 ${"),
        ("''", ""),
    ] {
        assert_eq!(plan(&with_password(value)).source.options.text("password"), Some(expect), "{value}");
    }
}

#[test]
fn unresolved_references_are_named_and_the_option_is_not_called_missing() {
    check(
        &with_password("'${env:NOPE}${file:/nope}'"),
        "1:62: CNL-1004 `${env:NOPE}` cannot be resolved: the environment variable is not set
         1:62: CNL-1004 `${file:/nope}` cannot be resolved: reading the file: entity not found",
    );
    check(&with_password("'${env:}'"), "1:62: CNL-1002 the reference `${env:}` names nothing");
    check(
        &with_password("'${secret:db}'"),
        "1:62: CNL-1003 `${secret:db}`: named secrets are not supported yet, only `${env:…}` and `${file:…}`",
    );
    check(
        &with_password("'${env:DB_PASSWORD'"),
        "1:62: CNL-1002 a reference in the value of `password` is not closed by `}`",
    );
}

#[test]
fn other_references_are_passed_on_with_a_warning() {
    check_warnings(
        &with_password("'x${FOO}'"),
        "1:62: CNL-1002 the value of `password` holds a `${…}` that is passed on as it is (only `${env:NAME}` and `${file:/path}` are replaced)",
    );
    assert_eq!(plan(&with_password("'x${FOO}'")).source.options.text("password"), Some("x${FOO}"));
}

#[test]
fn values_of_references_are_masked_everywhere() {
    check(
        &file(", connect.timeout: '${env:DB_PASSWORD}'", "", ""),
        "1:75: CNL-1002 `connect.timeout`: `******` is not a duration: write a whole number and one unit, for example `30s`",
    );
    check(
        &file("", ", type: '${env:DB_PASSWORD}'", "").replace("type: print, ", ""),
        "2:8: CNL-1002 there is no sink type `******` (sink types are `files`, `mysql`, `postgres`, `print`, `sqlite`)",
    );
    let plan = plan(&file(", jdbc.properties.key: '${env:DB_PASSWORD}'", "", ""));
    assert_eq!(plan.source.options.masked()["jdbc.properties.key"], "******");
    assert!(!format!("{plan:?}").contains("s3cret"));
}

#[test]
fn references_outside_source_and_sink_stay_as_they_are() {
    check_warnings(
        &file("", "", "pipeline: {name: '${env:DB_PASSWORD}'}\n"),
        "3:12: CNL-1002 the reference in the value of `name` is not replaced (references are replaced under `source` and `sink` only)",
    );
    let plan = plan(&file("", "", "route: [{source-table: '(?<t>a).b', sink-table: 'c.${t}'}]\n"));
    assert_eq!(plan.routes[0].sink_table, "c.${t}");
}
