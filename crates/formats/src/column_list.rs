//! Owns the textual column list of input that has no structure of its own:
//! `id BIGINT NOT NULL, name VARCHAR(20), price DECIMAL(10, 2)`.

use canalis_types::{Column, LogicalType};

/// Parses a column list. Names may be quoted with back-ticks or double quotes; types are spelled as in plans and documents,
/// with the usual synonyms; every column may be followed by `NOT NULL` or `NULL`.
///
/// # Errors
/// A message that names the column and what is wrong with it.
pub fn parse_columns(text: &str) -> Result<Vec<Column>, String> {
    let mut parser = Parser { rest: text.trim() };
    let mut columns: Vec<Column> = Vec::new();
    loop {
        let name = parser.name()?;
        let ty = parser.data_type().map_err(|why| format!("column `{name}`: {why}"))?;
        let nullable = parser.nullability().map_err(|why| format!("column `{name}`: {why}"))?;
        if columns.iter().any(|c| c.name == name) {
            return Err(format!("column `{name}` stands twice"));
        }
        columns.push(Column::new(name, ty, nullable));
        if parser.rest.is_empty() {
            return Ok(columns);
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest[bytes..].trim_start();
    }

    fn name(&mut self) -> Result<String, String> {
        let quote = self.rest.chars().next().filter(|c| matches!(c, '`' | '"'));
        if let Some(quote) = quote {
            let end = self.rest[1..].find(quote).ok_or("a quoted column name has no end")?;
            let name = self.rest[1..=end].to_owned();
            self.skip(end + 2);
            return if name.is_empty() { Err("a column name is empty".into()) } else { Ok(name) };
        }
        let end =
            self.rest.find(|c: char| c.is_whitespace() || matches!(c, ',' | '(')).unwrap_or(self.rest.len());
        if end == 0 {
            return Err("expected a column name; write `name TYPE, name TYPE NOT NULL, …`".into());
        }
        let name = self.rest[..end].to_owned();
        self.skip(end);
        Ok(name)
    }

    fn word(&mut self) -> Option<String> {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        if end == 0 {
            return None;
        }
        let word = self.rest[..end].to_ascii_uppercase();
        self.skip(end);
        Some(word)
    }

    /// Takes the word if it is the next one.
    fn keyword(&mut self, word: &str) -> bool {
        let before = self.rest;
        let found = self.word().is_some_and(|w| w == word);
        if !found {
            self.rest = before;
        }
        found
    }

    fn arguments(&mut self) -> Result<Vec<&'a str>, String> {
        let Some(inner) = self.rest.strip_prefix('(') else { return Ok(Vec::new()) };
        let end = inner.find(')').ok_or("a parenthesis has no end")?;
        let arguments = inner[..end].split(',').map(str::trim).collect();
        self.skip(end + 2);
        Ok(arguments)
    }

    fn data_type(&mut self) -> Result<LogicalType, String> {
        let mut name = self.word().ok_or("its type is missing")?;
        if name == "DOUBLE" && self.keyword("PRECISION") {
            name = "DOUBLE".into();
        }
        if name == "ENUM" || name == "SET" {
            let labels = self.labels()?;
            return Ok(if name == "ENUM" {
                LogicalType::Enum { labels }
            } else {
                LogicalType::Set { labels }
            });
        }
        let arguments = self.arguments()?;
        let ty = plain_type(&name, &arguments)?;
        if self.keyword("UNSIGNED") {
            return unsigned(&ty).ok_or_else(|| format!("{name} cannot be UNSIGNED"));
        }
        Ok(ty)
    }

    fn labels(&mut self) -> Result<Vec<String>, String> {
        const FORM: &str = "write its labels as ('a', 'b')";
        let mut labels = Vec::new();
        self.rest.strip_prefix('(').ok_or(FORM)?;
        self.skip(1);
        loop {
            self.rest.strip_prefix('\'').ok_or(FORM)?;
            let mut label = String::new();
            let mut chars = self.rest.char_indices().skip(1).peekable();
            let end = loop {
                match chars.next().ok_or("a label has no end")? {
                    (_, '\'') if chars.next_if(|(_, c)| *c == '\'').is_some() => label.push('\''),
                    (at, '\'') => break at + 1,
                    (_, other) => label.push(other),
                }
            };
            labels.push(label);
            self.skip(end);
            match self.rest.chars().next() {
                Some(',') => self.skip(1),
                Some(')') => {
                    self.skip(1);
                    return Ok(labels);
                }
                _ => return Err(FORM.into()),
            }
        }
    }

    fn nullability(&mut self) -> Result<bool, String> {
        let mut nullable = true;
        if self.keyword("NOT") {
            if !self.keyword("NULL") {
                return Err("NOT must be followed by NULL".into());
            }
            nullable = false;
        } else {
            self.keyword("NULL");
        }
        if let Some(rest) = self.rest.strip_prefix(',') {
            self.rest = rest.trim_start();
            if self.rest.is_empty() {
                return Err("a comma is followed by nothing".into());
            }
        } else if !self.rest.is_empty() {
            let found: String = self.rest.chars().take(20).collect();
            return Err(format!("expected a comma before `{found}`"));
        }
        Ok(nullable)
    }
}

