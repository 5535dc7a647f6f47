//! The keys under `pipeline`, their defaults and what is refused among them.

use std::{collections::BTreeSet, time::Duration};

use canalis_plan::{
    DeadLetterFormat, DeadLetterMode, DeadLetterPolicy, RestartStrategy, RuntimeOptions,
    SchemaChangeBehavior, pipeline_options,
};
use canalis_transforms::RouteMode;

use crate::harness::{check, check_warnings, file, plan};

fn block(keys: &str) -> String {
    file("", "", &format!("pipeline:\n{keys}"))
}

#[test]
fn defaults_hold_without_a_block() {
    for text in [file("", "", ""), file("", "", "pipeline: {}\n"), block("  name:\n  parallelism: ~\n")] {
        let plan = plan(&text);
        assert_eq!(plan.runtime, RuntimeOptions::default());
        assert_eq!(plan.runtime.parallelism, 4);
        assert_eq!(plan.name, "Canalis Pipeline Job");
        assert_eq!(plan.schema_changes.behavior, SchemaChangeBehavior::Evolve);
        assert_eq!(plan.schema_changes.accepted.len(), 8);
        assert_eq!(plan.transform_options.time_zone, None);
        assert_eq!(plan.transform_options.route_mode, RouteMode::AllMatch);
        assert!(plan.warnings.is_empty());
    }
}

#[test]
fn every_key_is_read() {
    let plan = plan(&block(
        "  name: orders\n  parallelism: 2\n  local-time-zone: GMT+08:00\n  route-mode: first_match\n  \
         schema.change.behavior: Exception\n  schema-operator.rpc-timeout: 1 h\n  \
         execution.checkpointing.interval: 500ms\n  state.checkpoints.num-retained: 5\n  \
         dead-letter.policy: queue\n  dead-letter.limit: 100\n  dead-letter.format: SQLite\n  \
         sink.buffer-flush.max-rows: 10\n  sink.buffer-flush.max-bytes: 1 MB\n  \
         sink.partitioning.strategy: SINK_DEFINED\n  transform.decimal.precision.mode: UP_TO_38\n",
    ));
    assert_eq!(plan.name, "orders");
    assert_eq!(plan.transform_options.time_zone.as_deref(), Some("GMT+08:00"));
    assert_eq!(plan.transform_options.route_mode, RouteMode::FirstMatch);
    assert_eq!(plan.schema_changes.behavior, SchemaChangeBehavior::Exception);
    assert_eq!(
        plan.runtime,
        RuntimeOptions {
            parallelism: 2,
            checkpoint_interval: Duration::from_millis(500),
            checkpoints_retained: 5,
            restart: RestartStrategy::default(),
            dead_letters: DeadLetterPolicy {
                mode: DeadLetterMode::Queue,
                limit: Some(100),
                format: DeadLetterFormat::Sqlite,
            },
            max_batch_rows: 10,
            max_batch_bytes: 1 << 20,
            schema_change_timeout: Duration::from_secs(3600),
        }
    );
}

#[test]
fn restart_strategies_take_flinks_keys() {
    let second = Duration::from_secs(1);
    for (keys, expect) in [
        ("restart-strategy.type: none", RestartStrategy::None),
        ("restart-strategy.type: off", RestartStrategy::None),
        ("restart-strategy: disable", RestartStrategy::None),
        ("restart-strategy.type: fixed-delay", RestartStrategy::FixedDelay { attempts: 1, delay: second }),
        (
            "restart-strategy.type: FixedDelay\n  restart-strategy.fixed-delay.attempts: 7\n  restart-strategy.fixed-delay.delay: 0",
            RestartStrategy::FixedDelay { attempts: 7, delay: Duration::ZERO },
        ),
        (
            "restart-strategy.type: failure-rate",
            RestartStrategy::FailureRate { max_failures: 1, interval: 60 * second, delay: second },
        ),
        ("restart-strategy.type: exponentialdelay", RestartStrategy::default()),
        (
            "restart-strategy.exponential-delay.initial-backoff: 2 s\n  restart-strategy.exponential-delay.max-backoff: 5 s\n  \
             restart-strategy.exponential-delay.backoff-multiplier: 2\n  restart-strategy.exponential-delay.jitter-factor: 0\n  \
             restart-strategy.exponential-delay.reset-backoff-threshold: 1 d\n  restart-strategy.exponential-delay.attempts-before-reset-backoff: 9",
            RestartStrategy::ExponentialDelay {
                initial_backoff: 2 * second,
                max_backoff: 5 * second,
                multiplier: 2.0,
                reset_threshold: 86_400 * second,
                jitter: 0.0,
                attempts: Some(9),
            },
        ),
    ] {
        assert_eq!(plan(&block(&format!("  {keys}\n"))).runtime.restart, expect, "{keys}");
    }
}

