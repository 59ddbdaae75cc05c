//! The methods that write and restore snapshots of a table.

use core::time::Duration;
use std::fs::File;
use std::io;
use std::path::Path;

use super::restore::restore;
use super::{Restored, file, write};
use crate::algorithm::{Algorithm, ChangeQuota, Rebase, Settings};
use crate::clock::{Clock, Tick};
use crate::keyed::{KeyHasher, Keyed};
use crate::snapshot::elapsed::until_now;
use crate::snapshot::error::RestoreError;

impl<A: Algorithm + Settings, C: Clock, S: KeyHasher> Keyed<A, C, S> {
    /// Writes the content of the table. After a restart, [`restore`](Self::restore) continues from
    /// it, so the restart gives no key a fresh burst. Returns the number of keys that were written.
    /// Each takes about 16 bytes, or 170 with an override.
    ///
    /// Other threads can use the table meanwhile. Each key is written as it is when its turn comes.
    /// Grants after that are not in the snapshot. Idle keys are left out.
    ///
    /// Keep the snapshot secret: it contains the hasher's seed, with which an attacker can choose
    /// keys that collide.
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
    /// The writer's error. The output is not a valid snapshot then.
    pub fn snapshot(&self, writer: &mut (impl io::Write + ?Sized)) -> io::Result<u64> {
        self.snapshot_at(writer, self.clock().now())
    }

    /// Writes a [snapshot](Self::snapshot) to a file. This writes a temporary file in the same
    /// folder, and renames it when it is complete. So the file is never half written. On Unix only
    /// the process's user can read it.
    ///
    /// # Errors
    ///
    /// The system's error: then the file has not changed.
    pub fn snapshot_to(&self, path: impl AsRef<Path>) -> io::Result<u64> {
        file::replace(path.as_ref(), |file| self.snapshot(file))
    }
}

impl<A: Algorithm + Settings, C, S: KeyHasher> Keyed<A, C, S> {
    /// Writes a [snapshot](Self::snapshot) at this tick.
    ///
    /// # Errors
    ///
    /// The writer's error. The output is not a valid snapshot then.
    pub fn snapshot_at(
        &self,
        writer: &mut (impl io::Write + ?Sized),
        now: Tick,
    ) -> io::Result<u64> {
        write::write((&self.keys, &self.hasher), &mut &mut *writer, now)
    }
}

impl<A: ChangeQuota + Rebase + Settings, C: Clock, S: KeyHasher> Keyed<A, C, S> {
    /// Replaces the content of the table by a [snapshot](Self::snapshot), converted to this table's
    /// clock. Permits refill for the time since the snapshot, which is measured by the system's
    /// time of day. If that went back, no time counts. The whole snapshot is read and checked
    /// before anything changes. Bytes after it are not read.
    ///
    /// - The table may have **another capacity**. If it has no room for all keys, those that would
    ///   be evicted first are dropped.
    /// - **Plans** with names are found by their names, in any order
    ///   ([`with_named_plans`](Self::with_named_plans)), and others by their positions. A plan may
    ///   have **another quota**, or another of the algorithms in an
    ///   [`AnyAlgorithm`](crate::AnyAlgorithm): its keys are carried over
    ///   ([`ChangeQuota::carry_over`]). Keys of a plan that this table does not have continue in
    ///   the first one. [`Restored::plans`] says what happened to each plan.
    /// - A key that had an **override**
    ///   ([`set_override`](crate::keyed::Key::set_override)) continues with the one that is set
    ///   in this table, or in the first plan if none is. [`Restored::overrides`] counts such keys.
    /// - A **banned** key stays banned as long as without the restart.
    /// - The **hasher** adopts the snapshot's seed. A hasher that has no seed must give the same
    ///   hashes. It is an error if this table has overrides that were set under another seed.
    ///
    /// **No permit comes a unit early.** If the rate of a bucket is not exact (as at 13 a second),
    /// its permits may be due less than one unit sooner or later with each restore. A unit is at
    /// most a quarter of a nanosecond: see [`TokenBucket`](crate::TokenBucket).
    ///
    /// Don't undo a grant from before the snapshot: this table does not know it. If the periods of
    /// a window begin at other ticks on the new clock, a key may get the permits of one more period
    /// (see [`Rebase`]).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Keyed, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let bucket = |burst| TokenBucket::new(Quota::per_minute(60).burst(burst));
    /// let limiter = Keyed::with_clock(bucket(60)?, 1000, ManualClock::new())?;
    /// limiter.try_acquire_n("alice", 60)?;
    /// let mut bytes = Vec::new();
    /// limiter.snapshot(&mut bytes)?;
    ///
    /// let mut limiter = Keyed::with_clock(bucket(80)?, 5000, ManualClock::new())?;
    /// let restored = limiter.restore_after(&mut bytes.as_slice(), Duration::from_secs(7))?;
    /// assert_eq!((restored.keys, restored.no_room), (1, 0));
    /// assert_eq!(limiter.key("alice").available(), 7);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`RestoreError`] if the snapshot is not valid for this table: then nothing has changed.
    pub fn restore(
        &mut self,
        reader: &mut (impl io::Read + ?Sized),
    ) -> Result<Restored, RestoreError> {
        self.restore_until_now(&mut &mut *reader, false)
    }

    /// [Restores](Self::restore) a snapshot from a file, which must contain nothing else.
    ///
    /// # Errors
    ///
    /// [`RestoreError`] if the file can't be read or is not valid for this table: then nothing has
    /// changed.
    pub fn restore_from(&mut self, path: impl AsRef<Path>) -> Result<Restored, RestoreError> {
        self.restore_until_now(&mut File::open(path)?, true)
    }

    /// [Restores](Self::restore) a snapshot that is `elapsed` old. Use it if the clock does not
    /// follow the time of day, or if the time of day is unreliable.
    ///
    /// # Errors
    ///
    /// [`RestoreError`] if the snapshot is not valid for this table: then nothing has changed.
    pub fn restore_after(
        &mut self,
        reader: &mut (impl io::Read + ?Sized),
        elapsed: Duration,
    ) -> Result<Restored, RestoreError> {
        self.restore_at(reader, self.clock.now(), elapsed)
    }

    fn restore_until_now(
        &mut self,
        reader: &mut dyn io::Read,
        is_whole: bool,
    ) -> Result<Restored, RestoreError> {
        let elapsed = until_now();
        // Read the clock after the time of day. In the other order, the time between the two would
        // count twice.
        let now = self.clock.now();
        let into = (&mut self.keys, &mut self.hasher);
        restore(into, reader, (now, &elapsed), is_whole)
    }
}

impl<A: ChangeQuota + Rebase + Settings, C, S: KeyHasher> Keyed<A, C, S> {
    /// [Restores](Self::restore) a snapshot that is `elapsed` old, at this tick.
    ///
    /// # Errors
    ///
    /// [`RestoreError`] if the snapshot is not valid for this table: then nothing has changed.
    pub fn restore_at(
        &mut self,
        reader: &mut (impl io::Read + ?Sized),
        now: Tick,
        elapsed: Duration,
    ) -> Result<Restored, RestoreError> {
        let reader = &mut &mut *reader;
        let into = (&mut self.keys, &mut self.hasher);
        restore(into, reader, (now, &|_| elapsed), false)
    }
}
