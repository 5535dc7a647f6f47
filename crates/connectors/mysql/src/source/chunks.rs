//! Owns how a table is cut into chunks: key columns, borders as SQL literals, and the statements that find borders
//! and read chunks. The database compares keys, never we.

use canalis_types::{LogicalType, TableId};
use serde::{Deserialize, Serialize};

use crate::{binlog::BinlogPosition, catalog::Table, quote};

/// Literals of a key, one per chunk column, ready to stand in SQL.
pub(crate) type Border = Vec<String>;

/// A piece of a table: rows whose chunk columns are above `lower` and not above `upper`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Chunk {
    /// Counts from 0 in each table.
    pub number: u64,
    /// Names of the chunk columns; empty for a table that is read as a whole.
    pub columns: Vec<String>,
    /// Exclusive; none for the first chunk.
    pub lower: Option<Border>,
    /// Inclusive; none for the last chunk.
    pub upper: Option<Border>,
}

/// How a literal of a chunk column is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Literal {
    /// Digits, as the server prints them.
    Number,
    /// A quoted text of digits and separators that the server converts to the column's type.
    Quoted,
    /// Bytes in the column's character set, tagged with it.
    Text,
    /// Bytes.
    Bytes,
}

/// A column that chunks are cut by.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ChunkColumn {
    name: String,
    literal: Literal,
    charset: String,
    nullable: bool,
    integer: bool,
}

/// The columns that chunks of a table are cut by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChunkKey {
    columns: Vec<ChunkColumn>,
    index: Option<&'static str>,
}

impl ChunkKey {
    /// Chooses the columns: the declared one, else the leading columns of the primary key whose order and equality the
    /// server gives the same way in an index and in a comparison with a literal.
    ///
    /// A table without a key is one chunk: after a crash it is read again as a whole, so that no row is doubled.
    pub(crate) fn choose(table: &Table, declared: Option<&str>) -> Self {
        let schema = &table.schema;
        let names: Vec<&str> = match declared {
            _ if !schema.has_key() => Vec::new(),
            Some(column) => schema
                .columns
                .iter()
                .filter(|c| c.name.eq_ignore_ascii_case(column))
                .map(|c| c.name.as_str())
                .collect(),
            None if table.prefix_key => Vec::new(),
            None => schema.primary_key.iter().map(String::as_str).collect(),
        };
        Self::over(table, &names)
    }

    /// The key over columns that were chosen earlier.
    pub(crate) fn over(table: &Table, names: &[&str]) -> Self {
        let mut columns = Vec::new();
        for name in names {
            let Some(column) = table.schema.column(name) else { break };
            let Some(literal) = literal(&column.ty) else { break };
            let native = column.native.as_ref();
            columns.push(ChunkColumn {
                name: column.name.clone(),
                literal,
                charset: native.and_then(|n| n.charset.clone()).unwrap_or_else(|| table.charset.clone()),
                nullable: column.nullable,
                integer: is_integer(&column.ty),
            });
        }
        let leads_key =
            columns.iter().map(|c| &c.name).eq(table.schema.primary_key.iter().take(columns.len()));
        let index = (leads_key && !columns.is_empty() && !table.prefix_key).then_some("PRIMARY");
        Self { columns, index }
    }

    /// Names of the columns; empty for a table that is read as a whole.
    pub(crate) fn names(&self) -> Vec<String> {
        self.columns.iter().map(|c| c.name.clone()).collect()
    }

    /// Whether there is nothing to cut by.
    pub(crate) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Whether the key is one whole number, so that borders may be computed.
    pub(crate) fn is_integer(&self) -> bool {
        matches!(self.columns.as_slice(), [only] if only.integer && !only.nullable)
    }

    /// The statement for the smallest and largest value of a one-column key.
    pub(crate) fn range_statement(&self, table: &TableId) -> String {
        let name = self.columns.first().map(|c| quote::ident(&c.name)).unwrap_or_default();
        format!("SELECT MIN({name}), MAX({name}) FROM {}", quote::table(table))
    }

