use core::fmt;
use core::hash::{BuildHasher, Hash, Hasher};
use std::collections::hash_map::RandomState;

use foldhash::SharedSeed;
use foldhash::quality::FoldHasher;

/// What tells keys apart: a 64-bit hash, of which a table knows its keys by 60 bits.
///
/// Each [`BuildHasher`] is one. It should be a good one in all bits, and seeded with something that
/// those who choose the keys don't know. The usual one is [`SeededHasher`]. One that has a
/// [seed](Self::seed) is no `BuildHasher`, but a type of its own.
pub trait KeyHasher {
    /// The key's hash. The same for the same key, always.
    fn hash_key<Q: Hash + ?Sized>(&self, key: &Q) -> u64;

    /// What it was made with, if it can be made again with that: it is kept in a snapshot, which
    /// then can be restored where another one was.
    fn seed(&self) -> Option<[u64; 2]> {
        None
    }

    /// The one that was made with this, if it can be.
    #[must_use]
    fn reseeded(&self, seed: [u64; 2]) -> Option<Self>
    where
        Self: Sized,
    {
        let _ = seed;
        None
    }
}

impl<S: BuildHasher> KeyHasher for S {
    #[inline(always)]
    fn hash_key<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.hash_one(key)
    }
}

/// The hasher of a [`Keyed`](super::Keyed) table: foldhash, with a random seed for each.
///
/// ```
/// use tollgate::keyed::{KeyHasher, SeededHasher};
///
/// let seeded = SeededHasher::new([1, 2]);
/// assert_eq!(seeded.hash_key("alice"), seeded.hash_key(&String::from("alice")));
/// assert_ne!(seeded.hash_key("alice"), SeededHasher::random().hash_key("alice"));
/// ```
#[derive(Clone)]
pub struct SeededHasher {
    seed: [u64; 2],
    shared: SharedSeed,
}

impl SeededHasher {
    /// With this seed. Who knows it can choose keys that are in each other's way.
    #[must_use]
    pub const fn new(seed: [u64; 2]) -> Self {
        let [_, shared] = seed;
        Self {
            seed,
            shared: SharedSeed::from_u64(shared),
        }
    }

    /// With a random seed.
    #[must_use]
    pub fn random() -> Self {
        // The standard library has its keys from the system, and hashes with them so that nobody
        // finds them out.
        let random = RandomState::new();
        Self::new([0_u8, 1].map(|which| random.hash_one(which)))
    }
}

impl KeyHasher for SeededHasher {
    #[inline(always)]
    fn hash_key<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        let [seed, _] = self.seed;
        let mut hasher = FoldHasher::with_seed(seed, &self.shared);
        key.hash(&mut hasher);
        hasher.finish()
    }

    fn seed(&self) -> Option<[u64; 2]> {
        Some(self.seed)
    }

    fn reseeded(&self, seed: [u64; 2]) -> Option<Self> {
        Some(Self::new(seed))
    }
}

/// Without the seed.
impl fmt::Debug for SeededHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeededHasher").finish_non_exhaustive()
    }
}
