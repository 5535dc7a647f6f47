//! Owns logging in: the handshake, encryption if wanted, and the account's way to prove its password.

use mysql_common::{
    constants::CapabilityFlags,
    crypto,
    io::ParseBuf,
    packets::{AuthPlugin, HandshakePacket, HandshakeResponse, SslRequest},
    proto::MySerialize,
};

use super::{PacketStream, WireError, query::server_error, tls};
use crate::{Endpoint, TlsMode};

/// Greatest packet that the client says it takes.
const MAX_PACKET: u32 = 1 << 30;

fn protocol(what: impl Into<String>) -> WireError {
    WireError::Protocol(what.into())
}

/// Logs in and gives the server's version.
pub fn login(stream: &mut PacketStream, endpoint: &Endpoint, mode: TlsMode) -> Result<String, WireError> {
    let hello = stream.receive()?;
    if hello.first() == Some(&0xff) {
        return Err(server_error(hello));
    }
    let hello: HandshakePacket<'_> =
        ParseBuf(hello).parse(()).map_err(|e| protocol(format!("handshake of the server: {e}")))?;
    let server = hello.capabilities();
    if !server.contains(CapabilityFlags::CLIENT_PROTOCOL_41 | CapabilityFlags::CLIENT_PLUGIN_AUTH) {
        return Err(protocol("the server is too old"));
    }
    let version = hello.server_version_str().into_owned();
    let mut nonce = hello.nonce();
    let mut plugin = hello.auth_plugin().unwrap_or(AuthPlugin::MysqlNativePassword).into_owned();

    let mut capabilities = CapabilityFlags::CLIENT_PROTOCOL_41
        | CapabilityFlags::CLIENT_LONG_PASSWORD
        | CapabilityFlags::CLIENT_SECURE_CONNECTION
        | CapabilityFlags::CLIENT_TRANSACTIONS
        | CapabilityFlags::CLIENT_PLUGIN_AUTH;
    let can_encrypt = server.contains(CapabilityFlags::CLIENT_SSL);
    if !matches!(mode, TlsMode::Disabled | TlsMode::Preferred) && !can_encrypt {
        return Err(WireError::Tls("the server has no encryption".to_owned()));
    }
    if mode != TlsMode::Disabled && can_encrypt {
        capabilities |= CapabilityFlags::CLIENT_SSL;
        let mut request = Vec::new();
        SslRequest::new(capabilities, MAX_PACKET, 45).serialize(&mut request);
        stream.send(&request)?;
        encrypt(stream, endpoint)?;
    }
    if !known(&plugin) {
        // The server then names the account's plug-in in an auth switch.
        plugin = AuthPlugin::MysqlNativePassword;
    }
    let scramble = plugin.gen_data(Some(&endpoint.password), &nonce).map(|data| data.to_vec());
    let mut response = Vec::new();
    HandshakeResponse::new(
        scramble,
        (8, 0, 0),
        Some(endpoint.username.as_bytes()),
        None::<&[u8]>,
        Some(plugin.borrow()),
        capabilities,
        None,
        MAX_PACKET,
    )
    .serialize(&mut response);
    stream.send(&response)?;

    loop {
        let answer = stream.receive()?;
        match answer.split_first() {
            Some((0x00, _)) => return Ok(version),
            Some((0xff, _)) => return Err(server_error(answer)),
            Some((0xfe, switch)) => {
                let (name, data) = split_zero(switch);
                plugin = AuthPlugin::from_bytes(name).into_owned();
                nonce = data.strip_suffix(&[0]).unwrap_or(data).to_vec();
                let data = match &plugin {
                    AuthPlugin::MysqlClearPassword if !stream.is_tls() => {
                        return Err(protocol(
                            "the server wants the password in clear text over an open line",
                        ));
                    }
                    other if known(other) => other.gen_data(Some(&endpoint.password), &nonce),
                    other => {
                        let name = String::from_utf8_lossy(other.as_bytes()).into_owned();
                        return Err(protocol(format!(
                            "the account's authentication plug-in {name} is not known"
                        )));
                    }
                };
                let mut data = data.map(|data| data.to_vec()).unwrap_or_default();
                if plugin == AuthPlugin::MysqlClearPassword {
                    data.push(0);
                }
                stream.send(&data)?;
            }
            Some((0x01, more)) if plugin == AuthPlugin::CachingSha2Password => match more {
                // The server remembers the password; its OK follows.
                [0x03] => {}
                [0x04] => full_password(stream, &endpoint.password, &nonce)?,
                _ => return Err(protocol("the server continues the login in an unknown way")),
            },
            _ => return Err(protocol("the server answers the login in an unknown way")),
        }
    }
}

fn known(plugin: &AuthPlugin<'_>) -> bool {
    matches!(
        plugin,
        AuthPlugin::MysqlNativePassword
            | AuthPlugin::CachingSha2Password
            | AuthPlugin::Ed25519
            | AuthPlugin::MysqlClearPassword
    )
}

fn split_zero(bytes: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(0, bytes) {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (bytes, &[]),
    }
}

fn encrypt(stream: &mut PacketStream, endpoint: &Endpoint) -> Result<(), WireError> {
    let plain = stream.socket().try_clone()?;
    let taken = std::mem::replace(stream, PacketStream::new(plain));
    *stream = taken.upgrade(|socket| tls::wrap(socket, &endpoint.hostname, &endpoint.tls))?;
    Ok(())
}

/// `caching_sha2_password` when the server does not remember the password: in clear text over an encrypted line,
/// else encrypted with the server's public key.
fn full_password(stream: &mut PacketStream, password: &str, nonce: &[u8]) -> Result<(), WireError> {
    const REQUEST_KEY: u8 = 0x02;
    let mut secret = password.as_bytes().to_vec();
    secret.push(0);
    if stream.is_tls() {
        return stream.send(&secret);
    }
    stream.send(&[REQUEST_KEY])?;
    let answer = stream.receive()?;
    let key = match answer.split_first() {
        Some((0x01, key)) if key.starts_with(b"-----BEGIN") => key.to_vec(),
        Some((0xff, _)) => return Err(server_error(answer)),
        _ => return Err(protocol("the server has no public key for the password")),
    };
    for (byte, mask) in secret.iter_mut().zip(nonce.iter().cycle()) {
        *byte ^= mask;
    }
    stream.send(&crypto::encrypt(&secret, &key))
}
