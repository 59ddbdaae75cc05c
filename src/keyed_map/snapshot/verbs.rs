//! The methods that write and restore snapshots of a map.

use core::hash::{BuildHasher, Hash};
use core::time::Duration;
use std::fs::File;
use std::io;
use std::path::Path;

use super::restore::{How, RestoredMap};
use super::{SnapshotKey, write};
use crate::algorithm::{Algorithm, ChangeQuota, Rebase, Settings};
use crate::clock::{Clock, Tick};
use crate::keyed_map::KeyedMap;
use crate::snapshot::elapsed::{Elapsed, time_of_day};
use crate::snapshot::error::RestoreError;
use crate::snapshot::file;

impl<K, A, C, S> KeyedMap<K, A, C, S>
where
    K: Hash + Eq + SnapshotKey,
    A: Algorithm + Settings,
    C: Clock,
    S: BuildHasher,
{
    /// Writes a snapshot of the map, and returns how many keys it holds. After a restart,
    /// [`restore`](Self::restore) continues from it, so that no key gets a fresh burst. Each key
    /// takes 32 bytes, plus those of the key itself.
    ///
    /// Other threads can use the map meanwhile. Each key is written as it is when its turn comes.
    /// Grants after that are not in the snapshot. Idle keys are left out. The call needs 16 bytes
    /// of memory for each key while it runs. Keys that leave meanwhile are freed as always, however
    /// slow the writer is.
    ///
    /// ```
    /// use tollgate::{KeyedMap, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let bucket = TokenBucket::new(Quota::per_day(100))?;
    /// let map = KeyedMap::<String, _>::new(bucket, 1000)?;
    /// map.try_acquire_n("alice", 60)?;
    /// let mut bytes = Vec::new();
    /// assert_eq!(map.snapshot(&mut bytes)?, 1);
    ///
    /// // In the next process.
    /// let mut map = KeyedMap::<String, _>::new(bucket, 2000)?;
    /// map.restore(&mut bytes.as_slice())?;
    /// assert_eq!(map.key("alice").available(), 40);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The writer's error. The output is not a valid snapshot then.
    pub fn snapshot(&self, writer: &mut (impl io::Write + ?Sized)) -> io::Result<u64> {
        self.snapshot_at(writer, self.clock.now())
    }

    /// Writes a [`snapshot`](Self::snapshot) to a file. This writes a temporary file in the same
    /// folder, and renames it when it is complete. So the file is never half written. On Unix, only
    /// the process's user can read it.
    ///
    /// ```no_run
    /// use tollgate::{KeyedMap, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut map: KeyedMap<String, _> = KeyedMap::token_bucket(Quota::per_day(5), 1000)?;
    /// map.restore_from("limits.snapshot")?; // what the last process wrote
    /// map.snapshot_to("limits.snapshot")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The system's error. The file has not changed then.
    pub fn snapshot_to(&self, path: impl AsRef<Path>) -> io::Result<u64> {
        // Each key takes a few small writes.
        file::replace(path.as_ref(), |file| {
            self.snapshot(&mut io::BufWriter::new(file))
        })
    }
}

impl<K, A, C, S> KeyedMap<K, A, C, S>
where
    K: Hash + Eq + SnapshotKey,
    A: Algorithm + Settings,
    S: BuildHasher,
{
    /// Writes a snapshot of the map at this tick: see [`snapshot`](Self::snapshot).
    ///
    /// # Errors
    ///
    /// The writer's error. The output is not a valid snapshot then.
    pub fn snapshot_at(
        &self,
        writer: &mut (impl io::Write + ?Sized),
        now: Tick,
    ) -> io::Result<u64> {
        // Read after the tick, so that the time until the restore is not overestimated.
        write::write(self, &mut &mut *writer, now, time_of_day())
    }
}

