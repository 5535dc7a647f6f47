//! Owns [`Scope`]: what the names in an expression stand for.

use std::{collections::HashMap, sync::Arc};

use arrow_array::{ArrayRef, StringArray, cast::AsArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use canalis_batch::arrow_schema;
use canalis_types::{LogicalType, TableSchema};
use datafusion_common::ScalarValue;
use datafusion_physical_expr::expressions::Column;

use super::typed::{Typed, call};
use crate::{
    call::{Kernel, Volatility},
    nearest::hint,
    syntax::METADATA,
};

/// Metadata column with the commit time at the source.
pub(crate) const OP_TS: &str = "op_ts";
/// Metadata column with the kind of the change as a word. Unlike the others it may be the name of another column, because
/// pipelines of Flink CDC, which do not know it, may use it so.
const OP: &str = "__op__";

/// Columns of the source, metadata columns and, for filters, computed columns.
pub(crate) struct Scope {
    table: Arc<TableSchema>,
    schema: SchemaRef,
    has_op_ts: bool,
    computed: HashMap<String, Typed>,
}

impl Scope {
    /// The names that a projection of `table` may use. `metadata` lists the source's own metadata columns.
    pub fn new(table: Arc<TableSchema>, metadata: &[String]) -> Self {
        let mut fields: Vec<Arc<Field>> = arrow_schema(&table).fields().iter().cloned().collect();
        fields.push(Arc::new(Field::new("__data_event_type__", DataType::Utf8, true)));
        fields.push(Arc::new(Field::new(OP_TS, DataType::Int64, true)));
        let has_op_ts = metadata.iter().any(|m| m == OP_TS);
        Self { table, schema: Arc::new(Schema::new(fields)), has_op_ts, computed: HashMap::new() }
    }

    /// The same scope for a filter, in which computed columns win over source columns.
    #[must_use]
    pub fn with_computed(mut self, computed: HashMap<String, Typed>) -> Self {
        self.computed = computed;
        self
    }

    /// Physical schema that expressions run over: the source's columns, then row kind and commit time.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Whether the name is a metadata column here.
    pub fn is_metadata(&self, name: &str) -> bool {
        METADATA.contains(&name) || (self.has_op_ts && name == OP_TS)
    }

    /// The expression that a name stands for.
    ///
    /// # Errors
    /// The name is not known.
    pub fn resolve(&self, name: &str) -> Result<Typed, String> {
        if let Some(typed) = self.computed.get(name) {
            return Ok(typed.clone());
        }
        if let Some(index) = self.table.column_index(name) {
            let ty = self.table.columns[index].ty.clone();
            return Ok(Typed::new(Arc::new(Column::new(name, index)), ty));
        }
        let id = &self.table.id;
        let columns = self.table.columns.len();
        match name {
            "__namespace_name__" => Ok(part(id.namespace.as_deref())),
            "__schema_name__" => Ok(part(id.schema.as_deref())),
            "__table_name__" => Ok(part(Some(&id.table))),
            "__data_event_type__" => {
                let ty = LogicalType::Varchar { length: 2 };
                Ok(Typed::new(Arc::new(Column::new(name, columns)), ty))
            }
            OP => operation(Column::new("__data_event_type__", columns)),
            OP_TS if self.has_op_ts => {
                Ok(Typed::new(Arc::new(Column::new(name, columns + 1)), LogicalType::Int64))
            }
            OP_TS => Err("column `op_ts` is not known; list it under `metadata.list` of the source".into()),
            _ => Err(self.unknown(name)),
        }
    }

    /// The message about a name that is not known.
    pub fn unknown(&self, name: &str) -> String {
        let columns = self.table.columns.iter().map(|c| c.name.as_str());
        let known = columns.chain(METADATA).chain([OP]).chain(self.computed.keys().map(String::as_str));
        format!("column `{name}` is not known in {}{}", self.table.id, hint(name, known))
    }
}

/// `INSERT`, `UPDATE` or `DELETE`; both rows of an update are `UPDATE`.
fn operation(kind: Column) -> Result<Typed, String> {
    let kind = Typed::new(Arc::new(kind), LogicalType::Varchar { length: 2 });
    let kernel: Kernel = Arc::new(|arguments, _| {
        let symbols = arguments[0].array.as_string::<i32>();
        let words = symbols.iter().map(|symbol| {
            symbol.map(|s| match s {
                "+I" => "INSERT",
                "-D" => "DELETE",
                _ => "UPDATE",
            })
        });
        Ok(Arc::new(words.collect::<StringArray>()) as ArrayRef)
    });
    call(OP, &[kind], LogicalType::Varchar { length: 6 }, Volatility::Pure, kernel)
}

/// Names of databases and tables are short; a declared length lets them be part of a key at the sink.
fn part(name: Option<&str>) -> Typed {
    let is_short = name.is_none_or(|n| n.chars().count() <= 64);
    let length = if is_short { 64 } else { 255 };
    Typed::constant(ScalarValue::Utf8(name.map(str::to_owned)), LogicalType::Varchar { length })
}
