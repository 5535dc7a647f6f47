//! Owns how connections are encrypted: the modes, what options and JDBC properties say about them, and certificates
//! from files. Both clients (the driver and the wire client) take their settings from here.

use std::{
    fs,
    path::{Path, PathBuf},
};

use canalis_connector_api::{
    OptionSpec,
    OptionType::{Boolean, Enum, Text},
    Options, Role,
};
use canalis_types::{Code, Error, Result};
use mysql_async::{ClientIdentity, DriverError, IoError, SslOpts};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

/// Options of encryption.
pub(crate) const TLS_OPTIONS: &[OptionSpec] = &[
    OptionSpec::new(
        MODE,
        Enum(&["disabled", "preferred", "required", "verify-ca", "verify-identity"]),
        Role::Both,
        "Encryption: never, if the server can (`preferred`, when left out), always, always and with a certificate of \
         `ssl.ca`, or also one for `hostname`.",
    ),
    OptionSpec::new(
        CA,
        Text,
        Role::Both,
        "PEM file of the authorities that the server's certificate may come from.",
    ),
    OptionSpec::new(CERT, Text, Role::Both, "PEM file of the client's own certificate, with its chain."),
    OptionSpec::new(KEY, Text, Role::Both, "PEM file of the key of `ssl.cert`, without a password."),
    OptionSpec::new(
        JDBC_MODE,
        Enum(&JDBC_MODES),
        Role::Source,
        "The same as `ssl.mode`, in the words of JDBC.",
    ),
    OptionSpec::new(
        USE_SSL,
        Boolean,
        Role::Source,
        "`false` is `ssl.mode: disabled`, `true` is `preferred`.",
    ),
    OptionSpec::new(
        REQUIRE_SSL,
        Boolean,
        Role::Source,
        "`true` is `ssl.mode: required`, unless `useSSL` is false.",
    ),
    OptionSpec::new(
        VERIFY_SERVER,
        Boolean,
        Role::Source,
        "`true` is `ssl.mode: verify-ca`, unless `useSSL` is false; it needs `ssl.ca`.",
    ),
];

const MODE: &str = "ssl.mode";
const CA: &str = "ssl.ca";
const CERT: &str = "ssl.cert";
const KEY: &str = "ssl.key";
const JDBC_MODE: &str = "jdbc.properties.sslMode";
const USE_SSL: &str = "jdbc.properties.useSSL";
const REQUIRE_SSL: &str = "jdbc.properties.requireSSL";
const VERIFY_SERVER: &str = "jdbc.properties.verifyServerCertificate";
const JDBC_MODES: [&str; 5] = ["DISABLED", "PREFERRED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY"];

/// Whether a connection is encrypted and whom it trusts, as the modes of MySQL's own client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TlsMode {
    /// Never.
    Disabled,
    /// If the server can; any certificate will do.
    #[default]
    Preferred,
    /// Always; any certificate will do.
    Required,
    /// Always, with a certificate that an authority of `ssl.ca` has signed.
    VerifyCa,
    /// The same, and the certificate is for the host name.
    VerifyIdentity,
}

impl TlsMode {
    /// Whether the server must prove who it is.
    pub fn verifies(self) -> bool {
        matches!(self, Self::VerifyCa | Self::VerifyIdentity)
    }

    fn parse(word: &str) -> Self {
        match word.trim().to_lowercase().replace('_', "-").as_str() {
            "disabled" => Self::Disabled,
            "required" => Self::Required,
            "verify-ca" => Self::VerifyCa,
            "verify-identity" => Self::VerifyIdentity,
            _ => Self::Preferred,
        }
    }
}

/// How connections of an endpoint are encrypted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// See [`TlsMode`].
    pub mode: TlsMode,
    /// File of the authorities, in PEM; needed by the modes that verify.
    pub ca: Option<PathBuf>,
    /// Files of the client's certificate chain and of its key, in PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// Certificates, read from their files. They are read at every connection, so that renewed ones are taken.
pub(crate) struct Certificates {
    /// Authorities.
    pub roots: Vec<CertificateDer<'static>>,
    /// The client's own chain and key.
    pub identity: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
    /// The files as they are: authorities, chain, key.
    raw: [Vec<u8>; 3],
}

impl TlsOptions {
    /// Reads validated options.
    pub(crate) fn from_options(options: &Options) -> Self {
        let path = |key: &str| options.text(key).map(PathBuf::from);
        let mode = options.text(MODE).map(TlsMode::parse).or_else(|| jdbc_mode(options)).unwrap_or_default();
        Self { mode, ca: path(CA), identity: path(CERT).zip(path(KEY)) }
    }

