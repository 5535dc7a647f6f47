//! Owns MySQL's GTID sets: intervals of transaction numbers by source, where a source is a UUID and a tag.

use std::{collections::BTreeMap, fmt};

use crate::binlog::cursor::{Cursor, DecodeError, Decoded};

/// Who numbered a transaction: a server, and the tag that the session chose (empty for none).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    uuid: [u8; 16],
    tag: String,
}

impl Source {
    /// A source from its parts; tags are kept in lower case as the server does.
    pub fn new(uuid: [u8; 16], tag: &str) -> Self {
        Self { uuid, tag: tag.to_ascii_lowercase() }
    }

    /// A source from bytes of the log; `None` when the tag, if there is one, is none that a server takes. Positions keep
    /// sources as text, which such a tag would break.
    pub fn checked(uuid: [u8; 16], tag: &str) -> Option<Self> {
        (tag.is_empty() || is_tag(tag)).then(|| Self::new(uuid, tag))
    }
}

/// Whether a server hands out this transaction number.
pub fn is_number(number: u64) -> bool {
    (1..NUMBER_END).contains(&number)
}

fn write_uuid(f: &mut fmt::Formatter<'_>, uuid: &[u8; 16]) -> fmt::Result {
    for (index, byte) in uuid.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            f.write_str("-")?;
        }
        write!(f, "{byte:02x}")?;
    }
    Ok(())
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_uuid(f, &self.uuid)?;
        if !self.tag.is_empty() {
            write!(f, ":{}", self.tag)?;
        }
        Ok(())
    }
}

/// Numbers `start..end`, end excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Interval {
    start: u64,
    end: u64,
}

/// A set of transactions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GtidSet {
    // INVARIANT: intervals are sorted, not empty, and neither overlap nor touch; no source is without one.
    sources: BTreeMap<Source, Vec<Interval>>,
}

/// The greatest transaction number that the server hands out, plus one.
const NUMBER_END: u64 = i64::MAX.unsigned_abs();

