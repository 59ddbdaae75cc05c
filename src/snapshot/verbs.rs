//! The verbs that save and restore the state of a limiter of one word.

use core::convert::Infallible;
use core::time::Duration;

use super::elapsed::{Elapsed, time_of_day};
use super::error::RestoreError;
use super::{SNAPSHOT_BYTES, Saved};
use crate::algorithm::{ChangeQuota, Rebase, Settings};
use crate::store::Store;
use crate::store::op::{Current, Op, Step};
use crate::store::view::View;

/// Puts a saved state in the place of what is there.
struct Restore {
    saved: Saved,
    elapsed: Duration,
}

impl<A: ChangeQuota + Rebase + Settings> Op<A> for Restore {
    type Output = Result<(), RestoreError>;
    type Refusal = Infallible;

    fn run(&mut self, algorithm: &A, current: Current) -> Step<A, Self> {
        let Current { word, now, .. } = current;
        Ok(match self.saved.word_for(algorithm, now, self.elapsed) {
            Ok(next) => (next, Ok(())),
            Err(error) => (word, Err(error)),
        })
    }
}

impl<S: Store<Algorithm: Settings>> View<S> {
    /// The state at this tick, as bytes.
    pub(crate) fn save(&self) -> [u8; SNAPSHOT_BYTES] {
        // Later than the tick, so that no more time seems to pass until it is restored than does.
        let time_of_day = time_of_day();
        let saved = self.store.look(self.now, |algorithm, word, now| {
            Saved::new(algorithm, word, now, time_of_day)
        });
        saved.to_bytes::<S::Algorithm>()
    }
}

impl<S: Store<Algorithm: ChangeQuota + Rebase + Settings>> View<S> {
    /// Goes on with a saved state, and says how much time has passed since it was saved.
    pub(crate) fn load(&self, bytes: &[u8], elapsed: Elapsed) -> Result<Duration, RestoreError> {
        let saved = Saved::from_bytes::<S::Algorithm>(bytes)?;
        let elapsed = saved.elapsed(elapsed);
        let Ok(restored) = self.store.apply(self.now, Restore { saved, elapsed });
        restored.map(|()| elapsed)
    }
}

/// The verbs of a limiter of one word, and of its views. Further parameters come before the types.
macro_rules! snapshot_verbs {
    ([$($parameters:tt)*] $store:ty, [$($own:tt)*] $limiter:ty) => {
        impl<$($parameters)*, A: $crate::algorithm::Algorithm + $crate::algorithm::Settings>
            $crate::store::View<$store>
        {
            /// [`Limiter::snapshot`](crate::Limiter::snapshot) at this tick. Without the feature
            /// `std` it has no time of day, and is restored by
            /// [`restore_after`](Self::restore_after).
            #[must_use = "it is what `restore` needs"]
            pub fn snapshot(&self) -> [u8; $crate::store::SNAPSHOT_BYTES] {
                self.save()
            }
        }

        impl<$($parameters)*, A> $crate::store::View<$store>
        where
            A: $crate::algorithm::ChangeQuota
                + $crate::algorithm::Rebase
                + $crate::algorithm::Settings,
        {
            /// [`Limiter::restore_after`](crate::Limiter::restore_after) at this tick.
            ///
            /// # Errors
            ///
            /// [`RestoreError`](crate::error::RestoreError) says what is wrong with the snapshot:
            /// then nothing has changed.
            pub fn restore_after(
                &self,
                snapshot: &[u8],
                elapsed: core::time::Duration,
            ) -> Result<(), $crate::snapshot::error::RestoreError> {
                let elapsed = $crate::snapshot::elapsed::Elapsed::Known(elapsed);
                self.load(snapshot, elapsed).map(drop)
            }
        }

        impl<A, C: $crate::clock::Clock, $($own)*> $limiter
        where
            A: $crate::algorithm::Algorithm + $crate::algorithm::Settings,
        {
            /// The limiter's state as bytes, so that it can be [restored](Self::restore_after) after a
            /// restart, which then hands out no fresh burst. Write them to a file or to flash
            /// memory, and replace that file in one step (write a new one, then rename it).
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
            /// Permits that are granted after the snapshot are not in it. A snapshot needs no
            /// allocation.
            ///
            /// # Other limiters
            ///
            /// A [`Limiter`](crate::Limiter), an `Adjustable` and a table of keys (`Keyed`) have
            /// snapshots. The others don't, because their state is more than one word, which can't
            /// be read in one step while other threads decide: `Sharded`, `SlottedWindow`,
            /// `SlidingLog` and the smooth limiters. `Leases` has permits in the hands of threads,
            /// and `Concurrency` guards, which end with the process.
            #[must_use = "it is what `restore` needs"]
            pub fn snapshot(&self) -> [u8; $crate::store::SNAPSHOT_BYTES] {
                self.at(self.now()).snapshot()
            }
        }

        impl<A, C: $crate::clock::Clock, $($own)*> $limiter
        where
            A: $crate::algorithm::ChangeQuota
                + $crate::algorithm::Rebase
                + $crate::algorithm::Settings,
        {
            /// Replaces the limiter's state by that of a [snapshot](Self::snapshot), in one atomic
            /// step. The limiter goes on as if it had never stopped, on its own clock. Returns how
            /// much time has passed since the snapshot, by the time of day: zero if that went back,
            /// or was not saved.
            ///
            /// The quota and the rest of the configuration stay those of this limiter. If the
            /// snapshot is of another quota, or of another algorithm of those in an
            /// [`AnyAlgorithm`](crate::AnyAlgorithm), its state is carried over: as many permits
            /// are there as before, but no more than this limiter can hold, and the debt stays
            /// ([`ChangeQuota::carry_over`](crate::algorithm::ChangeQuota::carry_over)).
            ///
            /// No permit is early. Where an interval is no whole number of nanoseconds, permits may
            /// be due a nanosecond later with each restore; a window that began with the first hit
            /// may end a [quantum](crate::FixedWindow::quantum) later. If the periods of the clock
            /// begin at other times than those of the old clock, a window that is counted in ends
            /// no earlier ([`Rebase`](crate::algorithm::Rebase)).
            ///
            /// Don't give back a grant from before the restore: this state does not know it.
            ///
            /// # Errors
            ///
            /// [`RestoreError`](crate::error::RestoreError) says what is wrong with the snapshot:
            /// then nothing has changed.
            #[cfg(feature = "std")]
            pub fn restore(
                &self,
                snapshot: &[u8],
            ) -> Result<core::time::Duration, $crate::snapshot::error::RestoreError> {
                let elapsed = $crate::snapshot::elapsed::Elapsed::until_now();
                // Later than the time of day, so that no more time seems to have passed than has.
                self.at(self.now()).load(snapshot, elapsed)
            }

            /// Replaces the limiter's state by that of a [snapshot](Self::snapshot) from which
            /// `elapsed` has passed, as `restore` does: for clocks that don't go with the time of
            /// day, where that can't be relied on, and without the feature `std`.
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
            /// [`RestoreError`](crate::error::RestoreError) says what is wrong with the snapshot:
            /// then nothing has changed.
            pub fn restore_after(
                &self,
                snapshot: &[u8],
                elapsed: core::time::Duration,
            ) -> Result<(), $crate::snapshot::error::RestoreError> {
                self.at(self.now()).restore_after(snapshot, elapsed)
            }
        }
    };
}
pub(crate) use snapshot_verbs;
