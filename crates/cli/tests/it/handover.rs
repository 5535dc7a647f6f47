//! The moment in which a stream begins: readers leave, a checkpoint is taken, every writer changes its feeder.

use std::sync::Arc;

use canalis_plan::SecretSource;
use canalis_runtime::{JobSpec, JobState};

use super::conformance::registry;

struct NoSecrets;

impl SecretSource for NoSecrets {
    fn env(&self, _: &str) -> Option<String> {
        None
    }

    fn file(&self, path: &str) -> std::io::Result<String> {
        Err(std::io::Error::other(path.to_owned()))
    }
}

/// The first checkpoint of a stream races with the readers that leave. It takes many beginnings to meet every order.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_beginning_of_a_stream_gets_its_checkpoint() {
    let pipeline = "source:\n  type: datagen\n  table: shop.orders\n  number-of-rows: 50\n  rows-per-second: 0\n\
                    sink:\n  type: blackhole\npipeline:\n  parallelism: 4\n  execution.checkpointing.interval: 10 ms\n";
    let registry = registry();
    for _ in 0..300 {
        let plan = canalis_plan::parse(pipeline, &registry, &NoSecrets).unwrap();
        let source = registry.get("datagen").unwrap().source(&plan.source.options).unwrap();
        let sink = registry.get("blackhole").unwrap().sink(&plan.sink.options).unwrap();
        let state = tempfile::tempdir().unwrap();
        let (_control, job) = canalis_runtime::run(JobSpec {
            job: "0123456789abcdef0123456789abcdef".into(),
            plan,
            source,
            sink: Arc::clone(&sink),
            state_dir: state.path().to_owned(),
            from_savepoint: None,
        });
        let report = job.await.unwrap();
        assert_eq!(report.state, JobState::Finished);
        let (read, written, ..) = report.ledger.totals();
        assert_eq!((read, written), (50, 50));
    }
}
