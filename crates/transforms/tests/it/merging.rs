//! Tables that share a target.

use std::sync::Arc;

use canalis_transforms::{TableTransform, Transforms};
use canalis_types::{Code, Column, LogicalType, LogicalType::*, TableId, TableSchema};

use super::harness::*;

/// The table `shop.<name>` with the key `id`.
fn shard(name: &str, columns: &[(&str, LogicalType)]) -> Arc<TableSchema> {
    Arc::new(TableSchema { id: TableId::new("shop", name), ..table(columns) })
}

fn transforms() -> Transforms {
    Transforms::new(Vec::new(), vec![route(r"shop.t\.*", "dw.orders")], options()).unwrap()
}

fn shape(schema: &TableSchema) -> String {
    let column = |c: &Column| format!("{} {}{}", c.name, c.ty, if c.nullable { "" } else { " NOT NULL" });
    schema.columns.iter().map(column).collect::<Vec<_>>().join(", ")
}

fn rows(transform: &TableTransform, source: &TableSchema, given: &[&str]) -> Vec<String> {
    let applied = transform.apply(&batch(source, given)).unwrap();
    assert_eq!(*applied.batches[0].schema(), transform.outputs()[0]);
    lines(&applied.batches[0])
}

#[test]
fn shards_with_missing_columns_and_narrower_types_are_merged() {
    let one =
        shard("t1", &[("id", INT), ("v", Varchar { length: 5 }), ("amt", decimal(10, 2)), ("day", Date)]);
    let two = shard(
        "t2",
        &[
            ("id", BIGINT),
            ("note", TEXT),
            ("amt", decimal(12, 4)),
            ("v", Varchar { length: 9 }),
            ("day", Timestamp { precision: 0 }),
        ],
    );
    let planned = transforms().plan_all(&[one.clone(), two.clone()]).unwrap();
    let output = &planned[0].outputs()[0];
    assert_eq!(output.id.to_string(), "dw.orders");
    assert_eq!(
        shape(output),
        "id BIGINT NOT NULL, v VARCHAR(9), amt DECIMAL(12, 4), day TIMESTAMP(0), note STRING"
    );
    assert_eq!(output.primary_key, ["id"]);
    let turned = transforms().plan_all(&[two.clone(), one.clone()]).unwrap();
    assert_eq!(turned[0].outputs()[0], *output);
    assert!(Arc::ptr_eq(output, &planned[1].outputs()[0]));
    assert_eq!(
        rows(
            &planned[0],
            &one,
            &["+I 1|ab|12345678.25|2024-02-29", "-U 2|~|1.00|NULL", "+U 2|~|2.00|0000-00-00"]
        ),
        [
            "+I 1|ab|12345678.2500|2024-02-29 00:00:00|NULL",
            "-U 2|~|1.0000|NULL|NULL",
            // What MySQL holds, no calendar does: it stays.
            "+U 2|~|2.0000|0000-00-00 00:00:00|NULL",
        ]
    );
    assert_eq!(
        rows(&planned[1], &two, &["+I 9000000000|n|1.2345|abc|2024-01-01 10:00:00"]),
        ["+I 9000000000|abc|1.2345|2024-01-01 10:00:00|n"]
    );
}

#[test]
fn equal_shards_are_merged_at_no_cost_and_others_stay_alone() {
    let (one, two) = (shard("t1", &[("id", INT)]), shard("t2", &[("id", INT)]));
    let alone = shard("x", &[("id", BIGINT)]);
    let planned = transforms().plan_all(&[one.clone(), two, alone]).unwrap();
    assert!(planned[2].is_identity());
    let input = batch(&one, &["+I 1"]);
    let applied = planned[0].apply(&input).unwrap();
    assert!(Arc::ptr_eq(applied.batches[0].rows().column(0), input.rows().column(0)));
}

#[test]
fn merged_rows_are_transformed_first() {
    let one = shard("t1", &[("id", INT), ("v", INT)]);
    let two = shard("t2", &[("id", INT)]);
    let mut with_origin = rule("*, __table_name__ AS src", "id > 1");
    with_origin.primary_keys = vec!["src".into(), "id".into()];
    let routes = vec![route(r"shop.t\.*", "dw.orders"), route("shop.t1", "dw.copy")];
    let planned = Transforms::new(vec![with_origin], routes, options())
        .unwrap()
        .plan_all(&[one.clone(), two.clone()])
        .unwrap();
    assert_eq!(planned[0].outputs()[0].primary_key, ["src", "id"]);
    assert_eq!(rows(&planned[0], &one, &["+I 1|5", "+I 2|6"]), ["+I 2|6|t1"]);
    assert_eq!(rows(&planned[1], &two, &["+I 2"]), ["+I 2|NULL|t2"]);
    // The other target of the first table has its own structure.
    let applied = planned[0].apply(&batch(&one, &["+I 2|6"])).unwrap();
    assert_eq!(applied.batches.len(), 2);
    assert_eq!(shape(applied.batches[1].schema()), "id INT NOT NULL, v INT, src VARCHAR(64) NOT NULL");
}

