//! The verbs of a table that write and restore snapshots.

use core::time::Duration;
use std::fs::File;
use std::io;
use std::path::Path;

use super::restore::How;
use super::{Restored, write};
use crate::algorithm::Algorithm;
use crate::algorithm::ChangeQuota;
use crate::algorithm::Rebase;
use crate::algorithm::Settings;
use crate::clock::{Clock, Tick};
use crate::keyed::{KeyHasher, Keyed};
use crate::snapshot::elapsed::{Elapsed, time_of_day};
use crate::snapshot::error::RestoreError;
use crate::snapshot::file;

impl<A: Algorithm + Settings, C: Clock, S: KeyHasher> Keyed<A, C, S> {
    /// Writes what is in the table, so that it can be [restored](Self::restore) after a restart,
    /// which then hands no key a fresh burst. Says how many keys were written: 16 bytes each.
    ///
    /// Other threads may decide meanwhile. Each key is written as it is when its turn comes;
    /// permits that it is granted after that are not in the snapshot. Keys that can't be told from
    /// fresh ones are left out.
    ///
    /// The snapshot reveals the hasher's seed, with which colliding keys can be chosen: keep it
    /// secret.
    ///
    /// ```
    /// use tollgate::{Keyed, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let bucket = TokenBucket::new(Quota::per_day(100))?;
    /// let limiter = Keyed::new(bucket, 1_000_000)?;
    /// limiter.try_acquire_n("alice", 60)?;
    /// let mut bytes = Vec::new();
    /// assert_eq!(limiter.snapshot(&mut bytes)?, 1);
    ///
    /// // In the next process.
    /// let mut limiter = Keyed::new(bucket, 2_000_000)?;
    /// limiter.restore(&mut bytes.as_slice())?;
    /// assert_eq!(limiter.key("alice").available(), 40);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The writer's error: then what was written is no snapshot.
    pub fn snapshot(&self, writer: &mut (impl io::Write + ?Sized)) -> io::Result<u64> {
        self.snapshot_at(writer, self.clock().now())
    }

    /// [`snapshot`](Self::snapshot) to a file. It is written beside it and takes its place when it
    /// is complete, so that there is always a whole one. On Unix it can be read by the process's
    /// user only.
    ///
    /// # Errors
    ///
    /// The system's error: then the file is as it was.
    pub fn snapshot_to(&self, path: impl AsRef<Path>) -> io::Result<u64> {
        file::replace(path.as_ref(), |file| self.snapshot(file))
    }
}

impl<A: Algorithm + Settings, C, S: KeyHasher> Keyed<A, C, S> {
    /// [`snapshot`](Self::snapshot) at this tick.
    ///
    /// # Errors
    ///
    /// The writer's error: then what was written is no snapshot.
    pub fn snapshot_at(
        &self,
        writer: &mut (impl io::Write + ?Sized),
        now: Tick,
    ) -> io::Result<u64> {
        // Later than the tick, so that no more time seems to pass until it is restored than does.
        write::write(
            (&self.core, &self.hasher),
            &mut &mut *writer,
            now,
            time_of_day(),
        )
    }
}

