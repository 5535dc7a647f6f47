//! Structure of outputs: columns, keys, indexes, native types, routes, and their changes.

use std::sync::Arc;

use canalis_transforms::{Transforms, check_filter, check_projection};
use canalis_types::{Code, Column, ColumnDefault, Index, LogicalType::*, NativeType, TableSchema};

use super::harness::*;

/// `id` numbers itself and is the key; `k` is indexed; `code` is unique; `twice` is generated.
fn rich() -> TableSchema {
    let native = |sql: &str| NativeType {
        dialect: "mysql".into(),
        sql: sql.into(),
        charset: None,
        collation: None,
        auto_increment: false,
        generated: None,
    };
    let mut id = Column::new("id", UInt32, false);
    id.native = Some(NativeType { auto_increment: true, ..native("int(6) unsigned zerofill") });
    let mut k = Column::new("k", INT, false);
    k.native = Some(native("int(11)"));
    k.default = Some(ColumnDefault::Literal("0".into()));
    k.comment = Some("a key".into());
    let mut code = Column::new("code", Varchar { length: 10 }, true);
    code.native = Some(native("varchar(10)"));
    let mut twice = Column::new("twice", INT, true);
    twice.native = Some(NativeType { generated: Some("(`k` * 2) STORED".into()), ..native("int(11)") });
    let mut schema = table(&[]);
    schema.columns = vec![id, k, code, twice];
    schema.primary_key = vec!["id".into()];
    let index = |name: &str, unique: bool, definition: &str, column: &str| Index {
        name: name.into(),
        unique,
        definition: definition.into(),
        columns: vec![column.into()],
    };
    schema.indexes = vec![
        index("k_1", false, "KEY `k_1` (`k`)", "k"),
        index("code", true, "UNIQUE KEY `code` (`code`)", "code"),
    ];
    schema.partition_keys = vec!["k".into()];
    schema.comment = Some("a table".into());
    schema
}

fn names(schema: &TableSchema) -> Vec<&str> {
    schema.columns.iter().map(|c| c.name.as_str()).collect()
}

fn index_names(schema: &TableSchema) -> Vec<&str> {
    schema.indexes.iter().map(|i| i.name.as_str()).collect()
}

#[test]
fn pass_through_columns_keep_everything() {
    let schema = rich();
    let same = plan(&schema, r"\*", "k > 0").unwrap();
    assert_eq!(*same.outputs()[0], schema);

    let more = plan(&schema, "*, UPPER(code) AS big", "").unwrap();
    let output = &more.outputs()[0];
    assert_eq!(names(output), ["id", "k", "code", "twice", "big"]);
    assert_eq!(output.columns[..3], schema.columns[..3]);
    // The expression of a generated column may name columns that are no longer there.
    assert_eq!(output.columns[3].native.as_ref().unwrap().generated, None);
    assert_eq!(output.columns[4], Column::new("big", Text, true));
    assert_eq!(index_names(output), ["k_1", "code"]);

    let renamed = plan(&schema, "id AS order_id, k AS kk, code", "").unwrap();
    let output = &renamed.outputs()[0];
    assert_eq!(output.primary_key, ["order_id"]);
    assert_eq!(output.partition_keys, ["kk"]);
    assert_eq!(output.columns[1], Column { name: "kk".into(), ..schema.columns[1].clone() });
    assert_eq!(output.columns[0].native, schema.columns[0].native);
    assert_eq!(index_names(output), ["code"]);

    let twice = plan(&schema, "id, id AS again", "").unwrap();
    let output = &twice.outputs()[0];
    assert!(output.columns[0].native.as_ref().unwrap().auto_increment);
    assert!(!output.columns[1].native.as_ref().unwrap().auto_increment);
    assert!(output.partition_keys.is_empty());
}

#[test]
fn later_definitions_replace_earlier_ones_in_place() {
    for (projection, expect, first_is_computed) in [
        ("*, UPPER(code) AS code", vec!["id", "k", "code", "twice"], true),
        ("UPPER(code) AS code, *", vec!["code", "id", "k", "twice"], false),
        ("id, 1 AS x, k, 'a' AS x", vec!["id", "x", "k"], true),
        ("id, *", vec!["id", "k", "code", "twice"], false),
    ] {
        let transform = plan(&rich(), projection, "").unwrap();
        let output = &transform.outputs()[0];
        assert_eq!(names(output), expect, "{projection}");
        let column = output.columns.iter().find(|c| c.name == "code" || c.name == "x").unwrap();
        assert_eq!(column.native.is_none(), first_is_computed, "{projection}");
    }
    // An index over a column that is computed anew says something else.
    let transform = plan(&rich(), "*, UPPER(code) AS code", "").unwrap();
    assert_eq!(index_names(&transform.outputs()[0]), ["k_1"]);
}

