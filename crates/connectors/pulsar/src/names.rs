//! Owns the names of topics: what users write, what the broker wants, and the short form in positions.

/// What stands before the names of topics of the default namespace, which are written without it.
const DEFAULT: &str = "persistent://public/default/";
/// What stands between the name of a partitioned topic and the number of a partition.
const PARTITION: &str = "-partition-";

/// The whole name of a topic: `persistent://tenant/namespace/topic`.
///
/// # Errors
/// When it is no name of a topic that is kept.
pub(crate) fn whole(name: &str) -> Result<String, String> {
    if name.starts_with("non-persistent://") {
        return Err(format!(
            "`{name}` is not kept by the broker, so it cannot be read again after a failure"
        ));
    }
    let rest = name.strip_prefix("persistent://").unwrap_or(name);
    let parts: Vec<&str> = rest.split('/').collect();
    let wrong = || {
        format!("`{name}` is not `topic`, `tenant/namespace/topic` or `persistent://tenant/namespace/topic`")
    };
    if parts.iter().any(|part| part.is_empty()) {
        return Err(wrong());
    }
    match parts[..] {
        [topic] if rest == name => Ok(format!("{DEFAULT}{topic}")),
        [_, _, _] => Ok(format!("persistent://{rest}")),
        _ => Err(wrong()),
    }
}

/// The name without what goes without saying.
pub(crate) fn short(whole: &str) -> &str {
    let name = whole.strip_prefix(DEFAULT).or_else(|| whole.strip_prefix("persistent://"));
    name.unwrap_or(whole)
}

/// `tenant/namespace` of a whole name.
pub(crate) fn namespace(whole: &str) -> &str {
    let rest = whole.strip_prefix("persistent://").unwrap_or(whole);
    rest.rsplit_once('/').map_or(rest, |(namespace, _)| namespace)
}

/// The last part of a whole name.
pub(crate) fn local(whole: &str) -> &str {
    whole.rsplit_once('/').map_or(whole, |(_, local)| local)
}

/// The name of a partition.
pub(crate) fn partition(topic: &str, number: u32) -> String {
    format!("{topic}{PARTITION}{number}")
}

/// The topic that a partition belongs to; a topic without partitions is its own.
pub(crate) fn topic_of(name: &str) -> &str {
    match name.rsplit_once(PARTITION) {
        Some((topic, number)) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => topic,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_whole_and_short() {
        for (name, expect, brief) in [
            ("orders", "persistent://public/default/orders", "orders"),
            ("a/b/orders", "persistent://a/b/orders", "a/b/orders"),
            ("persistent://a/b/orders", "persistent://a/b/orders", "a/b/orders"),
            ("persistent://public/default/x", "persistent://public/default/x", "x"),
        ] {
            let found = whole(name).unwrap();
            assert_eq!((found.as_str(), short(&found)), (expect, brief), "{name}");
            assert_eq!(whole(short(&found)).unwrap(), found);
        }
        for name in ["", "a/b", "a//b", "a/b/c/d", "persistent://orders", "non-persistent://a/b/c"] {
            assert!(whole(name).is_err(), "{name}");
        }
    }

    #[test]
    fn partitions_belong_to_topics() {
        assert_eq!(partition("t", 3), "t-partition-3");
        assert_eq!(topic_of("t-partition-3"), "t");
        assert_eq!(topic_of("t-partition-x"), "t-partition-x");
        assert_eq!(topic_of("t-partition-"), "t-partition-");
        assert_eq!(namespace("persistent://a/b/t"), "a/b");
        assert_eq!(local("persistent://a/b/t"), "t");
    }
}
