//! Owns transforms: projection, filter, computed columns, masks as SQL expressions, and routes. Expressions are
//! planned once per table schema. The only crate that may use DataFusion.
//!
//! Must not know: connectors, the runtime.

mod rules;

pub use rules::{RouteMode, RouteRule, TransformOptions, TransformRule};
