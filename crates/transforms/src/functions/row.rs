//! Owns the frame of functions that work row by row: NULL in any argument gives NULL, everything else is one closure.

use std::{borrow::Cow, sync::Arc};

use arrow_array::{
    Array, ArrayRef,
    builder::{BinaryBuilder, BooleanBuilder, Float64Builder, Int64Builder, StringBuilder},
    cast::AsArray,
    types::{Float64Type, Int64Type, TimestampMicrosecondType},
};
use arrow_schema::{ArrowError, DataType};
use canalis_types::LogicalType;

use crate::{
    call::{Argument, Kernel, Volatility, refuse},
    compile::typed::{Typed, call},
};

/// Longest text that a function may make, in bytes.
pub(super) const LONGEST: usize = 64 << 20;

/// The arguments of one row; none of them is NULL.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    arguments: &'a [Argument],
    row: usize,
}

impl<'a> Row<'a> {
    /// Number of arguments.
    pub fn len(&self) -> usize {
        self.arguments.len()
    }

    /// A text argument.
    pub fn text(&self, index: usize) -> &'a str {
        let argument = &self.arguments[index];
        argument.array.as_string::<i32>().value(argument.at(self.row))
    }

    /// The bytes of a text or binary argument.
    pub fn bytes(&self, index: usize) -> &'a [u8] {
        let argument = &self.arguments[index];
        match argument.array.data_type() {
            DataType::Binary => argument.array.as_binary::<i32>().value(argument.at(self.row)),
            _ => self.text(index).as_bytes(),
        }
    }

    /// A whole number.
    pub fn integer(&self, index: usize) -> i64 {
        let argument = &self.arguments[index];
        argument.array.as_primitive::<Int64Type>().value(argument.at(self.row))
    }

    /// A DOUBLE.
    pub fn float(&self, index: usize) -> f64 {
        let argument = &self.arguments[index];
        argument.array.as_primitive::<Float64Type>().value(argument.at(self.row))
    }

    /// Microseconds of a local date-time or instant.
    pub fn micros(&self, index: usize) -> i64 {
        let argument = &self.arguments[index];
        argument.array.as_primitive::<TimestampMicrosecondType>().value(argument.at(self.row))
    }

    fn of(arguments: &'a [Argument], row: usize) -> Option<Self> {
        arguments.iter().all(|a| !a.is_null(row)).then_some(Self { arguments, row })
    }
}

/// What a function gives for one row.
type Cell<T> = Result<Option<T>, ArrowError>;

/// A function with a text result.
pub(super) fn text_rows(
    name: &str,
    arguments: &[Typed],
    ty: LogicalType,
    compute: impl for<'a> Fn(Row<'a>) -> Cell<Cow<'a, str>> + Send + Sync + 'static,
) -> Result<Typed, String> {
    let kernel: Kernel = Arc::new(move |arguments, rows| {
        let mut out = StringBuilder::with_capacity(rows, rows * 16);
        let mut bytes: usize = 0;
        for row in 0..rows {
            match Row::of(arguments, row).map(&compute).transpose()?.flatten() {
                None => out.append_null(),
                Some(text) => {
                    bytes += text.len();
                    // Offsets of a column are 32 bits wide.
                    if text.len() > LONGEST || i32::try_from(bytes).is_err() {
                        return Err(refuse("the resulting text is too long"));
                    }
                    out.append_value(text);
                }
            }
        }
        Ok(Arc::new(out.finish()) as ArrayRef)
    });
    call(name, arguments, ty, Volatility::Pure, kernel)
}

/// A function with a binary result.
pub(super) fn binary_rows(
    name: &str,
    arguments: &[Typed],
    compute: impl for<'a> Fn(Row<'a>) -> Cell<Vec<u8>> + Send + Sync + 'static,
) -> Result<Typed, String> {
    let kernel: Kernel = Arc::new(move |arguments, rows| {
        let mut out = BinaryBuilder::with_capacity(rows, rows * 16);
        for row in 0..rows {
            out.append_option(Row::of(arguments, row).map(&compute).transpose()?.flatten());
        }
        Ok(Arc::new(out.finish()) as ArrayRef)
    });
    call(name, arguments, LogicalType::Bytes, Volatility::Pure, kernel)
}

/// A function that writes its text into a buffer, which is one for all rows.
pub(super) fn written_rows(
    name: &str,
    arguments: &[Typed],
    ty: LogicalType,
    write: impl for<'a> Fn(Row<'a>, &mut String) + Send + Sync + 'static,
) -> Result<Typed, String> {
    let kernel: Kernel = Arc::new(move |arguments, rows| {
        let mut out = StringBuilder::with_capacity(rows, rows * 16);
        let (mut text, mut bytes) = (String::new(), 0_usize);
        for row in 0..rows {
            let Some(row) = Row::of(arguments, row) else {
                out.append_null();
                continue;
            };
            text.clear();
            write(row, &mut text);
            bytes += text.len();
            if i32::try_from(bytes).is_err() {
                return Err(refuse("the resulting text is too long"));
            }
            out.append_value(&text);
        }
        Ok(Arc::new(out.finish()) as ArrayRef)
    });
    call(name, arguments, ty, Volatility::Pure, kernel)
}

/// A function with a whole number as its result.
pub(super) fn integer_rows(
    name: &str,
    arguments: &[Typed],
    compute: impl for<'a> Fn(Row<'a>) -> Cell<i64> + Send + Sync + 'static,
) -> Result<Typed, String> {
    let kernel: Kernel = Arc::new(move |arguments, rows| {
        let mut out = Int64Builder::with_capacity(rows);
        for row in 0..rows {
            out.append_option(Row::of(arguments, row).map(&compute).transpose()?.flatten());
        }
        Ok(Arc::new(out.finish()) as ArrayRef)
    });
    call(name, arguments, LogicalType::Int64, Volatility::Pure, kernel)
}

/// A function with a DOUBLE as its result; infinity and NaN refuse the row.
pub(super) fn float_rows(
    name: &str,
    arguments: &[Typed],
    compute: impl for<'a> Fn(Row<'a>) -> f64 + Send + Sync + 'static,
) -> Result<Typed, String> {
    let kernel: Kernel = Arc::new(move |arguments, rows| {
        let mut out = Float64Builder::with_capacity(rows);
        for row in 0..rows {
            match Row::of(arguments, row).map(&compute) {
                None => out.append_null(),
                Some(value) if value.is_finite() => out.append_value(value),
                Some(_) => return Err(refuse("the function has no finite value there")),
            }
        }
        Ok(Arc::new(out.finish()) as ArrayRef)
    });
    call(name, arguments, LogicalType::Float64, Volatility::Pure, kernel)
}

/// A function with a boolean result.
pub(super) fn boolean_rows(
    name: &str,
    arguments: &[Typed],
    compute: impl for<'a> Fn(Row<'a>) -> Cell<bool> + Send + Sync + 'static,
) -> Result<Typed, String> {
    let kernel: Kernel = Arc::new(move |arguments, rows| {
        let mut out = BooleanBuilder::with_capacity(rows);
        for row in 0..rows {
            out.append_option(Row::of(arguments, row).map(&compute).transpose()?.flatten());
        }
        Ok(Arc::new(out.finish()) as ArrayRef)
    });
    call(name, arguments, LogicalType::Boolean, Volatility::Pure, kernel)
}

/// A position or length in memory; negative is 0.
pub(super) fn count(number: i64) -> usize {
    usize::try_from(number.max(0)).unwrap_or(usize::MAX)
}

/// A length as a whole number.
pub(super) fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
