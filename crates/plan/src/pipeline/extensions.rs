//! Owns `pipeline.user-defined-function` and `pipeline.model`: their form is checked, then they are refused, because
//! nothing runs them yet.

use std::collections::BTreeSet;

use crate::{
    document::{Entry, Node, Value},
    problem::{Place, Report},
    section::{Section, list, not_a_text},
};

/// The keys that hold them.
pub(super) const KEYS: [&str; 2] = ["user-defined-function", "model"];

/// Checks both. Returns whether the file declares any function or model.
pub(super) fn check(pipeline: &Section<'_>, report: &mut Report) -> bool {
    let [functions, models] = KEYS.map(|key| pipeline.entry(key).map(|e| (e, pipeline.place_of(key))));
    if let Some((entry, place)) = &functions {
        check_functions(entry, place, report);
    }
    if let Some((entry, place)) = &models {
        check_models(&entry.value, place, report);
    }
    functions.is_some() || models.is_some()
}

fn check_functions(entry: &Entry, place: &Place, report: &mut Report) {
    let example = "write a list: `user-defined-function: [{name: …, classpath: …}]`";
    let Some(items) = list(entry, place, example, report) else { return };
    for (index, item) in items.iter().enumerate() {
        let place = place.item(index, item.mark);
        if let Some(section) = Section::of(item, place, "a user-defined function", report) {
            check_function(&section, report);
        }
    }
    if !items.is_empty() {
        report
            .not_yet(place, "user-defined functions are not supported yet")
            .hint("the built-in functions are listed in the reference of transforms");
    }
}

fn check_function(section: &Section<'_>, report: &mut Report) {
    const WHAT: &str = "a user-defined function";
    const KEYS: [&str; 6] =
        ["name", "classpath", "python-code", "options", "python-executable", "python-files"];
    section.check_keys(&KEYS, WHAT, report);
    section.required("name", WHAT, report);
    let class = section.text("classpath", report).is_some();
    let python = section.text("python-code", report).is_some();
    if class == python {
        let both = if class { "both are given" } else { "neither is given" };
        report.invalid(
            &section.place,
            format!("{WHAT} needs exactly one of `classpath` and `python-code`, {both}"),
        );
        return;
    }
    let misplaced: &[&str] = if class { &["python-executable", "python-files"] } else { &["options"] };
    let other = if class { "python-code" } else { "classpath" };
    for key in misplaced.iter().filter(|k| section.value(k).is_some()) {
        report.invalid(&section.place_of(key), format!("`{key}` goes with `{other}` only"));
    }
    if let Some(options) = section.value("options").filter(|_| class) {
        check_options(options, section.place_of("options"), report);
    }
    if let Some(entry) =
        section.entry("python-files").filter(|_| python && section.value("python-files").is_some())
    {
        list(entry, &section.place_of("python-files"), "write `python-files: [a.py]`", report);
    }
}

fn check_models(node: &Node, place: &Place, report: &mut Report) {
    let mut names = BTreeSet::new();
    match &node.value {
        Value::Sequence(items) => {
            for (index, item) in items.iter().enumerate() {
                check_model(item, place.item(index, item.mark), &mut names, report);
            }
            if items.is_empty() {
                return;
            }
        }
        Value::Mapping(_) => check_model(node, place.clone(), &mut names, report),
        other => {
            report
                .invalid(place, format!("`model` must be a mapping or a list, here it is {}", other.kind()));
            return;
        }
    }
    report.not_yet(place, "models are not supported yet");
}

fn check_model(node: &Node, place: Place, names: &mut BTreeSet<String>, report: &mut Report) {
    const WHAT: &str = "a model";
    let Some(section) = Section::of(node, place, WHAT, report) else { return };
    let has = |key: &str| section.value(key).is_some();
    let legacy = has("model-name") && has("class-name");
    let current = has("name") || has("type");
    if legacy && current {
        report.invalid(
            &section.place,
            "a model takes either `model-name` and `class-name` or `name` and `type`, not both",
        );
        return;
    }
    let legacy = !current && (has("model-name") || has("class-name"));
    let (name_key, kind_key) = if legacy { ("model-name", "class-name") } else { ("name", "type") };
    section.required(kind_key, WHAT, report);
    if let Some(name) = section.required(name_key, WHAT, report) {
        check_name(name, &section.place_of(name_key), names, report);
    }
    let nested = section.value("options").filter(|_| !legacy);
    if let Some(options) = nested {
        check_options(options, section.place_of("options"), report);
    }
    for entry in section.entries() {
        let place = section.place_of(&entry.key);
        match &entry.value.value {
            Value::Null | Value::Scalar(_) => {}
            _ if entry.key == "options" && !legacy => continue,
            other => not_a_text(&entry.key, other, &place, report),
        }
        if let Some(Value::Mapping(inner)) = nested.map(|n| &n.value)
            && inner.iter().any(|o| o.key == entry.key)
        {
            report.invalid(&place, format!("`{}` is given here and under `options`", entry.key));
        }
    }
}

fn check_name(name: &str, place: &Place, names: &mut BTreeSet<String>, report: &mut Report) {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    let formed = name.starts_with(letter) && name.chars().all(|c| letter(c) || c.is_ascii_digit());
    if !formed || name.starts_with("__") {
        report
            .invalid(place, format!("`{name}` cannot be the name of a model"))
            .hint("letters, digits and `_`, beginning with no digit and not with `__`");
    } else if !names.insert(name.to_owned()) {
        report.invalid(place, format!("there are two models `{name}`"));
    }
}

fn check_options(node: &Node, place: Place, report: &mut Report) {
    let Some(section) = Section::of(node, place, "`options`", report) else { return };
    for entry in section.entries() {
        section.text(&entry.key, report);
    }
}
