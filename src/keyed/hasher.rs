use core::fmt;
use core::hash::{BuildHasher, Hash, Hasher};
use std::collections::hash_map::RandomState;

use foldhash::SharedSeed;
use foldhash::quality::FoldHasher;

/// Hashes keys to 64 bits. A table knows its keys by 60 of these.
///
/// Every [`BuildHasher`] is a `KeyHasher`. It should mix all bits well, and have a seed that is
/// unknown to those that choose the keys. The default is [`SeededHasher`]. A hasher with a
/// [seed](Self::seed) implements this trait itself, and not `BuildHasher`.
pub trait KeyHasher {
    /// Returns the key's hash, which must always be the same for the same key.
    fn hash_key<Q: Hash + ?Sized>(&self, key: &Q) -> u64;

    /// Returns the seed, if a hasher that gives the same hashes can be made from it. A snapshot
    /// contains the seed, so that a table with another seed can restore it.
    fn seed(&self) -> Option<[u64; 2]> {
        None
    }

    /// Returns the hasher with this seed, if one can be made.
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

/// The default hasher of a [`Keyed`](super::Keyed) table: foldhash with a random seed.
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
    /// Creates a hasher with this seed. Anyone who knows the seed can choose keys that collide.
    #[must_use]
    pub const fn new(seed: [u64; 2]) -> Self {
        let [_, shared] = seed;
        Self {
            seed,
            shared: SharedSeed::from_u64(shared),
        }
    }

    /// Creates a hasher with a random seed.
    #[must_use]
    pub fn random() -> Self {
        // `RandomState` gets its keys from the system, and its hashes do not reveal them.
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

/// Does not show the seed.
impl fmt::Debug for SeededHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeededHasher").finish_non_exhaustive()
    }
}
