//! The verbs that save and restore the state of a limiter, for limiters whose state is one word.

use core::convert::Infallible;
use core::time::Duration;

use super::elapsed::{Moved, time_of_day};
use super::error::RestoreError;
use super::parameters::Parameters;
use super::read::{Done, Reader, Restore};
use super::write::Writer;
use super::{Head, Record};
use crate::algorithm::{ChangeQuota, Rebase, Settings};
use crate::clock::Tick;
use crate::store::SNAPSHOT_BYTES;
use crate::store::Store;
use crate::store::op::{Current, Op, Step};
use crate::store::view::View;

/// A limiter's state as it was saved, and the operation that restores it.
struct Saved {
    parameters: Parameters,
    word: u64,
    /// The tick of the limiter's old clock that corresponds to the present.
    from: Tick,
}

impl Restore for Saved {
    fn plan(&mut self, _: usize, _: &[u8], parameters: &Parameters) -> Done {
        self.parameters = *parameters;
        Ok(())
    }

    fn key(&mut self, key: &Record, _: Option<&Parameters>) -> Done {
        self.word = key.word;
        Ok(())
    }
}

impl<A: ChangeQuota + Rebase + Settings> Op<A> for Saved {
    type Output = Done;
    type Refusal = Infallible;

    fn run(&mut self, algorithm: &A, current: Current) -> Step<A, Self> {
        let (from, to) = (self.from, current.now);
        let was = self.parameters.unless_of(algorithm, None);
        let next = was.map(|was| Moved { from, to }.word(self.word, was.as_ref(), algorithm));
        Ok(match next {
            Ok(next) => (next, Ok(())),
            Err(error) => (current.word, Err(error)),
        })
    }
}

impl<S: Store<Algorithm: Settings>> View<S> {
    /// Returns the state at this tick, as bytes.
    pub(crate) fn save(&self) -> [u8; SNAPSHOT_BYTES] {
        let mut bytes = [0; SNAPSHOT_BYTES];
        let mut places = bytes.iter_mut();
        let mut put = |part: &[u8]| {
            let each = part.iter().zip(&mut places);
            each.for_each(|(byte, place)| *place = *byte);
            Ok(())
        };
        let Ok(()) = self.write(Writer::new(&mut put));
        bytes
    }

    fn write(&self, mut writer: Writer<'_, Infallible>) -> Result<(), Infallible> {
        let saved = |algorithm: &S::Algorithm, word, at| (Parameters::of(algorithm), word, at);
        let (parameters, word, at) = self.store.look(self.now, saved);
        writer.head::<S::Algorithm>(&Head {
            at,
            time_of_day: time_of_day(),
            ..Head::default()
        })?;
        writer.plans(&[parameters], &[""; 0])?;
        writer.keys(&[Record::of_word(word)], None)?;
        writer.end(Tick::ZERO)
    }
}

impl<S: Store<Algorithm: ChangeQuota + Rebase + Settings>> View<S> {
    /// Continues from a saved state. `elapsed` computes its age from its time of day. Returns the
    /// age.
    pub(crate) fn load(
        &self,
        mut bytes: &[u8],
        elapsed: impl Fn(u64) -> Duration,
    ) -> Result<Duration, RestoreError> {
        let mut reader = Reader::new(&mut bytes);
        let head = reader.head::<S::Algorithm>(false)?;
        let elapsed = elapsed(head.time_of_day);
        let mut saved = Saved {
            parameters: Parameters::NONE,
            word: 0,
            from: head.at.saturating_add(elapsed),
        };
        let _ = reader.blocks(&mut saved)?;
        reader.is_over()?;
        let Ok(restored) = self.store.apply(self.now, saved);
        restored.map(|()| elapsed)
    }
}

