//! Restores a snapshot, and converts it to a map's clock and algorithms.

use core::cmp::Reverse;
use core::hash::{BuildHasher, Hash};
use core::time::Duration;
use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;
use std::vec::Vec;

use super::{ALGORITHM, BANNED, END, KEY, MAGIC, MAX_KEY, NUMBER, PROTECTED, SnapshotKey, VERSION};
use crate::algorithm::{ChangeQuota, Rebase, Settings};
use crate::ban::{banned_until, last_without_permits};
use crate::clock::Tick;
use crate::keyed_map::KeyedMap;
use crate::keyed_map::entries::Entries;
use crate::keyed_map::entry::{MAX_WORD, MapEntry, Successor, first_word};
use crate::keyed_map::latest::SharedAlgorithm;
use crate::keyed_map::rank::spent;
use crate::keyed_map::stored::{KeyTicket, Stored};
use crate::snapshot::elapsed::Elapsed;
use crate::snapshot::error::RestoreError;
use crate::snapshot::numbers::Input;
use crate::snapshot::parameters::{MAX_NAME, Parameters, name_of};
use crate::sync::Ordering;

/// The result of [`KeyedMap::restore`](crate::KeyedMap::restore).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct RestoredMap {
    /// Keys in the map.
    pub keys: u64,
    /// Keys that were left out because they have become idle since the snapshot.
    pub idle: u64,
    /// Keys that were left out because the map has no room for all: those that would be evicted
    /// first. Each may get one more burst.
    pub no_room: u64,
    /// Keys that had another quota or algorithm than in this map, and were carried over
    /// ([`ChangeQuota::carry_over`](crate::algorithm::ChangeQuota::carry_over)).
    pub carried_over: u64,
    /// The time since the snapshot that the restore counted.
    pub elapsed: Duration,
}

/// How to restore a snapshot.
pub(super) struct How {
    pub(super) now: Tick,
    pub(super) elapsed: Elapsed,
    /// Whether the input must end with the snapshot.
    pub(super) is_whole: bool,
}

/// A key to be restored.
struct Kept<A> {
    algorithm: SharedAlgorithm<A>,
    is_own: bool,
    word: u64,
    is_banned: bool,
    is_protected: bool,
    number: u64,
}

/// The algorithm that the next keys of a snapshot had.
struct Was<A> {
    parameters: Parameters,
    /// The algorithm, if these parameters are valid.
    algorithm: Option<A>,
}

/// A tick of the snapshot's clock, and the tick of the map's clock that corresponds to it.
#[derive(Clone, Copy)]
struct Moved {
    from: Tick,
    to: Tick,
}

/// Returns a key's word under this algorithm, and whether it was carried over.
fn goes_on<A: ChangeQuota + Rebase + Settings>(
    was: &Was<A>,
    to: &A,
    (word, is_banned): (u64, bool),
    moved: Moved,
) -> Result<(u64, bool), RestoreError> {
    let (from, now) = (moved.from, moved.to);
    let end_of_ban = |was: &A| {
        let last = is_banned.then(|| last_without_permits(was, word, from));
        Some(now.saturating_add(last.flatten()?.saturating_since(from)))
    };
    let is_same = Parameters::of(to) == was.parameters;
    let (next, end) = match (is_same, &was.algorithm) {
        (true, _) => {
            let next = to.rebase(word, from, now);
            // If this clock's periods begin at other times, the word may have permits before the
            // ban ends.
            (
                next,
                end_of_ban(to).filter(|end| to.available(next, *end) > 0),
            )
        }
        (false, Some(was)) => {
            let next = was.carry_over(was.rebase(word, from, now), now, to);
            // The ban's end comes from the old algorithm: the new one may pay debt back at another
            // rate.
            (next, end_of_ban(was))
        }
        (false, None) => return Err(RestoreError::OtherParameters { plan: None }),
    };
    let next = end.map_or(next, |end| banned_until(to, end));
    Ok((next.min(MAX_WORD), !is_same))
}

/// The keys that were read.
struct Keys<K, A> {
    kept: HashMap<K, Kept<A>>,
    now: Tick,
    capacity: usize,
    no_room: u64,
    /// How many of those without room were protected.
    no_room_protected: u64,
}

