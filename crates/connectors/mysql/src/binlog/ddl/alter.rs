//! Owns ALTER TABLE and the body of CREATE TABLE.

use canalis_types::{ColumnPlace, TableId};

use super::{
    AddedColumn, CreateTable, Ddl, TableShape,
    column::{ColumnDefinition, charset_name, charset_word, column_definition},
    parser::{Parsed, Parser},
};

/// What one ALTER TABLE does, all its actions taken together.
#[derive(Debug, Default)]
struct Effect {
    columns: Vec<AddedColumn>,
    renamed: Option<TableId>,
    other: Option<&'static str>,
}

impl Effect {
    fn note(&mut self, tag: &'static str) {
        self.other.get_or_insert(tag);
    }
}

/// The actions after `ALTER TABLE t`. `None` when they change neither rows nor columns.
pub fn alter_table(parser: &mut Parser<'_>, table: TableId) -> Parsed<Option<Ddl>> {
    let mut effect = Effect::default();
    while !parser.at_end() {
        action(parser, &mut effect)?;
        // Table options may follow each other without a comma.
        parser.accept_symbol(',');
    }
    Ok(match effect {
        Effect { other: Some(tag), .. } => Some(Ddl::Other { table, tag }),
        Effect { renamed: Some(_), columns, .. } if !columns.is_empty() => {
            Some(Ddl::Other { table, tag: "rename.table" })
        }
        Effect { renamed: Some(to), .. } => Some(Ddl::RenameTable { from: table, to }),
        Effect { columns, .. } if !columns.is_empty() => Some(Ddl::AddColumns { table, columns }),
        _ => None,
    })
}

fn action(parser: &mut Parser<'_>, effect: &mut Effect) -> Parsed<()> {
    if parser.accept("add") {
        return add(parser, effect);
    }
    if parser.accept("drop") {
        drop_item(parser, effect);
    } else if parser.accept("modify") {
        effect.note("alter.column.type");
        parser.skip_item();
    } else if parser.accept("change") {
        parser.accept("column");
        parser.if_exists();
        let (before, after) = (parser.name()?, parser.name()?);
        effect.note(if before.eq_ignore_ascii_case(&after) { "alter.column.type" } else { "rename.column" });
        parser.skip_item();
    } else if parser.accept("rename") {
        rename(parser, effect)?;
    } else if parser.accept("convert") {
        effect.note(if parser.peek("to") { "convert.charset" } else { "exchange.partition" });
        parser.skip_item();
    } else if parser.peek("truncate")
        || parser.peek("exchange")
        || parser.peek("discard")
        || parser.peek("import")
    {
        let tag = if parser.peek("truncate") { "truncate.partition" } else { "exchange.partition" };
        effect.note(tag);
        parser.skip_item();
    } else if parser.peek("order") || parser.peek("partition") {
        // Both take a list with commas and stand last.
        while !parser.at_end() {
            parser.next();
        }
    } else if parser.accept("default")
        || parser.peek("charset")
        || parser.peek("collate")
        || parser.peek("character")
    {
        // Columns that are added later without a character set would get another one.
        effect.note("alter.table.charset");
        parser.skip_item();
    } else if parser.peek_at(1, "system") && parser.peek_at(2, "versioning") {
        effect.note("system.versioning");
        parser.skip_item();
    } else if parser.look(0).is_some_and(|token| HARMLESS.iter().any(|word| token.is_word(word))) {
        parser.skip_item();
    } else {
        let found = parser.look(0).map(|token| token.value.to_string()).unwrap_or_default();
        return Err(format!("the clause at {found:?} is not known"));
    }
    Ok(())
}