    /// The statement that finds the border `rows` rows above `lower`: one row with one text per chunk column.
    pub(crate) fn walk_statement(&self, table: &TableId, lower: Option<&Border>, rows: u64) -> String {
        let select: Vec<String> = self.columns.iter().map(ChunkColumn::selected).collect();
        let order: Vec<String> = self.columns.iter().map(|c| quote::ident(&c.name)).collect();
        let mut conditions: Vec<String> = Vec::new();
        if let Some(lower) = lower {
            conditions.push(self.above(lower));
        }
        for column in self.columns.iter().filter(|c| c.nullable) {
            conditions.push(format!("{} IS NOT NULL", quote::ident(&column.name)));
        }
        format!(
            "SELECT {} FROM {}{}{} ORDER BY {} LIMIT {}, 1",
            select.join(", "),
            quote::table(table),
            self.hint(),
            where_clause(&conditions),
            order.join(", "),
            rows.saturating_sub(1),
        )
    }

    /// Literals from a row of [`ChunkKey::walk_statement`].
    pub(crate) fn border(&self, texts: &[String]) -> Border {
        self.columns.iter().zip(texts).map(|(column, text)| column.literal(text)).collect()
    }

    /// The clauses after the select list that read one chunk.
    pub(crate) fn rows_clause(&self, table: &TableId, chunk: &Chunk) -> String {
        let mut conditions = Vec::new();
        if let Some(lower) = &chunk.lower {
            conditions.push(self.above(lower));
        }
        if let Some(upper) = &chunk.upper {
            let mut within = self.up_to(upper);
            if chunk.lower.is_none() {
                for column in self.columns.iter().filter(|c| c.nullable) {
                    within.push_str(&format!(" OR {} IS NULL", quote::ident(&column.name)));
                }
            }
            conditions.push(format!("({within})"));
        }
        format!("FROM {}{}{}", quote::table(table), self.hint(), where_clause(&conditions))
    }

    fn hint(&self) -> String {
        self.index.map(|index| format!(" FORCE INDEX ({index})")).unwrap_or_default()
    }

    /// `(a > x OR (a = x AND b > y))`: the form that the servers turn into index ranges, unlike row comparison.
    fn above(&self, border: &Border) -> String {
        self.compare(border, ">", None)
    }

    fn up_to(&self, border: &Border) -> String {
        self.compare(border, "<", Some("<="))
    }

    fn compare(&self, border: &Border, operator: &str, last: Option<&str>) -> String {
        let mut alternatives = Vec::new();
        for end in 0..self.columns.len().min(border.len()) {
            let mut terms: Vec<String> = (0..end).map(|i| self.term(i, "=", border)).collect();
            let is_last = end + 1 == self.columns.len();
            terms.push(self.term(end, if is_last { last.unwrap_or(operator) } else { operator }, border));
            alternatives.push(terms.join(" AND "));
        }
        match alternatives.as_slice() {
            [only] => only.clone(),
            many => format!("(({}))", many.join(") OR (")),
        }
    }

    fn term(&self, index: usize, operator: &str, border: &Border) -> String {
        format!("{} {operator} {}", quote::ident(&self.columns[index].name), border[index])
    }
}

impl ChunkColumn {
    /// The expression whose text [`ChunkColumn::literal`] takes.
    fn selected(&self) -> String {
        let name = quote::ident(&self.name);
        match self.literal {
            // The sum gives digits for BIT too.
            Literal::Number => format!("CAST({name} + 0 AS CHAR)"),
            Literal::Quoted => format!("CAST({name} AS CHAR)"),
            Literal::Text | Literal::Bytes => format!("HEX({name})"),
        }
    }

    fn literal(&self, text: &str) -> String {
        match self.literal {
            Literal::Number => text.to_owned(),
            Literal::Quoted => format!("'{text}'"),
            Literal::Text => format!("_{} X'{text}'", self.charset),
            Literal::Bytes => format!("X'{text}'"),
        }
    }
}

fn where_clause(conditions: &[String]) -> String {
    if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) }
}

