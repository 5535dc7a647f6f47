//! Owns reading chunks: one statement per chunk in a session of the consistent view, rows streamed into batches by a
//! task of its own, so that decoding goes on while the sink writes. A bounded channel holds it back.

use std::sync::{Arc, Mutex};

use canalis_connector_api::SourceEvent;
use canalis_types::{Code, Error, ErrorKind, Result, TableId};
use mysql_async::{Conn, prelude::Queryable};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

use super::{
    chunks::{Chunk, ChunkKey},
    decode::{RowDecoder, select_list},
};
use crate::{Endpoint, catalog::Table};

/// Bytes after which a batch is cut.
const BATCH_BYTES: usize = 2 << 20;
/// Batches that wait for the sink.
const WAITING_BATCHES: usize = 1;

/// Sessions of the consistent view, shared by readers. A reader that finds none free waits.
pub(crate) struct Sessions {
    free: Mutex<Vec<Conn>>,
    permits: Semaphore,
}

impl Sessions {
    pub(crate) fn new(sessions: Vec<Conn>) -> Self {
        Self { permits: Semaphore::new(sessions.len()), free: Mutex::new(sessions) }
    }

    async fn take(&self) -> Result<Conn> {
        let closed = || Error::internal("a chunk was dealt after the snapshot's view was closed");
        self.permits.acquire().await.map_err(|_| closed())?.forget();
        self.free.lock().map_err(|_| closed())?.pop().ok_or_else(closed)
    }

    fn put_back(&self, conn: Conn) {
        if let Ok(mut free) = self.free.lock() {
            free.push(conn);
        }
        self.permits.add_permits(1);
    }

    /// Ends the view. Sessions under way end with their readers.
    pub(crate) fn close(&self) {
        self.permits.close();
        if let Ok(mut free) = self.free.lock() {
            free.clear();
        }
    }
}

/// What a chunk reader needs.
pub(crate) struct ChunkRequest {
    pub endpoint: Endpoint,
    pub sessions: Arc<Sessions>,
    pub table: Arc<Table>,
    pub chunk: Chunk,
    pub batch_rows: usize,
}

/// A chunk that is being read. Dropping it stops the task.
pub(crate) struct ChunkReader {
    events: mpsc::Receiver<Result<SourceEvent>>,
    task: JoinHandle<()>,
}

impl Drop for ChunkReader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ChunkReader {
    pub(crate) async fn start(request: ChunkRequest) -> Result<Self> {
        let conn = request.sessions.take().await?;
        let (sender, events) = mpsc::channel(WAITING_BATCHES);
        let task = tokio::spawn(async move {
            let sessions = request.sessions.clone();
            match read(request, conn, &sender).await {
                Ok(conn) => {
                    // Before the end is told: the reader stops this task when it has it.
                    sessions.put_back(conn);
                    drop(sender.send(Ok(SourceEvent::SplitEnd)).await);
                }
                // The receiver has gone when the reader was dropped; there is nobody to tell.
                Err(error) => drop(sender.send(Err(error)).await),
            }
        });
        Ok(Self { events, task })
    }

    /// The next event; the last one is [`SourceEvent::SplitEnd`]. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<SourceEvent> {
        let ended = || Err(Error::internal("a chunk reader ended without its end"));
        self.events.recv().await.unwrap_or_else(ended)
    }
}

async fn read(
    request: ChunkRequest,
    mut conn: Conn,
    sender: &mpsc::Sender<Result<SourceEvent>>,
) -> Result<Conn> {
    let schema = &request.table.schema;
    let names: Vec<&str> = request.chunk.columns.iter().map(String::as_str).collect();
    let key = ChunkKey::over(&request.table, &names);
    let statement = format!("{} {}", select_list(schema), key.from_clause(&schema.id, &request.chunk));
    let failed = |error| chunk_error(&request.endpoint, &schema.id, error);
    let mut decoder = RowDecoder::new(schema, request.batch_rows);
    {
        let mut rows = conn.query_iter(statement).await.map_err(&failed)?;
        while let Some(row) = rows.next().await.map_err(&failed)? {
            decoder.row(row);
            if decoder.len() >= request.batch_rows || decoder.bytes() >= BATCH_BYTES {
                send(&mut decoder, sender).await?;
            }
        }
    }
    if decoder.len() > 0 {
        send(&mut decoder, sender).await?;
    }
    Ok(conn)
}

async fn send(decoder: &mut RowDecoder, sender: &mpsc::Sender<Result<SourceEvent>>) -> Result<()> {
    let gone = |_| Error::internal("the reader of a chunk has gone");
    let (batch, letters) = decoder.finish()?;
    if batch.num_rows() > 0 {
        sender.send(Ok(SourceEvent::Batch(batch))).await.map_err(gone)?;
    }
    if !letters.is_empty() {
        sender.send(Ok(SourceEvent::Undecodable(letters))).await.map_err(gone)?;
    }
    Ok(())
}

fn chunk_error(endpoint: &Endpoint, table: &TableId, error: mysql_async::Error) -> Error {
    let doing = format!("reading a chunk of {table}");
    match &error {
        // The table was altered after the view opened. A new view may see a structure that still fits; whether it
        // does is looked at when the job is restored.
        mysql_async::Error::Server(e) if e.code == 1412 => Error::new(
            Code::SchemaChangeRefused,
            format!("{doing}: the table was altered during the snapshot"),
        )
        .with_source(error)
        .with_kind(ErrorKind::Transient),
        mysql_async::Error::Server(e) if e.code == 1146 => {
            Error::new(Code::TableNotFound, format!("{doing}: the table has gone")).with_source(error)
        }
        _ => endpoint.error(&doing, error),
    }
}
