//! Owns column definitions as CREATE TABLE and ALTER TABLE write them.

use canalis_types::ColumnDefault;

use super::{
    parser::{Parsed, Parser},
    token::{Kind, Token},
};

/// A column as a statement defines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDefinition {
    /// Name.
    pub name: String,
    /// Type as `information_schema` would print it: words in lower case, labels as written, for example
    /// `int(6) zerofill`, `enum('a','it''s')`. Synonyms (`integer`, `bool`, …) are not replaced.
    pub type_sql: String,
    /// Whether NULL is allowed.
    pub nullable: bool,
    /// Default, if one other than NULL is given.
    pub default: Option<ColumnDefault>,
    /// Comment.
    pub comment: Option<String>,
    /// Character set, if one is named.
    pub charset: Option<String>,
    /// Collation, if one is named. The attribute BINARY on a text type stands here as `binary`.
    pub collation: Option<String>,
    /// Whether it numbers itself.
    pub auto_increment: bool,
    /// Whether it is computed.
    pub generated: Option<Generated>,
    /// Whether it is the primary key by itself.
    pub primary_key: bool,
    /// Whether it has a unique index by itself.
    pub unique: bool,
    /// Whether `SELECT *` leaves it out.
    pub invisible: bool,
}

/// How a computed column is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generated {
    /// Computed when read.
    Virtual,
    /// Computed when written.
    Stored,
}

/// A column definition: name, type, attributes.
pub fn column_definition(parser: &mut Parser<'_>) -> Parsed<ColumnDefinition> {
    let name = parser.name()?;
    let type_sql = column_type(parser)?;
    let mut column = ColumnDefinition {
        name,
        type_sql,
        nullable: true,
        default: None,
        comment: None,
        charset: None,
        collation: None,
        auto_increment: false,
        generated: None,
        primary_key: false,
        unique: false,
        invisible: false,
    };
    if column.type_sql == "serial" {
        column.type_sql = "bigint unsigned".to_owned();
        column.nullable = false;
        column.auto_increment = true;
        column.unique = true;
    }
    while attribute(parser, &mut column)? {}
    if column.primary_key {
        column.nullable = false;
    }
    if column.charset.is_none()
        && (column.type_sql.starts_with("national") || column.type_sql.starts_with("nchar"))
    {
        column.charset = Some("utf8mb3".to_owned());
    }
    Ok(column)
}

fn column_type(parser: &mut Parser<'_>) -> Parsed<String> {
    let Some(first) = parser.next().filter(|token| token.kind == Kind::Word) else {
        return Err("a type is missing".to_owned());
    };
    let mut sql = first.value.to_ascii_lowercase();
    if !sql.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Err(format!("{sql:?} is no type"));
    }
    // Types of several words.
    let more: &[&str] = match sql.as_str() {
        "double" => &["precision"],
        "char" | "character" | "nchar" => &["varying", "varchar", "byte"],
        "national" => &["char", "character", "varchar"],
        "long" => &["varbinary", "varchar", "char"],
        _ => &[],
    };
    for _ in 0..2 {
        if let Some(word) = more.iter().find(|word| parser.peek(word)) {
            parser.accept(word);
            sql.push(' ');
            sql.push_str(word);
        }
        if parser.accept("varying") {
            sql.push_str(" varying");
        }
    }
    if parser.peek_symbol('(') {
        let inside = parser.group()?;
        sql.push('(');
        for token in &inside {
            append_type_argument(&mut sql, token);
        }
        sql.push(')');
    }
    loop {
        if parser.accept("unsigned") {
            sql.push_str(" unsigned");
        } else if parser.accept("zerofill") {
            sql.push_str(" zerofill");
        } else if !parser.accept("signed") {
            return Ok(sql);
        }
    }
}

/// Labels are printed with the escapes that `information_schema.columns.column_type` has.
fn append_type_argument(sql: &mut String, token: &Token<'_>) {
    if token.kind != Kind::Text {
        sql.push_str(&token.value.to_ascii_lowercase());
        return;
    }
    sql.push('\'');
    for character in token.value.chars() {
        match character {
            '\'' => sql.push_str("''"),
            '\\' => sql.push_str("\\\\"),
            '\n' => sql.push_str("\\n"),
            '\r' => sql.push_str("\\r"),
            '\0' => sql.push_str("\\0"),
            other => sql.push(other),
        }
    }
    sql.push('\'');
}

