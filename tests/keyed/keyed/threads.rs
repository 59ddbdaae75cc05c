//! Threads on one table, with hot keys and cold ones: each key stays within its bound, plus one
//! burst for each eviction, removal or reset.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Barrier, RwLock};

use tollgate::stats::KeyedStats;
use tollgate_audit::{Audit, Log};

use crate::support::histories::{bursts_more, of_each};
use crate::support::hooks::{Call, Hooked, on_calls, unhook};
use crate::support::*;

/// The verbs that threads use beside taking permits, and how quickly time advances.
#[derive(Clone, Copy, PartialEq)]
enum Mix {
    Taking,
    TakingSlowly,
    Everything,
}

type Table = Keyed<AnyAlgorithm, ManualClock, IdentityState>;

/// Runs one thread's turns. Each advances the time by a few nanoseconds, and the thread's tick is
/// up to `skew` behind or ahead.
fn work(limiter: &Table, keys: &[u64], turns: u64, skew: u64, mix: Mix, seed: u64) -> Vec<Log> {
    let mut logs = vec![Log::new(); keys.len()];
    let mut random = Random(seed);
    for _ in 0..turns {
        let step = random.below(if mix == Mix::TakingSlowly { 100 } else { 4 });
        limiter.clock().advance(Duration::from_nanos(step));
        let begun = limiter.key(&0_u64).now();
        let now = tick(begun.as_nanos() + random.below(2 * skew + 1) - skew);
        let which = random.skewed(keys.len() as u64) as usize;
        let (key, log) = (limiter.key(&keys[which]), &mut logs[which]);
        let choice = match mix {
            Mix::Taking | Mix::TakingSlowly => 8 + random.below(56),
            Mix::Everything => random.below(64),
        };
        let entry = match choice {
            0 if random.one_in(30) && key.remove() => log.reset(now),
            1 if random.one_in(30) => {
                key.reset();
                log.reset(now)
            }
            2 => log.charged(&key.at(now).charge(random.below(5))),
            3 | 4 => log.gave_back(now, key.at(now).refund(random.below(3))),
            5 if random.one_in(50) => {
                let until = now.saturating_add(Duration::from_nanos(random.below(300)));
                let _ = key.at(now).ban(until);
                continue;
            }
            6..=20 => log.granted(&key.at(now).take_up_to(random.below(5))),
            choice => match key.at(now).try_acquire_n(random.below(4)) {
                Err(_) => continue,
                Ok(granted) if mix == Mix::Everything && choice % 4 == 0 => {
                    log.granted(&granted).during(begun, key.now());
                    let at = granted.at();
                    let n = key.at(now).undo(granted);
                    log.gave_back(now.max(at), n)
                }
                Ok(granted) => log.granted(&granted),
            },
        };
        entry.during(begun, key.now());
    }
    logs
}

/// Returns the history of each key, after as many rounds as needed.
fn record(limiter: &Table, keys: &[u64], mix: Mix, enough: fn(&KeyedStats) -> bool) -> Vec<Audit> {
    let mut all = Vec::new();
    while all.is_empty() || !enough(&limiter.stats()) {
        let seed = all.len() as u64;
        all.extend(on_threads(0..4, |id| {
            work(limiter, keys, often(1_000), 100 * id, mix, seed + id)
        }));
    }
    of_each(&all)
}

const KINDS: [&str; 5] = [
    "token-bucket 1/10ns burst 7",
    "leaky-meter 3/40ns burst 20",
    "fixed-window 9/500ns",
    "sliding-window 9/500ns",
    "intervals 9/500ns burst 20",
];

/// Few hot keys that are always present, with all verbs, and many keys for a few slots, which are
/// reused all the time.
#[test]
fn keys_shared_by_all_threads_keep_their_bounds() {
    deadline("keys that are forgotten or leave as idle", || {
        let few: Vec<u64> = (0..5).map(mix).collect();
        for text in KINDS {
            let limiter = crowded(algorithm(text)).with_overflow(Overflow::Deny);
            let enough = |stats: &KeyedStats| stats.removed > 3;
            bursts_more(&record(&limiter, &few, Mix::Everything, enough), text, 0);
            let stats = limiter.stats();
            assert_eq!((stats.expired, stats.evicted, stats.no_room), (0, 0, 0));
            assert_eq!(stats.inserted, stats.tracked + stats.removed);

            let limiter = crowded(algorithm(text)).with_overflow(Overflow::Deny);
            let enough = |stats: &KeyedStats| stats.expired > often(300);
            let histories = record(&limiter, in_sixteen_slots(40), Mix::TakingSlowly, enough);
            bursts_more(&histories, text, 0);
            let stats = limiter.stats();
            assert_eq!((stats.evicted, stats.removed), (0, 0));
            assert_eq!(stats.inserted, stats.tracked + stats.expired);
        }
    });
}

