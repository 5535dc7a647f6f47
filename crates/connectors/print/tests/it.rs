//! Owns the integration tests of the sinks `print` and `blackhole`.

// Helpers outside of test functions may unwrap too.
#![allow(clippy::unwrap_used)]

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use canalis_batch::BatchBuilder;
use canalis_connector_api::{
    CommitPoint, DeadLetter, DeadLetterQueue, Options, Registry, Role, SinkContext, WriterContext,
};
use canalis_types::{Column, LogicalType, Result, RowKind, TableId, TableSchema};

struct NoLetters;

#[async_trait]
impl DeadLetterQueue for NoLetters {
    async fn reject(&self, letters: Vec<DeadLetter>) -> Result<()> {
        panic!("nothing is refused: {letters:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn changes_are_counted_per_table() {
    let mut registry = Registry::new();
    canalis_print::register(&mut registry);
    for name in ["print", "blackhole"] {
        let connector = registry.get(name).unwrap();
        let options = Options::validate(connector.spec(), Role::Sink, &BTreeMap::new()).unwrap();
        let sink = connector.sink(&options).unwrap();
        let ctx = SinkContext { job: "job".into(), writers: 1, fresh: true, tables: Vec::new() };
        sink.open(&ctx).await.unwrap();
        let ctx =
            WriterContext { job: "job".into(), index: 0, writers: 1, dead_letters: Arc::new(NoLetters) };
        let mut writer = sink.open_writer(ctx).await.unwrap();
        for table in ["b", "a", "b"] {
            let column = Column::new("id", LogicalType::Int64, false);
            let schema = Arc::new(TableSchema::new(TableId::bare(table), vec![column], vec!["id".into()]));
            sink.prepare_table(&schema, true).await.unwrap();
            let mut builder = BatchBuilder::new(schema, 3);
            for kind in [RowKind::Insert, RowKind::UpdateBefore, RowKind::UpdateAfter] {
                builder.column(0).append_i64(1).unwrap();
                builder.end_row(kind, 0);
            }
            writer.write(builder.finish().unwrap()).await.unwrap();
        }
        let report = writer.commit(&CommitPoint::default()).await.unwrap();
        assert_eq!(report.written, [(TableId::bare("a"), 2), (TableId::bare("b"), 4)], "{name}");
        assert!(writer.commit(&CommitPoint::default()).await.unwrap().written.is_empty());
    }
}