#[test]
fn keys_partitions_and_options_of_the_rule_replace_the_sources() {
    let mut stated = rule("id, k, code AS c, __table_name__ AS src", "");
    stated.primary_keys = vec!["src".into(), "c".into()];
    stated.partition_keys = vec!["src".into()];
    stated.table_options = [("engine".to_owned(), "x".to_owned())].into();
    let transform = plan_rule(&rich(), stated.clone()).unwrap();
    let output = &transform.outputs()[0];
    assert_eq!(output.primary_key, ["src", "c"]);
    assert_eq!(output.partition_keys, ["src"]);
    assert_eq!(output.options["engine"], "x");
    assert!(!output.column("c").unwrap().nullable);
    // It can no longer number itself, as it leads no key.
    assert!(!output.column("id").unwrap().native.as_ref().unwrap().auto_increment);

    for (keys, part) in [
        (vec!["cc".to_owned()], "primary-keys: column `cc` is not known; did you mean `c`?"),
        (vec!["twice".to_owned()], "primary-keys: the projection leaves column `twice` out"),
    ] {
        let mut wrong = stated.clone();
        wrong.primary_keys = keys;
        let error = plan_rule(&rich(), wrong).err().unwrap();
        assert!(error.message().contains(part), "{error}");
    }
    let error = plan(&rich(), "k, code", "").err().unwrap();
    assert_eq!(error.code(), Code::ExpressionInvalid);
    assert!(error.message().contains("primary-key column `id`"), "{error}");
    // Computed anew, it is still the key.
    assert_eq!(plan(&rich(), "id + 1 AS id, k", "").unwrap().outputs()[0].primary_key, ["id"]);
}

#[test]
fn soft_delete_drops_unique_indexes() {
    let mut soft = rule("", "");
    soft.soft_delete = true;
    let transform = plan_rule(&rich(), soft).unwrap();
    assert_eq!(index_names(&transform.outputs()[0]), ["k_1"]);
    assert!(!transform.is_identity());
}

#[test]
fn the_first_matching_rule_wins() {
    let schema = Arc::new(table(&[("id", INT)]));
    let rules = vec![rule("id, 1 AS a", ""), rule("id, 2 AS b", "id > 5")];
    let transform = Transforms::new(rules, Vec::new(), options()).unwrap().plan(&schema).unwrap();
    assert_eq!(names(&transform.outputs()[0]), ["id", "a"]);
    let mut elsewhere = table(&[("id", INT)]);
    elsewhere.id = canalis_types::TableId::new("other", "t");
    assert!(plan(&elsewhere, "id, 1 AS a", "").unwrap().is_identity());
}

#[test]
fn names_are_case_sensitive_and_quoted_by_back_quotes() {
    let columns = [("id", INT), ("Name", TEXT), ("na me", TEXT), ("select", TEXT), ("数量", INT)];
    check(
        &columns,
        "id, `na me` AS `x y`, `select`, 数量 + 1 AS `总数`, `Name` AS n",
        "`select` = 's' AND Name IS NOT NULL",
        &["+I 1|A|b|s|3"],
        &["+I 1|b|s|4|A"],
    );
    check_refused(
        &columns,
        &[
            ("id, name AS x", "line 1, column 5: column `name` is not known in shop.t; did you mean `Name`?"),
            ("id, UPPER(nmae) AS x", "column 11: column `nmae` is not known"),
            ("id, `Id` AS x", "did you mean `id`?"),
            ("id, \"Name\" AS x", "write 'text' or `column`"),
            ("id, t.Name AS x", "write it alone: `Name`"),
            ("id, 1 AS op_ts", "`op_ts` is the name of a metadata column"),
        ],
    );
}

