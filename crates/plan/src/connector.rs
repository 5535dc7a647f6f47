//! Owns the blocks `source` and `sink`: the connector is known, has the role, and takes the options.

use canalis_connector_api::{Connector, Registry, Role};

use crate::{
    plan::ConnectorInstance,
    problem::Report,
    secret::SecretSource,
    section::Section,
    settings::{Setting, Settings},
};

/// Keys of `sink` that are lists and belong to the pipeline, not to the connector.
pub(crate) const SCHEMA_CHANGE_KEYS: [&str; 2] = ["include.schema.changes", "exclude.schema.changes"];

/// Types of Flink CDC pipelines that a later release brings.
const SOURCES_TO_COME: &[&str] =
    &["postgres", "oracle", "sqlserver", "mongodb", "oceanbase", "db2", "tidb", "vitess", "fluss", "values"];
const SINKS_TO_COME: &[&str] = &[
    "kafka",
    "doris",
    "starrocks",
    "paimon",
    "iceberg",
    "elasticsearch",
    "fluss",
    "hudi",
    "oceanbase",
    "maxcompute",
    "values",
];

/// What reading a block needs.
pub(crate) struct Context<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) secrets: &'a dyn SecretSource,
}

/// Reads `source` or `sink`. `None` when anything in it is wrong, which is then in the report.
pub(crate) fn read(
    section: &Section<'_>,
    role: Role,
    ctx: &Context<'_>,
    report: &mut Report,
) -> Option<ConnectorInstance> {
    if role == Role::Source {
        for entry in section.entries().iter().filter(|e| SCHEMA_CHANGE_KEYS.contains(&&*e.key)) {
            report
                .invalid(&section.place_of(&entry.key), format!("`source` has no option `{}`", entry.key))
                .hint("it belongs under `sink`");
        }
    }
    let mut settings = Settings::read(section, &SCHEMA_CHANGE_KEYS, Some(ctx.secrets), report);
    let name = settings.take("name").map(|s| s.text);
    let Some(kind) = settings.take("type") else {
        if !settings.is_spoiled("type") {
            let known = known_types(ctx.registry, role);
            report
                .invalid(&section.place_of("type"), format!("`{}` needs `type`", block(role)))
                .hint(format!("one of {known}"));
        }
        return None;
    };
    let connector = find(&kind, role, ctx.registry, report)?;
    let spec = connector.spec();
    let owner = format!("the `{}` {}", spec.name, block(role));
    let checked = settings.check(spec, role, &owner, report);
    let options = checked.options?;
    if !checked.values_right {
        return None;
    }
    let problems = connector.validate(role, &options);
    for (key, message) in &problems {
        settings.report(spec, role, key, message, report);
    }
    problems.is_empty().then(|| ConnectorInstance { connector: spec.name.to_owned(), name, options })
}

/// Name of the block of a role.
pub(crate) fn block(role: Role) -> &'static str {
    if role == Role::Sink { "sink" } else { "source" }
}

fn find<'a>(
    setting: &Setting,
    role: Role,
    registry: &'a Registry,
    report: &mut Report,
) -> Option<&'a dyn Connector> {
    let (kind, place) = (setting.shown(), &setting.place);
    let connector = registry.get(&setting.text);
    if let Some(connector) = connector.filter(|c| c.spec().role.allows(role)) {
        return Some(&**connector);
    }
    let block = block(role);
    let to_come = if role == Role::Sink { SINKS_TO_COME } else { SOURCES_TO_COME };
    let known = known_types(registry, role);
    if to_come.contains(&kind) {
        let problem = report.not_yet(place, format!("the {block} type `{kind}` is not supported yet"));
        match (kind, role) {
            ("values", Role::Sink) => problem.hint("use `print` to see rows or `blackhole` to drop them"),
            ("values", _) => problem.hint("use `datagen` for generated rows"),
            _ => problem.hint(format!("there are {known}")),
        }
    } else if connector.is_some() {
        report
            .invalid(place, format!("`{kind}` cannot be used as a {block}"))
            .hint(format!("{block} types are {known}"));
    } else {
        let problem = report.invalid(place, format!("there is no {block} type `{kind}`"));
        let candidates = registry.iter().map(|c| c.spec()).filter(|s| s.role.allows(role)).map(|s| s.name);
        match canalis_connector_api::nearest(kind, candidates) {
            Some(word) => problem.hint(format!("did you mean `{word}`? {block} types are {known}")),
            None => problem.hint(format!("{block} types are {known}")),
        }
    }
    None
}

fn known_types(registry: &Registry, role: Role) -> String {
    let names: Vec<String> = registry
        .iter()
        .filter(|c| c.spec().role.allows(role))
        .map(|c| format!("`{}`", c.spec().name))
        .collect();
    names.join(", ")
}
