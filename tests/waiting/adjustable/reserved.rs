//! Reservations keep their ticks while the quota changes. Later reservations use the new quota.

use tollgate_audit::{Audit, Bounded, Log};

use super::{KEEPS, adjustable};
use crate::support::*;

type Tested = Adjustable<TokenBucket, ManualClock>;

fn limiter(quota: Quota) -> Tested {
    let bucket = TokenBucket::new(quota).expect("a quota");
    Adjustable::with_clock(bucket, ManualClock::new())
}

#[test]
fn a_reservation_keeps_its_tick() {
    for keep in KEEPS {
        let limiter = limiter(Quota::per_second(10).burst(1));
        let reserved = [(); 3].map(|()| limiter.reserve(1).expect("in time"));
        let quota = Quota::per_second(100).burst(1);
        limiter.set_quota(quota, keep).expect("a quota");
        assert_eq!(reserved.map(|one| millis(one.due())), [0, 100, 200]);
        // Two permits are owed, and are repaid at the new rate, or none are.
        let expected = if keep == Keep::Fresh { 0 } else { 30 };
        let next = limiter.reserve(1).expect("in time");
        assert_eq!(millis(next.due()), expected, "{keep:?}");
    }
}

#[test]
fn a_reservation_from_before_a_change_returns_nothing() {
    let limiter = limiter(Quota::per_second(10).burst(1));
    let old = [(); 2].map(|()| limiter.reserve(1).expect("in time"));
    let quota = Quota::per_second(20).burst(1);
    limiter.set_quota(quota, Keep::AsIs).expect("a quota");
    for one in old {
        let cancelled = one.cancel();
        assert_eq!((cancelled.returned, cancelled.lost), (0, 1));
    }
    // Later reservations can be cancelled as usual.
    assert_eq!(limiter.reserve(1).expect("in time").cancel().returned, 1);
    let (_, over) = limiter.reserve(1).expect("in time").settle(3);
    assert_eq!((over.charged, over.returned), (2, 0));
}

#[test]
fn a_queue_that_grows_is_empty_and_one_that_shrinks_keeps_its_waiters() {
    let queue = |burst| {
        let text = format!("leaky-queue 10/s burst {burst}");
        adjustable(algorithm(&text), tick(0))
    };
    let quota = |burst| Quota::per_second(10).burst(burst);
    for keep in [Keep::AsIs, Keep::Scaled, Keep::Used] {
        let (limiter, now) = (queue(1), tick(1 << 40));
        let view = limiter.at(now);
        view.set_quota(quota(1000), keep).expect("a quota");
        assert_eq!(view.level().ceil(), 0);
        let granted = view.try_acquire().expect("it is empty");
        assert_eq!(granted.delay(), Duration::ZERO);

        let (limiter, now) = (queue(10), tick(5));
        let enter = |now| limiter.at(now).try_acquire().map(|granted| granted.due());
        let line = [(); 8].map(|()| enter(now).expect("there is room"));
        limiter.at(now).set_quota(quota(2), keep).expect("a quota");
        assert_eq!(limiter.at(now).level().ceil(), 8);
        // No caller enters until only one is left, and the next one leaves after the last.
        let wait = limiter.at(now).time_until(1).expect("its turn comes");
        let then = now.saturating_add(wait);
        assert!(enter(tick(then.as_nanos() - 1)).is_err());
        let expected = Ok(line[7].saturating_add(Duration::from_millis(100)));
        assert_eq!(enter(then), expected);
    }
}

/// Threads reserve and cancel. The permits taken under each quota keep that quota's bound.
#[test]
fn permits_keep_the_bound_of_the_quota_they_were_taken_under() {
    let quotas = [(1000, 3), (7777, 9), (100, 1)];
    let quotas = quotas.map(|(rate, burst)| Quota::per_second(rate).burst(burst));
    let limiter = limiter(quotas[0]);
    for round in 0..60 {
        let logs = on_threads(0..4, |id| reserve_some(&limiter, id));
        let history: Audit = logs.into_iter().collect();
        let bound = limiter.algorithm().bound();
        history.check(&bound).expect("the bound");
        let passed = Duration::from_micros(1234 * (round % 7));
        limiter.clock().advance(passed);
        let quota = quotas[round as usize % 3];
        limiter.set_quota(quota, Keep::AsIs).expect("a quota");
    }
}

fn reserve_some(limiter: &Tested, seed: u64) -> Log {
    let (mut log, mut held) = (Log::new(), Vec::new());
    for i in 0..50 {
        let n = (i + seed) % 3 + 1;
        held.extend(limiter.reserve_within(n, Duration::from_millis(30)));
        if i % 4 == 3 {
            match held.pop() {
                Some(last) if last.is_due() => held.push(last),
                last => drop(last.map(|last| last.cancel())),
            }
        }
    }
    for one in held {
        log.granted(&one.into_granted().when_due());
    }
    log
}
