//! Owns the servers of the benchmarks, with the settings that `docs/benchmarks.md` names.

use anyhow::{Context, Result};
use canalis_testkit::{OwnedServer, start_kafka, start_mariadb, start_postgres};

/// A MariaDB as a production server would be set, but for syncing at every commit.
pub fn mariadb() -> Result<OwnedServer> {
    start_mariadb(&["--innodb-buffer-pool-size=3G", "--innodb-log-file-size=1G"])
        .context("MariaDB cannot be had")
}

/// A PostgreSQL with a buffer pool that holds the data.
pub fn postgres() -> Result<OwnedServer> {
    start_postgres(&["-c", "shared_buffers=2GB", "-c", "synchronous_commit=off", "-c", "max_wal_size=8GB"])
        .context("PostgreSQL cannot be had")
}

/// A broker of one node.
pub fn kafka() -> Result<OwnedServer> {
    start_kafka(&[]).context("Kafka cannot be had")
}
