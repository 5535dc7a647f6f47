//! Owns how Apache Pulsar is found and started: one process that is broker, bookie and metadata store, from jars that
//! `scripts/jar-root` has fetched.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use crate::install::{self, cache_directory, find_program};
use crate::owned::Place;
use crate::server::{Server, ServerKind};
use crate::wait::free_port;

const CONFIGURATION: &str = "standalone.conf";

/// Packages into which the server looks by reflection.
const OPEN: &[&str] = &[
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.nio",
    "java.base/java.util.zip",
    "java.base/jdk.internal.platform",
    "java.base/sun.net",
    "java.base/sun.nio.ch",
    "java.management/sun.management",
];

/// The directory with the jars.
fn jars() -> Result<PathBuf, String> {
    let root = cache_directory().join("pulsar-root");
    if !root.join(".complete").exists() {
        return Err(format!("{} is not complete; scripts/jar-root pulsar makes it", root.display()));
    }
    Ok(root.join("jars"))
}

/// Writes the configuration. The port of the web service is a new one at every start.
fn configuration(place: &Place, port: u16, extra: &[String]) -> Result<PathBuf, String> {
    let file = place.directory.join(CONFIGURATION);
    let mut text = format!(
        "clusterName=standalone\nbindAddress=127.0.0.1\nadvertisedAddress=127.0.0.1\n\
         brokerServicePort={port}\nwebServicePort={}\n\
         # Of the bookie inside.\nlisteningInterface=lo\n\
         allowAutoTopicCreation=true\nallowAutoTopicCreationType=non-partitioned\n\
         managedLedgerDefaultEnsembleSize=1\nmanagedLedgerDefaultWriteQuorum=1\nmanagedLedgerDefaultAckQuorum=1\n\
         # Ledgers end soon, so that what is acknowledged is removed while a test looks.\n\
         managedLedgerMaxEntriesPerLedger=50\nmanagedLedgerMinLedgerRolloverTimeMinutes=0\n\
         loadBalancerEnabled=false\nsystemTopicEnabled=false\ntopicLevelPoliciesEnabled=false\n\
         functionsWorkerEnabled=false\nwebSocketServiceEnabled=false\nbrokerDeduplicationEnabled=true\n\
         diskUsageThreshold=0.999\ndiskUsageWarnThreshold=0.99\n",
        free_port()
    );
    for line in extra {
        text.push_str(line);
        text.push('\n');
    }
    fs::write(&file, text).map_err(|error| format!("writing {}: {error}", file.display()))?;
    Ok(file)
}

/// An empty directory: the server fills it when it first starts.
pub(crate) fn template() -> Result<PathBuf, String> {
    let version = fs::read_to_string(cache_directory().join("pulsar-root/.complete"))
        .map_err(|_| "Pulsar is not there; scripts/jar-root pulsar fetches it".to_owned())?;
    install::template(ServerKind::Pulsar, version.trim(), |place| {
        let data = place.directory.join("data");
        fs::create_dir_all(&data).map_err(|error| format!("creating {}: {error}", data.display()))
    })
}

/// The command line of the server; an additional argument is a line of its configuration.
pub(crate) fn command(place: &Place, server: &Server, extra: &[String]) -> Result<Vec<String>, String> {
    let file = configuration(place, server.port, extra)?;
    let data = place.inside.join("data");
    let java = find_program("java", "default-jre-headless")?;
    let mut argv: Vec<String> = [
        &java.display().to_string(),
        "-Xmx512m",
        "-XX:MaxDirectMemorySize=384m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Dio.netty.tryReflectionSetAccessible=true",
    ]
    .map(str::to_owned)
    .to_vec();
    for package in OPEN {
        argv.extend(["--add-opens".to_owned(), format!("{package}=ALL-UNNAMED")]);
    }
    argv.extend(["-cp".to_owned(), format!("{}/*", jars()?.display())]);
    argv.extend(["org.apache.pulsar.PulsarStandaloneStarter", "--config"].map(str::to_owned));
    argv.push(file.display().to_string());
    argv.extend(["--no-functions-worker", "--no-stream-storage", "--bookkeeper-dir"].map(str::to_owned));
    argv.push(data.join("bookkeeper").display().to_string());
    argv.push("--metadata-dir".to_owned());
    argv.push(data.join("metadata").display().to_string());
    argv.extend(["-a", "127.0.0.1"].map(str::to_owned));
    Ok(argv)
}

/// Where the web service of a running Pulsar listens.
///
/// # Errors
/// When it is no Pulsar that was started here.
pub fn pulsar_web_port(server: &Server) -> Result<u16, String> {
    let file = server.log.with_file_name(CONFIGURATION);
    let text = fs::read_to_string(&file).map_err(|error| format!("reading {}: {error}", file.display()))?;
    let port = text.lines().find_map(|line| line.strip_prefix("webServicePort=")?.parse().ok());
    port.ok_or_else(|| format!("{} names no port of the web service", file.display()))
}

/// Asks the web service of a running Pulsar; status and body.
///
/// # Errors
/// When there is no answer.
pub fn pulsar_admin(server: &Server, method: &str, path: &str, body: &str) -> Result<(u16, String), String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, pulsar_web_port(server)?));
    let step = Duration::from_secs(20);
    let talk = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&address, step)?;
        stream.set_read_timeout(Some(step))?;
        write!(
            stream,
            "{method} /admin/v2/{path} HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = talk().map_err(|error| format!("asking the web service of {server}: {error}"))?;
    let status = answer.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.ok_or_else(|| format!("the web service of {server} said: {answer}"))?;
    Ok((status, answer.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_owned()))
}

/// Ready is who has made the namespace that everybody uses; the broker takes connections a moment earlier.
pub(crate) fn greet(server: &Server) -> Result<(), String> {
    match pulsar_admin(server, "GET", "namespaces/public/default", "")? {
        (200, _) => Ok(()),
        (status, _) => Err(format!("{server} is not ready: status {status}")),
    }
}
