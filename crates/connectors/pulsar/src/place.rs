//! Owns the places of messages in a topic: ledger, entry, and which message of the entry's batch.
//!
//! The third number is the message's index in its batch plus one, so that 1 is the only message of an entry without a batch, 0
//! is the place before the first, and three zeros are the beginning of every topic.

use canalis_messages::Place;
use pulsar::message::proto::MessageIdData;

/// Before everything.
pub(crate) const BEGINNING: Place = Place([0; 3]);

/// The place of a message.
pub(crate) fn of(id: &MessageIdData) -> Place {
    let Ok(entry) = i64::try_from(id.entry_id) else {
        // -1, as an empty topic says.
        return BEGINNING;
    };
    let index = id.batch_index.and_then(|index| u64::try_from(index).ok()).unwrap_or(0);
    Place([id.ledger_id, entry.unsigned_abs(), index + 1])
}

/// The place right before a message.
pub(crate) fn before(place: Place) -> Place {
    let Place([ledger, entry, index]) = place;
    Place([ledger, entry, index.saturating_sub(1)])
}

/// Where a reader begins to get everything behind a place. What stands in the same entry up to the place comes again.
pub(crate) fn start(place: Place) -> MessageIdData {
    if place == BEGINNING {
        return MessageIdData { ledger_id: u64::MAX, entry_id: u64::MAX, ..MessageIdData::default() };
    }
    // With an index the broker begins with the entry, without one behind it.
    let index = i32::try_from(before(place).0[2]).unwrap_or(i32::MAX);
    MessageIdData {
        ledger_id: place.0[0],
        entry_id: place.0[1],
        batch_index: Some(index),
        ..MessageIdData::default()
    }
}

/// The last entry before that of a place, as long as it is in the same ledger.
pub(crate) fn entry_before(place: Place) -> Option<MessageIdData> {
    let Place([ledger_id, entry, index]) = place;
    let entry_id = entry.checked_sub(1).filter(|_| index > 0)?;
    Some(MessageIdData { ledger_id, entry_id, ..MessageIdData::default() })
}

/// Whether two places are in one entry.
pub(crate) fn same_entry(one: Place, other: Place) -> bool {
    one.0[..2] == other.0[..2]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(ledger_id: u64, entry_id: u64, batch_index: Option<i32>) -> MessageIdData {
        MessageIdData { ledger_id, entry_id, batch_index, ..MessageIdData::default() }
    }

    #[test]
    fn places_are_ordered_as_messages_and_behind_the_beginning() {
        let ids = [id(0, 0, None), id(0, 1, Some(0)), id(0, 1, Some(1)), id(0, 2, Some(-1)), id(7, 0, None)];
        let places: Vec<Place> = ids.iter().map(of).collect();
        assert!(places.is_sorted() && places[0] > BEGINNING, "{places:?}");
        assert_eq!(of(&id(u64::MAX, u64::MAX, None)), BEGINNING);
        assert!(before(places[0]) < places[0]);
        assert_eq!(places[2], Place([0, 1, 2]));
    }

    #[test]
    fn a_reader_begins_with_the_entry_of_the_place() {
        assert_eq!(start(Place([4, 5, 3])), id(4, 5, Some(2)));
        assert_eq!(start(Place([4, 5, 0])), id(4, 5, Some(0)));
        assert_eq!(start(BEGINNING), id(u64::MAX, u64::MAX, None));
        assert_eq!(entry_before(Place([4, 5, 3])), Some(id(4, 4, None)));
        assert_eq!(entry_before(Place([4, 0, 3])), None);
    }
}
