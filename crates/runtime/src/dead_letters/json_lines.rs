//! Owns dead letters as JSON lines: one object a line, appended and synced.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use canalis_connector_api::DeadLetter;
use canalis_types::{Code, Error, Result};
use serde::de::IgnoredAny;

use super::Store;

/// Bytes looked through at once for the end of the last line.
const BLOCK: u64 = 64 << 10;

/// A file of JSON lines.
#[derive(Debug)]
pub(super) struct JsonLines {
    path: PathBuf,
    file: Mutex<Option<File>>,
}

impl JsonLines {
    /// The file is opened, and made if it is missing, with the first letter.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, file: Mutex::new(None) }
    }

    fn open(&self) -> io::Result<File> {
        let mut file = OpenOptions::new().read(true).create(true).append(true).open(&self.path)?;
        complete_last_line(&mut file)?;
        // The name of a new file must be as durable as its letters.
        File::open(self.path.parent().unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(file)
    }
}

impl Store for JsonLines {
    fn path(&self) -> &Path {
        &self.path
    }

    fn append(&self, letters: &[DeadLetter]) -> Result<()> {
        let mut lines = Vec::new();
        for letter in letters {
            serde_json::to_writer(&mut lines, letter)
                .map_err(|e| Error::internal("dead letter has no JSON form").with_source(e))?;
            lines.push(b'\n');
        }
        let failed = |e: io::Error| {
            Error::new(Code::LocalIo, format!("writing {}", self.path.display())).with_source(e)
        };
        let mut slot = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // After a failure the file is opened anew, which mends its end.
        let mut file = match slot.take() {
            Some(file) => file,
            None => self.open().map_err(failed)?,
        };
        file.write_all(&lines).and_then(|()| file.sync_data()).map_err(failed)?;
        *slot = Some(file);
        Ok(())
    }
}

/// Cuts off half a line that a crash has left: its letter comes again. A whole object without its line feed is kept.
fn complete_last_line(file: &mut File) -> io::Result<()> {
    let length = file.metadata()?.len();
    let mut tail = Vec::new();
    let mut start = length;
    let whole = loop {
        let end = start;
        if end == 0 {
            break 0;
        }
        start = end.saturating_sub(BLOCK);
        let mut block = Vec::new();
        file.seek(SeekFrom::Start(start))?;
        Read::by_ref(file).take(end - start).read_to_end(&mut block)?;
        block.append(&mut tail);
        if let Some(feed) = block.iter().rposition(|byte| *byte == b'\n') {
            tail = block.split_off(feed + 1);
            break length - tail.len() as u64;
        }
        tail = block;
    };
    if tail.is_empty() {
        return Ok(());
    }
    match serde_json::from_slice::<IgnoredAny>(&tail) {
        Ok(_) => file.write_all(b"\n"),
        Err(_) => file.set_len(whole),
    }
}
