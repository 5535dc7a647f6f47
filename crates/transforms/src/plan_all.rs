//! Owns the planning of all tables of a pipeline together, so that tables may share a target.

use std::{collections::BTreeMap, sync::Arc};

use canalis_types::{Code, Error, Result, TableId, TableSchema};

use crate::{Transforms, merge::merge, table::TableTransform};

/// What a change of one source table means.
pub struct Replanned {
    /// Plans that differ from before: that of the table itself, and of tables that share a target with it.
    pub tables: Vec<TableTransform>,
    /// Targets that differ in more than their version, before (`None` for a new one) and after.
    pub targets: Vec<(Option<Arc<TableSchema>>, Arc<TableSchema>)>,
}

impl Transforms {
    /// Plans all tables, in their order. Tables with one target get the same output there: the widest structure of all of
    /// them, see [`TableTransform::outputs`]. It does not depend on the order of the tables.
    ///
    /// # Errors
    /// As [`Transforms::plan`], and `CNL-1005` when tables cannot share a target.
    pub fn plan_all(&self, schemas: &[Arc<TableSchema>]) -> Result<Vec<TableTransform>> {
        self.plan_onto(schemas, &[])
    }

    /// Plans all tables. Shared targets that are among the outputs of `current` keep what they are and grow at the end.
    fn plan_onto(
        &self,
        schemas: &[Arc<TableSchema>],
        current: &[&TableTransform],
    ) -> Result<Vec<TableTransform>> {
        let mut planned = schemas.iter().map(|s| self.plan(s)).collect::<Result<Vec<_>>>()?;
        let mut shared: BTreeMap<TableId, Vec<(usize, usize)>> = BTreeMap::new();
        for (table, transform) in planned.iter().enumerate() {
            for (output, schema) in transform.outputs().iter().enumerate() {
                shared.entry(schema.id.clone()).or_default().push((table, output));
            }
        }
        for (target, mut places) in shared.into_iter().filter(|(_, places)| places.len() > 1) {
            places.sort_by_key(|&(table, _)| planned[table].source().id.clone());
            let tables: Vec<(&TableId, &TableSchema)> = places
                .iter()
                .map(|&(table, output)| (&planned[table].source().id, &*planned[table].outputs()[output]))
                .collect();
            let merged = merge(&target, &tables)?;
            let merged = Arc::new(match outputs(current).find(|o| o.id == target) {
                None => merged,
                Some(before) => grown(before, merged),
            });
            for (table, output) in places {
                planned[table].share(output, &merged)?;
            }
        }
        Ok(planned)
    }

    /// Plans again after the structure of one source table has changed, or a table has come. `current` holds the plans of
    /// all tables.
    ///
    /// # Errors
    /// As [`Transforms::plan_all`], and `CNL-2008` when a column that is already at a target which several tables share
    /// would have to change its type, or to allow NULL.
    pub fn replan(&self, current: &[&TableTransform], after: &Arc<TableSchema>) -> Result<Replanned> {
        let mut schemas: Vec<Arc<TableSchema>> = current.iter().map(|t| t.source().clone()).collect();
        match schemas.iter_mut().find(|s| s.id == after.id) {
            Some(schema) => *schema = after.clone(),
            None => schemas.push(after.clone()),
        }
        let planned = self.plan_onto(&schemas, current)?;
        let mut targets: Vec<(Option<Arc<TableSchema>>, Arc<TableSchema>)> = Vec::new();
        for output in planned.iter().flat_map(|t| t.outputs()) {
            if targets.iter().any(|(_, known)| known.id == output.id) {
                continue;
            }
            let before = outputs(current).find(|o| o.id == output.id);
            match before {
                None => targets.push((None, output.clone())),
                Some(before) if is_same(before, output) => {}
                Some(before) => {
                    let writers = planned.iter().filter(|t| t.outputs().iter().any(|o| o.id == output.id));
                    if writers.count() > 1 {
                        refuse_retyped(before, output)?;
                    }
                    targets.push((Some(before.clone()), output.clone()));
                }
            }
        }
        let is_new = |transform: &TableTransform| {
            let before = current.iter().find(|t| t.source().id == transform.source().id);
            before.is_none_or(|b| b.source() != transform.source() || b.outputs() != transform.outputs())
        };
        Ok(Replanned { tables: planned.into_iter().filter(is_new).collect(), targets })
    }
}

fn is_same(before: &TableSchema, after: &TableSchema) -> bool {
    TableSchema { version: after.version, ..before.clone() } == *after
}

fn outputs<'a>(transforms: &[&'a TableTransform]) -> impl Iterator<Item = &'a Arc<TableSchema>> {
    transforms.iter().flat_map(|t| t.outputs())
}

/// A target with new columns behind those that it has.
fn grown(before: &TableSchema, mut merged: TableSchema) -> TableSchema {
    merged.columns.sort_by_key(|c| before.column_index(&c.name).unwrap_or(usize::MAX));
    TableSchema {
        columns: merged.columns,
        primary_key: merged.primary_key,
        version: merged.version,
        ..before.clone()
    }
}

fn refuse_retyped(before: &TableSchema, after: &TableSchema) -> Result<()> {
    for column in &before.columns {
        let Some(next) = after.column(&column.name) else { continue };
        let what = if next.ty != column.ty {
            format!("become {} instead of {}", next.ty, column.ty)
        } else if next.nullable && !column.nullable {
            "allow NULL".to_owned()
        } else {
            continue;
        };
        return Err(Error::new(
            Code::SchemaChangeRefused,
            format!(
                "column `{}` of {}, which several tables share, would have to {what}",
                column.name, after.id
            ),
        ));
    }
    Ok(())
}
