//! Owns encryption of a connection, with the server's certificate verified as far as the mode says. Where it is not, as
//! with MySQL's own client in the modes PREFERRED and REQUIRED, listeners are kept out, but not impostors.

use std::{net::TcpStream, sync::Arc};

use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
    StreamOwned,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};

use super::WireError;
use crate::{TlsMode, TlsOptions};

/// An encrypted socket.
pub type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// Begins encryption on a socket; the handshake runs with the first bytes.
pub fn wrap(socket: TcpStream, hostname: &str, tls: &TlsOptions) -> Result<TlsStream, WireError> {
    let failed = |e: rustls::Error| WireError::Tls(e.to_string());
    let files = tls.load().map_err(|e| WireError::Tls(e.message().to_owned()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Verifier::new(tls.mode, files.roots, &provider)?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let config = match files.identity {
        Some((chain, key)) => config.with_client_auth_cert(chain, key).map_err(failed)?,
        None => config.with_no_client_auth(),
    };
    let name = ServerName::try_from(hostname.to_owned())
        .map_err(|e| WireError::Tls(format!("host name {hostname:?}: {e}")))?;
    let connection = ClientConnection::new(Arc::new(config), name).map_err(failed)?;
    Ok(StreamOwned::new(connection, socket))
}

/// Looks at the server's certificate as the mode says.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    /// None takes any certificate, but only with a signature that its key made.
    chain: Option<Arc<WebPkiServerVerifier>>,
    mode: TlsMode,
}

impl Verifier {
    fn new(
        mode: TlsMode,
        authorities: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, WireError> {
        let mut chain = None;
        if mode.verifies() {
            let mut roots = RootCertStore::empty();
            for authority in authorities {
                roots.add(authority).map_err(|e| WireError::Tls(format!("certificate of `ssl.ca`: {e}")))?;
            }
            let built =
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
            chain = Some(built.map_err(|e| WireError::Tls(format!("certificates of `ssl.ca`: {e}")))?);
        }
        Ok(Self { provider: provider.clone(), chain, mode })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The name is looked at last: chain, times and purpose are as they must be.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.mode == TlsMode::VerifyCa => Ok(ServerCertVerified::assertion()),
            answer => answer,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
