//! The memory of a keyed table: zeroed lines aligned to a cache line, used by several threads and
//! freed by a thread that did not allocate them.

use std::hash::{Hash, Hasher};

use tollgate::Keyed;
use tollgate::keyed::KeyHasher;

use crate::support::*;

/// The hash of a number is the number, so that a test can choose a key's line.
struct Same;

struct Number(u64);

impl Hasher for Number {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        unreachable!("{bytes:?} are no number");
    }
    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

impl KeyHasher for Same {
    fn hash_key<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        let mut number = Number(0);
        key.hash(&mut number);
        number.finish()
    }
}

fn table(capacity: usize) -> Keyed<TokenBucket, ManualClock> {
    let bucket = TokenBucket::new(Quota::per_hour(3)).expect("a bucket");
    Keyed::with_clock(bucket, capacity, ManualClock::new()).expect("a table")
}

/// The start of the first line depends on where the memory is, so tables of one size are created
/// several times. The keys are in all lines from the first to the last.
#[test]
fn threads_share_a_table_that_another_one_frees() {
    /// The largest hash whose bits all count.
    const LAST: u64 = u64::MAX >> 4;
    deadline("threads that share a table", || {
        let keys = scaled(3, 1000, 1000);
        let key = |place: u64| (u128::from(LAST) * u128::from(place) / u128::from(keys - 1)) as u64;
        let capacities = [1, 1376, 1, 1375, 2000, 5000];
        for capacity in &capacities[..scaled(2, 6, 6) as usize] {
            // The limiter already has a table. Creating another one frees it.
            let limiter = Arc::new(table(*capacity).with_hasher(Same));
            assert!(limiter.slots() >= 2048 && limiter.slots() >= *capacity);
            let granted = sum(0..4, |id| {
                let places = (0..keys).map(|place| (place + id) % keys);
                places
                    .map(|place| u64::from(limiter.try_acquire(&key(place)).is_ok()))
                    .sum()
            });
            assert_eq!((granted, limiter.len() as u64), (3 * keys, keys));
            let last = Arc::clone(&limiter);
            drop(limiter);
            let there = thread::spawn(move || last.key(&LAST).available());
            assert_eq!(there.join().expect("no panic"), 0);
        }
    });
}

#[test]
fn a_borrow_from_a_table_lives_as_long_as_the_table() {
    let limiter = table(1);
    let (key, table) = (limiter.key("alice"), &limiter);
    let reserved = key.reserve(2).expect("two of three");
    assert!(table.try_acquire("alice").is_ok() && key.try_acquire().is_err());
    assert_eq!(reserved.cancel().returned, 2);
    let mut outcomes = [const { Err(Denied::stuck(0)) }; 2];
    assert!(
        limiter
            .try_acquire_batch(&["alice", "bob"], &mut outcomes)
            .is_ok()
    );
    assert!(
        outcomes.iter().all(|outcome| outcome.is_ok()),
        "{outcomes:?}"
    );
    assert!(limiter.key("bob").remove() && limiter.len() == 1);
}
