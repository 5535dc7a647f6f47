//! Owns names: the directory of a table, visible and hidden names of its files, and how those of a job are told apart.

use std::{
    fmt::Write,
    time::{SystemTime, UNIX_EPOCH},
};

use canalis_types::{TableId, temporal};

const HIDDEN_SUFFIX: &str = ".inprogress";

/// Directory of a table below the sink's path: its id, with bytes that would part names as `%XX`.
pub(crate) fn table_directory(table: &TableId) -> String {
    let parts = [table.namespace.as_deref(), table.schema.as_deref(), Some(table.table.as_str())];
    let mut out = String::new();
    for part in parts.into_iter().flatten() {
        if !out.is_empty() {
            out.push('.');
        }
        for character in part.chars() {
            if character.is_control() || matches!(character, '/' | '\\' | '.' | '%' | ':') {
                let mut bytes = [0; 4];
                for byte in character.encode_utf8(&mut bytes).bytes() {
                    write!(out, "%{byte:02X}").expect("writing to a string cannot fail");
                }
            } else {
                out.push(character);
            }
        }
    }
    out
}

/// The part of file names that belongs to a job.
pub(crate) fn job_tag(job: &str) -> String {
    // FNV-1a, 32 bits: stable by definition.
    let hash = job.bytes().fold(0x811c_9dc5_u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
    format!("{hash:08x}")
}

/// Beginning of the names of all files that one opening of a writer makes: time, job, writer. Names sort by time, and never
/// come again after a restart, even when their files have been taken away.
pub(crate) fn prefix(now: SystemTime, tag: &str, writer: usize) -> String {
    let micros = now.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros());
    let mut text = Vec::new();
    temporal::write_datetime(&mut text, i64::try_from(micros).unwrap_or(i64::MAX), 6);
    let digits = |b: &u8| match b {
        b' ' => Some('T'),
        b if b.is_ascii_digit() => Some(char::from(*b)),
        _ => None,
    };
    let stamp: String = text.iter().filter_map(digits).collect();
    format!("{stamp}-{tag}-{writer}")
}

/// The name under which a file is written before it is published.
pub(crate) fn hidden(visible: &str) -> String {
    format!(".{visible}{HIDDEN_SUFFIX}")
}

/// Whether a name is one of an unpublished file of the job with this tag.
pub(crate) fn is_hidden_of(name: &str, tag: &str) -> bool {
    name.strip_prefix('.')
        .and_then(|n| n.strip_suffix(HIDDEN_SUFFIX))
        .is_some_and(|n| n.split('-').nth(1) == Some(tag))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn directories_keep_tables_apart() {
        for (id, expect) in [
            (TableId::new("shop", "orders"), "shop.orders"),
            (TableId::new("a.b", "c"), "a%2Eb.c"),
            (TableId::bare("../x"), "%2E%2E%2Fx"),
            (TableId::bare("100%"), "100%25"),
            (TableId::bare("订单"), "订单"),
        ] {
            assert_eq!(table_directory(&id), expect);
        }
    }

    #[test]
    fn hidden_names_tell_their_job() {
        let tag = job_tag("job");
        let prefix = prefix(UNIX_EPOCH + Duration::from_millis(1_767_225_600_123), &tag, 3);
        assert_eq!(prefix, format!("20260101T000000123000-{tag}-3"));
        let name = hidden(&format!("{prefix}-000001.jsonl"));
        assert!(name.starts_with('.') && is_hidden_of(&name, &tag));
        assert!(!is_hidden_of(&name, &job_tag("other")) && !is_hidden_of(&name[1..], &tag));
    }
}
