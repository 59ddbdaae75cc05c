//! A key's verbs are a limiter's, in all they return.

use std::time::Duration;

use tollgate::{
    AnyAlgorithm, Clock, Gate, KeyedMap, Limiter, ManualClock, NoClock, Quota, ReserveGate, Tick,
    TokenBucket,
};

use crate::{Random, map, tick};

/// A limiter and a key are asked the same, at the same ticks, in a map in which nobody leaves.
#[test]
fn they_answer_as_a_limiter_does() {
    for text in [
        "token-bucket 3/7ns burst 4",
        "gcra 1/10ns tolerance 15ns",
        "leaky-queue 1/10ns burst 5 free 2",
        "fixed-window 3/40ns",
        "sliding-window 3/40ns",
        "intervals 2/30ns burst 4",
    ] {
        let algorithm: AnyAlgorithm = text.parse().expect(text);
        let map = KeyedMap::<u64, _, _>::with_clock(algorithm, 4, NoClock).expect("a map");
        let limiter = Limiter::unstarted(algorithm, NoClock);
        let mut random = Random(3);
        let mut now = 0;
        let mut grants = Vec::new();
        for _ in 0..5_000 {
            now += random.below(12);
            let (here, there) = (map.key(&7).at(tick(now)), limiter.at(tick(now)));
            let n = random.below(5);
            match random.below(10) {
                0 => assert_eq!(here.charge(n), there.charge(n)),
                1 => assert_eq!(here.refund(n), there.refund(n)),
                2 => assert_eq!(here.available(), there.available()),
                3 => assert_eq!(here.time_until(n), there.time_until(n)),
                4 => assert_eq!(here.level(), there.level()),
                5 => assert_eq!(here.is_idle(), there.is_idle()),
                6 if !grants.is_empty() => {
                    let (ours, theirs) =
                        grants.swap_remove(random.below(grants.len() as u64) as usize);
                    assert_eq!(here.undo(ours), there.undo(theirs));
                }
                7 if random.below(20) == 0 => {
                    here.reset();
                    there.reset();
                    grants.clear();
                }
                8 => assert_eq!(seen(here.take_up_to(n)), seen(there.take_up_to(n))),
                _ => match (here.try_acquire_n(n), there.try_acquire_n(n)) {
                    (Ok(ours), Ok(theirs)) => {
                        assert_eq!(seen(ours), seen(theirs));
                        grants.push((ours, theirs));
                    }
                    (ours, theirs) => assert_eq!(ours.unwrap_err(), theirs.unwrap_err(), "{text}"),
                },
            }
        }
    }
}

fn seen(granted: tollgate::Granted) -> (u64, Tick, u64, Duration, Duration) {
    let (n, at) = (granted.n(), granted.at());
    (
        n,
        at,
        granted.remaining(),
        granted.reset_after(),
        granted.delay(),
    )
}

/// A grant of a key that has left, been removed or evicted is not given back to the one that came after it.
#[test]
fn nothing_is_undone_that_was_granted_before() {
    let (map, _) = map(1);
    let key = map.key(&1);
    let first = key.at(tick(0)).try_acquire_n(2).expect("fresh");
    assert!(map.remove(&1));
    let second = key.at(tick(0)).try_acquire_n(2).expect("fresh");
    assert_eq!(key.at(tick(0)).undo(first), 0);
    assert_eq!(key.at(tick(0)).undo(second), 2);
}

#[test]
fn a_key_is_a_gate_and_can_be_waited_at() {
    fn all<G: ReserveGate<Clock: Clock>>(gate: &G) -> usize {
        (0..10).filter(|_| Gate::try_acquire(gate).is_ok()).count()
    }
    let clock = ManualClock::new();
    let bucket = TokenBucket::new(Quota::per_second(1).burst(2)).expect("a quota");
    let map = KeyedMap::<String, _, _>::with_clock(bucket, 10, clock.clone()).expect("a map");
    let alice = map.key("alice");
    assert_eq!(all(&alice), 2);
    let reservation = alice.reserve(2).expect("later");
    assert_eq!(reservation.delay(), Duration::from_secs(2));
    assert_eq!(
        alice.reserve(1).expect("later").delay(),
        Duration::from_secs(3)
    );
    assert!(alice.acquire_timeout(1, Duration::from_secs(1)).is_err());
    // Reserved permits keep a key from being idle until they are due.
    clock.advance(Duration::from_secs(4));
    assert_eq!(map.purge_idle(10), 0);
    clock.advance(Duration::from_secs(1));
    assert_eq!(map.purge_idle(10), 1);
    assert_eq!(reservation.cancel().lost, 2);
    assert!(alice.acquire().is_ok());
}
