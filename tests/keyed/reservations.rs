//! Permits that are had before they are there: of each key as of a limiter for it alone.

use std::fmt::Debug;
use std::time::Duration;

use tollgate::keyed::Key;
use tollgate::{
    Gcra, Keyed, LeakyBucket, Limiter, ManualClock, NoClock, Quota, Reservation, Reserve, Tick,
    TokenBucket,
};

use crate::Random;

/// What the table said and what the key's own limiter said.
type Pair<'a, A> = (
    Reservation<Key<'a, A, ManualClock>>,
    Reservation<&'a Limiter<A, NoClock>>,
);

fn follow<A: Reserve + Clone + Debug>(algorithm: A, seed: u64) {
    let table = Keyed::with_clock(algorithm.clone(), 1, ManualClock::new()).expect("a table");
    let keys: Vec<_> = (0..20_u64).map(|key| table.key(&key)).collect();
    let own = || Limiter::unstarted(algorithm.clone(), NoClock);
    let owns: Vec<_> = keys.iter().map(|_| own()).collect();
    let (mut random, mut nanos) = (Random(seed), 10_000_000_000);
    let mut kept: Vec<Pair<'_, A>> = Vec::new();
    let mut seen = [0_u64; 5];
    for _ in 0..5_000 {
        nanos += random.below(3) * random.below(30_000_000);
        let now = Tick::from_nanos(nanos - random.below(2) * random.below(300_000_000));
        let (which, n) = (random.skewed(20) as usize, random.below(7));
        let (key, own) = (&keys[which], &owns[which]);
        let both = match random.below(8) {
            0..=2 => (key.reserve_at(n, now), own.reserve_at(n, now)),
            3 => {
                let wait = Duration::from_millis(random.below(900));
                let theirs = own.reserve_within_at(n, wait, now);
                (key.reserve_within_at(n, wait, now), theirs)
            }
            4 | 5 if !kept.is_empty() => {
                let last = kept.len() as u64 - random.below(kept.len() as u64).min(3) - 1;
                let (ours, theirs) = kept.swap_remove(last as usize);
                if random.one_in(2) {
                    let cancelled = ours.cancel_at(now);
                    assert_eq!(cancelled, theirs.cancel_at(now), "{algorithm:?}");
                    seen[0] += cancelled.came_back;
                    seen[1] += cancelled.lost;
                } else {
                    let (ours, theirs) = (ours.settle_at(n, now), theirs.settle_at(n, now));
                    let granted = |of: tollgate::Granted| (of.n(), of.due(), of.delay());
                    assert_eq!(granted(ours.granted), granted(theirs.granted));
                    let counts = (theirs.came_back, theirs.lost, theirs.charged);
                    assert_eq!((ours.came_back, ours.lost, ours.charged), counts);
                    seen[2] += ours.charged;
                }
                continue;
            }
            6 => {
                let right = own.at(now).waiting();
                assert_eq!(key.at(now).waiting(), right, "{algorithm:?}");
                seen[3] += right;
                continue;
            }
            _ => {
                let right = own.at(now).try_acquire_n(n).is_ok();
                assert_eq!(key.at(now).try_acquire_n(n).is_ok(), right);
                continue;
            }
        };
        match both {
            (Ok(ours), Ok(theirs)) => {
                let said = (ours.n(), ours.due(), ours.delay());
                assert_eq!(said, (theirs.n(), theirs.due(), theirs.delay()));
                seen[4] += u64::from(ours.delay() > Duration::ZERO);
                kept.push((ours, theirs));
            }
            (ours, theirs) => assert_eq!(ours.map(|_| ()), theirs.map(|_| ()), "{algorithm:?}"),
        }
    }
    assert!(
        seen.iter().all(|count| *count > 50),
        "{seen:?} {algorithm:?}"
    );
}

#[test]
fn reservations_of_a_key_are_those_of_a_limiter_for_it_alone() {
    let quota = Quota::per_second(50).burst(6);
    for seed in 0..4 {
        follow(TokenBucket::new(quota).expect("a bucket"), seed);
        follow(Gcra::new(quota).expect("a gcra"), seed);
        let queue = LeakyBucket::queue(Quota::per_second(50).burst(30)).expect("a queue");
        follow(queue.free(2), seed);
    }
}

/// Of a banned key nothing comes back, and nobody may wait for it: a ban that somebody waits for would end later for each
/// who does, also if he gives up.
#[test]
fn nobody_waits_for_the_end_of_a_ban() {
    let clock = ManualClock::at(Tick::from_nanos(5));
    let bucket = TokenBucket::new(Quota::per_second(1).burst(3)).expect("a bucket");
    let table = Keyed::with_clock(bucket, 1, clock.clone()).expect("a table");
    let (second, key) = (Duration::from_secs(1), table.key("mallory"));
    let before = key.reserve(2).expect("it is there");
    table
        .ban_for("mallory", 60 * second)
        .expect("there is room");
    assert_eq!(before.cancel().lost, 2);
    for _ in 0..1000 {
        let denied = key.reserve(1).map(|_| ()).expect_err("it is banned");
        assert_eq!(denied.retry_after(), Some(61 * second));
        assert_eq!(key.acquire(), Err(denied));
        let within = key.reserve_within(1, 100 * second).map(|_| ());
        assert_eq!(within, Err(denied));
    }
    clock.advance(60 * second);
    assert!(key.reserve(1).is_err());
    clock.advance(second);
    assert!(key.reserve(1).expect("it is over").is_due());
    let next = key.reserve(1).expect("as before the ban");
    assert_eq!(next.delay(), second);
    assert_eq!(next.cancel().came_back, 1);
}

#[test]
fn a_reservation_is_good_as_long_as_the_table() {
    let bucket = TokenBucket::new(Quota::per_second(10).burst(1)).expect("a bucket");
    let clock = ManualClock::new();
    let gate = Keyed::with_clock(bucket, 1000, clock.clone()).expect("a table");
    let reserve = |key: &str| gate.key(key).reserve(1).expect("it will be there");
    assert!(reserve("alice").is_due());
    let (second, third) = (reserve("alice"), reserve("alice"));
    assert_eq!(third.delay(), Duration::from_millis(200));
    assert_eq!(third.cancel().came_back, 1);
    clock.advance(Duration::from_millis(100));
    assert!(second.is_due());
}