#[test]
fn each_eviction_or_admission_without_room_allows_one_extra_burst() {
    deadline("keys that find no room", || {
        let text = "token-bucket 1/50ns burst 7";
        for overflow in [Overflow::Evict, Overflow::Admit] {
            let limiter = crowded(algorithm(text)).with_overflow(overflow);
            let enough = |stats: &KeyedStats| stats.evicted + stats.no_room > often(500);
            let histories = record(&limiter, in_sixteen_slots(100), Mix::Taking, enough);
            let stats = limiter.stats();
            bursts_more(&histories, text, stats.evicted + stats.no_room);
            let left = stats.expired + stats.evicted;
            assert_eq!(stats.inserted, stats.tracked + left);
            assert!(overflow == Overflow::Evict || stats.evicted == 0);
        }
    });
}

/// Single decisions, batches and views, on the fast path and on the path that all take after a
/// change of the quota. Each key gets exactly its burst, or all that was asked for.
#[test]
fn all_ways_to_ask_together_grant_each_key_exactly_its_burst() {
    // So few that all find room, in any order.
    const KEYS: u64 = 400;
    const BURST: u64 = 20;
    let mut random = Random(11);
    let asked: Vec<u64> = (0..often(20_000)).map(|_| random.skewed(KEYS)).collect();
    let ask = |limiter: &Keyed<TokenBucket, ManualClock>, turn: usize, keys: &[u64]| match turn % 3
    {
        0 => {
            let mut outcomes: Vec<_> = keys.iter().map(|_| Err(Denied::busy(1))).collect();
            limiter
                .try_acquire_batch(keys, &mut outcomes)
                .expect("an outcome for each key");
            Vec::from_iter(outcomes.iter().map(|outcome| match outcome {
                Ok(_) => true,
                Err(Denied::Later { .. }) => false,
                Err(denied) => panic!("{denied}"),
            }))
        }
        1 => Vec::from_iter(keys.iter().map(|key| limiter.try_acquire(key).is_ok())),
        _ => Vec::from_iter(
            keys.iter()
                .map(|key| limiter.key(key).take_up_to(1).n() == 1),
        ),
    };
    deadline("threads that decide in batches", move || {
        for (changes, batch) in [(0, 1), (0, 7), (0, 16), (1, 17), (0, 64), (70, 1000)] {
            let limiter = table(bucket("20/h")).with_overflow(Overflow::Deny);
            for _ in 0..changes {
                let same = limiter.set_quota(Quota::per_hour(BURST), Keep::Fresh);
                same.expect("a quota");
            }
            let batches: Vec<&[u64]> = asked.chunks(batch).collect();
            let granted = on_threads(0..4, |id| {
                let batches = batches.iter().enumerate().skip(id as usize).step_by(4);
                let granted = batches.map(|(turn, keys)| (*keys, ask(&limiter, turn / 4, keys)));
                granted.collect::<Vec<_>>()
            });
            let mut of_each = vec![(0, 0); KEYS as usize];
            for (keys, granted) in granted.into_iter().flatten() {
                for (key, granted) in keys.iter().zip(granted) {
                    let (asked, got) = &mut of_each[*key as usize];
                    (*asked, *got) = (*asked + 1, *got + u64::from(granted));
                }
            }
            for (key, (asked, got)) in (0_u64..).zip(&of_each) {
                let left = limiter.key(&key).available();
                let right = (BURST.min(*asked), BURST - got);
                assert_eq!((*got, left), right, "{key} {batch}");
            }
            let there = of_each.iter().filter(|(asked, _)| *asked > 0).count() as u64;
            let stats = limiter.stats();
            let counts = [limiter.len() as u64, stats.tracked, stats.inserted];
            assert_eq!(counts, [there; 3]);
            let left = [stats.idle, stats.expired, stats.evicted, stats.removed];
            assert_eq!((left, stats.no_room), ([0; 4], 0));
        }
    });
}

