//! Owns the declaration of the connector and its parsed options.

use canalis_connector_api::{ConnectorSpec, DeliveryGuarantee, OptionSpec, OptionType, Options, Role};
use canalis_types::{Code, Error, Result};

use crate::{client::Endpoint, tls};

/// Declaration of `type: postgres`.
pub static SPEC: ConnectorSpec = ConnectorSpec {
    name: "postgres",
    role: Role::Sink,
    summary: "Writes into PostgreSQL 12 and later: snapshots by COPY, changes merged by key, exactly once.",
    options: OPTIONS,
    prefixes: &[],
    guarantee: DeliveryGuarantee::ExactlyOnce,
};

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::new("hostname", OptionType::Text, Role::Sink, "Host name or address of the server.").required(),
    OptionSpec::new("port", OptionType::Integer { min: 1, max: 65_535 }, Role::Sink, "Port of the server.")
        .default("5432"),
    OptionSpec::new("username", OptionType::Text, Role::Sink, "Role to connect as.").required(),
    OptionSpec::new("password", OptionType::Text, Role::Sink, "Password of the role.").secret(),
    OptionSpec::new("database", OptionType::Text, Role::Sink, "Database to write into; it must exist.").required(),
    OptionSpec::new(
        "schema",
        OptionType::Text,
        Role::Sink,
        "Schema for all tables; without it the schema part of each table id is used (for MySQL the database), \
         and `public` for ids without one.",
    ),
    OptionSpec::new("connect.timeout", OptionType::Duration, Role::Sink, "Time limit for connecting.")
        .default("30s"),
    OptionSpec::new(
        "invalid-date.policy",
        OptionType::Enum(&["error", "null", "epoch"]),
        Role::Sink,
        "What becomes of dates that no calendar has (`0000-00-00`, `2025-06-00`): the row is refused, the cell \
         becomes NULL, or the cell becomes 1970-01-01.",
    )
    .default("error"),
    OptionSpec::new(
        "nul-character.policy",
        OptionType::Enum(&["error", "strip", "replace"]),
        Role::Sink,
        "What becomes of NUL characters, which PostgreSQL text cannot hold: the row is refused, the characters are \
         removed, or each becomes U+FFFD.",
    )
    .default("error"),
    OptionSpec::new(
        "time.type",
        OptionType::Enum(&["interval", "text"]),
        Role::Sink,
        "Column type that created tables have for TIME, which in MySQL is a signed duration.",
    )
    .default("interval"),
    OptionSpec::new(
        "json.type",
        OptionType::Enum(&["json", "jsonb"]),
        Role::Sink,
        "Column type that created tables have for JSON; `json` keeps the text exactly.",
    )
    .default("json"),
    OptionSpec::new(
        "primary-key.build",
        OptionType::Enum(&["after-snapshot", "immediate"]),
        Role::Sink,
        "When created tables get their primary key: after the snapshot's rows are in, which is faster, or at once.",
    )
    .default("after-snapshot"),
    tls::SSLMODE,
    tls::SSLROOTCERT,
    tls::SSLCERT,
    tls::SSLKEY,
];

/// What becomes of dates that no calendar has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvalidDatePolicy {
    /// The row is refused.
    Error,
    /// The cell becomes NULL.
    Null,
    /// The cell becomes 1970-01-01.
    Epoch,
}

/// What becomes of NUL characters in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NulPolicy {
    /// The row is refused.
    Error,
    /// They are removed.
    Strip,
    /// Each becomes U+FFFD.
    Replace,
}

/// When created tables get their primary key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyBuild {
    /// When all snapshot rows are in.
    AfterSnapshot,
    /// With the table.
    Immediate,
}

/// Options of a sink, parsed.
#[derive(Clone)]
pub struct PostgresOptions {
    /// Where and as whom to connect.
    pub endpoint: Endpoint,
    /// Schema that overrides the schema part of all ids.
    pub schema: Option<String>,
    /// What becomes of dates that no calendar has.
    pub invalid_date: InvalidDatePolicy,
    /// What becomes of NUL characters in text.
    pub nul: NulPolicy,
    /// SQL type of TIME columns in created tables; `interval` or `text`.
    pub time_as_text: bool,
    /// Whether JSON columns of created tables are `jsonb`.
    pub json_binary: bool,
    /// When created tables get their primary key.
    pub key_build: KeyBuild,
}

