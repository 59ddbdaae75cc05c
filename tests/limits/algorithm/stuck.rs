//! A charge or a settlement that can't be paid back before the clock ends makes a limiter
//! [`Stuck`](Denied::Stuck). A smaller one does not. A reset, a refund and a snapshot's other clock
//! help as documented, and nothing makes it worse.

use crate::support::*;

const NOW: Tick = tick(7_200_000_000_000);

fn is_stuck<T>(answer: Result<T, Denied>) -> bool {
    matches!(answer, Err(Denied::Stuck { .. }))
}

/// Returns a limiter after a grant of one permit is settled for everything, and what was charged.
fn settled(algorithm: AnyAlgorithm) -> (Limiter<AnyAlgorithm, NoClock>, u64) {
    let limiter = Limiter::unstarted(algorithm, NoClock);
    let _ = limiter.at(NOW).refund(u64::MAX);
    let granted = limiter.at(NOW).take_up_to(1);
    let settled = limiter.at(NOW).settle(granted, u64::MAX);
    (limiter, settled.charged)
}

/// Windows forget a debt, and greedy buckets record twice their burst. All others record a debt
/// that outlasts the clock.
fn can_be_stuck(algorithm: &AnyAlgorithm) -> bool {
    match algorithm {
        AnyAlgorithm::FixedWindow(_) | AnyAlgorithm::SlidingWindow(_) => false,
        AnyAlgorithm::Intervals(intervals) => intervals.quantum().is_none(),
        _ => true,
    }
}

#[test]
fn a_settlement_for_everything_is_stuck_or_paid_back() {
    let mut stuck = 0;
    for algorithm in algorithms() {
        let (limiter, charged) = settled(algorithm);
        assert!(charged > 0, "{algorithm}");
        let denied = limiter.at(NOW).try_acquire().expect_err("in debt");
        if can_be_stuck(&algorithm) {
            assert_eq!(denied, Denied::stuck(1), "{algorithm}");
            assert!(denied.is_permanent() && denied.retry_after().is_none());
            for tick in [NOW, tick(FIFTY_YEARS), Tick::MAX] {
                assert!(is_stuck(limiter.at(tick).try_acquire()), "{algorithm}");
                assert_eq!(limiter.at(tick).time_until(1), None, "{algorithm}");
                assert_eq!(limiter.at(tick).available(), 0, "{algorithm}");
            }
            // Nothing more is recorded, and the word keeps its meaning.
            let again = limiter.at(NOW).charge(u64::MAX);
            assert_eq!(again.clear_after(), Duration::MAX, "{algorithm}");
            assert!(is_stuck(limiter.at(NOW).try_acquire()), "{algorithm}");
            stuck += 1;
        } else {
            let wait = denied.retry_after().expect("it is paid back");
            let due = NOW.saturating_add(wait);
            let granted = limiter.at(due).try_acquire();
            assert!(granted.is_ok(), "{algorithm}: {granted:?}");
        }
    }
    assert!(stuck > 15, "{stuck}");
}

/// Fifty years after the clock's start, every limiter still refills. So only a charge of more than
/// that is stuck.
#[test]
fn a_charge_that_is_paid_back_within_fifty_years_is_not_stuck() {
    for algorithm in algorithms().into_iter().filter(can_be_stuck) {
        // The largest charge after which a permit is due.
        let wait_after = |n: u64| {
            let limiter = Limiter::unstarted(algorithm, NoClock);
            let charged = limiter.at(NOW).charge(n).n() == n;
            let wait = limiter.at(NOW).time_until(1);
            wait.filter(|_| charged)
        };
        let (mut most, mut stuck) = (0, u64::MAX);
        while stuck - most > 1 {
            let middle = most + (stuck - most) / 2;
            match wait_after(middle) {
                Some(_) => most = middle,
                None => stuck = middle,
            }
        }
        // A period of intervals, or the time for a permit, may end just after fifty years.
        let wait = wait_after(most).expect("it is not stuck").as_nanos();
        let next = match algorithm {
            AnyAlgorithm::Intervals(_) => algorithm.quota().period().as_nanos(),
            _ => {
                algorithm.quota().period().as_nanos() / u128::from(algorithm.quota().permits()) + 1
            }
        };
        let last = u128::from(FIFTY_YEARS - NOW.as_nanos());
        assert!(wait + next >= last, "{algorithm}: {most} after {wait} ns");
        let limiter = Limiter::unstarted(algorithm, NoClock);
        let _ = limiter.at(NOW).charge(most + 1);
        assert!(is_stuck(limiter.at(NOW).try_acquire()), "{algorithm}");
    }
}

