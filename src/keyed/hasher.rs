use core::fmt;
use core::hash::{BuildHasher, Hash, Hasher};
use std::collections::hash_map::RandomState;

use foldhash::SharedSeed;
use foldhash::quality::FoldHasher;

/// Hashes keys to 64 bits, by 60 of which a table knows its keys.
///
/// Each [`BuildHasher`] is one. It should be a good one in all bits, and seeded with something that
/// is unknown to those that choose the keys. The usual one is [`SeededHasher`]. One that has a
/// [seed](Self::seed) is no `BuildHasher`, but a type of its own.
pub trait KeyHasher {
    /// The key's hash. The same for the same key, always.
    fn hash_key<Q: Hash + ?Sized>(&self, key: &Q) -> u64;

    /// The seed that it was made with, if it can be made again with that. A snapshot keeps the
    /// seed, so that a table with another seed can restore it.
    fn seed(&self) -> Option<[u64; 2]> {
        None
    }

    /// The hasher that is made with this seed, if it can be.
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
    /// A hasher with this seed. Anyone who knows the seed can choose keys that collide.
    #[must_use]
    pub const fn new(seed: [u64; 2]) -> Self {
        let [_, shared] = seed;
        Self {
            seed,
            shared: SharedSeed::from_u64(shared),
        }
    }

    /// A hasher with a random seed.
    #[must_use]
    pub fn random() -> Self {
        // The standard library has its keys from the system, and hashes with them so that they
        // can't be found out.
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
