//! Owns reading `SHOW CREATE TABLE`: what `information_schema` does not say, or says in a mangled form.

use std::collections::HashMap;

use canalis_types::Index;

/// What a definition says beyond the column list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Definition {
    /// By column name.
    pub columns: HashMap<String, Details>,
    /// Secondary indexes in order.
    pub indexes: Vec<Index>,
    /// Whether the table keeps its history (MariaDB).
    pub system_versioned: bool,
}

/// What a definition says about one column.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Details {
    /// Expression and storage of a generated column: `(a + b) STORED`.
    pub generated: Option<String>,
    /// Reference system of a geometry column, as a versioned comment.
    pub srid: Option<String>,
    /// Default that is an expression, in its parentheses.
    pub default: Option<String>,
}

/// Reads the servers' own form, which has one definition per line and escapes line ends inside texts.
pub(super) fn parse(statement: &str) -> Definition {
    let mut definition = Definition::default();
    for line in statement.lines().skip(1) {
        let line = line.trim().trim_end_matches(',');
        if line.starts_with(')') {
            definition.system_versioned |= line.contains("WITH SYSTEM VERSIONING");
        } else if let Some((name, rest)) = identifier(line) {
            let details = Details { generated: generated(rest), srid: srid(rest), default: default(rest) };
            if details != Details::default() {
                definition.columns.insert(name, details);
            }
        } else if let Some(index) = index(line) {
            definition.indexes.push(index);
        }
    }
    definition
}

/// A name in backquotes at the start, and what follows it.
fn identifier(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut chars = text.strip_prefix('`')?.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c != '`' {
            name.push(c);
        } else if chars.peek().is_some_and(|(_, next)| *next == '`') {
            chars.next();
            name.push('`');
        } else {
            return Some((name, &text[at + 2..]));
        }
    }
    None
}

fn generated(rest: &str) -> Option<String> {
    let clause = &rest[rest.find(" GENERATED ALWAYS AS (")? + " GENERATED ALWAYS AS ".len()..];
    let expression = &clause[..balanced(clause)?];
    let storage = if clause[expression.len()..].contains(" VIRTUAL") { "VIRTUAL" } else { "STORED" };
    Some(format!("{expression} {storage}"))
}

fn default(rest: &str) -> Option<String> {
    let expression = &rest[rest.find(" DEFAULT (")? + " DEFAULT ".len()..];
    balanced(expression).map(|end| expression[..end].to_owned())
}

fn srid(rest: &str) -> Option<String> {
    let comment = &rest[rest.find("/*!80003 SRID ")?..];
    comment.find("*/").map(|end| comment[..end + 2].to_owned())
}

/// Length of the parenthesised text at the start, quotes respected.
fn balanced(text: &str) -> Option<usize> {
    let mut depth = 0;
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some('\''), '\\') => escaped = true,
            (Some(q), c) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '`' | '"') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

fn index(line: &str) -> Option<Index> {
    let kinds = ["KEY ", "UNIQUE KEY ", "FULLTEXT KEY ", "SPATIAL KEY ", "VECTOR KEY "];
    let kind = kinds.into_iter().find(|k| line.starts_with(k))?;
    let (name, rest) = identifier(&line[kind.len()..])?;
    let list = &rest[rest.find('(')?..];
    let list = &list[..balanced(list)?];
    let mut columns = Vec::new();
    let mut rest = list;
    while let Some(at) = rest.find('`') {
        let (column, after) = identifier(&rest[at..])?;
        columns.push(column);
        rest = after;
    }
    Some(Index { name, unique: kind == "UNIQUE KEY ", definition: line.to_owned(), columns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_give_indexes_and_generated_columns() {
        let definition = parse(concat!(
            "CREATE TABLE `t` (\n",
            "  `id` int NOT NULL,\n",
            "  `a``b` varchar(20) GENERATED ALWAYS AS (concat(_utf8mb4'it\\'s)',`id`)) VIRTUAL,\n",
            "  `g` int GENERATED ALWAYS AS (`id` + 1) STORED COMMENT 'x VIRTUAL y',\n",
            "  `d` varchar(36) DEFAULT (concat(_utf8mb4'(',uuid())),\n",
            "  `p` point NOT NULL /*!80003 SRID 4326 */,\n",
            "  PRIMARY KEY (`id`),\n",
            "  UNIQUE KEY `u` (`g`,`a``b`(3)) USING BTREE,\n",
            "  KEY `k` (`g` DESC),\n",
            "  FULLTEXT KEY `f` (`a``b`),\n",
            "  CONSTRAINT `c` FOREIGN KEY (`g`) REFERENCES `o` (`id`)\n",
            ") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COMMENT='it''s, (odd)'"
        ));
        let generated = |name: &str| definition.columns[name].generated.clone().unwrap();
        assert_eq!(generated("a`b"), "(concat(_utf8mb4'it\\'s)',`id`)) VIRTUAL");
        assert_eq!(definition.columns["p"].srid.as_deref(), Some("/*!80003 SRID 4326 */"));
        assert_eq!(definition.columns["d"].default.as_deref(), Some("(concat(_utf8mb4'(',uuid()))"));
        let names: Vec<&str> = definition.indexes.iter().map(|i| i.name.as_str()).collect();
        assert_eq!(names, ["u", "k", "f"]);
        assert!(definition.indexes[0].unique && !definition.indexes[1].unique);
        assert_eq!(definition.indexes[0].columns, ["g", "a`b"]);
        assert_eq!(definition.indexes[1].definition, "KEY `k` (`g` DESC)");
        assert!(!definition.system_versioned);
    }
}
