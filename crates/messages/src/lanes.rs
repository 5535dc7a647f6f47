//! Owns [`Lanes`]: where in each partition or queue of a broker a source is, as one position.

use std::collections::BTreeMap;

use canalis_types::{Code, Error, Position, Result};
use serde::{Deserialize, Serialize};

/// A place in a lane (a partition, a queue). Places of one lane compare; what the numbers mean is the broker's: for Kafka the
/// offset of the next message, for Pulsar ledger, entry and index in the batch of the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Place(pub [u64; 3]);

impl Place {
    /// A place that is one number.
    pub fn at(offset: u64) -> Self {
        Self([offset, 0, 0])
    }
}

/// One number where that says it all.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    One(u64),
    Three([u64; 3]),
}

impl From<Written> for Place {
    fn from(written: Written) -> Self {
        match written {
            Written::One(offset) => Self::at(offset),
            Written::Three(place) => Self(place),
        }
    }
}

impl From<Place> for Written {
    fn from(place: Place) -> Self {
        match place.0 {
            [offset, 0, 0] => Self::One(offset),
            place => Self::Three(place),
        }
    }
}

/// Places of all lanes, and how many messages were taken to get there.
///
/// The count orders the positions of one run: messages of many lanes have no order of their own. After a restart it goes on from
/// the restored position, and where a sink has committed beyond that, the source passes the very same places again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lanes {
    /// Messages taken since the job's beginning.
    pub count: u64,
    /// Places by lane.
    pub lanes: BTreeMap<String, Place>,
}

impl Lanes {
    /// The position to go on from.
    pub fn position(&self) -> Position {
        let detail = serde_json::to_string(self).unwrap_or_default();
        Position::new([self.count, 0, 0], detail)
    }

    /// The places that a position stands for.
    ///
    /// # Errors
    /// `CNL-4002` when it is a position of something else.
    pub fn parse(position: &Position) -> Result<Self> {
        serde_json::from_str(&position.detail).map_err(|error| {
            Error::new(
                Code::StateIncompatible,
                format!("`{position}` is not a position in lanes of a broker"),
            )
            .with_source(error)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_survive_and_are_ordered_by_count() {
        let lanes = |count, offset| Lanes {
            count,
            lanes: BTreeMap::from([
                ("t-0".to_owned(), Place::at(offset)),
                ("p".to_owned(), Place([7, 2, 1])),
            ]),
        };
        let position = lanes(5, 9).position();
        assert_eq!(&*position.detail, r#"{"count":5,"lanes":{"p":[7,2,1],"t-0":9}}"#);
        assert_eq!(Lanes::parse(&position).unwrap(), lanes(5, 9));
        assert!(position < lanes(6, 9).position());
        assert_eq!(
            Lanes::parse(&Position::new([0; 3], "mysql-bin.1:4")).unwrap_err().code(),
            Code::StateIncompatible
        );
    }
}
