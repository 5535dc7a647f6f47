//! Owns routes: from the id of a source table to the ids of its targets.

use canalis_types::{Code, Error, Result, TableId};
use regex::Captures;

use crate::{RouteMode, RouteRule};

/// Checks the group references of all rules.
///
/// # Errors
/// A rule that refers to a group which its pattern does not have.
pub(crate) fn check(rules: &[RouteRule]) -> Result<()> {
    for rule in rules {
        if rule.replace_symbol.is_none() {
            let pieces = pieces(&rule.sink_table, rule).map_err(|why| invalid(rule, &why))?;
            drop(pieces);
        }
    }
    Ok(())
}

/// Targets of a table in rule order, each once; the table itself when no rule matches.
///
/// # Errors
/// A target that is not a table id.
pub(crate) fn targets(rules: &[RouteRule], mode: RouteMode, id: &TableId) -> Result<Vec<TableId>> {
    let text = id.to_string();
    let mut targets = Vec::new();
    for rule in rules {
        let Some(captures) = rule.source_table.regex().captures(&text) else { continue };
        let name = match &rule.replace_symbol {
            Some(symbol) if !symbol.is_empty() => rule.sink_table.replace(symbol, &id.table),
            _ => expand(rule, &captures)?,
        };
        let target = TableId::parse(&name).ok_or_else(|| {
            invalid(
                rule,
                &format!("table {id} would go to `{name}`, which is not a table id of one to three parts"),
            )
        })?;
        if !targets.contains(&target) {
            targets.push(target);
        }
        if mode == RouteMode::FirstMatch {
            break;
        }
    }
    if targets.is_empty() {
        targets.push(id.clone());
    }
    Ok(targets)
}

/// A piece of a target.
enum Piece<'a> {
    Text(&'a str),
    Group(usize),
    Named(&'a str),
}

fn expand(rule: &RouteRule, captures: &Captures<'_>) -> Result<String> {
    let mut out = String::new();
    for piece in pieces(&rule.sink_table, rule).map_err(|why| invalid(rule, &why))? {
        match piece {
            Piece::Text(text) => out.push_str(text),
            // A group of an alternative that did not match is empty.
            Piece::Group(index) => out.push_str(captures.get(index).map_or("", |m| m.as_str())),
            Piece::Named(name) => out.push_str(captures.name(name).map_or("", |m| m.as_str())),
        }
    }
    Ok(out)
}

/// Splits `$1`, `${name}` and backslash escapes out of a target. Digits go on as long as there is such a group.
fn pieces<'a>(target: &'a str, rule: &RouteRule) -> Result<Vec<Piece<'a>>, String> {
    let groups = rule.source_table.groups();
    let mut pieces = Vec::new();
    let mut rest = target;
    while let Some(at) = rest.find(['$', '\\']) {
        pieces.push(Piece::Text(&rest[..at]));
        let (mark, after) = rest[at..].split_at(1);
        if mark == "\\" {
            let next = after.chars().next().ok_or("the target ends in a lone backslash")?;
            let (literal, tail) = after.split_at(next.len_utf8());
            pieces.push(Piece::Text(literal));
            rest = tail;
            continue;
        }
        if let Some(braced) = after.strip_prefix('{') {
            let (name, tail) = braced.split_once('}').ok_or("`${` is not closed")?;
            let known = rule.source_table.regex().capture_names().flatten().any(|n| n == name);
            if !known {
                return Err(format!("the pattern has no group named `{name}`"));
            }
            pieces.push(Piece::Named(name));
            rest = tail;
            continue;
        }
        let mut found: Option<(usize, usize)> = None;
        for length in 1..=after.bytes().take_while(u8::is_ascii_digit).count() {
            match after[..length].parse::<usize>() {
                Ok(index) if length == 1 || index <= groups => found = Some((index, length)),
                _ => break,
            }
        }
        match found {
            None => {
                return Err(
                    "`$` stands before a group number or {name}; write `\\$` for the character".into()
                );
            }
            Some((index, _)) if index > groups => {
                return Err(format!("`${index}`: the pattern has {groups} groups"));
            }
            Some((index, length)) => {
                pieces.push(Piece::Group(index));
                rest = &after[length..];
            }
        }
    }
    pieces.push(Piece::Text(rest));
    Ok(pieces)
}

fn invalid(rule: &RouteRule, why: &str) -> Error {
    Error::new(
        Code::ExpressionInvalid,
        format!("route `{}` to `{}`: {why}", rule.source_table.text(), rule.sink_table),
    )
}

#[cfg(test)]
mod tests;
