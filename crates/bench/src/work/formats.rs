//! Formats of messages by themselves, on one thread: rows to messages and back, with what they allocate.

use std::{
    alloc::System,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use canalis_batch::{BatchBuilder, ChangeBatch};
use canalis_formats::{
    canal::{CanalDecoder, CanalDecoderOptions, CanalEncoder, CanalEncoderOptions},
    csv::CsvDialect,
    debezium::{DebeziumDecoder, DebeziumDecoderOptions, DebeziumEncoder, DebeziumEncoderOptions},
    maxwell::{MaxwellDecoder, MaxwellDecoderOptions, MaxwellEncoder, MaxwellEncoderOptions},
    message::{Message, MessageDecoder, MessageEncoder, Messages, Step},
    rows::{RowsDecoder, RowsEncoder, RowsKind, RowsOptions},
};
use canalis_types::{Column, LogicalType, RowKind, TableId, TableSchema};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

use super::{Settings, figures};
use crate::{machine, report::Figures, tool::Cost};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Rows of a batch, as the runtime has them.
const BATCH: u64 = 8192;

/// Orders of about 200 bytes: numbers, decimals, times and text.
fn orders() -> Arc<TableSchema> {
    use LogicalType as L;
    let column = |name: &str, ty| Column::new(name, ty, name != "id");
    let columns = vec![
        column("id", L::Int64),
        column("customer", L::Int32),
        column("status", L::Varchar { length: 20 }),
        column("amount", L::Decimal { precision: 12, scale: 2 }),
        column("created", L::Timestamp { precision: 3 }),
        column("shipped", L::Date),
        column("weight", L::Float64),
        column("note", L::Varchar { length: 200 }),
    ];
    Arc::new(TableSchema::new(TableId::new("shop", "orders"), columns, vec!["id".into()]))
}

fn batch(schema: &Arc<TableSchema>, from: u64, rows: u64) -> Result<ChangeBatch> {
    let mut builder = BatchBuilder::new(schema.clone(), 8192);
    for id in from..from + rows {
        let text = [
            id.to_string(),
            (id % 99_991).to_string(),
            ["new", "paid", "shipped"][usize::try_from(id % 3)?].to_owned(),
            format!("{}.{:02}", id % 100_000, id % 100),
            format!("2026-01-{:02} 12:{:02}:{:02}.{:03}", id % 28 + 1, id % 60, id % 60, id % 1000),
            format!("2026-02-{:02}", id % 28 + 1),
            format!("{}.5", id % 1000),
            format!(
                "order {id} goes to the customer's second address, \"rear\" entrance – bitte klingeln {}",
                id % 77
            ),
        ];
        for (index, text) in text.iter().enumerate() {
            builder.column(index).append_text(text.as_bytes())?;
        }
        builder.end_row(RowKind::Insert, 200);
    }
    Ok(builder.finish()?.with_event_time(Some(1_790_000_000_000)))
}

type Pair = (Box<dyn MessageEncoder>, Box<dyn MessageDecoder>);

fn pair(format: &str, schema: &Arc<TableSchema>) -> Result<Pair> {
    let rows = |kind| -> Result<Pair> {
        let options = RowsOptions {
            csv: CsvDialect { header: false, ..CsvDialect::default() },
            ..RowsOptions::default()
        };
        let decoder = RowsDecoder::new(kind, options.clone(), schema.clone()).map_err(anyhow::Error::msg)?;
        Ok((Box::new(RowsEncoder::new(kind, options)), Box::new(decoder)))
    };
    let tables = vec![schema.clone()];
    Ok(match format {
        "json" => rows(RowsKind::Json)?,
        "csv" => rows(RowsKind::Csv)?,
        "canal-json" => (
            Box::new(CanalEncoder::new(CanalEncoderOptions::default())),
            Box::new(CanalDecoder::new(CanalDecoderOptions::default(), tables)),
        ),
        "debezium-json" => (
            Box::new(DebeziumEncoder::new(DebeziumEncoderOptions::default())),
            Box::new(DebeziumDecoder::new(DebeziumDecoderOptions::default(), tables)),
        ),
        "maxwell-json" => (
            Box::new(MaxwellEncoder::new(MaxwellEncoderOptions::default())),
            Box::new(MaxwellDecoder::new(MaxwellDecoderOptions::default(), tables)),
        ),
        other => bail!("there is no format `{other}`"),
    })
}

/// Wall clock and allocations of a part.
#[derive(Default)]
struct Spent {
    wall: Duration,
    allocations: usize,
}

impl Spent {
    fn time<T>(&mut self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let (region, began) = (Region::new(ALLOCATOR), Instant::now());
        let done = work()?;
        self.wall += began.elapsed();
        self.allocations += region.change().allocations;
        Ok(done)
    }
}

/// Encodes the rows and decodes the messages again; the decoded rows are compared with the first.
pub fn measure(settings: &Settings, format: &str) -> Result<Figures> {
    let schema = orders();
    let (mut encoder, mut decoder) = pair(format, &schema)?;
    let (mut encoding, mut decoding) = (Spent::default(), Spent::default());
    let (mut done, mut bytes, mut same) = (0, 0_usize, true);
    let cpu = machine::cpu_seconds(std::process::id());
    let mut messages = Messages::default();
    while done < settings.rows {
        let rows = BATCH.min(settings.rows - done);
        let batch = batch(&schema, done, rows)?;
        encoding.time(|| {
            messages.clear();
            Ok(encoder.encode(&batch, &[], &mut messages)?)
        })?;
        bytes += messages.iter().map(|m| m.value.map_or(0, <[u8]>::len)).sum::<usize>();
        let decoded = decoding.time(|| {
            for message in messages.iter() {
                let step = decoder.decode(&Message {
                    topic: "orders",
                    key: message.key,
                    value: message.value,
                    timestamp_ms: None,
                });
                match step {
                    Ok(Step::Taken) => {}
                    other => bail!("a message was not taken: {other:?}"),
                }
            }
            Ok(decoder.take()?)
        })?;
        same &= decoded.len() == 1 && decoded[0].rows() == batch.rows();
        done += rows;
    }
    let per_row = |spent: &Spent| spent.allocations as f64 / done as f64;
    let rate = |spent: &Spent| done as f64 / spent.wall.as_secs_f64() / 1000.0;
    let cost = Cost {
        wall: decoding.wall,
        cpu_seconds: machine::cpu_seconds(std::process::id()) - cpu,
        peak_mib: 0.0,
    };
    let mut figures = figures(&format!("format-{format}"), done, cost, [0.0; 2], Some(same));
    figures.note = format!(
        "decode {:.0} k rows/s, {:.4} allocations a row; encode {:.0} k rows/s, {:.4}; {} bytes a message",
        rate(&decoding),
        per_row(&decoding),
        rate(&encoding),
        per_row(&encoding),
        bytes / usize::try_from(done)?
    );
    Ok(figures)
}
