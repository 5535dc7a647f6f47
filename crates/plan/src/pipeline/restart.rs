//! Owns the step from `restart-strategy.*` to a [`RestartStrategy`].

use std::time::Duration;

use canalis_connector_api::{Options, Role};
use canalis_types::Result;

use super::options::SPEC;
use crate::{RestartStrategy, problem::Report, settings::Settings};

const FIXED: &str = "restart-strategy.fixed-delay.";
const RATE: &str = "restart-strategy.failure-rate.";
const EXPONENTIAL: &str = "restart-strategy.exponential-delay.";

/// Reads the strategy; settings of strategies that are not chosen are warned about.
pub(super) fn read(settings: &Settings, options: &Options, report: &mut Report) -> Result<RestartStrategy> {
    let chosen = options.word("restart-strategy.type")?;
    let (prefix, strategy) = match chosen.as_str() {
        "fixed-delay" | "fixeddelay" => (
            FIXED,
            RestartStrategy::FixedDelay {
                attempts: count(options, &key(FIXED, "attempts"))?,
                delay: options.duration(&key(FIXED, "delay"))?,
            },
        ),
        "failure-rate" | "failurerate" => (
            RATE,
            RestartStrategy::FailureRate {
                max_failures: count(options, &key(RATE, "max-failures-per-interval"))?,
                interval: options.duration(&key(RATE, "failure-rate-interval"))?,
                delay: options.duration(&key(RATE, "delay"))?,
            },
        ),
        "none" | "disable" | "off" => ("restart-strategy.none.", RestartStrategy::None),
        _ => (EXPONENTIAL, exponential(settings, options, report)?),
    };
    for setting in &settings.items {
        if [FIXED, RATE, EXPONENTIAL].iter().any(|p| setting.key.starts_with(p) && *p != prefix) {
            report.warn(
                &setting.place,
                format!("`{}` has no effect while `restart-strategy.type` is `{chosen}`", setting.key),
            );
        }
    }
    Ok(strategy)
}

fn exponential(settings: &Settings, options: &Options, report: &mut Report) -> Result<RestartStrategy> {
    let initial_backoff = options.duration(&key(EXPONENTIAL, "initial-backoff"))?;
    let max_backoff = options.duration(&key(EXPONENTIAL, "max-backoff"))?;
    let mut refuse = |name: &str, message: &str| {
        settings.report(&SPEC, Role::Both, &key(EXPONENTIAL, name), message, report);
    };
    if initial_backoff < Duration::from_millis(1) {
        refuse(
            "initial-backoff",
            "`restart-strategy.exponential-delay.initial-backoff` must be at least 1 ms",
        );
    }
    if max_backoff < initial_backoff {
        refuse(
            "max-backoff",
            "`restart-strategy.exponential-delay.max-backoff` must not be below `initial-backoff`",
        );
    }
    let attempts = key(EXPONENTIAL, "attempts-before-reset-backoff");
    Ok(RestartStrategy::ExponentialDelay {
        initial_backoff,
        max_backoff,
        multiplier: number(options, &key(EXPONENTIAL, "backoff-multiplier"))?,
        reset_threshold: options.duration(&key(EXPONENTIAL, "reset-backoff-threshold"))?,
        jitter: number(options, &key(EXPONENTIAL, "jitter-factor"))?,
        attempts: if options.text(&attempts).is_some() { Some(count(options, &attempts)?) } else { None },
    })
}

fn key(prefix: &str, name: &str) -> String {
    format!("{prefix}{name}")
}

/// A number of things; the declaration has ruled out negative ones.
pub(super) fn count(options: &Options, key: &str) -> Result<u64> {
    Ok(u64::try_from(options.integer(key)?).unwrap_or_default())
}

fn number(options: &Options, key: &str) -> Result<f64> {
    let text = options.required(key)?;
    text.trim().parse().map_err(|_| canalis_types::Error::internal(format!("option `{key}` is not a number")))
}