    /// Reads the files.
    ///
    /// # Errors
    /// Invalid pipeline definition when a file cannot be read or does not hold what it should.
    pub(crate) fn load(&self) -> Result<Certificates> {
        let mut loaded = Certificates { roots: Vec::new(), identity: None, raw: Default::default() };
        if let Some(path) = self.ca.as_ref().filter(|_| self.mode.verifies()) {
            loaded.raw[0] = read(CA, path)?;
            loaded.roots = certificates(CA, path, &loaded.raw[0])?;
        }
        if let Some((cert, key)) = &self.identity {
            loaded.raw[1] = read(CERT, cert)?;
            loaded.raw[2] = read(KEY, key)?;
            let chain = certificates(CERT, cert, &loaded.raw[1])?;
            let key = PrivateKeyDer::from_pem_slice(&loaded.raw[2])
                .map_err(|e| unusable(KEY, key, &format!("it holds no private key in PEM: {e}")))?;
            loaded.identity = Some((chain, key));
        }
        Ok(loaded)
    }

    /// The driver's form; `None` when there is no encryption.
    pub(crate) fn for_driver(&self, certificates: Certificates) -> Option<SslOpts> {
        let [ca, chain, key] = certificates.raw;
        let mut opts = SslOpts::default();
        if certificates.identity.is_some() {
            opts = opts.with_client_identity(Some(ClientIdentity::new(chain.into(), key.into())));
        }
        match self.mode {
            TlsMode::Disabled => return None,
            // The built-in authorities stay, because the driver cannot be without any.
            TlsMode::Preferred | TlsMode::Required => {
                opts = opts.with_danger_accept_invalid_certs(true);
            }
            TlsMode::VerifyCa | TlsMode::VerifyIdentity => {
                opts = opts.with_disable_built_in_roots(true).with_root_certs(vec![ca.into()]);
            }
        }
        if self.mode == TlsMode::VerifyCa {
            opts = opts
                .with_danger_skip_domain_validation(true)
                .with_danger_tls_hostname_override(Some(ANY_NAME.to_owned()));
        }
        Some(opts)
    }
}

/// Name that the driver is told to expect when the name shall not matter. The driver lets a wrong name pass by looking
/// for this word in the text of the error, and rustls says it with other words by now; but it cites the expected
/// name. The chain of the certificate is verified before its name, so nothing else passes. Should a newer version not do
/// so, connections are refused, which a test would show.
const ANY_NAME: &str = "NotValidForName";

fn read(key: &str, path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|e| unusable(key, path, &e.to_string()))
}

fn certificates(key: &str, path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>> {
    let found: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(unusable(key, path, "it holds no certificate in PEM")),
        Err(error) => Err(unusable(key, path, &format!("it is no PEM: {error}"))),
    }
}

fn unusable(key: &str, path: &Path, why: &str) -> Error {
    Error::new(Code::PipelineInvalid, format!("reading `{key}` from {}: {why}", path.display()))
}

/// What JDBC makes of its properties; `None` when none is given. Its `sslMode` goes before the older ones.
fn jdbc_mode(options: &Options) -> Option<TlsMode> {
    if let Some(word) = options.text(JDBC_MODE) {
        return Some(TlsMode::parse(word));
    }
    let is = |key: &str| options.text(key).map(|_| options.boolean(key).unwrap_or_default());
    let given = [is(USE_SSL), is(REQUIRE_SSL), is(VERIFY_SERVER)];
    match given {
        [None, None, None] => None,
        [Some(false), ..] => Some(TlsMode::Disabled),
        [_, _, Some(true)] => Some(TlsMode::VerifyCa),
        [_, Some(true), _] => Some(TlsMode::Required),
        _ => Some(TlsMode::Preferred),
    }
}

/// Problems of options that contradict each other or would have no effect.
pub(crate) fn problems(options: &Options) -> Vec<(String, String)> {
    let mut problems = Vec::new();
    let mut note = |key: &str, message: String| problems.push((key.to_owned(), message));
    let given = |key: &str| options.text(key).is_some();
    let ours = options.text(MODE).map(TlsMode::parse);
    let theirs = jdbc_mode(options);
    let jdbc = [JDBC_MODE, VERIFY_SERVER, REQUIRE_SSL, USE_SSL].into_iter().find(|key| given(key));
    if let (Some(ours), Some(theirs), Some(jdbc)) = (ours, theirs, jdbc)
        && ours != theirs
    {
        note(jdbc, format!("`{jdbc}` says something else than `{MODE}`; leave it out"));
    }
    let mode = ours.or(theirs).unwrap_or_default();
    let said = if ours.is_some() { MODE } else { jdbc.unwrap_or(MODE) };
    if mode.verifies() && !given(CA) {
        note(
            said,
            format!("`{said}` asks for verification, which needs `{CA}`: a PEM file of the authorities"),
        );
    }
    if given(CA) && !mode.verifies() {
        note(CA, format!("`{CA}` has no effect unless `{MODE}` is `verify-ca` or `verify-identity`"));
    }
    for (one, other) in [(CERT, KEY), (KEY, CERT)] {
        if given(one) && !given(other) {
            note(one, format!("`{one}` needs `{other}` beside it"));
        }
    }
    if given(CERT) && mode == TlsMode::Disabled {
        note(CERT, format!("`{CERT}` has no effect with `{said}`: there is no encryption"));
    }
    problems
}

