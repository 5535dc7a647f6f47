//! Owns the records of what a job has committed, as keyed messages in the same transactions as the rows.

use canalis_connector_api::{CommitPoint, SinkRecovery};
use canalis_types::{Code, Error, Position, Result};
use serde::{Deserialize, Serialize};

use super::{Progress, Record};

/// What all keys of a job begin with.
pub(super) fn prefix(job: &str) -> String {
    format!("{job}\u{0}")
}

/// A committed position of a writer or of an append split.
#[derive(Debug, Serialize, Deserialize)]
struct Committed {
    writers: usize,
    epoch: u64,
    position: Position,
}

/// The records of a commit of writer `index` of `writers`.
pub(super) fn records(job: &str, index: usize, writers: usize, point: &CommitPoint) -> Vec<Record> {
    let key = |rest: &str| format!("{}{rest}", prefix(job));
    let committed = |position: &Position| {
        let committed = Committed { writers, epoch: point.epoch, position: position.clone() };
        serde_json::to_string(&committed).ok()
    };
    let mut records = Vec::new();
    if let Some(position) = &point.position {
        records.push((key(&format!("writer:{index}")), committed(position)));
    }
    for split in &point.splits {
        records.push((key(&format!("split:{split}")), Some(String::new())));
    }
    if let Some((split, position)) = &point.split_position {
        records.push((key(&format!("at:{split}")), committed(position)));
    }
    records
}

/// What the records say to a job that runs with so many writers now.
pub(super) fn recovery(job: &str, writers: usize, found: &Progress) -> Result<SinkRecovery> {
    let mut recovery = SinkRecovery { positions: vec![None; writers], ..SinkRecovery::default() };
    for (key, value) in found {
        let damaged = || Error::new(Code::StateIncompatible, format!("record `{key}` of the job is damaged"));
        let Some(name) = key.strip_prefix(&prefix(job)) else { continue };
        if let Some(split) = name.strip_prefix("split:") {
            recovery.done_splits.insert(split.to_owned());
            continue;
        }
        let committed: Committed =
            serde_json::from_str(value).map_err(|error| damaged().with_source(error))?;
        if let Some(split) = name.strip_prefix("at:") {
            recovery.split_positions.insert(split.to_owned(), committed.position);
            continue;
        }
        let index = name.strip_prefix("writer:").and_then(|n| n.parse::<usize>().ok()).ok_or_else(damaged)?;
        let same = committed.writers == writers;
        recovery.other_writers |= index == 0 && !same;
        if (index == 0 || same)
            && let Some(slot) = recovery.positions.get_mut(index)
        {
            *slot = Some(committed.position);
        }
    }
    Ok(recovery)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded_is_recovered() {
        let point = |count: u64| CommitPoint {
            position: Some(Position::new([count, 0, 0], format!("p{count}"))),
            splits: vec![format!("a:{count}")],
            split_position: None,
            epoch: 3,
        };
        let mut found: Progress = Vec::new();
        for (key, value) in records("j", 0, 2, &point(5)).into_iter().chain(records("j", 1, 2, &point(7))) {
            found.push((key, value.unwrap()));
        }
        let same = recovery("j", 2, &found).unwrap();
        let orders: Vec<_> = same.positions.iter().map(|p| p.as_ref().map(|p| p.order[0])).collect();
        assert_eq!(orders, [Some(5), Some(7)]);
        assert_eq!(same.done_splits.iter().collect::<Vec<_>>(), ["a:5", "a:7"]);
        assert!(!same.other_writers);
        let fewer = recovery("j", 1, &found).unwrap();
        assert!(fewer.other_writers);
        assert_eq!(fewer.positions.len(), 1);
        assert!(recovery("other", 2, &found).unwrap().done_splits.is_empty());
    }
}