fn is_integer(ty: &LogicalType) -> bool {
    use LogicalType::*;
    matches!(ty, Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64)
}

/// How literals of a type are made; none for types that an index orders unlike a comparison (ENUM, SET), or whose
/// text is not exact (FLOAT, DOUBLE).
fn literal(ty: &LogicalType) -> Option<Literal> {
    use LogicalType::*;
    match ty {
        Boolean | Decimal { .. } | Year | Bit { .. } => Some(Literal::Number),
        ty if is_integer(ty) => Some(Literal::Number),
        Date | Time { .. } | Timestamp { .. } | TimestampTz { .. } | Uuid => Some(Literal::Quoted),
        Char { .. } | Varchar { .. } | Text => Some(Literal::Text),
        Binary { .. } | Varbinary { .. } | Bytes => Some(Literal::Bytes),
        _ => None,
    }
}

/// A stable name for a chunk: the same borders give the same name, other borders another one.
pub(crate) fn split_id(table: &TableId, chunk: &Chunk) -> String {
    // FNV-1a, 64 bits: stable by definition.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut mix = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    for border in [&chunk.lower, &chunk.upper] {
        for text in border.iter().flatten() {
            text.bytes().for_each(&mut mix);
            mix(0xff);
        }
        mix(0xfe);
    }
    format!("{table}#{}#{hash:016x}", chunk.number)
}

/// The name of a table without a key that is read as a whole from a view at a place. A reading from another view has
/// another name, so that of a complete one the view is known.
pub(crate) fn whole_id(table: &TableId, view: Option<&BinlogPosition>) -> String {
    match view {
        Some(place) => format!("{table}#0#{}:{}", place.file, place.offset),
        None => format!("{table}#0#"),
    }
}

