//! Owns reading chunks: one statement per chunk in a session of the consistent view, rows decoded straight out of the
//! read buffer on a thread that may block, so that reading goes on while the sink writes. A bounded channel holds it
//! back.

use std::{
    net::{Shutdown, TcpStream},
    sync::{Arc, Mutex},
};

use canalis_connector_api::SourceEvent;
use canalis_types::{Code, Error, ErrorKind, Result, TableId};
use tokio::sync::{Semaphore, mpsc};

use super::{
    chunks::{Chunk, ChunkKey},
    decode::{RowDecoder, select_list},
};
use crate::{
    catalog::Table,
    wire::{Connection, WireError},
};

/// Bytes after which a batch is cut.
const BATCH_BYTES: usize = 2 << 20;
/// Batches that wait for the sink.
const WAITING_BATCHES: usize = 1;

/// Sessions of the consistent view, shared by readers. A reader that finds none free waits.
pub(crate) struct Sessions {
    free: Mutex<Vec<Connection>>,
    permits: Semaphore,
}

impl Sessions {
    pub(crate) fn new(sessions: Vec<Connection>) -> Self {
        Self { permits: Semaphore::new(sessions.len()), free: Mutex::new(sessions) }
    }

    async fn take(&self) -> Result<Connection> {
        let closed = || Error::internal("a chunk was dealt after the snapshot's view was closed");
        self.permits.acquire().await.map_err(|_| closed())?.forget();
        self.free.lock().map_err(|_| closed())?.pop().ok_or_else(closed)
    }

    fn put_back(&self, conn: Connection) {
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
    pub sessions: Arc<Sessions>,
    pub table: Arc<Table>,
    pub chunk: Chunk,
    pub batch_rows: usize,
}

/// A chunk that is being read. Dropping it before its end stops the thread by breaking its session.
pub(crate) struct ChunkReader {
    events: mpsc::Receiver<Result<SourceEvent>>,
    socket: TcpStream,
    ended: bool,
}

impl Drop for ChunkReader {
    fn drop(&mut self) {
        if !self.ended {
            // Where it fails the connection is broken already.
            let _ = self.socket.shutdown(Shutdown::Both);
        }
    }
}

impl ChunkReader {
    pub(crate) async fn start(request: ChunkRequest) -> Result<Self> {
        let mut session = request.sessions.take().await?;
        let socket = session.socket().map_err(|e| e.into_error("keeping a snapshot session"))?;
        let (sender, events) = mpsc::channel(WAITING_BATCHES);
        tokio::task::spawn_blocking(move || {
            let last = match read(&request, &mut session, &sender) {
                Ok(()) => {
                    // Before the end is told, so that the session is free for the next chunk.
                    request.sessions.put_back(session);
                    Ok(SourceEvent::SplitEnd)
                }
                Err(error) => Err(error),
            };
            // The receiver has gone when the reader was dropped; there is nobody to tell.
            let _ = sender.blocking_send(last);
        });
        Ok(Self { events, socket, ended: false })
    }

    /// The next event; the last one is [`SourceEvent::SplitEnd`]. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<SourceEvent> {
        let gone = || Err(Error::internal("a chunk reader ended without its end"));
        let event = self.events.recv().await.unwrap_or_else(gone);
        self.ended |= matches!(event, Ok(SourceEvent::SplitEnd) | Err(_));
        event
    }
}

fn read(
    request: &ChunkRequest,
    session: &mut Connection,
    sender: &mpsc::Sender<Result<SourceEvent>>,
) -> Result<()> {
    let schema = &request.table.schema;
    let names: Vec<&str> = request.chunk.columns.iter().map(String::as_str).collect();
    let key = ChunkKey::over(&request.table, &names);
    let statement = format!("{} {}", select_list(schema), key.rows_clause(&schema.id, &request.chunk));
    let failed = |error| chunk_error(&schema.id, error);
    // Room for a batch of short cells; a wide table does not take it for thousands of rows.
    let room = BATCH_BYTES / (schema.columns.len().max(1) * 24);
    let mut decoder = RowDecoder::new(schema, room.clamp(1, request.batch_rows));
    session.send_query(&statement).map_err(failed)?;
    let mut rows = session.rows().map_err(failed)?;
    while let Some(row) = rows.next_row().map_err(failed)? {
        decoder.row(row)?;
        if decoder.len() >= request.batch_rows || decoder.bytes() >= BATCH_BYTES {
            send(&mut decoder, sender)?;
        }
    }
    if decoder.len() > 0 {
        send(&mut decoder, sender)?;
    }
    Ok(())
}

fn send(decoder: &mut RowDecoder, sender: &mpsc::Sender<Result<SourceEvent>>) -> Result<()> {
    let gone = |_| Error::internal("the reader of a chunk has gone");
    let (batch, letters) = decoder.finish()?;
    if batch.num_rows() > 0 {
        sender.blocking_send(Ok(SourceEvent::Batch(batch))).map_err(gone)?;
    }
    if !letters.is_empty() {
        sender.blocking_send(Ok(SourceEvent::Undecodable(letters))).map_err(gone)?;
    }
    Ok(())
}

fn chunk_error(table: &TableId, error: WireError) -> Error {
    let doing = format!("reading a chunk of {table}");
    match &error {
        // The table was altered after the view opened. A new view may see a structure that still fits; whether it
        // does is looked at when the job is restored.
        WireError::Server { code: 1412, .. } => Error::new(
            Code::SchemaChangeRefused,
            format!("{doing}: the table was altered during the snapshot"),
        )
        .with_source(error)
        .with_kind(ErrorKind::Transient),
        WireError::Server { code: 1146, .. } => {
            Error::new(Code::TableNotFound, format!("{doing}: the table has gone")).with_source(error)
        }
        _ => error.into_error(doing),
    }
}