impl GtidSet {
    /// Parses `uuid:1-5:7,uuid:tag:1-3`; the empty text is the empty set.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut set = Self::default();
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let mut parts = item.split(':').map(str::trim);
            let uuid = parts.next().and_then(parse_uuid).ok_or_else(|| format!("{item:?} has no uuid"))?;
            let mut source = Source::new(uuid, "");
            let mut any = false;
            for part in parts {
                if part.starts_with(|c: char| c.is_ascii_digit()) {
                    let interval = parse_interval(part).ok_or_else(|| format!("{part:?} is no interval"))?;
                    set.add_interval(source.clone(), interval);
                    any = true;
                } else if is_tag(part) {
                    source = Source::new(uuid, part);
                    any = false;
                } else {
                    return Err(format!("{part:?} is neither a tag nor an interval"));
                }
            }
            if !any {
                return Err(format!("{item:?} has no interval"));
            }
        }
        Ok(set)
    }

    /// Adds one transaction.
    pub fn add(&mut self, source: Source, number: u64) {
        self.add_interval(source, Interval { start: number, end: number.saturating_add(1) });
    }

    fn add_interval(&mut self, source: Source, added: Interval) {
        if added.start >= added.end {
            return;
        }
        let intervals = self.sources.entry(source).or_default();
        // By far most often the next number of the last interval.
        if let Some(last) = intervals.last_mut()
            && last.end == added.start
        {
            last.end = added.end;
            return;
        }
        let first = intervals.partition_point(|i| i.end < added.start);
        let after = intervals.partition_point(|i| i.start <= added.end);
        let mut merged = added;
        for swallowed in &intervals[first..after] {
            merged.start = merged.start.min(swallowed.start);
            merged.end = merged.end.max(swallowed.end);
        }
        intervals.splice(first..after, [merged]);
    }

    /// Adds every transaction of another set.
    pub fn union(&mut self, other: &Self) {
        for (source, intervals) in &other.sources {
            for interval in intervals {
                self.add_interval(source.clone(), *interval);
            }
        }
    }

    /// Whether the set holds one transaction.
    pub fn contains(&self, source: &Source, number: u64) -> bool {
        self.sources
            .get(source)
            .is_some_and(|intervals| intervals.iter().any(|i| i.start <= number && number < i.end))
    }

    /// Whether the set holds every transaction of another.
    pub fn contains_all(&self, other: &Self) -> bool {
        other.sources.iter().all(|(source, theirs)| {
            let ours = self.sources.get(source).map_or(&[][..], Vec::as_slice);
            theirs.iter().all(|t| ours.iter().any(|o| o.start <= t.start && t.end <= o.end))
        })
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Reads the form of [`GtidSet::encode`], which PREVIOUS_GTIDS carries too.
    ///
    /// # Errors
    /// When the bytes break the format.
    pub fn decode(bytes: &[u8]) -> Decoded<Self> {
        let bad = || DecodeError::malformed("gtid set is damaged");
        let mut cursor = Cursor::new(bytes);
        let header = cursor.u64()?;
        let tagged = match header >> 56 {
            0 => false,
            1 => true,
            _ => return Err(bad()),
        };
        let count = if tagged { header >> 8 & 0xffff_ffff_ffff } else { header };
        let mut set = Self::default();
        for _ in 0..count {
            let uuid = cursor.array::<16>()?;
            let tag_len = if tagged { usize::from(cursor.u8()? >> 1) } else { 0 };
            let tag = std::str::from_utf8(cursor.take(tag_len)?).map_err(|_| bad())?;
            let source = Source::checked(uuid, tag).ok_or_else(bad)?;
            for _ in 0..cursor.u64()? {
                let interval = Interval { start: cursor.u64()?, end: cursor.u64()? };
                if interval.start == 0 || interval.start >= interval.end || interval.end > NUMBER_END {
                    return Err(bad());
                }
                set.add_interval(source.clone(), interval);
            }
        }
        Ok(set)
    }

    /// The form that COM_BINLOG_DUMP_GTID carries: a count, then each source with its intervals. With a tag
    /// anywhere, the form of MySQL 8.3 with a tag in every entry.
    pub fn encode(&self) -> Vec<u8> {
        let tagged = self.sources.keys().any(|source| !source.tag.is_empty());
        let count = u64::try_from(self.sources.len()).expect("a length fits 64 bits");
        let header = if tagged { (1 << 56) | (count << 8) | 1 } else { count };
        let mut out = header.to_le_bytes().to_vec();
        for (source, intervals) in &self.sources {
            out.extend_from_slice(&source.uuid);
            if tagged {
                let len = u8::try_from(source.tag.len()).expect("tags have at most 32 characters");
                out.push(len << 1);
                out.extend_from_slice(source.tag.as_bytes());
            }
            out.extend_from_slice(&u64::try_from(intervals.len()).expect("fits 64 bits").to_le_bytes());
            for interval in intervals {
                out.extend_from_slice(&interval.start.to_le_bytes());
                out.extend_from_slice(&interval.end.to_le_bytes());
            }
        }
        out
    }
}

impl fmt::Display for GtidSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before: Option<&[u8; 16]> = None;
        for (source, intervals) in &self.sources {
            if before == Some(&source.uuid) {
                write!(f, ":{}", source.tag)?;
            } else {
                if before.is_some() {
                    f.write_str(",")?;
                }
                source.fmt(f)?;
            }
            before = Some(&source.uuid);
            for interval in intervals {
                write!(f, ":{}", interval.start)?;
                if interval.end - interval.start > 1 {
                    write!(f, "-{}", interval.end - 1)?;
                }
            }
        }
        Ok(())
    }
}

fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let digits: Vec<u8> = text.bytes().filter(|b| *b != b'-').collect();
    if digits.len() != 32 || text.len() > 36 {
        return None;
    }
    let mut uuid = [0; 16];
    for (byte, pair) in uuid.iter_mut().zip(digits.chunks_exact(2)) {
        let high = char::from(pair[0]).to_digit(16)?;
        let low = char::from(pair[1]).to_digit(16)?;
        *byte = u8::try_from(high * 16 + low).ok()?;
    }
    Some(uuid)
}

