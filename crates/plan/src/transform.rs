//! Owns the block `transform`: projections, filters, keys and options of tables.

use std::collections::BTreeMap;

use canalis_connector_api::TableSelector;
use canalis_transforms::TransformRule;
use canalis_types::Code;

use crate::{
    document::Node,
    problem::{Place, Report},
    section::Section,
};

const WHAT: &str = "a `transform` entry";
const KEYS: [&str; 9] = [
    "source-table",
    "projection",
    "filter",
    "primary-keys",
    "partition-keys",
    "table-options",
    "table-options.delimiter",
    "converter-after-transform",
    "description",
];

/// Reads one entry. `None` when the tables cannot be told; other problems are in the report.
pub(crate) fn read(
    node: &Node,
    place: Place,
    expressions: Expressions,
    report: &mut Report,
) -> Option<TransformRule> {
    let section = Section::of(node, place, WHAT, report)?;
    section.check_keys(&KEYS, WHAT, report);
    section.text("description", report);
    let source_table = source_table(&section, report);
    let projection = expression(&section, "projection", expressions, report);
    let filter = expression(&section, "filter", expressions, report);
    let primary_keys = columns(&section, "primary-keys", report);
    let partition_keys = columns(&section, "partition-keys", report);
    let table_options = table_options(&section, report);
    let soft_delete = soft_delete(&section, report);
    Some(TransformRule {
        source_table: source_table?,
        projection,
        filter,
        primary_keys,
        partition_keys,
        table_options,
        soft_delete,
    })
}

fn source_table(section: &Section<'_>, report: &mut Report) -> Option<TableSelector> {
    match TableSelector::parse(section.required("source-table", WHAT, report)?) {
        Ok(selector) => Some(selector),
        Err(message) => {
            report.invalid(&section.place_of("source-table"), message);
            None
        }
    }
}

/// Whether the syntax of expressions can be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expressions {
    /// It can.
    Check,
    /// They may call functions that the file declares and that are refused already.
    TakeUnseen,
}

fn expression(
    section: &Section<'_>,
    key: &str,
    expressions: Expressions,
    report: &mut Report,
) -> Option<String> {
    let text = section.text(key, report)?.trim();
    if text.is_empty() {
        return None;
    }
    if expressions == Expressions::Check {
        let checked = match key {
            "filter" => canalis_transforms::check_filter(text),
            _ => canalis_transforms::check_projection(text),
        };
        if let Err(message) = checked {
            report.refuse(&section.place_of(key), Code::ExpressionInvalid, message);
        }
    }
    Some(text.to_owned())
}

fn columns(section: &Section<'_>, key: &str, report: &mut Report) -> Vec<String> {
    let text = section.text(key, report).unwrap_or_default();
    let mut columns: Vec<String> = Vec::new();
    if text.trim().is_empty() {
        return columns;
    }
    let place = section.place_of(key);
    for column in text.split(',').map(str::trim) {
        if column.is_empty() {
            report.invalid(&place, format!("`{key}` has an empty item"));
        } else if columns.iter().any(|c| c == column) {
            report.invalid(&place, format!("`{key}` names `{column}` twice"));
        } else {
            columns.push(column.to_owned());
        }
    }
    columns
}

fn table_options(section: &Section<'_>, report: &mut Report) -> BTreeMap<String, String> {
    let delimiter = match section.text("table-options.delimiter", report) {
        None | Some("") => ",",
        Some(other) => other,
    };
    let mut options = BTreeMap::new();
    let Some(text) = section.text("table-options", report) else {
        if section.value("table-options.delimiter").is_some() && section.value("table-options").is_none() {
            report.warn(
                &section.place_of("table-options.delimiter"),
                "`table-options.delimiter` has no effect without `table-options`",
            );
        }
        return options;
    };
    let place = section.place_of("table-options");
    // A delimiter at the end is no empty item.
    let text = text.trim();
    let text = text.strip_suffix(delimiter).unwrap_or(text);
    if text.is_empty() {
        return options;
    }
    for item in text.split(delimiter) {
        match item.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
            Some((key, value)) if !key.is_empty() => {
                if options.insert(key.to_owned(), value.to_owned()).is_some() {
                    report.invalid(&place, format!("`table-options` gives `{key}` twice"));
                }
            }
            _ => {
                report
                    .invalid(
                        &place,
                        format!("`table-options` has the item `{}`, which is not `key=value`", item.trim()),
                    )
                    .hint("a value that holds the delimiter needs another `table-options.delimiter`");
            }
        }
    }
    options
}

fn soft_delete(section: &Section<'_>, report: &mut Report) -> bool {
    match section.text("converter-after-transform", report) {
        None => false,
        Some("SOFT_DELETE") => true,
        Some(other) => {
            report
                .invalid(
                    &section.place_of("converter-after-transform"),
                    format!("there is no converter `{other}`"),
                )
                .hint("there is `SOFT_DELETE`");
            false
        }
    }
}
