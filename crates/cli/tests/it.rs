//! End-to-end tests: the binary as a user runs it, on real servers.

mod it {
    mod conformance;
    mod crash;
    mod load;
    mod process;
    mod types;
}
