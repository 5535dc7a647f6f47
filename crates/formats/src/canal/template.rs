//! Owns what is composed per table structure for writing: the parts of a message that are the same for every row.

use std::sync::Arc;

use canalis_types::{
    Column, TableSchema,
    mysql_type::{TypeText, type_text},
};

use super::{
    encoder::{CanalEncoderOptions, EnumMode},
    java_sql::{SqlType, VARCHAR, sql_type},
    write::{Form, LabelForm},
};
use crate::json::string::write_string;

/// A column, ready for writing.
#[derive(Debug)]
pub(super) struct ColumnTemplate {
    /// `"name":`.
    pub name: Vec<u8>,
    pub form: Form,
    pub sql_type: SqlType,
}

/// A table, ready for writing.
#[derive(Debug)]
pub(super) struct Template {
    pub schema: Arc<TableSchema>,
    pub columns: Vec<ColumnTemplate>,
    pub key: Vec<usize>,
    /// Columns some of whose values cannot be written.
    pub refusing: Vec<usize>,
    /// Columns whose `sqlType` depends on the value.
    pub promoted: Vec<usize>,
    /// `"database":"d","es":`.
    pub database: Vec<u8>,
    /// `"isDdl":false,"mysqlType":{…},"old":`.
    pub types: Vec<u8>,
    /// `"pkNames":[…],"sql":"","sqlType":`.
    pub key_names: Vec<u8>,
    /// The object of `sqlType` for rows without a top bit set.
    pub sql_types: Vec<u8>,
    /// `"table":"t","ts":`.
    pub table: Vec<u8>,
}

fn string(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    write_string(&mut out, text.as_bytes());
    out
}

/// The type text of a column, as the source has it or the nearest.
pub(super) fn mysql_type(column: &Column) -> (String, TypeText) {
    let native = column.native.as_ref().filter(|native| native.dialect == "mysql");
    let text = native.map_or_else(|| type_text(&column.ty), |native| native.sql.clone());
    let parsed = TypeText::parse(&text).unwrap_or_else(|_| TypeText {
        name: text.to_ascii_lowercase(),
        arguments: Vec::new(),
        unsigned: false,
        compressed: false,
    });
    (text, parsed)
}

impl Template {
    pub(super) fn new(schema: &Arc<TableSchema>, options: &CanalEncoderOptions) -> Self {
        let mut types = b"\"isDdl\":false,\"mysqlType\":{".to_vec();
        let mut columns = Vec::new();
        for column in &schema.columns {
            let (text, parsed) = mysql_type(column);
            let mut name = string(&column.name);
            name.push(b':');
            if !columns.is_empty() {
                types.push(b',');
            }
            types.extend_from_slice(&name);
            write_string(&mut types, text.as_bytes());
            columns.push(column_template(column, name, &parsed, options));
        }
        types.extend_from_slice(b"},\"old\":");
        let with = |check: fn(&ColumnTemplate) -> bool| -> Vec<usize> {
            columns.iter().enumerate().filter(|(_, column)| check(column)).map(|(index, _)| index).collect()
        };
        let mut template = Self {
            schema: schema.clone(),
            key: schema.key_indexes(),
            refusing: with(|column| column.form.may_refuse()),
            promoted: with(|column| column.sql_type.usual != column.sql_type.top_bit),
            database: [
                b"\"database\":",
                string(schema.id.schema.as_deref().unwrap_or_default()).as_slice(),
                b",\"es\":",
            ]
            .concat(),
            types,
            key_names: key_names(schema),
            sql_types: Vec::new(),
            table: [b"\"table\":", string(&schema.id.table).as_slice(), b",\"ts\":"].concat(),
            columns,
        };
        let mut sql_types = Vec::new();
        template.write_sql_types(&mut sql_types, |_| false);
        template.sql_types = sql_types;
        template
    }

    /// Appends the object of `sqlType`.
    pub(super) fn write_sql_types(&self, out: &mut Vec<u8>, top_bit: impl Fn(usize) -> bool) {
        out.push(b'{');
        for (index, column) in self.columns.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            out.extend_from_slice(&column.name);
            let number = if top_bit(index) { column.sql_type.top_bit } else { column.sql_type.usual };
            out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        }
        out.push(b'}');
    }
}

fn column_template(
    column: &Column,
    name: Vec<u8>,
    parsed: &TypeText,
    options: &CanalEncoderOptions,
) -> ColumnTemplate {
    let labels = match options.enum_mode {
        EnumMode::Index => LabelForm::Number,
        EnumMode::Label => LabelForm::Text,
    };
    let form = Form::new(&column.ty, parsed, options.time_zone, labels);
    let is_label = matches!(parsed.name.as_str(), "enum" | "set");
    let sql_type = match labels {
        LabelForm::Text if is_label => SqlType { usual: VARCHAR, top_bit: VARCHAR },
        _ => sql_type(parsed),
    };
    ColumnTemplate { name, form, sql_type }
}

fn key_names(schema: &TableSchema) -> Vec<u8> {
    let mut out = b"\"pkNames\":".to_vec();
    if schema.has_key() {
        for (at, name) in schema.primary_key.iter().enumerate() {
            out.push(if at == 0 { b'[' } else { b',' });
            write_string(&mut out, name.as_bytes());
        }
        out.push(b']');
    } else {
        out.extend_from_slice(b"null");
    }
    out.extend_from_slice(b",\"sql\":\"\",\"sqlType\":");
    out
}
