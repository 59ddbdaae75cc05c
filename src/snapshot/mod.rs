//! Snapshots: the state of a limiter, or of a table of keys, as bytes for the next process.
//!
//! Both have one format. All numbers have 64 bits, lowest byte first.
//!
//! ```text
//! ┌────────────────────────────────────────────────────────────────────────┐
//! │ magic │ version │ kind │ tick │ time of day │ seed (2) │ known hash    │
//! │ name of the algorithm                                                  │
//! ├────────────────────────────────────────────────────────────────────────┤
//! │ 2 │ plans │ of each: parameters                                        │  any number
//! │ 3 │ plans │ of each: parameters │ name                                 │  of these
//! │ 1 │ keys │ protected │ of each: hash (60) plan (3) banned (1) │ word   │
//! │ 4 │ keys │ protected │ parameters │ of each: the same                  │
//! ├────────────────────────────────────────────────────────────────────────┤
//! │ 0 │ horizon │ checksum of all that is above                            │
//! └────────────────────────────────────────────────────────────────────────┘
//!   name:       length │ 64 bytes, unused ones are 0
//!   parameters: count │ 15 numbers, unused ones are 0
//! ```
//!
//! - The **kind** is 0 for a limiter, 1 for a table, and 2 for a table whose hasher has a seed.
//! - **A limiter** has one plan and one key, whose hash is 0. Its snapshot has no seed, known hash
//!   or horizon (they are 0), so it is always [`SNAPSHOT_BYTES`] long.
//! - The **tick** is that of the clock. The **time of day** is the same moment in nanoseconds since
//!   1970, or 0 if it is unknown. From it the next process computes the time that has passed.
//! - The **known hash** is that of a fixed key. It detects a hasher that gives other hashes.
//! - A key's word belongs to a plan of the last block of **plans** before it. If a quota changes
//!   while the snapshot is being written, all plans are written again. Block 3 has plans with
//!   names.
//! - A block has up to 64 **keys**. A key is identified by the 60 bits of its hash that are used,
//!   which do not depend on the size of a table. **Protected** has a bit for each key, lowest
//!   first.
//! - The keys of block 4 have an algorithm of their own, with these **parameters**. In place of a
//!   plan they have the number 7.
//! - The **horizon** is read after all keys. A key that left the table before then, because it was
//!   idle, became idle at this tick or earlier.
//!
//! Every count precedes what it counts, and is small. So a damaged count can't make a reader
//! allocate more than a kilobyte. The checksum is CRC-64/XZ.

pub(crate) mod crc;
pub(crate) mod elapsed;
pub(crate) mod error;
pub(crate) mod parameters;
pub(crate) mod read;
pub(crate) mod verbs;
pub(crate) mod write;

use crate::algorithm::MAX_SETTINGS;
use crate::clock::Tick;
use crate::store::SNAPSHOT_BYTES;

/// The last four bytes detect a transfer that treats the file as text, because it changes them.
const MAGIC: [u8; 8] = *b"\x89TGS\r\n\x1a\n";
const VERSION: u64 = 1;

/// The kinds of snapshots.
pub(crate) const LIMITER: u64 = 0;
pub(crate) const TABLE: u64 = 1;
pub(crate) const SEEDED_TABLE: u64 = 2;

/// The kinds of blocks. A limiter has only the first three.
const END: u64 = 0;
const KEYS: u64 = 1;
const PLANS: u64 = 2;
const NAMED_PLANS: u64 = 3;
const OVERRIDDEN_KEYS: u64 = 4;

/// The most bytes of a name of an algorithm or a plan.
pub(crate) const MAX_NAME: usize = 64;
/// The most plans.
pub(crate) const MAX_PLANS: usize = 8;
/// The most keys of a block.
pub(crate) const MAX_KEYS: usize = 64;

/// The plan of a key that has an override. Tables with overrides have fewer plans.
pub(crate) const OVERRIDE_PLAN: u64 = MAX_PLANS as u64 - 1;

const BANNED: u64 = 1;
const PLAN_SHIFT: u32 = 1;
const HASH_SHIFT: u32 = 4;
const KEY_BYTES: usize = 16;

/// A limiter's snapshot has 17 numbers of the beginning, 18 of its plan, 5 of its word, and 3 of
/// the end.
const _: () = assert!(MAX_SETTINGS == 15 && (17 + 18 + 5 + 3) * 8 == SNAPSHOT_BYTES);

/// The beginning of a snapshot. By default it is of a limiter.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Head {
    pub(crate) kind: u64,
    pub(crate) at: Tick,
    pub(crate) time_of_day: u64,
    pub(crate) seed: [u64; 2],
    pub(crate) known_hash: u64,
}

/// A key, as it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    pub(crate) hash: u64,
    pub(crate) plan: u8,
    pub(crate) is_banned: bool,
    pub(crate) is_protected: bool,
    pub(crate) word: u64,
}

impl Record {
    /// Returns the only key of a limiter with this word.
    const fn of_word(word: u64) -> Self {
        Self::of_numbers([0, word], false)
    }

    const fn to_numbers(self) -> [u64; 2] {
        let banned = self.is_banned as u64 * BANNED;
        let label = self.hash << HASH_SHIFT | (self.plan as u64) << PLAN_SHIFT | banned;
        [label, self.word]
    }

    const fn of_numbers([label, word]: [u64; 2], is_protected: bool) -> Self {
        Self {
            hash: label >> HASH_SHIFT,
            plan: (label >> PLAN_SHIFT) as u8 % MAX_PLANS as u8,
            is_banned: label & BANNED != 0,
            is_protected,
            word,
        }
    }
}
