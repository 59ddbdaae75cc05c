use core::fmt;
use core::hash::{BuildHasher, Hash, Hasher};
use std::collections::hash_map::RandomState;

use foldhash::SharedSeed;
use foldhash::quality::FoldHasher;

/// Hashes keys to 64 bits. A table identifies a key by 60 of them.
///
/// Every [`BuildHasher`] is a `KeyHasher`. Use one that mixes all bits well and has a secret seed:
/// a client that knows the seed can choose keys that collide. The default is [`SeededHasher`]. To
/// support a [seed](Self::seed) in snapshots, implement this trait directly instead of
/// `BuildHasher`.
pub trait KeyHasher {
    /// Returns the key's hash, which must always be the same for the same key.
    fn hash_key<Q: Hash + ?Sized>(&self, key: &Q) -> u64;

    /// Returns the seed, or `None` if no hasher with the same hashes can be made from it. A
    /// snapshot contains the seed, and a table that restores it adopts the seed.
    fn seed(&self) -> Option<[u64; 2]> {
        None
    }

    /// Returns a hasher with this seed, or `None` if the type has no seed.
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
