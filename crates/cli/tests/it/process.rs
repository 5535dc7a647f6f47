//! Owns the `canalis` child process of a test.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
};

use canalis_testkit::{Server, ServerKind};

/// A running `canalis run`. Killed when dropped.
pub struct Canalis {
    child: Child,
    log: PathBuf,
}

impl Canalis {
    /// Starts a pipeline with its state and log in `directory`.
    pub fn start(directory: &Path, pipeline: &str) -> Self {
        Self::start_with(directory, pipeline, &[])
    }

    /// The same with more arguments.
    pub fn start_with(directory: &Path, pipeline: &str, more: &[&str]) -> Self {
        Self::start_as(directory, pipeline, more, &[])
    }

    /// The same with more arguments and environment.
    pub fn start_as(directory: &Path, pipeline: &str, more: &[&str], environment: &[(&str, &str)]) -> Self {
        let file = directory.join("pipeline.yaml");
        std::fs::write(&file, pipeline).unwrap();
        let log = directory.join("canalis.log");
        let out = std::fs::OpenOptions::new().create(true).append(true).open(&log).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_canalis"))
            .args(["run", "--json", "--state-dir"])
            .arg(directory.join("state"))
            .arg(&file)
            .args(more)
            .env("CANALIS_LOG", "info")
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(out.try_clone().unwrap())
            .stderr(out)
            .spawn()
            .unwrap();
        Self { child, log }
    }

    /// Runs a command of the binary to its end: success, standard output, standard error.
    pub fn command(arguments: &[&str]) -> (bool, String, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_canalis")).args(arguments).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.success(), text(output.stdout), text(output.stderr))
    }

    /// Peak resident memory so far in MiB.
    pub fn peak_mib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
    }

    /// Waits for a condition; fails with the log when the process ends before.
    pub async fn until<F: Future<Output = bool>>(&mut self, mut condition: impl FnMut() -> F) {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
        while !condition().await {
            assert!(!self.has_ended(), "it ended by itself: {}", self.log());
            assert!(std::time::Instant::now() < deadline, "it did not get there: {}", self.log());
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }

    /// Ends it as a crash would; true when it was still running.
    pub fn kill9(&mut self) -> bool {
        let running = self.child.try_wait().unwrap().is_none();
        // It may end by itself in this very moment.
        let _ = self.child.kill();
        self.child.wait().unwrap();
        running
    }

    /// Asks it to drain, and waits.
    pub fn stop(&mut self) -> ExitStatus {
        assert!(Command::new("kill").arg(self.child.id().to_string()).status().unwrap().success());
        self.child.wait().unwrap()
    }

    /// Waits for its own end.
    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Everything it has printed.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Canalis {
    fn drop(&mut self) {
        self.kill9();
    }
}

/// Environment that logs every split that is dealt and every checkpoint that begins.
pub const DEBUG: &[(&str, &str)] = &[("CANALIS_LOG", "info,canalis_runtime=debug")];

/// Numbers and files of the checkpoints of the job whose pipeline is in `directory`, oldest first.
pub fn checkpoints(directory: &Path) -> Vec<(u64, PathBuf)> {
    let epoch = |name: &str| name.strip_prefix("checkpoint-")?.strip_suffix(".json")?.parse().ok();
    let files = std::fs::read_dir(directory.join("state")).into_iter().flatten().flatten();
    let mut found: Vec<(u64, PathBuf)> =
        files.filter_map(|f| Some((epoch(f.file_name().to_str()?)?, f.path()))).collect();
    found.sort();
    found
}

/// Number of the newest of them.
pub fn newest_checkpoint(directory: &Path) -> u64 {
    checkpoints(directory).last().map_or(0, |(epoch, _)| *epoch)
}

/// Content of a checkpoint or savepoint file.
pub fn content(path: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str(text.split_once('\n').unwrap().1).unwrap()
}

/// A `source` block for tables of a server.
pub fn source(server: &Server, tables: &str, more: &str) -> String {
    format!(
        "source:\n  type: mysql\n  hostname: 127.0.0.1\n  port: {}\n  username: {}\n  password: \"{}\"\n  \
         tables: {tables}\n{more}",
        server.port, server.username, server.password
    )
}

/// A `sink` block for a server; a PostgreSQL needs the database.
pub fn sink(server: &Server, database: &str) -> String {
    let (kind, more) = match server.kind {
        ServerKind::Postgres => ("postgres", format!("  database: {database}\n")),
        _ => ("mysql", String::new()),
    };
    format!(
        "sink:\n  type: {kind}\n  hostname: 127.0.0.1\n  port: {}\n  username: {}\n  password: \"{}\"\n{more}",
        server.port, server.username, server.password
    )
}
