//! Owns what a person sees: JSON or text, live progress on a terminal, plain lines elsewhere, the closing summary.

use std::{
    io::IsTerminal,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::Result;
use canalis_runtime::{JobReport, Phase, Progress, ProgressView};
use comfy_table::{CellAlignment, Table, presets::UTF8_HORIZONTAL_ONLY};
use indicatif::{HumanBytes, HumanCount, HumanDuration, MultiProgress, ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::pipeline::Problems;

/// How results are printed.
pub struct Output {
    json: bool,
}

impl Output {
    /// JSON or text.
    pub fn new(json: bool) -> Self {
        Self { json }
    }

    /// Prints a value as JSON, or its text form.
    pub fn value(&self, value: &Value, text: impl FnOnce()) -> Result<()> {
        if self.json {
            println!("{}", serde_json::to_string_pretty(value)?);
        } else {
            text();
        }
        Ok(())
    }

    /// Prints an error: to standard error as text, or to standard output as JSON.
    pub fn error(&self, error: &anyhow::Error) {
        if self.json {
            let problems = error.downcast_ref::<Problems>().map(|p| serde_json::to_value(&p.problems));
            let code = error.downcast_ref::<canalis_types::Error>().map(|e| e.code().to_string());
            let value = match problems {
                Some(Ok(problems)) => json!({ "problems": problems }),
                _ => json!({ "error": format!("{error:#}"), "code": code }),
            };
            println!("{value:#}");
        } else if error.is::<Problems>() {
            eprintln!("{error}");
        } else {
            eprintln!("error: {error:#}");
        }
    }
}

/// Most tables that are drawn one by one.
const SHOWN_TABLES: usize = 20;

/// Live progress of one job.
#[derive(Clone)]
pub struct Live(Arc<Inner>);

struct Inner {
    progress: Arc<Progress>,
    mode: Mode,
    last: Mutex<Option<ProgressView>>,
}

enum Mode {
    /// Bars are redrawn in place; the last one is the total.
    Terminal(MultiProgress, Mutex<Vec<ProgressBar>>),
    /// A line now and then.
    Lines,
    /// Nothing before the end.
    Silent,
}

impl Live {
    /// Live progress in the form that fits: bars on a terminal, lines elsewhere, nothing for JSON.
    pub fn new(output: &Output, progress: Arc<Progress>) -> Self {
        let mode = if output.json {
            Mode::Silent
        } else if std::io::stderr().is_terminal() {
            Mode::Terminal(MultiProgress::new(), Mutex::new(Vec::new()))
        } else {
            Mode::Lines
        };
        Self(Arc::new(Inner { progress, mode, last: Mutex::new(None) }))
    }

    /// How often [`Live::draw`] is to be called.
    pub fn period(&self) -> Option<Duration> {
        match self.0.mode {
            Mode::Terminal(..) => Some(Duration::from_millis(250)),
            Mode::Lines => Some(Duration::from_secs(5)),
            Mode::Silent => None,
        }
    }

    /// Says something beside the progress.
    pub fn say(&self, text: &str) {
        match &self.0.mode {
            Mode::Terminal(bars, _) => {
                // A terminal that has gone cannot be told.
                let _ = bars.println(text);
            }
            _ => eprintln!("{text}"),
        }
    }

    /// Draws the progress of this moment.
    pub fn draw(&self) {
        let view = self.0.progress.view();
        let mut last = self.0.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &self.0.mode {
            Mode::Silent => {}
            Mode::Lines => {
                if last.is_some() {
                    eprintln!("{}", total_line(&view, last.as_ref()));
                    for (table, text) in table_lines(&view, last.as_ref()).into_iter().take(SHOWN_TABLES) {
                        eprintln!("  {table}  {text}");
                    }
                }
            }
            Mode::Terminal(multi, bars) => {
                let mut bars = bars.lock().unwrap_or_else(PoisonError::into_inner);
                let mut lines: Vec<String> = table_lines(&view, last.as_ref())
                    .into_iter()
                    .take(SHOWN_TABLES)
                    .map(|(table, text)| format!("{table}  {text}"))
                    .collect();
                if view.tables.len() > SHOWN_TABLES {
                    lines.push(format!("… and {} more tables", view.tables.len() - SHOWN_TABLES));
                }
                lines.push(total_line(&view, last.as_ref()));
                while bars.len() < lines.len() {
                    let style = ProgressStyle::with_template("{msg}")
                        .unwrap_or_else(|_| ProgressStyle::default_bar());
                    bars.push(multi.add(ProgressBar::new(1).with_style(style)));
                }
                for (bar, line) in bars.iter().zip(lines) {
                    bar.set_message(line);
                }
            }
        }
        *last = Some(view);
    }

    /// Ends the live part and leaves the screen clean.
    pub fn end(&self) {
        if let Mode::Terminal(multi, _) = &self.0.mode {
            // A terminal that has gone needs no cleaning.
            let _ = multi.clear();
        }
    }

    /// Prints the closing summary per table.
    pub fn summary(&self, report: &JobReport) {
        let view = self.0.progress.view();
        let seconds = view.uptime_seconds.max(0.001);
        let mut table = Table::new();
        table.load_preset(UTF8_HORIZONTAL_ONLY);
        table.set_header(["source table", "read", "filtered", "refused", "bytes", "rows/s"]);
        for (id, counts) in &report.ledger.sources {
            let now = view.tables.iter().find(|(t, _)| t == id).map_or(0, |(_, t)| t.read);
            table.add_row([
                id.to_string(),
                HumanCount(counts.read).to_string(),
                HumanCount(counts.filtered).to_string(),
                HumanCount(counts.refused).to_string(),
                HumanBytes(counts.bytes).to_string(),
                rate(now, seconds),
            ]);
        }
        for index in 1..6 {
            if let Some(column) = table.column_mut(index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        println!("{table}");
        let mut table = Table::new();
        table.load_preset(UTF8_HORIZONTAL_ONLY);
        table.set_header(["sink table", "written", "dead-lettered", "skipped after restart"]);
        for (id, counts) in &report.ledger.sinks {
            table.add_row([
                id.to_string(),
                HumanCount(counts.written).to_string(),
                HumanCount(counts.dead_lettered).to_string(),
                HumanCount(counts.skipped).to_string(),
            ]);
        }
        for index in 1..4 {
            if let Some(column) = table.column_mut(index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        println!("{table}");
        let (read, written, filtered, dead) = report.ledger.totals();
        println!(
            "{:?} at checkpoint {} after {}: {} read, {} written, {} filtered, {} dead-lettered, {} restarts",
            report.state,
            report.epoch,
            HumanDuration(Duration::from_secs_f64(seconds)),
            HumanCount(read),
            HumanCount(written),
            HumanCount(filtered),
            HumanCount(dead),
            report.restarts
        );
    }
}

fn rate(count: u64, seconds: f64) -> String {
    // Rates are for reading: whole numbers are exact enough.
    let per_second = Duration::from_secs_f64(seconds).as_millis().max(1);
    let value = u128::from(count) * 1000 / per_second;
    HumanCount(u64::try_from(value).unwrap_or(u64::MAX)).to_string()
}

fn seconds_between(view: &ProgressView, last: Option<&ProgressView>) -> f64 {
    (view.uptime_seconds - last.map_or(0.0, |l| l.uptime_seconds)).max(0.001)
}

fn total_line(view: &ProgressView, last: Option<&ProgressView>) -> String {
    let written = view.written - last.map_or(0, |l| l.written);
    let mut line = format!(
        "{:?}  {} written ({}/s)  checkpoint {}",
        view.state,
        HumanCount(view.written),
        rate(written, seconds_between(view, last)),
        view.epoch
    );
    if let Some(lag) = view.lag_ms {
        line.push_str(&format!("  lag {lag} ms"));
    }
    if let Some(position) = &view.position {
        line.push_str(&format!("  at {}", shorten(&position.to_string())));
    }
    if let Some(error) = &view.last_error {
        line.push_str(&format!("  restarts {}, last error: {}", view.restarts, shorten(error)));
    }
    line
}

fn shorten(text: &str) -> String {
    const LONGEST: usize = 120;
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn table_lines(view: &ProgressView, last: Option<&ProgressView>) -> Vec<(String, String)> {
    let seconds = seconds_between(view, last);
    let mut lines = Vec::new();
    for (index, (id, table)) in view.tables.iter().enumerate() {
        let before = last.and_then(|l| l.tables.get(index)).filter(|(t, _)| t == id).map(|(_, t)| t);
        let rows = table.read - before.map_or(0, |b| b.read);
        let bytes = table.bytes - before.map_or(0, |b| b.bytes);
        let mut text = format!(
            "{:<9} {} rows  {} rows/s  {}",
            format!("{:?}", table.phase).to_lowercase(),
            HumanCount(table.read),
            rate(rows, seconds),
            HumanBytes(
                bytes * 1000
                    / u64::try_from(Duration::from_secs_f64(seconds).as_millis().max(1)).unwrap_or(1)
            ),
        );
        text.push_str("/s");
        if let (Phase::Snapshot, Some(estimate)) = (table.phase, table.estimated_rows)
            && rows > 0
            && estimate > table.read
        {
            let left = (estimate - table.read)
                * u64::try_from(Duration::from_secs_f64(seconds).as_millis()).unwrap_or(0)
                / rows
                / 1000;
            text.push_str(&format!(
                "  ~{}%  ETA {}",
                table.read * 100 / estimate.max(1),
                HumanDuration(Duration::from_secs(left))
            ));
        }
        if table.dead_lettered > 0 {
            text.push_str(&format!("  {} refused", HumanCount(table.dead_lettered)));
        }
        lines.push((id.to_string(), text));
    }
    lines
}
