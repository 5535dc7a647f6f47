//! Owns the declaration of the connector and its parsed options.

use std::path::PathBuf;

use canalis_connector_api::{ConnectorSpec, DeliveryGuarantee, OptionSpec, OptionType, Options, Role};
use canalis_types::Result;

/// Declaration of `type: sqlite`.
pub static SPEC: ConnectorSpec = ConnectorSpec {
    name: "sqlite",
    role: Role::Sink,
    summary: "Writes into one SQLite database file by one writer, exactly once.",
    options: OPTIONS,
    prefixes: &[],
    guarantee: DeliveryGuarantee::ExactlyOnce,
};

const OPTIONS: &[OptionSpec] = &[OptionSpec::new(
    "path",
    OptionType::Text,
    Role::Sink,
    "Path of the database file; it is created when it is missing, and so are its directories.",
)
.required()];

/// Options of a sink, parsed.
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// The database file.
    pub path: PathBuf,
}

impl SqliteOptions {
    /// Reads validated options.
    ///
    /// # Errors
    /// Definition errors, for options that were not validated against [`SPEC`].
    pub fn parse(options: &Options) -> Result<Self> {
        Ok(Self { path: PathBuf::from(options.required("path")?) })
    }
}
