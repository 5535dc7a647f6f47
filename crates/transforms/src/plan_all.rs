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
    /// Plans all tables. Tables with one target get the same output there: the widest structure of all of them, see
    /// [`TableTransform::outputs`].
    ///
    /// # Errors
    /// As [`Transforms::plan`], and `CNL-1005` when tables cannot share a target.
    pub fn plan_all(&self, schemas: &[Arc<TableSchema>]) -> Result<Vec<TableTransform>> {
        let mut planned = schemas.iter().map(|s| self.plan(s)).collect::<Result<Vec<_>>>()?;
        let mut shared: BTreeMap<TableId, Vec<(usize, usize)>> = BTreeMap::new();
        for (table, transform) in planned.iter().enumerate() {
            for (output, schema) in transform.outputs().iter().enumerate() {
                shared.entry(schema.id.clone()).or_default().push((table, output));
            }
        }
        for (target, places) in shared.into_iter().filter(|(_, places)| places.len() > 1) {
            let tables: Vec<(&TableId, &TableSchema)> = places
                .iter()
                .map(|&(table, output)| (&planned[table].source().id, &*planned[table].outputs()[output]))
                .collect();
            let merged = Arc::new(merge(&target, &tables)?);
            for (table, output) in places {
                planned[table].share(output, &merged)?;
            }
        }
        Ok(planned)
    }

    /// Plans again after the structure of one source table has changed, or a table has come. `current` holds the plans of
    /// all tables in the order in which they were planned.
    ///
    /// # Errors
    /// As [`Transforms::plan_all`], and `CNL-2008` when the change would alter the type of a column at a target that
    /// several tables share.
    pub fn replan(&self, current: &[&TableTransform], after: &Arc<TableSchema>) -> Result<Replanned> {
        let mut schemas: Vec<Arc<TableSchema>> = current.iter().map(|t| t.source().clone()).collect();
        match schemas.iter_mut().find(|s| s.id == after.id) {
            Some(schema) => *schema = after.clone(),
            None => schemas.push(after.clone()),
        }
        let planned = self.plan_all(&schemas)?;
        let mut targets: Vec<(Option<Arc<TableSchema>>, Arc<TableSchema>)> = Vec::new();
        for output in planned.iter().flat_map(|t| t.outputs()) {
            if targets.iter().any(|(_, known)| known.id == output.id) {
                continue;
            }
            let before = current.iter().flat_map(|t| t.outputs()).find(|o| o.id == output.id);
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

fn refuse_retyped(before: &TableSchema, after: &TableSchema) -> Result<()> {
    for column in &before.columns {
        let Some(next) = after.column(&column.name).filter(|next| next.ty != column.ty) else { continue };
        return Err(Error::new(
            Code::SchemaChangeRefused,
            format!(
                "column `{}` of {}, which several tables share, would have to become {} instead of {}",
                column.name, after.id, next.ty, column.ty
            ),
        ));
    }
    Ok(())
}
