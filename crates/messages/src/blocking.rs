//! Owns the one way in which clients that block are called inside a task.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Runs work that may block, without starving other tasks where the runtime has other threads. It cannot outlive the call.
pub fn blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
