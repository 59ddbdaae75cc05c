//! Settling an estimate. If it is settled at once, the limiter is as if the actual cost had been
//! taken. If it is settled later, refilled permits do not come back a second time, and a past
//! window is not credited to the next one.

use tollgate::outcome::Settled;
use tollgate::traits::SettleLimiter;

use super::cases;
use crate::support::*;

const START: u64 = 7_200_000_000_000;

fn limiter(text: &str) -> (ManualClock, Limiter<AnyAlgorithm, ManualClock>) {
    let clock = ManualClock::at(tick(START));
    (clock.clone(), Limiter::with_clock(algorithm(text), clock))
}

fn parts(settled: Settled) -> [u64; 3] {
    [settled.returned, settled.lost, settled.charged]
}

#[test]
fn settling_at_the_same_tick_takes_exactly_the_actual_cost() {
    let mut random = Random(0x0070_11a7_e305);
    let (mut less, mut more) = (0, 0);
    for algorithm in cases::all() {
        for _ in 0..20 {
            let clock = ManualClock::at(tick(START + random.below(START)));
            let [settles, takes] = [0; 2].map(|_| Limiter::with_clock(algorithm, clock.clone()));
            let there = settles.available().min(1 << 40);
            let (estimate, actual) = (random.upto(there), random.upto(there) + random.below(3));
            let granted = settles.try_acquire_n(estimate).expect("it is there");
            let settled = settles.settle(granted, actual);
            // A window can record only a limited debt.
            let taken = takes.charge(actual).n();
            assert_eq!(settles.available(), takes.available(), "{algorithm}");
            let unused = estimate.saturating_sub(actual);
            assert_eq!(settled.returned, unused, "{algorithm}");
            assert_eq!(
                settled.charged,
                taken.saturating_sub(estimate),
                "{algorithm}"
            );
            (less, more) = (less + unused, more + settled.charged);
        }
    }
    assert!(less > 0 && more > 0);
}

/// A case in which `refund` would be wrong.
#[test]
fn settling_does_not_return_refilled_permits_twice() {
    for (text, settled, refunded) in [
        ("token-bucket 90000/min", 40_000, 60_000),
        ("gcra 90000/min", 40_000, 60_000),
        ("leaky-meter 90000/min", 40_000, 60_000),
    ] {
        let spent = || {
            let (clock, limiter) = limiter(text);
            let estimate = limiter.try_acquire_n(40_000).expect("it is there");
            assert!(limiter.try_acquire_n(50_000).is_ok());
            clock.advance(Duration::from_secs(20));
            (limiter, estimate)
        };
        let (limiter, estimate) = spent();
        assert_eq!(parts(limiter.settle(estimate, 10_000)), [10_000, 20_000, 0]);
        assert_eq!(limiter.available(), settled, "{text}");
        let (limiter, _) = spent();
        limiter.refund(30_000);
        assert_eq!(limiter.available(), refunded, "{text}");
    }
}

#[test]
fn a_past_window_credits_nothing_to_the_next_one() {
    for text in [
        "fixed-window 1000/day",
        "fixed-window 1000/day first-hit",
        "intervals 1000/day",
    ] {
        let (clock, limiter) = limiter(text);
        let estimate = limiter.try_acquire_n(800).expect("it is there");
        clock.advance(Duration::from_secs(90_000));
        assert!(limiter.try_acquire_n(500).is_ok(), "{text}");
        assert_eq!(parts(limiter.settle(estimate, 100)), [0, 700, 0], "{text}");
        assert_eq!(limiter.available(), 500, "{text}");
    }
    // Half of the previous day still counts. Unused permits no longer do.
    let (clock, limiter) = limiter("sliding-window 1000/day");
    let estimate = limiter.try_acquire_n(800).expect("it is there");
    clock.advance(Duration::from_secs(3600));
    assert_eq!(parts(limiter.settle(estimate, 100)), [700, 0, 0]);
    assert_eq!(limiter.available(), 900);
}

#[test]
fn an_estimate_that_is_too_low_is_charged_as_debt() {
    let (_, limiter) = limiter("token-bucket 100/min");
    let estimate = limiter.try_acquire_n(90).expect("it is there");
    assert_eq!(parts(limiter.settle(estimate, 130)), [0, 0, 40]);
    assert!(limiter.try_acquire_n(0).is_err(), "it is in debt");
    let estimate = limiter.take_up_to(10);
    assert_eq!(parts(limiter.settle(estimate, 0)), [0, 0, 0]);
}

#[test]
fn every_limiter_that_gives_back_and_charges_can_settle() {
    fn settles(limiter: &impl SettleLimiter<Clock = ManualClock>) {
        let estimate = limiter.try_acquire_n(6).expect("it is there");
        let now = tick(START);
        assert_eq!(parts(limiter.settle_at(estimate, 2, now)), [4, 0, 0]);
        let estimate = limiter.try_acquire_n(6).expect("it is there");
        assert_eq!(parts(limiter.settle(estimate, 9)), [0, 0, 3]);
        // The limiter's own clock gives the same answer as an explicit tick.
        assert_eq!((limiter.available(), limiter.available_at(now)), (89, 89));
        let granted = limiter.take_up_to(9);
        assert_eq!((limiter.undo(granted), limiter.charge(5).n()), (9, 5));
        assert_eq!((limiter.refund(5), limiter.available()), (5, 89));
    }
    let clock = ManualClock::at(tick(START));
    let bucket = TokenBucket::new(Quota::per_minute(100)).expect("a quota");
    settles(&Limiter::with_clock(bucket, clock.clone()));
    settles(&Counted::new(Limiter::with_clock(bucket, clock.clone())));
    let sharded = Sharded::with_shards(bucket, 1, clock.clone());
    settles(&sharded.expect("a shard"));
    let window = SlottedWindow::with_clock(Quota::per_minute(100), 60, clock);
    settles(&window.expect("a window"));
}
