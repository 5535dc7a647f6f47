//! Encrypted connections to a server whose certificates the test makes.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::PathBuf,
    sync::Arc,
};

use canalis_connector_api::{Connector, Options, Role, Severity, Sink, SinkContext, SplitMode};
use canalis_postgres::{PostgresConnector, SPEC};
use canalis_testkit::OwnedServer;
use canalis_types::{Code, ErrorKind, RowKind};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use tempfile::TempDir;

use crate::lab::{JOB, Letters, Start, pair_batch, pairs, split, splits, start};

/// A server with encryption, a client of it that must show a certificate, and an authority of nobody.
struct Encrypted {
    files: TempDir,
    server: OwnedServer,
    database: String,
}

type Authority = Issuer<'static, KeyPair>;

/// Options of a sink.
type Given = &'static [(&'static str, &'static str)];

fn authority(name: &str) -> (String, Authority) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    (pem, Issuer::new(params, key))
}

/// Certificate and key in PEM.
fn signed(by: &Authority, common_name: &str, names: &[&str], usage: ExtendedKeyUsagePurpose) -> [String; 2] {
    let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.extended_key_usages = vec![usage];
    let key = KeyPair::generate().unwrap();
    [params.signed_by(&key, by).unwrap().pem(), key.serialize_pem()]
}

