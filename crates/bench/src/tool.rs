//! Owns the tool under measurement: a `canalis run` child with its CPU time, peak memory and progress port.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::machine;

/// What a finished run of the tool cost.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// From start to end.
    pub wall: Duration,
    /// User and system time.
    pub cpu_seconds: f64,
    /// Peak resident memory.
    pub peak_mib: f64,
}

/// A running tool.
pub struct Tool {
    child: Child,
    started: Instant,
    port: u16,
    peak_mib: f64,
    log: PathBuf,
}

impl Tool {
    /// Starts `canalis run` on a pipeline, with its state in `directory`.
    pub fn start(canalis: &Path, directory: &Path, pipeline: &str) -> Result<Self> {
        let file = directory.join("pipeline.yaml");
        std::fs::write(&file, pipeline)?;
        let port = canalis_testkit::free_port();
        let log = directory.join("canalis.log");
        let output = std::fs::File::create(&log)?;
        let child = Command::new(canalis)
            .args(["run", "--json", "--metrics", &format!("127.0.0.1:{port}"), "--state-dir"])
            .arg(directory.join("state"))
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("starting {}", canalis.display()))?;
        Ok(Self { child, started: Instant::now(), port, peak_mib: 0.0, log })
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Resident memory now.
    pub fn resident_mib(&self) -> f64 {
        machine::memory_mib(self.child.id(), "VmRSS:").unwrap_or(0.0)
    }

    fn sample(&mut self) -> Result<Option<bool>> {
        if let Some(peak) = machine::memory_mib(self.child.id(), "VmHWM:") {
            self.peak_mib = peak;
        }
        Ok(self.child.try_wait()?.map(|status| status.success()))
    }

    /// Waits until the job ends by itself.
    pub async fn wait(mut self) -> Result<Cost> {
        let before = machine::ended_children_seconds()?;
        loop {
            if let Some(success) = self.sample()? {
                let wall = self.started.elapsed();
                if !success {
                    bail!("the tool failed: {}", self.log_text());
                }
                let cpu_seconds = machine::ended_children_seconds()? - before;
                return Ok(Cost { wall, cpu_seconds, peak_mib: self.peak_mib });
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until a condition holds, then ends the tool by SIGTERM; the wall time ends with the condition.
    pub async fn run_until<F: Future<Output = Result<bool>>>(
        mut self,
        mut condition: impl FnMut() -> F,
    ) -> Result<Cost> {
        let deadline = Duration::from_secs(900);
        loop {
            if condition().await? {
                break;
            }
            if self.sample()?.is_some() {
                bail!("the tool ended too early: {}", self.log_text());
            }
            if self.started.elapsed() > deadline {
                self.child.kill()?;
                bail!("the tool did not get there in {deadline:?}: {}", self.log_text());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let wall = self.started.elapsed();
        let mut cost = self.stop().await?;
        cost.wall = wall;
        Ok(cost)
    }

    /// Ends the tool by SIGTERM and waits for its last checkpoint.
    pub async fn stop(mut self) -> Result<Cost> {
        let before = machine::ended_children_seconds()?;
        self.sample()?;
        let status = Command::new("kill").arg(self.child.id().to_string()).status()?;
        let kill_cost = machine::ended_children_seconds()? - before;
        if !status.success() {
            bail!("the tool cannot be signalled");
        }
        let cost = self.wait().await?;
        Ok(Cost { cpu_seconds: cost.cpu_seconds - kill_cost.min(0.0), ..cost })
    }

    /// The `/progress` view, once the port is open.
    pub async fn progress(&self) -> Option<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.ok()?;
        stream
            .write_all(b"GET /progress HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .await
            .ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await.ok()?;
        serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()
    }

    fn log_text(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}
