//! What went wrong in other limiters of which permits can be reserved, each as a test that it does not go wrong here.

use std::time::Duration;

use tollgate::{Denied, Limiter, NoClock, Quota, Tick, TokenBucket};

const SECOND: u64 = 1_000_000_000;

fn bucket(quota: Quota) -> Limiter<TokenBucket, NoClock> {
    Limiter::unstarted(TokenBucket::new(quota).expect("a bucket"), NoClock)
}

fn seconds(tenths: u64) -> Tick {
    Tick::from_nanos(tenths * SECOND / 10)
}

/// x/time/rate 0.3.0: a wait of more than 292 years overflowed into one in the past, and so was none.
#[test]
fn a_wait_of_centuries_is_refused_and_not_none() {
    let year = Duration::from_secs(365 * 24 * 3600);
    let gate = bucket(Quota::per(1, year).burst(50));
    let now = gate.at(Tick::ZERO);
    assert!(now.try_acquire_n(50).is_ok());
    let mut last = Tick::ZERO;
    for _ in 0..1000 {
        match now.reserve_until(1, Tick::MAX) {
            Ok(granted) => {
                assert!(
                    granted.due() >= last.saturating_add(year),
                    "{:?}",
                    granted.due()
                );
                last = granted.due();
            }
            Err(denied) => {
                assert!(matches!(denied, Denied::Stuck { .. }), "{denied}");
                assert!(last >= Tick::ZERO.saturating_add(year * 50));
                return;
            }
        }
    }
    panic!("a thousand years were promised");
}

/// x/time/rate: the time of the last event was that of whoever came last, also if others wait for later; who of
/// those was cancelled got back what was never taken: 9 for 1 here.
#[test]
fn one_that_is_cancelled_gives_back_no_more_than_it_took() {
    let gate = bucket(Quota::per_second(10));
    let start = gate.at(seconds(0));
    assert!(start.try_acquire_n(10).is_ok());
    let first = start.reserve_until(10, Tick::MAX).expect("in a second");
    let second = start.reserve_until(1, Tick::MAX).expect("after it");
    assert_eq!((first.due(), second.due()), (seconds(10), seconds(11)));
    let _ = start.cancel(first, 10);
    let later = gate.at(seconds(3));
    let third = later.reserve_until(1, Tick::MAX).expect("after them");
    let (_, back) = later.cancel(second, 1);
    assert!(back <= 1);
    let (_, back) = later.cancel(third, 1);
    assert!(back <= 1);
    // 10 at first, and with those that came back no more than the bound until now.
    let more = (0..100).filter(|_| later.try_acquire().is_ok()).count();
    assert!(more <= 3, "{more}");
}

/// x/time/rate: waits were cut to whole nanoseconds, so that at three permits a nanosecond a bucket went to two
/// below nothing, and whoever waited as told was a part of a nanosecond early.
#[test]
fn nobody_goes_before_the_permits_are_there() {
    for quota in [
        Quota::per_second(3_000_000_000).burst(100),
        Quota::per_second(3).burst(2),
        Quota::per_second(7).burst(7),
    ] {
        let gate = bucket(quota);
        let now = gate.at(Tick::from_nanos(1));
        let burst = quota.burst_size();
        assert!(now.try_acquire_n(burst).is_ok());
        let mut taken = 0;
        for n in (1..=burst).chain(1..=burst) {
            let granted = now.reserve_until(n, Tick::MAX).expect("some time");
            taken += u128::from(n);
            let since = u128::from(granted.due().as_nanos() - 1);
            let made = since * u128::from(quota.permits());
            assert!(
                made >= taken * u128::from(SECOND),
                "{n} after {taken} of {quota}"
            );
        }
    }
}

/// x/time/rate: who was cancelled in the line's order, from its end, got nothing back where a wait had been cut: the one before was
/// not found to be the last any more.
#[test]
fn a_line_can_be_cancelled_from_its_end() {
    let gate = bucket(Quota::per(1, Duration::from_secs(3)).burst(2));
    let now = gate.at(Tick::from_nanos(1_099_314_613));
    assert!(now.try_acquire_n(2).is_ok());
    let reserve = |_| now.reserve_until(2, Tick::MAX).expect("some time");
    let line: Vec<_> = (0..5).map(reserve).collect();
    for granted in line.into_iter().rev() {
        assert_eq!(now.cancel(granted, 2).1, 2);
    }
    let again = now.reserve_until(2, Tick::MAX).expect("some time");
    assert_eq!(again.delay(), Duration::from_secs(6));
}
