//! Owns pipeline definitions: text in YAML or JSON becomes a [`ValidatedPlan`], or all [`Problem`]s of the file
//! together, each with line and column. The grammar is that of Flink CDC pipelines with keys of our own beside it;
//! `docs/pipeline.md` is the reference.
//!
//! Must not know: IO (secrets come through [`SecretSource`]), the runtime.

mod connector;
mod document;
mod parse;
mod pipeline;
mod plan;
mod problem;
mod route;
mod schema_changes;
mod secret;
mod section;
mod settings;
mod transform;

pub use parse::parse;
pub use pipeline::pipeline_options;
pub use plan::{
    ConnectorInstance, DeadLetterFormat, DeadLetterMode, DeadLetterPolicy, RestartStrategy, RuntimeOptions,
    SchemaChangeBehavior, SchemaChangePolicy, ValidatedPlan,
};
pub use problem::Problem;
pub use secret::SecretSource;
