//! Owns the rules of `cargo xtask tidy`; each module is one rule or a few of the same kind.

pub mod directions;
pub mod error_pages;
pub mod files;
pub mod invariants;
pub mod links;
pub mod lints;
pub mod machine_traces;

use crate::metadata::Metadata;
use crate::rules::error_pages::KnownCode;
use crate::tree::{Problem, Tree};

/// Everything that is wrong, in the order of the rules.
pub fn check(tree: &Tree, metadata: &Metadata, codes: &[KnownCode]) -> Vec<Problem> {
    let mut problems = directions::check(metadata);
    problems.extend(files::check(tree));
    problems.extend(error_pages::check(tree, codes));
    problems.extend(lints::check(tree, metadata));
    problems.extend(machine_traces::check(tree));
    problems.extend(links::check(tree));
    problems.extend(invariants::check(tree));
    problems
}
