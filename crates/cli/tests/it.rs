//! End-to-end tests: the binary as a user runs it, on real servers.
#![allow(clippy::unwrap_used)] // The helpers stand outside of test functions.

mod it {
    mod behaviour;
    mod conformance;
    mod crash;
    mod handover;
    mod kafka;
    mod keys;
    mod load;
    mod positions;
    mod preview;
    mod process;
    mod pulsar;
    mod recovery;
    mod rocketmq;
    mod targets;
    mod types;
    mod values;
}