/// Threads take permits of these keys while the quota changes repeatedly. Each interval has at most
/// the largest burst plus what the highest rate makes. Changes come between decisions, so no tick
/// is older than a change before it. Otherwise the larger rate's permits for the difference would
/// be added, as `Adjustable` documents. (A model covers changes that overlap with decisions.)
fn while_quotas_change(keys: &[u64], quotas: [(u64, u64); 4]) {
    let quotas =
        quotas.map(|(interval, burst)| Quota::per(1, Duration::from_nanos(interval)).burst(burst));
    let limiter = crowded(algorithm("token-bucket 1/10ns burst 7")).with_overflow(Overflow::Deny);
    limiter.set_quota(quotas[3], Keep::Fresh).expect("a quota");
    let apart = RwLock::new(());
    let seen = on_threads(0..4, |id| {
        if id > 0 {
            let turns = (0..often(300)).map(|turn| {
                let _held = apart.read().expect("no panic");
                work(&limiter, keys, 10, 0, Mix::Taking, 10_000 * id + turn)
            });
            return turns.collect();
        }
        for turn in 0..200 {
            let held = apart.write().expect("no panic");
            let quota = quotas[turn % 4];
            limiter.set_quota(quota, Keep::AsIs).expect("a quota");
            drop(held);
            thread::yield_now();
        }
        Vec::new()
    });
    // The third quota has the highest rate and the largest burst.
    let all: Vec<Vec<Log>> = seen.into_iter().flatten().collect();
    bursts_more(&of_each(&all), "token-bucket 1/10ns burst 20", 0);
    // Even the slowest quota makes that many permits in this time, in any schedule.
    let grants: usize = all.iter().flatten().map(Log::len).sum();
    assert!(grants > 100, "{grants}");
}

#[test]
fn keys_keep_their_bounds_while_quotas_change() {
    deadline("quotas that change", || {
        let keys: Vec<u64> = (0..4).map(mix).collect();
        while_quotas_change(&keys, [(10, 7), (25, 3), (10, 20), (70, 9)]);
        // A key that is idle under a small burst, leaves and comes back has all of a larger burst,
        // so these are similar.
        let alike = [(15, 20), (25, 20), (10, 20), (70, 20)];
        while_quotas_change(in_sixteen_slots(40), alike);
    });
}

/// Asks for a key. The decision waits for the other thread at two of its operations, as often as
/// the arguments say. At the first, the key has not been found. At the second, a slot is claimed
/// and the key has been searched for again. If the decision lacks such an operation, the thread
/// waits after it.
fn ask_and_wait(
    limiter: &Keyed<Hooked, ManualClock, IdentityState>,
    key: &u64,
    other: &Arc<Barrier>,
    first_step: u64,
    second_step: u64,
) -> bool {
    let waits = Rc::new(RefCell::new(vec![second_step, first_step]));
    let (left, barrier) = (Rc::clone(&waits), Arc::clone(other));
    on_calls(move |call| {
        if call == Call::Step {
            for _ in 0..left.borrow_mut().pop().unwrap_or(0) {
                barrier.wait();
            }
        }
        true
    });
    let is_granted = limiter.try_acquire(key).is_ok();
    unhook();
    for _ in 0..waits.take().iter().sum() {
        other.wait();
    }
    is_granted
}

/// All slots of a key are taken. One is released, and a thread finds it free. Another one is
/// released, and a second thread, which finds both free, may prefer that one for the same key.
/// Neither claims a slot before both have looked, and neither establishes its claim before both
/// have looked again: only then can each see the other's claim. The key gets one slot and one
/// burst.
#[test]
fn a_key_that_two_threads_insert_at_once_has_one_slot() {
    deadline("two threads that insert the same key", || {
        let (there, new) = in_sixteen_slots(17).split_at(16);
        for one in there {
            for another in there.iter().filter(|key| *key != one) {
                let limiter = crowded(Hooked(bucket("1/h"))).with_overflow(Overflow::Deny);
                for key in there {
                    assert!(limiter.try_acquire(key).is_ok());
                }
                let both = Arc::new(Barrier::new(2));
                let granted = on_threads(0..2, |id| {
                    if id == 0 {
                        limiter.key(one).remove();
                        return ask_and_wait(&limiter, &new[0], &both, 2, 1);
                    }
                    both.wait();
                    limiter.key(another).remove();
                    ask_and_wait(&limiter, &new[0], &both, 1, 1)
                });
                assert_ne!(granted[0], granted[1], "{one} {another}");
                assert_eq!(limiter.len(), 15, "{one} {another}");
                assert!(limiter.key(&new[0]).remove() && !limiter.key(&new[0]).remove());
            }
        }
    });
}
