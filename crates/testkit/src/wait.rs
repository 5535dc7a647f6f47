//! Owns waiting on a condition with a deadline, and finding free ports.

use std::future::Future;
use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

/// How often a condition is looked at.
const POLL: Duration = Duration::from_millis(10);

/// Waits until `condition` is true and panics when `deadline` has passed before that.
///
/// The condition is asked at once and then every few milliseconds.
pub async fn wait_until<C, F>(deadline: Duration, mut condition: C)
where
    C: FnMut() -> F,
    F: Future<Output = bool>,
{
    let started = Instant::now();
    while !condition().await {
        assert!(started.elapsed() < deadline, "the awaited condition did not come true within {deadline:?}");
        tokio::time::sleep(POLL).await;
    }
}

/// The same for code that is not async: `Ok` with the first value, or `Err` with the last reason at the deadline.
pub(crate) fn poll_until<T>(
    deadline: Duration,
    mut attempt: impl FnMut() -> Attempt<T>,
) -> Result<T, String> {
    let started = Instant::now();
    loop {
        match attempt() {
            Attempt::Done(value) => return Ok(value),
            Attempt::Failed(reason) => return Err(reason),
            Attempt::NotYet(reason) if started.elapsed() >= deadline => {
                return Err(format!("{reason} (waited {deadline:?})"));
            }
            Attempt::NotYet(_) => std::thread::sleep(POLL),
        }
    }
}

/// What one look at a condition found.
pub(crate) enum Attempt<T> {
    Done(T),
    NotYet(String),
    Failed(String),
}

/// A TCP port of 127.0.0.1 that was free a moment ago.
///
/// Somebody else may take it before it is used, so whoever listens on it must be ready to ask for another.
pub fn free_port() -> u16 {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("the loopback interface has a free port");
    listener.local_addr().expect("a bound listener has an address").port()
}
