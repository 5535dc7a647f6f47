//! The cases of brokers, by their ids.
