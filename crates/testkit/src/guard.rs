//! Owns the life of one server process: a small shell stands between us and the server, holds the other
//! end of a pipe and ends the server when the pipe closes, which happens however our process dies.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Starts the server, prints its pid, waits for one order on standard input. End of file is the order
/// to end the server and remove its directory.
const SCRIPT: &str = r#"
directory=$1 signal=$2 log=$3
shift 3
"$@" </dev/null >>"$log" 2>&1 &
pid=$!
printf '%s\n' "$pid"
exec >/dev/null
alive() { [ -e "/proc/$pid" ] && ! grep -q ') Z ' "/proc/$pid/stat"; }
read -r order || order=remove
case $order in
    kill) kill -KILL "$pid" ;;
    stop) kill -TERM "$pid" ;;
    *)
        kill -"$signal" "$pid"
        # A server that does not heed the milder signal is killed after ten seconds.
        looks=0
        while alive && [ "$looks" -lt 200 ]; do
            looks=$((looks + 1))
            sleep 0.05
        done
        ! alive || kill -KILL "$pid"
        ;;
esac 2>/dev/null
wait "$pid"
[ "$order" != remove ] || rm -rf -- "$directory"
"#;

/// How a guarded server is ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// SIGKILL; the data directory stays.
    Kill,
    /// SIGTERM, the orderly way; the data directory stays.
    Stop,
    /// The quickest way that leaves nothing behind, the directory included.
    Remove,
}

/// A server process and the shell that watches over it.
pub(crate) struct Guard {
    shell: Child,
    pid: u32,
}

impl Guard {
    /// Starts `argv`; its output goes to `log`. `final_signal` is what [`Order::Remove`] sends first.
    pub(crate) fn spawn(
        argv: &[String],
        directory: &Path,
        final_signal: &str,
        log: &Path,
    ) -> Result<Self, String> {
        let mut shell = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "canalis-server-guard"])
            .arg(directory)
            .arg(final_signal)
            .arg(log)
            .args(argv)
            .current_dir("/")
            // A Ctrl-C at the terminal is for the tests; the guard then sees its pipe close.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("starting {}: {error}", argv[0]))?;
        let mut line = String::new();
        let stdout = shell.stdout.take().expect("standard output was asked for");
        BufReader::new(stdout)
            .read_line(&mut line)
            .map_err(|error| format!("reading the server's pid: {error}"))?;
        let pid = line.trim().parse().map_err(|_| format!("starting {} gave no pid", argv[0]))?;
        Ok(Self { shell, pid })
    }

    /// The server's own process id.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether the server process is there and not a zombie.
    pub(crate) fn is_running(&self) -> bool {
        fs::read_to_string(format!("/proc/{}/stat", self.pid))
            .ok()
            .and_then(|stat| stat.rsplit_once(") ").map(|(_, rest)| !rest.starts_with(['Z', 'X'])))
            .unwrap_or(false)
    }

    /// Ends the server and waits until it is gone.
    pub(crate) fn end(mut self, order: Order) {
        self.give(order);
    }

    fn give(&mut self, order: Order) {
        // Dropping the pipe is the order to remove.
        if let Some(mut pipe) = self.shell.stdin.take() {
            let word: &[u8] = match order {
                Order::Kill => b"kill\n",
                Order::Stop => b"stop\n",
                Order::Remove => b"",
            };
            // A shell that is already gone has nothing left to end.
            let _ = pipe.write_all(word);
        }
        // Waiting can only fail when it was waited for before.
        let _ = self.shell.wait();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.give(Order::Remove);
    }
}
