//! Cases of the catalogue that concern expressions.

use canalis_types::{Column, ColumnDefault, LogicalType};

use super::harness::*;

#[test]
fn fm_07_non_ascii_literals_work() {
    let columns = [("id", INT), ("city", TEXT), ("note", TEXT), ("name", TEXT)];
    check(
        &columns,
        "id, concat('前缀-', name) AS label",
        "city = '上海' AND note <> 'naïve 😀'",
        &["+I 1|上海|ok|张", "+I 2|上海|naïve 😀|x", "+I 3|北京|ok|y"],
        &["+I 1|前缀-张", "filtered 2"],
    );
    // Columns in messages count characters, not bytes.
    check_refused(&columns, &[("'上海' AS c, NOPE(id) AS x", "line 1, column 12")]);
}

#[test]
fn fm_06_typed_defaults_pass_as_they_are_and_computed_columns_have_none() {
    let mut schema = table(&[("id", INT)]);
    let literal = |text: &str| Some(ColumnDefault::Literal(text.into()));
    for (name, ty, default) in [
        ("n", LogicalType::Int32, literal("7")),
        ("b", LogicalType::Boolean, literal("true")),
        ("ts", LogicalType::Timestamp { precision: 0 }, literal("0000-00-00 00:00:00")),
        ("now", LogicalType::TimestampTz { precision: 0 }, Some(ColumnDefault::Expression("now()".into()))),
    ] {
        schema.columns.push(Column { default, ..Column::new(name, ty, true) });
    }
    let output = plan(&schema, "*, n AS m, n + 1 AS next", "b IS NOT FALSE").unwrap().outputs()[0].clone();
    assert_eq!(output.columns[..5], schema.columns[..]);
    assert_eq!(output.column("m").unwrap().default, literal("7"));
    assert_eq!(output.column("next").unwrap().default, None);
    // A default is for inserts at the sink; NULL in a row stays NULL.
    check(&[("id", INT), ("n", INT)], "*, n AS m", "", &["+I 1|NULL"], &["+I 1|NULL|NULL"]);
}

#[test]
fn fm_10_star_expansion_follows_the_source_and_the_rule_wins_a_clash() {
    let mut schema = table(&[("id", INT), ("name", TEXT)]);
    let projection = "*, UPPER(name) AS name2";
    let before = plan(&schema, projection, "").unwrap();
    let names = |t: &canalis_transforms::TableTransform| -> Vec<String> {
        t.outputs()[0].columns.iter().map(|c| c.name.clone()).collect()
    };
    assert_eq!(names(&before), ["id", "name", "name2"]);

    schema.columns.push(Column::new("age", INT, true));
    schema.version = 1;
    let aged = plan(&schema, projection, "").unwrap();
    assert_eq!(names(&aged), ["id", "name", "age", "name2"]);
    assert_eq!(before.evolve(&aged).len(), 1);
    let applied = aged.apply(&batch(&schema, &["+I 1|a|30"])).unwrap();
    assert_eq!(lines(&applied.batches[0]), ["+I 1|a|30|A"]);

    // The source gets a column of the computed name: the rule's definition takes its place.
    schema.columns.push(Column::new("name2", TEXT, true));
    schema.version = 2;
    let clash = plan(&schema, projection, "").unwrap();
    assert_eq!(names(&clash), ["id", "name", "age", "name2"]);
    assert!(aged.evolve(&clash).is_empty());
    let applied = clash.apply(&batch(&schema, &["+I 1|a|30|source"])).unwrap();
    assert_eq!(lines(&applied.batches[0]), ["+I 1|a|30|A"]);

    // A table that no rule names is untouched.
    schema.id = canalis_types::TableId::new("other", "t");
    assert!(plan(&schema, projection, "").unwrap().is_identity());
    // The name of a metadata column cannot be given away.
    check_refused(&[("id", INT)], &[("id, 1 AS __table_name__", "is the name of a metadata column")]);
}
