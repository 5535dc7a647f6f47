//! Owns what tests stand on: real database servers as child processes on free loopback ports, waiting
//! on conditions, and digests of tables taken by the databases' own command line clients.
//!
//! It must not know the crates under test: a comparison that used our own code would prove nothing.
//!
//! A server is started when a test first asks for it, is shared by the tests of one process, and dies
//! with that process however it ends. Where a server cannot be had the test says so loudly and is
//! skipped, unless `CANALIS_REQUIRE_SERVICES=1`, where it fails.

mod digest;
mod guard;
mod install;
mod kafka;
mod mysql_family;
mod owned;
mod postgres;
mod pulsar;
mod rocketmq;
mod server;
mod shared;
mod wait;

pub use digest::{Digest, table_digest, table_digest_of};
pub use owned::OwnedServer;
pub use pulsar::{pulsar_admin, pulsar_web_port};
pub use server::{Server, ServerKind};
pub use shared::{
    kafka, mariadb, mysql, postgres, pulsar, rocketmq, services_required, start_kafka, start_mariadb,
    start_mysql, start_postgres, start_pulsar, start_rocketmq,
};
pub use wait::{free_port, wait_until};
