//! The language of the tests: rows as text. `+I 1|abc|NULL` is an insert of three cells; `~` is an unchanged cell.

use std::{collections::BTreeMap, sync::Arc};

use canalis_batch::{BatchBuilder, ChangeBatch, cell_to_text};
use canalis_connector_api::{RoutePattern, TableSelector};
use canalis_transforms::{
    Applied, RouteMode, RouteRule, TableTransform, TransformOptions, TransformRule, Transforms,
};
use canalis_types::{Column, Error, LogicalType, Result, RowKind, TableId, TableSchema};

pub const INT: LogicalType = LogicalType::Int32;
pub const BIGINT: LogicalType = LogicalType::Int64;
pub const TEXT: LogicalType = LogicalType::Text;
pub const DOUBLE: LogicalType = LogicalType::Float64;

pub fn decimal(precision: u8, scale: u8) -> LogicalType {
    LogicalType::Decimal { precision, scale }
}

/// The table `shop.t` with nullable columns and, if it has an `id`, that as its key.
pub fn table(columns: &[(&str, LogicalType)]) -> TableSchema {
    let declared = columns.iter().map(|(name, ty)| Column::new(*name, ty.clone(), *name != "id")).collect();
    let key = if columns.iter().any(|(name, _)| *name == "id") { vec!["id".into()] } else { Vec::new() };
    TableSchema::new(TableId::new("shop", "t"), declared, key)
}

pub fn rule(projection: &str, filter: &str) -> TransformRule {
    let text = |t: &str| (!t.is_empty()).then(|| t.to_owned());
    TransformRule {
        source_table: TableSelector::parse(r"shop.\.*").unwrap(),
        projection: text(projection),
        filter: text(filter),
        primary_keys: Vec::new(),
        partition_keys: Vec::new(),
        table_options: BTreeMap::new(),
        soft_delete: false,
    }
}

pub fn route(source: &str, sink: &str) -> RouteRule {
    RouteRule {
        source_table: RoutePattern::parse(source).unwrap(),
        sink_table: sink.into(),
        replace_symbol: None,
    }
}

pub fn options() -> TransformOptions {
    TransformOptions {
        time_zone: Some("Europe/Paris".into()),
        route_mode: RouteMode::AllMatch,
        metadata: vec!["op_ts".into()],
    }
}

pub fn plan_rule(schema: &TableSchema, rule: TransformRule) -> Result<TableTransform> {
    Transforms::new(vec![rule], Vec::new(), options())?.plan(&Arc::new(schema.clone()))
}

pub fn plan(schema: &TableSchema, projection: &str, filter: &str) -> Result<TableTransform> {
    plan_rule(schema, rule(projection, filter))
}

fn kind(symbol: &str) -> RowKind {
    use RowKind::*;
    [Insert, UpdateBefore, UpdateAfter, Delete].into_iter().find(|k| k.symbol() == symbol).unwrap()
}

pub fn batch(schema: &TableSchema, rows: &[&str]) -> ChangeBatch {
    let mut builder = BatchBuilder::new(Arc::new(schema.clone()), rows.len());
    for row in rows {
        let (symbol, cells) = row.split_once(' ').unwrap();
        let cells: Vec<&str> = cells.split('|').collect();
        assert_eq!(cells.len(), schema.columns.len(), "{row}");
        for (index, cell) in cells.into_iter().enumerate() {
            match cell {
                "NULL" => builder.column(index).append_null(),
                "~" => builder.append_unchanged(index),
                text => builder.column(index).append_text(text.as_bytes()).unwrap(),
            }
        }
        builder.end_row(kind(symbol), 0);
    }
    builder.finish().unwrap()
}

/// Rows of a batch in the language of the tests.
pub fn lines(batch: &ChangeBatch) -> Vec<String> {
    let mut out = Vec::new();
    for (row, kind) in batch.kinds().iter().enumerate() {
        let mut cells = Vec::new();
        for (index, column) in batch.schema().columns.iter().enumerate() {
            let array = batch.rows().column(index);
            cells.push(if batch.is_unchanged(index, row) {
                "~".into()
            } else {
                cell_to_text(array, &column.ty, row).unwrap_or_else(|| "NULL".into())
            });
        }
        out.push(format!("{} {}", kind.symbol(), cells.join("|")));
    }
    out
}

/// Everything that became of a batch: rows of the first output, `filtered n`, and `! kind: reason` for refused changes.
/// The ledger is checked on the way.
pub fn outcome(input: &ChangeBatch, applied: &Applied) -> Vec<String> {
    let out = applied.batches.first().map_or(0, ChangeBatch::num_changes);
    let rejected = u64::try_from(applied.rejected.len()).unwrap();
    assert_eq!(input.num_changes(), out + applied.filtered + rejected, "ledger");
    let mut got = applied.batches.first().map(lines).unwrap_or_default();
    if applied.filtered > 0 {
        got.push(format!("filtered {}", applied.filtered));
    }
    got.extend(applied.rejected.iter().map(|l| format!("! {}: {}", l.kind.symbol(), l.reason)));
    got
}

/// Runs rows through a projection and a filter (empty: none).
pub fn check(
    columns: &[(&str, LogicalType)],
    projection: &str,
    filter: &str,
    rows: &[&str],
    expect: &[&str],
) {
    let schema = table(columns);
    let transform =
        plan(&schema, projection, filter).unwrap_or_else(|e| panic!("{projection} / {filter}: {e}"));
    let input = batch(&schema, rows);
    let applied = transform.apply(&input).unwrap();
    assert_eq!(outcome(&input, &applied), expect, "{projection} / {filter}");
}

/// A computed value with its type, or why it is refused.
pub fn compute(columns: &[(&str, LogicalType, &str)], expression: &str) -> Result<String, Error> {
    let declared: Vec<(&str, LogicalType)> = columns.iter().map(|(n, t, _)| (*n, t.clone())).collect();
    let schema = table(&declared);
    let transform = plan(&schema, &format!("*, {expression} AS result__"), "")?;
    let cells: Vec<&str> = columns.iter().map(|(_, _, value)| *value).collect();
    let applied = transform.apply(&batch(&schema, &[&format!("+I {}", cells.join("|"))])).unwrap();
    if let Some(letter) = applied.rejected.first() {
        return Ok(format!("! {}", letter.reason.replace("column `result__`: ", "")));
    }
    let output = &applied.batches[0];
    let index = output.schema().columns.len() - 1;
    let ty = &output.schema().columns[index].ty;
    let value = cell_to_text(output.rows().column(index), ty, 0);
    Ok(format!("{} {ty}", value.unwrap_or_else(|| "NULL".into())))
}

/// Checks computed values: `value TYPE`, or `! reason` for a refused row.
pub fn check_values(columns: &[(&str, LogicalType, &str)], cases: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (expression, expect) in cases {
        let got = match compute(columns, expression) {
            Ok(got) => got,
            Err(error) => format!("ERROR {error}"),
        };
        if got != *expect {
            wrong.push(format!("{expression}\n   got: {got}\n  want: {expect}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Checks that expressions are refused while they are planned, with a part of the message.
pub fn check_refused(columns: &[(&str, LogicalType)], cases: &[(&str, &str)]) {
    let schema = table(columns);
    let mut wrong = Vec::new();
    for (projection, part) in cases {
        match plan(&schema, projection, "") {
            Ok(_) => wrong.push(format!("{projection}: accepted")),
            Err(error) if !error.to_string().contains(part) => wrong.push(format!("{projection}: {error}")),
            Err(_) => {}
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