#[test]
fn a_reset_or_a_refund_frees_a_stuck_limiter() {
    for algorithm in algorithms().into_iter().filter(can_be_stuck) {
        let full = Limiter::unstarted(algorithm, NoClock);
        full.reset();
        let all = full.at(NOW).available();
        let (limiter, _) = settled(algorithm);
        limiter.reset();
        assert_eq!(limiter.at(NOW).available(), all, "{algorithm}");
        assert!(limiter.at(NOW).try_acquire().is_ok(), "{algorithm}");
        // One refund of all that was taken. Permits that were never charged do not come back.
        let (limiter, charged) = settled(algorithm);
        let back = limiter.at(NOW).refund(u64::MAX);
        assert!(
            back > charged && back - charged <= 2,
            "{algorithm}: {back} of {charged}"
        );
        // If the interval is not a whole number of nanoseconds, the last may be a nanosecond late.
        let soon = limiter.at(NOW.saturating_add(Duration::from_nanos(1)));
        assert_eq!(soon.available(), all, "{algorithm}");
        assert!(limiter.at(NOW).try_acquire().is_ok(), "{algorithm}");
        // A refund that leaves a debt of a burst: it can be paid back.
        let (limiter, charged) = settled(algorithm);
        let burst = algorithm.quota().burst_size();
        let _ = limiter.at(NOW).refund(charged - burst);
        let wait = limiter.at(NOW).time_until(1).expect("it can be paid back");
        let due = NOW.saturating_add(wait);
        assert!(limiter.at(due).try_acquire().is_ok(), "{algorithm}");
    }
}

/// The debt is the same in the next process, or less if its clock has more time left.
#[test]
fn a_snapshot_makes_it_no_worse() {
    for algorithm in algorithms().into_iter().filter(can_be_stuck) {
        let (limiter, _) = settled(algorithm);
        let saved = limiter.at(NOW).snapshot();
        for start in [Tick::ZERO, NOW, tick(FIFTY_YEARS)] {
            let restored = Limiter::unstarted(algorithm, NoClock);
            let view = restored.at(start);
            view.restore_after(&saved, Duration::ZERO).expect("whole");
            assert_eq!(view.available(), 0, "{algorithm}");
            let debt = limiter.at(NOW).charge(0).debt();
            // Where units are rounded, a word that is moved is rounded up.
            assert!(view.charge(0).debt() <= debt + 1, "{algorithm}");
            if start >= NOW {
                assert!(is_stuck(view.try_acquire()), "{algorithm}");
            }
            let again = view.snapshot();
            view.restore_after(&again, Duration::ZERO).expect("whole");
            assert!(view.try_acquire().is_err(), "{algorithm}");
            let _ = view.refund(u64::MAX);
            assert!(view.try_acquire().is_ok(), "{algorithm}");
        }
    }
}

/// The debt is spread over all shards.
#[test]
fn shards_are_stuck_and_freed_together() {
    let mut stuck = 0;
    for algorithm in algorithms().into_iter().filter(can_be_stuck) {
        let clock = ManualClock::at(NOW);
        let Ok(limiter) = Sharded::with_shards(algorithm, 2, clock) else {
            continue;
        };
        limiter.reset();
        let all = limiter.available();
        for frees in [Sharded::reset, |limiter: &Sharded<_, _>| {
            let _ = limiter.refund(u64::MAX);
        }] {
            let granted = limiter.take_up_to(1);
            assert!(limiter.settle(granted, u64::MAX).charged > 0, "{algorithm}");
            assert!(is_stuck(limiter.try_acquire()), "{algorithm}");
            frees(&limiter);
            let soon = limiter.at(NOW.saturating_add(Duration::from_nanos(1)));
            assert_eq!(soon.available(), all, "{algorithm}");
            assert!(limiter.try_acquire().is_ok(), "{algorithm}");
            stuck += 1;
        }
    }
    assert!(stuck > 15, "{stuck}");
}
