//! Owns [`Writer`]: rows wait in memory or in the open transaction until they are committed with the position.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use canalis_batch::{ChangeBatch, RowRef};
use canalis_connector_api::{
    CommitPoint, CommitReport, DeadLetter, SinkPreview, SinkWriter, SplitBegin, SplitMode, WriterContext,
};
use canalis_types::{Code, Error, Position, Result, TableId, TableSchema};

use super::{
    cells::BatchCells,
    ddl::check_names,
    failure::Failure,
    keyed::{apply_keyed, delete_rows, store_many},
    keyless::apply_ordered,
    progress::{Entry, Progress},
    screen::Sieve,
    session::Session,
    shared::Shared,
    statement::{Match, Room, Rows, Verb},
    strict::{Care, store_rows},
    target::{Filled, Mode, Target},
};

/// Bytes of batches that one LOAD DATA statement takes. They stay in memory until the server has confirmed each row, and
/// tables whose rows number themselves are locked for other writers as long.
const LOAD_BYTES: u64 = 8 << 20;
/// Rows in one statement.
const STATEMENT_ROWS: usize = 5_000;
/// Dead letters that wait for the commit.
const WAITING_LETTERS: usize = 1_000;
/// Tries of a transaction that runs into locks of others.
const TRIES: u32 = 10;

/// Rows of one table.
struct Pile {
    target: Arc<Target>,
    rows: SplitRows,
    batches: Vec<ChangeBatch>,
    bytes: u64,
}

impl Pile {
    fn new(target: Arc<Target>, rows: SplitRows) -> Self {
        Self { target, rows, batches: Vec::new(), bytes: 0 }
    }
}

/// How rows of the current split are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SplitRows {
    /// They are new to the target.
    New,
    /// Some may be there.
    PerhapsThere,
}

/// One writer with its connection.
pub(super) struct Writer {
    shared: Arc<Shared>,
    session: Session,
    ctx: WriterContext,
    /// Rows of the current bounded split, not sent yet.
    load: Option<Pile>,
    /// Changes since the last commit, by table.
    window: Vec<Pile>,
    split: Option<(String, SplitRows)>,
    /// Splits since the last commit whose tables have no key.
    keyless_splits: Vec<String>,
    /// Whether the open transaction holds rows that are no longer in memory.
    sent: bool,
    letters: Vec<DeadLetter>,
    counts: BTreeMap<TableId, Count>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Count {
    taken: u64,
    dead_lettered: u64,
}

impl Writer {
    /// Connects.
    pub(super) async fn open(shared: Arc<Shared>, ctx: WriterContext) -> Result<Self> {
        let session = shared.connect().await?;
        Ok(Self {
            shared,
            session,
            ctx,
            load: None,
            window: Vec::new(),
            split: None,
            keyless_splits: Vec::new(),
            sent: false,
            letters: Vec::new(),
            counts: BTreeMap::new(),
        })
    }

    fn room(&self) -> Room {
        Room { bytes: self.shared.config.max_statement_bytes, rows: STATEMENT_ROWS }
    }

    /// Sends the waiting rows of the current split.
    async fn flush(&mut self) -> Result<()> {
        let Some(pile) = self.load.take() else { return Ok(()) };
        let mut tries = 0;
        loop {
            match self.send(&pile).await {
                Ok(letters) => {
                    self.sent = true;
                    self.letters.extend(letters);
                    if self.letters.len() >= WAITING_LETTERS {
                        self.reject(None).await?;
                    }
                    return Ok(());
                }
                Err(failure) => self.give_way(failure, &mut tries).await?,
            }
        }
    }

    async fn send(&mut self, pile: &Pile) -> Result<Vec<DeadLetter>, Failure> {
        let target = &*pile.target;
        let cells = BatchCells::of_all(&pile.batches, target)?;
        let rows = Rows { target, batches: &pile.batches, cells: &cells };
        let sifted = Sieve::new(rows).sift(rows, all_rows(&pile.batches));
        let perhaps_there = target.was_filled || pile.rows == SplitRows::PerhapsThere;
        let verb = match target.mode {
            Mode::Replace => Verb::Replace,
            Mode::Upsert if perhaps_there => Verb::Upsert,
            Mode::Upsert | Mode::Exact | Mode::Ordered => Verb::Insert,
        };
        let room = self.room();
        let session = &mut self.session;
        if target.mode == Mode::Exact && perhaps_there {
            for part in [&sifted.ordinary, &sifted.large] {
                delete_rows(session, rows, part, Match::Exact, room).await?;
            }
        }
        let mut letters = sifted.letters;
        letters.extend(store_many(session, rows, &sifted.ordinary, verb, Care::Careful, room).await?);
        let alone = Room { rows: 1, ..room };
        letters.extend(store_rows(session, rows, &sifted.large, verb, Care::Careful, alone).await?);
        Ok(letters)
    }

