//! Who is denied after many changes of the quota is carried over once, and not by each denial.

use std::cell::Cell;
use std::time::Duration;

use tollgate::{
    Algorithm, ConfigError, Denied, Granted, Keep, Keyed, ManualClock, Quota, Requota, Settings,
    Tick, TokenBucket,
};

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
