//! Owns the whole of a pipeline file: its top-level keys, and what its blocks must agree on.

use canalis_connector_api::{Boundedness, Registry, Role, nearest};
use canalis_transforms::TransformOptions;
use canalis_types::Code;

use crate::{
    Problem, SchemaChangePolicy, SecretSource, ValidatedPlan,
    connector::{self, Context},
    document::{self, Mark, Node, Value},
    pipeline::{self, Pipeline, pipeline_options},
    plan::ConnectorInstance,
    problem::{Place, Report},
    route, schema_changes,
    section::{Section, list},
    transform::{self, Expressions},
};

const KEYS: [&str; 5] = ["source", "sink", "transform", "route", "pipeline"];

/// Reads a pipeline definition in YAML or JSON and checks everything that can be checked without looking at a live
/// system. Does no IO but through `secrets`.
///
/// # Errors
/// All problems of the file, in order of the file; never empty. A text that is not YAML has one problem, the first.
pub fn parse(
    text: &str,
    registry: &Registry,
    secrets: &dyn SecretSource,
) -> Result<ValidatedPlan, Vec<Problem>> {
    let mut report = Report::default();
    let plan = document::read(text, &mut report)
        .and_then(|root| read(&root, &Context { registry, secrets }, &mut report));
    if plan.is_none() && !report.has_problems() {
        report.refuse(&top(), Code::Internal, "the file was refused without a reason");
    }
    let (problems, warnings) = report.finish();
    match plan {
        Some(plan) if problems.is_empty() => Ok(ValidatedPlan { warnings, ..plan }),
        _ => Err(problems),
    }
}

fn top() -> Place {
    Place { mark: Mark { line: 1, column: 1 }, path: String::new() }
}

fn read(root: &Node, ctx: &Context<'_>, report: &mut Report) -> Option<ValidatedPlan> {
    let place = Place { mark: root.mark, ..top() };
    let file = match &root.value {
        // An empty file lacks its blocks, which says more than that it is no mapping.
        Value::Null => Section::empty(place),
        _ => Section::of(root, place, "a pipeline definition", report)?,
    };
    check_top_level(&file, report);
    let pipeline = read_pipeline(&file, report)?;
    let source = block(&file, "source", report)
        .and_then(|section| connector::read(&section, Role::Source, ctx, report));
    let sink_section = block(&file, "sink", report);
    let accepted = sink_section.as_ref().map(|section| schema_changes::accepted(section, report));
    let sink = sink_section.and_then(|section| connector::read(&section, Role::Sink, ctx, report));

    let expressions = if pipeline.extended { Expressions::TakeUnseen } else { Expressions::Check };
    let mut transforms = Vec::new();
    for (node, place) in
        items(&file, "transform", "write `transform:` and below it `- source-table: …`", report)
    {
        transforms.extend(transform::read(node, place, expressions, report));
    }
    let mut routes = Vec::new();
    for (node, place) in items(&file, "route", "write `route:` and below it `- source-table: …`", report) {
        routes.extend(route::read(node, place, report));
    }
    if let (Some(place), Some(source)) = (&pipeline.batch, &source) {
        check_bounded(source, place, ctx.registry, report);
    }

    let (source, sink) = (source?, sink?);
    let metadata = source.options.text("metadata.list").unwrap_or_default();
    let metadata = metadata.split(',').map(str::trim).filter(|m| !m.is_empty()).map(str::to_owned).collect();
    Some(ValidatedPlan {
        name: pipeline.name,
        source,
        sink,
        transforms,
        routes,
        transform_options: TransformOptions {
            time_zone: pipeline.time_zone,
            route_mode: pipeline.route_mode,
            metadata,
        },
        schema_changes: SchemaChangePolicy { behavior: pipeline.behavior, accepted: accepted? },
        runtime: pipeline.runtime,
        warnings: Vec::new(),
    })
}

fn check_top_level(file: &Section<'_>, report: &mut Report) {
    for entry in file.entries().iter().filter(|e| !KEYS.contains(&&*e.key)) {
        let key = entry.key.as_str();
        let problem = report
            .invalid(&file.place_of(key), format!("a pipeline definition has no top-level key `{key}`"));
        let in_pipeline = matches!(key, "model" | "user-defined-function")
            || pipeline_options().iter().any(|o| o.key == key || o.aliases.contains(&key));
        if in_pipeline {
            problem.hint("it belongs under `pipeline`");
        } else if key == "<<" {
            problem.hint("YAML merge keys are not supported; write the keys out");
        } else {
            match nearest(key, KEYS.into_iter()) {
                Some(word) => problem.hint(format!("did you mean `{word}`?")),
                None => problem.hint("there are `source`, `sink`, `transform`, `route` and `pipeline`"),
            }
        }
    }
    for key in ["source", "sink"] {
        if file.entry(key).is_none() {
            report.invalid(&file.place_of(key), format!("the block `{key}` is missing"));
        }
    }
}

/// A top-level mapping; one without a value is reported.
fn block<'a>(file: &Section<'a>, key: &str, report: &mut Report) -> Option<Section<'a>> {
    let entry = file.entry(key)?;
    Section::of(&entry.value, file.place_of(key), &format!("`{key}`"), report)
}

fn read_pipeline(file: &Section<'_>, report: &mut Report) -> Option<Pipeline> {
    let section =
        block(file, "pipeline", report).unwrap_or_else(|| Section::empty(file.place_of("pipeline")));
    match pipeline::read(&section, report) {
        Ok(pipeline) => Some(pipeline),
        Err(error) => {
            report.refuse(&section.place, error.code(), error.message());
            None
        }
    }
}

/// Entries of a top-level list; anything but a list is reported.
fn items<'a>(file: &Section<'a>, key: &str, example: &str, report: &mut Report) -> Vec<(&'a Node, Place)> {
    let Some(entry) = file.entry(key) else { return Vec::new() };
    let place = file.place_of(key);
    let nodes = list(entry, &place, example, report).unwrap_or_default();
    nodes.iter().enumerate().map(|(index, node)| (&**node, place.item(index, node.mark))).collect()
}

fn check_bounded(source: &ConnectorInstance, place: &Place, registry: &Registry, report: &mut Report) {
    let Some(connector) = registry.get(&source.connector) else { return };
    match connector.source(&source.options) {
        Ok(made) if made.boundedness() == Boundedness::Bounded => {}
        Ok(_) => report
            .invalid(place, "`execution.runtime-mode: BATCH` needs a source that ends by itself")
            .hint("set `scan.startup.mode: snapshot` under `source`, or leave the mode at STREAMING"),
        Err(error) => {
            report.refuse(place, error.code(), error.message());
        }
    }
}
