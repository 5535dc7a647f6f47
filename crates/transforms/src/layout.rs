//! Owns the structure of a table behind its transform: columns, keys, indexes and options.

use std::collections::HashMap;

use canalis_types::{Column, TableSchema};

use crate::{TransformRule, compile::Typed, nearest::hint};

/// A column of the output.
pub(crate) struct OutputColumn {
    pub name: String,
    pub content: Content,
}

/// Where the values of an output column come from.
pub(crate) enum Content {
    /// The source column of this index, untouched.
    Pass(usize),
    /// An expression.
    Computed(Typed),
}

/// The structure at the sink (under the source's id), and the columns in which NULL must be refused.
pub(crate) struct Layout {
    pub schema: TableSchema,
    pub not_null: Vec<usize>,
}

/// Derives the structure.
///
/// # Errors
/// A key column that the projection does not give.
pub(crate) fn derive(
    source: &TableSchema,
    columns: &[OutputColumn],
    rule: Option<&TransformRule>,
) -> Result<Layout, String> {
    let is_whole = columns.len() == source.columns.len()
        && columns.iter().enumerate().all(|(i, c)| {
            matches!(c.content, Content::Pass(index) if index == i) && c.name == source.columns[i].name
        });
    let mut schema =
        TableSchema { columns: columns.iter().map(|c| column(c, source)).collect(), ..source.clone() };
    let names = Names::of(source, columns);
    schema.primary_key = match rule {
        Some(rule) if !rule.primary_keys.is_empty() => {
            named(&rule.primary_keys, "primary-keys", source, columns)?
        }
        _ => names.key(source, columns)?,
    };
    match rule {
        Some(rule) if !rule.partition_keys.is_empty() => {
            schema.partition_keys = named(&rule.partition_keys, "partition-keys", source, columns)?;
        }
        _ => {
            let kept: Option<Vec<String>> =
                source.partition_keys.iter().map(|name| names.passed(name)).collect();
            schema.partition_keys = kept.unwrap_or_default();
        }
    }
    if let Some(rule) = rule.filter(|r| !r.table_options.is_empty()) {
        schema.options = rule.table_options.clone();
    }
    let keeps_deleted = rule.is_some_and(|r| r.soft_delete);
    schema.indexes.retain(|index| {
        // A deleted row that stays would hold its unique values for ever.
        !(index.unique && keeps_deleted) && index.columns.iter().all(|c| names.is_untouched(c))
    });
    let mut not_null = Vec::new();
    for name in &schema.primary_key {
        let Some(index) = schema.columns.iter().position(|c| c.name == *name) else { continue };
        if schema.columns[index].nullable {
            schema.columns[index].nullable = false;
            not_null.push(index);
        }
    }
    adjust_natives(&mut schema, is_whole);
    Ok(Layout { schema, not_null })
}

fn column(column: &OutputColumn, source: &TableSchema) -> Column {
    match &column.content {
        Content::Pass(index) => Column { name: column.name.clone(), ..source.columns[*index].clone() },
        Content::Computed(typed) => Column::new(column.name.clone(), typed.ty.clone(), !typed.is_literal()),
    }
}

fn named(
    wanted: &[String],
    key: &str,
    source: &TableSchema,
    columns: &[OutputColumn],
) -> Result<Vec<String>, String> {
    for name in wanted {
        if columns.iter().any(|c| c.name == *name) {
            continue;
        }
        if source.column(name).is_some() {
            return Err(format!("{key}: the projection leaves column `{name}` out"));
        }
        let hint = hint(name, columns.iter().map(|c| c.name.as_str()));
        return Err(format!("{key}: column `{name}` is not known{hint}"));
    }
    Ok(wanted.to_vec())
}

/// What became of the source's columns.
struct Names<'a> {
    passed: HashMap<&'a str, &'a str>,
}

impl<'a> Names<'a> {
    fn of(source: &'a TableSchema, columns: &'a [OutputColumn]) -> Self {
        let mut passed: HashMap<&str, &str> = HashMap::new();
        for column in columns {
            let Content::Pass(index) = column.content else { continue };
            let original = source.columns[index].name.as_str();
            let entry = passed.entry(original).or_insert(&column.name);
            if column.name == original {
                *entry = &column.name;
            }
        }
        Self { passed }
    }

    /// The name under which a source column goes through.
    fn passed(&self, name: &str) -> Option<String> {
        self.passed.get(name).map(|n| (*n).to_owned())
    }

    fn is_untouched(&self, name: &str) -> bool {
        self.passed.get(name).is_some_and(|n| *n == name)
    }

    /// The source's key under the output's names. A key column that is computed anew keeps its place.
    fn key(&self, source: &TableSchema, columns: &[OutputColumn]) -> Result<Vec<String>, String> {
        let mut key = Vec::with_capacity(source.primary_key.len());
        for name in &source.primary_key {
            let is_computed =
                || columns.iter().any(|c| c.name == *name && matches!(c.content, Content::Computed(_)));
            match self.passed(name) {
                Some(name) => key.push(name),
                None if is_computed() => key.push(name.clone()),
                None => {
                    return Err(format!(
                        "projection: it leaves out the primary-key column `{name}`; keep it, or declare other \
                         `primary-keys`"
                    ));
                }
            }
        }
        Ok(key)
    }
}

/// Takes away what the source's declarations can no longer say about the output.
fn adjust_natives(schema: &mut TableSchema, is_whole: bool) {
    let leading: Vec<String> = schema
        .primary_key
        .first()
        .into_iter()
        .chain(schema.indexes.iter().filter_map(|i| i.columns.first()))
        .cloned()
        .collect();
    for column in &mut schema.columns {
        let Some(native) = &mut column.native else { continue };
        // A column that numbers itself must lead a key.
        if native.auto_increment && !leading.contains(&column.name) {
            native.auto_increment = false;
        }
        // The expression of a generated column names other columns.
        if !is_whole {
            native.generated = None;
        }
    }
}
