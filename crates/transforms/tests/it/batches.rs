//! What becomes of row kinds, unchanged cells, refused rows and metadata.

use std::sync::Arc;

use canalis_transforms::Transforms;
use canalis_types::{Code, RowKind};

use super::harness::*;

#[test]
fn filters_test_both_sides_of_an_update() {
    check(
        &[("id", INT), ("v", INT)],
        "",
        "v > 10",
        &[
            "+I 1|11",
            "+I 2|9",
            "-U 3|11",
            "+U 3|12",
            "-U 4|11",
            "+U 4|9",
            "-U 5|9",
            "+U 5|11",
            "-U 6|9",
            "+U 6|8",
            "-D 7|11",
            "-D 8|9",
            "+I 9|NULL",
        ],
        &["+I 1|11", "-U 3|11", "+U 3|12", "-D 4|11", "+I 5|11", "-D 7|11", "filtered 4"],
    );
}

#[test]
fn filters_see_projected_away_columns_aliases_and_new_names() {
    let columns = [("id", INT), ("a", INT), ("b", INT)];
    check(&columns, "id", "b = 3", &["+I 1|2|3", "+I 2|2|4"], &["+I 1", "filtered 1"]);
    check(&columns, "id, a + b AS c", "c = 5", &["+I 1|2|3", "+I 2|2|4"], &["+I 1|5", "filtered 1"]);
    // A computed alias wins over a source column of that name.
    check(&columns, "id, b * 10 AS a", "a = 30", &["+I 1|2|3", "+I 2|30|4"], &["+I 1|30", "filtered 1"]);
    check(&columns, "id, a AS x", "x = 2", &["+I 1|2|3", "+I 2|1|4"], &["+I 1|2", "filtered 1"]);
}

#[test]
fn a_filter_that_drops_everything_leaves_no_batch() {
    let schema = table(&[("id", INT)]);
    let transform = plan(&schema, "", "id > 100").unwrap();
    let applied = transform.apply(&batch(&schema, &["+I 1", "-U 2", "+U 3"])).unwrap();
    assert!(applied.batches.is_empty() && applied.filtered == 2);
    let nothing = transform.apply(&batch(&schema, &[])).unwrap();
    assert!(nothing.batches.is_empty() && nothing.filtered == 0);
}

#[test]
fn refused_rows_do_not_hold_up_the_others() {
    check(
        &[("id", INT), ("v", INT)],
        "id, 100 / v AS q, CAST(v AS TINYINT) AS t",
        "",
        &[
            "+I 1|10",
            "+I 2|0",
            "-U 3|5",
            "+U 3|300",
            "-U 4|0",
            "+U 4|1",
            "-D 5|20",
            "-U 6|0",
            "+U 6|0",
            "+I 7|NULL",
        ],
        &[
            "+I 1|10|10",
            "-D 5|5|20",
            "+I 7|NULL|NULL",
            "! +I: column `q`: division by zero",
            "! +U: column `t`: value does not fit TINYINT",
            "! +U: column `q`: division by zero (in the row before the update)",
            "! +U: column `q`: division by zero (in the row before the update)",
        ],
    );
    // A row that the filter drops is not computed, so it cannot be refused.
    check(
        &[("id", INT), ("v", INT)],
        "id, 1 / v AS q",
        "v <> 0",
        &["+I 1|0", "+I 2|1"],
        &["+I 2|1", "filtered 1"],
    );
    check(
        &[("id", INT), ("v", INT)],
        "id",
        "10 / v > 1",
        &["+I 1|0", "-U 2|0", "+U 2|5", "+I 3|5", "+I 4|100"],
        &[
            "+I 3",
            "filtered 1",
            "! +I: filter: division by zero",
            "! +U: filter: division by zero (in the row before the update)",
        ],
    );
}

