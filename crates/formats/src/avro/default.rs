//! Owns defaults of fields, which schemas write as JSON, in their binary form.

use serde_json::Value;

use super::{
    read::DEPTH,
    schema::{Kind, Schema},
    write::{write_bytes, write_long},
};

/// Appends a default in the form of a value of its type; `None` when it is none of that type.
pub(super) fn encode(schema: &Schema, node: usize, value: &Value, out: &mut Vec<u8>) -> Option<()> {
    nested(schema, node, value, out, DEPTH)
}

fn nested(schema: &Schema, node: usize, value: &Value, out: &mut Vec<u8>, depth: usize) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    match (&schema.node(node).kind, value) {
        (Kind::Null, Value::Null) => {}
        (Kind::Boolean, Value::Bool(value)) => out.push(u8::from(*value)),
        (Kind::Int, Value::Number(number)) => {
            write_long(out, number.as_i64().filter(|n| i32::try_from(*n).is_ok())?);
        }
        (Kind::Long, Value::Number(number)) => write_long(out, number.as_i64()?),
        #[allow(clippy::cast_possible_truncation)] // The type says that it is a float.
        (Kind::Float, Value::Number(number)) => {
            out.extend_from_slice(&(number.as_f64()? as f32).to_le_bytes());
        }
        (Kind::Double, Value::Number(number)) => out.extend_from_slice(&number.as_f64()?.to_le_bytes()),
        (Kind::String, Value::String(text)) => write_bytes(out, text.as_bytes()),
        (Kind::Bytes, Value::String(text)) => write_bytes(out, &latin(text)?),
        (Kind::Fixed(size), Value::String(text)) => {
            out.extend_from_slice(&latin(text).filter(|bytes| bytes.len() == *size)?);
        }
        (Kind::Enum(symbols), Value::String(text)) => {
            write_long(out, i64::try_from(symbols.iter().position(|s| s == text)?).ok()?);
        }
        (Kind::Union(branches), value) => {
            // The first branch by the specification; later versions allow any.
            let start = out.len();
            for (index, branch) in branches.iter().enumerate() {
                write_long(out, i64::try_from(index).ok()?);
                if nested(schema, *branch, value, out, depth).is_some() {
                    return Some(());
                }
                out.truncate(start);
            }
            return None;
        }
        (Kind::Array(items), Value::Array(values)) => {
            if !values.is_empty() {
                write_long(out, i64::try_from(values.len()).ok()?);
                for value in values {
                    nested(schema, *items, value, out, depth)?;
                }
            }
            out.push(0);
        }
        (Kind::Map(items), Value::Object(values)) => {
            if !values.is_empty() {
                write_long(out, i64::try_from(values.len()).ok()?);
                for (key, value) in values {
                    write_bytes(out, key.as_bytes());
                    nested(schema, *items, value, out, depth)?;
                }
            }
            out.push(0);
        }
        (Kind::Record(fields), Value::Object(values)) => {
            for field in fields {
                let value = values.get(&field.name).or(field.default.as_ref())?;
                nested(schema, field.node, value, out, depth)?;
            }
        }
        _ => return None,
    }
    Some(())
}

/// Bytes are written as characters of their numbers.
fn latin(text: &str) -> Option<Vec<u8>> {
    text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect()
}
