//! Owns how the fields of a schema become the columns of a table, worked out once for each pair of both, and rows read by that.

use std::sync::Arc;

use canalis_batch::BatchBuilder;
use canalis_types::TableSchema;

use super::{
    cell::{Cells, Found},
    column::{ColumnPlan, Derived},
    default,
    read::{DEPTH, Reader},
    schema::{Field, Schema},
};

/// A field, and the column that it is.
#[derive(Debug)]
pub(super) struct Op {
    pub target: Option<usize>,
    /// Node of the field.
    pub node: usize,
    pub derived: Derived,
}

/// How to read records of a schema as rows of a table.
#[derive(Debug)]
pub(super) struct Binding {
    pub schema: Arc<Schema>,
    pub ops: Vec<Op>,
    /// Columns that the schema lacks.
    pub missing: Vec<usize>,
}

/// A default that a schema gave a column.
#[derive(Debug)]
pub(super) struct Fallback {
    schema: Arc<Schema>,
    op: Op,
    value: Vec<u8>,
}

/// What an image is, which decides what a cell without a value means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Image {
    /// A whole row.
    Insert,
    /// A row before its update or delete.
    Before,
    /// A row before its update or delete of which only the key is known.
    Key,
    /// A row after an update.
    After,
}

/// How to read a table.
#[derive(Debug)]
pub(super) struct Plan {
    pub columns: Vec<ColumnPlan>,
    pub defaults: Vec<Option<Fallback>>,
    /// The structure was declared: schemas do not change it.
    pub declared: bool,
    /// By the schema's id, `None` for messages without one.
    rows: Vec<(Option<u32>, Arc<Binding>)>,
    keys: Vec<(Option<u32>, Arc<Binding>)>,
}

/// Which records a binding is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Row,
    Key,
}

impl Plan {
    pub(super) fn new(schema: &TableSchema, declared: bool) -> Self {
        let plan = |c: &canalis_types::Column| ColumnPlan::new(c, schema.primary_key.contains(&c.name));
        Self {
            columns: schema.columns.iter().map(plan).collect(),
            defaults: schema.columns.iter().map(|_| None).collect(),
            declared,
            rows: Vec::new(),
            keys: Vec::new(),
        }
    }

    /// Takes over the defaults of columns that were there before.
    pub(super) fn inherit(&mut self, before: Plan) {
        self.declared |= before.declared;
        for (column, default) in before.columns.into_iter().zip(before.defaults) {
            if let Some(at) = self.columns.iter().position(|c| c.name == column.name) {
                self.defaults[at] = default;
            }
        }
    }

    fn list(&mut self, part: Part) -> &mut Vec<(Option<u32>, Arc<Binding>)> {
        if part == Part::Row { &mut self.rows } else { &mut self.keys }
    }

    pub(super) fn binding(&mut self, part: Part, origin: Option<u32>) -> Option<Arc<Binding>> {
        let list = self.list(part);
        let at = list.iter().position(|(o, _)| *o == origin)?;
        if at > 0 {
            // The schema in use is found at once.
            list.swap(0, at);
        }
        Some(list[0].1.clone())
    }

    /// Binds the fields of a record, with what `derived` says of each.
    pub(super) fn bind(
        &mut self,
        part: Part,
        origin: Option<u32>,
        schema: &Arc<Schema>,
        fields: &[Field],
        derived: Vec<Derived>,
    ) -> Arc<Binding> {
        let mut ops = Vec::with_capacity(fields.len());
        for (field, derived) in fields.iter().zip(derived) {
            let target = self.columns.iter().position(|c| c.name == field.name);
            let target = target.filter(|at| part == Part::Row || self.columns[*at].is_key);
            if let (Some(at), Some(value), Part::Row) = (target, &field.default, part) {
                let mut bytes = Vec::new();
                if default::encode(schema, field.node, value, &mut bytes).is_some() {
                    let op = Op { target, node: field.node, derived: derived.clone() };
                    self.defaults[at] = Some(Fallback { schema: schema.clone(), op, value: bytes });
                }
            }
            ops.push(Op { target, node: field.node, derived });
        }
        self.add(part, origin, schema, ops)
    }

