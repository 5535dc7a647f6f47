//! Owns finding the tables that a statement changes rows of: in a log of row events there should be none.

use canalis_types::TableId;

use super::parser::{Parsed, Parser};

/// Tables that the DML statement at the parser's front changes; possibly more, never fewer.
pub fn changed_tables(parser: &mut Parser<'_>) -> Parsed<Vec<TableId>> {
    const MODIFIERS: &[&str] =
        &["low_priority", "delayed", "high_priority", "ignore", "quick", "concurrent", "local"];
    if parser.accept("with") {
        return Ok(parser.mentioned(&[]));
    }
    let verb = parser.name()?.to_ascii_lowercase();
    while parser.accept_any(MODIFIERS) {}
    match verb.as_str() {
        "insert" | "replace" => {
            parser.accept("into");
            Ok(vec![parser.table()?])
        }
        "update" => Ok(parser.mentioned(&["set"])),
        "delete" => Ok(parser.mentioned(&["where", "order", "limit", "returning"])),
        "load" => {
            while !parser.accept_all(&["into", "table"]) {
                if parser.next().is_none() {
                    return Err("the loaded table is missing".to_owned());
                }
            }
            Ok(vec![parser.table()?])
        }
        _ => Ok(parser.mentioned(&[])),
    }
}