impl<K: Hash + Eq, A: ChangeQuota> Keys<K, A> {
    /// Drops the keys for which there is no room, if they are many or if `is_last`.
    fn prune(&mut self, is_last: bool) {
        let most = match is_last {
            true => self.capacity,
            false => self.capacity.saturating_mul(2).saturating_add(1024),
        };
        if self.kept.len() <= most {
            return;
        }
        let now = self.now;
        // The last to be evicted comes first. Keys with their own algorithms are before all others:
        // they are not evicted.
        let mut all: Vec<_> = self.kept.drain().collect();
        all.sort_by_cached_key(|(_, kept)| {
            let algorithm = &**kept.algorithm;
            let spent = spent(algorithm, kept.word, now);
            let standing = (kept.is_banned, kept.is_protected, spent);
            Reverse((kept.is_own, standing, Reverse(kept.number)))
        });
        for (_, gone) in all.iter().skip(self.capacity) {
            self.no_room = self.no_room.saturating_add(1);
            self.no_room_protected += u64::from(gone.is_protected);
        }
        all.truncate(self.capacity);
        self.kept.extend(all);
    }
}

impl<K, A, C, S> KeyedMap<K, A, C, S>
where
    K: Hash + Eq + Clone + SnapshotKey,
    A: ChangeQuota + Rebase + Settings,
    S: BuildHasher,
{
    /// Replaces the map's content with a snapshot's, or changes nothing.
    pub(super) fn restore_by(
        &mut self,
        reader: &mut dyn Read,
        how: &How,
    ) -> Result<RestoredMap, RestoreError> {
        let input = &mut Input::new(reader);
        let head = head::<A>(input)?;
        let elapsed = how.elapsed.since(head.time_of_day);
        let (from, to) = (head.at.saturating_add(elapsed), how.now);
        let mut restored = RestoredMap {
            elapsed,
            ..RestoredMap::default()
        };
        let mut keys = Keys {
            kept: HashMap::new(),
            now: to,
            capacity: self.capacity(),
            no_room: 0,
            no_room_protected: 0,
        };
        let horizon = self.read_blocks(input, &mut keys, &mut restored, Moved { from, to })?;
        if how.is_whole {
            input.is_over()?;
        }
        restored.no_room = keys.no_room;
        restored.keys = keys.kept.len() as u64;
        // A key that is not in the snapshot was idle at `from`, or became idle at the horizon or
        // earlier. A new key starts at the later of these ticks, converted to the map's clock.
        self.replace_all(keys, to.saturating_add(horizon.saturating_since(from)));
        Ok(restored)
    }

    /// Reads and checks all keys. Returns the horizon.
    fn read_blocks(
        &self,
        input: &mut Input<'_>,
        keys: &mut Keys<K, A>,
        restored: &mut RestoredMap,
        moved: Moved,
    ) -> Result<Tick, RestoreError> {
        let guard = self.entries.guard();
        let latest = self.latest.get();
        let (mut was, mut count, mut bytes) = (None, 0_u64, Vec::new());
        let horizon = loop {
            let kinds = if was.is_some() {
                (END, KEY)
            } else {
                (END, ALGORITHM)
            };
            match (input.number_within("kind of the block", kinds)?, &was) {
                (ALGORITHM, _) => {
                    let parameters = input.parameters()?;
                    let algorithm = parameters.algorithm();
                    was = Some(Was {
                        parameters,
                        algorithm,
                    });
                }
                (KEY, Some(was)) => {
                    let label = input.number()?;
                    let word = input.number_within("word of a key", (0, MAX_WORD))?;
                    let length = input.number_within("length of a key", (0, MAX_KEY))?;
                    input.bytes_of_length(length, &mut bytes)?;
                    count = count.saturating_add(1);
                    let key =
                        K::read_from(&bytes).ok_or(RestoreError::InvalidKey { key: count })?;
                    let found = self.entries.get(&self.hashed_key(&key), &guard);
                    let own = found.filter(|found| found.entry().has_its_own());
                    let own = own.map(|found| Arc::clone(found.entry().shared()));
                    let is_own = own.is_some();
                    let algorithm = own.unwrap_or_else(|| Arc::clone(&latest));
                    let is_banned = label & BANNED != 0;
                    let (word, is_carried) = goes_on(was, &**algorithm, (word, is_banned), moved)?;
                    restored.carried_over += u64::from(is_carried);
                    // The key may be in the snapshot twice, if it left and returned while that was
                    // written. The last one counts.
                    keys.kept.remove(&key);
                    if algorithm.is_idle(word, moved.to) {
                        restored.idle = restored.idle.saturating_add(1);
                        continue;
                    }
                    let kept = Kept {
                        algorithm,
                        is_own,
                        word,
                        is_banned,
                        is_protected: label & PROTECTED != 0,
                        number: label & NUMBER,
                    };
                    keys.kept.insert(key, kept);
                    keys.prune(false);
                }
                _ => break Tick::from_nanos(input.number()?),
            }
        };
        input.number_within("number of keys in all", (count, count))?;
        let computed = input.sum();
        let found = input.number()?;
        if computed != found {
            return Err(RestoreError::Checksum { computed, found });
        }
        self.keep_own(keys);
        keys.prune(true);
        Ok(horizon)
    }

    /// Adds keys that have their own algorithms in this map but are not in the snapshot: they stay,
    /// and are fresh.
    fn keep_own(&self, keys: &mut Keys<K, A>) {
        let guard = self.entries.guard();
        for found in self.entries.all(&guard) {
            let entry = found.entry();
            if entry.has_its_own() && !keys.kept.contains_key(found.key()) {
                let fresh = Kept {
                    word: first_word(entry.algorithm(), keys.now),
                    algorithm: Arc::clone(entry.shared()),
                    is_own: true,
                    is_banned: false,
                    is_protected: false,
                    number: 0,
                };
                keys.kept.insert(found.key().clone(), fresh);
            }
        }
    }

    /// Replaces all keys with these, the oldest first.
    fn replace_all(&mut self, keys: Keys<K, A>, horizon: Tick) {
        let entries = Entries::new();
        let guard = entries.guard();
        let (mut kept, now) = (keys.kept.into_iter().collect::<Vec<_>>(), keys.now);
        kept.sort_by_key(|(_, kept)| kept.number);
        let count = kept.len() as u64;
        for (key, kept) in kept {
            let number = self.next_number();
            let ticket = KeyTicket {
                hash: self.hasher.hash_one(&key),
                id: number,
            };
            let entry = MapEntry::new(
                &Successor {
                    number,
                    algorithm: kept.algorithm,
                    is_own: kept.is_own,
                    is_banned: kept.is_banned,
                    word: kept.word,
                    since: now,
                },
                kept.is_protected,
            );
            entries.insert(Stored { key, ticket }, entry, &guard);
            entries.push_ticket(ticket);
            entries.newest().add(ticket);
        }
        drop(guard);
        // ORDERING: Relaxed. It publishes nothing: no other thread uses the map now, and a thread
        // that uses it later already sees what was done before.
        let before = self.tracked.swap(count, Ordering::Relaxed);
        self.counts
            .restored(before, keys.no_room, keys.no_room_protected);
        self.entries = entries;
        self.horizon.raise(horizon);
    }
}

/// The beginning of a snapshot.
struct Head {
    at: Tick,
    time_of_day: u64,
}

/// Reads the beginning of a snapshot, which must be of algorithm `A`.
fn head<A: Settings>(input: &mut Input<'_>) -> Result<Head, RestoreError> {
    let mut magic = [0; MAGIC.len()];
    input.bytes(&mut magic)?;
    if magic != MAGIC {
        return Err(RestoreError::NotASnapshot);
    }
    let (found, known) = (input.number()?, VERSION);
    if found == 0 || found > known {
        return Err(RestoreError::Version { found, known });
    }
    let at = Tick::from_nanos(input.number()?);
    let time_of_day = input.number()?;
    let found = input.name("length of the name", (0, MAX_NAME as u64))?;
    match found.as_bytes() == name_of::<A>() {
        true => Ok(Head { at, time_of_day }),
        false => Err(RestoreError::OtherAlgorithm {
            found,
            expected: A::NAME,
        }),
    }
}