fn parse_interval(text: &str) -> Option<Interval> {
    let (start, last) = match text.split_once('-') {
        Some((start, last)) => (start.trim().parse::<u64>().ok()?, last.trim().parse::<u64>().ok()?),
        None => {
            let number = text.parse::<u64>().ok()?;
            (number, number)
        }
    };
    (start >= 1 && start <= last && last < NUMBER_END).then(|| Interval { start, end: last + 1 })
}

/// Tags are up to 32 of `[a-z0-9_]`, not beginning with a digit; capitals are folded.
fn is_tag(text: &str) -> bool {
    (1..=32).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !text.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
    const B: &str = "4e11fa47-71ca-11e1-9e33-c80aa9429562";

    #[test]
    fn sets_read_and_print_as_the_server_does() {
        for (text, printed) in [
            (String::new(), String::new()),
            (format!("{A}:1-5"), format!("{A}:1-5")),
            (format!("{A}:7:1-3:4,\n{B}:1"), format!("{A}:1-4:7,{B}:1")),
            (format!("{}:1-3:blue:1-2:9", A.to_uppercase()), format!("{A}:1-3:blue:1-2:9")),
            (format!("{A}:Blue:5,{A}:1"), format!("{A}:1:blue:5")),
            (format!("{A}:b:1,{A}:a:2-3"), format!("{A}:a:2-3:b:1")),
        ] {
            assert_eq!(GtidSet::parse(&text).unwrap().to_string(), printed, "{text}");
        }
        for text in
            ["x:1", A, &format!("{A}:"), &format!("{A}:0-3"), &format!("{A}:5-3"), &format!("{A}:tag")]
        {
            assert!(GtidSet::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn encoding_switches_with_the_first_tag() {
        let plain = GtidSet::parse(&format!("{A}:1-5")).unwrap().encode();
        assert_eq!(plain.len(), 8 + 16 + 8 + 16);
        assert_eq!(plain[..8], 1u64.to_le_bytes());
        assert_eq!(plain[40..], 6u64.to_le_bytes());
        let tagged = GtidSet::parse(&format!("{A}:1:blue:7")).unwrap().encode();
        assert_eq!(tagged[..8], [1, 2, 0, 0, 0, 0, 0, 1]);
        assert_eq!(tagged.len(), 8 + 2 * (16 + 1 + 8 + 16) + 4);
    }

    fn set_of(numbers: &BTreeSet<(bool, u64)>) -> GtidSet {
        let mut set = GtidSet::default();
        for (other, number) in numbers {
            set.add(Source::new(parse_uuid(if *other { B } else { A }).unwrap(), "t"), *number);
        }
        set
    }

    fn numbers() -> impl Strategy<Value = BTreeSet<(bool, u64)>> {
        proptest::collection::btree_set((any::<bool>(), 1u64..40), 0..40)
    }

    proptest! {
        #[test]
        fn sets_behave_as_sets(a in numbers(), b in numbers()) {
            let (sa, sb) = (set_of(&a), set_of(&b));
            let mut both = sa.clone();
            both.union(&sb);
            prop_assert_eq!(&both, &set_of(&a.union(&b).copied().collect()));
            prop_assert_eq!(sa.contains_all(&sb), a.is_superset(&b));
            prop_assert!(both.contains_all(&sa) && both.contains_all(&sb));
            prop_assert_eq!(&GtidSet::parse(&sa.to_string()).unwrap(), &sa);
            prop_assert_eq!(&GtidSet::decode(&sa.encode()).unwrap(), &sa);
            for number in 1u64..41 {
                let source = Source::new(parse_uuid(A).unwrap(), "t");
                prop_assert_eq!(sa.contains(&source, number), a.contains(&(false, number)));
            }
        }

        #[test]
        fn no_text_panics(text in ".{0,80}") {
            let _ = GtidSet::decode(text.as_bytes());
            let _ = GtidSet::parse(&text);
            let _ = super::super::GtidList::parse(&text);
        }
    }
}
