//! Owns the declaration of the connector, and the checks that involve more than one option.

mod source;

use canalis_connector_api::{
    ConnectorSpec, DeliveryGuarantee, OptionSpec,
    OptionType::{Duration, Integer, Text},
    Options, Role, TableSelector,
};

pub(crate) use source::{SourceOptions, StartupMode};

use crate::{
    sink::SINK_OPTIONS,
    tls::{self, TLS_OPTIONS},
};

/// Declaration of `type: mysql`.
pub(crate) static SPEC: ConnectorSpec = ConnectorSpec {
    name: "mysql",
    role: Role::Both,
    summary: "MySQL 8 and 9, MariaDB 10.11 and later: snapshot and binlog as a source; tables as a sink.",
    options: &OPTIONS,
    prefixes: &[
        ("jdbc.properties.", Some("there is no JDBC driver; only its properties of encryption are taken")),
        ("debezium.", Some("there is no Debezium engine whose properties could be set")),
    ],
    guarantee: DeliveryGuarantee::ExactlyOnce,
};

const SHARED_OPTIONS: &[OptionSpec] = &[
    OptionSpec::new("hostname", Text, Role::Both, "Host name or address of the server.").required(),
    OptionSpec::new("port", Integer { min: 1, max: 65_535 }, Role::Both, "Port of the server.")
        .default("3306"),
    OptionSpec::new("username", Text, Role::Both, "Account.").required(),
    OptionSpec::new("password", Text, Role::Both, "Password of the account; may be empty.")
        .required()
        .secret(),
    OptionSpec::new("connect.timeout", Duration, Role::Both, "Longest wait for a connection.").default("30s"),
];

const LENGTH: usize =
    SHARED_OPTIONS.len() + TLS_OPTIONS.len() + source::SOURCE_OPTIONS.len() + SINK_OPTIONS.len();

const OPTIONS: [OptionSpec; LENGTH] = joined();

const fn joined() -> [OptionSpec; LENGTH] {
    let mut all = [SHARED_OPTIONS[0]; LENGTH];
    let mut at = 0;
    let parts = [SHARED_OPTIONS, TLS_OPTIONS, source::SOURCE_OPTIONS, SINK_OPTIONS];
    let mut part = 0;
    while part < parts.len() {
        let mut index = 0;
        while index < parts[part].len() {
            all[at] = parts[part][index];
            at += 1;
            index += 1;
        }
        part += 1;
    }
    all
}

