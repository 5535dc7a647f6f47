//! Owns what kind of statement a QUERY event holds, and the entry to the parsers of each kind.

use canalis_types::TableId;

use super::{
    CreateTable, Ddl, StatementContext, TableShape,
    alter::{alter_table, create_table},
    dml::changed_tables,
    parser::{Parsed, Parser},
};

/// Kind of a statement, by its first words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statement {
    /// `BEGIN` or `START TRANSACTION`.
    Begin,
    /// `COMMIT`.
    Commit,
    /// `ROLLBACK` of the whole transaction.
    Rollback,
    /// `ROLLBACK TO SAVEPOINT`.
    RollbackTo,
    /// `SAVEPOINT` or `RELEASE SAVEPOINT`.
    Savepoint,
    /// `XA START`.
    XaStart,
    /// `XA END`.
    XaEnd,
    /// `XA COMMIT` or `XA ROLLBACK` of a transaction that was prepared before.
    XaFinish,
    /// Changes rows.
    Dml,
    /// May change a table or its structure.
    Ddl,
    /// Concerns neither rows nor tables.
    Irrelevant,
    /// Not known.
    Unknown,
}

/// Words that begin statements about neither rows nor tables.
const IRRELEVANT: &[&str] = &[
    "analyze",
    "binlog",
    "cache",
    "change",
    "check",
    "checksum",
    "clone",
    "commit",
    "deallocate",
    "describe",
    "do",
    "execute",
    "explain",
    "flush",
    "get",
    "grant",
    "help",
    "install",
    "kill",
    "lock",
    "optimize",
    "prepare",
    "purge",
    "repair",
    "reset",
    "restart",
    "resignal",
    "revoke",
    "set",
    "show",
    "shutdown",
    "signal",
    "start",
    "stop",
    "uninstall",
    "unlock",
    "use",
    "xa",
    "backup",
    "select",
    "values",
    "table",
];

/// Words after CREATE, ALTER or DROP (past their modifiers) that name things other than tables.
const OTHER_THINGS: &[&str] = &[
    "aggregate",
    "catalog",
    "event",
    "function",
    "index",
    "instance",
    "library",
    "logfile",
    "package",
    "procedure",
    "resource",
    "role",
    "sequence",
    "server",
    "spatial",
    "temporary",
    "trigger",
    "undo",
    "user",
    "view",
    "tablespace",
    "fulltext",
    "unique",
    "database",
    "schema",
    "prepare",
    "vector",
    "json",
    "materialized",
];

/// Tells the kind of a statement.
pub fn classify(statement: &str, context: &StatementContext) -> Statement {
    // The two that come with every transaction need no parser.
    match statement {
        "BEGIN" => return Statement::Begin,
        "COMMIT" => return Statement::Commit,
        _ => {}
    }
    let parser = Parser::new(statement, context);
    let Some(first) = parser.look(0).map(|token| token.value.to_ascii_lowercase()) else {
        return Statement::Irrelevant;
    };
    let second = |word: &str| parser.peek_at(1, word);
    match first.as_str() {
        "begin" => Statement::Begin,
        "start" if second("transaction") => Statement::Begin,
        "commit" => Statement::Commit,
        "rollback" if second("to") || (second("work") && parser.peek_at(2, "to")) => Statement::RollbackTo,
        "rollback" => Statement::Rollback,
        "savepoint" | "release" => Statement::Savepoint,
        "xa" if second("start") || second("begin") => Statement::XaStart,
        "xa" if second("end") => Statement::XaEnd,
        "xa" => Statement::XaFinish,
        "insert" | "replace" | "update" | "delete" | "load" | "with" | "call" | "import" => Statement::Dml,
        "create" | "alter" | "drop" | "truncate" | "rename" => Statement::Ddl,
        _ if IRRELEVANT.contains(&first.as_str()) => Statement::Irrelevant,
        _ => Statement::Unknown,
    }
}

/// What a statement does to captured tables, in order; empty when it does nothing to them.
///
/// # Errors
/// Why a statement that touches a captured table is not understood, or that it changes rows by itself.
pub fn parse(
    statement: &str,
    context: &StatementContext,
    captured: &dyn Fn(&TableId) -> bool,
) -> Parsed<Vec<Ddl>> {
    let mut parser = Parser::new(statement, context);
    match classify(statement, context) {
        Statement::Ddl => ddl(&mut parser, captured),
        Statement::Dml => {
            let changed = changed_tables(&mut parser)?;
            match changed.iter().find(|table| captured(table)) {
                Some(table) => Err(format!("rows of {table} are changed by a statement")),
                None => Ok(Vec::new()),
            }
        }
        Statement::Unknown => match parser.mentioned(&[]).iter().find(|table| captured(table)) {
            Some(table) => Err(format!("a statement of an unknown kind names {table}")),
            None => Ok(Vec::new()),
        },
        _ => Ok(Vec::new()),
    }
}