fn plain_type(name: &str, arguments: &[&str]) -> Result<LogicalType, String> {
    use LogicalType as L;
    fn number<T: std::str::FromStr>(text: &str, most: u64) -> Result<T, String> {
        let refused = || format!("`{text}` is not a number up to {most}");
        if text.parse::<u64>().is_ok_and(|n| n <= most) {
            text.parse().map_err(|_| refused())
        } else {
            Err(refused())
        }
    }
    let none = |ty: LogicalType| match arguments {
        [] => Ok(ty),
        _ => Err(format!("{name} takes no arguments")),
    };
    let length = || -> Result<u32, String> {
        match arguments {
            [one] => number(one, u64::from(u32::MAX)),
            _ => Err(format!("write {name}(length)")),
        }
    };
    let precision = || -> Result<u8, String> {
        match arguments {
            [] => Ok(6),
            [one] => number(one, 6),
            _ => Err(format!("write {name}(fraction digits)")),
        }
    };
    match name {
        "BOOLEAN" | "BOOL" => none(L::Boolean),
        "TINYINT" => none(L::Int8),
        "SMALLINT" => none(L::Int16),
        "INT" | "INTEGER" => none(L::Int32),
        "BIGINT" => none(L::Int64),
        "FLOAT" | "REAL" => none(L::Float32),
        "DOUBLE" => none(L::Float64),
        "DECIMAL" | "NUMERIC" | "DEC" => {
            let (precision, scale) = match arguments {
                [] => (10, 0),
                [p] => (number(p, 76)?, 0),
                [p, s] => (number(p, 76)?, number(s, 76)?),
                _ => return Err("write DECIMAL(digits, fraction digits)".into()),
            };
            if precision == 0 || scale > precision {
                return Err(format!("DECIMAL({precision}, {scale}) has no such values"));
            }
            Ok(L::Decimal { precision, scale })
        }
        "DATE" => none(L::Date),
        "TIME" => Ok(L::Time { precision: precision()? }),
        "TIMESTAMP" | "DATETIME" => Ok(L::Timestamp { precision: precision()? }),
        "TIMESTAMP_LTZ" | "TIMESTAMPTZ" => Ok(L::TimestampTz { precision: precision()? }),
        "YEAR" => none(L::Year),
        "CHAR" => Ok(L::Char { length: length()? }),
        "VARCHAR" if arguments.is_empty() => Ok(L::Text),
        "VARCHAR" => Ok(L::Varchar { length: length()? }),
        "STRING" | "TEXT" => none(L::Text),
        "BINARY" => Ok(L::Binary { length: length()? }),
        "VARBINARY" if arguments.is_empty() => Ok(L::Bytes),
        "VARBINARY" => Ok(L::Varbinary { length: length()? }),
        "BYTES" | "BLOB" => none(L::Bytes),
        "BIT" => match arguments {
            [] => Ok(L::Bit { length: 1 }),
            [one] => match number(one, 64)? {
                0_u8 => Err("BIT has 1 to 64 bits".into()),
                length => Ok(L::Bit { length }),
            },
            _ => Err("write BIT(bits)".into()),
        },
        "JSON" => none(L::Json),
        "GEOMETRY" => none(L::Geometry),
        "UUID" => none(L::Uuid),
        other => Err(format!("`{other}` is not a type")),
    }
}

fn unsigned(ty: &LogicalType) -> Option<LogicalType> {
    use LogicalType as L;
    match ty {
        L::Int8 => Some(L::UInt8),
        L::Int16 => Some(L::UInt16),
        L::Int32 => Some(L::UInt32),
        L::Int64 => Some(L::UInt64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_lists_read_as_documented() {
        let columns = parse_columns(
            "id BIGINT unsigned NOT NULL,name varchar(20), `a b`\n DECIMAL(10, 2) NULL, t TIMESTAMP(3), \
             e ENUM('x', 'it''s, y') NOT NULL, \"d\" double precision",
        )
        .unwrap();
        let text: Vec<String> =
            columns.iter().map(|c| format!("{}:{}:{}", c.name, c.ty, c.nullable)).collect();
        assert_eq!(
            text,
            [
                "id:BIGINT UNSIGNED:false",
                "name:VARCHAR(20):true",
                "a b:DECIMAL(10, 2):true",
                "t:TIMESTAMP(3):true",
                "e:ENUM:false",
                "d:DOUBLE:true"
            ]
        );
        assert_eq!(columns[4].ty, LogicalType::Enum { labels: vec!["x".into(), "it's, y".into()] });
    }

    #[test]
    fn wrong_column_lists_are_refused() {
        for text in [
            "",
            "id",
            "id BIGINT,",
            "id BIGINT name TEXT",
            "id BIGINT, id INT",
            "x VARCHAR(",
            "x VARCHAR(a)",
            "x DECIMAL(80)",
            "x DECIMAL(3,4)",
            "x TIME(7)",
            "x INT(11",
            "x NUMBER",
            "x TEXT UNSIGNED",
            "x INT NOT",
            "x BIT(0)",
            "x BIT(65)",
            "x ENUM",
            "x ENUM('a",
            "x ENUM()",
            "`x INT",
            "`` INT",
            "x TIMESTAMP(300)",
        ] {
            assert!(parse_columns(text).is_err(), "{text}");
        }
    }
}
