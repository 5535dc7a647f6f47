//! Owns dealing splits: chunks of every table from one consistent view, then the stream. Everything needed to go on
//! after a crash is in its state from the moment it is opened.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use canalis_connector_api::{
    NextSplit, SourceContext, SourceReader, SourceRestore, Split, SplitEnumerator, SplitMode, TableEstimate,
};
use canalis_types::{Code, Error, Position, Result, TableId, TableSchema};
use mysql_async::Conn;
use serde_json::Value;

use super::{
    check, chunks,
    history::History,
    mapping,
    place::BinlogServer,
    plan::Cutter,
    reader::{Reader, Shared, StreamPayload},
    session::connect,
    snapshot::Sessions,
    start,
    state::{Plan, Progress, State},
    structure::{ensure_unaltered, load_all, name_case},
    tracker::NameCase,
    views::{self, Unrepeatable},
};
use crate::{
    ServerInfo,
    binlog::BinlogPosition,
    catalog::{self, Table},
    options::{SourceOptions, StartupMode},
    wire::Connection,
};

/// How often structures are read again when they change while the view opens.
const STABLE_TRIES: usize = 5;
/// Id of the one stream split.
pub(crate) const STREAM: &str = "stream";

/// Deals splits.
pub(crate) struct Enumerator {
    shared: Arc<Shared>,
    state: State,
    tables: HashMap<TableId, Arc<Table>>,
    /// Session for borders, opened when the first is needed.
    cutting: Option<Conn>,
    /// Splits to deal before new ones are cut.
    again: VecDeque<Split>,
    /// Splits that are complete although the state does not know them, with the view that they were read from.
    done: BTreeSet<String>,
    earlier_view: Option<Position>,
    /// Dealt and not finished.
    open: HashSet<String>,
    restored: bool,
    stream_dealt: bool,
    /// Readers of the job.
    readers: usize,
}

impl Enumerator {
    /// Starts from nothing: fixes the place of the snapshot and of the stream.
    ///
    /// # Errors
    /// CNL-2003 for settings under which a stream would be wrong, CNL-2007 when no table matches.
    pub(crate) async fn begin(options: SourceOptions, ctx: &SourceContext) -> Result<Self> {
        let (mut conn, info) = connect(&options).await?;
        let server = BinlogServer { endpoint: &options.endpoint, info: &info };
        if options.startup.has_stream() {
            check::require(&server, &mut conn, &options).await?;
        }
        let names = name_case(&server, &mut conn).await?;
        let matches =
            catalog::discover(&options.endpoint, &mut conn, &options.include, options.exclude.as_ref())
                .await?;
        let mut before = load_all(&options, &info, &mut conn, &matches).await?;
        let mut tries = 0;
        let (sessions, place, loaded) = loop {
            let (sessions, place) = if options.startup.has_snapshot() {
                let views =
                    views::open(&options, &info, ctx.parallelism, &unrepeatable(ctx, before.iter())).await?;
                (views.sessions, views.place)
            } else {
                (Vec::new(), Some(start::place(&server, &mut conn, &options).await?))
            };
            // The structure that was the same before and after is the structure at the place.
            let after = load_all(&options, &info, &mut conn, &matches).await?;
            if after == before {
                break (sessions, place, after);
            }
            tries += 1;
            if tries == STABLE_TRIES {
                return Err(Error::new(
                    Code::SchemaChangeRefused,
                    "tables are altered again and again while the snapshot begins; start when they are not",
                ));
            }
            before = after;
        };
        let place = place.map(|place| place.to_position()).transpose()?;
        let plan = if options.startup.has_snapshot() { Plan::Unplanned } else { Plan::Dealt };
        let progress = matches
            .iter()
            .map(|m| Progress { table: m.id.clone(), rows: m.rows, plan: plan.clone(), watermark: None })
            .collect();
        let history = History::new(loaded.iter().cloned());
        let view = place.clone().filter(|_| options.startup.has_snapshot());
        let start = place.filter(|_| options.startup.has_stream());
        let state = State::new(view, start, progress, history);
        Ok(Self::assemble(options, info, names, sessions, state, Vec::new(), ctx.parallelism))
    }

