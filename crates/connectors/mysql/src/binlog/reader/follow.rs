//! Owns the reader's thread: one session after another, each going on where the last one was lost.

use std::{sync::Arc, time::Duration};

use canalis_types::{Code, Error, Position, Result};

use super::{
    ReaderConfig, SchemaTracker, StartPosition,
    apply::Follower,
    failure::{Failure, Progress, Session, dump_refused},
    queue::Queue,
    server::{self, From},
};
use crate::{
    binlog::{
        BinlogPosition,
        gtid::{Executed, Gtid},
    },
    wire::WireError,
};

/// First pause before connecting again; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// Ends the queue even if the thread panics.
struct EndGuard(Arc<Queue>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        self.0.end(Some(Error::internal("the binlog reader has ended unexpectedly")));
    }
}

/// Runs until the queue is closed or nothing helps any more.
pub fn run(config: ReaderConfig, tracker: Box<dyn SchemaTracker>, queue: &Arc<Queue>) {
    let guard = EndGuard(queue.clone());
    let outcome = follow(config, tracker, queue);
    if let Err(error) = outcome {
        queue.end(Some(error));
    }
    drop(guard);
}

fn follow(config: ReaderConfig, tracker: Box<dyn SchemaTracker>, queue: &Arc<Queue>) -> Result<()> {
    let (mut from, executed) = match &config.start {
        StartPosition::File(position) => {
            let executed = position.gtid_set.as_deref().map(|set| Executed::parse(config.flavor, set));
            (From::Position(position.clone()), executed.transpose()?)
        }
        StartPosition::Gtid(set) => {
            let executed = Executed::parse(config.flavor, set)?;
            (From::Executed(executed.clone()), Some(executed))
        }
        StartPosition::Earliest => (From::Oldest, None),
    };
    let max_retries = config.max_retries;
    let mut follower = Follower::new(config, tracker, queue.clone(), executed);
    let mut failed = 0u32;
    let mut pause = FIRST_PAUSE;
    loop {
        let progress = follower.progress();
        let lost = match session(&mut follower, &from, queue) {
            Err(Failure::Lost(error)) => error,
            Err(Failure::Fatal(error)) => return Err(error),
            Err(Failure::Closed) | Ok(()) => return Ok(()),
        };
        if queue.is_closed() {
            return Ok(());
        }
        if follower.progress() > progress {
            failed = 0;
            pause = FIRST_PAUSE;
        }
        match follower.interrupted() {
            Ok(Some(position)) => from = From::Position(position),
            Ok(None) => {}
            Err(Failure::Fatal(error)) => return Err(error),
            Err(Failure::Closed | Failure::Lost(_)) => return Ok(()),
        }
        failed += 1;
        if failed > max_retries {
            return Err(Error::new(
                Code::SourceUnreachable,
                format!("reading the binlog: gave up after {max_retries} attempts to connect again"),
            )
            .with_source(lost));
        }
        tracing::warn!(error = %lost, attempt = failed, "binlog connection lost, connecting again");
        if !queue.pause(pause) {
            return Ok(());
        }
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

/// One connection, until it is lost.
fn session(follower: &mut Follower, from: &From, queue: &Arc<Queue>) -> Session<()> {
    let mut dump = server::open(follower.config(), from, &|socket| queue.watch(socket))?;
    follower.begin(&dump.server, &dump.begin)?;
    let oldest = dump.oldest;
    let before = follower.progress();
    let refused = |error: WireError, follower: &Follower| {
        let progress = if follower.progress() > before { Progress::Some } else { Progress::None };
        dump_refused(error, &follower.place_text(), oldest.as_deref(), progress)
    };
    loop {
        match dump.events.has_buffered() {
            Ok(true) => {}
            Ok(false) => follower.drained()?,
            Err(error) => return Err(refused(error, follower)),
        }
        match dump.events.next() {
            Ok(event) => follower.event(event)?,
            Err(error) => return Err(refused(error, follower)),
        }
    }
}

/// Parts of a position that the follower puts together.
pub fn position(parts: BinlogPosition) -> Session<Position> {
    parts.to_position().map_err(Failure::Fatal)
}

/// Whether a transaction is in what is executed already, though it comes after the place in the file.
pub fn is_executed(executed: Option<&Executed>, gtid: Option<&Gtid>) -> bool {
    match (executed, gtid) {
        (Some(Executed::MySql(set)), Some(Gtid::MySql(source, number))) => set.contains(source, *number),
        (Some(Executed::MariaDb(list)), Some(Gtid::MariaDb(gtid))) => list.covers(*gtid),
        _ => false,
    }
}
