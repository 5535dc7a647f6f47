//! Owns the tests of the stream.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use canalis_batch::{ChangeBatch, cell_to_text};
use canalis_connector_api::{
    Boundedness, NextSplit, Options, Registry, Role, Source, SourceContext, SourceEvent, SourceReader,
    SourceRestore, Split, SplitEnumerator,
};
use canalis_datagen::{Mix, live_orders, order_texts};
use canalis_types::{Code, Position, RowKind};

fn source(pairs: &[(&str, &str)]) -> Box<dyn Source> {
    let mut registry = Registry::new();
    canalis_datagen::register(&mut registry);
    let connector = registry.get("datagen").unwrap();
    let raw: BTreeMap<String, String> = pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    connector.source(&Options::validate(connector.spec(), Role::Source, &raw).unwrap()).unwrap()
}

async fn open(
    source: &dyn Source,
    restore: Option<SourceRestore>,
) -> (Box<dyn SplitEnumerator>, Option<Split>) {
    let ctx = SourceContext { job: "job".into(), parallelism: 1, upsert_sink: true };
    let mut enumerator = source.open(ctx, restore).await.unwrap();
    let split = match enumerator.next(0).await.unwrap() {
        NextSplit::Split(split) => Some(*split),
        _ => None,
    };
    (enumerator, split)
}

type Row = Vec<Option<String>>;

fn rows(batch: &ChangeBatch) -> Vec<(RowKind, Row)> {
    let columns = &batch.schema().columns;
    let row = |row: usize| {
        let cells =
            columns.iter().enumerate().map(|(at, c)| cell_to_text(batch.rows().column(at), &c.ty, row));
        (batch.kinds()[row], cells.collect())
    };
    (0..batch.num_rows()).map(row).collect()
}

#[derive(Default)]
struct Delivered {
    changes: Vec<(RowKind, Row)>,
    /// Changes before each watermark, and its position.
    watermarks: Vec<(u64, Position)>,
}

async fn read(reader: &mut dyn SourceReader, split: Split) -> Delivered {
    let mut delivered = Delivered::default();
    let mut changes = 0;
    reader.start(split).await.unwrap();
    loop {
        match reader.next().await.unwrap() {
            SourceEvent::Batch(batch) => {
                assert!(batch.num_changes() <= 8192);
                changes += batch.num_changes();
                delivered.changes.extend(rows(&batch));
            }
            SourceEvent::Watermark(mark) => delivered.watermarks.push((changes, mark.position)),
            SourceEvent::SplitEnd => return delivered,
            other => panic!("unexpected {other:?}"),
        }
    }
}

const BOUNDED: &[(&str, &str)] = &[("number-of-rows", "30500"), ("rows-per-second", "0"), ("seed", "42")];

#[tokio::test]
async fn the_stream_leads_to_the_table_that_was_computed_beforehand() {
    let source = source(BOUNDED);
    assert_eq!(source.boundedness(), Boundedness::Bounded);
    let (mut enumerator, split) = open(&*source, None).await;
    let mut reader = enumerator.open_reader().await.unwrap();
    let delivered = read(&mut *reader, split.unwrap()).await;
    let mut table: BTreeMap<u64, Row> = BTreeMap::new();
    let mut before = None;
    for (kind, row) in delivered.changes {
        let id: u64 = row[0].as_ref().unwrap().parse().unwrap();
        match kind {
            RowKind::Insert => assert!(table.insert(id, row).is_none()),
            RowKind::UpdateBefore => before = Some(row),
            RowKind::UpdateAfter => assert_eq!(table.insert(id, row), before.take()),
            RowKind::Delete => assert_eq!(table.remove(&id), Some(row)),
        }
    }
    let mix = Mix::new(42, 300, 100).unwrap();
    let expect: BTreeMap<u64, Row> = live_orders(mix, 30_500)
        .into_iter()
        .map(|(order, updates)| (order + 1, order_texts(42, order, updates).unwrap()))
        .collect();
    assert!(table.len() > 15_000 && table == expect);
}

#[tokio::test]
async fn the_stream_goes_on_from_every_watermark_and_is_cut_where_asked() {
    let source = source(BOUNDED);
    let (mut enumerator, split) = open(&*source, None).await;
    let split = split.unwrap();
    let state = enumerator.state();
    let mut reader = enumerator.open_reader().await.unwrap();
    let whole = read(&mut *reader, split.clone()).await;
    assert_eq!(whole.watermarks.last().unwrap().0, 30_500);
    for (changes, position) in &whole.watermarks {
        let running = Split { position: Some(position.clone()), retried: true, ..split.clone() };
        let cuts = [changes + 1, changes + 777, changes + 9000]
            .map(|cut| Position::new([cut, 0, 0], format!("{{\"change\":{cut}}}")));
        let restore = SourceRestore {
            state: state.clone(),
            running: vec![running],
            cuts: cuts.to_vec(),
            ..SourceRestore::default()
        };
        let (mut enumerator, split) = open(&*source, Some(restore)).await;
        let mut reader = enumerator.open_reader().await.unwrap();
        let rest = read(&mut *reader, split.unwrap()).await;
        assert!(whole.changes.ends_with(&rest.changes));
        assert_eq!(rest.watermarks.last().map_or(0, |w| w.0) + changes, 30_500);
        for cut in cuts.iter().filter(|cut| cut.order[0] <= 30_500) {
            assert!(rest.watermarks.iter().any(|(_, p)| p == cut && p.detail == cut.detail), "{cut}");
        }
    }
    // A stream that has ended is not dealt again; another stream is refused.
    let ended = SourceRestore { state: state.clone(), ..SourceRestore::default() };
    assert!(open(&*source, Some(ended)).await.1.is_none());
    let other = self::source(&[("seed", "43")]);
    let ctx = SourceContext { job: "job".into(), parallelism: 1, upsert_sink: true };
    let restore = SourceRestore { state, ..SourceRestore::default() };
    assert_eq!(other.open(ctx, Some(restore)).await.err().unwrap().code(), Code::StateIncompatible);
}

#[tokio::test]
async fn a_rate_is_kept() {
    let source = source(&[("rows-per-second", "2000"), ("number-of-rows", "600")]);
    let (mut enumerator, split) = open(&*source, None).await;
    let mut reader = enumerator.open_reader().await.unwrap();
    let began = Instant::now();
    let delivered = read(&mut *reader, split.unwrap()).await;
    assert!(began.elapsed() >= Duration::from_millis(290), "{:?}", began.elapsed());
    assert_eq!(delivered.watermarks.last().unwrap().0, 600);
    assert!(delivered.watermarks.len() > 5);
}

#[tokio::test]
async fn a_dropped_call_loses_nothing() {
    let source = source(BOUNDED);
    let (mut enumerator, split) = open(&*source, None).await;
    let mut reader = enumerator.open_reader().await.unwrap();
    reader.start(split.unwrap()).await.unwrap();
    let mut changes = 0;
    loop {
        // A call that is polled once and dropped before the one that is waited for.
        let polled = tokio::time::timeout(Duration::ZERO, reader.next()).await;
        let event = match polled {
            Ok(event) => event.unwrap(),
            Err(_) => reader.next().await.unwrap(),
        };
        match event {
            SourceEvent::Batch(batch) => changes += batch.num_changes(),
            SourceEvent::SplitEnd => break,
            _ => {}
        }
    }
    assert_eq!(changes, 30_500);
}
