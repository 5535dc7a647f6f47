//! Owns conversions between logical types, exact or refused: CAST, TRY_CAST and the implicit ones.

mod number;
mod text;
mod time;

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BinaryArray, cast::AsArray, new_null_array};
use arrow_schema::DataType;
use canalis_types::LogicalType;

use crate::{
    call::{Output, refuse},
    compile::types::{Family, family},
    zone::Zone,
};

pub(crate) use number::{decimal_from_text, validate};
pub(crate) use text::render;
pub(crate) use time::{parse_moment, truncate};

/// A conversion of a whole column; an error when any value does not fit.
pub(crate) type Cast = Arc<dyn Fn(&ArrayRef) -> Output + Send + Sync>;

/// Plans the conversion of values of `from` to `to`; `None` when the values are right as they are.
///
/// # Errors
/// The two types cannot be converted at all.
pub(crate) fn plan(from: &LogicalType, to: &LogicalType, zone: Zone) -> Result<Option<Cast>, String> {
    use Family::*;
    let (source, target) = (from.clone(), to.clone());
    let cast: Cast = match (family(from), family(to)) {
        (Text, Text) if !is_narrower(to, from) => return Ok(None),
        (Text, Text) => Arc::new(move |array| text::limited(array.clone(), &target)),
        (Binary, Binary) if from == to || *to == LogicalType::Bytes => return Ok(None),
        (Binary, Binary) => Arc::new(move |array| sized(array.clone(), &target)),
        (Text, Binary) => Arc::new(move |array| {
            let bytes: BinaryArray = array.as_string::<i32>().iter().map(|t| t.map(str::as_bytes)).collect();
            sized(Arc::new(bytes), &target)
        }),
        (_, Text) => Arc::new(move |array| text::limited(render(array, &source)?, &target)),
        _ if from == to => return Ok(None),
        (Text, Boolean | Integer | Decimal | Float) => Arc::new(move |array| number::parse(array, &target)),
        (Text, Date | Time | Timestamp | Instant) => Arc::new(move |array| time::parse(array, &target, zone)),
        (Boolean | Integer | Decimal | Float, Boolean | Integer | Decimal | Float) => {
            Arc::new(move |array| number::convert(array, &source, &target))
        }
        (Date | Timestamp | Instant, Date | Time | Timestamp | Instant) | (Time, Time) => {
            Arc::new(move |array| time::convert(array, &source, &target, zone))
        }
        _ => return Err(format!("{from} cannot be converted to {to}")),
    };
    Ok(Some(cast))
}

/// Runs a conversion so that values which do not fit become NULL.
pub(crate) fn tolerant(cast: &Cast, array: &ArrayRef, ty: &DataType) -> Output {
    match cast(array) {
        Ok(converted) => Ok(converted),
        Err(_) if array.len() <= 1 => Ok(new_null_array(ty, array.len())),
        Err(_) => {
            let half = array.len() / 2;
            let left = tolerant(cast, &array.slice(0, half), ty)?;
            let right = tolerant(cast, &array.slice(half, array.len() - half), ty)?;
            arrow_select::concat::concat(&[&left, &right])
        }
    }
}

/// Whether a text type has a length that values of the other may exceed.
fn is_narrower(to: &LogicalType, from: &LogicalType) -> bool {
    match (text_limit(to), text_limit(from)) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(to), Some(from)) => to < from,
    }
}

fn text_limit(ty: &LogicalType) -> Option<u32> {
    match ty {
        LogicalType::Char { length } | LogicalType::Varchar { length } => Some(*length),
        _ => None,
    }
}

/// Checks the lengths of bytes against the type.
fn sized(array: ArrayRef, ty: &LogicalType) -> Output {
    let fits = |length: usize| match ty {
        LogicalType::Binary { length: exact } => length == usize::try_from(*exact).unwrap_or(usize::MAX),
        LogicalType::Varbinary { length: most } => length <= usize::try_from(*most).unwrap_or(usize::MAX),
        _ => true,
    };
    if array.as_binary::<i32>().iter().flatten().all(|b| fits(b.len())) {
        Ok(array)
    } else {
        Err(refuse(format!("the length of the bytes does not fit {ty}")))
    }
}
