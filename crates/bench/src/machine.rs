//! Owns what the kernel tells of processes: CPU time and memory, from `/proc`.

use std::{collections::HashMap, fs};

use anyhow::{Context, Result};

/// Kernel ticks per second; fixed on Linux for user space.
const TICKS: f64 = 100.0;

struct Stat {
    parent: u32,
    /// User and system time of the process and of its children that have ended, in ticks.
    ticks: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may hold anything.
    let fields: Vec<&str> = text[text.rfind(')')? + 2..].split(' ').collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(Stat {
        parent: u32::try_from(number(1)?).ok()?,
        ticks: number(11)? + number(12)? + number(13)? + number(14)?,
    })
}

/// CPU-seconds of a process and everything below it.
pub fn cpu_seconds(pid: u32) -> f64 {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        if let Some(child) = entry.file_name().to_str().and_then(|n| n.parse().ok())
            && let Some(found) = stat(child)
        {
            children.entry(found.parent).or_default().push(child);
        }
    }
    let mut open = vec![pid];
    let mut ticks = 0;
    while let Some(pid) = open.pop() {
        ticks += stat(pid).map_or(0, |s| s.ticks);
        open.extend(children.remove(&pid).unwrap_or_default());
    }
    seconds(ticks)
}

fn seconds(ticks: u64) -> f64 {
    f64::from(u32::try_from(ticks).unwrap_or(u32::MAX)) / TICKS
}

/// CPU-seconds of all ended children of this process.
pub fn ended_children_seconds() -> Result<f64> {
    let text = fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = text[text.rfind(')').context("odd stat")? + 2..].split(' ').collect();
    let number = |index: usize| fields[index].parse::<u64>();
    Ok(seconds(number(13)? + number(14)?))
}

/// A line such as `VmHWM` or `VmRSS` of a process, in MiB.
pub fn memory_mib(pid: u32, field: &str) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find(|l| l.starts_with(field))?;
    let kib: u32 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(f64::from(kib) / 1024.0)
}
