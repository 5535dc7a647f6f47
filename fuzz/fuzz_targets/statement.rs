//! Statements in the binlog: any text is told apart, and never leads to a panic whatever the quoting of the session.
#![no_main]

use canalis_mysql::binlog::ddl::{Ddl, Quoting, StatementContext, classify, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(statement) = std::str::from_utf8(data) else { return };
    for number in 0..4 {
        let quoting = Quoting { ansi_quotes: number & 1 != 0, no_backslash_escapes: number & 2 != 0 };
        let context = StatementContext { default_database: "d".into(), quoting };
        let _ = classify(statement, &context);
        // Nothing is found where nothing is captured, but for databases, whose tables the caller knows.
        if let Ok(found) = parse(statement, &context, &|_| false) {
            assert!(found.iter().all(|ddl| matches!(ddl, Ddl::DropDatabase { .. })), "{found:?}");
        }
        let _ = parse(statement, &context, &|_| true);
        let _ = parse(statement, &context, &|table| table.table.eq_ignore_ascii_case("t"));
    }
});
