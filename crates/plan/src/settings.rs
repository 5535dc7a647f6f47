//! Owns the step from the flat keys of a block to checked [`Options`]: unknown keys, keys that are not built yet,
//! one option under two names, values.

use std::collections::BTreeMap;

use canalis_connector_api::{ConnectorSpec, Options, Role, nearest};
use canalis_types::Code;

use crate::{
    document::Value,
    pipeline_options,
    problem::{Place, Report},
    secret::{self, SecretSource},
    section::{Section, not_a_text},
};

/// A key with its text.
pub(crate) struct Setting {
    pub(crate) key: String,
    pub(crate) place: Place,
    pub(crate) text: String,
    secrets: Vec<String>,
}

impl Setting {
    /// The text for messages; masked when it came from a reference.
    pub(crate) fn shown(&self) -> &str {
        if self.secrets.is_empty() { &self.text } else { "******" }
    }
}

/// The keys of a block that have a text.
pub(crate) struct Settings {
    block: Place,
    pub(crate) items: Vec<Setting>,
    /// Keys whose value is reported already; that they are missing now is no second problem.
    spoiled: Vec<Spoiled>,
}

struct Spoiled {
    key: String,
    place: Place,
    /// Whether the value is a mapping, so that the key is only the first part of what is meant.
    nested: bool,
}

/// What is left of settings after the check against a declaration.
pub(crate) struct Checked {
    /// Options made of all settings that are right; `None` when a required one is missing.
    pub(crate) options: Option<Options>,
    /// Whether every value is right (keys that are unknown do not count).
    pub(crate) values_right: bool,
}

impl Settings {
    /// Takes the texts of a block, except for the keys in `skip`. With `secrets`, references are replaced.
    pub(crate) fn read(
        section: &Section<'_>,
        skip: &[&str],
        secrets: Option<&dyn SecretSource>,
        report: &mut Report,
    ) -> Self {
        let mut settings = Self { block: section.place.clone(), items: Vec::new(), spoiled: Vec::new() };
        for entry in section.entries().iter().filter(|e| !skip.contains(&&*e.key)) {
            let place = section.place.key(&entry.key, entry.mark);
            let key = entry.key.clone();
            let text = match &entry.value.value {
                Value::Null => continue,
                Value::Scalar(text) => text.clone(),
                other => {
                    not_a_text(&key, other, &place, report);
                    let nested = matches!(other, Value::Mapping(_));
                    settings.spoiled.push(Spoiled { key, place, nested });
                    continue;
                }
            };
            let Some(source) = secrets else {
                settings.items.push(Setting { key, place, text, secrets: Vec::new() });
                continue;
            };
            let resolved = secret::resolve(&text, &key, &place, source, report);
            if resolved.failed {
                settings.spoiled.push(Spoiled { key, place, nested: false });
            } else {
                settings.items.push(Setting { key, place, text: resolved.text, secrets: resolved.secrets });
            }
        }
        settings
    }

    /// Takes one key out.
    pub(crate) fn take(&mut self, key: &str) -> Option<Setting> {
        let at = self.items.iter().position(|s| s.key == key)?;
        Some(self.items.remove(at))
    }

    /// Whether the key had a value that is reported already.
    pub(crate) fn is_spoiled(&self, key: &str) -> bool {
        self.spoiled.iter().any(|s| s.key == key)
    }

    /// Whether the option had a value, under whatever name, that is reported already.
    fn spoils(&self, spec: &ConnectorSpec, role: Role, key: &str) -> bool {
        let names = |given: &str| given == key || spec.option(given, role).is_some_and(|o| o.key == key);
        self.spoiled.iter().any(|s| names(&s.key))
    }

    /// The setting of an option, under whatever name it is given.
    pub(crate) fn of_option(&self, spec: &ConnectorSpec, role: Role, key: &str) -> Option<&Setting> {
        self.items
            .iter()
            .find(|s| s.key == key)
            .or_else(|| self.items.iter().find(|s| spec.option(&s.key, role).is_some_and(|o| o.key == key)))
    }

