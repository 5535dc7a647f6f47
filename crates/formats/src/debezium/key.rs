//! Owns the message key: names of the key columns, and their values where a tombstone has nothing else.

use super::{
    connect_schema::{Field, owned},
    envelope::Member,
    wrapper::{Wrapped, members},
};
use crate::json::scan::Value;

/// Names of the columns in a message key, in its order; `None` when the key is no object, so tells no names. What stands
/// before the payload goes with them where the key has a schema: keys that begin so have the same columns.
pub(super) fn names(key: &[u8]) -> Option<(Vec<String>, Vec<u8>)> {
    let mut wrapped = Wrapped::open(key, &[]).ok()?;
    if let Some(schema) = wrapped.schema
        && wrapped.braced
    {
        let schema = Field::parse(schema).ok()?;
        let head = key[..wrapped.scanner.position()].to_vec();
        let names: Vec<String> = schema.fields.into_iter().map(|f| f.field).collect();
        return (!names.is_empty()).then_some((names, head));
    }
    let mut names = Vec::new();
    if !wrapped.scanner.take(b'{') {
        return None;
    }
    members(&mut wrapped.scanner, |name, scanner| {
        names.push(owned(name)?);
        scanner.value()?;
        Ok(())
    })
    .ok()?;
    (!names.is_empty()).then_some((names, Vec::new()))
}

/// Members of a message key; none when it is no object.
pub(super) fn parts<'a>(key: &'a [u8], out: &mut Vec<Member<'a>>) {
    out.clear();
    let Ok(mut wrapped) = Wrapped::open(key, &[]) else { return };
    if !wrapped.scanner.take(b'{') {
        return;
    }
    let taken = members(&mut wrapped.scanner, |name, scanner| {
        let value = scanner.value()?;
        if value != Value::Null {
            out.push(Member { name, value });
        }
        Ok(())
    });
    if taken.is_err() {
        out.clear();
    }
}

/// Whether a message key has exactly these names in this order.
pub(super) fn is_of(key: &[u8], names: &[String]) -> bool {
    let Ok(mut wrapped) = Wrapped::open(key, &[]) else { return names.is_empty() };
    if !wrapped.scanner.take(b'{') {
        return names.is_empty();
    }
    let (mut expected, mut same) = (names.iter(), true);
    let taken = members(&mut wrapped.scanner, |name, scanner| {
        same &= expected.next().is_some_and(|n| n.as_bytes() == name.raw);
        scanner.value()?;
        Ok(())
    });
    taken.is_ok() && same && expected.next().is_none()
}
