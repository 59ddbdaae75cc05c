//! Batches and single decisions from a rayon pool at a fixed tick: each key gets exactly its burst, or all that was asked
//! for, and everything adds up.

use rayon::ThreadPoolBuilder;
use rayon::prelude::*;

use tollgate::{Denied, Keyed, ManualClock, Overflow, Quota, Tick, TokenBucket};

use crate::Random;

const KEYS: u64 = 900;
const BURST: u64 = 20;

/// Many keys, some of them again and again.
fn asked() -> Vec<u64> {
    let mut random = Random(11);
    (0..60_000).map(|_| random.skewed(KEYS)).collect()
}

fn table() -> Keyed<TokenBucket, ManualClock> {
    let bucket = TokenBucket::new(Quota::per_hour(BURST)).expect("a bucket");
    let clock = ManualClock::at(Tick::from_nanos(99));
    let table = Keyed::with_clock(bucket, 1000, clock).expect("a table");
    table.with_overflow(Overflow::Deny)
}

/// Whether each key got what it should, of what was asked in this order.
fn adds_up(gate: &Keyed<TokenBucket, ManualClock>, asked: &[u64], granted: &[bool]) {
    assert_eq!(asked.len(), granted.len());
    let mut of_each = vec![(0_u64, 0_u64); KEYS as usize];
    for (key, granted) in asked.iter().zip(granted) {
        let (asked, got) = &mut of_each[*key as usize];
        (*asked, *got) = (*asked + 1, *got + u64::from(*granted));
    }
    for (key, (asked, got)) in of_each.iter().enumerate() {
        assert_eq!(*got, BURST.min(*asked), "{key}");
        let left = gate.key(&(key as u64)).available();
        assert_eq!(left, BURST - got, "{key}");
    }
    let there = of_each.iter().filter(|(asked, _)| *asked > 0).count() as u64;
    let stats = gate.stats();
    assert_eq!([stats.tracked, stats.inserted], [there; 2]);
    assert_eq!(gate.len() as u64, there);
    let none = [stats.idle, stats.taken_over, stats.evicted, stats.forgotten];
    assert_eq!((none, stats.no_room), ([0; 4], 0));
}

fn pool() -> rayon::ThreadPool {
    let builder = ThreadPoolBuilder::new().num_threads(4);
    builder.build().expect("a pool")
}

#[test]
fn batches_of_a_pool_add_up() {
    let asked = asked();
    for batch in [1, 7, 16, 17, 64, 1000] {
        let (gate, mut outcomes) = (table(), vec![Err(Denied::busy(1)); asked.len()]);
        pool().install(|| {
            let batches = asked.par_chunks(batch).zip(outcomes.par_chunks_mut(batch));
            batches.for_each(|(keys, outcomes)| {
                gate.check_many(keys, outcomes)
                    .expect("as long as the keys");
            });
        });
        let later = |outcome: &Result<_, Denied>| match outcome {
            Ok(_) => true,
            Err(denied) => {
                assert!(matches!(denied, Denied::Later { .. }), "{denied}");
                false
            }
        };
        let granted: Vec<bool> = outcomes.iter().map(later).collect();
        adds_up(&gate, &asked, &granted);
    }
}

#[test]
fn single_decisions_of_a_pool_add_up() {
    let (gate, asked) = (table(), asked());
    let ask = |key: &u64| gate.try_acquire(key).is_ok();
    let granted: Vec<bool> = pool().install(|| asked.par_iter().map(ask).collect());
    adds_up(&gate, &asked, &granted);
}

/// Some in batches, some one by one, some by views, all on the same keys.
#[test]
fn all_ways_together_add_up() {
    let (gate, asked) = (table(), asked());
    let granted: Vec<bool> = pool().install(|| {
        let ask = |(turn, keys): (usize, &[u64])| match turn % 3 {
            0 => {
                let mut outcomes = vec![Err(Denied::busy(1)); keys.len()];
                gate.check_many(keys, &mut outcomes).expect("as long");
                outcomes.iter().map(Result::is_ok).collect()
            }
            1 => keys
                .iter()
                .map(|key| gate.try_acquire(key).is_ok())
                .collect(),
            _ => {
                let taken = keys.iter().map(|key| gate.key(key).take_up_to(1).n() == 1);
                taken.collect::<Vec<bool>>()
            }
        };
        asked
            .par_chunks(50)
            .enumerate()
            .flat_map_iter(ask)
            .collect()
    });
    adds_up(&gate, &asked, &granted);
}