/// Implements these verbs for a limiter and for its views. Further generic parameters come before
/// the types.
macro_rules! snapshot_verbs {
    ([$($parameters:tt)*] $store:ty, [$($own:tt)*] $limiter:ty) => {
        impl<$($parameters)*, A> $crate::store::View<$store>
        where
            A: $crate::algorithm::Algorithm + $crate::algorithm::Settings,
        {
            /// Returns the limiter's state at this tick: see
            /// [`Limiter::snapshot`](crate::Limiter::snapshot). Without the feature `std` the state
            /// has no time of day; use [`restore_after`](Self::restore_after) to restore it.
            #[must_use = "it is what `restore` needs"]
            pub fn snapshot(&self) -> [u8; $crate::store::SNAPSHOT_BYTES] {
                self.save()
            }

            /// Restores the limiter's state at this tick: see
            /// [`Limiter::restore_after`](crate::Limiter::restore_after).
            ///
            /// # Errors
            ///
            /// [`RestoreError`](crate::error::RestoreError) if the snapshot is not valid for this
            /// limiter: then nothing has changed.
            pub fn restore_after(
                &self,
                snapshot: &[u8],
                elapsed: core::time::Duration,
            ) -> Result<(), $crate::snapshot::error::RestoreError>
            where
                A: $crate::algorithm::ChangeQuota + $crate::algorithm::Rebase,
            {
                self.load(snapshot, |_| elapsed).map(drop)
            }
        }

        impl<A, C: $crate::clock::Clock, $($own)*> $limiter
        where
            A: $crate::algorithm::Algorithm + $crate::algorithm::Settings,
        {
            /// Returns the limiter's state as bytes. After a restart,
            /// [`restore_after`](Self::restore_after) continues from it, so the restart allows no
            /// further burst. Write the bytes to flash memory or to a file. Replace the file in one
            /// step: write a new one, then rename it.
            ///
            /// ```
            /// use tollgate::{Limiter, Quota};
            ///
            /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
            /// let limiter = Limiter::token_bucket(Quota::per_hour(100))?;
            /// limiter.try_acquire_n(60)?;
            /// let bytes = limiter.snapshot();
            ///
            /// // In the next process:
            /// let limiter = Limiter::token_bucket(Quota::per_hour(100))?;
            /// limiter.restore(&bytes)?;
            /// assert_eq!(limiter.available(), 40);
            /// # Ok(())
            /// # }
            /// ```
            ///
            /// Permits that are granted after a snapshot are not in it. Taking a snapshot allocates
            /// nothing.
            ///
            /// # Other limiters
            ///
            /// [`Limiter`](crate::Limiter), `Adjustable` and `Keyed` have snapshots. `Sharded`,
            /// `SlottedWindow` and `SlidingLog` don't: their state is more than one word, and can't
            /// be read in one step while other threads decide. `Leases` has none because the
            /// permits that threads hold would be missing. `Concurrency` has none because its
            /// guards end with the process.
            #[must_use = "it is what `restore` needs"]
            pub fn snapshot(&self) -> [u8; $crate::store::SNAPSHOT_BYTES] {
                self.at(self.now()).snapshot()
            }

            /// Replaces the limiter's state by a [snapshot](Self::snapshot), in one atomic step.
            /// The limiter continues on its own clock, as if it had never stopped. Returns the time
            /// since the snapshot, by the time of day. This is zero if the time of day was set back
            /// or was not saved.
            ///
            /// The limiter keeps its own quota and configuration. If the snapshot is of another
            /// quota, or (with [`AnyAlgorithm`](crate::AnyAlgorithm)) of another algorithm, its
            /// state is [carried over](crate::algorithm::ChangeQuota::carry_over): the limiter has
            /// as many permits as before, up to what it can hold, and the same debt.
            ///
            /// The bound of the limit still holds. If the rate of a bucket is not exact, permits
            /// may be due less than one unit sooner or later with each restore, which is at most a
            /// quarter of a nanosecond (see [`TokenBucket`](crate::TokenBucket)). A window that was
            /// opened by its first hit may end a [quantum](crate::FixedWindow::quantum) later. If
            /// the new clock's periods begin at other times than the old clock's, a window with
            /// counted permits may end later, but not earlier, and the next refill of aligned
            /// [`Intervals`](crate::Intervals) may come earlier or later (see
            /// [`Rebase`](crate::algorithm::Rebase)).
            ///
            /// Don't give back a grant from before the restore: the limiter can't tell which of its
            /// permits are refilled already.
            ///
            /// # Errors
            ///
            /// [`RestoreError`](crate::error::RestoreError) if the snapshot is not valid for this
            /// limiter: then nothing has changed.
            #[cfg(feature = "std")]
            pub fn restore(
                &self,
                snapshot: &[u8],
            ) -> Result<core::time::Duration, $crate::snapshot::error::RestoreError>
            where
                A: $crate::algorithm::ChangeQuota + $crate::algorithm::Rebase,
            {
                let elapsed = $crate::snapshot::elapsed::until_now();
                // Read the clock after the time of day. In the other order, the time between the
                // two readings would count twice.
                self.at(self.now()).load(snapshot, elapsed)
            }

            /// Replaces the limiter's state by a [snapshot](Self::snapshot) that is `elapsed` old,
            /// as `restore` does. Use it if the time of day is unreliable or does not apply to the
            /// clock, or without the feature `std`.
            ///
            /// ```
            /// use std::time::Duration;
            /// use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
            ///
            /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
            /// let bucket = TokenBucket::new(Quota::per_minute(60))?;
            /// let limiter = Limiter::with_clock(bucket, ManualClock::new());
            /// limiter.try_acquire_n(60)?;
            /// let bytes = limiter.snapshot();
            ///
            /// let next = Limiter::with_clock(bucket, ManualClock::new());
            /// next.restore_after(&bytes, Duration::from_secs(7))?;
            /// assert_eq!(next.available(), 7);
            /// # Ok(())
            /// # }
            /// ```
            ///
            /// # Errors
            ///
            /// [`RestoreError`](crate::error::RestoreError) if the snapshot is not valid for this
            /// limiter: then nothing has changed.
            pub fn restore_after(
                &self,
                snapshot: &[u8],
                elapsed: core::time::Duration,
            ) -> Result<(), $crate::snapshot::error::RestoreError>
            where
                A: $crate::algorithm::ChangeQuota + $crate::algorithm::Rebase,
            {
                self.at(self.now()).restore_after(snapshot, elapsed)
            }
        }
    };
}
pub(crate) use snapshot_verbs;
