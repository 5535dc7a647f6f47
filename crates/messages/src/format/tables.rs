//! Owns the declaration of tables: one by its columns, or several with their names.

use canalis_formats::parse_columns;
use canalis_types::{TableId, TableSchema};

/// What `schema` declares: the columns of `table`, or tables as `shop.orders (id BIGINT NOT NULL, …, PRIMARY KEY (id)); …`.
pub(super) fn parse(text: &str, table: &TableId, key: &[String]) -> Result<Vec<TableSchema>, String> {
    if !names_tables(text) {
        let columns = parse_columns(text).map_err(|why| why.to_string())?;
        return Ok(vec![keyed(TableSchema::new(table.clone(), columns, key.to_vec()))?]);
    }
    if !key.is_empty() {
        return Err("write `PRIMARY KEY (…)` inside each table instead of `primary-keys`".to_owned());
    }
    let mut tables: Vec<TableSchema> = Vec::new();
    for part in split(text, b';').into_iter().map(str::trim).filter(|part| !part.is_empty()) {
        let table = one(part)?;
        if tables.iter().any(|known| known.id == table.id) {
            return Err(format!("table `{}` is declared twice", table.id));
        }
        tables.push(table);
    }
    Ok(tables)
}

/// A name with a parenthesis after it; a column has its type there.
fn names_tables(text: &str) -> bool {
    let name = text.trim_start().trim_start_matches(|c: char| c.is_alphanumeric() || "_.$`-".contains(c));
    name.len() < text.trim_start().len() && name.trim_start().starts_with('(')
}

/// Splits at a byte outside of parentheses and quotes.
fn split(text: &str, at: u8) -> Vec<&str> {
    let (mut parts, mut depth, mut start, mut quote) = (Vec::new(), 0_i32, 0, None);
    for (index, byte) in text.bytes().enumerate() {
        match (byte, quote) {
            (_, Some(open)) if byte == open => quote = None,
            (_, Some(_)) => {}
            (b'\'' | b'"' | b'`', None) => quote = Some(byte),
            (b'(', None) => depth += 1,
            (b')', None) => depth -= 1,
            (_, None) if byte == at && depth == 0 => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn one(text: &str) -> Result<TableSchema, String> {
    let wrong = || format!("`{text}` is not `name (columns)`");
    let (name, rest) = text.split_once('(').ok_or_else(wrong)?;
    let body = rest.trim_end().strip_suffix(')').ok_or_else(wrong)?;
    let name = name.trim().replace('`', "");
    let id = TableId::parse(&name).ok_or_else(|| format!("`{name}` is not a table id"))?;
    let (mut columns, mut key) = (Vec::new(), Vec::new());
    for part in split(body, b',') {
        let upper = part.trim().to_ascii_uppercase();
        match upper.strip_prefix("PRIMARY KEY") {
            Some(list) if list.trim_start().starts_with('(') => {
                let list = part.trim()["PRIMARY KEY".len()..].trim();
                let list = list.trim_start_matches('(').trim_end_matches(')');
                key = list.split(',').map(|name| name.trim().replace('`', "")).collect();
            }
            _ => columns.push(part),
        }
    }
    let columns = parse_columns(&columns.join(",")).map_err(|why| format!("table `{id}`: {why}"))?;
    keyed(TableSchema::new(id, columns, key))
}

/// Key columns hold no NULL.
fn keyed(mut table: TableSchema) -> Result<TableSchema, String> {
    for name in &table.primary_key {
        let column = table.columns.iter_mut().find(|c| c.name == *name);
        column
            .ok_or_else(|| format!("the key column `{name}` of table `{}` is no column", table.id))?
            .nullable = false;
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_alone_are_the_one_table() {
        let table = TableId::new("shop", "t");
        let tables = parse("id INT, amount DECIMAL(10, 2)", &table, &["id".to_owned()]).unwrap();
        assert_eq!(tables.len(), 1);
        assert_eq!((&tables[0].id, tables[0].columns.len()), (&table, 2));
        assert!(!tables[0].columns[0].nullable);
        assert!(parse("id INT", &table, &["x".to_owned()]).is_err());
    }

    #[test]
    fn several_tables_have_names_and_keys() {
        let text = "shop.orders (id BIGINT, amount DECIMAL(10, 2), PRIMARY KEY (id, amount));\n`shop`.`items`(`n` INT);";
        let tables = parse(text, &TableId::bare("unused"), &[]).unwrap();
        let shown: Vec<_> =
            tables.iter().map(|t| (t.id.to_string(), t.columns.len(), t.primary_key.join("+"))).collect();
        assert_eq!(
            shown,
            [("shop.orders".into(), 2, "id+amount".into()), ("shop.items".into(), 1, String::new())]
        );
        for wrong in ["a (id INT); a (id INT)", "a (id INT", "a..b (id INT)", "a (id INT, PRIMARY KEY (x))"] {
            assert!(parse(wrong, &TableId::bare("unused"), &[]).is_err(), "{wrong}");
        }
    }
}
