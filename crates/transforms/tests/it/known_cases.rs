//! Cases of the catalogue that concern expressions.

use canalis_types::Column;

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
}
