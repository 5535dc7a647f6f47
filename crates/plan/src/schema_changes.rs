//! Owns `include.schema.changes` and `exclude.schema.changes` of a sink: families are spelled out, and what is left
//! is the set of changes that the pipeline's behaviour sees.

use std::collections::BTreeSet;

use canalis_connector_api::nearest;

use crate::{
    connector::SCHEMA_CHANGE_KEYS,
    document::Value,
    problem::Report,
    section::{Section, list},
};

const TAGS: [&str; 8] = [
    "create.table",
    "add.column",
    "alter.column.type",
    "drop.column",
    "rename.column",
    "drop.table",
    "truncate.table",
    "alter.table.comment",
];

const FAMILIES: [(&str, &[&str]); 8] = [
    ("all", &TAGS),
    ("table", &["create.table", "drop.table", "truncate.table", "alter.table.comment"]),
    ("column", &["add.column", "alter.column.type", "drop.column", "rename.column"]),
    ("add", &["add.column"]),
    ("alter", &["alter.column.type"]),
    ("create", &["create.table"]),
    ("drop", &["drop.column", "drop.table"]),
    ("rename", &["rename.column"]),
];

/// Reads both lists. The result is include − exclude; an empty or absent include stands for all, and `create.table` is
/// always included unless it is excluded by name or family.
pub(crate) fn accepted(sink: &Section<'_>, report: &mut Report) -> BTreeSet<String> {
    let [include, exclude] = SCHEMA_CHANGE_KEYS.map(|key| tags(sink, key, report));
    let mut accepted = if include.is_empty() { TAGS.into() } else { include };
    accepted.insert("create.table");
    accepted.difference(&exclude).map(|tag| (*tag).to_owned()).collect()
}

fn tags(sink: &Section<'_>, key: &str, report: &mut Report) -> BTreeSet<&'static str> {
    let mut tags = BTreeSet::new();
    let Some(entry) = sink.entry(key).filter(|e| !matches!(e.value.value, Value::Null)) else { return tags };
    let place = sink.place_of(key);
    let example = format!("write `{key}: [add.column]`");
    for (index, item) in list(entry, &place, &example, report).unwrap_or_default().iter().enumerate() {
        let place = place.item(index, item.mark);
        let Value::Scalar(text) = &item.value else {
            report.invalid(
                &place,
                format!("an item of `{key}` must be a tag, here it is {}", item.value.kind()),
            );
            continue;
        };
        match expand(text) {
            Some(expanded) => tags.extend(expanded),
            None => {
                let known = TAGS.iter().copied().chain(FAMILIES.iter().map(|(name, _)| *name));
                let problem = report.invalid(&place, format!("there is no schema change `{text}`"));
                match nearest(text, known.clone()) {
                    Some(word) => problem.hint(format!("did you mean `{word}`?")),
                    None => problem.hint(format!("one of {}", known.collect::<Vec<_>>().join(", "))),
                }
            }
        }
    }
    tags
}

fn expand(text: &str) -> Option<Vec<&'static str>> {
    if let Some(tag) = TAGS.iter().find(|t| **t == text) {
        return Some(vec![tag]);
    }
    FAMILIES.iter().find(|(name, _)| *name == text).map(|(_, tags)| tags.to_vec())
}
