//! The verbs of a map that write and restore snapshots.

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
    /// Writes what is in the map, so that it can be [restored](Self::restore) after a restart,
    /// which then hands no key a fresh burst. Says how many keys were written: 32 bytes each, and
    /// the key.
    ///
    /// Other threads may decide meanwhile. Each key is written as it is when its turn comes;
    /// permits that it is granted after that are not in the snapshot. Keys that can't be told from
    /// fresh ones are left out.
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
    /// The writer's error: then what was written is no snapshot.
    pub fn snapshot(&self, writer: &mut (impl io::Write + ?Sized)) -> io::Result<u64> {
        self.snapshot_at(writer, self.clock.now())
    }

    /// [`snapshot`](Self::snapshot) to a file. It is written beside it and takes its place when it
    /// is complete, so that there is always a whole one. On Unix it can be read by the process's
    /// user only.
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
    /// The system's error: then the file is as it was.
    pub fn snapshot_to(&self, path: impl AsRef<Path>) -> io::Result<u64> {
        // Each key is a few small writes.
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
    /// Puts what a [snapshot](Self::snapshot) holds in the place of what is in the map, and makes
    /// it stand on this map's clock as it stood on the other one. The time between counts, by the
    /// time of day; none, if that went back. All of it is read and checked before anything is
    /// changed, and nothing is read that comes after it.
    ///
    /// - The map may have **another capacity**. If there is no room for all keys, those that would
    ///   be evicted first give way. The hasher may be any.
    /// - The map may have **another quota**, or another algorithm of those in an
    ///   [`AnyAlgorithm`](crate::AnyAlgorithm): keys are carried over
    ///   ([`ChangeQuota::carry_over`]).
    /// - **Algorithms of keys are not in a snapshot**, only what the keys had left by them. A key
    ///   that has [one of its own](Self::set_algorithm) in this map is carried over to it, and any
    ///   other key to the algorithm of all. So set them before the restore.
    /// - A key that was **banned** stays banned until it would have been.
    /// - Which keys are protected, and which came first, is kept.
    ///
    /// A grant from before the snapshot can't be given back. No permit comes earlier than it would
    /// have; where a word has to be rounded, it is rounded against the caller.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{KeyedMap, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let quota = Quota::per_minute(60);
    /// let map: KeyedMap<u64, _> = KeyedMap::token_bucket(quota, 1000)?;
    /// map.try_acquire_n(&7, 60)?;
    /// let mut bytes = Vec::new();
    /// map.snapshot(&mut bytes)?;
    ///
    /// let mut map: KeyedMap<u64, _> = KeyedMap::token_bucket(quota.burst(80), 5000)?;
    /// map.set_algorithm(&8, map.algorithm())?;
    /// let restored = map.restore_after(&mut bytes.as_slice(), Duration::from_secs(7))?;
    /// assert_eq!((restored.keys, restored.carried_over), (2, 1));
    /// assert_eq!(map.key(&7).available(), 7);
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
    ) -> Result<RestoredMap, RestoreError> {
        self.restore_elapsed(&mut &mut *reader, Elapsed::until_now(), false)
    }

    /// [`restore`](Self::restore) from a file, which must hold nothing else.
    ///
    /// # Errors
    ///
    /// [`RestoreError`] says what is wrong with the file: then nothing has changed.
    pub fn restore_from(&mut self, path: impl AsRef<Path>) -> Result<RestoredMap, RestoreError> {
        let mut file = io::BufReader::new(File::open(path)?);
        self.restore_elapsed(&mut file, Elapsed::until_now(), true)
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
    ) -> Result<RestoredMap, RestoreError> {
        self.restore_elapsed(&mut &mut *reader, Elapsed::Known(elapsed), false)
    }

    fn restore_elapsed(
        &mut self,
        reader: &mut dyn io::Read,
        elapsed: Elapsed,
        is_whole: bool,
    ) -> Result<RestoredMap, RestoreError> {
        // Later than the time of day, so that no more time seems to have passed than has.
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
    ) -> Result<RestoredMap, RestoreError> {
        let how = How {
            now,
            elapsed: Elapsed::Known(elapsed),
            is_whole: false,
        };
        self.restore_by(&mut &mut *reader, &how)
    }
}
