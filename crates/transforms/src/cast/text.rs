//! Owns conversions to text.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, StringArray, builder::StringBuilder, cast::AsArray};
use canalis_batch::cell_to_text;
use canalis_types::LogicalType;

use super::text_limit;
use crate::{
    call::{Output, refuse},
    compile::types::{Family, family},
};

/// The canonical text of each value; bytes are read as UTF-8.
pub(crate) fn render(array: &ArrayRef, ty: &LogicalType) -> Output {
    match family(ty) {
        Family::Text => Ok(array.clone()),
        Family::Binary => {
            let mut out = StringBuilder::with_capacity(array.len(), array.len() * 16);
            for bytes in array.as_binary::<i32>() {
                let text = bytes.map(std::str::from_utf8).transpose();
                out.append_option(text.map_err(|_| refuse("bytes are not UTF-8 text"))?);
            }
            Ok(Arc::new(out.finish()))
        }
        _ => Ok(Arc::new(StringArray::from_iter((0..array.len()).map(|row| cell_to_text(array, ty, row))))),
    }
}

/// Checks lengths against CHAR(n) and VARCHAR(n).
pub(super) fn limited(array: ArrayRef, ty: &LogicalType) -> Output {
    let Some(limit) = text_limit(ty) else { return Ok(array) };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    // A text has at most as many characters as bytes.
    let fits = |text: &str| text.len() <= limit || text.chars().count() <= limit;
    if array.as_string::<i32>().iter().flatten().all(fits) {
        Ok(array)
    } else {
        Err(refuse(format!("text is longer than {ty}")))
    }
}
