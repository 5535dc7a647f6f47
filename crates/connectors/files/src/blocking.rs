//! Owns the one way in which this crate blocks inside a task.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Runs work that may block, without starving other tasks where the runtime has other threads. Unlike a spawned closure it
/// cannot outlive the call: when a writer is dropped, nothing of it touches a file any more.
pub(crate) fn blocking<T>(work: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
    match flavor {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
