//! Snapshots of a table: its content, written for the next process.
//!
//! All numbers have 64 bits, lowest byte first.
//!
//! ```text
//! ┌──────────────────────────────────────────────────────────────┐
//! │ magic │ version of the format │ tick │ time of day           │
//! │ whether there is a seed │ seed (2) │ hash of a known key     │
//! │ length of the algorithm's name │ the name                    │
//! ├──────────────────────────────────────────────────────────────┤
//! │ 4 │ plans │ of each: length │ its name                       │  if plans have names
//! ├──────────────────────────────────────────────────────────────┤
//! │ 1 │ plans │ of each: numbers │ those of its parameters       │  any number of
//! │ 2 │ keys  │ of each: hash (60) plan (3) banned (1) │ word    │  these
//! │ 3 │ keys  │ a bit for each: protected │ the same of each     │
//! │ 5 │ hash, plan, banned │ word │ protected │ numbers │ those  │  one key
//! ├──────────────────────────────────────────────────────────────┤
//! │ 0 │ horizon │ keys in all │ checksum of all that is above    │
//! └──────────────────────────────────────────────────────────────┘
//! ```
//!
//! - The **tick** is that of the table's clock. The **time of day** is the same moment, in
//!   nanoseconds since 1970, from which the next process computes the time that has passed.
//! - A key's word belongs to a plan of the last block of **plans** before it. If a quota changes
//!   while the snapshot is being written, all plans are written again.
//! - If the plans have **names**, these come once, before all other blocks. (Versions 1 and 2 of
//!   the format have no names.)
//! - A key is identified by the 60 bits of its **hash** that are used. They do not depend on the
//!   size of a table.
//! - A block of kind 3 has a bit for each key that says whether it is **protected**, lowest bit
//!   first, in numbers of 64 bits. In a block of kind 2 no key is protected. (Version 1 of the
//!   format has only kind 2.)
//! - A key with an algorithm of its own has a block of **kind 5**, which contains the parameters of
//!   that algorithm. A table that can have such keys writes version 4 of the format; other tables
//!   write version 3, which has no such block.
//! - The **horizon** is read after all keys. A key that left the table before then, because it was
//!   idle, became idle at this tick or earlier.
//!
//! Every count precedes what it counts, and is at most a few thousand. So a damaged count can't
//! make a reader allocate more than that. The checksum is CRC-64/XZ.

mod file;
mod fill;
mod numbers;
mod read;
mod report;
mod restore;
mod verbs;
mod write;

pub use report::{PlanMatch, Restored, RestoredOverrides, RestoredPlan};

use super::KeyHasher;

/// The last four bytes detect a transfer that treats the file as text, because it changes them.
const MAGIC: [u8; 8] = *b"\x89TGK\r\n\x1a\n";
const VERSION: u64 = 4;
/// The first version of the format with names of plans.
const VERSION_OF_NAMES: u64 = 3;
/// The first version of the format with keys that have algorithms of their own.
const VERSION_OF_OVERRIDES: u64 = 4;

/// The most keys of a block.
const CHUNK: usize = 4096;
/// The bytes of a key.
const KEY_BYTES: usize = 16;
/// How many numbers hold the protected bits of a full block.
const CHUNK_BITS: usize = CHUNK / u64::BITS as usize;

/// The kinds of blocks.
const END: u64 = 0;
const PLANS: u64 = 1;
const KEYS: u64 = 2;
const PROTECTED_KEYS: u64 = 3;
const NAMES: u64 = 4;
const OWN_KEY: u64 = 5;

const BANNED: u64 = 1;
const PLAN_SHIFT: u32 = 1;
const HASH_SHIFT: u32 = 4;

/// A key, as it is written.
#[derive(Debug, Clone, Copy)]
struct Record {
    hash: u64,
    plan: u8,
    is_banned: bool,
    is_protected: bool,
    word: u64,
}

impl Record {
    const fn to_numbers(self) -> [u64; 2] {
        let banned = self.is_banned as u64 * BANNED;
        let label = self.hash << HASH_SHIFT | (self.plan as u64) << PLAN_SHIFT | banned;
        [label, self.word]
    }

    const fn of_numbers([label, word]: [u64; 2], is_protected: bool) -> Self {
        Self {
            hash: label >> HASH_SHIFT,
            plan: (label >> PLAN_SHIFT & (super::slot::PLANS - 1)) as u8,
            is_banned: label & BANNED != 0,
            is_protected,
            word,
        }
    }
}

/// Which keys of a block are protected.
#[derive(Debug, Clone, Copy)]
struct ProtectedBits([u64; CHUNK_BITS]);

impl ProtectedBits {
    const NONE: Self = Self([0; CHUNK_BITS]);

    fn add(&mut self, key: usize) {
        if let Some(bits) = self.0.get_mut(key / 64) {
            *bits |= 1 << (key % 64);
        }
    }

    fn has(&self, key: usize) -> bool {
        self.0
            .get(key / 64)
            .is_some_and(|bits| bits >> (key % 64) & 1 != 0)
    }

    fn is_none(&self) -> bool {
        self.0 == [0; CHUNK_BITS]
    }

    /// Returns the numbers that hold the bits of the first `keys` keys.
    fn numbers(&self, keys: usize) -> &[u64] {
        self.0.get(..keys.div_ceil(64)).unwrap_or(&self.0)
    }
}

/// Hashes a fixed key, with which a reader checks the hasher. The key has parts of several types,
/// so it also detects a hasher that differs only for slices or long keys, for example because
/// addresses have another size.
fn probe<S: KeyHasher>(hasher: &S) -> u64 {
    let slice = [0x0123_u16; 40].as_slice();
    hasher.hash_key(&(0x0123_4567_89AB_CDEF_u64, "tollgate", slice, 1_u128 << 64))
}