/// Problems of a source definition that involve more than the form of one value.
pub(crate) fn validate_source(options: &Options) -> Vec<(String, String)> {
    let mut problems = Vec::new();
    let mut note = |key: &str, message: String| problems.push((key.to_owned(), message));
    for key in ["tables", "tables.exclude"] {
        let Some(text) = options.text(key) else { continue };
        match TableSelector::parse(text) {
            Err(why) => note(key, format!("`{key}`: {why}")),
            Ok(selector) if selector.piece_counts().any(|n| n < 2) => note(
                key,
                format!(
                    "`{key}: {text}`: a pattern needs a database and a table, as in `app_db.orders` or `app_db.\\.*`"
                ),
            ),
            Ok(_) => {}
        }
    }
    // Values whose behaviour is not built: only the other one is taken.
    for (key, only, why) in source::FIXED {
        if options.boolean(key).is_ok_and(|value| value != *only) {
            note(key, format!("`{key}: {}` is not supported yet: {why}", !only));
        }
    }
    for (key, check) in source::TEXT_CHECKS {
        if let Some(Err(why)) = options.text(key).map(check) {
            note(key, format!("`{key}`: {why}"));
        }
    }
    if options.duration("connect.timeout").is_ok_and(|t| t.as_millis() < 250) {
        note("connect.timeout", "`connect.timeout` must be at least 250 ms".into());
    }
    if let (Ok(low), Ok(high)) = (
        options.required(source::FACTOR_LOWER).map(str::parse::<f64>),
        options.required(source::FACTOR_UPPER).map(str::parse::<f64>),
    ) && let (Ok(low), Ok(high)) = (low, high)
        && low > high
    {
        note(source::FACTOR_LOWER, format!("`{}` is above `{}`", source::FACTOR_LOWER, source::FACTOR_UPPER));
    }
    problems.extend(tls::problems(options));
    problems.extend(source::startup_problems(options));
    problems
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn validate(extra: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut raw: BTreeMap<String, String> =
            [("hostname", "h"), ("username", "u"), ("password", ""), ("tables", r"a.\.*")]
                .into_iter()
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .collect();
        raw.extend(extra.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
        match Options::validate(&SPEC, Role::Source, &raw) {
            Ok(options) => validate_source(&options),
            Err(problems) => problems,
        }
    }

    #[test]
    fn option_keys_are_unique_per_role() {
        for role in [Role::Source, Role::Sink] {
            let keys: Vec<&str> =
                SPEC.options.iter().filter(|o| o.role.allows(role)).map(|o| o.key).collect();
            assert_eq!(keys.len(), keys.iter().collect::<BTreeSet<_>>().len());
        }
    }

    #[test]
    fn sound_definitions_have_no_problem() {
        for extra in [
            &[][..],
            &[("server-id", "5400-5404"), ("server-time-zone", "Asia/Shanghai")],
            &[("server-id", "5400"), ("server-time-zone", "+08:00")],
            &[("scan.startup.mode", "SNAPSHOT"), ("scan.incremental.snapshot.chunk.size", "2")],
            &[("scan.startup.mode", "timestamp"), ("scan.startup.timestamp-millis", "1700000000000")],
            &[
                ("scan.startup.mode", "specific-offset"),
                ("scan.startup.specific-offset.file", "bin.000003"),
                ("scan.startup.specific-offset.pos", "4"),
            ],
            &[
                ("scan.startup.mode", "specific-offset"),
                ("scan.startup.specific-offset.gtid-set", "24da1670-c0de-11ee-8000-000000000001:1-77"),
            ],
            &[
                ("scan.newly-added-table.enabled", "false"),
                ("scan.incremental.snapshot.backfill.skip", "true"),
            ],
            &[("scan.incremental.snapshot.chunk.key-column", r"a.\.*:id; b.t:k")],
        ] {
            assert_eq!(validate(extra), [], "{extra:?}");
        }
    }

    #[test]
    fn unsound_definitions_name_the_key() {
        for (key, value) in [
            ("tables", "orders"),
            ("tables", "app_db.*"),
            ("tables.exclude", "["),
            ("server-id", "x"),
            ("server-id", "9-5"),
            ("server-id", "0"),
            ("server-time-zone", "Mars/Olympus"),
            ("scan.startup.mode", "sometimes"),
            ("scan.startup.specific-offset.skip-rows", "1"),
            ("scan.newly-added-table.enabled", "true"),
            ("scan.parse.online.schema.changes.enabled", "true"),
            ("use.legacy.json.format", "true"),
            ("schema-change.enabled", "false"),
            ("scan.incremental.snapshot.chunk.size", "1"),
            ("scan.incremental.snapshot.chunk.key-column", "a.b"),
            ("jdbc.properties.useCompression", "true"),
            ("debezium.snapshot.mode", "never"),
            ("host", "h"),
            ("connect.timeout", "10ms"),
            ("chunk-key.even-distribution.factor.lower-bound", "1.5"),
        ] {
            let problems = validate(&[(key, value)]);
            assert!(problems.iter().any(|(k, _)| k == key), "{key}: {value} gave {problems:?}");
        }
        let problems = validate(&[("scan.startup.mode", "timestamp")]);
        assert_eq!(problems[0].0, "scan.startup.timestamp-millis");
        let problems = validate(&[("scan.startup.mode", "specific-offset")]);
        assert_eq!(problems[0].0, "scan.startup.mode");
        let problems = validate(&[
            ("scan.startup.mode", "specific-offset"),
            ("scan.startup.specific-offset.file", "bin.000003"),
        ]);
        assert_eq!(problems[0].0, "scan.startup.specific-offset.pos");
    }
}