/// Why encryption failed for good, if an error of the driver says so.
pub(crate) fn driver_refusal(error: &mysql_async::Error) -> Option<String> {
    match error {
        mysql_async::Error::Driver(DriverError::NoClientSslFlagFromServer) => {
            Some("the server has no encryption".to_owned())
        }
        mysql_async::Error::Io(IoError::Tls(error)) => Some(error.to_string()),
        mysql_async::Error::Io(IoError::Io(error)) => io_refusal(error),
        _ => None,
    }
}

/// Why encryption failed for good, if an error of a socket says so. Damage on the way may pass and is left out.
pub(crate) fn io_refusal(error: &std::io::Error) -> Option<String> {
    use rustls::Error as Tls;
    let error = error.get_ref()?.downcast_ref::<Tls>()?;
    matches!(
        error,
        Tls::InvalidCertificate(_) | Tls::PeerIncompatible(_) | Tls::AlertReceived(_) | Tls::General(_)
    )
    .then(|| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::options::SPEC;

    fn options(extra: &[(&str, &str)]) -> Options {
        let base = [("hostname", "h"), ("username", "u"), ("password", ""), ("tables", r"a.\.*")];
        let raw: BTreeMap<String, String> =
            base.iter().chain(extra).map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Options::validate(&SPEC, Role::Source, &raw).unwrap()
    }

    #[test]
    fn modes_come_from_our_option_or_from_jdbc() {
        const T: &str = "true";
        const F: &str = "false";
        for (given, expect) in [
            (&[][..], TlsMode::Preferred),
            (&[(MODE, "Disabled")], TlsMode::Disabled),
            (&[(MODE, "required")], TlsMode::Required),
            (&[(MODE, "verify-ca"), (CA, "f")], TlsMode::VerifyCa),
            (&[(MODE, "verify-identity"), (CA, "f")], TlsMode::VerifyIdentity),
            (&[(USE_SSL, F)], TlsMode::Disabled),
            (&[(USE_SSL, T)], TlsMode::Preferred),
            (&[(USE_SSL, T), (REQUIRE_SSL, T)], TlsMode::Required),
            (&[(USE_SSL, F), (REQUIRE_SSL, T)], TlsMode::Disabled),
            (&[(REQUIRE_SSL, F)], TlsMode::Preferred),
            (&[(USE_SSL, T), (VERIFY_SERVER, T), (CA, "f")], TlsMode::VerifyCa),
            (&[(JDBC_MODE, "VERIFY_IDENTITY"), (USE_SSL, F), (CA, "f")], TlsMode::VerifyIdentity),
            (&[(JDBC_MODE, "required"), (MODE, "required")], TlsMode::Required),
        ] {
            let options = options(given);
            assert_eq!(problems(&options), [], "{given:?}");
            assert_eq!(TlsOptions::from_options(&options).mode, expect, "{given:?}");
        }
    }

    #[test]
    fn contradictions_name_the_key() {
        for (given, key) in [
            (&[(MODE, "required"), (USE_SSL, "false")][..], USE_SSL),
            (&[(MODE, "verify-ca")], MODE),
            (&[(JDBC_MODE, "VERIFY_CA")], JDBC_MODE),
            (&[(VERIFY_SERVER, "true")], VERIFY_SERVER),
            (&[(CA, "f")], CA),
            (&[(MODE, "required"), (CA, "f")], CA),
            (&[(CERT, "f")], CERT),
            (&[(KEY, "f")], KEY),
            (&[(MODE, "disabled"), (CERT, "f"), (KEY, "f")], CERT),
        ] {
            let found = problems(&options(given));
            assert!(found.iter().any(|(k, _)| k == key), "{given:?} gave {found:?}");
        }
    }

    #[test]
    fn files_without_certificates_are_refused() {
        let missing = PathBuf::from("/nonexistent/ca.pem");
        let wrong = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        for path in [missing, wrong] {
            let tls = TlsOptions { mode: TlsMode::VerifyCa, ca: Some(path.clone()), identity: None };
            let error = tls.load().err().unwrap();
            assert_eq!(error.code(), Code::PipelineInvalid);
            assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        }
    }
}