impl<A: ChangeQuota + Rebase + Settings, C: Clock, S: KeyHasher> Keyed<A, C, S> {
    /// Puts what a [snapshot](Self::snapshot) holds in the place of what is in the table, and makes
    /// it stand on this table's clock as it stood on the other one. The time between counts, by the
    /// time of day; none, if that went back. All of it is read and checked before anything is
    /// changed, and nothing is read that comes after it.
    ///
    /// - The table may have **another capacity**. If there is no room for all keys, those that are
    ///   first to leave give way.
    /// - **Plans** with names are found by their names, in whatever order
    ///   ([`with_named_plans`](Self::with_named_plans)); those without, by their places. A plan may
    ///   have **another quota**, or another algorithm of those in an
    ///   [`AnyAlgorithm`](crate::AnyAlgorithm): its keys are carried over
    ///   ([`ChangeQuota::carry_over`]). The keys of a plan that this table does not have go on in
    ///   the first one. [`Restored::plans`] says what became of each plan.
    /// - A key with an **algorithm of its own** ([`set_algorithm`](Self::set_algorithm)) goes on by
    ///   what is set in this table, and in the first plan if nothing is.
    ///   [`Restored::overrides`] says how many do.
    /// - A key that was **banned** stays banned until it would have been.
    /// - The **hasher** takes over the seed of the snapshot. One that can't must have the same
    ///   hashes. Overrides that were set with another seed are an error.
    /// - Of a key that was written twice, because it left and came again meanwhile, the second one
    ///   counts.
    ///
    /// **Never early.** Where a permit takes no whole number of nanoseconds (13 a second, say), the
    /// word is rounded against the caller: permits of a bucket are due as they were, or one
    /// nanosecond later with each restore, and never sooner. That holds until the key is idle. Then
    /// it starts as a fresh key does, at the tick of its next request: no permit is early by its
    /// rate, but it may be due a nanosecond sooner or later than it would have been without a
    /// restart.
    ///
    /// A grant from before the snapshot must not be given back: this table does not know it. If the
    /// new clock's periods begin at other ticks than the old one's, one more period may begin (see
    /// [`Rebase`]).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Keyed, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let quotas = [Quota::per_minute(60), Quota::per_minute(60).burst(80)];
    /// let [old, new] = quotas.map(TokenBucket::new);
    /// let limiter = Keyed::with_clock(old?, 1000, ManualClock::new())?;
    /// limiter.try_acquire_n("alice", 60)?;
    /// let mut bytes = Vec::new();
    /// limiter.snapshot(&mut bytes)?;
    ///
    /// let mut limiter = Keyed::with_clock(new?, 5000, ManualClock::new())?;
    /// let restored = limiter.restore_after(&mut bytes.as_slice(), Duration::from_secs(7))?;
    /// assert_eq!((restored.keys, restored.no_room), (1, 0));
    /// assert_eq!(limiter.key("alice").available(), 7);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`RestoreError`] says what is wrong with the snapshot: then nothing has changed.
    pub fn restore(
        &mut self,
        reader: &mut (impl io::Read + ?Sized),
    ) -> Result<Restored, RestoreError> {
        self.restore_by(reader, Elapsed::until_now(), false)
    }

    /// [`restore`](Self::restore) from a file, which must hold nothing else.
    ///
    /// # Errors
    ///
    /// [`RestoreError`] says what is wrong with the file: then nothing has changed.
    pub fn restore_from(&mut self, path: impl AsRef<Path>) -> Result<Restored, RestoreError> {
        let mut file = File::open(path)?;
        self.restore_by(&mut file, Elapsed::until_now(), true)
    }

    /// [`restore`](Self::restore), where `elapsed` has passed since the snapshot: for clocks that
    /// don't go with the time of day, and where that can't be relied on.
    ///
    /// # Errors
    ///
    /// [`RestoreError`] says what is wrong with the snapshot: then nothing has changed.
    pub fn restore_after(
        &mut self,
        reader: &mut (impl io::Read + ?Sized),
        elapsed: Duration,
    ) -> Result<Restored, RestoreError> {
        self.restore_by(reader, Elapsed::Known(elapsed), false)
    }

    fn restore_by(
        &mut self,
        reader: &mut (impl io::Read + ?Sized),
        elapsed: Elapsed,
        is_whole: bool,
    ) -> Result<Restored, RestoreError> {
        // Later than the time of day, so that no more time seems to have passed than has.
        let now = self.clock().now();
        let how = How {
            now,
            elapsed,
            is_whole,
        };
        self.core.restore(&mut self.hasher, &mut &mut *reader, how)
    }
}

impl<A: ChangeQuota + Rebase + Settings, C, S: KeyHasher> Keyed<A, C, S> {
    /// [`restore_after`](Self::restore_after) at this tick.
    ///
    /// # Errors
    ///
    /// [`RestoreError`] says what is wrong with the snapshot: then nothing has changed.
    pub fn restore_at(
        &mut self,
        reader: &mut (impl io::Read + ?Sized),
        now: Tick,
        elapsed: Duration,
    ) -> Result<Restored, RestoreError> {
        let how = How {
            now,
            elapsed: Elapsed::Known(elapsed),
            is_whole: false,
        };
        self.core.restore(&mut self.hasher, &mut &mut *reader, how)
    }
}
