//! Owns the block `source` of a batch's messages, and the times at their end.

use canalis_types::TableId;

use super::DebeziumEncoderOptions;
use crate::json::string::write_string;

/// Appends `,"source":{…},"transaction":null,"op":"` for rows of a table. `commit_ms` is the commit time; `None` for rows of a
/// snapshot, which get the time of now.
pub(super) fn write_source(
    out: &mut Vec<u8>,
    id: &TableId,
    options: &DebeziumEncoderOptions,
    commit_ms: Option<i64>,
    now_ns: i128,
) {
    let millis = commit_ms.map_or(now_ns / 1_000_000, i128::from);
    out.extend_from_slice(br#","source":{"version":"#);
    write_string(out, options.version.as_bytes());
    out.extend_from_slice(br#","connector":""#);
    out.extend_from_slice(options.connector.name().as_bytes());
    out.extend_from_slice(br#"","name":"#);
    write_string(out, options.server_name.as_bytes());
    let snapshot = if commit_ms.is_none() { "true" } else { "false" };
    out.extend_from_slice(format!(r#","ts_ms":{millis},"snapshot":"{snapshot}","db":"#).as_bytes());
    write_string(out, id.schema.as_deref().unwrap_or_default().as_bytes());
    out.extend_from_slice(
        format!(r#","sequence":null,"ts_us":{},"ts_ns":{},"table":"#, millis * 1_000, millis * 1_000_000)
            .as_bytes(),
    );
    write_string(out, id.table.as_bytes());
    // A batch does not carry where in the source's log its rows stand.
    out.extend_from_slice(
        br#","server_id":0,"gtid":null,"file":"","pos":0,"row":0,"thread":null,"query":null},"transaction":null,"op":""#,
    );
}

/// Appends what stands behind the operation: the times at which the message was made.
pub(super) fn write_times(out: &mut Vec<u8>, now_ns: i128) {
    let (millis, micros) = (now_ns / 1_000_000, now_ns / 1_000);
    out.extend_from_slice(format!(r#"","ts_ms":{millis},"ts_us":{micros},"ts_ns":{now_ns}}}"#).as_bytes());
}
