//! End-to-end tests: the binary as a user runs it, on real servers.
#![allow(clippy::unwrap_used)] // The helpers stand outside of test functions.

mod it {
    mod behaviour;
    mod conformance;
    mod crash;
    mod load;
    mod process;
    mod types;
}
