//! Owns figures and how they are printed.

use anyhow::Result;
use comfy_table::{CellAlignment, Table, presets::ASCII_MARKDOWN};
use serde::Serialize;

/// Figures of one run of one work.
#[derive(Debug, Clone, Serialize)]
pub struct Figures {
    /// The work.
    pub name: String,
    /// Rows or changes.
    pub rows: u64,
    /// Seconds of wall clock.
    pub wall_seconds: f64,
    /// Rows or changes per second.
    pub rows_per_second: f64,
    /// CPU-seconds of the tool.
    pub tool_cpu_seconds: f64,
    /// CPU-seconds of the source server.
    pub source_cpu_seconds: f64,
    /// CPU-seconds of the target server.
    pub target_cpu_seconds: f64,
    /// Peak resident memory of the tool in MiB.
    pub peak_mib: f64,
    /// Whether digests of source and target are equal; `None` where there is nothing to compare.
    pub equal: Option<bool>,
    /// Anything else worth a word.
    pub note: String,
}

/// One line for the log.
pub fn line(f: &Figures) -> String {
    format!(
        "{}: {:.0} rows/s, tool {:.2} CPU-s, source {:.2}, target {:.2}, peak {:.0} MiB, equal {:?} {}",
        f.name,
        f.rows_per_second,
        f.tool_cpu_seconds,
        f.source_cpu_seconds,
        f.target_cpu_seconds,
        f.peak_mib,
        f.equal,
        f.note
    )
}

/// All figures as a Markdown table.
pub fn table(figures: &[Figures]) -> String {
    let mut table = Table::new();
    table.load_preset(ASCII_MARKDOWN);
    table.set_header([
        "work",
        "rows",
        "wall s",
        "rows/s",
        "tool CPU-s",
        "source CPU-s",
        "target CPU-s",
        "peak MiB",
        "equal",
        "note",
    ]);
    for f in figures {
        let equal = match f.equal {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "–",
        };
        table.add_row([
            f.name.clone(),
            f.rows.to_string(),
            format!("{:.2}", f.wall_seconds),
            format!("{:.0}", f.rows_per_second),
            format!("{:.2}", f.tool_cpu_seconds),
            format!("{:.2}", f.source_cpu_seconds),
            format!("{:.2}", f.target_cpu_seconds),
            format!("{:.0}", f.peak_mib),
            equal.to_owned(),
            f.note.clone(),
        ]);
    }
    for index in 1..8 {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string()
}

/// All figures as JSON lines.
pub fn json_lines(figures: &[Figures]) -> Result<String> {
    let mut text = String::new();
    for figure in figures {
        text.push_str(&serde_json::to_string(figure)?);
        text.push('\n');
    }
    Ok(text)
}
