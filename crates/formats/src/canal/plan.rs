//! Owns what is prepared per table for reading, and putting one message's rows into its columns.

use canalis_batch::BatchBuilder;
use canalis_types::{RowKind, TableSchema};

use super::{
    Zone,
    column::{ColumnReader, Scratch, Written},
    envelope::{Member, Rows, plain},
    structure::{Observed, sql_types},
};

/// Who says what a table looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Authority {
    /// It was declared; messages only say how values are written.
    Declaration,
    /// Messages do.
    Messages,
    /// Messages did; the table has been dropped since.
    Dropped,
}

/// A table, ready for reading.
#[derive(Debug)]
pub(super) struct Plan {
    pub authority: Authority,
    columns: Vec<ColumnReader>,
    key: Vec<usize>,
    /// The three fields as the last message had them.
    pub mysql_type: Vec<u8>,
    pub sql_type: Vec<u8>,
    pub pk_names: Vec<u8>,
    uses_sql_type: bool,
}

/// Where the members of a row are, by column; 0 is none, else one more than the index.
#[derive(Debug, Default)]
struct Places(Vec<u32>);

/// Room that reading needs.
#[derive(Debug, Default)]
pub(super) struct Room {
    now: Places,
    old: Places,
    scratch: Scratch,
}

impl Plan {
    pub(super) fn new(schema: &TableSchema, authority: Authority) -> Self {
        Self {
            authority,
            columns: schema.columns.iter().map(ColumnReader::new).collect(),
            key: schema.key_indexes(),
            mysql_type: Vec::new(),
            sql_type: Vec::new(),
            pk_names: Vec::new(),
            uses_sql_type: true,
        }
    }

    /// Prepares for values that are written as `observed` and `sqlType` say.
    ///
    /// # Errors
    /// When `sqlType` cannot be read.
    pub(super) fn expect(&mut self, observed: &[Observed], sql_type: Option<&[u8]>) -> Result<(), String> {
        let numbers = sql_type.map(sql_types).transpose()?.unwrap_or_default();
        self.uses_sql_type = false;
        for column in &mut self.columns {
            let seen = observed.iter().find(|seen| seen.name.as_bytes() == column.name);
            let mysql_type = seen.map(|seen| &seen.ty);
            let number =
                numbers.iter().rev().find(|(name, _)| *name == column.name).map(|(_, number)| *number);
            if seen.is_some() || number.is_some() {
                column.expect(Written { mysql_type, sql_type: number });
            }
            self.uses_sql_type |= column.depends_on_sql_type(mysql_type);
        }
        Ok(())
    }

    /// Whether another `sqlType` may change how values are meant.
    pub(super) fn uses_sql_type(&self) -> bool {
        self.uses_sql_type
    }

    /// Appends rows of one kind.
    ///
    /// # Errors
    /// When a row does not fit; some of them may be appended then.
    pub(super) fn append(
        &self,
        builder: &mut BatchBuilder,
        kind: RowKind,
        [data, old]: [&Rows<'_>; 2],
        zone: Zone,
        room: &mut Room,
    ) -> Result<(), String> {
        for index in 0..data.len() {
            let row = Row { plan: self, now: data.row(index), old: &[], zone };
            row.place(row.now, &mut room.now)?;
            match kind {
                RowKind::Insert | RowKind::Delete => row.append(builder, kind, room)?,
                RowKind::UpdateBefore | RowKind::UpdateAfter => {
                    let old = if index < old.len() { old.row(index) } else { &[] };
                    let row = Row { old, ..row };
                    row.place(old, &mut room.old)?;
                    row.append(builder, RowKind::UpdateBefore, room)?;
                    row.append(builder, RowKind::UpdateAfter, room)?;
                }
            }
        }
        Ok(())
    }
}

/// A row of a message: its members in `data`, and those in `old`.
#[derive(Clone, Copy)]
struct Row<'r, 'a> {
    plan: &'r Plan,
    now: &'r [Member<'a>],
    old: &'r [Member<'a>],
    zone: Zone,
}

impl Row<'_, '_> {
    /// Finds the columns of members, nearly always in order. Of members of one name the last counts.
    fn place(&self, members: &[Member<'_>], places: &mut Places) -> Result<(), String> {
        let columns = &self.plan.columns;
        places.0.clear();
        places.0.resize(columns.len(), 0);
        let mut expected = 0;
        for (at, member) in members.iter().enumerate() {
            let unescaped;
            let name = if member.name.escaped {
                unescaped = plain(member.name)?;
                &*unescaped
            } else {
                member.name.raw
            };
            let found = match columns.get(expected) {
                Some(column) if column.name == name => Some(expected),
                _ => columns.iter().position(|column| column.name == name),
            };
            match found {
                Some(index) => {
                    places.0[index] = u32::try_from(at + 1).map_err(|_| "row has too many members")?;
                    expected = index + 1;
                }
                // The declaration leaves the column out.
                None if self.plan.authority == Authority::Declaration => {}
                None => {
                    let name = String::from_utf8_lossy(name);
                    return Err(format!("column `{name}` is not in `mysqlType`"));
                }
            }
        }
        Ok(())
    }

    fn append(&self, builder: &mut BatchBuilder, kind: RowKind, room: &mut Room) -> Result<(), String> {
        let Room { now, old, scratch } = room;
        let mut known = 0;
        for (index, column) in self.plan.columns.iter().enumerate() {
            let member = |members: &[Member<'_>], places: &Places| -> Option<usize> {
                let at = (places.0[index] as usize).checked_sub(1)?;
                (at < members.len()).then_some(at)
            };
            let before = if kind == RowKind::UpdateBefore { member(self.old, old) } else { None };
            let value = match before {
                Some(at) => Some(self.old[at].value),
                None => member(self.now, now).map(|at| self.now[at].value),
            };
            known += usize::from(value.is_some());
            let outcome = match value {
                Some(value) => column.append(builder.column(index), value, self.zone, scratch),
                None if kind == RowKind::Insert => column.append_missing(builder.column(index)),
                None if self.plan.key.is_empty() => {
                    return Err(format!(
                        "column `{}` is missing, and the table has no key to find the row by",
                        String::from_utf8_lossy(&column.name)
                    ));
                }
                None if self.plan.key.contains(&index) => {
                    return Err(format!("key column `{}` is missing", String::from_utf8_lossy(&column.name)));
                }
                // A deleted row is found by its key; what else it had is not known.
                None if kind == RowKind::Delete => {
                    builder.column(index).append_null();
                    Ok(())
                }
                None => {
                    builder.append_unchanged(index);
                    Ok(())
                }
            };
            outcome.map_err(|e| format!("column `{}`: {e}", String::from_utf8_lossy(&column.name)))?;
        }
        if known == 0 {
            return Err("row has none of the table's columns".to_owned());
        }
        builder.end_row(kind, 0);
        Ok(())
    }
}
