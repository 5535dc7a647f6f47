//! Owns the block `route`: which source tables go to which target.

use canalis_connector_api::RoutePattern;
use canalis_transforms::RouteRule;
use canalis_types::TableId;

use crate::{
    document::Node,
    problem::{Place, Report},
    section::Section,
};

const WHAT: &str = "a `route` entry";
const KEYS: [&str; 4] = ["source-table", "sink-table", "replace-symbol", "description"];

/// Reads one entry. `None` when it is wrong, which is then in the report.
pub(crate) fn read(node: &Node, place: Place, report: &mut Report) -> Option<RouteRule> {
    let section = Section::of(node, place, WHAT, report)?;
    section.check_keys(&KEYS, WHAT, report);
    section.text("description", report);
    let source = section.required("source-table", WHAT, report);
    let target = section.required("sink-table", WHAT, report);
    let symbol = section.text("replace-symbol", report);
    let pattern = source.and_then(|text| source_table(text, &section, report));
    if let Some(target) = target {
        match symbol {
            Some(symbol) => check_symbol(target, symbol, &section, report),
            None => check_groups(target, pattern.as_ref(), &section, report),
        }
    }
    Some(RouteRule {
        source_table: pattern?,
        sink_table: target?.to_owned(),
        replace_symbol: symbol.map(str::to_owned),
    })
}

fn source_table(text: &str, section: &Section<'_>, report: &mut Report) -> Option<RoutePattern> {
    let place = section.place_of("source-table");
    match RoutePattern::parse(text) {
        Ok(pattern) => {
            if pattern.looks_mistaken() {
                report
                    .warn(
                        &place,
                        format!("`{text}` holds `.*` after a plain dot and so matches literal dots only"),
                    )
                    .hint(r"write `\.*` for any text, as in `app_db.\.*`");
            }
            Some(pattern)
        }
        Err(message) => {
            report.invalid(&place, message);
            None
        }
    }
}

fn check_symbol(target: &str, symbol: &str, section: &Section<'_>, report: &mut Report) {
    if symbol.is_empty() {
        report.invalid(&section.place_of("replace-symbol"), "`replace-symbol` must not be empty");
        return;
    }
    let place = section.place_of("sink-table");
    if !target.contains(symbol) {
        report.warn(
            &section.place_of("replace-symbol"),
            format!("`{symbol}` does not occur in `sink-table`, so every table goes to `{target}`"),
        );
    }
    let rest = target.replace(symbol, "x");
    check_id(target, &rest, &place, report);
    if rest.contains('$') {
        report.warn(&place, "with `replace-symbol`, a `$` in `sink-table` is taken literally");
    }
}

/// Checks group references against the groups of the pattern; without a pattern only the form of the id is checked.
fn check_groups(target: &str, pattern: Option<&RoutePattern>, section: &Section<'_>, report: &mut Report) {
    let place = section.place_of("sink-table");
    match expand(target, pattern) {
        Ok(sample) => check_id(target, &sample, &place, report),
        Err((message, hint)) => {
            let problem = report.invalid(&place, message);
            problem.hint = hint;
        }
    }
}

fn check_id(target: &str, sample: &str, place: &Place, report: &mut Report) {
    if TableId::parse(sample).is_none() {
        report
            .invalid(place, format!("`{target}` is not a table id"))
            .hint("write `table`, `schema.table` or `namespace.schema.table`");
    }
}

/// The target with `x` for every group: `$1`, `${name}`, `\$` for a dollar. A group number takes as many digits as
/// there are groups for, as in the original.
fn expand(target: &str, pattern: Option<&RoutePattern>) -> Result<String, (String, Option<String>)> {
    let groups = pattern.map_or(usize::MAX, RoutePattern::groups);
    let mut sample = String::new();
    let mut rest = target.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' => sample
                .push(rest.next().ok_or_else(|| (format!("`{target}` ends in a lone backslash"), None))?),
            '$' => {
                match rest.next() {
                    Some(digit @ '0'..='9') => {
                        let mut number =
                            usize::try_from(digit.to_digit(10).unwrap_or_default()).unwrap_or_default();
                        if number > groups {
                            return Err(no_group(&number.to_string(), pattern));
                        }
                        while let Some(next) = rest.peek().and_then(|c| c.to_digit(10)) {
                            let longer = number
                                .saturating_mul(10)
                                .saturating_add(usize::try_from(next).unwrap_or_default());
                            if longer > groups {
                                break;
                            }
                            number = longer;
                            rest.next();
                        }
                    }
                    Some('{') => {
                        let mut name = String::new();
                        loop {
                            match rest.next() {
                                Some('}') => break,
                                Some(c) => name.push(c),
                                None => return Err((format!("in `{target}` a `${{` is not closed"), None)),
                            }
                        }
                        let known =
                            |p: &RoutePattern| p.regex().capture_names().flatten().any(|group| group == name);
                        if !pattern.is_none_or(known) {
                            return Err(no_group(&name, pattern));
                        }
                    }
                    _ => {
                        return Err((
                            format!("in `{target}` a `$` is not followed by the number or name of a group"),
                            Some(r"write `\$` for a dollar sign".into()),
                        ));
                    }
                }
                sample.push('x');
            }
            other => sample.push(other),
        }
    }
    Ok(sample)
}

fn no_group(group: &str, pattern: Option<&RoutePattern>) -> (String, Option<String>) {
    let text = pattern.map(RoutePattern::text).unwrap_or_default();
    let message = match pattern.map_or(0, RoutePattern::groups) {
        0 => format!("`sink-table` refers to group `{group}`, but `{text}` has no groups"),
        1 => format!("`sink-table` refers to group `{group}`, but `{text}` has 1 group"),
        many => format!("`sink-table` refers to group `{group}`, but `{text}` has {many} groups"),
    };
    (message, Some(r"put the part of `source-table` into parentheses, as in `db.(t_\.*)`".into()))
}
