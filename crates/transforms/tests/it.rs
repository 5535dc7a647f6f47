//! Tests of transforms and routes through the public interface, by tables of cases.

#![allow(clippy::unwrap_used)] // The helpers stand outside of test functions.

mod it {
    mod batches;
    mod conditions;
    mod functions;
    mod harness;
    mod known_cases;
    mod merging;
    mod more_functions;
    mod more_times;
    mod numbers;
    mod planning;
    mod surprises;
    mod times;
}