    /// Checks against a declaration. `owner` is what messages call the block.
    pub(crate) fn check(
        &mut self,
        spec: &ConnectorSpec,
        role: Role,
        owner: &str,
        report: &mut Report,
    ) -> Checked {
        self.screen_keys(spec, role, owner, report);
        let mut raw: BTreeMap<String, String> =
            self.items.iter().map(|s| (s.key.clone(), s.text.clone())).collect();
        let mut values_right = self.spoiled.is_empty();
        let mut options = match Options::validate(spec, role, &raw) {
            Ok(options) => Some(options),
            Err(problems) => {
                for (key, message) in problems {
                    raw.remove(&key);
                    if !self.spoils(spec, role, &key) {
                        values_right = false;
                        self.report(spec, role, &key, &message, report);
                    }
                }
                Options::validate(spec, role, &raw).ok()
            }
        };
        if let Some(options) = &mut options {
            for setting in self.items.iter().filter(|s| !s.secrets.is_empty()) {
                let key = spec.option(&setting.key, role).map_or(setting.key.as_str(), |o| o.key);
                options.mark_secret(key);
            }
        }
        Checked { options, values_right }
    }

    /// Reports what is wrong with an option, at its key; values that came from references are masked.
    pub(crate) fn report(
        &self,
        spec: &ConnectorSpec,
        role: Role,
        key: &str,
        message: &str,
        report: &mut Report,
    ) {
        let setting = self.of_option(spec, role, key);
        let mut message = message.to_owned();
        for secret in setting.into_iter().flat_map(|s| &s.secrets).filter(|s| !s.is_empty()) {
            message = message.replace(secret.as_str(), "******");
        }
        let place = setting.map_or_else(|| self.block.key(key, self.block.mark), |s| s.place.clone());
        let code =
            if message.contains("not supported yet") { Code::NotSupportedYet } else { Code::PipelineInvalid };
        report.refuse(&place, code, message);
    }

    /// Reports and drops keys that no option has, that are not built yet, or that name an option a second time.
    fn screen_keys(&mut self, spec: &ConnectorSpec, role: Role, owner: &str, report: &mut Report) {
        let mut seen: BTreeMap<&'static str, String> = BTreeMap::new();
        self.items.retain(|Setting { key, place, .. }| {
            if let Some(option) = spec.option(key, role) {
                if let Some(why) = option.not_yet {
                    report.not_yet(place, format!("`{key}` is not supported yet: {why}"));
                    return false;
                }
                if let Some(first) = seen.insert(option.key, key.clone()) {
                    report.invalid(place, format!("`{key}` and `{first}` are two names of the same option"));
                    return false;
                }
                return true;
            }
            match spec.prefixes.iter().find(|(p, _)| key.len() > p.len() && key.starts_with(p)) {
                Some((_, None)) => true,
                Some((prefix, Some(why))) => {
                    report.not_yet(
                        place,
                        format!("`{key}` is not supported yet: options under `{prefix}`: {why}"),
                    );
                    false
                }
                None => {
                    unknown(spec, role, owner, key, place, report);
                    false
                }
            }
        });
        for Spoiled { key, place, nested } in &self.spoiled {
            let known =
                spec.option(key, role).is_some() || spec.prefixes.iter().any(|(p, _)| key.starts_with(p));
            if !known && !nested {
                unknown(spec, role, owner, key, place, report);
            }
        }
    }
}

fn unknown(spec: &ConnectorSpec, role: Role, owner: &str, key: &str, place: &Place, report: &mut Report) {
    let problem = report.invalid(place, format!("{owner} has no option `{key}`"));
    if let Some(hint) = advice(spec, role, key) {
        problem.hint(hint);
    }
}

/// What may have been meant by a key that no option has.
fn advice(spec: &ConnectorSpec, role: Role, key: &str) -> Option<String> {
    let other = match role {
        Role::Source => Role::Sink,
        _ => Role::Source,
    };
    if key == "<<" {
        return Some("YAML merge keys are not supported; write the keys out".into());
    }
    if role != Role::Both && pipeline_options().iter().any(|o| o.key == key || o.aliases.contains(&key)) {
        return Some("it belongs under `pipeline`".into());
    }
    if spec.option(key, other).is_some() {
        let name = if other == Role::Source { "source" } else { "sink" };
        return Some(format!("it is an option of the `{}` {name}", spec.name));
    }
    let tables = spec.option("tables", role).is_some();
    if tables && matches!(key, "database-name" | "table-name" | "database" | "table") {
        return Some(r"tables are chosen by `tables`, for example `tables: app_db.\.*`".into());
    }
    let known = spec
        .options
        .iter()
        .filter(|o| o.role.allows(role))
        .flat_map(|o| std::iter::once(o.key).chain(o.aliases.iter().copied()));
    nearest(key, known).map(|word| format!("did you mean `{word}`?"))
}
