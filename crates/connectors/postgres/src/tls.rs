//! Owns encryption: the modes in libpq's words, certificates from files, and what of a server's certificate is verified.

use std::{
    error::Error as StdError,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use canalis_connector_api::{OptionSpec, OptionType, Options, Role};
use canalis_types::{Code, Error, Result};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::{
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_cert_signed_by_trust_anchor, verify_server_name,
    },
    crypto::{self, WebPkiSupportedAlgorithms, ring},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    server::ParsedCertificate,
};

/// How a connection is encrypted and whom it trusts.
pub const SSLMODE: OptionSpec = OptionSpec::new(
    MODE,
    OptionType::Enum(&["disable", "prefer", "require", "verify-ca", "verify-full"]),
    Role::Sink,
    "Encryption, in libpq's words: never, if the server can, always, always and with a certificate of `sslrootcert`, \
     or also one for `hostname`.",
)
.default("prefer");

/// Authorities.
pub const SSLROOTCERT: OptionSpec = OptionSpec::new(
    ROOT,
    OptionType::Text,
    Role::Sink,
    "PEM file of the authorities that the server's certificate may come from; with it `require` is `verify-ca`.",
);

/// The client's certificate.
pub const SSLCERT: OptionSpec = OptionSpec::new(
    CERT,
    OptionType::Text,
    Role::Sink,
    "PEM file of the client's own certificate, with its chain.",
);

/// The client's key.
pub const SSLKEY: OptionSpec = OptionSpec::new(
    KEY,
    OptionType::Text,
    Role::Sink,
    "PEM file of the key of `sslcert`, without a password.",
);

const MODE: &str = "sslmode";
const ROOT: &str = "sslrootcert";
const CERT: &str = "sslcert";
const KEY: &str = "sslkey";

/// Whether connections are encrypted, and what the server must prove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsMode {
    /// Never encrypted.
    Disable,
    /// Encrypted if the server can; any certificate will do.
    Prefer,
    /// Always encrypted; any certificate will do.
    Require,
    /// Always, with a certificate that an authority of `sslrootcert` has signed.
    VerifyCa,
    /// The same, and the certificate is for the host name.
    VerifyFull,
}

/// Options of encryption, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsOptions {
    /// What is asked for.
    pub mode: TlsMode,
    root: Option<PathBuf>,
    identity: Option<(PathBuf, PathBuf)>,
}

impl TlsOptions {
    /// Reads validated options.
    ///
    /// # Errors
    /// Definition errors, for options that were not validated.
    pub fn from_options(options: &Options) -> Result<Self> {
        let path = |key: &str| options.text(key).map(PathBuf::from);
        let root = path(ROOT);
        let mode = match mode(options)? {
            // As libpq does, which cannot know whether an old file meant it.
            TlsMode::Require if root.is_some() => TlsMode::VerifyCa,
            mode => mode,
        };
        Ok(Self { mode, root, identity: path(CERT).zip(path(KEY)) })
    }

    /// Reads the files, at every connection, so that renewed certificates are taken. Blocks.
    ///
    /// # Errors
    /// Definition errors when a file cannot be read or does not hold what it should.
    pub fn client_config(&self) -> Result<ClientConfig> {
        let provider = Arc::new(ring::default_provider());
        let algorithms = provider.signature_verification_algorithms;
        let trust = match (self.mode, &self.root) {
            (TlsMode::VerifyCa, Some(path)) => Trust::Authorities(roots(path)?),
            (TlsMode::VerifyFull, Some(path)) => Trust::AuthoritiesAndName(roots(path)?),
            (TlsMode::VerifyCa | TlsMode::VerifyFull, None) => {
                return Err(Error::new(Code::PipelineInvalid, needs_root(MODE)));
            }
            _ => Trust::Anyone,
        };
        let wrong = |e: rustls::Error| {
            Error::new(Code::PipelineInvalid, "preparing encryption (`sslcert`, `sslkey`)").with_source(e)
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(wrong)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Verifier { trust, algorithms }));
        let Some((cert, key)) = &self.identity else { return Ok(builder.with_no_client_auth()) };
        let chain = certificates(CERT, cert)?;
        let pem = read(KEY, key)?;
        let key = PrivateKeyDer::from_pem_slice(&pem)
            .map_err(|e| unusable(KEY, key, &format!("it holds no private key in PEM: {e}")))?;
        builder.with_client_auth_cert(chain, key).map_err(wrong)
    }
}

