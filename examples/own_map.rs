//! A limit for each key, in a concurrent map of your own: its keys can be listed and removed.
//!
//! An [`AtomicWord`] finds the word of its key in the map. A limiter on this word has all methods.

use std::error::Error;
use std::time::Duration;

use dashmap::DashMap;
use dashmap::mapref::one::RefMut;
use tollgate::algorithm::Algorithm;
use tollgate::clock::Clock;
use tollgate::store::{AtomicWord, Place, WordCell};
use tollgate::{Limiter, ManualClock, Quota, Tick, TokenBucket};

struct OwnMap {
    words: DashMap<String, WordCell>,
    /// The word of all absent keys: the largest that was purged. With 0, a thread with an old tick
    /// would find a purged key full too early.
    absent: WordCell,
    bucket: TokenBucket,
    clock: ManualClock,
}

impl OwnMap {
    /// Returns the limiter of a key. Each method looks the key up, so the key may leave meanwhile.
    fn key<'a>(&'a self, name: &'a str) -> Limiter<TokenBucket, &'a ManualClock, KeyWord<'a>> {
        Limiter::with_cell(self.bucket, &self.clock, KeyWord { map: self, name })
    }

    /// Removes the keys whose buckets are full. The map is locked against decisions on these keys.
    fn purge_idle(&self) {
        let now = self.clock.now();
        self.words.retain(|_, cell| {
            let word = cell.load();
            let is_idle = self.bucket.is_idle(word, now);
            let mut absent = self.absent.load();
            while is_idle && absent < word && self.absent.compare_exchange(absent, word).is_err() {
                absent = self.absent.load();
            }
            !is_idle
        });
    }
}

/// The word of a key, in the map or absent.
struct KeyWord<'a> {
    map: &'a OwnMap,
    name: &'a str,
}

impl KeyWord<'_> {
    fn insert(&self) -> RefMut<'_, String, WordCell> {
        let entry = self.map.words.entry(self.name.to_owned());
        entry.or_insert_with(|| WordCell::new(self.map.absent.load()))
    }
}

impl AtomicWord for KeyWord<'_> {
    fn load(&self) -> u64 {
        let found = self.map.words.get(self.name);
        found.map_or_else(|| self.map.absent.load(), |cell| cell.load())
    }

    fn compare_exchange(&self, word: u64, next: u64) -> Result<(), u64> {
        match self.map.words.get(self.name) {
            Some(cell) => cell.compare_exchange(word, next),
            None => self.insert().compare_exchange(word, next),
        }
    }

    fn swap(&self, next: u64) -> u64 {
        self.insert().swap(next)
    }

    fn place(&self) -> Place {
        Place::of(self.map).with_hash(self.map.words.hash_usize(&self.name) as u64)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let map = OwnMap {
        words: DashMap::new(),
        absent: WordCell::new(0),
        bucket: TokenBucket::new(Quota::per_hour(5))?,
        clock: ManualClock::new(),
    };
    let (alice, bob) = (map.key("alice"), map.key("bob"));
    let left = alice.try_acquire_n(5)?.remaining();
    assert_eq!((left, bob.charge(6).debt()), (0, 1));

    map.clock.advance(Duration::from_secs(3600)); // alice has all 5 permits again, bob 4
    map.purge_idle();
    let keys: Vec<String> = map.words.iter().map(|entry| entry.key().clone()).collect();
    assert_eq!((keys, alice.available()), (vec!["bob".into()], 5));
    assert!(alice.at(Tick::ZERO).try_acquire_n(5).is_err(), "too early");
    assert!(map.words.remove("bob").is_some()); // this allows one more burst
    assert_eq!(bob.available(), 5);
    Ok(())
}