/// Words that begin clauses which change neither rows nor columns: options, indexes, defaults, partitions moved.
const HARMLESS: &[&str] = &[
    "algorithm",
    "alter",
    "analyze",
    "auto_increment",
    "autoextend_size",
    "avg_row_length",
    "check",
    "checksum",
    "coalesce",
    "comment",
    "compression",
    "connection",
    "data",
    "delay_key_write",
    "disable",
    "enable",
    "encrypted",
    "encryption",
    "encryption_key_id",
    "engine",
    "engine_attribute",
    "force",
    "ietf_quotes",
    "index",
    "insert_method",
    "key_block_size",
    "lock",
    "max_rows",
    "min_rows",
    "nowait",
    "optimize",
    "pack_keys",
    "page_checksum",
    "page_compressed",
    "page_compression_level",
    "password",
    "raid_type",
    "rebuild",
    "remove",
    "reorganize",
    "repair",
    "row_format",
    "secondary_engine",
    "secondary_engine_attribute",
    "secondary_load",
    "secondary_unload",
    "sequence",
    "start",
    "stats_auto_recalc",
    "stats_persistent",
    "stats_sample_pages",
    "storage",
    "table_checksum",
    "tablespace",
    "transactional",
    "type",
    "union",
    "wait",
    "with",
    "without",
];

fn add(parser: &mut Parser<'_>, effect: &mut Effect) -> Parsed<()> {
    if !parser.accept("column") {
        if key_item(parser) {
            if is_primary_key(parser) {
                effect.note("primary.key");
            }
            parser.skip_item();
            return Ok(());
        }
        if parser.peek("partition") {
            parser.skip_item();
            return Ok(());
        }
        if parser.peek_at(1, "for") || (parser.peek("system") && parser.peek_at(1, "versioning")) {
            effect.note("system.versioning");
            parser.skip_item();
            return Ok(());
        }
    }
    let if_not_exists = parser.if_not_exists();
    if !parser.accept_symbol('(') {
        let column = column_definition(parser)?;
        let place = if parser.accept("first") {
            ColumnPlace::First
        } else if parser.accept("after") {
            ColumnPlace::After(parser.name()?)
        } else {
            ColumnPlace::Last
        };
        if !(parser.at_end() || parser.peek_symbol(',')) {
            let found = parser.look(0).map(|token| token.value.to_string()).unwrap_or_default();
            return Err(format!("the attribute {found:?} of column {} is not known", column.name));
        }
        note_column(effect, AddedColumn { column, place, if_not_exists });
        return Ok(());
    }
    for column in table_items(parser)?.0 {
        note_column(effect, AddedColumn { column, place: ColumnPlace::Last, if_not_exists });
    }
    Ok(())
}

fn note_column(effect: &mut Effect, added: AddedColumn) {
    if added.column.primary_key {
        effect.note("primary.key");
    }
    effect.columns.push(added);
}

/// Whether an index, key or constraint is next.
fn key_item(parser: &Parser<'_>) -> bool {
    let begins =
        ["index", "key", "unique", "primary", "fulltext", "spatial", "foreign", "constraint", "check"];
    begins.iter().any(|word| parser.peek(word))
        || (parser.peek("vector") && (parser.peek_at(1, "index") || parser.peek_at(1, "key")))
}

/// Whether the key that is next is the primary one; `CONSTRAINT [name]` may stand before it.
fn is_primary_key(parser: &Parser<'_>) -> bool {
    parser.peek("primary")
        || (parser.peek("constraint") && (parser.peek_at(1, "primary") || parser.peek_at(2, "primary")))
}

fn drop_item(parser: &mut Parser<'_>, effect: &mut Effect) {
    let harmless = ["index", "key", "foreign", "check", "constraint"];
    if parser.peek("primary") && parser.peek_at(1, "key") {
        effect.note("primary.key");
    } else if parser.peek("partition") {
        effect.note("drop.partition");
    } else if parser.peek("system") || parser.peek("period") {
        effect.note("system.versioning");
    } else if !harmless.iter().any(|word| parser.peek(word)) {
        effect.note("drop.column");
    }
    parser.skip_item();
}

fn rename(parser: &mut Parser<'_>, effect: &mut Effect) -> Parsed<()> {
    if parser.accept("column") {
        effect.note("rename.column");
        parser.skip_item();
    } else if parser.peek("index") || parser.peek("key") {
        parser.skip_item();
    } else {
        if !parser.accept_any(&["to", "as"]) {
            parser.accept_symbol('=');
        }
        effect.renamed = Some(parser.table()?);
    }
    Ok(())
}

