//! Owns functions that read the clock: one moment for all rows of a batch.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use arrow_array::{ArrayRef, Date32Array, DurationMicrosecondArray, Int64Array, TimestampMicrosecondArray};
use canalis_types::{LogicalType, temporal::MICROS_PER_DAY};

use super::Function;
use crate::{
    call::{Kernel, Output, Volatility, refuse},
    cast::truncate,
    compile::{Context, Typed, typed::call},
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("CURRENT_TIMESTAMP", 0, 0, now),
    Function::new("NOW", 0, 0, now),
    Function::new("CURRENT_DATE", 0, 0, current_date),
    Function::new("LOCALDATE", 0, 0, current_date),
    Function::new("LOCALTIMESTAMP", 0, 0, local_timestamp),
    Function::new("LOCALTIME", 0, 0, local_time),
    Function::new("CURRENT_TIME", 0, 0, local_time),
    Function::new("UNIX_TIMESTAMP", 0, 2, super::time::unix_timestamp),
];

fn clock() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

fn reading(
    name: &str,
    ty: LogicalType,
    read: impl Fn(i64) -> Option<ArrayRef> + Send + Sync + 'static,
) -> Result<Typed, String> {
    let kernel: Kernel = Arc::new(move |_, _| -> Output {
        read(clock()).ok_or_else(|| refuse("the clock is off the calendar"))
    });
    call(name, &[], ty, Volatility::PerBatch, kernel)
}

fn now(_: &Context, _: Vec<Typed>) -> Result<Typed, String> {
    reading("NOW", LogicalType::TimestampTz { precision: 3 }, |micros| {
        let now = TimestampMicrosecondArray::from(vec![truncate(micros, 3)]).with_timezone("UTC");
        Some(Arc::new(now))
    })
}

fn local_timestamp(context: &Context, _: Vec<Typed>) -> Result<Typed, String> {
    let zone = context.zone;
    reading("LOCALTIMESTAMP", LogicalType::Timestamp { precision: 3 }, move |micros| {
        Some(Arc::new(TimestampMicrosecondArray::from(vec![truncate(zone.local(micros)?, 3)])))
    })
}

fn local_time(context: &Context, _: Vec<Typed>) -> Result<Typed, String> {
    let zone = context.zone;
    reading("LOCALTIME", LogicalType::Time { precision: 0 }, move |micros| {
        let time = zone.local(micros)?.rem_euclid(MICROS_PER_DAY);
        Some(Arc::new(DurationMicrosecondArray::from(vec![truncate(time, 0)])))
    })
}

fn current_date(context: &Context, _: Vec<Typed>) -> Result<Typed, String> {
    let zone = context.zone;
    reading("CURRENT_DATE", LogicalType::Date, move |micros| {
        let days = i32::try_from(zone.local(micros)?.div_euclid(MICROS_PER_DAY)).ok()?;
        Some(Arc::new(Date32Array::from(vec![days])))
    })
}

/// Seconds since the epoch.
pub(super) fn unix_now() -> Result<Typed, String> {
    reading("UNIX_TIMESTAMP", LogicalType::Int64, |micros| {
        Some(Arc::new(Int64Array::from(vec![micros.div_euclid(1_000_000)])))
    })
}