/// Reads one attribute; false when none is next.
fn attribute(parser: &mut Parser<'_>, column: &mut ColumnDefinition) -> Parsed<bool> {
    if parser.accept_all(&["not", "null"]) {
        column.nullable = false;
    } else if parser.accept("null")
        || parser.accept_any(&["visible", "ascii", "byte"])
        || parser.accept_all(&["not", "enforced"])
        || parser.accept("enforced")
        || parser.accept_all(&["with", "system", "versioning"])
        || parser.accept_all(&["without", "system", "versioning"])
    {
        // These change neither rows nor columns.
    } else if parser.accept_all(&["serial", "default", "value"]) {
        column.nullable = false;
        column.auto_increment = true;
        column.unique = true;
    } else if parser.accept("default") {
        column.default = default_value(parser)?;
    } else if parser.accept_all(&["on", "update"]) {
        parser.name()?;
        if parser.peek_symbol('(') {
            parser.group()?;
        }
    } else if parser.accept("auto_increment") {
        column.auto_increment = true;
    } else if parser.accept("unique") {
        parser.accept("key");
        column.unique = true;
    } else if parser.accept_all(&["primary", "key"]) || parser.accept("key") {
        column.primary_key = true;
    } else if parser.accept("comment") {
        column.comment = Some(parser.text()?).filter(|comment| !comment.is_empty());
    } else if parser.accept("collate") {
        parser.accept_symbol('=');
        column.collation = Some(charset_name(parser)?);
    } else if charset_word(parser) {
        parser.accept_symbol('=');
        column.charset = Some(charset_name(parser)?);
    } else if parser.accept("binary") {
        column.collation = Some("binary".to_owned());
    } else if parser.accept("unicode") {
        column.charset = Some("ucs2".to_owned());
    } else if parser.accept_any(&["column_format", "storage", "srid"]) {
        parser.name()?;
    } else if parser.accept_any(&["engine_attribute", "secondary_engine_attribute", "ref_system_id"]) {
        parser.accept_symbol('=');
        parser.next();
    } else if parser.accept("compressed") {
        if parser.accept_symbol('=') {
            parser.name()?;
        }
    } else if parser.accept("invisible") {
        column.invisible = true;
    } else if parser.accept_all(&["generated", "always", "as"]) || parser.accept("as") {
        if parser.accept("row") {
            // System versioning: GENERATED ALWAYS AS ROW START | END.
            parser.name()?;
            column.generated = Some(Generated::Stored);
        } else {
            parser.group()?;
            column.generated = Some(Generated::Virtual);
        }
    } else if parser.accept("virtual") {
        column.generated = Some(Generated::Virtual);
    } else if parser.accept_any(&["stored", "persistent"]) {
        column.generated = Some(Generated::Stored);
    } else if parser.accept("references") {
        references(parser)?;
    } else if parser.peek("constraint") || parser.peek("check") {
        if parser.accept("constraint") && !parser.peek("check") {
            parser.name()?;
        }
        if parser.accept("check") {
            parser.group()?;
        }
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// Passes over `CHARACTER SET`, `CHAR SET` or `CHARSET`.
pub fn charset_word(parser: &mut Parser<'_>) -> bool {
    parser.accept_all(&["character", "set"])
        || parser.accept_all(&["char", "set"])
        || parser.accept("charset")
}

/// Name of a character set or collation, which may also be written as a text.
pub fn charset_name(parser: &mut Parser<'_>) -> Parsed<String> {
    let name = if parser.look(0).is_some_and(|token| token.kind == Kind::Text) {
        parser.text()?
    } else {
        parser.name()?
    };
    Ok(name.to_ascii_lowercase())
}

fn references(parser: &mut Parser<'_>) -> Parsed<()> {
    parser.table()?;
    if parser.peek_symbol('(') {
        parser.group()?;
    }
    loop {
        if parser.accept("match") {
            parser.name()?;
        } else if parser.accept_all(&["on", "delete"]) || parser.accept_all(&["on", "update"]) {
            let action = parser.name()?;
            if action.eq_ignore_ascii_case("set") || action.eq_ignore_ascii_case("no") {
                parser.name()?;
            }
        } else {
            return Ok(());
        }
    }
}

/// What stands after DEFAULT; `None` for NULL.
fn default_value(parser: &mut Parser<'_>) -> Parsed<Option<ColumnDefault>> {
    let from = parser.mark();
    if parser.accept("null") {
        return Ok(None);
    }
    if parser.peek_symbol('(') {
        parser.group()?;
        return Ok(Some(ColumnDefault::Expression(parser.text_since(from))));
    }
    if parser.look(0).is_some_and(|token| token.kind == Kind::Text) {
        return Ok(Some(ColumnDefault::Literal(parser.text()?)));
    }
    let signed = parser.accept_symbol('-') || parser.accept_symbol('+');
    let decimal_point = parser.accept_symbol('.');
    let word = parser.name()?;
    if signed || decimal_point || word.starts_with(|c: char| c.is_ascii_digit()) {
        let mut last = word;
        while parser.peek_symbol('.') || exponent_follows(parser, &last) {
            parser.next();
            if parser.look(0).is_some_and(|t| t.value.starts_with(|c: char| c.is_ascii_digit())) {
                last = parser.name()?;
            }
        }
        return Ok(Some(ColumnDefault::Literal(parser.text_since(from).trim_start_matches('+').to_owned())));
    }
    if word.eq_ignore_ascii_case("true") || word.eq_ignore_ascii_case("false") {
        return Ok(Some(ColumnDefault::Literal(
            if word.eq_ignore_ascii_case("true") { "1" } else { "0" }.into(),
        )));
    }
    if word.eq_ignore_ascii_case("next") && parser.accept_all(&["value", "for"]) {
        parser.table()?;
    } else if parser.peek_symbol('(') {
        parser.group()?;
    } else if parser.look(0).is_some_and(|token| token.kind == Kind::Text) {
        // b'101', x'4D', _utf8mb4'text', DATE'2024-01-01'.
        parser.text()?;
    }
    Ok(Some(ColumnDefault::Expression(parser.text_since(from))))
}

/// `1e-5` is cut into `1e`, `-`, `5`.
fn exponent_follows(parser: &Parser<'_>, word: &str) -> bool {
    word.ends_with(['e', 'E']) && (parser.peek_symbol('-') || parser.peek_symbol('+'))
}
