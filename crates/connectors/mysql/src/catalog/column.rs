//! Owns a column as `information_schema.COLUMNS` or a DDL statement describes it, and its way to a [`Column`].

use canalis_types::{
    Column, ColumnDefault, LogicalType, NativeType, Result,
    mysql_type::{TypeText, unquote},
};
use mysql_async::{FromValueError, Row, Value, prelude::FromValue};

use super::{Comments, Mapping, create_table::Details};
use crate::Flavor;

/// Texts that describe a column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnText {
    /// Name.
    pub name: String,
    /// Type with its attributes, as COLUMN_TYPE has it.
    pub ty: String,
    /// Whether NULL is allowed.
    pub nullable: bool,
    /// COLUMN_DEFAULT of the server's family.
    pub default: Option<String>,
    /// EXTRA.
    pub extra: String,
    /// Comment, empty when there is none.
    pub comment: String,
    /// Character set of a text column.
    pub charset: Option<String>,
    /// Collation of a text column.
    pub collation: Option<String>,
}

fn take<T: FromValue>(row: &mut Row, index: usize) -> Option<T> {
    let value: Value = row.take(index)?;
    let read: std::result::Result<T, FromValueError> = T::from_value_opt(value);
    read.ok()
}

impl ColumnText {
    /// Reads a row of the catalog query; `None` when it has another shape.
    pub(super) fn from_row(mut row: Row) -> Option<Self> {
        Some(Self {
            name: take(&mut row, 0)?,
            ty: take(&mut row, 1)?,
            nullable: take::<String>(&mut row, 2)?.eq_ignore_ascii_case("yes"),
            default: take(&mut row, 3)?,
            extra: take::<Option<String>>(&mut row, 4)?.unwrap_or_default(),
            comment: take::<Option<String>>(&mut row, 5)?.unwrap_or_default(),
            charset: take(&mut row, 6)?,
            collation: take(&mut row, 7)?,
        })
    }

    pub(super) fn into_column(mut self, details: Option<&Details>, mapping: Mapping) -> Result<Column> {
        let mut details = details.cloned().unwrap_or_default();
        let extra = self.extra.to_ascii_uppercase();
        // A comment may hold what looks like a clause; EXTRA does not.
        if !(extra.contains("VIRTUAL GENERATED") || extra.contains("STORED GENERATED")) {
            details.generated = None;
        }
        if extra.contains("DEFAULT_GENERATED") && details.default.is_some() {
            // The catalog's own form of expressions has mangled quotes.
            self.default = details.default;
        }
        let sql = match &details.srid {
            Some(srid) => format!("{} {srid}", self.ty),
            None => self.ty.clone(),
        };
        self.build(sql, details.generated, mapping)
    }

    /// The column, with the type text and generation clause to keep.
    ///
    /// # Errors
    /// CNL-1003 when the type has no mapping.
    pub(crate) fn build(self, sql: String, generated: Option<String>, mapping: Mapping) -> Result<Column> {
        let parsed = TypeText::parse(&self.ty).map_err(|e| e.context(&self.name))?;
        let mut ty = parsed.logical(mapping.tinyint1).map_err(|e| e.context(&self.name))?;
        if mapping.flavor == Flavor::MariaDb && ty == LogicalType::Json {
            // An alias of LONGTEXT there, without a form of its own.
            ty = LogicalType::Text;
        }
        let extra = self.extra.to_ascii_lowercase();
        let default = match generated {
            Some(_) => None,
            None => self.default.as_deref().and_then(|text| default(text, &extra, mapping.flavor)),
        };
        let mut column = Column::new(self.name, ty, self.nullable);
        column.default = default;
        column.comment =
            (mapping.comments == Comments::Keep && !self.comment.is_empty()).then_some(self.comment);
        column.native = Some(NativeType {
            dialect: "mysql".to_owned(),
            sql,
            charset: self.charset,
            collation: self.collation,
            auto_increment: extra.contains("auto_increment"),
            generated,
        });
        Ok(column)
    }
}

/// The default from COLUMN_DEFAULT. MySQL gives a constant as plain text and marks expressions in EXTRA; MariaDB gives
/// SQL.
fn default(text: &str, extra: &str, flavor: Flavor) -> Option<ColumnDefault> {
    let expression = || Some(ColumnDefault::Expression(text.to_owned()));
    let bits = text.starts_with("b'") || text.starts_with("x'") || text.starts_with("0x");
    match flavor {
        Flavor::MySql if extra.contains("default_generated") || bits => {
            if text.starts_with('(') || text.to_ascii_lowercase().starts_with("current_timestamp") || bits {
                expression()
            } else {
                // The catalog leaves the parentheses out that the grammar asks for.
                Some(ColumnDefault::Expression(format!("({text})")))
            }
        }
        Flavor::MySql => Some(ColumnDefault::Literal(text.to_owned())),
        Flavor::MariaDb if text.eq_ignore_ascii_case("null") => None,
        Flavor::MariaDb => match text.strip_prefix('\'').and_then(|t| unquote(t, '\'')) {
            Some((value, "")) => Some(ColumnDefault::Literal(value)),
            _ if is_number(text) => Some(ColumnDefault::Literal(text.to_owned())),
            _ => expression(),
        },
    }
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_constants_or_expressions() {
        use ColumnDefault::{Expression, Literal};
        use Flavor::{MariaDb, MySql};
        for (flavor, text, extra, expect) in [
            (MySql, "it's", "", Some(Literal("it's".into()))),
            (MySql, "5", "", Some(Literal("5".into()))),
            (
                MySql,
                "CURRENT_TIMESTAMP(3)",
                "DEFAULT_GENERATED",
                Some(Expression("CURRENT_TIMESTAMP(3)".into())),
            ),
            (MySql, "uuid()", "DEFAULT_GENERATED", Some(Expression("(uuid())".into()))),
            (MySql, "b'101'", "", Some(Expression("b'101'".into()))),
            (MariaDb, "'it''s'", "", Some(Literal("it's".into()))),
            (MariaDb, "-1.5", "", Some(Literal("-1.5".into()))),
            (MariaDb, "NULL", "", None),
            (MariaDb, "b'101'", "", Some(Expression("b'101'".into()))),
            (MariaDb, "current_timestamp()", "", Some(Expression("current_timestamp()".into()))),
            (MariaDb, "'a' 'b'", "", Some(Expression("'a' 'b'".into()))),
        ] {
            assert_eq!(default(text, &extra.to_ascii_lowercase(), flavor), expect, "{text}");
        }
    }
}
