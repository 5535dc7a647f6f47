//! Owns the restart strategies, with Flink's names and rules.

use std::{collections::VecDeque, time::Duration};

use canalis_plan::RestartStrategy;
use rand::Rng;
use tokio::time::Instant;

/// Decides after each failure whether and when to try again.
#[derive(Debug)]
pub struct Restarts {
    strategy: RestartStrategy,
    failures: VecDeque<Instant>,
    attempts: u64,
    backoff: Duration,
    last: Option<Instant>,
}

impl Restarts {
    /// The state of a strategy before the first failure.
    pub fn new(strategy: RestartStrategy) -> Self {
        Self { strategy, failures: VecDeque::new(), attempts: 0, backoff: Duration::ZERO, last: None }
    }

    /// Notes a failure at `now`: the pause before the next try, or `None` to give up.
    pub fn next_delay(&mut self, now: Instant) -> Option<Duration> {
        let since_last = self.last.replace(now).map(|l| now - l);
        match &self.strategy {
            RestartStrategy::None => None,
            RestartStrategy::FixedDelay { attempts, delay } => {
                self.attempts += 1;
                (self.attempts <= *attempts).then_some(*delay)
            }
            RestartStrategy::FailureRate { max_failures, interval, delay } => {
                self.failures.push_back(now);
                while self.failures.front().is_some_and(|f| now - *f > *interval) {
                    self.failures.pop_front();
                }
                (self.failures.len() as u64 <= *max_failures).then_some(*delay)
            }
            RestartStrategy::ExponentialDelay {
                initial_backoff,
                max_backoff,
                multiplier,
                reset_threshold,
                jitter,
                attempts,
            } => {
                let calm = since_last.is_none_or(|s| s >= *reset_threshold + self.backoff);
                if calm {
                    self.attempts = 0;
                    self.backoff = *initial_backoff;
                } else {
                    self.backoff = self.backoff.mul_f64(*multiplier).min(*max_backoff);
                }
                self.attempts += 1;
                if attempts.is_some_and(|limit| self.attempts > limit) {
                    return None;
                }
                let spread = if *jitter > 0.0 { rand::rng().random_range(-*jitter..=*jitter) } else { 0.0 };
                Some(self.backoff.mul_f64((1.0 + spread).max(0.0)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn check(strategy: RestartStrategy, failures_at: &[u64], expect: &[Option<u64>]) {
        let start = Instant::now();
        let mut restarts = Restarts::new(strategy);
        let got: Vec<Option<u64>> = failures_at
            .iter()
            .map(|s| {
                restarts
                    .next_delay(start + SECOND * u32::try_from(*s).unwrap())
                    .map(|d| u64::try_from(d.as_millis()).unwrap())
            })
            .collect();
        assert_eq!(got, expect);
    }

    #[tokio::test]
    async fn strategies_follow_flinks_rules() {
        check(RestartStrategy::None, &[0], &[None]);
        check(
            RestartStrategy::FixedDelay { attempts: 2, delay: SECOND },
            &[0, 1, 2],
            &[Some(1000), Some(1000), None],
        );
        check(
            RestartStrategy::FailureRate { max_failures: 2, interval: 10 * SECOND, delay: SECOND },
            &[0, 5, 20, 21, 22],
            &[Some(1000), Some(1000), Some(1000), Some(1000), None],
        );
        check(
            RestartStrategy::ExponentialDelay {
                initial_backoff: SECOND,
                max_backoff: 3 * SECOND,
                multiplier: 2.0,
                reset_threshold: 60 * SECOND,
                jitter: 0.0,
                attempts: Some(4),
            },
            &[0, 2, 5, 9, 200, 201],
            &[Some(1000), Some(2000), Some(3000), Some(3000), Some(1000), Some(2000)],
        );
    }
}