fn ddl(parser: &mut Parser<'_>, captured: &dyn Fn(&TableId) -> bool) -> Parsed<Vec<Ddl>> {
    let verb = parser.name()?.to_ascii_lowercase();
    match verb.as_str() {
        "truncate" => {
            parser.accept("table");
            let table = parser.table()?;
            Ok(captured(&table).then_some(Ddl::Truncate { table }).into_iter().collect())
        }
        "rename" => rename(parser, captured),
        "create" => {
            let or_replace = parser.accept_all(&["or", "replace"]);
            if !parser.accept("table") {
                return other_thing(parser, captured);
            }
            let if_not_exists = parser.if_not_exists();
            let table = parser.table()?;
            if !captured(&table) {
                return Ok(Vec::new());
            }
            let head = CreateTable { table, if_not_exists, or_replace, shape: TableShape::Select };
            Ok(vec![create_table(parser, head)?])
        }
        "alter" => {
            while parser.accept_any(&["online", "offline", "ignore"]) {}
            if !parser.accept("table") {
                return other_thing(parser, captured);
            }
            parser.if_exists();
            let table = parser.table()?;
            if parser.accept("wait") {
                parser.next();
            }
            parser.accept("nowait");
            let known = captured(&table);
            match alter_table(parser, table) {
                Ok(Some(Ddl::RenameTable { from, to })) if known || captured(&to) => {
                    Ok(vec![Ddl::RenameTable { from, to }])
                }
                Ok(effect) => Ok(effect.filter(|_| known).into_iter().collect()),
                // Nothing about a table that nobody reads is worth an error.
                Err(_) if !known => Ok(Vec::new()),
                Err(reason) => Err(reason),
            }
        }
        _ => drop_statement(parser, captured),
    }
}

/// CREATE, ALTER or DROP of something other than a table.
fn other_thing(parser: &mut Parser<'_>, captured: &dyn Fn(&TableId) -> bool) -> Parsed<Vec<Ddl>> {
    // Modifiers such as DEFINER = u@h, ALGORITHM = x, SQL SECURITY x, OR REPLACE stand before the word.
    for ahead in 0..24 {
        let Some(token) = parser.look(ahead) else { break };
        if OTHER_THINGS.iter().any(|word| token.is_word(word)) {
            return Ok(Vec::new());
        }
    }
    match parser.mentioned(&[]).iter().find(|table| captured(table)) {
        Some(table) => Err(format!("a definition of an unknown kind names {table}")),
        None => Ok(Vec::new()),
    }
}

fn drop_statement(parser: &mut Parser<'_>, captured: &dyn Fn(&TableId) -> bool) -> Parsed<Vec<Ddl>> {
    if parser.accept_any(&["database", "schema"]) {
        parser.if_exists();
        return Ok(vec![Ddl::DropDatabase { database: parser.name()? }]);
    }
    if !parser.accept_any(&["table", "tables"]) {
        return other_thing(parser, captured);
    }
    parser.if_exists();
    let mut effects = Vec::new();
    loop {
        let table = parser.table()?;
        if captured(&table) {
            effects.push(Ddl::DropTable { table });
        }
        if !parser.accept_symbol(',') {
            return Ok(effects);
        }
    }
}

fn rename(parser: &mut Parser<'_>, captured: &dyn Fn(&TableId) -> bool) -> Parsed<Vec<Ddl>> {
    if !parser.accept_any(&["table", "tables"]) {
        // RENAME USER.
        return Ok(Vec::new());
    }
    parser.if_exists();
    let mut effects = Vec::new();
    loop {
        let from = parser.table()?;
        if parser.accept("wait") {
            parser.next();
        }
        parser.accept("nowait");
        if !parser.accept("to") {
            return Err("RENAME TABLE without a new name".to_owned());
        }
        let to = parser.table()?;
        if captured(&from) || captured(&to) {
            effects.push(Ddl::RenameTable { from, to });
        }
        if !parser.accept_symbol(',') {
            return Ok(effects);
        }
    }
}
