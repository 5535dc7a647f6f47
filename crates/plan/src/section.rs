//! Owns the reading of mappings: known keys, required keys, and single texts under them.

use std::rc::Rc;

use canalis_connector_api::nearest;

use crate::{
    document::{Entry, Node, Value},
    problem::{Place, Report},
};

/// A mapping of the file. A key without a value counts as absent.
pub(crate) struct Section<'a> {
    pub(crate) place: Place,
    entries: &'a [Entry],
}

impl<'a> Section<'a> {
    /// Takes a node as a mapping; anything else is reported with `what` as its name.
    pub(crate) fn of(node: &'a Node, place: Place, what: &str, report: &mut Report) -> Option<Self> {
        if let Value::Mapping(entries) = &node.value {
            return Some(Self { place, entries });
        }
        report.invalid(
            &place,
            format!("{what} must be a mapping of keys and values, here it is {}", node.value.kind()),
        );
        None
    }

    /// An empty mapping.
    pub(crate) fn empty(place: Place) -> Self {
        Self { place, entries: &[] }
    }

    /// All entries, in order.
    pub(crate) fn entries(&self) -> &'a [Entry] {
        self.entries
    }

    /// The entry of a key, also when it has no value.
    pub(crate) fn entry(&self, key: &str) -> Option<&'a Entry> {
        self.entries.iter().find(|e| e.key == key)
    }

    /// The value of a key.
    pub(crate) fn value(&self, key: &str) -> Option<&'a Node> {
        self.entry(key).map(|e| &*e.value).filter(|n| !matches!(n.value, Value::Null))
    }

    /// The place of a key; of the mapping itself when the key is absent.
    pub(crate) fn place_of(&self, key: &str) -> Place {
        self.place.key(key, self.entry(key).map_or(self.place.mark, |e| e.mark))
    }

    /// Reports all keys that are not known.
    pub(crate) fn check_keys(&self, known: &[&str], what: &str, report: &mut Report) {
        for entry in self.entries.iter().filter(|e| !known.contains(&&*e.key)) {
            let place = self.place.key(&entry.key, entry.mark);
            let problem = report.invalid(&place, format!("{what} has no key `{}`", entry.key));
            if entry.key == "<<" {
                problem.hint("YAML merge keys are not supported; write the keys out");
            } else {
                problem.did_you_mean(nearest(&entry.key, known.iter().copied()));
            }
        }
    }

    /// The text of a key; a list or mapping is reported.
    pub(crate) fn text(&self, key: &str, report: &mut Report) -> Option<&'a str> {
        match &self.value(key)?.value {
            Value::Scalar(text) => Some(text),
            other => {
                not_a_text(key, other, &self.place_of(key), report);
                None
            }
        }
    }

    /// The text of a key that must be there and not be blank.
    pub(crate) fn required(&self, key: &str, what: &str, report: &mut Report) -> Option<&'a str> {
        if self.value(key).is_none() {
            report.invalid(&self.place_of(key), format!("{what} needs `{key}`"));
            return None;
        }
        let text = self.text(key, report)?;
        if text.trim().is_empty() {
            report.invalid(&self.place_of(key), format!("`{key}` must not be empty"));
            return None;
        }
        Some(text)
    }
}

/// Takes the value of a key as a list; anything else is reported with an example of one.
pub(crate) fn list<'a>(
    entry: &'a Entry,
    place: &Place,
    example: &str,
    report: &mut Report,
) -> Option<&'a [Rc<Node>]> {
    if let Value::Sequence(items) = &entry.value.value {
        return Some(items);
    }
    report
        .invalid(place, format!("`{}` must be a list, here it is {}", entry.key, entry.value.value.kind()))
        .hint(example);
    None
}

/// Reports a list or mapping where one text is wanted.
pub(crate) fn not_a_text(key: &str, value: &Value, place: &Place, report: &mut Report) {
    let problem = report.invalid(place, format!("`{key}` takes a single value, here it is {}", value.kind()));
    match value {
        // Values may be secrets and are repeated for table patterns only.
        Value::Sequence(items) if key.starts_with("tables") || key == "source-table" => {
            let texts: Vec<&str> = items
                .iter()
                .filter_map(|n| if let Value::Scalar(text) = &n.value { Some(text.as_str()) } else { None })
                .collect();
            problem.hint(format!("write one text: `{}`", texts.join(", ")));
        }
        Value::Sequence(_) => problem.hint("write one text, items separated by commas"),
        Value::Mapping(entries) => {
            if let Some(first) = first_leaf(entries) {
                problem.hint(format!("keys are not nested: write `{key}.{first}: …`"));
            }
        }
        Value::Null | Value::Scalar(_) => {}
    }
}

fn first_leaf(entries: &[Entry]) -> Option<String> {
    let first = entries.first()?;
    match &first.value.value {
        Value::Mapping(inner) => Some(format!("{}.{}", first.key, first_leaf(inner)?)),
        _ => Some(first.key.clone()),
    }
}
