//! Connectors with the option table of the MySQL pipeline source and a few others, for the tests.

use async_trait::async_trait;
use canalis_connector_api::{
    Boundedness, Connector, ConnectorSpec, DeliveryGuarantee, Finding, OptionSpec, OptionType, Options,
    Registry, Role, Source, SourceContext, SourceRestore, SplitEnumerator, TableSelector,
};
use canalis_types::{Error, Result, TableSchema};
use std::sync::Arc;

const COUNT: OptionType = OptionType::Integer { min: 1, max: i64::MAX };
const NUMBER: OptionType = OptionType::Integer { min: 0, max: i64::MAX };
const PORT: OptionType = OptionType::Integer { min: 1, max: 65535 };

const fn of_source(key: &'static str, ty: OptionType) -> OptionSpec {
    OptionSpec::new(key, ty, Role::Source, "-")
}

const fn of_sink(key: &'static str, ty: OptionType) -> OptionSpec {
    OptionSpec::new(key, ty, Role::Sink, "-")
}

const fn of_both(key: &'static str, ty: OptionType) -> OptionSpec {
    OptionSpec::new(key, ty, Role::Both, "-")
}

static MYSQL: ConnectorSpec = ConnectorSpec {
    name: "mysql",
    role: Role::Both,
    summary: "-",
    options: &[
        of_both("hostname", OptionType::Text).required(),
        of_both("port", PORT).default("3306"),
        of_both("username", OptionType::Text).required(),
        of_both("password", OptionType::Text).required().secret(),
        of_source("tables", OptionType::Text).required(),
        of_source("tables.exclude", OptionType::Text),
        of_source("server-id", OptionType::Text),
        of_source("server-time-zone", OptionType::Text),
        of_source("scan.incremental.snapshot.chunk.size", COUNT).default("8096"),
        of_source("scan.incremental.snapshot.chunk.key-column", OptionType::Text),
        of_source(
            "scan.startup.mode",
            OptionType::Enum(&[
                "initial",
                "snapshot",
                "earliest-offset",
                "latest-offset",
                "specific-offset",
                "timestamp",
            ]),
        )
        .default("initial"),
        of_source("scan.startup.specific-offset.file", OptionType::Text),
        of_source("scan.startup.specific-offset.pos", NUMBER),
        of_source("scan.startup.specific-offset.gtid-set", OptionType::Text),
        of_source("connect.timeout", OptionType::Duration).default("30s"),
        of_source("scan.newly-added-table.enabled", OptionType::Boolean).default("false"),
        of_source("scan.binlog.newly-added-table.enabled", OptionType::Boolean).default("false"),
        of_source("scan.parse.online.schema.changes.enabled", OptionType::Boolean)
            .not_yet("shadow tables are not followed"),
        of_source("use.legacy.json.format", OptionType::Boolean).default("true"),
        of_source("treat-tinyint1-as-boolean.enabled", OptionType::Boolean).default("true"),
        of_source("metadata.list", OptionType::Text),
        of_source(
            "chunk-key.even-distribution.factor.upper-bound",
            OptionType::Float { min: 1.0, max: f64::MAX },
        )
        .default("1000.0")
        .aliases(&["split-key.even-distribution.factor.upper-bound"]),
        of_sink("database", OptionType::Text),
    ],
    prefixes: &[("jdbc.properties.", None), ("debezium.", Some("there is no Debezium inside"))],
    guarantee: DeliveryGuarantee::ExactlyOnce,
};

static POSTGRES: ConnectorSpec = ConnectorSpec {
    name: "postgres",
    role: Role::Sink,
    summary: "-",
    options: &[
        of_sink("hostname", OptionType::Text).required(),
        of_sink("username", OptionType::Text).required(),
        of_sink("password", OptionType::Text).required().secret(),
        of_sink("database", OptionType::Text).required(),
    ],
    prefixes: &[],
    guarantee: DeliveryGuarantee::ExactlyOnce,
};

static PRINT: ConnectorSpec = ConnectorSpec {
    name: "print",
    role: Role::Sink,
    summary: "-",
    options: &[of_sink("limit", COUNT)],
    prefixes: &[],
    guarantee: DeliveryGuarantee::None,
};

static FILES: ConnectorSpec = ConnectorSpec {
    name: "files",
    role: Role::Both,
    summary: "-",
    options: &[
        of_both("path", OptionType::Text).required(),
        of_both("format", OptionType::Enum(&["json", "csv"])).required(),
    ],
    prefixes: &[],
    guarantee: DeliveryGuarantee::ExactlyOnce,
};

static SQLITE: ConnectorSpec = ConnectorSpec {
    name: "sqlite",
    role: Role::Sink,
    summary: "-",
    options: &[of_sink("path", OptionType::Text).required()],
    prefixes: &[],
    guarantee: DeliveryGuarantee::ExactlyOnce,
};

struct MySql;

struct DeclaredOnly(&'static ConnectorSpec);

impl Connector for DeclaredOnly {
    fn spec(&self) -> &'static ConnectorSpec {
        self.0
    }
}

impl Connector for MySql {
    fn spec(&self) -> &'static ConnectorSpec {
        &MYSQL
    }

    fn validate(&self, role: Role, options: &Options) -> Vec<(String, String)> {
        let mut problems = Vec::new();
        if role == Role::Sink {
            return problems;
        }
        for key in ["tables", "tables.exclude"] {
            if let Some(Err(message)) = options.text(key).map(TableSelector::parse) {
                problems.push((key.into(), message));
            }
        }
        let enabled = |key| options.boolean(key).unwrap_or_default();
        if enabled("scan.newly-added-table.enabled") && enabled("scan.binlog.newly-added-table.enabled") {
            problems.push((
                "scan.binlog.newly-added-table.enabled".into(),
                "the two newly-added options exclude each other".into(),
            ));
        }
        let given = |key: &str| options.text(&format!("scan.startup.specific-offset.{key}")).is_some();
        if options.word("scan.startup.mode").is_ok_and(|mode| mode == "specific-offset")
            && !given("gtid-set")
            && !(given("file") && given("pos"))
        {
            problems.push(("scan.startup.mode".into(), "`specific-offset` needs a position".into()));
        }
        problems
    }

    fn source(&self, options: &Options) -> Result<Box<dyn Source>> {
        Ok(Box::new(NeverOpened(match options.word("scan.startup.mode")?.as_str() {
            "snapshot" => Boundedness::Bounded,
            _ => Boundedness::Unbounded,
        })))
    }
}

struct NeverOpened(Boundedness);

#[async_trait]
impl Source for NeverOpened {
    fn boundedness(&self) -> Boundedness {
        self.0
    }

    async fn check(&self) -> Vec<Finding> {
        Vec::new()
    }

    async fn tables(&self) -> Result<Vec<Arc<TableSchema>>> {
        Err(Error::internal("never opened"))
    }

    async fn open(&self, _: SourceContext, _: Option<SourceRestore>) -> Result<Box<dyn SplitEnumerator>> {
        Err(Error::internal("never opened"))
    }
}

/// The connectors of all tests.
pub fn registry() -> Registry {
    let mut registry = Registry::new();
    registry.add(MySql);
    registry.add(DeclaredOnly(&POSTGRES));
    registry.add(DeclaredOnly(&PRINT));
    registry.add(DeclaredOnly(&FILES));
    registry.add(DeclaredOnly(&SQLITE));
    registry
}
