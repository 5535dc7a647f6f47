//! Type texts of MySQL and MariaDB: any text is understood or refused, and what was understood can be declared again.
#![no_main]

use canalis_types::{
    LogicalType,
    mysql_type::{TinyInt1, TypeText, type_text, unquote},
};
use libfuzzer_sys::fuzz_target;

fn logical(text: &str, tinyint1: TinyInt1) -> LogicalType {
    let parsed = TypeText::parse(text).and_then(|parsed| parsed.logical(tinyint1));
    parsed.unwrap_or_else(|error| panic!("`{text}` is not understood: {error}"))
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for quote in ['\'', '"', '`'] {
        if let Some((value, rest)) = unquote(text, quote) {
            assert!(text.ends_with(rest));
            assert!(value.len() <= text.len());
        }
    }
    let Ok(parsed) = TypeText::parse(text) else { return };
    for tinyint1 in [TinyInt1::Integer, TinyInt1::Boolean] {
        if let Ok(ty) = parsed.logical(tinyint1) {
            // Limits above those of the servers give way to the unlimited type, which then stays.
            let declared = logical(&type_text(&ty), tinyint1);
            assert_eq!(logical(&type_text(&declared), tinyint1), declared, "{ty} as {}", type_text(&ty));
            let is_limited = matches!(
                ty,
                LogicalType::Char { .. }
                    | LogicalType::Varchar { .. }
                    | LogicalType::Binary { .. }
                    | LogicalType::Varbinary { .. }
                    | LogicalType::Uuid
            );
            assert!(is_limited || declared == ty, "{ty} as {} is {declared}", type_text(&ty));
        }
    }
});
