//! Owns [`Budget`]: a bound on bytes in flight between a reader and a writer.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::Notify;

/// Bytes in flight. Taking waits while the limit is reached; the last taker may overshoot by its own size,
/// so that one row larger than the limit still passes.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limit: u64,
    used: AtomicU64,
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
        Self(Arc::new(Inner { limit, used: AtomicU64::new(0), freed: Notify::new() }))
    }

    /// Takes bytes; one caller at a time. Cancel-safe.
    pub async fn take(&self, bytes: u64) -> Taken {
        loop {
            let freed = self.0.freed.notified();
            if self.0.used.load(Ordering::Acquire) < self.0.limit {
                self.0.used.fetch_add(bytes, Ordering::AcqRel);
                return Taken { budget: self.clone(), bytes };
            }
            freed.await;
        }
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
}