/// The view that a complete reading of a table without a key came from: outer none when `id` is not of this table,
/// inner none when the server kept no binlog.
pub(crate) fn read_from(table: &TableId, id: &str) -> Option<Option<BinlogPosition>> {
    let place = id.strip_prefix(&format!("{table}#0#"))?;
    if place.is_empty() {
        return Some(None);
    }
    let (file, offset) = place.rsplit_once(':').filter(|(file, _)| !file.contains('#'))?;
    Some(Some(BinlogPosition::new(file, offset.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use canalis_types::{Column, TableSchema};

    use super::*;

    fn table(columns: Vec<Column>, key: &[&str]) -> Table {
        let key = key.iter().map(|k| (*k).to_owned()).collect();
        Table {
            schema: Arc::new(TableSchema::new(TableId::new("d", "t"), columns, key)),
            charset: "latin1".into(),
            collation: "latin1_swedish_ci".into(),
            prefix_key: false,
        }
    }

    fn chunk(lower: Option<&[&str]>, upper: Option<&[&str]>) -> Chunk {
        let border = |b: Option<&[&str]>| b.map(|b| b.iter().map(|s| (*s).to_owned()).collect());
        Chunk { number: 0, columns: Vec::new(), lower: border(lower), upper: border(upper) }
    }

    #[test]
    fn ky_10_composite_keys_compare_as_tuples_in_a_form_that_uses_the_index() {
        let table = table(
            vec![
                Column::new("tenant", LogicalType::Int32, false),
                Column::new("id", LogicalType::Varchar { length: 9 }, false),
            ],
            &["tenant", "id"],
        );
        let key = ChunkKey::choose(&table, None);
        let id = &table.schema.id;
        assert_eq!(
            key.walk_statement(id, None, 100),
            "SELECT CAST(`tenant` + 0 AS CHAR), HEX(`id`) FROM `d`.`t` FORCE INDEX (PRIMARY) \
             ORDER BY `tenant`, `id` LIMIT 99, 1"
        );
        let border = key.border(&["1".into(), "4142".into()]);
        assert_eq!(border, ["1", "_latin1 X'4142'"]);
        assert_eq!(
            key.rows_clause(id, &chunk(Some(&["1", "_latin1 X'4142'"]), Some(&["2", "_latin1 X'41'"]))),
            "FROM `d`.`t` FORCE INDEX (PRIMARY) \
             WHERE ((`tenant` > 1) OR (`tenant` = 1 AND `id` > _latin1 X'4142')) \
             AND (((`tenant` < 2) OR (`tenant` = 2 AND `id` <= _latin1 X'41')))"
        );
    }

    #[test]
    fn ky_06_binary_borders_are_hex() {
        let table = table(vec![Column::new("k", LogicalType::Binary { length: 2 }, false)], &["k"]);
        let key = ChunkKey::choose(&table, None);
        assert_eq!(key.border(&["80FF".into()]), ["X'80FF'"]);
        assert_eq!(
            key.rows_clause(&table.schema.id, &chunk(None, Some(&["X'80FF'"]))),
            "FROM `d`.`t` FORCE INDEX (PRIMARY) WHERE (`k` <= X'80FF')"
        );
    }

    #[test]
    fn unfit_keys_are_read_as_a_whole() {
        let float = table(vec![Column::new("k", LogicalType::Float64, false)], &["k"]);
        assert!(ChunkKey::choose(&float, None).is_empty());
        let keyless = table(vec![Column::new("k", LogicalType::Int32, true)], &[]);
        assert!(ChunkKey::choose(&keyless, Some("k")).is_empty());
        let enumerated = table(
            vec![
                Column::new("a", LogicalType::Int32, false),
                Column::new("e", LogicalType::Enum { labels: vec!["x".into()] }, false),
            ],
            &["a", "e"],
        );
        assert_eq!(ChunkKey::choose(&enumerated, None).names(), ["a"]);
        assert_eq!(
            ChunkKey::choose(&float, None).rows_clause(&float.schema.id, &chunk(None, None)),
            "FROM `d`.`t`"
        );
    }

    #[test]
    fn nulls_of_a_declared_column_are_in_the_first_chunk() {
        let table = table(
            vec![Column::new("id", LogicalType::Int64, false), Column::new("c", LogicalType::Int32, true)],
            &["id"],
        );
        let key = ChunkKey::choose(&table, Some("C"));
        let id = &table.schema.id;
        assert_eq!(
            key.rows_clause(id, &chunk(None, Some(&["7"]))),
            "FROM `d`.`t` WHERE (`c` <= 7 OR `c` IS NULL)"
        );
        assert_eq!(key.rows_clause(id, &chunk(Some(&["7"]), None)), "FROM `d`.`t` WHERE `c` > 7");
        assert!(key.walk_statement(id, None, 2).contains("WHERE `c` IS NOT NULL ORDER BY `c` LIMIT 1, 1"));
        // No rows are lost when every value is NULL: the only chunk has no borders.
        assert_eq!(key.rows_clause(id, &chunk(None, None)), "FROM `d`.`t`");
    }

    #[test]
    fn names_of_whole_readings_tell_their_view() {
        let id = TableId::new("d", "t");
        let place = BinlogPosition::new("bin.000007", 1234);
        let name = whole_id(&id, Some(&place));
        assert_eq!(read_from(&id, &name), Some(Some(place)));
        assert_eq!(read_from(&TableId::new("d", "other"), &name), None);
        assert_eq!(read_from(&id, &whole_id(&id, None)), Some(None));
        assert_eq!(read_from(&id, &split_id(&id, &chunk(None, None))), None);
        let odd = TableId::new("d", "t#0#x");
        assert_eq!(read_from(&id, &whole_id(&odd, Some(&BinlogPosition::new("bin.000007", 4)))), None);
    }

    #[test]
    fn names_of_chunks_follow_their_borders() {
        let id = TableId::new("d", "t");
        let name = |c: &Chunk| split_id(&id, c);
        assert_eq!(name(&chunk(None, Some(&["7"]))), name(&chunk(None, Some(&["7"]))));
        assert_ne!(name(&chunk(None, Some(&["7"]))), name(&chunk(Some(&["7"]), None)));
        assert_ne!(name(&chunk(None, Some(&["7"]))), name(&chunk(None, Some(&["8"]))));
    }
}
