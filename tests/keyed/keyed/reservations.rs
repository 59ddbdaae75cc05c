//! Reservations of a key match those of a limiter of its own.

use tollgate::Reservation;
use tollgate::algorithm::Reserve;

use crate::support::*;

fn follow<A: Reserve + Clone + Debug>(algorithm: A, seed: u64) {
    let table = table(algorithm.clone());
    let keys: Vec<_> = (0..20_u64).map(|key| table.key(&key)).collect();
    let own = || Limiter::unstarted(algorithm.clone(), NoClock);
    let owns: Vec<_> = keys.iter().map(|_| own()).collect();
    let (mut random, mut nanos) = (Random(seed), 10 * SECOND);
    // The grants of the table, and of the key's own limiter.
    let mut kept = Vec::new();
    let mut seen = [0_u64; 5];
    for _ in 0..5_000 {
        nanos += random.below(3) * random.below(30_000_000);
        let now = tick(nanos - random.below(2) * random.below(300_000_000));
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
                let last = kept.len() - random.below(kept.len() as u64).min(3) as usize - 1;
                let (ours, theirs): (Reservation<_>, Reservation<_>) = kept.swap_remove(last);
                if random.one_in(2) {
                    let cancelled = ours.cancel_at(now);
                    assert_eq!(cancelled, theirs.cancel_at(now), "{algorithm:?}");
                    seen[0] += cancelled.returned;
                    seen[1] += cancelled.lost;
                } else {
                    let [ours, right] =
                        [ours.settle_at(n, now), theirs.settle_at(n, now)].map(|(kept, of)| {
                            let granted = (kept.n(), kept.due(), kept.delay());
                            (granted, of.returned, of.lost, of.charged)
                        });
                    assert_eq!(ours, right, "{algorithm:?}");
                    seen[2] += ours.3;
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
    let enough = seen.iter().all(|count| *count > 50);
    assert!(enough, "{seen:?} {algorithm:?}");
}

#[test]
fn reservations_of_a_key_match_those_of_a_limiter_of_its_own() {
    let gcra = Gcra::new(Quota::per_second(50).burst(6)).expect("a gcra");
    for seed in 0..2 {
        follow(bucket("50/s burst 6"), seed);
        follow(gcra, seed);
        follow(queue("leaky-queue 50/s burst 30 free 2"), seed);
        for text in [
            "sliding-window 6/120ms",
            "intervals 6/120ms",
            "intervals 3/60ms burst 6 greedy",
        ] {
            follow(algorithm(text), seed);
        }
    }
}

/// A banned key takes nothing back, and no caller may wait for it. If callers could wait for a ban,
/// each of them would postpone its end, even one that gives up.
#[test]
fn a_reservation_does_not_wait_for_the_end_of_a_ban() {
    deadline("a banned key that may not be waited for", || {
        let table = table(bucket("1/s burst 3"));
        let (second, key) = (Duration::from_secs(1), table.key("mallory"));
        let before = key.reserve(2).expect("it is there");
        assert!(table.key("mallory").ban_for(60 * second).is_ok());
        assert_eq!(before.cancel().lost, 2);
        for _ in 0..1000 {
            let denied = key.reserve(1).map(|_| ()).expect_err("it is banned");
            assert_eq!(denied.retry_after(), Some(61 * second));
            assert_eq!(key.blocking_acquire(), Err(denied));
            let within = key.reserve_within(1, 100 * second).map(|_| ());
            assert_eq!(within, Err(denied));
        }
        table.clock().advance(60 * second);
        assert!(key.reserve(1).is_err());
        table.clock().advance(second);
        assert!(key.reserve(1).expect("it is over").is_due());
        let next = key.reserve(1).expect("as before the ban");
        assert_eq!(next.delay(), second);
        assert_eq!(next.cancel().returned, 1);
    });
}

#[test]
fn a_reservation_is_valid_as_long_as_the_table() {
    let limiter = table(bucket("10/s burst 1"));
    let reserve = |key: &str| limiter.key(key).reserve(1).expect("it will be there");
    assert!(reserve("alice").is_due());
    let (second, third) = (reserve("alice"), reserve("alice"));
    assert_eq!(third.delay(), Duration::from_millis(200));
    assert_eq!(third.cancel().returned, 1);
    limiter.clock().advance(Duration::from_millis(100));
    assert!(second.is_due());
}
