//! Owns the declaration of the keys under `pipeline`: one table for validation, help and the reference page.

use canalis_connector_api::{ConnectorSpec, DeliveryGuarantee, OptionSpec, OptionType, Role};

/// The keys that `pipeline` takes, lists of functions and models aside.
pub fn pipeline_options() -> &'static [OptionSpec] {
    OPTIONS
}

/// The block as a declaration, so that it is checked like the options of a connector.
pub(crate) const SPEC: ConnectorSpec = ConnectorSpec {
    name: "pipeline",
    role: Role::Both,
    summary: "Settings of the whole pipeline.",
    options: OPTIONS,
    prefixes: &[],
    guarantee: DeliveryGuarantee::None,
};

/// Name of a pipeline that gives none.
pub(crate) const DEFAULT_NAME: &str = "Canalis Pipeline Job";

const COUNT: OptionType = OptionType::Integer { min: 1, max: i64::MAX };

const fn option(key: &'static str, ty: OptionType, doc: &'static str) -> OptionSpec {
    OptionSpec::new(key, ty, Role::Both, doc)
}

static OPTIONS: &[OptionSpec] = &[
    option("name", OptionType::Text, "Name of the job, for display.").default(DEFAULT_NAME),
    option(
        "parallelism",
        OptionType::Integer { min: 1, max: 1024 },
        "Readers of snapshot and file splits, and writers.",
    )
    .default("4"),
    option(
        "local-time-zone",
        OptionType::Text,
        "Zone of LOCALTIMESTAMP and its kin: an IANA name, `UTC` or `GMT+08:00`; `systemDefault` is UTC.",
    )
    .default("systemDefault"),
    option(
        "execution.runtime-mode",
        OptionType::Enum(&["STREAMING", "BATCH"]),
        "BATCH asserts that the source ends; a source that does not is refused.",
    )
    .default("STREAMING"),
    option(
        "schema.change.behavior",
        OptionType::Enum(&["exception", "evolve", "try_evolve", "lenient", "ignore"]),
        "What a change of a table's structure does; `exception` and `evolve` are supported.",
    )
    .default("evolve"),
    option(
        "schema-operator.rpc-timeout",
        OptionType::Duration,
        "How long a schema change at the sink may take before the job fails.",
    )
    .default("3 min"),
    option(
        "route-mode",
        OptionType::Enum(&["ALL_MATCH", "FIRST_MATCH"]),
        "Whether a table goes to the target of every route that matches it, or of the first only.",
    )
    .default("ALL_MATCH"),
    option(
        "transform.decimal.precision.mode",
        OptionType::Enum(&["UP_TO_38", "UP_TO_19"]),
        "Digits of computed decimals; always up to 38, UP_TO_19 is accepted with a warning.",
    )
    .default("UP_TO_38"),
    option(
        "sink.partitioning.strategy",
        OptionType::Enum(&["SINK_DEFINED", "PRIMARY_KEY", "TABLE_ID"]),
        "How rows are dealt to writers; only SINK_DEFINED is supported.",
    )
    .default("SINK_DEFINED"),
    option(
        "operator.uid.prefix",
        OptionType::Text,
        "Names Flink operators; accepted with a warning, has no meaning here.",
    ),
    option(
        "schema.operator.uid",
        OptionType::Text,
        "Names a Flink operator; accepted with a warning, has no meaning here.",
    ),
    option(
        "execution.checkpointing.interval",
        OptionType::Duration,
        "Time between checkpoints, at least 10 ms.",
    )
    .default("3 s"),
    option("execution.checkpointing.num-retained", COUNT, "Checkpoints kept on disk.")
        .default("3")
        .aliases(&["state.checkpoints.num-retained"]),
    option(
        "restart-strategy.type",
        OptionType::Enum(&[
            "none",
            "disable",
            "off",
            "fixed-delay",
            "fixeddelay",
            "failure-rate",
            "failurerate",
            "exponential-delay",
            "exponentialdelay",
        ]),
        "What a failure that may pass by itself leads to.",
    )
    .default("exponential-delay")
    .aliases(&["restart-strategy"]),
    option(
        "restart-strategy.fixed-delay.attempts",
        OptionType::Integer { min: 0, max: i64::MAX },
        "Restarts before the job fails.",
    )
    .default("1"),
    option("restart-strategy.fixed-delay.delay", OptionType::Duration, "Wait before each restart.")
        .default("1 s"),
    option(
        "restart-strategy.failure-rate.max-failures-per-interval",
        COUNT,
        "Failures inside the interval that are borne.",
    )
    .default("1"),
    option("restart-strategy.failure-rate.failure-rate-interval", OptionType::Duration, "The interval.")
        .default("1 min"),
    option("restart-strategy.failure-rate.delay", OptionType::Duration, "Wait before each restart.")
        .default("1 s"),
    option("restart-strategy.exponential-delay.initial-backoff", OptionType::Duration, "First wait.")
        .default("1 s"),
    option("restart-strategy.exponential-delay.max-backoff", OptionType::Duration, "Longest wait.")
        .default("1 min"),
    option(
        "restart-strategy.exponential-delay.backoff-multiplier",
        OptionType::Float { min: 1.0, max: 1000.0 },
        "Factor from one wait to the next.",
    )
    .default("1.5"),
    option(
        "restart-strategy.exponential-delay.reset-backoff-threshold",
        OptionType::Duration,
        "Time without failure after which the wait is the first again.",
    )
    .default("1 h"),
    option(
        "restart-strategy.exponential-delay.jitter-factor",
        OptionType::Float { min: 0.0, max: 1.0 },
        "Part of the wait by which it varies at random.",
    )
    .default("0.1"),
    option(
        "restart-strategy.exponential-delay.attempts-before-reset-backoff",
        COUNT,
        "Restarts before the job fails, counted since the last reset; without it there is no limit.",
    ),
    option(
        "dead-letter.policy",
        OptionType::Enum(&["fail", "queue"]),
        "Whether a row that the sink refuses fails the job or is kept aside.",
    )
    .default("fail"),
    option("dead-letter.limit", COUNT, "Refused rows after which the job fails all the same."),
    option(
        "dead-letter.format",
        OptionType::Enum(&["json-lines", "sqlite"]),
        "How refused rows are kept in the state directory: `dead-letters.jsonl` or `dead-letters.db`.",
    )
    .default("json-lines"),
    option("sink.buffer-flush.max-rows", COUNT, "Rows after which a writer commits.").default("50000"),
    option("sink.buffer-flush.max-bytes", OptionType::Bytes, "Bytes of rows after which a writer commits.")
        .default("32MB"),
];