/// Problems of options that contradict each other or would have no effect, as `(key, message)`.
pub fn problems(options: &Options) -> Vec<(String, String)> {
    let mut problems = Vec::new();
    let mut note = |key: &str, message: String| problems.push((key.to_owned(), message));
    let given = |key: &str| options.text(key).is_some();
    let Ok(mode) = mode(options) else { return problems };
    let verifies = matches!(mode, TlsMode::VerifyCa | TlsMode::VerifyFull);
    if verifies && !given(ROOT) {
        note(MODE, needs_root(MODE));
    }
    if given(ROOT) && !verifies && mode != TlsMode::Require {
        note(
            ROOT,
            format!("`{ROOT}` has no effect unless `{MODE}` is `require`, `verify-ca` or `verify-full`"),
        );
    }
    for (one, other) in [(CERT, KEY), (KEY, CERT)] {
        if given(one) && !given(other) {
            note(one, format!("`{one}` needs `{other}` beside it"));
        }
    }
    if given(CERT) && mode == TlsMode::Disable {
        note(CERT, format!("`{CERT}` has no effect with `{MODE}: disable`"));
    }
    problems
}

/// Why encryption failed for good, if an error of the driver says so. Connections that break on the way do not count.
pub fn refusal(error: &tokio_postgres::Error) -> Option<String> {
    let cause = error.source()?;
    let Some(io) = cause.downcast_ref::<io::Error>() else {
        // The driver has no kinds of errors for others to match.
        let handshake = error.to_string().starts_with("error performing TLS handshake");
        return handshake.then(|| cause.to_string());
    };
    match io.get_ref()?.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            Some(format!("the server's certificate is signed by none of the authorities in `{ROOT}`"))
        }
        error @ (rustls::Error::InvalidCertificate(_)
        | rustls::Error::PeerIncompatible(_)
        | rustls::Error::AlertReceived(_)
        | rustls::Error::General(_)) => Some(error.to_string()),
        _ => None,
    }
}

fn mode(options: &Options) -> Result<TlsMode> {
    Ok(match options.word(MODE)?.as_str() {
        "disable" => TlsMode::Disable,
        "require" => TlsMode::Require,
        "verify-ca" => TlsMode::VerifyCa,
        "verify-full" => TlsMode::VerifyFull,
        _ => TlsMode::Prefer,
    })
}

fn needs_root(key: &str) -> String {
    format!("`{key}` asks for verification, which needs `{ROOT}`: a PEM file of the authorities")
}

fn roots(path: &Path) -> Result<RootCertStore> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(ROOT, path)? {
        store.add(certificate).map_err(|e| unusable(ROOT, path, &e.to_string()))?;
    }
    Ok(store)
}

fn certificates(key: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let pem = read(key, path)?;
    let found: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(unusable(key, path, "it holds no certificate in PEM")),
        Err(error) => Err(unusable(key, path, &format!("it is no PEM: {error}"))),
    }
}

fn read(key: &str, path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|e| unusable(key, path, &e.to_string()))
}

fn unusable(key: &str, path: &Path, why: &str) -> Error {
    Error::new(Code::PipelineInvalid, format!("reading `{key}` from {}: {why}", path.display()))
}

/// What a server's certificate must be.
#[derive(Debug)]
enum Trust {
    /// Its own: the server proves that it has the key, no more.
    Anyone,
    /// Signed by an authority.
    Authorities(RootCertStore),
    /// Signed by an authority, for the host name.
    AuthoritiesAndName(RootCertStore),
}

#[derive(Debug)]
struct Verifier {
    trust: Trust,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        let (Trust::Authorities(roots) | Trust::AuthoritiesAndName(roots)) = &self.trust else {
            return Ok(ServerCertVerified::assertion());
        };
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&certificate, roots, intermediates, now, algorithms)?;
        if let Trust::AuthoritiesAndName(_) = &self.trust {
            verify_server_name(&certificate, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        crypto::verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        crypto::verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
