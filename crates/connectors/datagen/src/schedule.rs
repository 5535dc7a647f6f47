//! Owns which change does what to which order, as a function of its number.
//!
//! Changes come in blocks of 1,000 with fixed numbers of inserts, updates and deletes in shuffled order. Updates of a block
//! go to orders that the [`LAG`]−1 blocks before inserted; its deletes take orders that were inserted exactly
//! [`LAG`] blocks before. The first block holds inserts only, and blocks up to [`LAG`] insert instead of deleting. So
//! whatever is needed to go on from a change depends on the last [`LAG`] blocks only.

use std::collections::BTreeMap;

/// Changes of a block.
pub(crate) const BLOCK: u64 = 1000;
/// Blocks between the insert of an order and the end of its changes.
pub(crate) const LAG: u64 = 16;

/// Seed and shares of the kinds: everything that the stream depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mix {
    pub(crate) seed: u64,
    pub(crate) updates: u64,
    pub(crate) deletes: u64,
}

/// What a change does; orders are numbered from 0 as they are inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Insert(u64),
    Update(u64),
    Delete(u64),
}

impl Mix {
    /// Shares in thousandths. `None` when inserts would be less than a tenth of the changes or fewer than the deletes.
    pub fn new(seed: u64, updates: u64, deletes: u64) -> Option<Self> {
        let inserts = BLOCK.checked_sub(updates)?.checked_sub(deletes)?;
        (inserts >= BLOCK / 10 && inserts >= deletes).then_some(Self { seed, updates, deletes })
    }

    /// Number of orders that block `block` inserts.
    fn inserted(self, block: u64) -> u64 {
        match block {
            0 => BLOCK,
            1..LAG => BLOCK - self.updates,
            _ => BLOCK - self.updates - self.deletes,
        }
    }

    /// The first order that block `block` inserts.
    pub(crate) fn first(self, block: u64) -> u64 {
        let early = block.saturating_sub(1).min(LAG - 1);
        let late = block.saturating_sub(LAG);
        block.min(1) * BLOCK + early * self.inserted(1) + late * self.inserted(LAG)
    }

    /// The changes of a block in order.
    pub(crate) fn block(self, block: u64) -> Vec<Action> {
        let (first, inserted) = (self.first(block), self.inserted(block));
        let mut actions: Vec<Action> = (first..first + inserted).map(Action::Insert).collect();
        if block > 0 {
            let from = self.first((block + 1).saturating_sub(LAG));
            let mut random = Random::new(self.seed, block, Purpose::Target);
            actions.extend((0..self.updates).map(|_| Action::Update(from + random.below(first - from))));
        }
        if let Some(source) = block.checked_sub(LAG) {
            let (first, inserted) = (self.first(source), self.inserted(source));
            let mut candidates: Vec<u64> = (first..first + inserted).collect();
            let mut random = Random::new(self.seed, block, Purpose::Victim);
            for _ in 0..self.deletes {
                let at = usize::try_from(random.below(candidates.len() as u64)).unwrap_or_default();
                actions.push(Action::Delete(candidates.swap_remove(at)));
            }
        }
        self.shuffle(block, &mut actions);
        actions
    }

    /// Fisher–Yates. Inserts keep their order among themselves, so that ids grow.
    fn shuffle(self, block: u64, actions: &mut [Action]) {
        let mut random = Random::new(self.seed, block, Purpose::Shuffle);
        for last in (1..actions.len()).rev() {
            let at = usize::try_from(random.below(last as u64 + 1)).unwrap_or_default();
            actions.swap(at, last);
        }
        let mut next = self.first(block);
        for action in actions {
            if let Action::Insert(order) = action {
                *order = next;
                next += 1;
            }
        }
    }
}

/// The orders that exist after `changes` changes, each with the number of its updates, in order. Holds all of them in memory;
/// meant for tests that compare a copy with what it must be.
pub fn live_orders(mix: Mix, changes: u64) -> BTreeMap<u64, u32> {
    let mut live = BTreeMap::new();
    for block in 0..changes.div_ceil(BLOCK) {
        let rest = usize::try_from(changes - block * BLOCK).unwrap_or(usize::MAX);
        for action in mix.block(block).into_iter().take(rest) {
            match action {
                Action::Insert(order) => {
                    live.insert(order, 0);
                }
                Action::Update(order) => *live.entry(order).or_default() += 1,
                Action::Delete(order) => {
                    live.remove(&order);
                }
            }
        }
    }
    live
}

/// What random numbers are for, so that uses do not depend on each other.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    Target,
    Victim,
    Shuffle,
}

/// SplitMix64: small, and stable by definition.
struct Random(u64);

impl Random {
    fn new(seed: u64, block: u64, purpose: Purpose) -> Self {
        let purpose: u64 = match purpose {
            Purpose::Target => 1,
            Purpose::Victim => 2,
            Purpose::Shuffle => 3,
        };
        Self(mix64(seed ^ mix64(block.wrapping_mul(4).wrapping_add(purpose))))
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix64(self.0) % limit
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of SplitMix64.
pub(crate) fn mix64(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_change_fits_what_is_there() {
        for (updates, deletes) in [(300, 100), (0, 0), (900, 0), (0, 500), (450, 275), (800, 100)] {
            let mix = Mix::new(7, updates, deletes).unwrap();
            let (mut live, mut gone, mut next) = (BTreeSet::new(), BTreeSet::new(), 0);
            for block in 0..100 {
                assert_eq!(mix.first(block), next, "{block}");
                let actions = mix.block(block);
                assert_eq!(actions.len() as u64, BLOCK);
                for action in actions {
                    match action {
                        Action::Insert(order) => {
                            assert_eq!(order, next);
                            next += 1;
                            live.insert(order);
                        }
                        Action::Update(order) => assert!(live.contains(&order)),
                        Action::Delete(order) => {
                            assert!(live.remove(&order) && gone.insert(order));
                        }
                    }
                }
            }
            assert_eq!(live_orders(mix, 100_000).into_keys().collect::<BTreeSet<_>>(), live);
            assert_eq!(gone.len() as u64, deletes * (100 - LAG));
        }
    }

    #[test]
    fn seeds_give_different_streams() {
        let block = |seed| Mix::new(seed, 300, 100).unwrap().block(20);
        assert_eq!(block(1), block(1));
        assert_ne!(block(1), block(2));
    }
}
