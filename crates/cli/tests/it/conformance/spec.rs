//! Specifications: keys are unique, defaults are values, secrets are masked, and the user guide has every option.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use canalis_connector_api::{ConnectorSpec, Options, Role};

use super::lab::registry;

fn roles(spec: &ConnectorSpec) -> impl Iterator<Item = Role> {
    [Role::Source, Role::Sink].into_iter().filter(|role| spec.role.allows(*role))
}

#[test]
fn option_keys_are_unique_in_each_role() {
    for connector in registry().iter() {
        let spec = connector.spec();
        for role in roles(spec) {
            let mut seen = BTreeSet::new();
            for option in spec.options.iter().filter(|option| option.role.allows(role)) {
                for key in [option.key].iter().chain(option.aliases) {
                    assert!(seen.insert(*key), "`{}` has the option `{key}` twice as a {role:?}", spec.name);
                }
            }
        }
        for option in spec.options {
            let stands = roles(spec).any(|role| option.role.allows(role));
            assert!(stands, "`{}` of `{}` can stand nowhere", option.key, spec.name);
            assert!(!option.doc.is_empty(), "`{}` of `{}` says nothing", option.key, spec.name);
        }
    }
}

#[test]
fn defaults_are_values_and_required_options_have_none() {
    for connector in registry().iter() {
        let spec = connector.spec();
        for role in roles(spec) {
            let options = spec.options.iter().filter(|option| option.role.allows(role));
            let required: Vec<&str> =
                options.clone().filter(|option| option.required).map(|option| option.key).collect();
            match Options::validate(spec, role, &BTreeMap::new()) {
                Ok(_) => assert!(required.is_empty(), "`{}` does without {required:?}", spec.name),
                Err(problems) => {
                    let missing: Vec<&str> = problems.iter().map(|(key, _)| key.as_str()).collect();
                    assert_eq!(missing, required, "`{}` as a {role:?}", spec.name);
                }
            }
            for option in options {
                let place = format!("`{}` of `{}`", option.key, spec.name);
                assert!(!(option.required && option.default.is_some()), "{place} is required with a default");
                let (None, Some(default)) = (option.not_yet, option.default) else { continue };
                // Given as a value the default must pass the same checks, or `plan` and the file would differ.
                let given = BTreeMap::from([(option.key.to_owned(), default.to_owned())]);
                let problems = Options::validate(spec, role, &given).err().unwrap_or_default();
                assert!(problems.iter().all(|(key, _)| key != option.key), "{place}: {problems:?}");
            }
        }
    }
}

#[test]
fn passwords_are_secret_and_unbuilt_options_are_refused_with_a_reason() {
    for connector in registry().iter() {
        let spec = connector.spec();
        for option in spec.options {
            let place = format!("`{}` of `{}`", option.key, spec.name);
            let sounds_secret = ["password", "secret", "token"].iter().any(|word| option.key.contains(word));
            assert!(!sounds_secret || option.secret, "{place} is not masked");
            let Some(why) = option.not_yet else { continue };
            for role in roles(spec).filter(|role| option.role.allows(*role)) {
                let given = BTreeMap::from([(option.key.to_owned(), "x".to_owned())]);
                let problems = Options::validate(spec, role, &given).unwrap_err();
                assert!(
                    problems.iter().any(|(key, text)| key == option.key && text.contains(why)),
                    "{place}"
                );
            }
        }
    }
}

/// The pages of a connector, `NAME.md` and `NAME-….md`; `None` without the first.
fn pages(name: &str) -> Option<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/connectors");
    let mut text = std::fs::read_to_string(directory.join(format!("{name}.md"))).ok()?;
    for entry in std::fs::read_dir(&directory).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&format!("{name}-")) {
            text.push_str(&std::fs::read_to_string(entry.path()).unwrap());
        }
    }
    // The formats of messages have one page for all brokers.
    if text.contains("(../formats.md)") {
        text.push_str(&std::fs::read_to_string(directory.join("../formats.md")).unwrap());
    }
    Some(text)
}

#[test]
fn the_user_guide_has_every_option() {
    let mut missing = Vec::new();
    for connector in registry().iter() {
        let spec = connector.spec();
        let place = format!("docs/connectors/{}.md", spec.name);
        let Some(text) = pages(spec.name) else {
            missing.push(place);
            continue;
        };
        let built = spec.options.iter().filter(|option| option.not_yet.is_none());
        let unmentioned = built.filter(|option| !mentions(&text, option.key));
        missing.extend(unmentioned.map(|option| format!("{place}: `{}`", option.key)));
    }
    assert!(missing.is_empty(), "the user guide lacks\n{}", missing.join("\n"));
}

/// Whether a page has a key in backticks, alone or with a value; of neighbours with one beginning, the second may be
/// shortened to `.end`.
fn mentions(page: &str, key: &str) -> bool {
    let neighbours = |full: &str, beginning: &str| {
        full.strip_prefix(beginning)
            .and_then(|end| end.strip_prefix('.'))
            .is_some_and(|end| !end.contains('.'))
    };
    page.lines().any(|line| {
        let words = line.split('`').skip(1).step_by(2);
        let words: Vec<&str> = words.map(|word| word.split(':').next().unwrap_or(word)).collect();
        words.iter().any(|word| {
            let beginning = word.starts_with('.').then(|| key.strip_suffix(word)).flatten();
            *word == key || beginning.is_some_and(|b| words.iter().any(|other| neighbours(other, b)))
        })
    })
}

#[test]
fn mentions_are_found_whole_and_shortened() {
    let page = "text `a.b` and `c: false`\n| `scan.offset.file`, `.pos` | `.size` |\n";
    for (key, expect) in [
        ("a.b", true),
        ("c", true),
        ("b", false),
        ("scan.offset.file", true),
        ("scan.offset.pos", true),
        ("scan.pos", false),
        ("other.size", false),
    ] {
        assert_eq!(mentions(page, key), expect, "{key}");
    }
}
