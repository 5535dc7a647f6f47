//! Owns [`Target`]: a table of the source joined with the table that takes its rows, and the statements for it.

use std::sync::atomic::{AtomicU64, Ordering};

use canalis_types::{Code, Error, Result, TableId, TableSchema};

use crate::{
    catalog::{ActualColumn, ActualTable},
    options::PostgresOptions,
    quote::ident,
    types::{self, Form},
};

/// Number of the next target, which makes names of temporary tables unique in every session.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A column that is written.
#[derive(Debug)]
pub struct TargetColumn {
    /// Index among the columns of the source table.
    pub source: usize,
    /// Name.
    pub name: String,
    /// Quoted name.
    pub quoted: String,
    /// Type for casts.
    pub cast: String,
    /// Type for casts of values that are assigned: a cast to a type with a length would cut them silently.
    pub uncut: String,
    /// How values are written.
    pub form: Form,
    /// Whether NULL is refused.
    pub not_null: bool,
    /// Whether it is a text column, which holds dates that no calendar has.
    pub any_date: bool,
}

/// Where and how the rows of a table go.
#[derive(Debug)]
pub struct Target {
    /// The table as the job names it.
    pub id: TableId,
    /// Its quoted, qualified name at the sink.
    pub table: String,
    /// Columns that are written.
    pub columns: Vec<TargetColumn>,
    /// Key columns as indexes into `columns`, in key order; empty for a table without a key.
    pub key: Vec<usize>,
    /// Whether `ON CONFLICT` over the key is possible.
    pub arbiter: bool,
    /// Whether rows with different keys can collide in another unique index.
    pub other_unique: bool,
    /// Unique number.
    pub number: u64,
}

impl Target {
    /// Joins a table of the source with the table at the sink; also gives notes for the user.
    ///
    /// # Errors
    /// `CNL-3004` naming every column that is missing or does not fit.
    pub fn join(
        schema: &TableSchema,
        table: &str,
        actual: &ActualTable,
        options: &PostgresOptions,
    ) -> Result<(Self, Vec<String>)> {
        let mut problems = Vec::new();
        let mut notes = Vec::new();
        if !matches!(actual.kind, 'r' | 'p') {
            problems.push("it is not a table".to_owned());
        }
        if actual.kind == 'p' && !schema.has_key() {
            problems.push("a partitioned table can only take rows with a primary key".to_owned());
        }
        let mut columns = Vec::new();
        for (source, column) in schema.columns.iter().enumerate() {
            let in_key = schema.primary_key.contains(&column.name);
            match actual.column(&column.name) {
                None => problems.push(format!("column `{}` is missing", column.name)),
                Some(target) if target.generated && in_key => {
                    problems
                        .push(format!("column `{}` is in the key and computed by the target", column.name));
                }
                Some(target) if target.generated => {
                    notes.push(format!("column `{}` is computed by the target", column.name));
                }
                Some(target) => match types::fit(&column.ty, &target.ty, in_key, options) {
                    Ok((form, note)) => {
                        notes.extend(note.map(|n| format!("column `{}`: {n}", column.name)));
                        columns.push(written(source, target, form));
                    }
                    Err(why) => problems.push(format!("column `{}`: {why}", column.name)),
                },
            }
        }
        for column in &actual.columns {
            if schema.column(&column.name).is_none() && !column.has_default {
                problems.push(format!(
                    "column `{}` is NOT NULL without a default and not in the data",
                    column.name
                ));
            }
        }
        if !problems.is_empty() {
            let text = problems.join("; ");
            return Err(Error::new(
                Code::TargetIncompatible,
                format!("table {table} does not fit {}: {text}", schema.id),
            ));
        }
        if !actual.foreign_keys.is_empty() {
            notes.push(format!(
                "foreign keys ({}) are checked row by row, and rows of different tables do not arrive in the order \
                 of the source: drop them or make the sink's role bypass them",
                actual.foreign_keys.join(", ")
            ));
        }
        let arbiter = schema.has_key() && actual.has_arbiter(&schema.primary_key);
        if schema.has_key() && !arbiter {
            notes.push("no unique index over the key: changes are applied by scanning the table".to_owned());
        }
        let key = schema
            .primary_key
            .iter()
            .filter_map(|name| columns.iter().position(|c: &TargetColumn| c.name == *name))
            .collect();
        let target = Self {
            id: schema.id.clone(),
            table: table.to_owned(),
            columns,
            key,
            arbiter,
            other_unique: actual.has_other_unique(&schema.primary_key),
            number: NEXT.fetch_add(1, Ordering::Relaxed),
        };
        Ok((target, notes))
    }

