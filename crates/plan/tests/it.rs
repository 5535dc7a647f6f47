//! Pipeline files against a small registry of declared connectors that never connect.

#[path = "it/arbitrary.rs"]
mod arbitrary;
#[path = "it/connectors.rs"]
mod connectors;
#[path = "it/harness.rs"]
mod harness;
#[path = "it/invalid.rs"]
mod invalid;
#[path = "it/pipeline_block.rs"]
mod pipeline_block;
#[path = "it/published_examples.rs"]
mod published_examples;
#[path = "it/rules.rs"]
mod rules;
#[path = "it/secrets.rs"]
mod secrets;
#[path = "it/yaml.rs"]
mod yaml;
