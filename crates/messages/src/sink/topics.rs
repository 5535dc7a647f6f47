//! Owns where messages go: the topic of a table, the partition of a key.

use canalis_connector_api::TableSelector;
use canalis_types::TableId;

/// Rows of tables that match go to the topic.
#[derive(Debug, Clone)]
pub struct TopicRule {
    /// Which tables.
    pub tables: TableSelector,
    /// Name of the topic, or pattern.
    pub topic: String,
}

/// The topic of each table: that of the first rule that matches, else the pattern.
///
/// In a pattern `{namespace}`, `{schema}` (or `{database}`) and `{table}` stand for the parts of the table's id, and `{id}` for the
/// whole of it.
#[derive(Debug, Clone)]
pub struct Topics {
    /// Rules.
    pub rules: Vec<TopicRule>,
    /// For all other tables.
    pub pattern: String,
}

impl Topics {
    /// Parses rules, `tables:topic;tables:topic`; a topic may hold colons.
    ///
    /// # Errors
    /// Which part is no rule.
    pub fn parse(rules: &str, pattern: String) -> Result<Self, String> {
        let parts = rules.split(';').map(str::trim).filter(|part| !part.is_empty());
        let rule = |part: &str| {
            let (tables, topic) =
                part.split_once(':').ok_or_else(|| format!("`{part}` is not `tables:topic`"))?;
            let tables = TableSelector::parse(tables.trim()).map_err(|error| error.to_string())?;
            Ok(TopicRule { tables, topic: topic.trim().to_owned() })
        };
        Ok(Self { rules: parts.map(rule).collect::<Result<_, String>>()?, pattern })
    }

    /// The topic for rows of this table.
    pub fn of(&self, table: &TableId) -> String {
        let rule = self.rules.iter().find(|r| r.tables.matches(table));
        let pattern = rule.map_or(&self.pattern, |r| &r.topic);
        let schema = table.schema.as_deref().unwrap_or_default();
        pattern
            .replace("{id}", &table.to_string())
            .replace("{namespace}", table.namespace.as_deref().unwrap_or_default())
            .replace("{schema}", schema)
            .replace("{database}", schema)
            .replace("{table}", &table.table)
    }
}

/// Which partition takes a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partitioner {
    /// That of the hash of the row's key, as Kafka's own clients hash it; rows without a key go by their table.
    ByKey,
    /// All rows of a table to one.
    ByTable,
    /// All to the first.
    AllToZero,
    /// One after another: rows of one key are spread, and their order is lost.
    RoundRobin,
}

impl Partitioner {
    /// The partition, of so many, of a message. `turn` counts messages.
    pub fn partition(self, lane: Option<&[u8]>, table: &[u8], turn: &mut u32, partitions: u32) -> u32 {
        let partitions = partitions.max(1);
        match self {
            Partitioner::AllToZero => 0,
            Partitioner::ByTable => (murmur2(table) & 0x7fff_ffff) % partitions,
            Partitioner::ByKey => (murmur2(lane.unwrap_or(table)) & 0x7fff_ffff) % partitions,
            Partitioner::RoundRobin => {
                *turn = turn.wrapping_add(1);
                *turn % partitions
            }
        }
    }

    /// Whether rows of one key may get to different partitions when the key changes.
    pub fn separates_keys(self) -> bool {
        matches!(self, Partitioner::ByKey | Partitioner::RoundRobin)
    }
}

/// The 32-bit hash (MurmurHash 2, seed 0x9747b28c) by which Kafka's Java clients choose partitions.
fn murmur2(bytes: &[u8]) -> u32 {
    const FACTOR: u32 = 0x5bd1_e995;
    // The hash takes the length as 32 bits.
    let mut hash = 0x9747_b28c_u32 ^ u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let mut words = bytes.chunks_exact(4);
    for word in &mut words {
        let mut part = u32::from_le_bytes([word[0], word[1], word[2], word[3]]).wrapping_mul(FACTOR);
        part ^= part >> 24;
        hash = hash.wrapping_mul(FACTOR) ^ part.wrapping_mul(FACTOR);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        for (at, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * at);
        }
        hash = hash.wrapping_mul(FACTOR);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(FACTOR);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values are those that the tests of Kafka's client library hold (signed there).
    #[test]
    fn keys_hash_as_in_kafkas_clients() {
        for (key, expect) in [
            ("21", -973_932_308_i32),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
        ] {
            assert_eq!(murmur2(key.as_bytes()).cast_signed(), expect, "{key}");
        }
    }

    #[test]
    fn topics_follow_rules_then_the_pattern() {
        let topics = Topics {
            rules: vec![TopicRule {
                tables: TableSelector::parse("shop.order_\\.*").unwrap(),
                topic: "orders".into(),
            }],
            pattern: "cdc.{schema}.{table}".into(),
        };
        assert_eq!(topics.of(&TableId::new("shop", "order_7")), "orders");
        assert_eq!(topics.of(&TableId::new("shop", "items")), "cdc.shop.items");
    }
}
