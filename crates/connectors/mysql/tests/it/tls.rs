//! Encryption on real servers that take nothing else: source, binlog and sink, and servers that are not who they should be.
#![allow(clippy::unwrap_used)] // Helpers of tests are tests too.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use canalis_connector_api::{SinkContext, WriterContext};
use canalis_mysql::{Endpoint, Side, TlsMode, TlsOptions, wire};
use canalis_testkit::{OwnedServer, Server, ServerKind};
use canalis_types::{Code, Column, LogicalType, RowKind, TableId, TableSchema};
use mysql_async::prelude::Queryable;

use crate::{
    sink::support::{Letters, batch, row, sink_on, split, split_point},
    source::{Run, cells, execute, source},
};

/// Certificates of a test, removed with it.
struct Papers(PathBuf);

impl Papers {
    /// An authority, a certificate of it for 127.0.0.1, one for a client, and an authority that signed nothing.
    fn make(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("canalis-tls-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let papers = Self(directory);
        for authority in ["ca", "other"] {
            papers.openssl(&format!(
                "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN={authority} \
                 -addext basicConstraints=critical,CA:TRUE -keyout {authority}.key -out {authority}.pem"
            ));
        }
        std::fs::write(papers.path("names"), "basicConstraints=CA:FALSE\nsubjectAltName=IP:127.0.0.1\n")
            .unwrap();
        for holder in ["server", "client"] {
            papers.openssl(&format!(
                "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN={holder} \
                 -keyout {holder}.key -out {holder}.csr"
            ));
            papers.openssl(&format!(
                "x509 -req -in {holder}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile names \
                 -out {holder}.pem"
            ));
        }
        papers
    }

    fn openssl(&self, arguments: &str) {
        let output = Command::new("openssl")
            .args(arguments.split_whitespace())
            .current_dir(&self.0)
            .output()
            .expect("openssl comes with ca-certificates, which ./test installs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }
}

impl Drop for Papers {
    fn drop(&mut self) {
        // What is left in the directory of temporary files harms nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A server with encryption, and the file of the authority that its certificate comes from.
struct Lab {
    server: OwnedServer,
    papers: Papers,
    authority: PathBuf,
    /// Certificate and key of a client, which the server accepts.
    client: [PathBuf; 2],
}

fn labs(name: &str) -> Vec<Lab> {
    let mut labs = Vec::new();
    let papers = Papers::make(&format!("{name}-mariadb"));
    let arguments: Vec<String> = [("ca", "ca.pem"), ("cert", "server.pem"), ("key", "server.key")]
        .iter()
        .map(|(option, file)| format!("--ssl-{option}={}", papers.path(file).display()))
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let Some(server) = canalis_testkit::start_mariadb(&arguments) {
        let client = [papers.path("client.pem"), papers.path("client.key")];
        labs.push(Lab { server, authority: papers.path("ca.pem"), client, papers });
    }
    // MySQL makes its own certificates, without a name in them.
    if let Some(server) = canalis_testkit::start_mysql(&[]) {
        let data = server.log.parent().unwrap().join("data");
        let client = [data.join("client-cert.pem"), data.join("client-key.pem")];
        labs.push(Lab {
            server,
            authority: data.join("ca.pem"),
            client,
            papers: Papers::make(&format!("{name}-mysql")),
        });
    }
    labs
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn endpoint(server: &Server, mode: TlsMode, ca: Option<&Path>) -> Endpoint {
    Endpoint {
        hostname: "127.0.0.1".into(),
        port: server.port,
        username: server.username.clone(),
        password: server.password.clone(),
        connect_timeout: Duration::from_secs(20),
        tls: TlsOptions { mode, ca: ca.map(Path::to_owned), identity: None },
        role: Side::Source,
    }
}

/// The cipher of a connection of each client; both must give the same answer.
async fn ciphers(endpoint: &Endpoint) -> Result<[String; 2], [canalis_types::Error; 2]> {
    const ASK: &str = "SHOW STATUS LIKE 'Ssl_cipher'";
    let driver = async {
        let mut conn = endpoint.connect().await?;
        let row: Option<(String, String)> = conn.query_first(ASK).await.unwrap();
        Ok(row.unwrap().1)
    }
    .await;
    let blocking = endpoint.clone();
    let wire = tokio::task::spawn_blocking(move || {
        let mut connection = wire::Connection::connect(&blocking, Duration::from_secs(20))
            .map_err(|e| e.into_error("connecting"))?;
        Ok(connection.query(ASK).unwrap()[0][1].clone().unwrap())
    })
    .await
    .unwrap();
    match (driver, wire) {
        (Ok(driver), Ok(wire)) => Ok([driver, wire]),
        (Err(driver), Err(wire)) => Err([driver, wire]),
        (driver, wire) => panic!("the clients differ: {driver:?}, {wire:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_mode_encrypts_and_trusts_as_it_says() {
    for lab in labs("modes") {
        let (server, own, other) = (&lab.server, lab.authority.as_path(), lab.papers.path("other.pem"));
        for (mode, ca) in
            [(TlsMode::Preferred, None), (TlsMode::Required, None), (TlsMode::VerifyCa, Some(own))]
        {
            let [driver, wire] = ciphers(&endpoint(server, mode, ca)).await.unwrap();
            assert!(!driver.is_empty() && !wire.is_empty(), "{mode:?} on {}", server.kind);
        }
        assert_eq!(ciphers(&endpoint(server, TlsMode::Disabled, None)).await.unwrap(), ["", ""]);
        for mode in [TlsMode::VerifyCa, TlsMode::VerifyIdentity] {
            for error in ciphers(&endpoint(server, mode, Some(&other))).await.unwrap_err() {
                assert_eq!(error.code(), Code::SourceMisconfigured, "{error}");
                let said = error.to_string();
                assert!(said.contains("ssl.mode") && said.contains("certificate"), "{said}");
            }
        }
        let named = ciphers(&endpoint(server, TlsMode::VerifyIdentity, Some(own))).await;
        match server.kind {
            // Its certificate is for 127.0.0.1, MySQL's own for no name at all.
            ServerKind::MariaDb => assert!(named.unwrap().iter().all(|cipher| !cipher.is_empty())),
            _ => assert!(named.unwrap_err()[0].to_string().contains("not valid for")),
        }
        // An impostor: the right authority, another host name.
        let mut elsewhere = endpoint(server, TlsMode::VerifyIdentity, Some(own));
        elsewhere.hostname = "localhost".into();
        assert_eq!(ciphers(&elsewhere).await.unwrap_err()[0].code(), Code::SourceMisconfigured);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_encryption_is_taken_only_where_the_mode_allows_it() {
    // MariaDB 10.11 has none without certificates.
    let Some(server) = canalis_testkit::start_mariadb(&[]) else { return };
    assert_eq!(ciphers(&endpoint(&server, TlsMode::Preferred, None)).await.unwrap(), ["", ""]);
    for error in ciphers(&endpoint(&server, TlsMode::Required, None)).await.unwrap_err() {
        assert_eq!(error.code(), Code::SourceMisconfigured);
        assert!(error.to_string().contains("no encryption"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshot_stream_and_sink_run_where_nothing_else_is_allowed() {
    for lab in labs("whole") {
        let server = &lab.server;
        let database = server.create_database("tls").await;
        execute(
            server,
            &database,
            &[
                "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))",
                "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
            ],
        )
        .await;
        // Sessions that are open go on; new ones must be encrypted from here on.
        let mut open = server.mysql().await;
        open.query_drop("SET GLOBAL require_secure_transport = ON").await.unwrap();
        assert!(server.try_mysql().await.is_err(), "open lines are refused");

        let ca = text(&lab.authority);
        let verified = [("ssl.mode", "verify-ca"), ("ssl.ca", ca)];
        let reading = source(server, &database, &verified);
        let mut run = Run::begin(&*reading).await;
        assert_eq!(cells(run.snapshot().await, 0).len(), 2);
        open.query_drop(format!("INSERT INTO `{database}`.t VALUES (3, 'c')")).await.unwrap();
        assert_eq!(cells(run.stream(1).await, 0), [[Some("3".to_owned()), Some("c".to_owned())]]);

        // From here on every session of the account needs a certificate of its own.
        let [cert, key] = &lab.client;
        open.query_drop(format!("ALTER USER '{}'@'127.0.0.1' REQUIRE X509", server.username)).await.unwrap();
        let without = endpoint(server, TlsMode::VerifyCa, Some(&lab.authority));
        for error in ciphers(&without).await.unwrap_err() {
            assert_eq!(error.code(), Code::SourceAccessDenied, "{error}");
        }
        let mut with = without;
        with.tls.identity = Some((cert.clone(), key.clone()));
        assert!(ciphers(&with).await.unwrap().iter().all(|cipher| !cipher.is_empty()));

        let other = lab.papers.path("other.pem");
        let context = SinkContext { job: "tls".into(), writers: 1, fresh: true, tables: Vec::new() };
        let distrusting = sink_on(server, &database, &[("ssl.mode", "verify-ca"), ("ssl.ca", text(&other))]);
        let error = distrusting.open(&context).await.err().unwrap();
        assert_eq!(error.code(), Code::SinkFailed);
        assert!(error.to_string().contains("ssl.mode"), "{error}");

        let options = [verified.as_slice(), &[("ssl.cert", text(cert)), ("ssl.key", text(key))]].concat();
        let sink = sink_on(server, &database, &options);
        sink.open(&context).await.unwrap();
        let columns = vec![Column::new("id", LogicalType::Int32, false)];
        let id = TableId::new(&database, "loaded");
        let schema = Arc::new(TableSchema::new(id, columns, vec!["id".to_owned()]));
        sink.prepare_table(&schema, true).await.unwrap();
        let letters = Arc::new(Letters::default());
        let context = WriterContext { job: "tls".into(), index: 0, writers: 1, dead_letters: letters };
        let mut writer = sink.open_writer(context).await.unwrap();
        writer.begin_split(&split("s", &schema, false)).await.unwrap();
        // Enough for LOAD DATA.
        let numbers: Vec<String> = (0..5000).map(|n: u32| n.to_string()).collect();
        let rows: Vec<_> = numbers.iter().map(|n| row(RowKind::Insert, &[n.as_str()])).collect();
        writer.write(batch(&schema, &rows)).await.unwrap();
        writer.commit(&split_point("s")).await.unwrap();
        let loads: Option<(String, u64)> =
            open.query_first("SHOW GLOBAL STATUS LIKE 'Com_load'").await.unwrap();
        assert!(loads.unwrap().1 > 0, "the rows went by LOAD DATA");
        let sum: Option<(u64, u64)> =
            open.query_first(format!("SELECT COUNT(*), MAX(id) FROM `{database}`.loaded")).await.unwrap();
        assert_eq!(sum, Some((5000, 4999)));
    }
}