#[test]
fn tables_that_do_not_fit_together_are_refused_with_both_sides() {
    let one = shard("t1", &[("id", INT), ("v", INT)]);
    let text = shard("t2", &[("id", INT), ("v", TEXT)]);
    let error = transforms().plan_all(&[one.clone(), text]).err().unwrap();
    assert_eq!(error.code(), Code::ExpressionInvalid);
    assert!(
        error
            .message()
            .contains("shop.t1, shop.t2 cannot share the target dw.orders: column `v` is INT, but STRING"),
        "{error}"
    );
    let keyless = shard("t2", &[("v", INT)]);
    let error = transforms().plan_all(&[one, keyless]).err().unwrap();
    assert!(error.message().contains("primary keys are (id) and, in shop.t2, ()"), "{error}");
}

#[test]
fn a_change_of_one_shard_reaches_the_target_once() {
    let (one, two) = (shard("t1", &[("id", INT)]), shard("t2", &[("id", INT)]));
    let transforms = transforms();
    let grown = |name: &str, ty: LogicalType| {
        let mut schema = (*shard(name, &[("id", INT), ("age", ty)])).clone();
        schema.version = 1;
        Arc::new(schema)
    };
    let start = transforms.plan_all(&[one.clone(), two.clone()]).unwrap();
    let first = transforms.replan(&start.iter().collect::<Vec<_>>(), &grown("t1", INT)).unwrap();
    assert_eq!(first.targets.len(), 1);
    let (before, after) = &first.targets[0];
    assert_eq!(before.as_ref().map(|b| shape(b)).as_deref(), Some("id INT NOT NULL"));
    assert_eq!(shape(after), "id INT NOT NULL, age INT");
    // Rows of the other shard have the new column, too.
    assert_eq!(first.tables.len(), 2);
    assert_eq!(rows(&first.tables[1], &two, &["+I 1"]), ["+I 1|NULL"]);

    let current: Vec<_> = first.tables.iter().collect();
    let second = transforms.replan(&current, &grown("t2", Int16)).unwrap();
    assert!(second.targets.is_empty());
    assert_eq!(rows(second.tables.last().unwrap(), &grown("t2", Int16), &["+I 1|7"]), ["+I 1|7"]);
    let error = transforms.replan(&current, &grown("t2", BIGINT)).err().unwrap();
    assert_eq!(error.code(), Code::SchemaChangeRefused);
    assert!(error.message().contains("`age` of dw.orders"), "{error}");

    // A table that lacks a column which forbids NULL at the target.
    let strict = |name: &str, extra: bool| {
        let mut schema = (*shard(name, &[("id", INT)])).clone();
        if extra {
            schema.columns.push(Column::new("must", INT, false));
        }
        Arc::new(schema)
    };
    let both = transforms.plan_all(&[strict("t1", true), strict("t2", true)]).unwrap();
    let error = transforms.replan(&both.iter().collect::<Vec<_>>(), &strict("t0", false)).err().unwrap();
    assert!(error.message().contains("`must` of dw.orders"), "{error}");
    assert!(error.message().ends_with("would have to allow NULL"), "{error}");

    // New columns go behind those that the target has, wherever their table stands.
    let early = transforms.replan(&current, &shard("t0", &[("a", INT), ("id", INT)])).unwrap();
    assert_eq!(shape(&early.targets[0].1), "id INT NOT NULL, age INT, a INT");
    let third = transforms.replan(&current, &shard("t3", &[("id", INT), ("x", TEXT)])).unwrap();
    assert_eq!(shape(&third.targets[0].1), "id INT NOT NULL, age INT, x STRING");
    let fresh = transforms.replan(&current, &shard("u", &[("id", INT)])).unwrap();
    assert!(fresh.targets.len() == 1 && fresh.targets[0].0.is_none());
    assert_eq!(fresh.tables.len(), 1);
}