    /// After a failure: rolls back and waits when another try can help, otherwise gives the error.
    async fn give_way(&mut self, failure: Failure, tries: &mut u32) -> Result<()> {
        let doing = "writing rows";
        *tries += 1;
        match failure {
            Failure::Contention(error) if !self.sent && *tries < TRIES => {
                tracing::debug!(writer = self.ctx.index, tries = *tries, %error, "transaction gives way to locks of others");
                self.session.rollback().await?;
                let longest = 5u64 << (*tries).min(8);
                tokio::time::sleep(Duration::from_millis(rand::random_range(longest / 2..=longest))).await;
                Ok(())
            }
            Failure::Suspicious if !self.sent && *tries < TRIES => self.session.rollback().await,
            failure => {
                let error = failure.into_error(doing);
                if error.code() != Code::SinkUnreachable {
                    // The first error is the one to report.
                    if let Err(other) = self.session.rollback().await {
                        tracing::debug!(error = %other, "rolling back failed too");
                    }
                }
                Err(error)
            }
        }
    }

    /// Hands waiting dead letters over.
    async fn reject(&mut self, position: Option<&Position>) -> Result<()> {
        if self.letters.is_empty() {
            return Ok(());
        }
        let mut letters = std::mem::take(&mut self.letters);
        for letter in &mut letters {
            letter.position = position.cloned();
            self.counts.entry(letter.table.clone()).or_default().dead_lettered += 1;
        }
        self.ctx.dead_letters.reject(letters).await
    }

    /// Applies the window inside the open transaction.
    async fn apply(&mut self, care: Care) -> Result<Vec<DeadLetter>, Failure> {
        let room = self.room();
        let mut letters = Vec::new();
        // All writers take tables in the same order, so that they seldom wait for each other in a circle.
        self.window.sort_by(|a, b| a.target.name.cmp(&b.target.name));
        for pile in &self.window {
            let target = &*pile.target;
            letters.extend(apply_all(&mut self.session, target, &pile.batches, care, room).await?);
        }
        Ok(letters)
    }

    /// Statements that store the point, and the COMMIT, to be sent at once.
    fn closing(&self, point: &CommitPoint) -> Result<String> {
        let progress = self.shared.progress()?;
        let writers = self.ctx.writers;
        let fence = progress.close(self.ctx.index, writers, point.epoch, point.position.as_ref());
        let mut statements = vec![fence];
        let mut store = |entry: Entry<'_>| statements.push(progress.store(entry, writers, point.epoch));
        if let Some((id, position)) = &point.split_position {
            store(Entry::SplitAt(id, position));
        }
        for id in point.splits.iter().filter(|id| self.keyless_splits.contains(id)) {
            store(Entry::SplitDone(id));
        }
        statements.push("COMMIT".to_owned());
        Ok(statements.join("; "))
    }