/// Columns and primary key of a list in parentheses whose opening one is already read.
fn table_items(parser: &mut Parser<'_>) -> Parsed<(Vec<ColumnDefinition>, Vec<String>)> {
    let mut columns: Vec<ColumnDefinition> = Vec::new();
    let mut primary_key = Vec::new();
    loop {
        if key_item(parser) {
            if is_primary_key(parser) {
                primary_key = key_columns(parser)?;
            }
            parser.skip_item();
        } else if parser.peek("period") && parser.peek_at(1, "for") {
            parser.skip_item();
        } else {
            let column = column_definition(parser)?;
            if column.primary_key {
                primary_key = vec![column.name.clone()];
            }
            columns.push(column);
        }
        if parser.accept_symbol(',') {
            continue;
        }
        if parser.accept_symbol(')') {
            return Ok((columns, primary_key));
        }
        let found = parser.look(0).map_or("the end".to_owned(), |token| format!("{:?}", token.value));
        return Err(format!("{found} in the list of columns is not known"));
    }
}

/// Column names of `[CONSTRAINT [name]] PRIMARY KEY [name] [USING BTREE] (a, b(10) DESC)`.
fn key_columns(parser: &mut Parser<'_>) -> Parsed<Vec<String>> {
    while !parser.peek_symbol('(') {
        if parser.next().is_none() {
            return Err("the primary key has no columns".to_owned());
        }
    }
    let mut names = Vec::new();
    let mut depth = 0usize;
    let mut fresh = true;
    for token in parser.group()? {
        if token.is_symbol(',') && depth == 0 {
            fresh = true;
        } else if token.is_symbol('(') {
            depth += 1;
        } else if token.is_symbol(')') {
            depth = depth.saturating_sub(1);
        } else if fresh {
            names.push(token.value.into_owned());
            fresh = false;
        }
    }
    Ok(names)
}

/// What follows `CREATE TABLE [IF NOT EXISTS] t`.
pub fn create_table(parser: &mut Parser<'_>, mut head: CreateTable) -> Parsed<Ddl> {
    if parser.accept("like") {
        head.shape = TableShape::Like(parser.table()?);
        return Ok(Ddl::CreateTable(head));
    }
    if parser.peek_symbol('(') && parser.peek_at(1, "like") {
        parser.accept_symbol('(');
        parser.accept("like");
        head.shape = TableShape::Like(parser.table()?);
        return Ok(Ddl::CreateTable(head));
    }
    if !parser.peek_symbol('(') || parser.peek_at(1, "select") {
        return Ok(Ddl::CreateTable(head));
    }
    parser.accept_symbol('(');
    let (columns, mut primary_key) = table_items(parser)?;
    for name in &mut primary_key {
        if let Some(column) = columns.iter().find(|column| column.name.eq_ignore_ascii_case(name)) {
            name.clone_from(&column.name);
        }
    }
    let (mut charset, mut collation, mut comment) = (None, None, None);
    while !parser.at_end() {
        if charset_word(parser) {
            parser.accept_symbol('=');
            charset = Some(charset_name(parser)?);
        } else if parser.accept("collate") {
            parser.accept_symbol('=');
            collation = Some(charset_name(parser)?);
        } else if parser.accept("comment") {
            parser.accept_symbol('=');
            comment = Some(parser.text()?);
        } else if parser.peek("select") || (parser.peek("as") && !parser.peek_at(1, "of")) {
            return Ok(Ddl::CreateTable(head));
        } else if parser.accept_all(&["start", "transaction"]) || parser.next().is_some() {
            // MySQL 8 logs CREATE … SELECT as a plain CREATE with START TRANSACTION, followed by rows.
        }
    }
    let mut columns = columns;
    for column in &mut columns {
        column.nullable &= !primary_key.contains(&column.name);
    }
    head.shape = TableShape::Columns { columns, primary_key, charset, collation, comment };
    Ok(Ddl::CreateTable(head))
}
