//! Owns how Apache Kafka is found and started: one process that is broker and controller, from jars that `scripts/jar-root`
//! has fetched.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::install::{self, cache_directory, find_program, run};
use crate::owned::Place;
use crate::server::{Server, ServerKind};
use crate::wait::free_port;

/// Any id will do: no two clusters meet.
const CLUSTER_ID: &str = "Q2FuYWxpcy1UZXN0cy0wMQ";

/// The directory with the jars.
fn jars() -> Result<PathBuf, String> {
    let root = cache_directory().join("kafka-root");
    if !root.join(".complete").exists() {
        return Err(format!("{} is not complete; scripts/jar-root kafka makes it", root.display()));
    }
    Ok(root.join("jars"))
}

fn java(main: &str) -> Result<Vec<String>, String> {
    let java = find_program("java", "default-jre-headless")?;
    Ok([
        &java.display().to_string(),
        "-Xmx512m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        &format!("{}/*", jars()?.display()),
        main,
    ]
    .map(str::to_owned)
    .to_vec())
}

fn properties(place: &Place, port: u16, extra: &[String]) -> Result<PathBuf, String> {
    let controller = free_port();
    let file = place.directory.join("server.properties");
    let mut text = format!(
        "process.roles=broker,controller\nnode.id=1\n\
         controller.quorum.voters=1@127.0.0.1:{controller}\n\
         listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
         advertised.listeners=PLAINTEXT://127.0.0.1:{port}\n\
         controller.listener.names=CONTROLLER\ninter.broker.listener.name=PLAINTEXT\n\
         listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n\
         log.dirs={}\nauto.create.topics.enable=false\n\
         offsets.topic.replication.factor=1\noffsets.topic.num.partitions=4\n\
         transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n\
         transaction.state.log.num.partitions=4\ngroup.initial.rebalance.delay.ms=0\n\
         transaction.partition.verification.enable=true\n",
        place.inside.join("data").display()
    );
    for line in extra {
        // Later lines win; `{port}` and `{controller}` stand for the ports.
        let line = line.replace("{port}", &port.to_string()).replace("{controller}", &controller.to_string());
        text.push_str(&line);
        text.push('\n');
    }
    fs::write(&file, text).map_err(|error| format!("writing {}: {error}", file.display()))?;
    Ok(file)
}

/// A formatted log directory.
pub(crate) fn template() -> Result<PathBuf, String> {
    let version = fs::read_to_string(cache_directory().join("kafka-root/.complete"))
        .map_err(|_| "Kafka is not there; scripts/jar-root kafka fetches it".to_owned())?;
    install::template(ServerKind::Kafka, version.trim(), |place| {
        let file = properties(place, free_port(), &[])?;
        let mut argv = java("kafka.tools.StorageTool")?;
        argv.extend(["format", "-t", CLUSTER_ID, "-c"].map(str::to_owned));
        argv.push(file.display().to_string());
        run(Command::new(&argv[0]).args(&argv[1..])).map(drop)
    })
}

/// The command line of the server; an additional argument is a line of its properties.
pub(crate) fn command(place: &Place, server: &Server, extra: &[String]) -> Result<Vec<String>, String> {
    let file = properties(place, server.port, extra)?;
    let mut argv = java("kafka.Kafka")?;
    argv.push(file.display().to_string());
    Ok(argv)
}

/// A request for the versions of all requests: length, key 18, version 0, correlation id, no client id.
pub(crate) fn greeting() -> Vec<u8> {
    [
        &10_u32.to_be_bytes()[..],
        &18_u16.to_be_bytes(),
        &0_u16.to_be_bytes(),
        &7_u32.to_be_bytes(),
        &(-1_i16).to_be_bytes(),
    ]
    .concat()
}
