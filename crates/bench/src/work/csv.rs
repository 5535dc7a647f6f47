//! A CSV file of five columns into JSON lines, with checkpoints.

use std::io::{BufWriter, Write};

use anyhow::Result;

use super::{Settings, figures};
use crate::{report::Figures, tool::Tool};

/// Writes a CSV file of five times the rows and measures its way into JSON lines.
pub async fn measure(settings: &Settings) -> Result<Figures> {
    let rows = settings.rows * 5;
    let directory = tempfile::tempdir()?;
    let input = directory.path().join("orders.csv");
    let mut file = BufWriter::new(std::fs::File::create(&input)?);
    for id in 0..rows {
        writeln!(
            file,
            "{id},customer-{:07},{}.{:02},2026-01-{:02} 12:{:02}:00",
            id % 9_999_991,
            id % 1000,
            id % 100,
            id % 28 + 1,
            id % 60
        )?;
    }
    file.flush()?;
    drop(file);
    let output = directory.path().join("out");
    let pipeline = format!(
        "source:\n  type: files\n  path: {}\n  format: csv\n  csv.header: false\n  table: shop.orders\n  \
         schema: id BIGINT NOT NULL, customer VARCHAR(20), amount DECIMAL(10,2), created TIMESTAMP(0)\n\
         sink:\n  type: files\n  path: {}\n  format: json\npipeline:\n  execution.checkpointing.interval: 1 s\n",
        input.display(),
        output.display()
    );
    let bytes = std::fs::metadata(&input)?.len();
    let cost = Tool::start(&settings.canalis, directory.path(), &pipeline)?.wait().await?;
    let mut lines = 0;
    let mut open = vec![output];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            for entry in std::fs::read_dir(&path)? {
                open.push(entry?.path());
            }
        } else {
            lines += std::fs::read(&path)?.iter().filter(|b| **b == b'\n').count() as u64;
        }
    }
    let mut figures = figures("csv", rows, cost, [0.0; 2], Some(lines == rows));
    figures.note = format!("{} MB", bytes / 1_000_000);
    Ok(figures)
}
