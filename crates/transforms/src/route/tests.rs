//! Routes, by table.

use canalis_connector_api::RoutePattern;

use super::*;

fn rule(source: &str, sink: &str, symbol: Option<&str>) -> RouteRule {
    RouteRule {
        source_table: RoutePattern::parse(source).unwrap(),
        sink_table: sink.into(),
        replace_symbol: symbol.map(str::to_owned),
    }
}

fn check_targets(rules: &[RouteRule], mode: RouteMode, id: &str, expect: &[&str]) {
    let id = TableId::parse(id).unwrap();
    let got: Vec<String> = targets(rules, mode, &id).unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(got, expect, "{id}");
}

#[test]
fn targets_follow_the_rules() {
    let all = RouteMode::AllMatch;
    check_targets(&[], all, "a.b", &["a.b"]);
    check_targets(&[rule("a.c", "x.y", None)], all, "a.b", &["a.b"]);
    check_targets(&[rule("a.b", "x.y", None)], all, "a.b", &["x.y"]);
    check_targets(
        &[rule(r"db_(\d+).(\.*)_tbl", "ods_$1.t_$2", None)],
        all,
        "db_7.user_tbl",
        &["ods_7.t_user"],
    );
    check_targets(&[rule(r"a.(?<name>\.*)", "x.${name}_copy", None)], all, "a.b", &["x.b_copy"]);
    check_targets(&[rule(r"a.\.*", "ods.<>_$1", Some("<>"))], all, "a.b", &["ods.b_$1"]);
    check_targets(&[rule(r"a.(\.*)", r"x.\$$1", None)], all, "a.b", &["x.$b"]);
    // `$12` is group 1 and the digit 2 when there is one group.
    check_targets(&[rule(r"a.(\.*)", "x.$12", None)], all, "a.b", &["x.b2"]);
    check_targets(&[rule("a.(b), c.(d)", "x.$1$2", None)], all, "c.d", &["x.d"]);
    check_targets(&[rule(r"A.\.*", "x.y", None)], all, "a.b", &["a.b"]);
}

#[test]
fn all_match_fans_out_and_first_match_does_not() {
    let rules = [rule("a.b", "x.one", None), rule(r"a.\.*", "x.two", None), rule("a.b", "x.one", None)];
    check_targets(&rules, RouteMode::AllMatch, "a.b", &["x.one", "x.two"]);
    check_targets(&rules, RouteMode::FirstMatch, "a.b", &["x.one"]);
    check_targets(&rules, RouteMode::FirstMatch, "a.c", &["x.two"]);
}

#[test]
fn bad_targets_are_refused() {
    for (source, sink) in
        [("a.(b)", "x.$2"), ("a.(b)", "x.${name}"), ("a.b", "x.$"), ("a.b", r"x.y\"), ("a.(b)", "x.${1")]
    {
        let error = check(&[rule(source, sink, None)]).unwrap_err();
        assert_eq!(error.code(), Code::ExpressionInvalid, "{source} {sink}");
    }
    let id = TableId::parse("a.b").unwrap();
    assert!(targets(&[rule("a.b", "w.x.y.z", None)], RouteMode::AllMatch, &id).is_err());
}