    /// Goes on from a state. Inside a snapshot what is left is read from a new view.
    ///
    /// # Errors
    /// CNL-4002 for a state that does not fit, CNL-2004 inside a snapshot of another server, CNL-2008 when a table whose snapshot is under way was altered.
    pub(crate) async fn restore(
        options: SourceOptions,
        ctx: &SourceContext,
        restore: SourceRestore,
    ) -> Result<Self> {
        let mut state = State::restore(restore.state)?;
        let (mut conn, info) = connect(&options).await?;
        let server = BinlogServer { endpoint: &options.endpoint, info: &info };
        let names = name_case(&server, &mut conn).await?;
        let (stream, mut again): (Vec<Split>, Vec<Split>) = std::mem::take(&mut state.again)
            .into_iter()
            .chain(restore.running)
            .partition(|split| split.mode == SplitMode::Stream);
        if let Some(position) = stream.first().and_then(|s| s.position.as_ref()) {
            state.history.rewind(position.order);
        }
        let keyless: HashSet<TableId> =
            state.history.schemas().iter().filter(|s| !s.has_key()).map(|s| s.id.clone()).collect();
        for progress in state.tables.iter_mut().filter(|p| keyless.contains(&p.table)) {
            let Some(view) = restore.done.iter().find_map(|id| chunks::read_from(&progress.table, id)) else {
                continue;
            };
            progress.plan = Plan::Dealt;
            progress.watermark = view.map(|place| place.to_position()).transpose()?;
            again.retain(|split| split.table.as_ref() != Some(&progress.table));
        }
        again.retain(|split| !restore.done.contains(&split.id));
        let unfinished: HashSet<TableId> = again
            .iter()
            .filter_map(|split| split.table.clone())
            .chain(state.tables.iter().filter(|p| p.plan != Plan::Dealt).map(|p| p.table.clone()))
            .collect();
        let earlier_view = state.view.clone();
        let mut sessions = Vec::new();
        if !unfinished.is_empty() {
            same_server(&server, &mut conn, earlier_view.as_ref()).await?;
            let known: Vec<Arc<Table>> =
                unfinished.iter().filter_map(|id| state.history.current(id).cloned()).collect();
            let views =
                views::open(&options, &info, ctx.parallelism, &unrepeatable(ctx, known.iter())).await?;
            ensure_unaltered(&options, &info, &mut conn, &known).await?;
            sessions = views.sessions;
            state.view = views.place.map(|place| place.to_position()).transpose()?;
        }
        for progress in &mut state.tables {
            let keyed = !keyless.contains(&progress.table);
            if unfinished.contains(&progress.table) && keyed && progress.watermark.is_none() {
                // Rows may have reached the sink after the state was made.
                progress.watermark.clone_from(&earlier_view);
            }
        }
        let mut enumerator =
            Self::assemble(options, info, names, sessions, state, restore.cuts, ctx.parallelism);
        enumerator.restored = true;
        enumerator.done = restore.done;
        enumerator.earlier_view = earlier_view;
        for mut split in again {
            split.retried = true;
            if let Some(table) = split.table.clone() {
                if keyless.contains(&table) {
                    split.id = enumerator.whole_id(&table)?;
                }
                enumerator.note_read(&table, enumerator.state.view.clone());
            }
            enumerator.again.push_back(split);
        }
        enumerator.again.extend(stream);
        Ok(enumerator)
    }

