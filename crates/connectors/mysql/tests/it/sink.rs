//! The sink on real servers.
#![allow(clippy::unwrap_used)] // Helpers of tests are tests too.

#[path = "sink/families.rs"]
mod families;
#[path = "sink/keyed.rs"]
mod keyed;
#[path = "sink/keyless.rs"]
mod keyless;
#[path = "sink/progress.rs"]
mod progress;
#[path = "sink/refusals.rs"]
mod refusals;
#[path = "sink/structure.rs"]
mod structure;
#[path = "sink/support.rs"]
pub mod support;
#[path = "sink/values.rs"]
mod values;
