//! Owns the list of connectors in this binary.

use canalis_connector_api::Registry;

/// Every connector that is built in.
pub fn registry() -> Registry {
    let mut registry = Registry::new();
    canalis_datagen::register(&mut registry);
    canalis_files::register(&mut registry);
    #[cfg(feature = "kafka")]
    canalis_kafka::register(&mut registry);
    canalis_mysql::register(&mut registry);
    canalis_postgres::register(&mut registry);
    canalis_print::register(&mut registry);
    #[cfg(feature = "pulsar")]
    canalis_pulsar::register(&mut registry);
    canalis_rocketmq::register(&mut registry);
    canalis_sqlite::register(&mut registry);
    registry
}
