//! A key's verbs return the same as a limiter's.

use std::hash::{BuildHasherDefault, Hasher};
use std::time::Duration;

use tollgate::clock::{Clock, NoClock};
use tollgate::traits::ReserveLimiter;
use tollgate::{AnyAlgorithm, KeyedMap, ManualClock, RateLimiter};

use super::{bucket_of, map, of};
use crate::support::model::{Answer, Model, SameGrant, Verb, say};
use crate::support::{Random, algorithm, bucket, deadline, tick};

/// Makes the same requests at the same ticks to a key and to its model, in a map from which no key
/// leaves.
#[test]
fn keys_answer_as_a_limiter_does() {
    for text in [
        "token-bucket 3/7ns burst 4",
        "gcra 1/10ns tolerance 15ns",
        "leaky-queue 1/10ns burst 5 free 2",
        "fixed-window 3/40ns",
        "sliding-window 3/40ns",
        "intervals 2/30ns burst 4",
    ] {
        let map: KeyedMap<u64, AnyAlgorithm, NoClock> = of(algorithm(text), 4);
        let mut model = Model::new(&[algorithm(text)]);
        let (mut random, mut now) = (Random(3), 0);
        let mut kept = Vec::new();
        for _ in 0..1_000 {
            now += random.below(12);
            let n = random.below(5);
            let verb = match random.below(10) {
                0 => Verb::Charge(n),
                1 => Verb::Refund(n),
                2 => Verb::Available,
                3 => Verb::TimeUntil(n),
                4 => Verb::Level,
                5 => Verb::IsIdle,
                6 if !kept.is_empty() => {
                    let which = random.below(kept.len() as u64);
                    Verb::Undo(kept.swap_remove(which as usize), (0, 0))
                }
                7 if random.one_in(20) => {
                    kept.clear();
                    Verb::Reset
                }
                8 => Verb::TakeUpTo(n),
                _ => Verb::Acquire(n),
            };
            let view = map.key(&7).at(tick(now));
            let right = model.ask(7, 0, tick(now), &verb);
            let asked = format!("{verb:?}");
            let said = match verb {
                Verb::IsIdle => Answer::Yes(view.is_idle()),
                verb => say!(view, verb),
            };
            assert_eq!(said, right, "{asked} at {now}, {text}");
            if let Answer::Outcome(Ok(SameGrant(granted))) = said {
                kept.push(granted);
            }
        }
    }
}

/// A grant of a key that has left, been removed or evicted is not returned to the key that came
/// after it.
#[test]
fn a_grant_is_not_returned_to_a_later_key() {
    let (map, _) = map(1);
    let key = map.key(&1);
    let first = key.at(tick(0)).try_acquire_n(2).expect("fresh");
    assert!(map.remove(&1));
    let second = key.at(tick(0)).try_acquire_n(2).expect("fresh");
    assert_eq!(key.at(tick(0)).undo(first), 0);
    assert_eq!(key.at(tick(0)).undo(second), 2);
}

/// Gives all keys the same hash.
#[derive(Default)]
struct Alike;

impl Hasher for Alike {
    fn write(&mut self, _: &[u8]) {}

    fn finish(&self) -> u64 {
        7
    }
}

#[test]
fn keys_with_equal_hashes_are_different_keys() {
    let map = of(bucket("1/s burst 2"), 10);
    assert!(map.try_acquire_at("carol", tick(0)).is_ok());
    // The present keys are removed with the hasher.
    let map: KeyedMap<String, _, _, _> = map.with_hasher(BuildHasherDefault::<Alike>::default());
    assert_eq!(map.len(), 0);
    for key in ["alice", "bob"] {
        assert!(map.try_acquire_n_at(key, 2, tick(0)).is_ok());
        assert!(map.try_acquire_at(key, tick(0)).is_err());
    }
}

/// A tick before the key's first decision is replaced by the tick of that decision.
#[test]
fn an_old_tick_is_treated_as_the_tick_of_the_first_decision() {
    let (map, _) = map(10);
    assert!(map.try_acquire_at(&1, tick(100)).is_ok());
    let seen: Vec<u64> = (map.pin().iter_at(tick(0)))
        .map(|tracked| tracked.available())
        .collect();
    assert_eq!(seen, [1]);
    assert!(map.set_algorithm_at(&1, bucket_of(10), tick(0)).is_ok());
    assert_eq!(map.key(&1).at(tick(100)).available(), 1);
}

#[test]
fn a_key_is_a_limiter_that_callers_can_wait_for() {
    fn all<G: ReserveLimiter<Clock: Clock>>(limiter: &G) -> usize {
        (0..10)
            .filter(|_| RateLimiter::try_acquire(limiter).is_ok())
            .count()
    }
    deadline("a key that is waited at too long", || {
        let clock = ManualClock::new();
        let map = KeyedMap::<String, _, _>::with_clock(bucket("1/s burst 2"), 10, clock.clone());
        let map = map.expect("a map");
        let (alice, second) = (map.key("alice"), Duration::from_secs(1));
        assert_eq!(all(&alice), 2);
        let reservation = alice.reserve(2).expect("later");
        assert_eq!(reservation.delay(), 2 * second);
        assert_eq!(alice.reserve(1).expect("later").delay(), 3 * second);
        assert!(alice.acquire_timeout(1, second).is_err());
        // Reserved permits keep a key from being idle until they are due.
        clock.advance(4 * second);
        assert_eq!(map.purge_idle(10), 0);
        clock.advance(second);
        assert_eq!(map.purge_idle(10), 1);
        assert_eq!(reservation.cancel().lost, 2);
        assert!(alice.acquire().is_ok());
    });
}