#[test]
fn all_that_is_wrong_is_reported_at_once() {
    check(
        &block(
            "  schema.change.behaviour: evolve\n  parallelism: 0\n  schema.change.behavior: ignore\n  \
             sink.partitioning.strategy: TABLE_ID\n  dead-letter.format: xml\n  restart-strategy.type: never\n  \
             execution.checkpointing.interval: 1 ms\n  sink.buffer-flush.max-bytes: 0\n  name: ' '\n  \
             restart-strategy.exponential-delay.max-backoff: 1 ms\n  execution.runtime-mode: BATCH\n  local-time-zone: Mars\n",
        ),
        "4:3: CNL-1002 `pipeline` has no option `schema.change.behaviour` (did you mean `schema.change.behavior`?)
         5:3: CNL-1002 `parallelism` must be between 1 and 1024
         6:3: CNL-1003 `schema.change.behavior: ignore` is not supported yet (there are `exception` and `evolve`)
         7:3: CNL-1003 `sink.partitioning.strategy: TABLE_ID` is not supported yet (there is `SINK_DEFINED`: rows are dealt to writers by key)
         8:3: CNL-1002 `dead-letter.format` must be one of json-lines, sqlite
         9:3: CNL-1002 `restart-strategy.type` must be one of none, disable, off, fixed-delay, fixeddelay, failure-rate, failurerate, exponential-delay, exponentialdelay
         10:3: CNL-1002 `execution.checkpointing.interval` must be at least 10 ms
         11:3: CNL-1002 `sink.buffer-flush.max-bytes` must not be 0
         12:3: CNL-1002 `name` must not be empty
         13:3: CNL-1002 `restart-strategy.exponential-delay.max-backoff` must not be below `initial-backoff`
         14:3: CNL-1002 `execution.runtime-mode: BATCH` needs a source that ends by itself (set `scan.startup.mode: snapshot` under `source`, or leave the mode at STREAMING)
         15:3: CNL-1002 `Mars` is not a time zone (for example `Europe/Paris`, `UTC` or `GMT+08:00`)",
    );
}

#[test]
fn what_has_no_effect_is_warned_about() {
    check_warnings(
        &block(
            "  operator.uid.prefix: x\n  schema.operator.uid: y\n  transform.decimal.precision.mode: UP_TO_19\n  \
             dead-letter.limit: 5\n  restart-strategy.fixed-delay.delay: 1 s\n  local-time-zone: systemDefault\n",
        ),
        "4:3: CNL-1002 `operator.uid.prefix` names Flink operators and has no meaning here
         5:3: CNL-1002 `schema.operator.uid` names Flink operators and has no meaning here
         6:3: CNL-1002 decimals are always exact up to 38 digits; `UP_TO_19` has no effect
         7:3: CNL-1002 `dead-letter.limit` has no effect while `dead-letter.policy` is `fail`
         8:3: CNL-1002 `restart-strategy.fixed-delay.delay` has no effect while `restart-strategy.type` is `exponential-delay`
         9:3: CNL-1002 `systemDefault` is UTC here, whatever the machine's zone (name the zone, for example `Europe/Paris`)",
    );
}

#[test]
fn functions_and_models_are_checked_and_refused() {
    check(
        &block(
            "  user-defined-function:\n    - {classpath: A, python-code: b}\n    - {name: f, python-code: b, options: {x: 1}, python-files: a.py}\n    \
             - {name: g, classpath: A, option: {}}\n    - {name: h}\n  \
             model:\n    - {model-name: a, class-name: B, type: x}\n    - {name: __a, type: t}\n    - {name: a, type: t, options: {k: 1}, k: 2}\n    \
             - {model-name: a, class-name: ''}\n",
        ),
        "4:3: CNL-1003 user-defined functions are not supported yet (the built-in functions are listed in the reference of transforms)
         5:7: CNL-1002 a user-defined function needs `name`
         5:7: CNL-1002 a user-defined function needs exactly one of `classpath` and `python-code`, both are given
         6:33: CNL-1002 `options` goes with `classpath` only
         6:50: CNL-1002 `python-files` must be a list, here it is a single value (write `python-files: [a.py]`)
         7:31: CNL-1002 a user-defined function has no key `option` (did you mean `options`?)
         8:7: CNL-1002 a user-defined function needs exactly one of `classpath` and `python-code`, neither is given
         9:3: CNL-1003 models are not supported yet
         10:7: CNL-1002 a model takes either `model-name` and `class-name` or `name` and `type`, not both
         11:8: CNL-1002 `__a` cannot be the name of a model (letters, digits and `_`, beginning with no digit and not with `__`)
         12:43: CNL-1002 `k` is given here and under `options`
         13:8: CNL-1002 there are two models `a`
         13:23: CNL-1002 `class-name` must not be empty",
    );
    check(
        &block("  user-defined-function: {name: f}\n  model: x\n"),
        "4:3: CNL-1002 `user-defined-function` must be a list, here it is a mapping (write a list: `user-defined-function: [{name: …, classpath: …}]`)
         5:3: CNL-1002 `model` must be a mapping or a list, here it is a single value",
    );
}

#[test]
fn schema_changes_are_resolved_as_documented() {
    let all = "add.column alter.column.type alter.table.comment create.table drop.column drop.table rename.column truncate.table";
    for (lists, expect) in [
        ("", all),
        (", include.schema.changes: []", all),
        (", include.schema.changes:", all),
        (", include.schema.changes: [add.column]", "add.column create.table"),
        (", include.schema.changes: [add.column], exclude.schema.changes: [create]", "add.column"),
        (", include.schema.changes: [alter]", "alter.column.type create.table"),
        (", exclude.schema.changes: [column, table]", ""),
        (", exclude.schema.changes: [all]", ""),
        (
            ", exclude.schema.changes: [drop, rename]",
            "add.column alter.column.type alter.table.comment create.table truncate.table",
        ),
    ] {
        let plan = plan(&file("", lists, ""));
        let expect: BTreeSet<String> = expect.split_whitespace().map(str::to_owned).collect();
        assert_eq!(plan.schema_changes.accepted, expect, "{lists}");
    }
}

#[test]
fn declared_keys_are_unique_and_documented() {
    let keys: Vec<&str> = pipeline_options()
        .iter()
        .flat_map(|o| std::iter::once(o.key).chain(o.aliases.iter().copied()))
        .collect();
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
    let reference = include_str!("../../../../docs/pipeline.md");
    for key in keys {
        assert!(reference.contains(&format!("`{key}`")), "`{key}` is missing in docs/pipeline.md");
    }
}
