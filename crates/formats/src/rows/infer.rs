//! Owns the types of JSON members that no structure declares.

use canalis_types::LogicalType;

use crate::json::{
    scan::{Scanner, Value},
    string::unescape,
};

/// Members that become columns of one table at most.
const MOST_COLUMNS: usize = 4096;

/// The members of all objects of a message in order of appearance, with the type that holds every value of each exactly; `None`
/// for those that are null throughout.
///
/// # Errors
/// When the message is not an object or an array of objects.
pub(super) fn members(value: &[u8]) -> Result<Vec<(String, Option<LogicalType>)>, String> {
    let mut found = Vec::new();
    let mut scanner = Scanner::new(value.strip_prefix(b"\xef\xbb\xbf").unwrap_or(value));
    let syntax = |why: &str| format!("message is neither a JSON object nor an array of them: {why}");
    if !scanner.take(b'[') {
        object(&mut scanner, &mut found).map_err(|why| syntax(&why))?;
    } else if !scanner.take(b']') {
        loop {
            object(&mut scanner, &mut found).map_err(|why| syntax(&why))?;
            if scanner.take(b']') {
                break;
            }
            if !scanner.take(b',') {
                return Err(syntax("expected a comma or a closing bracket"));
            }
        }
    }
    scanner.end().map_err(syntax)?;
    Ok(found)
}

fn object(scanner: &mut Scanner<'_>, found: &mut Vec<(String, Option<LogicalType>)>) -> Result<(), String> {
    if !scanner.take(b'{') {
        return Err("expected an opening brace".to_owned());
    }
    if scanner.take(b'}') {
        return Ok(());
    }
    let mut scratch = Vec::new();
    loop {
        let name = scanner.name()?;
        let ty = type_of(scanner.value()?);
        unescape(name.raw, &mut scratch)?;
        let name = std::str::from_utf8(&scratch).map_err(|_| "a member name is not UTF-8")?;
        match found.iter().position(|(known, _)| known == name) {
            Some(at) => found[at].1 = union(found[at].1.take(), ty),
            None if name.is_empty() => return Err("a member name is empty".to_owned()),
            None if found.len() == MOST_COLUMNS => {
                return Err(format!("more than {MOST_COLUMNS} members"));
            }
            None => found.push((name.to_owned(), ty)),
        }
        if scanner.take(b'}') {
            return Ok(());
        }
        if !scanner.take(b',') {
            return Err("expected a comma or a closing brace".to_owned());
        }
    }
}

fn type_of(value: Value<'_>) -> Option<LogicalType> {
    Some(match value {
        Value::Null => return None,
        Value::Boolean(_) => LogicalType::Boolean,
        Value::Number(digits) if std::str::from_utf8(digits).is_ok_and(|d| d.parse::<i64>().is_ok()) => {
            LogicalType::Int64
        }
        Value::Number(_) | Value::Text(_) => LogicalType::Text,
        Value::Container(_) => LogicalType::Json,
    })
}

/// The type that takes both; JSON takes what text cannot.
fn union(a: Option<LogicalType>, b: Option<LogicalType>) -> Option<LogicalType> {
    match (a, b) {
        (None, only) | (only, None) => only,
        (Some(a), Some(b)) if a == b => Some(a),
        (Some(LogicalType::Json), Some(_)) | (Some(_), Some(LogicalType::Json)) => Some(LogicalType::Json),
        _ => Some(LogicalType::Text),
    }
}