    pub(super) fn add(
        &mut self,
        part: Part,
        origin: Option<u32>,
        schema: &Arc<Schema>,
        ops: Vec<Op>,
    ) -> Arc<Binding> {
        let has = |column: &usize| ops.iter().any(|op| op.target == Some(*column));
        let missing = (0..self.columns.len()).filter(|c| !has(c)).collect();
        let binding = Arc::new(Binding { schema: schema.clone(), ops, missing });
        self.list(part).insert(0, (origin, binding.clone()));
        binding
    }
}

/// Reads rows of one message.
pub(super) struct RowReader<'r, 'a> {
    pub plan: &'r Plan,
    pub binding: &'r Binding,
    pub reader: Reader<'a>,
    pub room: &'r mut Vec<u8>,
    pub unavailable: &'r [u8],
}

impl RowReader<'_, '_> {
    /// Appends a row to all columns; the row is not ended.
    ///
    /// # Errors
    /// When a value is none of its column or may not be missing, with the column named. Some columns may have a value more than
    /// others then.
    pub(super) fn append(&mut self, builder: &mut BatchBuilder, image: Image) -> Result<(), String> {
        for op in &self.binding.ops {
            let skipped = |why: &str| format!("a field that is no column: {why}");
            let Some(index) = op.target else {
                self.reader.skip(&self.binding.schema, op.node, DEPTH).map_err(skipped)?;
                continue;
            };
            let column = &self.plan.columns[index];
            let named = |why: &str| format!("column `{}`: {why}", column.name);
            if image == Image::Key && !column.is_key {
                self.reader.skip(&self.binding.schema, op.node, DEPTH).map_err(named)?;
                builder.append_unchanged(index);
                continue;
            }
            let mut cells = Cells {
                schema: &self.binding.schema,
                reader: &mut self.reader,
                room: self.room,
                unavailable: self.unavailable,
            };
            match cells.append(op, column, builder.column(index)).map_err(|why| named(&why.0.reason))? {
                Found::Value => {}
                Found::Null => null(column, builder, index, image)?,
                Found::Unavailable if image == Image::Insert || column.is_key => {
                    return Err(named("its value was not logged by the source, and is needed"));
                }
                Found::Unavailable => builder.append_unchanged(index),
            }
        }
        for index in &self.binding.missing {
            self.fill(builder, *index, image)?;
        }
        Ok(())
    }

    /// A column that the schema lacks.
    fn fill(&mut self, builder: &mut BatchBuilder, index: usize, image: Image) -> Result<(), String> {
        let column = &self.plan.columns[index];
        if matches!(image, Image::Before | Image::Key) {
            if column.is_key {
                return Err(format!("column `{}`: the key is missing", column.name));
            }
            builder.append_unchanged(index);
            return Ok(());
        }
        let Some(Fallback { schema, op, value }) = &self.plan.defaults[index] else {
            return null(column, builder, index, image);
        };
        let mut reader = Reader::new(value);
        let mut cells = Cells { schema, reader: &mut reader, room: self.room, unavailable: b"" };
        match cells.append(op, column, builder.column(index)) {
            Ok(Found::Value) => Ok(()),
            Ok(Found::Null | Found::Unavailable) => null(column, builder, index, image),
            Err(why) => Err(format!("column `{}`: its default: {}", column.name, why.0.reason)),
        }
    }
}

fn null(column: &ColumnPlan, builder: &mut BatchBuilder, index: usize, image: Image) -> Result<(), String> {
    if !column.nullable && !column.is_key && matches!(image, Image::Before | Image::Key) {
        // Where only the key is logged, the others are null whatever the column allows.
        builder.append_unchanged(index);
        return Ok(());
    }
    column
        .value
        .append_null(builder.column(index))
        .map_err(|why| format!("column `{}`: {}", column.name, why.reason))
}