    fn assemble(
        options: SourceOptions,
        info: ServerInfo,
        names: NameCase,
        sessions: Vec<Connection>,
        mut state: State,
        cuts: Vec<Position>,
        readers: usize,
    ) -> Self {
        let history = std::mem::take(&mut state.history);
        let mut tables = HashMap::new();
        for progress in &state.tables {
            if let Some(table) = history.current(&progress.table) {
                tables.insert(progress.table.clone(), table.clone());
            }
        }
        let shared = Shared {
            mapping: mapping(&options, &info),
            options,
            info,
            names,
            sessions: Arc::new(Sessions::new(sessions)),
            tables: tables.clone(),
            history: Arc::new(Mutex::new(history)),
            cuts,
        };
        Self {
            shared: Arc::new(shared),
            state,
            tables,
            cutting: None,
            again: VecDeque::new(),
            done: BTreeSet::new(),
            earlier_view: None,
            open: HashSet::new(),
            restored: false,
            stream_dealt: false,
            readers,
        }
    }

    /// Notes that rows of a table come from a view. Rows of a keyed table may come from several, of which the oldest
    /// counts; a table without a key is read from one, of which the newest reading counts.
    fn note_read(&mut self, table: &TableId, view: Option<Position>) {
        let keyed = self.tables.get(table).is_some_and(|t| t.schema.has_key());
        if let Some(progress) = self.state.tables.iter_mut().find(|p| p.table == *table) {
            progress.watermark = match (progress.watermark.take(), view) {
                (Some(old), Some(new)) if keyed => Some(old.min(new)),
                (old, new) => new.or(old),
            };
        }
    }

    /// Name of a reading of a table without a key from the present view.
    fn whole_id(&self, table: &TableId) -> Result<String> {
        let view = self.state.view.as_ref().map(BinlogPosition::parse).transpose()?;
        Ok(chunks::whole_id(table, view.as_ref()))
    }

    /// The next chunk that is not known to be complete.
    async fn next_chunk(&mut self, reader: usize) -> Result<Option<Split>> {
        let Some(index) = self.state.tables.iter().position(|p| p.plan != Plan::Dealt) else {
            self.cutting = None;
            return Ok(None);
        };
        let progress = &self.state.tables[index];
        let id = progress.table.clone();
        let table =
            self.tables.get(&id).cloned().ok_or_else(|| Error::internal(format!("{id} has no structure")))?;
        let conn = match &mut self.cutting {
            Some(conn) => conn,
            empty => empty.insert(connect(&self.shared.options).await?.0),
        };
        let readers = self.readers;
        let mut cutter = Cutter { options: &self.shared.options, conn, table: &table, readers };
        let Some((chunk, rest)) = cutter.next(&progress.plan, progress.rows, reader).await? else {
            return Ok(None);
        };
        self.state.tables[index].plan = rest;
        let split_id =
            if table.schema.has_key() { chunks::split_id(&id, &chunk) } else { self.whole_id(&id)? };
        let split = Split {
            id: split_id,
            mode: SplitMode::Snapshot,
            table: Some(id.clone()),
            payload: serde_json::to_value(&chunk)
                .map_err(|e| Error::internal("writing a chunk").with_source(e))?,
            position: None,
            retried: self.restored,
        };
        let complete = self.done.contains(&split.id);
        self.note_read(&id, if complete { self.earlier_view.clone() } else { self.state.view.clone() });
        Ok(Some(split))
    }

    fn stream_split(&self) -> Result<Split> {
        let marks: Vec<(&TableId, &Position)> =
            self.state.tables.iter().filter_map(|p| Some((&p.table, p.watermark.as_ref()?))).collect();
        let start = marks.iter().map(|(_, position)| *position).min().or(self.state.start.as_ref());
        let start =
            start.cloned().ok_or_else(|| Error::internal("the stream has no position to begin at"))?;
        let payload = StreamPayload {
            begin_after: match &self.shared.options.startup {
                StartupMode::GtidSet(set) => Some(set.clone()),
                _ => None,
            },
            skip_before_ms: match &self.shared.options.startup {
                StartupMode::Timestamp(millis) => Some(*millis),
                _ => None,
            },
            watermarks: marks
                .into_iter()
                .filter(|(_, position)| **position > start)
                .map(|(table, position)| (table.clone(), position.clone()))
                .collect(),
        };
        Ok(Split {
            id: STREAM.to_owned(),
            mode: SplitMode::Stream,
            table: None,
            payload: serde_json::to_value(&payload)
                .map_err(|e| Error::internal("writing the stream split").with_source(e))?,
            position: Some(start),
            retried: false,
        })
    }
}

