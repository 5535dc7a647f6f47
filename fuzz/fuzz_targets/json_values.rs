//! JSON values inside expressions: the first line is a path, the rest a document.
#![no_main]

use libfuzzer_sys::fuzz_target;

// The module itself: the crate around it would bring a whole engine for queries along, and does not export it.
#[path = "../../crates/transforms/src/json.rs"]
#[allow(dead_code)]
mod json;

fuzz_target!(|data: &[u8]| {
    let Ok(input) = std::str::from_utf8(data) else { return };
    let (path, text) = input.split_once('\n').unwrap_or(("$", input));
    let path = json::Path::parse(path);
    let found = json::document(text, false);
    if json::document(text, true).is_some() {
        assert!(found.is_some(), "strict about names only");
    }
    // Another parser agrees about what is JSON, but for what it cannot hold: large numbers, escapes of half a character
    // (which the grammar allows), deeper levels.
    let theirs = serde_json::from_str::<serde_json::Value>(text);
    match (&found, &theirs) {
        (Some(_), Err(error)) => {
            let why = error.to_string();
            let cannot_hold = ["number out of range", "surrogate", "hex escape", "recursion limit"];
            assert!(cannot_hold.iter().any(|reason| why.contains(reason)), "{why}");
        }
        (None, Ok(value)) => panic!("taken by another parser: {value}"),
        _ => {}
    }
    let Some(value) = found else { return };
    if let Ok(path) = path
        && let Some(part) = path.find(value)
    {
        assert_eq!(json::document(part, false), Some(part), "a part is a value");
    }
    for item in json::items(value).into_iter().flatten() {
        assert_eq!(json::document(item, false), Some(item), "an item is a value");
    }
    for (name, member) in json::members(value).into_iter().flatten() {
        assert_eq!(json::document(member, false), Some(member), "a member is a value");
        if let Some(plain) = json::string(name) {
            assert!(json::member(value, &plain).is_some(), "a member is found by its name");
        }
    }
    if let (Some(text), Ok(theirs)) = (json::string(value), theirs) {
        assert_eq!(theirs.as_str(), Some(&*text));
    }
});
