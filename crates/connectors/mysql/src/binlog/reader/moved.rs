//! Owns [`Moved`]: the cuts that were made in the log of one server, found again in the log of another by the transactions
//! that come before them.

use std::collections::VecDeque;

use canalis_types::{Position, Result};

use crate::{
    Flavor,
    binlog::{
        BinlogPosition,
        gtid::{Executed, Gtid},
    },
};

/// Cuts that are ahead, first one first. While there are any, no other watermark may be sent: its position would be one
/// of the new server, which comes after all cuts, although the rows behind it may come before some.
#[derive(Debug)]
pub struct Moved {
    cuts: VecDeque<(Position, Executed)>,
}

impl Moved {
    /// Takes cuts in their order; `Err` tells the first one that cannot be found by transactions.
    ///
    /// # Errors
    /// When the text of a cut is none of ours.
    pub fn new(
        cuts: impl IntoIterator<Item = Position>,
        flavor: Flavor,
    ) -> Result<std::result::Result<Self, Position>> {
        let mut found = VecDeque::new();
        for cut in cuts {
            let parsed = BinlogPosition::parse(&cut)?;
            match parsed.gtid_set {
                Some(set) if parsed.events == 0 => found.push_back((cut, Executed::parse(flavor, &set)?)),
                _ => return Ok(Err(cut)),
            }
        }
        Ok(Ok(Self { cuts: found }))
    }

    /// Whether every cut was met.
    pub fn is_done(&self) -> bool {
        self.cuts.is_empty()
    }

    /// The next cut, if a transaction with rows stands before it in the new log although it stood behind it in the old.
    pub fn overtaken(&self, gtid: Option<&Gtid>) -> Option<&Position> {
        let (cut, before) = self.cuts.front()?;
        let inside = gtid.is_some_and(|gtid| before.reaches(gtid));
        (!inside).then_some(cut)
    }

    /// The next cut, if everything before it is executed; it is then taken off.
    pub fn met(&mut self, executed: &Executed) -> Option<Position> {
        let (_, before) = self.cuts.front()?;
        if !executed.contains(before) {
            return None;
        }
        self.cuts.pop_front().map(|(cut, _)| cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binlog::gtid::DomainGtid;

    fn cut(offset: u64, set: Option<&str>) -> Position {
        let position = BinlogPosition::new("b.000001", offset).with_gtid_set(set.map(str::to_owned));
        position.to_position().unwrap()
    }

    fn gtid(sequence: u64) -> Gtid {
        Gtid::MariaDb(DomainGtid { domain: 0, server: 9, sequence })
    }

    #[test]
    fn rs_03_cuts_are_met_by_their_transactions() {
        let cuts = [cut(100, Some("0-1-5")), cut(200, Some("0-1-7"))];
        let mut moved = Moved::new(cuts.clone(), Flavor::MariaDb).unwrap().unwrap();
        let executed = |text: &str| Executed::parse(Flavor::MariaDb, text).unwrap();
        assert_eq!(moved.met(&executed("0-1-4")), None);
        assert_eq!(moved.overtaken(Some(&gtid(5))), None);
        assert_eq!(moved.overtaken(Some(&gtid(6))), Some(&cuts[0]));
        assert_eq!(moved.overtaken(None), Some(&cuts[0]));
        assert_eq!(moved.met(&executed("0-1-5")), Some(cuts[0].clone()));
        assert_eq!(moved.met(&executed("0-1-5")), None);
        assert_eq!(moved.met(&executed("0-2-8")), Some(cuts[1].clone()));
        assert!(moved.is_done());
    }

    #[test]
    fn rs_03_cuts_without_transactions_cannot_be_found() {
        let inside = BinlogPosition { events: 3, ..BinlogPosition::new("b.000001", 9) }
            .with_gtid_set(Some("0-1-5".into()))
            .to_position()
            .unwrap();
        for lost in [cut(100, None), inside] {
            let answer = Moved::new([cut(50, Some("0-1-1")), lost.clone()], Flavor::MariaDb).unwrap();
            assert_eq!(answer.unwrap_err(), lost);
        }
    }
}