    fn pile(&mut self, target: &Arc<Target>) -> &mut Pile {
        let at = self.window.iter().position(|pile| Arc::ptr_eq(&pile.target, target));
        let at = at.unwrap_or_else(|| {
            self.window.push(Pile::new(target.clone(), SplitRows::PerhapsThere));
            self.window.len() - 1
        });
        &mut self.window[at]
    }
}

/// Applies changes of one table as its mode says.
async fn apply_all(
    session: &mut Session,
    target: &Target,
    batches: &[ChangeBatch],
    care: Care,
    room: Room,
) -> Result<Vec<DeadLetter>, Failure> {
    match target.mode {
        Mode::Ordered => apply_ordered(session, target, batches, care, room).await,
        _ => apply_keyed(session, target, batches, care, room).await,
    }
}

/// The statements by which changes would be applied, and the rows that would be refused without asking the server. Nothing
/// is run but questions about the table.
pub(super) async fn preview(shared: &Shared, batch: &ChangeBatch) -> Result<SinkPreview> {
    let schema = batch.schema();
    let place = shared.place(&schema.id)?;
    check_names(schema, &place)?;
    let mut session = shared.session().await?;
    let target = match shared.read(&mut session, &place).await? {
        Some(existing) => Target::build(schema, &place, &existing, &session.facts, Filled::Perhaps)?.0,
        None => Target::planned(schema, &place, &session.facts),
    };
    let room = Room { bytes: shared.config.max_statement_bytes, rows: STATEMENT_ROWS };
    session.record();
    let applied = apply_all(&mut session, &target, std::slice::from_ref(batch), Care::Quick, room).await;
    let statements = session.recorded();
    let refused = applied.map_err(|failure| failure.into_error("composing statements"))?;
    shared.keep(session);
    Ok(SinkPreview { statements, refused })
}

fn all_rows(batches: &[ChangeBatch]) -> Vec<RowRef> {
    let mut refs = Vec::with_capacity(batches.iter().map(ChangeBatch::num_rows).sum());
    for (batch, rows) in (0u32..).zip(batches) {
        refs.extend((0u32..).take(rows.num_rows()).map(|row| RowRef { batch, row }));
    }
    refs
}

#[async_trait]
impl SinkWriter for Writer {
    async fn begin_split(&mut self, begin: &SplitBegin) -> Result<()> {
        let split = &begin.split;
        if split.mode == SplitMode::Stream {
            self.split = None;
            return Ok(());
        }
        // A file may hold a key twice; the last row counts.
        let rows = if split.retried || split.mode == SplitMode::Append {
            SplitRows::PerhapsThere
        } else {
            SplitRows::New
        };
        if !begin.schema.as_ref().is_some_and(|schema| schema.has_key()) {
            self.keyless_splits.push(split.id.clone());
        }
        self.split = Some((split.id.clone(), rows));
        Ok(())
    }

    async fn write(&mut self, batch: ChangeBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let target = self.shared.target(batch.schema()).await?;
        self.counts.entry(batch.schema().id.clone()).or_default().taken += batch.num_changes();
        let bytes = batch.num_bytes();
        let rows = match &self.split {
            Some((_, rows)) if batch.is_insert_only() => *rows,
            _ => {
                self.pile(&target).batches.push(batch);
                return Ok(());
            }
        };
        if self.load.as_ref().is_some_and(|pile| !Arc::ptr_eq(&pile.target, &target) || pile.rows != rows) {
            self.flush().await?;
        }
        let pile = self.load.get_or_insert_with(|| Pile::new(target, rows));
        pile.batches.push(batch);
        pile.bytes += bytes;
        if pile.bytes >= LOAD_BYTES {
            self.flush().await?;
        }
        Ok(())
    }

    async fn commit(&mut self, point: &CommitPoint) -> Result<CommitReport> {
        self.flush().await?;
        let marks =
            point.split_position.is_some() || point.splits.iter().any(|id| self.keyless_splits.contains(id));
        // A position without rows needs no round trip: going on from an older one applies nothing again.
        if self.sent || !self.window.is_empty() || marks {
            let mut tries = 0;
            // What is sent already could not be sent again.
            let mut care = if self.sent { Care::Careful } else { Care::Quick };
            let mut told = false;
            loop {
                let result = match self.apply(care).await {
                    Ok(letters) => {
                        // A transaction that is tried again refuses the same rows again.
                        if !std::mem::replace(&mut told, true) {
                            self.letters.extend(letters);
                        }
                        self.reject(point.position.as_ref()).await?;
                        let closing = self.closing(point)?;
                        let closed = self.session.run("committing rows", closing.as_bytes()).await;
                        closed.map_err(Progress::closing_failure)
                    }
                    Err(failure) => Err(failure),
                };
                match result {
                    Ok(_) => break,
                    Err(failure) => {
                        if matches!(failure, Failure::Suspicious) {
                            care = Care::Careful;
                        }
                        self.give_way(failure, &mut tries).await?;
                    }
                }
            }
        }
        self.sent = false;
        self.window.clear();
        if self.split.as_ref().is_some_and(|(id, _)| point.splits.contains(id)) {
            self.split = None;
        }
        self.keyless_splits.retain(|id| !point.splits.contains(id));
        let mut report = CommitReport::default();
        for (table, count) in std::mem::take(&mut self.counts) {
            let dead = count.dead_lettered;
            if dead > 0 {
                report.dead_lettered.push((table.clone(), dead));
            }
            report.written.push((table, count.taken.saturating_sub(dead)));
        }
        Ok(report)
    }

    async fn schema_changed(&mut self, schema: &Arc<TableSchema>) -> Result<()> {
        if self.sent || self.load.is_some() || !self.window.is_empty() {
            return Err(Error::internal(format!(
                "the structure of {} changed before its rows were committed",
                schema.id
            )));
        }
        self.shared.target(schema).await.map(drop)
    }
}