impl<K, A, C, S> KeyedMap<K, A, C, S>
where
    K: Hash + Eq + Clone + SnapshotKey,
    A: ChangeQuota + Rebase + Settings,
    C: Clock,
    S: BuildHasher,
{
    /// Replaces the map's content with that of a [snapshot](Self::snapshot), converted to this
    /// map's clock. Permits refill for the time since the snapshot, which is measured by the
    /// system's time of day. If that went back, no time counts. The whole snapshot is read and
    /// checked before anything changes. Bytes after it are not read.
    ///
    /// - The map may have **another capacity**. If there is no room for all keys, those that would
    ///   be evicted first are left out. It may also have another hasher.
    /// - The map may have **another quota**, or another algorithm of an
    ///   [`AnyAlgorithm`](crate::AnyAlgorithm): keys are carried over
    ///   ([`ChangeQuota::carry_over`]).
    /// - **Algorithms of keys are not in a snapshot**, only the permits that the keys had left. A
    ///   key with its [own algorithm](Self::set_algorithm) in this map is carried over to that, and
    ///   any other key to the map's algorithm. So set the algorithms of keys before the restore.
    /// - A **banned** key stays banned until the ban would have ended.
    /// - Keys stay protected, and keep their order of insertion.
    ///
    /// Permits of a grant from before the snapshot can't be returned. No permit becomes available
    /// earlier than without the restart: rounding is against the caller.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{KeyedMap, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let quota = Quota::per_hour(60);
    /// let map: KeyedMap<u64, _> = KeyedMap::token_bucket(quota, 1000)?;
    /// map.try_acquire_n(&7, 60)?;
    /// let mut bytes = Vec::new();
    /// map.snapshot(&mut bytes)?;
    ///
    /// let mut map: KeyedMap<u64, _> = KeyedMap::token_bucket(quota.burst(80), 5000)?;
    /// map.set_algorithm(&8, map.algorithm())?;
    /// let restored = map.restore_after(&mut bytes.as_slice(), Duration::from_secs(7 * 60))?;
    /// assert_eq!((restored.keys, restored.carried_over), (2, 1));
    /// assert_eq!(map.key(&7).available(), 7);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`RestoreError`] if the snapshot is invalid or can't be read; nothing changes then.
    pub fn restore(
        &mut self,
        reader: &mut (impl io::Read + ?Sized),
    ) -> Result<RestoredMap, RestoreError> {
        self.restore_elapsed(&mut &mut *reader, Elapsed::until_now(), false)
    }

    /// Restores a snapshot from a file, which must hold nothing else: see
    /// [`restore`](Self::restore).
    ///
    /// # Errors
    ///
    /// [`RestoreError`] if the file is invalid or can't be read; nothing changes then.
    pub fn restore_from(&mut self, path: impl AsRef<Path>) -> Result<RestoredMap, RestoreError> {
        let mut file = io::BufReader::new(File::open(path)?);
        self.restore_elapsed(&mut file, Elapsed::until_now(), true)
    }

    /// Restores a snapshot that was written `elapsed` ago: see [`restore`](Self::restore). Use it
    /// for clocks that don't follow the time of day, and where the time of day is unreliable.
    ///
    /// # Errors
    ///
    /// [`RestoreError`] if the snapshot is invalid or can't be read; nothing changes then.
    pub fn restore_after(
        &mut self,
        reader: &mut (impl io::Read + ?Sized),
        elapsed: Duration,
    ) -> Result<RestoredMap, RestoreError> {
        self.restore_elapsed(&mut &mut *reader, Elapsed::Known(elapsed), false)
    }

    fn restore_elapsed(
        &mut self,
        reader: &mut dyn io::Read,
        elapsed: Elapsed,
        is_whole: bool,
    ) -> Result<RestoredMap, RestoreError> {
        // Read after the time of day, so that the elapsed time is not overestimated.
        let now = self.clock.now();
        let how = How {
            now,
            elapsed,
            is_whole,
        };
        self.restore_by(reader, &how)
    }
}

impl<K, A, C, S> KeyedMap<K, A, C, S>
where
    K: Hash + Eq + Clone + SnapshotKey,
    A: ChangeQuota + Rebase + Settings,
    S: BuildHasher,
{
    /// Restores a snapshot at this tick, which was written `elapsed` ago: see
    /// [`restore_after`](Self::restore_after).
    ///
    /// # Errors
    ///
    /// [`RestoreError`] if the snapshot is invalid or can't be read; nothing changes then.
    pub fn restore_at(
        &mut self,
        reader: &mut (impl io::Read + ?Sized),
        now: Tick,
        elapsed: Duration,
    ) -> Result<RestoredMap, RestoreError> {
        let how = How {
            now,
            elapsed: Elapsed::Known(elapsed),
            is_whole: false,
        };
        self.restore_by(&mut &mut *reader, &how)
    }
}
