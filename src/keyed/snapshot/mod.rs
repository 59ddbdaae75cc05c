//! The content of a table, written for the next process.
//!
//! All numbers are of 64 bits, their lowest byte first.
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
//! - The **tick** is that of the table's clock, and the **time of day** that of the same moment, in
//!   nanoseconds since 1970; by them the next process knows how much time has passed.
//! - A key's word is one of the **plans** that were written last before it: they are written again
//!   where a quota is changed while the snapshot is being written.
//! - The **names** of the plans come once, before all else, if the plans have names. (Versions 1 and
//!   2 of the format have none.)
//! - A key is known by all 60 bits of its **hash** that count, which do not depend on the size of a
//!   table.
//! - Which keys are **protected** is said by as many numbers as are needed for a bit of each key,
//!   the lowest bit first; in a block of kind 2 none is. (Version 1 of the format has no others.)
//! - A key that has an algorithm of its own has a block of **kind 5**, with the parameters of that
//!   algorithm. A table that can have such keys writes version 4 of the format, and others write
//!   version 3, which has no such block.
//! - The **horizon** is looked at after all keys: it is no earlier than the tick at which any key
//!   that left as idle before then had become idle.
//!
//! A count that comes before what it counts is of a few thousand keys at most, so that a reader
//! never believes more than it gets. The checksum is CRC-64/XZ.

mod fill;
mod read;
mod report;
mod restore;
mod verbs;
mod write;

pub use report::{PlanMatch, Restored, RestoredOverrides, RestoredPlan};

use super::KeyHasher;

/// The last three bytes are changed by what takes it for text.
const MAGIC: [u8; 8] = *b"\x89TGK\r\n\x1a\n";
const VERSION: u64 = 4;
/// The first version of the format with names of plans.
const VERSION_OF_NAMES: u64 = 3;
/// The first version of the format with keys that have algorithms of their own.
const VERSION_OF_OVERRIDES: u64 = 4;

/// How many keys are written at once, at most.
const CHUNK: usize = 4096;
/// How many bytes a key takes.
const KEY_BYTES: usize = 16;
/// How many numbers say which of them are protected.
const CHUNK_BITS: usize = CHUNK / u64::BITS as usize;

/// What a block holds.
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

/// Which keys of a chunk are protected.
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

    /// The numbers for this number of keys.
    fn numbers(&self, keys: usize) -> &[u64] {
        self.0.get(..keys.div_ceil(64)).unwrap_or(&self.0)
    }
}

/// The hash of a key that every snapshot knows: another hasher has another one, also if only slices
/// or long keys have another hash there, as where addresses are of another size.
fn probe<S: KeyHasher>(hasher: &S) -> u64 {
    let slice = [0x0123_u16; 40].as_slice();
    hasher.hash_key(&(0x0123_4567_89AB_CDEF_u64, "tollgate", slice, 1_u128 << 64))
}
