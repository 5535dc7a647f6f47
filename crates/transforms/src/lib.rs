//! Owns transforms: projection, filter, computed columns and masks as SQL expressions, and routes. Expressions are
//! planned once per table schema and then run over whole batches. The only crate that may use DataFusion.
//!
//! Must not know: connectors, the runtime.

mod apply;
mod call;
mod cast;
mod compile;
mod evaluate;
mod functions;
mod json;
mod layout;
mod merge;
mod nearest;
mod pattern;
mod plan_all;
mod route;
mod rules;
mod similar;
mod syntax;
mod table;
mod transforms;
mod zone;

pub use plan_all::Replanned;
pub use rules::{RouteMode, RouteRule, TransformOptions, TransformRule};
pub use syntax::{check_filter, check_projection};
pub use table::{Applied, TableTransform};
pub use transforms::Transforms;
