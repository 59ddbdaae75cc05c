//! A sequence lock for parameters: other threads may write while a thread reads, and the reader
//! detects whether all words that it read are of one version.

use crate::algorithm::{Settings, Visit};
use crate::sync::{AtomicU64, Ordering, fence, inject_fault};

/// The parameters of one version, in up to `N` words. 15 words and the version fit in two cache
/// lines.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct SeqLock<const N: usize> {
    /// The version that the words belong to, or will belong to once they are written.
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

    /// Writes the parameters of a version. The caller is the only writer, and the version is not
    /// current yet.
    pub(crate) fn write<A: Settings>(&self, version: u64, algorithm: &A) {
        self.announce(version);
        let mut words = self.words.iter();
        algorithm.save(&mut |value| {
            if let Some(word) = words.next() {
                // ORDERING: Relaxed. The exchange that makes the version current publishes it. If a
                // thread reads it too early, the fence in `announce` lets that thread detect it.
                // Model: adjust::a_late_decision_mixes_nothing
                word.store(value, Ordering::Relaxed);
            }
        });
    }

    /// Returns the version that was announced last. Its words may not be written yet.
    #[cfg(feature = "keyed")]
    pub(crate) fn version(&self) -> u64 {
        // ORDERING: Acquire. It pairs with the store of `announce`: a thread that finds a version
        // here sees everything that was done before the version was announced.
        // Model: keyed_overrides::a_change_reaches_the_key
        self.version.load(Ordering::Acquire)
    }

    fn announce(&self, version: u64) {
        // ORDERING: Release. It publishes that the older version is over, and pairs with the fence
        // of the next `is_still`. A thread that finds this version here instead of an older one
        // loads the limiter's word and version again, and must then see newer ones. Otherwise it
        // could retry forever.
        // Model: adjust::a_late_decision_mixes_nothing
        self.version.store(version, Ordering::Release);
        // ORDERING: Release. It pairs with the fence in `is_still`: a thread that reads a word
        // written after this fence, and then passes the fence in `is_still`, sees this version or a
        // later one. Model: adjust::a_late_decision_mixes_nothing
        fence(Ordering::Release);
    }

    /// Calls `then` with the parameters, if they are still those of this version.
    #[inline(always)]
    pub(crate) fn read<A: Settings, T: Visit<A>>(
        &self,
        version: u64,
        then: T,
    ) -> Option<T::Output> {
        let mut words = self.words.iter();
        let mut read = || match words.next() {
            // ORDERING: Relaxed. It publishes nothing. If the word is of a later version,
            // `is_still` detects it. Model: adjust::a_late_decision_mixes_nothing
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

    /// Returns whether all words that were read are of this version.
    #[inline(always)]
    fn is_still(&self, version: u64) -> bool {
        // ORDERING: Acquire. It pairs with the fence in `announce`: the version loaded after this
        // fence is no older than any of the words read before it. Model:
        // adjust::a_late_decision_mixes_nothing
        fence(Ordering::Acquire);
        // ORDERING: Relaxed. The fence above orders it after the words. A thread that finds another
        // version retries and passes that fence again, which then pairs with the store in
        // `announce`. Model: adjust::a_late_decision_mixes_nothing
        let now = self.version.load(Ordering::Relaxed);
        now == version || inject_fault!(ReadsUnchecked) // FAULT
    }
}

/// A visitor that calls another one if the parameters are still those of a version.
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
