//! Owns encryption of a connection. The server's certificate is not verified, as with MySQL's own client in the
//! modes PREFERRED and REQUIRED: it keeps listeners out, not impostors.

use std::{net::TcpStream, sync::Arc};

use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};

use super::WireError;

/// An encrypted socket.
pub type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// Begins encryption on a socket; the handshake runs with the first bytes.
pub fn wrap(socket: TcpStream, hostname: &str) -> Result<TlsStream, WireError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let failed = |e: rustls::Error| WireError::Protocol(format!("tls: {e}"));
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    let name = ServerName::try_from(hostname.to_owned())
        .map_err(|e| WireError::Protocol(format!("tls: host name {hostname:?}: {e}")))?;
    let connection = ClientConnection::new(Arc::new(config), name).map_err(failed)?;
    Ok(StreamOwned::new(connection, socket))
}

/// Takes any certificate, but only with a signature that its key made.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
