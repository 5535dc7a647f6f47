//! Owns the reader: a thread that reads and decodes a file, and the events made of what it sends.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    thread,
};

use async_trait::async_trait;
use base64::{Engine, engine::general_purpose::STANDARD};
use canalis_connector_api::{DeadLetter, SourceEvent, SourceReader, Split, Watermark};
use canalis_formats::{BatchLimits, DecodeFailure, DecodedRows, Place};
use canalis_types::{Code, Error, Position, Result, RowKind, TableId, TableSchema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{FileEntry, scan::FileScan};
use crate::options::SourceOptions;

/// Batches that wait between the thread and the task.
const QUEUE: usize = 3;

/// What the thread sends.
enum Piece {
    Rows(DecodedRows, Place),
    End,
}

/// Text form of a position.
#[derive(Debug, Serialize, Deserialize)]
struct PositionDetail {
    offset: u64,
    line: u64,
}

pub(super) struct FilesReader {
    options: Arc<SourceOptions>,
    tables: BTreeMap<TableId, Arc<TableSchema>>,
    /// The file that is being read.
    entry: Option<FileEntry>,
    /// Dropping it ends the thread at its next send.
    pieces: Option<mpsc::Receiver<Result<Piece>>>,
    events: VecDeque<SourceEvent>,
}

impl FilesReader {
    pub(super) fn new(options: Arc<SourceOptions>, tables: BTreeMap<TableId, Arc<TableSchema>>) -> Self {
        Self { options, tables, entry: None, pieces: None, events: VecDeque::new() }
    }

    fn queue(&mut self, entry: &FileEntry, rows: DecodedRows, place: Place) -> Result<()> {
        if let Some(batch) = rows.batch {
            self.events.push_back(SourceEvent::Batch(batch));
        }
        if !rows.failures.is_empty() {
            let letters = rows.failures.into_iter().map(|f| letter(entry, f)).collect::<Result<_>>()?;
            self.events.push_back(SourceEvent::Undecodable(letters));
        }
        let watermark = Watermark { position: position(place)?, event_time_ms: None };
        self.events.push_back(SourceEvent::Watermark(watermark));
        Ok(())
    }
}

fn position(place: Place) -> Result<Position> {
    let detail = PositionDetail { offset: place.offset, line: place.line };
    let detail = serde_json::to_string(&detail)
        .map_err(|e| Error::internal("cannot encode a place in a file").with_source(e))?;
    Ok(Position::new([0, place.offset, 0], detail))
}

fn place(position: &Position) -> Result<Place> {
    let detail: PositionDetail = serde_json::from_str(&position.detail).map_err(|e| {
        Error::new(Code::CheckpointDamaged, format!("cannot decode the place in a file `{position}`"))
            .with_source(e)
    })?;
    Ok(Place { offset: detail.offset, line: detail.line })
}

/// The letter of a record that does not decode.
pub(super) fn letter(entry: &FileEntry, failure: DecodeFailure) -> Result<DeadLetter> {
    let place = failure.place;
    // Unlike the position of a split it must be told apart from places in other files.
    let detail = json!({ "file": entry.path, "offset": place.offset, "line": place.line });
    let payload = match String::from_utf8(failure.raw) {
        Ok(text) => Value::String(text),
        Err(raw) => json!({ "base64": STANDARD.encode(raw.as_bytes()) }),
    };
    Ok(DeadLetter {
        table: entry.table.clone(),
        kind: RowKind::Insert,
        key: Value::Null,
        payload,
        code: Code::SourceUndecodable,
        reason: failure.reason,
        position: Some(Position::new([0, place.offset, 0], detail.to_string())),
    })
}

/// Reads a file to its end or until nobody wants the rest.
fn read(scan: Result<FileScan>, pieces: &mpsc::Sender<Result<Piece>>) {
    let mut scan = match scan {
        Ok(scan) => scan,
        // A receiver that is gone wants no error either; the same holds below.
        Err(error) => return drop(pieces.blocking_send(Err(error))),
    };
    loop {
        let piece = match scan.next() {
            Ok(Some((rows, place))) => Ok(Piece::Rows(rows, place)),
            Ok(None) => Ok(Piece::End),
            Err(error) => Err(error),
        };
        let more = matches!(piece, Ok(Piece::Rows(..)));
        if pieces.blocking_send(piece).is_err() || !more {
            return;
        }
    }
}

#[async_trait]
impl SourceReader for FilesReader {
    async fn start(&mut self, split: Split) -> Result<()> {
        let entry: FileEntry = serde_json::from_value(split.payload).map_err(|e| {
            Error::new(Code::CheckpointDamaged, format!("cannot decode the split `{}`", split.id))
                .with_source(e)
        })?;
        let schema = self.tables.get(&entry.table).cloned().ok_or_else(|| {
            Error::new(Code::StateIncompatible, format!("the state has no table {}", entry.table))
        })?;
        let place = split.position.as_ref().map(place).transpose()?;
        let (sender, receiver) = mpsc::channel(QUEUE);
        let options = self.options.clone();
        self.entry = Some(entry.clone());
        self.pieces = Some(receiver);
        self.events.clear();
        // Not joined: it ends with the file, or at its next send once the receiver is dropped, and holds nothing else.
        thread::Builder::new()
            .name("files-reader".into())
            .spawn(move || {
                read(FileScan::open(&options, &entry, schema, place, BatchLimits::default()), &sender)
            })
            .map_err(|e| Error::internal("cannot start a thread for reading files").with_source(e))?;
        Ok(())
    }

    async fn next(&mut self) -> Result<SourceEvent> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            let (Some(pieces), Some(entry)) = (&mut self.pieces, self.entry.clone()) else {
                return Err(Error::internal("a files reader was asked for rows without a split"));
            };
            match pieces.recv().await {
                Some(Ok(Piece::Rows(rows, place))) => self.queue(&entry, rows, place)?,
                Some(Ok(Piece::End)) => {
                    self.pieces = None;
                    return Ok(SourceEvent::SplitEnd);
                }
                Some(Err(error)) => return Err(error),
                None => return Err(Error::internal("the thread that reads a file has died")),
            }
        }
    }
}
