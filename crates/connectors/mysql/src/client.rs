//! Owns connections: endpoint, session settings that make values exact, and what the server is.

use std::time::Duration;

use canalis_connector_api::Options;
use canalis_types::{Code, Error, ErrorKind, Result};
use mysql_async::{Conn, OptsBuilder, SslOpts, prelude::Queryable};

use crate::{TlsMode, TlsOptions, tls};

/// Which family a server belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavor {
    /// MySQL.
    MySql,
    /// MariaDB.
    MariaDb,
}

/// What a server says about itself.
#[derive(Debug, Clone)]
pub struct ServerInfo {
    /// Family.
    pub flavor: Flavor,
    /// Version as (major, minor, patch).
    pub version: (u16, u16, u16),
    /// The version text.
    pub version_text: String,
}

/// Where and as whom to connect.
#[derive(Clone)]
pub struct Endpoint {
    /// Host name or address.
    pub hostname: String,
    /// Port.
    pub port: u16,
    /// Account.
    pub username: String,
    /// Password, possibly empty.
    pub password: String,
    /// Time limit for connecting.
    pub connect_timeout: Duration,
    /// Encryption.
    pub tls: TlsOptions,
    /// Which side it is, for error codes.
    pub role: Side,
}

/// Side of a job that an endpoint stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Read from.
    Source,
    /// Written to.
    Sink,
}

impl Endpoint {
    /// Reads `hostname`, `port`, `username`, `password`, `connect.timeout` and the options of encryption.
    pub fn from_options(options: &Options, role: Side) -> Result<Self> {
        let port = options.integer("port")?;
        Ok(Self {
            hostname: options.required("hostname")?.to_owned(),
            port: u16::try_from(port)
                .map_err(|_| Error::new(Code::PipelineInvalid, format!("port {port} is out of range")))?,
            username: options.required("username")?.to_owned(),
            password: options.text("password").unwrap_or_default().to_owned(),
            connect_timeout: options.duration("connect.timeout")?,
            tls: TlsOptions::from_options(options),
            role,
        })
    }

    /// `host:port`, for messages.
    pub fn address(&self) -> String {
        format!("{}:{}", self.hostname, self.port)
    }

    /// Opens a session with exact values: utf8mb4, UTC, strict about nothing that would change a value in silence.
    ///
    /// # Errors
    /// Unreachable (transient), access denied or encryption refused, by side.
    pub async fn connect(&self) -> Result<Conn> {
        let files = self.tls.clone();
        let certificates = tokio::task::spawn_blocking(move || files.load())
            .await
            .map_err(|e| Error::internal("reading certificates").with_source(e))??;
        let connecting = async {
            let answer = self.connect_with(self.tls.for_driver(certificates)).await;
            match answer.as_ref().err().and_then(tls::driver_refusal) {
                Some(why) if self.tls.mode == TlsMode::Preferred => {
                    tracing::debug!(server = %self.address(), why, "connecting without encryption");
                    self.connect_with(None).await
                }
                _ => answer,
            }
        };
        match tokio::time::timeout(self.connect_timeout, connecting).await {
            Ok(Ok(conn)) => Ok(conn),
            Ok(Err(error)) => Err(self.error(&format!("connecting to {}", self.address()), error)),
            Err(_) => Err(Error::new(
                self.unreachable(),
                format!("connecting to {} took longer than {:?}", self.address(), self.connect_timeout),
            )),
        }
    }

    async fn connect_with(&self, ssl: Option<SslOpts>) -> mysql_async::Result<Conn> {
        let opts = OptsBuilder::default()
            .ip_or_hostname(self.hostname.clone())
            .tcp_port(self.port)
            .user(Some(self.username.clone()))
            .pass(Some(self.password.clone()))
            .prefer_socket(false)
            .ssl_opts(ssl)
            .tcp_nodelay(true)
            .stmt_cache_size(16)
            .setup(vec![
                "SET NAMES utf8mb4",
                "SET time_zone = '+00:00'",
                "SET SESSION net_write_timeout = 3600",
                "SET SESSION net_read_timeout = 3600",
            ]);
        Conn::new(opts).await
    }

    fn unreachable(&self) -> Code {
        match self.role {
            Side::Source => Code::SourceUnreachable,
            Side::Sink => Code::SinkUnreachable,
        }
    }

    /// Turns a driver error into ours: lost connections and lock conflicts are transient, missing rights are denied
    /// access, anything else is final.
    pub fn error(&self, doing: &str, error: mysql_async::Error) -> Error {
        if let Some(why) = tls::driver_refusal(&error) {
            let message = format!("{doing}: encryption (`ssl.mode`): {why}");
            return match self.role {
                Side::Source => Error::new(Code::SourceMisconfigured, message),
                Side::Sink => Error::new(Code::SinkFailed, message).with_kind(ErrorKind::Sink),
            };
        }
        let code = match (&error, self.role) {
            (mysql_async::Error::Server(e), role) => match (e.code, role) {
                // Access denied, missing privileges, unknown database for the account.
                (1044 | 1045 | 1142 | 1143 | 1227 | 1698 | 3118, Side::Source) => Code::SourceAccessDenied,
                (1044 | 1045 | 1142 | 1143 | 1227 | 1698 | 3118, Side::Sink) => Code::SinkAccessDenied,
                // Lock wait time-out, deadlock, and MariaDB's record-changed.
                (1205 | 1213 | 1020, Side::Sink) => Code::SinkContention,
                // Shutdown in progress, too many connections, killed, server gone.
                (1053 | 1040 | 1203 | 1317 | 1927 | 2006 | 2013 | 3169, _) => self.unreachable(),
                (_, Side::Source) => Code::SourceMisconfigured,
                (_, Side::Sink) => Code::SinkFailed,
            },
            (mysql_async::Error::Io(_) | mysql_async::Error::Driver(_), _) => self.unreachable(),
            _ => Code::Internal,
        };
        let error = Error::new(code, doing.to_owned()).with_source(error);
        if code == Code::SinkFailed { error.with_kind(ErrorKind::Sink) } else { error }
    }
}

/// Asks the server what it is.
pub async fn server_info(endpoint: &Endpoint, conn: &mut Conn) -> Result<ServerInfo> {
    let text: Option<String> = conn
        .query_first("SELECT VERSION()")
        .await
        .map_err(|e| endpoint.error("asking for the server version", e))?;
    let version_text = text.unwrap_or_default();
    let flavor =
        if version_text.to_lowercase().contains("mariadb") { Flavor::MariaDb } else { Flavor::MySql };
    // MariaDB may announce itself as 5.5.5-10.11.9-MariaDB.
    let plain = version_text.strip_prefix("5.5.5-").unwrap_or(&version_text);
    let mut numbers = plain
        .split(|c: char| !c.is_ascii_digit())
        .map(|n| n.parse::<u16>().unwrap_or(0))
        .chain(std::iter::repeat(0));
    let mut next = || numbers.next().unwrap_or(0);
    let version = (next(), next(), next());
    Ok(ServerInfo { flavor, version, version_text })
}