impl PostgresOptions {
    /// Reads validated options.
    ///
    /// # Errors
    /// Definition errors, for options that were not validated against [`SPEC`].
    pub fn parse(options: &Options) -> Result<Self> {
        let unknown = |key: &str, word: &str| {
            Err(Error::new(Code::PipelineInvalid, format!("option `{key}` does not know `{word}`")))
        };
        let invalid_date = match options.word("invalid-date.policy")?.as_str() {
            "error" => InvalidDatePolicy::Error,
            "null" => InvalidDatePolicy::Null,
            "epoch" => InvalidDatePolicy::Epoch,
            word => return unknown("invalid-date.policy", word),
        };
        let nul = match options.word("nul-character.policy")?.as_str() {
            "error" => NulPolicy::Error,
            "strip" => NulPolicy::Strip,
            "replace" => NulPolicy::Replace,
            word => return unknown("nul-character.policy", word),
        };
        let key_build = match options.word("primary-key.build")?.as_str() {
            "after-snapshot" => KeyBuild::AfterSnapshot,
            "immediate" => KeyBuild::Immediate,
            word => return unknown("primary-key.build", word),
        };
        Ok(Self {
            endpoint: Endpoint::from_options(options)?,
            schema: options.text("schema").map(str::to_owned),
            invalid_date,
            nul,
            time_as_text: options.word("time.type")? == "text",
            json_binary: options.word("json.type")? == "jsonb",
            key_build,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::tls::TlsMode;

    /// Options of a server that no test reaches, with some keys given.
    pub(crate) fn options(given: &[(&str, &str)]) -> PostgresOptions {
        PostgresOptions::parse(&valid(given)).unwrap()
    }

    fn valid(given: &[(&str, &str)]) -> Options {
        let mut raw: BTreeMap<String, String> = BTreeMap::new();
        for (key, value) in [("hostname", "h"), ("username", "u"), ("database", "d")].iter().chain(given) {
            raw.insert((*key).to_owned(), (*value).to_owned());
        }
        Options::validate(&SPEC, Role::Sink, &raw).unwrap()
    }

    #[test]
    fn defaults_are_the_strict_ones() {
        let options = options(&[]);
        assert_eq!(options.invalid_date, InvalidDatePolicy::Error);
        assert_eq!(options.nul, NulPolicy::Error);
        assert_eq!(options.key_build, KeyBuild::AfterSnapshot);
        assert_eq!(options.endpoint.port, 5432);
        assert!(options.schema.is_none() && !options.time_as_text && !options.json_binary);
    }

    #[test]
    fn words_of_encryption_are_libpqs() {
        let mode = |given: &[(&str, &str)]| options(given).endpoint.tls.mode;
        assert_eq!(mode(&[]), TlsMode::Prefer);
        assert_eq!(mode(&[("sslmode", "disable")]), TlsMode::Disable);
        assert_eq!(mode(&[("sslmode", "require")]), TlsMode::Require);
        assert_eq!(mode(&[("sslmode", "require"), ("sslrootcert", "f")]), TlsMode::VerifyCa);
        assert_eq!(mode(&[("sslmode", "verify-full"), ("sslrootcert", "f")]), TlsMode::VerifyFull);
        for (given, keys) in [
            (&[("sslmode", "verify-ca")][..], &["sslmode"][..]),
            (&[("sslrootcert", "f")], &["sslrootcert"]),
            (&[("sslmode", "require"), ("sslkey", "f")], &["sslkey"]),
            (&[("sslmode", "disable"), ("sslcert", "f"), ("sslkey", "f")], &["sslcert"]),
            (&[("sslmode", "verify-ca"), ("sslrootcert", "f")], &[]),
        ] {
            let problems = tls::problems(&valid(given));
            assert_eq!(problems.iter().map(|(k, _)| k.as_str()).collect::<Vec<_>>(), keys, "{given:?}");
        }
    }

    #[test]
    fn wrong_and_missing_options_are_named() {
        let raw: BTreeMap<String, String> = [("sslmode".to_owned(), "allow".to_owned())].into();
        let problems = Options::validate(&SPEC, Role::Sink, &raw).unwrap_err();
        let keys: Vec<&str> = problems.iter().map(|(k, _)| k.as_str()).collect();
        assert_eq!(keys, ["sslmode", "hostname", "username", "database"]);
    }
}