#[test]
fn texts_are_checked_without_a_table() {
    for (projection, part) in [
        (
            "id, UPPER(a)",
            "line 1, column 5: an expression needs a name; write `… AS name` after it: `UPPER(a)`",
        ),
        ("1 + 1", "needs a name"),
        ("*,\n  UPER(a) AS b", "line 2, column 3: function `UPER` is not known; did you mean `UPPER`?"),
        ("id, ", "line 1"),
        ("id a b", "column 6"),
        ("id AS __table_name__", "metadata column"),
        ("(SELECT 1) AS a", "subqueries are not usable"),
        ("COUNT(*) AS a", "function `COUNT` is not known"),
        ("a AS b; DROP TABLE c", "semicolon"),
        ("* EXCEPT (a)", ""),
        ("", "empty"),
        ("'abc AS a", ""),
        ("a::INT AS b", "CAST(… AS type)"),
        ("ROW_NUMBER() OVER () AS a", "not known"),
    ] {
        let error = check_projection(projection).expect_err(projection);
        assert!(error.contains(part), "{projection}: {error}");
        assert!(error.starts_with("line "), "{projection}: {error}");
    }
    for projection in ["*", r"\*, a AS b", "a, b", r"a, 'x\*y' AS c, \*", "`a b` AS c", "UPPER(a) u"] {
        check_projection(projection).unwrap();
    }
    for filter in ["a = 1", "a LIKE '%x%' AND NOT (b IS NULL)", "LEFT(a, 2) = 'x'", "a IN (1, 2)"] {
        check_filter(filter).unwrap();
    }
    for filter in ["a = ", "a = 1 b", "a = (SELECT 1)", "NOPE(a)", "", "a = 1 --"] {
        let got = check_filter(filter);
        assert!(filter == "a = 1 --" || got.is_err(), "{filter}");
    }
    let deep = format!("{}1{}", "(".repeat(500), ")".repeat(500));
    assert!(check_filter(&deep).unwrap_err().contains("nested too deeply"));
    let sum = vec!["a"; 1500].join(" + ");
    assert!(check_filter(&sum).unwrap_err().contains("levels deep"));
    let sum = vec!["a"; 100_000].join("+");
    assert!(check_filter(&sum).unwrap_err().contains("more than 2000 operators"));
}

#[test]
fn rules_are_refused_with_the_rule_and_the_place() {
    let error = Transforms::new(vec![rule("a, b(c", "")], Vec::new(), options()).err().unwrap();
    assert_eq!(error.code(), Code::ExpressionInvalid);
    assert!(error.message().starts_with(r"transform of `shop.\.*`: projection: line 1"), "{error}");
    let error = plan(&table(&[("id", INT)]), "", "idd = 1").err().unwrap();
    assert!(error.message().contains("filter: line 1, column 1: column `idd`"), "{error}");
    let error = plan(&table(&[("id", INT)]), "", "id + 1").err().unwrap();
    assert!(error.message().contains("a condition is needed here"), "{error}");
    let mut zone = options();
    zone.time_zone = Some("Mars".into());
    assert!(Transforms::new(Vec::new(), Vec::new(), zone).is_err());
    let mut plain = options();
    plain.metadata.clear();
    let schema = Arc::new(table(&[("id", INT)]));
    let error = Transforms::new(vec![rule("id, op_ts AS x", "")], Vec::new(), plain).unwrap().plan(&schema);
    assert!(error.err().unwrap().message().contains("metadata.list"));
}

#[test]
fn changes_of_the_source_show_at_each_output_that_differs() {
    let before = rich();
    let mut after = before.clone();
    after.columns.push(Column::new("age", INT, true));
    after.version += 1;
    let planned = |schema: &TableSchema, projection: &str| {
        let routes = vec![route("shop.t", "x.one"), route("shop.t", "x.two")];
        Transforms::new(vec![rule(projection, "")], routes, options())
            .unwrap()
            .plan(&Arc::new(schema.clone()))
            .unwrap()
    };
    let changed = planned(&before, "*, k AS kk").evolve(&planned(&after, "*, k AS kk"));
    assert_eq!(changed.len(), 2);
    assert_eq!(changed[0].0.id.to_string(), "x.one");
    assert_eq!(names(&changed[1].1), ["id", "k", "code", "twice", "age", "kk"]);
    // Without a star a new column does not get through.
    assert!(planned(&before, "id, k").evolve(&planned(&after, "id, k")).is_empty());
}
