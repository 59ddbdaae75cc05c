//! A key's hash, which is computed once for all tables of a policy.

use std::hash::{Hash, Hasher};

use tollgate::keyed::{KeyHasher, SeededHasher};

/// The hash of a key, computed by a policy's [`SeededHasher`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyHash(pub(crate) u64);

impl Hash for KeyHash {
    #[inline(always)]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0);
    }
}

/// The hasher of a policy's tables: their keys are hashes already. It knows the seed of
/// these hashes, so that snapshots contain it.
#[derive(Debug, Clone)]
pub struct Hashed(pub(crate) SeededHasher);

/// Passes a hash through.
struct Pass(u64);

impl Hasher for Pass {
    #[inline(always)]
    fn finish(&self) -> u64 {
        self.0
    }

    /// Only for keys that are not hashes. There are none.
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    #[inline(always)]
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

impl KeyHasher for Hashed {
    #[inline(always)]
    fn hash_key<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        let mut pass = Pass(0);
        key.hash(&mut pass);
        pass.finish()
    }

    fn seed(&self) -> Option<[u64; 2]> {
        self.0.seed()
    }

    fn reseeded(&self, seed: [u64; 2]) -> Option<Self> {
        self.0.reseeded(seed).map(Self)
    }
}
