//! Owns [`Budget`]: a bound on bytes in flight between a reader and a writer.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::Notify;

/// Bytes in flight. Taking waits while the limit is reached; the last taker may overshoot by its own size,
/// so that one row larger than the limit still passes.
///
/// Rows of a stream can only be committed up to a watermark, so rows after the newest one never count against the limit:
/// waiting for them to be given back would wait for a watermark that only the waiting reader can send.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limit: u64,
    used: AtomicU64,
    /// Bytes taken after the newest watermark.
    uncovered: AtomicU64,
    freed: Notify,
}

/// Bytes taken from a budget; given back when dropped.
#[derive(Debug)]
pub struct Taken {
    budget: Budget,
    bytes: u64,
}

impl Budget {
    /// A budget of `limit` bytes.
    pub fn new(limit: u64) -> Self {
        Self(Arc::new(Inner {
            limit,
            used: AtomicU64::new(0),
            uncovered: AtomicU64::new(0),
            freed: Notify::new(),
        }))
    }

    /// Takes bytes; one caller at a time. Cancel-safe.
    pub async fn take(&self, bytes: u64) -> Taken {
        loop {
            let freed = self.0.freed.notified();
            let covered =
                self.0.used.load(Ordering::Acquire).saturating_sub(self.0.uncovered.load(Ordering::Acquire));
            if covered < self.0.limit {
                self.0.used.fetch_add(bytes, Ordering::AcqRel);
                return Taken { budget: self.clone(), bytes };
            }
            freed.await;
        }
    }

    /// Takes bytes of rows that no watermark covers yet; see [`Budget::cover`].
    pub async fn take_uncovered(&self, bytes: u64) -> Taken {
        let taken = self.take(bytes).await;
        self.0.uncovered.fetch_add(bytes, Ordering::AcqRel);
        taken
    }

    /// Notes a watermark: everything taken so far can be committed.
    pub fn cover(&self) {
        self.0.uncovered.store(0, Ordering::Release);
    }

    /// Bytes in flight now.
    pub fn used(&self) -> u64 {
        self.0.used.load(Ordering::Acquire)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.budget.0.used.fetch_sub(self.bytes, Ordering::AcqRel);
        self.budget.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_oversized_row_passes_and_the_next_waits() {
        let budget = Budget::new(10);
        let big = budget.take(1000).await;
        let next = budget.take(1);
        tokio::pin!(next);
        assert!(futures::poll!(&mut next).is_pending());
        drop(big);
        assert!(futures::poll!(&mut next).is_ready());
    }

    #[tokio::test]
    async fn rows_without_a_watermark_never_wait_for_themselves() {
        let budget = Budget::new(10);
        let first = budget.take_uncovered(100).await;
        let second = budget.take_uncovered(100).await;
        budget.cover();
        let next = budget.take_uncovered(1);
        tokio::pin!(next);
        assert!(futures::poll!(&mut next).is_pending());
        drop((first, second));
        assert!(futures::poll!(&mut next).is_ready());
    }
}
