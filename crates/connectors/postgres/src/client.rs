//! Owns connections: endpoint, session settings that make values exact, and the advisory lock that keeps two owners
//! of one job apart.

use std::time::Duration;

use canalis_connector_api::Options;
use canalis_types::{Code, Error, Result};
use tokio_postgres::{
    Client, Config, NoTls, Socket,
    config::SslMode,
    tls::{MakeTlsConnect, TlsConnect},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{
    error::to_error,
    tls::{self, TlsMode, TlsOptions},
};

/// Session settings. Texts of dates, intervals and bytes are read the same way whatever the server's defaults are,
/// a COMMIT cannot fail for another session's sake, and a session that waits for its job is not closed.
const SETTINGS: &str = "SET client_encoding = 'UTF8'; SET standard_conforming_strings = on; \
    SET TimeZone = 'UTC'; SET DateStyle = 'ISO, YMD'; SET IntervalStyle = 'postgres'; \
    SET extra_float_digits = 1; SET default_transaction_isolation = 'read committed'; SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; \
    SET client_min_messages = error; SET temp_buffers = '16MB'";

/// How long a dead peer may go unnoticed.
const PEER_TIMEOUT: Duration = Duration::from_secs(30);

/// How long [`wait_for_owners`] waits for sessions of an earlier owner to end.
const OWNER_TIMEOUT: Duration = Duration::from_secs(20);

/// Where and as whom to connect.
#[derive(Clone)]
pub struct Endpoint {
    /// Host name or address.
    pub hostname: String,
    /// Port.
    pub port: u16,
    /// Role.
    pub username: String,
    /// Password, possibly empty.
    pub password: String,
    /// Database.
    pub database: String,
    /// Encryption.
    pub tls: TlsOptions,
    /// Time limit for connecting.
    pub connect_timeout: Duration,
}

impl Endpoint {
    /// Reads `hostname`, `port`, `username`, `password`, `database`, `connect.timeout` and the options of encryption.
    pub fn from_options(options: &Options) -> Result<Self> {
        let port = options.integer("port")?;
        Ok(Self {
            hostname: options.required("hostname")?.to_owned(),
            port: u16::try_from(port)
                .map_err(|_| Error::new(Code::PipelineInvalid, format!("port {port} is out of range")))?,
            username: options.required("username")?.to_owned(),
            password: options.text("password").unwrap_or_default().to_owned(),
            database: options.required("database")?.to_owned(),
            tls: TlsOptions::from_options(options)?,
            connect_timeout: options.duration("connect.timeout")?,
        })
    }

    /// `host:port/database`, for messages.
    pub fn address(&self) -> String {
        format!("{}:{}/{}", self.hostname, self.port, self.database)
    }

    /// Opens a session. Its connection task ends by itself when the client is dropped.
    ///
    /// # Errors
    /// Unreachable (transient), access denied, or encryption that does not come about as asked for (`CNL-3007`).
    pub async fn connect(&self) -> Result<Client> {
        let mut config = Config::new();
        config
            .host(&self.hostname)
            .port(self.port)
            .user(&self.username)
            .dbname(&self.database)
            .application_name("canalis")
            .connect_timeout(self.connect_timeout)
            .tcp_user_timeout(PEER_TIMEOUT)
            .keepalives_idle(PEER_TIMEOUT)
            .keepalives_interval(PEER_TIMEOUT / 3)
            .keepalives_retries(3);
        if !self.password.is_empty() {
            config.password(&self.password);
        }
        let doing = format!("connecting to {}", self.address());
        let options = self.tls.clone();
        let files = tokio::task::spawn_blocking(move || options.client_config())
            .await
            .map_err(|e| Error::internal("reading certificates").with_source(e))??;
        // Over a Unix socket libpq encrypts nothing either.
        let mode = if self.hostname.starts_with('/') { TlsMode::Disable } else { self.tls.mode };
        let connecting = async {
            config.ssl_mode(match mode {
                TlsMode::Disable => return session(&config, NoTls).await,
                TlsMode::Prefer => SslMode::Prefer,
                TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => SslMode::Require,
            });
            let answer = session(&config, MakeRustlsConnect::new(files)).await;
            match answer.as_ref().err().and_then(tls::refusal) {
                Some(why) if mode == TlsMode::Prefer => {
                    tracing::debug!(server = %self.address(), why, "connecting without encryption");
                    config.ssl_mode(SslMode::Disable);
                    session(&config, NoTls).await
                }
                _ => answer,
            }
        };
        match tokio::time::timeout(self.connect_timeout, connecting).await {
            Ok(Ok(client)) => Ok(client),
            Ok(Err(error)) => Err(match tls::refusal(&error) {
                Some(why) => Error::new(Code::SinkFailed, format!("{doing}: encryption (`sslmode`): {why}")),
                None => to_error(&doing, error),
            }),
            Err(_) => Err(Error::new(
                Code::SinkUnreachable,
                format!("{doing} took longer than {:?}", self.connect_timeout),
            )),
        }
    }
}

async fn session<T>(config: &Config, tls: T) -> std::result::Result<Client, tokio_postgres::Error>
where
    T: MakeTlsConnect<Socket> + Send,
    T::Stream: Send + 'static,
    T::TlsConnect: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    let (client, connection) = config.connect(tls).await?;
    // The task owns the socket and ends with the client; its error also reaches every waiting statement.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "connection to the PostgreSQL sink ended");
        }
    });
    client.batch_execute(SETTINGS).await?;
    Ok(client)
}

/// Key of the advisory lock of a job: FNV-1a of its name, in the form of a number literal.
fn lock_key(job: &str) -> i64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in b"canalis:".iter().chain(job.as_bytes()) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    i64::from_be_bytes(hash.to_be_bytes())
}

/// Marks this session as a writer of the job until it ends.
pub async fn hold_job(client: &Client, job: &str) -> Result<()> {
    client
        .batch_execute(&format!("SELECT pg_advisory_lock_shared({})", lock_key(job)))
        .await
        .map_err(|e| to_error("taking the job's advisory lock", e))
}

/// Waits until no session writes for the job.
///
/// A killed process may have left a statement with its COMMIT at the server. Only when the last such session has
/// ended do the progress records say what is durable.
///
/// # Errors
/// Contention (transient) when a session is still there after a while: another process may own the job.
pub async fn wait_for_owners(client: &Client, job: &str) -> Result<()> {
    let key = lock_key(job);
    let sql = format!(
        "SET lock_timeout = {}; SELECT pg_advisory_lock({key}); SELECT pg_advisory_unlock({key}); RESET lock_timeout",
        OWNER_TIMEOUT.as_millis()
    );
    client.batch_execute(&sql).await.map_err(|e| {
        to_error(
            &format!("waiting for earlier writers of job `{job}` to end (is another process running it?)"),
            e,
        )
    })
}
