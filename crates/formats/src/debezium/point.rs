//! Owns the coordinates that Debezium writes beside the WKB of a point.

/// `x` and `y` of a point in WKB; `None` for anything else.
pub(super) fn coordinates(wkb: &[u8]) -> Option<(f64, f64)> {
    let (order, rest) = wkb.split_first()?;
    let (kind, rest) = rest.split_first_chunk::<4>()?;
    let (x, rest) = rest.split_first_chunk::<8>()?;
    let y = rest.first_chunk::<8>()?;
    match order {
        0 if u32::from_be_bytes(*kind) == 1 => Some((f64::from_be_bytes(*x), f64::from_be_bytes(*y))),
        1 if u32::from_le_bytes(*kind) == 1 => Some((f64::from_le_bytes(*x), f64::from_le_bytes(*y))),
        _ => None,
    }
}
