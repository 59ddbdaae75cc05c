//! After many changes of the quota a word is carried over once: not by each denial, nor by each new key that looks at it.

use std::cell::Cell;
use std::time::Duration;

use tollgate::{
    Algorithm, ConfigError, Denied, Granted, Keep, Keyed, ManualClock, Overflow, Quota, Requota,
    Settings, Tick, TokenBucket,
};

use crate::{Chosen, in_sixteen_slots};

thread_local! {
    /// How often a word was carried over.
    static CARRIED: Cell<u64> = const { Cell::new(0) };
}

/// A bucket that counts.
#[derive(Debug, Clone)]
struct Counting(TokenBucket);

impl Algorithm for Counting {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        self.0.step(word, now, n)
    }

    fn available(&self, word: u64, now: Tick) -> u64 {
        self.0.available(word, now)
    }

    fn is_idle(&self, word: u64, now: Tick) -> bool {
        self.0.is_idle(word, now)
    }
}

impl Requota for Counting {
    fn quota(&self) -> Quota {
        self.0.quota()
    }

    fn with_quota(&self, quota: Quota) -> Result<Self, ConfigError> {
        self.0.with_quota(quota).map(Self)
    }

    fn carry_over(&self, word: u64, now: Tick, next: &Self) -> u64 {
        CARRIED.set(CARRIED.get() + 1);
        self.0.carry_over(word, now, &next.0)
    }
}

impl Settings for Counting {
    const WORDS: usize = TokenBucket::WORDS;

    fn save(&self, write: &mut impl FnMut(u64)) {
        self.0.save(write);
    }

    fn restore(read: &mut impl FnMut() -> u64) -> Option<Self> {
        TokenBucket::restore(read).map(Self)
    }
}

#[test]
fn a_denial_carries_a_word_over_once() {
    let bucket = TokenBucket::new(Quota::per_hour(100)).expect("a bucket");
    let clock = ManualClock::at(Tick::from_nanos(7));
    let gate = Keyed::with_clock(Counting(bucket), 1, clock).expect("a table");
    let key = gate.key("key");
    assert_eq!(key.take_up_to(100).n(), 100);
    for change in 1..40 {
        let quota = Quota::per_hour(100 + change % 3);
        gate.set_quota(quota, Keep::AsIs).expect("a quota");
        gate.clock().advance(Duration::from_millis(1));
    }
    for _ in 0..1000 {
        assert!(key.try_acquire().is_err());
        assert_eq!(key.available(), 0);
    }
    // Once by who was denied, or by the changes, when it was the turn of its part of the table.
    let carried = CARRIED.get();
    assert!((39..100).contains(&carried), "{carried}");
}

/// How many words are carried over while a new key asks for the place of one of sixteen that are all busy.
fn carried(gate: &Keyed<Counting, ManualClock, Chosen>, key: u64) -> u64 {
    CARRIED.set(0);
    let evicts = gate.overflow() == Overflow::Evict;
    assert_eq!(gate.try_acquire(&key).is_ok(), evicts);
    CARRIED.get()
}

/// Each change is made up for once, by the first that comes along, and not by each one again.
#[test]
fn a_new_key_makes_up_for_changes_once() {
    for overflow in [Overflow::Evict, Overflow::Deny] {
        let quota = |n: u64| Quota::per_hour(n).burst(100);
        let algorithm = Counting(TokenBucket::new(quota(10)).expect("a bucket"));
        let gate = Keyed::with_clock(algorithm, 1, ManualClock::new()).expect("a table");
        let gate = gate.with_hasher(Chosen::default()).with_overflow(overflow);
        let keys = in_sixteen_slots(20);
        let (there, new) = keys.split_at(16);
        for key in there {
            gate.try_acquire_n(key, 50).expect("it is fresh");
        }
        for change in 1..=40 {
            gate.set_quota(quota(10 + change), Keep::AsIs)
                .expect("a quota");
        }
        let took: Vec<u64> = new.iter().map(|key| carried(&gate, *key)).collect();
        // A change itself has brought a part of the table up to date, where some of them may be.
        assert!((200..=640).contains(&took[0]), "{took:?}, {overflow:?}");
        assert_eq!(took[1..], [0, 0, 0], "{overflow:?}");
    }
}
