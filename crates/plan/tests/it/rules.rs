//! The blocks `route` and `transform`.

use crate::harness::{check, check_warnings, file, plan};

fn routes(entries: &str) -> String {
    file("", "", &format!("route:\n{entries}"))
}

fn transforms(entries: &str) -> String {
    file("", "", &format!("transform:\n{entries}"))
}

#[test]
fn targets_take_groups_names_and_symbols() {
    for entry in [
        r"{source-table: '(a).(b)', sink-table: '$1_x.$2$1'}",
        r"{source-table: '(a).(b)', sink-table: '$12.c'}",
        r"{source-table: '(?<d>a).b', sink-table: '${d}.c'}",
        r"{source-table: 'a.b', sink-table: '$0'}",
        r"{source-table: 'a.b', sink-table: 'c.d\$2024'}",
        r"{source-table: 'a.b', sink-table: n.s.t, description: words}",
        r"{source-table: 'a.b', sink-table: topic, description: null}",
        r"{source-table: 'a.b', sink-table: 'ods.t_<>', replace-symbol: '<>'}",
    ] {
        let plan = plan(&routes(&format!("  - {entry}\n")));
        assert_eq!(plan.routes.len(), 1);
        assert!(plan.warnings.is_empty(), "{entry}: {:?}", plan.warnings);
    }
}

#[test]
fn wrong_routes_are_refused() {
    check(
        &routes(
            "  - {source-table: a.b, sink-tabel: c.d}\n  - {source-table: 'a.(b)', sink-table: c.$2}\n  - {source-table: a.b, sink-table: 'c.$x'}\n  \
             - {source-table: a.b, sink-table: a.b.c.d}\n  - {source-table: 'a.b', sink-table: 'c.${t}'}\n  - {source-table: a.b, sink-table: '<>..', replace-symbol: '<>'}\n  \
             - {source-table: '', sink-table: [c]}\n  - {source-table: a.b, sink-table: c.d, replace-symbol: ''}\n  - x\n  - {source-table: a.b, sink-table: 'c\\'}\n  - {source-table: '(?<t>a).b', sink-table: 'c.${t'}\n",
        ),
        r"4:5: CNL-1002 a `route` entry needs `sink-table`
          4:25: CNL-1002 a `route` entry has no key `sink-tabel` (did you mean `sink-table`?)
          5:29: CNL-1002 `sink-table` refers to group `2`, but `a.(b)` has 1 group (put the part of `source-table` into parentheses, as in `db.(t_\.*)`)
          6:25: CNL-1002 in `c.$x` a `$` is not followed by the number or name of a group (write `\$` for a dollar sign)
          7:25: CNL-1002 `a.b.c.d` is not a table id (write `table`, `schema.table` or `namespace.schema.table`)
          8:27: CNL-1002 `sink-table` refers to group `t`, but `a.b` has no groups (put the part of `source-table` into parentheses, as in `db.(t_\.*)`)
          9:25: CNL-1002 `<>..` is not a table id (write `table`, `schema.table` or `namespace.schema.table`)
          10:6: CNL-1002 `source-table` must not be empty
          10:24: CNL-1002 `sink-table` takes a single value, here it is a list (write one text, items separated by commas)
          11:42: CNL-1002 `replace-symbol` must not be empty
          12:5: CNL-1002 a `route` entry must be a mapping of keys and values, here it is a single value
          13:25: CNL-1002 `c\` ends in a lone backslash
          14:33: CNL-1002 in `c.${t` a `${` is not closed",
    );
    let problems =
        crate::harness::parse(&routes("  - {source-table: 'a.(b', sink-table: c.d}\n")).unwrap_err();
    assert_eq!((problems.len(), problems[0].line, problems[0].column), (1, 4, 6));
}

#[test]
fn routes_that_are_most_likely_mistaken_are_warned_about() {
    check_warnings(
        &routes(
            "  - {source-table: mydb.*, sink-table: a.b}\n  - {source-table: a.b, sink-table: c.d, replace-symbol: '<>'}\n  - {source-table: '(a).b', sink-table: '$1.<>', replace-symbol: '<>'}\n",
        ),
        r"4:6: CNL-1002 `mydb.*` holds `.*` after a plain dot and so matches literal dots only (write `\.*` for any text, as in `app_db.\.*`)
          5:42: CNL-1002 `<>` does not occur in `sink-table`, so every table goes to `c.d`
          6:29: CNL-1002 with `replace-symbol`, a `$` in `sink-table` is taken literally",
    );
}

#[test]
fn transforms_take_lists_and_options() {
    let plan = plan(&transforms(
        "  - source-table: a.b, c.d\n    primary-keys: id , region\n    partition-keys: day\n    table-options: a = 1, b=x=y,\n    description: words\n  \
           - {source-table: \\.*, projection: '', filter: ' ', primary-keys: '', table-options: '', table-options.delimiter: ''}\n",
    ));
    let [first, second] = &plan.transforms[..] else { panic!("two rules") };
    assert_eq!(first.primary_keys, ["id", "region"]);
    assert_eq!(first.partition_keys, ["day"]);
    let options: Vec<(&str, &str)> =
        first.table_options.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(options, [("a", "1"), ("b", "x=y")]);
    assert_eq!((&second.projection, &second.filter), (&None, &None));
    assert!(second.primary_keys.is_empty() && second.table_options.is_empty());
}

#[test]
fn wrong_transforms_are_refused() {
    check(
        &transforms(
            "  - {projection: id}\n  - {source-table: a.b, primary-keys: 'a,,b,a'}\n  - {source-table: a.b, table-options: 'a,b=1,b=2'}\n  \
             - {source-table: a.b, converter-after-transform: soft_delete}\n  - {source-table: a.b, filter: [x], table-options.delimiter: '|'}\n  - {source-table: a.b.c.d}\n",
        ),
        "4:5: CNL-1002 a `transform` entry needs `source-table`
         5:25: CNL-1002 `primary-keys` has an empty item
         5:25: CNL-1002 `primary-keys` names `a` twice
         6:25: CNL-1002 `table-options` has the item `a`, which is not `key=value` (a value that holds the delimiter needs another `table-options.delimiter`)
         6:25: CNL-1002 `table-options` gives `b` twice
         7:25: CNL-1002 there is no converter `soft_delete` (there is `SOFT_DELETE`)
         8:25: CNL-1002 `filter` takes a single value, here it is a list (write one text, items separated by commas)
         9:6: CNL-1002 pattern `a.b.c.d` has 4 pieces; write `table`, `schema.table` or `namespace.schema.table`",
    );
    check_warnings(
        &transforms("  - {source-table: a.b, table-options.delimiter: '|'}\n"),
        "4:25: CNL-1002 `table-options.delimiter` has no effect without `table-options`",
    );
}