#[async_trait]
impl SplitEnumerator for Enumerator {
    fn tables(&self) -> Vec<Arc<TableSchema>> {
        self.shared.history.lock().map(|history| history.schemas()).unwrap_or_default()
    }

    fn estimate(&self, table: &TableId) -> Option<TableEstimate> {
        let progress = self.state.tables.iter().find(|p| p.table == *table)?;
        self.shared.options.startup.has_snapshot().then_some(TableEstimate { rows: progress.rows })
    }

    async fn next(&mut self, reader: usize) -> Result<NextSplit> {
        if let Some(split) = self.again.front()
            && (split.mode != SplitMode::Stream || self.open.is_empty())
            && let Some(split) = self.again.pop_front()
        {
            self.stream_dealt |= split.mode == SplitMode::Stream;
            self.open.insert(split.id.clone());
            return Ok(NextSplit::Split(Box::new(split)));
        }
        while let Some(split) = self.next_chunk(reader).await? {
            if !self.done.contains(&split.id) {
                self.open.insert(split.id.clone());
                return Ok(NextSplit::Split(Box::new(split)));
            }
        }
        if !self.shared.options.startup.has_stream() {
            return Ok(NextSplit::Finished);
        }
        if !self.open.is_empty() || self.stream_dealt {
            return Ok(NextSplit::Wait);
        }
        self.shared.sessions.close();
        self.stream_dealt = true;
        let split = self.stream_split()?;
        self.open.insert(split.id.clone());
        Ok(NextSplit::Split(Box::new(split)))
    }

    fn split_finished(&mut self, id: &str) {
        self.open.remove(id);
    }

    async fn open_reader(&mut self) -> Result<Box<dyn SourceReader>> {
        Ok(Box::new(Reader::new(self.shared.clone())))
    }

    fn state(&self) -> Value {
        let mut state = self.state.clone();
        state.again = self.again.iter().cloned().collect();
        if let Ok(history) = self.shared.history.lock() {
            state.history = history.clone();
        }
        state.to_value()
    }

    async fn checkpoint_durable(&mut self, position: Option<&Position>) -> Result<()> {
        if let (Some(position), Ok(mut history)) = (position, self.shared.history.lock()) {
            history.prune(position.order);
        }
        Ok(())
    }
}

/// The rest of a snapshot can only be read from the server that it was begun at: places in the logs of two servers cannot be
/// compared, and the stream has to know which of two views is older.
async fn same_server(server: &BinlogServer<'_>, conn: &mut Conn, view: Option<&Position>) -> Result<()> {
    let begun = view.map(BinlogPosition::parse).transpose()?.and_then(|place| place.server);
    let (Some(begun), Some(now)) = (begun, server.identity(conn).await?) else { return Ok(()) };
    if begun == now {
        return Ok(());
    }
    Err(Error::new(
        Code::PositionLost,
        format!(
            "the snapshot was begun at server {begun}, and this is server {now}: it cannot go on here; start anew with \
             an empty state directory"
        ),
    ))
}

/// Tables of which the stream should not repeat what the snapshot shows.
fn unrepeatable<'a>(ctx: &SourceContext, tables: impl Iterator<Item = &'a Arc<Table>>) -> Unrepeatable {
    let mut unrepeatable = Unrepeatable::default();
    for table in tables {
        let schema = &table.schema;
        if !ctx.upsert_sink || !schema.has_key() {
            unrepeatable.never.insert(schema.id.to_string());
        } else if schema.indexes.iter().any(|index| index.unique) {
            unrepeatable.rather_not.insert(schema.id.to_string());
        }
    }
    unrepeatable
}