    /// Whether the table has a key.
    pub fn has_key(&self) -> bool {
        !self.key.is_empty()
    }

    /// Indexes of all written columns.
    pub fn all(&self) -> Vec<usize> {
        (0..self.columns.len()).collect()
    }

    /// Quoted names of columns, joined by commas.
    pub fn names(&self, columns: &[usize]) -> String {
        self.list(columns, |c| c.quoted.clone())
    }

    /// Something about each of the columns, joined by commas.
    pub fn list(&self, columns: &[usize], text: impl Fn(&TargetColumn) -> String) -> String {
        let parts: Vec<String> = columns.iter().map(|i| text(&self.columns[*i])).collect();
        parts.join(", ")
    }

    /// `INSERT INTO … (…) OVERRIDING SYSTEM VALUE `, without rows.
    pub fn insert_head(&self) -> String {
        format!("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE ", self.table, self.names(&self.all()))
    }

    /// ` ON CONFLICT … DO UPDATE SET …`.
    pub fn conflict_tail(&self) -> String {
        let others: Vec<usize> = (0..self.columns.len()).filter(|i| !self.key.contains(i)).collect();
        let key = self.names(&self.key);
        if others.is_empty() {
            return format!(" ON CONFLICT ({key}) DO NOTHING");
        }
        let sets = self.list(&others, |c| format!("{0} = EXCLUDED.{0}", c.quoted));
        format!(" ON CONFLICT ({key}) DO UPDATE SET {sets}")
    }

    /// `COPY … FROM STDIN` of all columns into the table.
    pub fn copy(&self) -> String {
        format!("COPY {} ({}) FROM STDIN", self.table, self.names(&self.all()))
    }

    /// Name of the temporary table of this purpose.
    pub fn staging(&self, purpose: Staging) -> String {
        let letter = match purpose {
            Staging::Keys => 'k',
            Staging::Rows => 'r',
            Staging::Images => 'i',
        };
        format!("pg_temp.canalis_{letter}{}", self.number)
    }

    /// Columns that a temporary table of this purpose has.
    pub fn staged(&self, purpose: Staging) -> Vec<usize> {
        match purpose {
            Staging::Keys => self.key.clone(),
            Staging::Rows | Staging::Images => self.all(),
        }
    }

    /// Makes the temporary table, empty and with the types of the target, if the session does not have it yet.
    pub fn create_staging(&self, purpose: Staging) -> String {
        format!(
            "CREATE TEMP TABLE IF NOT EXISTS {} ON COMMIT DELETE ROWS AS SELECT {} FROM {} WITH NO DATA;",
            self.staging(purpose).trim_start_matches("pg_temp."),
            self.names(&self.staged(purpose)),
            self.table
        )
    }

    /// `COPY … FROM STDIN` into the temporary table.
    pub fn copy_staging(&self, purpose: Staging) -> String {
        format!("COPY {} ({}) FROM STDIN", self.staging(purpose), self.names(&self.staged(purpose)))
    }
}

/// What a temporary table is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Staging {
    /// Keys to delete.
    Keys,
    /// Rows to put in.
    Rows,
    /// Images to delete, for a table without a key.
    Images,
}

fn written(source: usize, target: &ActualColumn, form: Form) -> TargetColumn {
    TargetColumn {
        source,
        name: target.name.clone(),
        quoted: ident(&target.name),
        cast: target.ty.sql.clone(),
        uncut: match target.ty.name.as_str() {
            name @ ("varchar" | "bpchar" | "bit" | "varbit") => format!("pg_catalog.{}", ident(name)),
            _ => target.ty.sql.clone(),
        },
        form,
        not_null: target.not_null,
        any_date: matches!(target.ty.name.as_str(), "text" | "varchar" | "bpchar"),
    }
}
