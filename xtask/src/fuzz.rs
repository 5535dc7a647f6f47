//! Owns running the fuzz targets of `fuzz/`: builds them with the coverage that libFuzzer needs, which stable Rust can
//! do, and lets each look for inputs that break it for a time.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::tree::Problem;

/// How long a target runs when nothing else is asked for.
const USUAL_TIME: Duration = Duration::from_secs(60);

/// Edge counters and comparisons, as libFuzzer reads them. Only flags of stable Rust.
const COVERAGE: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
    "--cfg=fuzzing",
];

/// A slow input, a hungry one, and the size of inputs: what the decoders promise must show long before.
const LIMITS: &[&str] = &["-timeout=10", "-rss_limit_mb=2048", "-max_len=4096", "-print_final_stats=1"];

/// What was asked for on the command line.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    target: Option<String>,
    time: Duration,
}

impl Request {
    /// Reads `[TARGET] [--seconds N]`.
    pub fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut request = Self { target: None, time: USUAL_TIME };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            if argument == "--seconds" {
                let seconds = rest.next().and_then(|n| n.parse().ok()).filter(|n| *n > 0);
                request.time = Duration::from_secs(seconds.ok_or("--seconds needs a number above 0")?);
            } else if argument.starts_with('-') || request.target.is_some() {
                return Err(format!("`{argument}` is not understood"));
            } else {
                request.target = Some(argument.clone());
            }
        }
        Ok(request)
    }
}

/// Builds and runs the asked targets; a target that broke is a problem.
///
/// # Errors
/// When there is no such target, or the targets cannot be built or started.
pub fn run(root: &Path, request: &Request) -> Result<Vec<Problem>, String> {
    let directory = root.join("fuzz");
    let mut targets = targets(&directory)?;
    if let Some(wanted) = &request.target {
        if !targets.contains(wanted) {
            return Err(format!("there is no target `{wanted}`, only {}", targets.join(", ")));
        }
        targets.retain(|target| target == wanted);
    }
    let programs = build(&directory, request.target.as_deref())?;
    let mut problems = Vec::new();
    for target in &targets {
        let [corpus, artifacts] = ["corpus", "artifacts"].map(|kind| directory.join(kind).join(target));
        for made in [&corpus, &artifacts] {
            std::fs::create_dir_all(made).map_err(|error| format!("making {}: {error}", made.display()))?;
        }
        println!("fuzz: {target} for {} s", request.time.as_secs());
        let mut command = Command::new(programs.join(target));
        command.arg(&corpus).args(Some(directory.join("seeds").join(target)).filter(|seeds| seeds.exists()));
        command.arg(format!("-max_total_time={}", request.time.as_secs()));
        // The trailing slash makes it a directory for libFuzzer.
        command.arg(format!("-artifact_prefix={}/", artifacts.display())).args(LIMITS);
        let status = command.status().map_err(|error| format!("starting {target}: {error}"))?;
        if !status.success() {
            let kept = format!("broke on an input, which is kept in fuzz/artifacts/{target} ({status})");
            problems.push(Problem::new(format!("fuzz/fuzz_targets/{target}.rs"), kept));
        }
    }
    Ok(problems)
}

/// Names of all targets.
fn targets(directory: &Path) -> Result<Vec<String>, String> {
    let place = directory.join("fuzz_targets");
    let listed =
        std::fs::read_dir(&place).map_err(|error| format!("reading {}: {error}", place.display()))?;
    let names = listed.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut targets: Vec<String> =
        names.filter_map(|name| name.strip_suffix(".rs").map(str::to_owned)).collect();
    targets.sort();
    Ok(targets)
}

/// Builds one target or all of them, and tells where the programs are.
fn build(directory: &Path, target: Option<&str>) -> Result<PathBuf, String> {
    // Other flags than those of everything else: in a directory of its own nothing is built again.
    let place = match std::env::var_os("CARGO_TARGET_DIR") {
        Some(shared) => PathBuf::from(shared).join("fuzz"),
        None => directory.join("target"),
    };
    // With a named triple the flags reach neither build scripts nor macros.
    let triple = host_triple()?;
    let mut command = Command::new("cargo");
    command.args(["build", "--release", "--target", &triple, "--manifest-path"]);
    command.arg(directory.join("Cargo.toml")).arg("--target-dir").arg(&place);
    match target {
        Some(target) => command.args(["--bin", target]),
        None => command.arg("--bins"),
    };
    command.env("CARGO_ENCODED_RUSTFLAGS", COVERAGE.join("\u{1f}")).env_remove("RUSTFLAGS");
    let status = command.status().map_err(|error| format!("running cargo: {error}"))?;
    if !status.success() {
        return Err(format!("building the fuzz targets failed ({status})"));
    }
    Ok(place.join(triple).join("release"))
}

fn host_triple() -> Result<String, String> {
    let output =
        Command::new("rustc").arg("-vV").output().map_err(|error| format!("running rustc: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned).ok_or_else(|| "rustc does not tell its host".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Request, String> {
        Request::parse(&arguments.iter().map(|a| (*a).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn requests_are_read() {
        let request = |target: Option<&str>, seconds| Request {
            target: target.map(str::to_owned),
            time: Duration::from_secs(seconds),
        };
        assert_eq!(parse(&[]), Ok(request(None, 60)));
        assert_eq!(parse(&["csv"]), Ok(request(Some("csv"), 60)));
        assert_eq!(parse(&["--seconds", "5", "csv"]), Ok(request(Some("csv"), 5)));
        for wrong in [&["--seconds"][..], &["--seconds", "0"], &["--minutes", "1"], &["csv", "pipeline"]] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn every_target_is_declared_and_has_seeds() {
        let directory = crate::repository().join("fuzz");
        let manifest = std::fs::read_to_string(directory.join("Cargo.toml")).unwrap();
        let targets = targets(&directory).unwrap();
        assert_eq!(manifest.matches("[[bin]]").count(), targets.len());
        for target in targets {
            assert!(manifest.contains(&format!("path = \"fuzz_targets/{target}.rs\"")), "{target}");
            assert!(directory.join("seeds").join(&target).is_dir(), "{target}");
        }
    }
}
