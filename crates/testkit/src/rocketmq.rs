//! Owns how Apache RocketMQ is found and started: a broker and its name server as one, from jars that `scripts/jar-root`
//! has fetched.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use crate::install::{self, cache_directory, find_program};
use crate::owned::Place;
use crate::server::{Server, ServerKind};
use crate::wait::free_port;

/// Becomes the broker; the name server runs beside it and ends with it, because it watches a pipe that the broker holds open.
/// A name server of an earlier run is waited for, since it has the port.
const SCRIPT: &str = r#"
cd "$1"
java=$2 jars=$3
export ROCKETMQ_HOME="$1"
while [ -s ns.pid ] && kill -0 "$(cat ns.pid)" 2>/dev/null; do sleep 0.05; done
rm -f alive
mkfifo alive
set -- -XX:+UseSerialGC -XX:TieredStopAtLevel=1 "-Duser.home=$1" -cp "$jars/*"
(
    "$java" -Xmx128m "$@" org.apache.rocketmq.namesrv.NamesrvStartup -c namesrv.conf &
    echo $! >ns.pid
    cat alive
    kill -KILL "$(cat ns.pid)"
) &
exec 9>alive
exec "$java" -Xmx512m --add-exports java.base/sun.nio.ch=ALL-UNNAMED "$@" org.apache.rocketmq.broker.BrokerStartup -c broker.conf
"#;

fn root() -> PathBuf {
    cache_directory().join("rocketmq-root")
}

/// An empty data directory.
pub(crate) fn template() -> Result<PathBuf, String> {
    let version = fs::read_to_string(root().join(".complete"))
        .map_err(|_| "RocketMQ is not there; scripts/jar-root rocketmq fetches it".to_owned())?;
    install::template(ServerKind::RocketMq, version.trim(), |place| {
        let data = place.directory.join("data");
        fs::create_dir_all(&data).map_err(|error| format!("creating {}: {error}", data.display()))
    })
}

/// The port of the broker: the same as long as the name server's is the same.
fn broker_port(place: &Place, server: &Server) -> Result<u16, String> {
    let file = place.directory.join("broker.port");
    let known = fs::read_to_string(&file).unwrap_or_default();
    let mut words = known.split_whitespace().map(|word| word.parse::<u16>().ok());
    if words.next() == Some(Some(server.port))
        && let Some(Some(port)) = words.next()
    {
        return Ok(port);
    }
    let port = free_port();
    fs::write(&file, format!("{} {port}", server.port))
        .map_err(|error| format!("writing {}: {error}", file.display()))?;
    Ok(port)
}

/// The command line; an additional argument is a line of the broker's properties.
pub(crate) fn command(place: &Place, server: &Server, extra: &[String]) -> Result<Vec<String>, String> {
    let java = find_program("java", "default-jre-headless")?;
    let (directory, data) = (&place.directory, place.inside.join("data"));
    let write = |name: &str, text: String| {
        let file = directory.join(name);
        fs::write(&file, text).map_err(|error| format!("writing {}: {error}", file.display()))
    };
    write(
        "namesrv.conf",
        format!("listenPort={}\nkvConfigPath={}\n", server.port, data.join("kv.json").display()),
    )?;
    let mut text = format!(
        "brokerClusterName=canalis\nbrokerName=broker-a\nbrokerId=0\nbrokerIP1=127.0.0.1\n\
         listenPort={}\nhaListenPort={}\nnamesrvAddr=127.0.0.1:{}\nautoCreateTopicEnable=false\n\
         storePathRootDir={}\nstorePathCommitLog={}\nmappedFileSizeCommitLog=33554432\n\
         mappedFileSizeConsumeQueue=600000\nmaxIndexNum=20000\nmaxHashSlotNum=5000\ndiskMaxUsedSpaceRatio=99\n",
        broker_port(place, server)?,
        free_port(),
        server.port,
        data.display(),
        data.join("commitlog").display()
    );
    for line in extra {
        text.push_str(line);
        text.push('\n');
    }
    write("broker.conf", text)?;
    let words = [
        "/bin/sh",
        "-c",
        SCRIPT,
        "canalis-rocketmq",
        &place.inside.display().to_string(),
        &java.display().to_string(),
        &root().join("jars").display().to_string(),
    ];
    Ok(words.map(str::to_owned).to_vec())
}

/// Asks the name server for its brokers: only a broker that is ready for clients has registered.
pub(crate) fn greet(server: &Server) -> Result<(), String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port));
    let step = Duration::from_secs(2);
    let header = br#"{"code":106,"flag":0,"language":"OTHER","opaque":1,"version":0}"#;
    let length = |bytes: usize| u32::try_from(bytes).map(u32::to_be_bytes).unwrap_or_default();
    let request = [&length(4 + header.len())[..], &length(header.len()), header].concat();
    let mut answer = [0; 4];
    let mut exchange = || -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect_timeout(&address, step)?;
        stream.set_read_timeout(Some(step))?;
        stream.write_all(&request)?;
        stream.read_exact(&mut answer)?;
        let mut rest = Vec::new();
        stream.take(u64::from(u32::from_be_bytes(answer))).read_to_end(&mut rest)?;
        Ok(rest)
    };
    let rest = exchange().map_err(|error| format!("asking {server}: {error}"))?;
    let is_there = rest.windows(8).any(|part| part == b"broker-a");
    if is_there { Ok(()) } else { Err(format!("the broker of {server} has not registered")) }
}