#[test]
fn letters_hold_the_row_as_the_source_had_it() {
    let schema = table(&[("id", INT), ("v", INT), ("name", TEXT)]);
    let transform = plan(&schema, "id, 1 / v AS q", "id > 1").unwrap();
    let applied = transform.apply(&batch(&schema, &["+I 1|1|a", "-U 2|1|b", "+U 3|0|c"])).unwrap();
    let letter = &applied.rejected[0];
    assert_eq!(letter.table.to_string(), "shop.t");
    assert_eq!(letter.kind, RowKind::UpdateAfter);
    assert_eq!(letter.code, Code::RowRefused);
    assert_eq!(letter.key.to_string(), r#"{"id":3}"#);
    assert_eq!(letter.payload.to_string(), r#"{"id":3,"v":0,"name":"c"}"#);
}

#[test]
fn many_refused_rows_are_all_found() {
    let schema = table(&[("id", INT), ("v", INT)]);
    let transform = plan(&schema, "id, 1000 / v AS q", "").unwrap();
    let rows: Vec<String> = (0..5000).map(|n| format!("+I {n}|{}", n % 7)).collect();
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    let input = batch(&schema, &rows);
    let applied = transform.apply(&input).unwrap();
    let got = outcome(&input, &applied);
    assert_eq!(applied.rejected.len(), 715);
    assert_eq!(got[0], "+I 1|1000");
    assert_eq!(got[5], "+I 6|166");
    assert_eq!(got[6], "+I 8|1000");
}

#[test]
fn unchanged_cells_survive_and_refuse_expressions() {
    let columns = [("id", INT), ("v", TEXT), ("w", TEXT)];
    let rows = ["-U 1|a|b", "+U 1|~|c", "-U 2|a|b", "+U 2|d|~", "+I 3|x|y"];
    check(&columns, "", "id > 0", &rows, &rows);
    check(&columns, "", "id <> 1", &rows, &["-U 2|a|b", "+U 2|d|~", "+I 3|x|y", "filtered 1"]);
    check(&columns, "w AS x, id", "", &rows, &["-U b|1", "+U c|1", "-U b|2", "+U ~|2", "+I y|3"]);
    check(
        &columns,
        "id, UPPER(v) AS u, w",
        "",
        &rows,
        &[
            "-U 2|A|b",
            "+U 2|D|~",
            "+I 3|X|y",
            "! +U: column `u`: column `v` was not sent by the source because it is unchanged",
        ],
    );
    check(
        &columns,
        "*",
        "w IS NOT NULL",
        &rows,
        &[
            "-U 1|a|b",
            "+U 1|~|c",
            "+I 3|x|y",
            "! +U: filter: column `w` was not sent by the source because it is unchanged",
        ],
    );
}

#[test]
fn metadata_columns_tell_table_kind_and_time() {
    let schema = table(&[("id", INT)]);
    let transform = plan(
        &schema,
        "*, __schema_name__ || '.' || __table_name__ AS src, __data_event_type__ AS op, op_ts AS at, \
         __namespace_name__ AS ns",
        "op_ts > 5 AND __data_event_type__ <> '-D'",
    )
    .unwrap();
    let input = batch(&schema, &["+I 1", "-U 1", "+U 2", "-D 2"]).with_event_time(Some(7));
    let applied = transform.apply(&input).unwrap();
    assert_eq!(
        outcome(&input, &applied),
        ["+I 1|shop.t|+I|7|NULL", "-U 1|shop.t|-U|7|NULL", "+U 2|shop.t|+U|7|NULL", "filtered 1"]
    );
    // A metadata column may stand alone, under its own name.
    let transform = plan(&schema, "id, __table_name__, op_ts", "").unwrap();
    let names: Vec<&str> = transform.outputs()[0].columns.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["id", "__table_name__", "op_ts"]);
    let applied = transform.apply(&batch(&schema, &["+I 1"])).unwrap();
    assert_eq!(lines(&applied.batches[0]), ["+I 1|t|0"]);
}

#[test]
fn filters_choose_kinds_of_changes() {
    let columns = [("id", INT)];
    let rows = ["+I 1", "-U 1", "+U 2", "-D 2"];
    for (filter, expect) in [
        ("__op__ = 'INSERT'", vec!["+I 1", "filtered 2"]),
        ("__op__ <> 'DELETE'", vec!["+I 1", "-U 1", "+U 2", "filtered 1"]),
        // Of updates only the row after is of this kind: it becomes an insert.
        ("__data_event_type__ IN ('+I', '+U')", vec!["+I 1", "+I 2", "filtered 1"]),
        // Deletes of some rows only.
        ("__op__ <> 'DELETE' OR id > 2", vec!["+I 1", "-U 1", "+U 2", "filtered 1"]),
    ] {
        check(&columns, "*", filter, &rows, &expect);
    }
    check(
        &columns,
        "id, __op__ AS op",
        "id = 1",
        &rows,
        // The update leaves the set of the filter: it is a delete.
        &["+I 1|INSERT", "-D 1|DELETE", "filtered 1"],
    );
    // It is no reserved name: a column of the source, or of the projection, comes first.
    check(
        &columns,
        "id, __data_event_type__ AS __op__",
        "__op__ = '+I'",
        &["+I 1", "-D 2"],
        &["+I 1|+I", "filtered 1"],
    );
    check(&[("__op__", INT)], "__op__ + 1 AS x", "", &["+I 1"], &["+I 2"]);
}

#[test]
fn soft_delete_keeps_the_row_before() {
    let schema = table(&[("id", INT), ("v", INT)]);
    let mut soft = rule("*, __data_event_type__ AS op", "v > 10");
    soft.soft_delete = true;
    let transform = plan_rule(&schema, soft).unwrap();
    let input = batch(&schema, &["+I 1|11", "-D 2|12", "-D 3|9", "-U 4|11", "+U 4|9", "-U 5|11", "+U 5|12"]);
    let applied = transform.apply(&input).unwrap();
    assert_eq!(
        outcome(&input, &applied),
        ["+I 1|11|+I", "+I 2|12|-D", "+I 4|11|-D", "-U 5|11|-U", "+U 5|12|+U", "filtered 1"]
    );
}

#[test]
fn a_null_in_a_declared_key_is_refused() {
    let schema = table(&[("id", INT), ("code", TEXT)]);
    let mut keyed = rule("", "");
    keyed.primary_keys = vec!["code".into()];
    let transform = plan_rule(&schema, keyed).unwrap();
    assert!(!transform.outputs()[0].columns[1].nullable);
    let input = batch(&schema, &["+I 1|a", "+I 2|NULL"]);
    let applied = transform.apply(&input).unwrap();
    assert_eq!(outcome(&input, &applied), ["+I 1|a", "! +I: column `code`: a primary key cannot be NULL"]);
}

#[test]
fn every_target_gets_the_same_changes_and_the_ledger_counts_once() {
    let schema = Arc::new(table(&[("id", INT)]));
    let routes = vec![route("shop.t", "x.one"), route(r"shop.(\.*)", "x.two_$1")];
    let transform =
        Transforms::new(vec![rule("", "id > 1")], routes, options()).unwrap().plan(&schema).unwrap();
    let ids: Vec<String> = transform.outputs().iter().map(|o| o.id.to_string()).collect();
    assert_eq!(ids, ["x.one", "x.two_t"]);
    let input = batch(&schema, &["+I 1", "+I 2"]);
    let applied = transform.apply(&input).unwrap();
    assert_eq!(applied.filtered, 1);
    for (made, output) in applied.batches.iter().zip(transform.outputs()) {
        assert_eq!(made.schema().id, output.id);
        assert_eq!(lines(made), ["+I 2"]);
    }
    assert_eq!(applied.batches.len(), 2);
}

#[test]
fn untouched_tables_cost_nothing() {
    let schema = Arc::new(table(&[("id", INT), ("v", TEXT)]));
    let none = Transforms::new(Vec::new(), Vec::new(), options()).unwrap().plan(&schema).unwrap();
    assert!(none.is_identity());
    let input = batch(&schema, &["+I 1|a"]);
    let applied = none.apply(&input).unwrap();
    assert!(Arc::ptr_eq(applied.batches[0].rows().column(1), input.rows().column(1)));
    let star = plan(&schema, "*", "").unwrap();
    assert!(star.is_identity());
    let routed =
        Transforms::new(Vec::new(), vec![route("shop.t", "x.y")], options()).unwrap().plan(&schema).unwrap();
    assert!(!routed.is_identity());
    let applied = routed.apply(&input).unwrap();
    assert!(Arc::ptr_eq(applied.batches[0].rows().column(1), input.rows().column(1)));
    assert_eq!(applied.batches[0].schema().id.to_string(), "x.y");
    // Columns that a projection passes are shared too.
    let applied = plan(&schema, "v, id + 1 AS n, id", "id = 1").unwrap().apply(&input).unwrap();
    assert!(Arc::ptr_eq(applied.batches[0].rows().column(0), input.rows().column(1)));
}