impl Encrypted {
    async fn new() -> Option<Self> {
        let files = tempfile::tempdir().unwrap();
        let (ca, issuer) = authority("authority");
        let (stranger, _) = authority("stranger");
        let [server_cert, server_key] =
            signed(&issuer, "server", &["localhost"], ExtendedKeyUsagePurpose::ServerAuth);
        let [client_cert, client_key] =
            signed(&issuer, "certified", &[], ExtendedKeyUsagePurpose::ClientAuth);
        let access = "hostssl all certified 127.0.0.1/32 cert\nhost all all 127.0.0.1/32 scram-sha-256\n";
        for (name, content) in [
            ("ca.pem", ca.as_str()),
            ("stranger.pem", &stranger),
            ("server.pem", &server_cert),
            ("server.key", &server_key),
            ("client.pem", &client_cert),
            ("client.key", &client_key),
            ("access", access),
        ] {
            fs::write(files.path().join(name), content).unwrap();
        }
        fs::set_permissions(files.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let key = files.path().join("server.key");
        // The server insists on a key of its own account, which is not ours when we are root.
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        if fs::metadata(&key).unwrap().uid() == 0
            && let Some([user, group]) = account("postgres")
        {
            chown(&key, Some(user), Some(group)).unwrap();
        }
        let file = |name: &str| files.path().join(name).display().to_string();
        let settings = [
            "ssl=on".to_owned(),
            format!("ssl_ca_file={}", file("ca.pem")),
            format!("ssl_cert_file={}", file("server.pem")),
            format!("ssl_key_file={}", file("server.key")),
            format!("hba_file={}", file("access")),
        ];
        let arguments: Vec<&str> = settings.iter().flat_map(|s| ["-c", s.as_str()]).collect();
        let server = canalis_testkit::start_postgres(&arguments)?;
        let database = server.create_database("tls").await;
        Some(Self { files, server, database })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// A sink with these options; values that begin with `@` are files of ours.
    fn sink(&self, given: &[(&str, &str)]) -> Arc<dyn Sink> {
        let port = self.server.port.to_string();
        let fixed = [
            ("hostname", "127.0.0.1"),
            ("port", port.as_str()),
            ("username", self.server.username.as_str()),
            ("password", self.server.password.as_str()),
            ("database", self.database.as_str()),
        ];
        let mut raw: BTreeMap<String, String> = BTreeMap::new();
        for (key, value) in fixed.iter().chain(given) {
            let value = match value.strip_prefix('@') {
                Some(name) => self.file(name).display().to_string(),
                None => (*value).to_owned(),
            };
            raw.insert((*key).to_owned(), value);
        }
        let options = Options::validate(&SPEC, Role::Sink, &raw).unwrap();
        assert_eq!(PostgresConnector.validate(Role::Sink, &options), Vec::new());
        PostgresConnector.sink(&options).unwrap()
    }

    /// Whether a sink with these options opens, and otherwise why not.
    async fn open(&self, given: &[(&str, &str)]) -> canalis_types::Result<()> {
        let ctx = SinkContext { job: JOB.into(), writers: 1, fresh: true, tables: Vec::new() };
        self.sink(given).open(&ctx).await.map(drop)
    }

    async fn lines(&self, sql: &str) -> Vec<String> {
        let rows = self.server.postgres(&self.database).await.query(sql, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }

    async fn run(&self, sql: &str) {
        self.server.postgres(&self.database).await.batch_execute(sql).await.unwrap();
    }
}

/// User and group of an account.
fn account(name: &str) -> Option<[u32; 2]> {
    let accounts = fs::read_to_string("/etc/passwd").unwrap();
    let fields: Vec<&str> =
        accounts.lines().find(|l| l.split(':').next() == Some(name))?.split(':').collect();
    Some([fields[2].parse().unwrap(), fields[3].parse().unwrap()])
}

/// Notes for each statement that puts rows into `app.t` whether its connection is encrypted.
const NOTES: &str = "
    CREATE SCHEMA app;
    CREATE TABLE app.t (id int PRIMARY KEY, v text);
    CREATE TABLE seen (encrypted bool, statement text);
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO public.seen SELECT s.ssl, split_part(a.query, ' ', 1)
            FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE pid = pg_backend_pid();
        RETURN NULL;
    END $$;
    CREATE TRIGGER note AFTER INSERT ON app.t FOR EACH STATEMENT EXECUTE FUNCTION note();";

#[tokio::test]
async fn rows_travel_encrypted_unless_it_is_disabled() {
    let Some(lab) = Encrypted::new().await else { return };
    lab.run(NOTES).await;
    let schema = pairs("t");
    for (mode, encrypted) in [("disable", "false"), ("prefer", "true"), ("require", "true")] {
        lab.run("TRUNCATE app.t; TRUNCATE seen").await;
        let sink = lab.sink(&[("sslmode", mode)]);
        start(&sink, 1, Start::Fresh).await;
        sink.prepare_table(&schema, true).await.unwrap();
        let dead_letters = Arc::new(Letters::default());
        let ctx =
            canalis_connector_api::WriterContext { job: JOB.into(), index: 0, writers: 1, dead_letters };
        let mut writer = sink.open_writer(ctx).await.unwrap();
        writer.begin_split(&split(mode, &schema, SplitMode::Snapshot, false)).await.unwrap();
        writer.write(pair_batch(&schema, &[(RowKind::Insert, "1", "a")])).await.unwrap();
        writer.commit(&splits(&[mode])).await.unwrap();
        let seen = lab.lines("SELECT DISTINCT encrypted::text || ' ' || statement FROM seen").await;
        assert_eq!(seen, [format!("{encrypted} COPY")], "{mode}");
    }
}

#[tokio::test]
async fn the_certificate_of_the_server_is_verified_as_asked_for() {
    let Some(lab) = Encrypted::new().await else { return };
    let accepted: &[Given] = &[
        &[],
        &[("sslmode", "require")],
        &[("sslmode", "require"), ("sslrootcert", "@ca.pem")],
        // The certificate is for `localhost`.
        &[("sslmode", "verify-ca"), ("sslrootcert", "@ca.pem")],
        &[("sslmode", "verify-full"), ("sslrootcert", "@ca.pem"), ("hostname", "localhost")],
    ];
    for given in accepted {
        assert!(lab.open(given).await.is_ok(), "{given:?}: {:?}", lab.open(given).await);
    }
    let stranger = "signed by none of the authorities in `sslrootcert`";
    let refused: &[(Given, Code, &str)] = &[
        (&[("sslmode", "verify-ca"), ("sslrootcert", "@stranger.pem")], Code::SinkFailed, stranger),
        (&[("sslmode", "require"), ("sslrootcert", "@stranger.pem")], Code::SinkFailed, stranger),
        (
            &[("sslmode", "verify-full"), ("sslrootcert", "@stranger.pem"), ("hostname", "localhost")],
            Code::SinkFailed,
            stranger,
        ),
        (&[("sslmode", "verify-full"), ("sslrootcert", "@ca.pem")], Code::SinkFailed, "127.0.0.1"),
        (
            &[("sslmode", "verify-ca"), ("sslrootcert", "@missing")],
            Code::PipelineInvalid,
            "reading `sslrootcert`",
        ),
        (
            &[("sslmode", "verify-ca"), ("sslrootcert", "@server.key")],
            Code::PipelineInvalid,
            "no certificate in PEM",
        ),
    ];
    for (given, code, part) in refused {
        let error = lab.open(given).await.unwrap_err();
        assert_eq!(error.code(), *code, "{given:?}: {error}");
        assert!(!error.kind().is_retryable() && error.to_string().contains(part), "{given:?}: {error}");
        let findings = lab.sink(given).check(&[]).await;
        assert_eq!(findings[0].severity, Severity::Error, "{findings:?}");
    }
}

#[tokio::test]
async fn a_client_shows_its_certificate() {
    let Some(lab) = Encrypted::new().await else { return };
    lab.run("CREATE ROLE certified LOGIN").await;
    lab.run(&format!(
        "GRANT CREATE ON DATABASE \"{}\" TO certified; GRANT CREATE ON SCHEMA public TO certified",
        lab.database
    ))
    .await;
    let mut given = vec![("sslmode", "require"), ("username", "certified"), ("password", "")];
    let error = lab.open(&given).await.unwrap_err();
    assert_ne!(error.kind(), ErrorKind::Transient, "{error}");
    given.extend([("sslcert", "@client.pem"), ("sslkey", "@client.key")]);
    lab.open(&given).await.unwrap();
}

// Several threads: the server is stopped while connections that it waits for are being closed.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_encryption_is_taken_only_where_that_may_be() {
    let Some(mut lab) = Encrypted::new().await else { return };
    lab.server.restart_with(&["-c", "ssl=off"]);
    for mode in ["disable", "prefer"] {
        lab.open(&[("sslmode", mode)]).await.unwrap();
    }
    let error = lab.open(&[("sslmode", "require")]).await.unwrap_err();
    assert_eq!((error.code(), error.kind()), (Code::SinkFailed, ErrorKind::Sink), "{error}");
    assert!(error.to_string().contains("TLS"), "{error}");
}
