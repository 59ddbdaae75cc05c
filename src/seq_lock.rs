//! Parameters that are read while others may write them: who reads finds out whether they were of
//! one version.

use crate::algorithm::{Settings, Visit};
use crate::sync::{AtomicU64, Ordering, fence, inject_fault};

/// The parameters of a version, in up to `N` words; 15 fit two cache lines.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct SeqLock<const N: usize> {
    /// The version that the words are of, or will be of.
    version: AtomicU64,
    words: [AtomicU64; N],
}

impl<const N: usize> SeqLock<N> {
    pub(crate) fn new() -> Self {
        Self {
            version: AtomicU64::new(0),
            words: [(); N].map(|()| AtomicU64::new(0)),
        }
    }

    /// Writes the parameters of a version. Nobody else writes, and that version is not in force
    /// yet.
    pub(crate) fn write<A: Settings>(&self, version: u64, algorithm: &A) {
        let afterwards = inject_fault!(AnnouncesAfterwards);
        if !afterwards {
            self.announce(version);
        }
        let mut words = self.words.iter();
        algorithm.save(&mut |value| {
            if let Some(word) = words.next() {
                // ORDERING: Relaxed. The fence before it tells who reads it too early, and the
                // exchange that brings the version publishes it. Model:
                // adjust::a_late_one_mixes_nothing
                word.store(value, Ordering::Relaxed);
            }
        });
        if afterwards {
            self.announce(version);
        }
    }

    /// The version that was announced last. Its words need not be there yet.
    #[cfg(feature = "keyed")]
    pub(crate) fn version(&self) -> u64 {
        // ORDERING: Acquire. It pairs with the store of `announce`: a thread that finds a version
        // here knows what was done before it was written.
        // Model: keyed_overrides::a_change_reaches_the_key
        self.version.load(Ordering::Acquire)
    }

    fn announce(&self, version: u64) {
        // ORDERING: Release. A thread that finds this version here instead of an older one, and
        // loads the pair again, finds that the older one is over. Otherwise it might retry for
        // ever. Model: adjust::a_late_one_mixes_nothing
        self.version.store(version, Ordering::Release);
        // ORDERING: Release. A thread that reads one of the words written after this fence, and
        // then passes the fence of `is_still`, sees this version or a later one.
        // Model: adjust::a_late_one_mixes_nothing
        fence(Ordering::Release);
    }

    /// Does something with the parameters, if they are still those of this version.
    #[inline(always)]
    pub(crate) fn read<A: Settings, T: Visit<A>>(
        &self,
        version: u64,
        then: T,
    ) -> Option<T::Output> {
        let mut words = self.words.iter();
        let mut read = || match words.next() {
            // ORDERING: Relaxed. If it is of a later version, what follows finds it out.
            // Model: adjust::a_late_one_mixes_nothing
            Some(word) => word.load(Ordering::Relaxed),
            None => 0,
        };
        let then = IfStill {
            slot: self,
            version,
            then,
        };
        A::restore_and(&mut read, then)?
    }

    /// Whether all words that were read are of this version.
    #[inline(always)]
    fn is_still(&self, version: u64) -> bool {
        // ORDERING: Acquire. It pairs with the fence of `announce`: the version that is loaded
        // after it is no older than any of the words. Model: adjust::a_late_one_mixes_nothing
        fence(Ordering::Acquire);
        // ORDERING: Relaxed. The fence before it orders it after the words. A thread that finds
        // another version retries and passes that fence, which then pairs with the store of
        // `announce`. Model: adjust::a_late_one_mixes_nothing
        let now = self.version.load(Ordering::Relaxed);
        now == version || inject_fault!(ReadsUnchecked)
    }
}

/// Does something if the slot is still that version's.
struct IfStill<'s, const N: usize, T> {
    slot: &'s SeqLock<N>,
    version: u64,
    then: T,
}

impl<A, const N: usize, T: Visit<A>> Visit<A> for IfStill<'_, N, T> {
    type Output = Option<T::Output>;

    #[inline(always)]
    fn visit(self, algorithm: &A) -> Option<T::Output> {
        match self.slot.is_still(self.version) {
            true => Some(self.then.visit(algorithm)),
            false => None,
        }
    }
}
