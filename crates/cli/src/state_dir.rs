//! Owns the state directory of a job: where it is, the job's id, and the mailbox for savepoint requests.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use rand::Rng;

/// The state directory of a pipeline file: `.canalis/<file name without extension>` beside it.
pub fn default_for(file: &Path) -> PathBuf {
    let parent = file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    parent.join(".canalis").join(file.file_stem().unwrap_or(file.as_os_str()))
}

/// The id of the job that lives in a directory, made at its first start. It is the key of the job's progress
/// records in the sink, so it must not change while the state lives.
pub fn job_id(directory: &Path, known: Option<String>) -> Result<String> {
    let path = directory.join("job-id");
    fs::create_dir_all(directory).with_context(|| format!("creating {}", directory.display()))?;
    let id = match (known, fs::read_to_string(&path)) {
        (Some(id), Ok(text)) if text.trim() == id => return Ok(id),
        (Some(id), _) => id,
        (None, Ok(text)) if text.trim().len() == 32 => return Ok(text.trim().to_owned()),
        (None, Ok(_)) => anyhow::bail!("{} does not hold a job id of 32 hex digits", path.display()),
        (None, Err(error)) if error.kind() == io::ErrorKind::NotFound => {
            format!("{:032x}", rand::rng().random::<u128>())
        }
        (None, Err(error)) => return Err(error).with_context(|| format!("reading {}", path.display())),
    };
    let aside = path.with_extension("part");
    fs::write(&aside, &id)
        .and_then(|()| fs::File::open(&aside)?.sync_all())
        .and_then(|()| fs::rename(&aside, &path))
        .with_context(|| format!("writing {}", path.display()))?;
    Ok(id)
}

/// Where a savepoint is asked for.
pub fn savepoint_request(directory: &Path) -> PathBuf {
    directory.join("savepoint.request")
}

/// Where the answer to request `token` is written.
pub fn savepoint_answer(directory: &Path, token: &str) -> PathBuf {
    directory.join(format!("savepoint.{token}.answer"))
}
