//! Failures of other rate limiters, each as a regression test. Every test runs on both the token
//! bucket and GCRA, or on all algorithms that it concerns, unless it says otherwise. The failures
//! of slots, logs and shards are in tests/limits/multiword/known_failures.rs, and those of
//! reservations in tests/waiting/wait/reservations/known_failures.rs.

mod windows;

use tollgate::error::QuotaError;

use crate::support::threads::on_threads;
use crate::support::*;

const MS: u64 = 1_000_000;

/// A limiter whose ticks the test chooses.
#[derive(Debug)]
struct Tested(Limiter<AnyAlgorithm, NoClock>);

impl Tested {
    fn new(algorithm: impl Into<AnyAlgorithm>) -> Self {
        Self(Limiter::unstarted(algorithm.into(), NoClock))
    }

    fn take(&self, n: u64, now_ns: u64) -> Result<Granted, Denied> {
        self.0.at(tick(now_ns)).try_acquire_n(n)
    }

    /// Returns how many of `tries` single permits are granted at this tick.
    fn count(&self, tries: u64, now_ns: u64) -> u64 {
        (0..tries)
            .map(|_| u64::from(self.take(1, now_ns).is_ok()))
            .sum()
    }

    /// Returns the wait in a denial.
    #[track_caller]
    fn wait(&self, denied: Denied) -> u64 {
        let wait = denied.retry_after();
        let wait = wait.unwrap_or_else(|| panic!("{self:?}: {denied}"));
        u64::try_from(wait.as_nanos()).expect("in time")
    }
}

fn both(quota: Quota) -> [Tested; 2] {
    [
        Tested::new(TokenBucket::new(quota).expect("a bucket")),
        Tested::new(Gcra::new(quota).expect("a gcra")),
    ]
}

pub(crate) const WINDOWS: [&str; 4] = [
    "fixed-window QUOTA",
    "fixed-window QUOTA first-hit",
    "sliding-window QUOTA",
    "sliding-window QUOTA rounding down",
];
pub(crate) const INTERVALS: [&str; 2] = ["intervals QUOTA", "intervals QUOTA greedy"];
const LEAKY: [&str; 2] = ["leaky-meter QUOTA", "leaky-queue QUOTA"];

/// Returns limiters of these kinds, with a quota written as text.
fn limiters(kinds: &[&[&str]], quota: &str) -> Vec<Tested> {
    let kinds = kinds.concat().into_iter();
    let algorithms = kinds.map(|kind| algorithm(&kind.replace("QUOTA", quota)));
    algorithms.map(Tested::new).collect()
}

/// governor: 400 M/s ran at +25 %, 600 M/s at +66.7 %, 3 G/s at -66.7 %; gcra: 3 G/s was unlimited.
#[test]
fn intervals_of_fractional_nanoseconds_keep_their_rate() {
    for rate in [400_000_000, 600_000_000, 3_000_000_000, 9_999_999_999] {
        let quota = Quota::per_second(rate).burst(100_000);
        for limiter in both(quota) {
            // Takes all available permits every microsecond for ten milliseconds.
            let mut granted = 0;
            for now in (0..=10 * MS).step_by(1000) {
                let more = match limiter.take(100_000, now) {
                    Ok(all) => all.n(),
                    Err(_) => (0..17)
                        .rev()
                        .map(|bit| limiter.take(1 << bit, now).map_or(0, |granted| granted.n()))
                        .sum(),
                };
                granted += more;
            }
            let right = 100_000 + rate / 100;
            assert!(
                (right - 10..=right).contains(&granted),
                "{rate}: {granted} of {right}"
            );
        }
    }
}

/// governor: 1/day with burst 300 000 admitted 86 496. With burst 10 it granted 213 505 at once,
/// since the weight wrapped.
#[test]
fn centuries_of_permits_are_granted_in_full_or_refused() {
    let (quota, burst, max) = (Quota::per_day(1), 300_000, 97_620);
    let refused = Err(QuotaError::BurstTooLarge { burst, max });
    assert_eq!(TokenBucket::new(quota.burst(burst)), refused);
    for limiter in both(quota.burst(max)) {
        assert_eq!(limiter.count(100_000, 5), max);
    }
    let limit = 10;
    for limiter in both(quota.burst(limit)) {
        for n in [11, 213_505, 213_504, 427_010, 1 << 63, u64::MAX] {
            assert_eq!(limiter.take(n, 5), Err(Denied::never(n, limit)));
        }
        assert_eq!(limiter.count(20, 5), limit);
    }
}

/// ratelimit: each refill dropped its remainder, so 1/us polled every 1.999 us ran at half its
/// rate.
#[test]
fn polling_between_permits_loses_no_fraction() {
    for limiter in both(Quota::per(1, Duration::from_micros(1)).burst(3).initial(0)) {
        let polls = 0..=10_000;
        let granted: u64 = polls.map(|poll| limiter.count(2, poll * 1999)).sum();
        assert_eq!(granted, 10_000 * 1999 / 1000);
    }
    // One a second, polled 50 000 times within it.
    for limiter in both(Quota::per_second(1).burst(2).initial(0)) {
        let polls = 0..=2 * SECOND / 19_999 + 1;
        let actual = polls
            .map(|poll| limiter.count(1, poll * 19_999))
            .sum::<u64>();
        assert_eq!(actual, 2);
    }
}

/// leaky-bucket: 1000/s delivered 470/s, because each deadline began at the last wake-up instead of
/// the last deadline.
#[test]
fn callers_that_oversleep_get_the_full_rate() {
    for limiter in both(Quota::per_second(1000).burst(5)) {
        let (mut now, mut granted) = (0, 0);
        for _ in 0..100_000 {
            if now > 10 * SECOND {
                break;
            }
            match limiter.take(1, now) {
                Ok(_) => granted += 1,
                Err(denied) => now += limiter.wait(denied) + MS + 100_000,
            }
        }
        assert!((10_000..=10_005).contains(&granted), "{granted}");
    }
}

/// leaky-bucket: a dropped waiter stored a stale state, and the bucket never refilled.
#[test]
fn an_abandoned_request_leaves_no_stale_state() {
    for limiter in both(Quota::per_second(10).burst(5)) {
        for turn in 0..20 {
            let now = turn * SECOND;
            let given_up = limiter.take(3, now).expect("it has filled");
            let kept = limiter.take(2, now + 1).expect("it was full");
            let later = limiter.0.at(tick(now + 2));
            assert_eq!(later.undo(given_up), 3);
            assert_eq!((kept.remaining(), limiter.count(9, now + 3)), (0, 3));
        }
    }
}

/// gcra: a request larger than the burst deleted the key, so 5/h admitted 100.
#[test]
fn a_request_above_the_burst_resets_nothing() {
    let others = limiters(&[&WINDOWS, &INTERVALS, &LEAKY], "5/h");
    for limiter in others.into_iter().chain(both(Quota::per_hour(5))) {
        let mut granted = 0;
        for now in 0..100 {
            assert_eq!(limiter.take(6, now), Err(Denied::never(6, 5)));
            granted += limiter.count(1, now);
        }
        assert_eq!(granted, 5, "{limiter:?}");
    }
}

/// throttlecrab: clamping the arrival time to now - tolerance let 17 through a burst of 10;
/// axum_gcra: N at first, N + 1 after idling.
#[test]
fn idling_accumulates_no_more_than_the_burst() {
    let interval = SECOND / 10;
    for limiter in both(Quota::per_second(10).burst(10)) {
        let mut now = 0;
        for idle in [0, 10, 11, 17, 1000, 1_000_000].map(|intervals| intervals * interval) {
            for part in [0, 1, interval / 2, interval - 1] {
                now += 10 * interval + idle + part;
                assert_eq!(limiter.count(30, now), 10, "after {idle} + {part}");
            }
        }
    }
    let spaced = Gcra::from_interval(Duration::from_millis(100), Duration::from_millis(950));
    let limiter = Tested::new(spaced.expect("a gcra"));
    for now in [0, 5, 50, 5000].map(|seconds| seconds * SECOND) {
        assert_eq!(limiter.count(30, now), 10, "1 + floor(950 / 100)");
    }
}

/// x/time/rate: an older caller moved the bucket's time back, so two callers a second apart got
/// 1000 grants where 110 are right. Spring, ShenYu: time that goes back is credited twice.
#[test]
fn callers_whose_clocks_differ_get_no_extra_permits() {
    // The older caller takes everything first, or nothing. The sum is 110 in both cases.
    for (first, right) in [(0, 100), (100, 10)] {
        for limiter in both(Quota::per_second(10).burst(100)) {
            assert_eq!(limiter.count(first, 0), first);
            let granted = (0..500).map(|_| limiter.count(1, SECOND) + limiter.count(1, 0));
            // If the permits were first taken at 1 s, the older caller is counted at the word's
            // time.
            assert_eq!(granted.sum::<u64>(), right);
            assert_eq!(limiter.count(1000, SECOND), 0);
        }
    }
}

/// Spring Cloud Gateway: a rate above twice the capacity gave its keys a lifetime of 0 seconds, so
/// nothing was limited. ShenYu: its script failed in that case, which admitted everything.
#[test]
fn a_rate_far_above_the_burst_is_enforced() {
    for (rate, burst) in [(100, 10), (1000, 1), (1_000_000, 3)] {
        for limiter in both(Quota::per_second(rate).burst(burst)) {
            let granted: u64 = (0..1000).map(|now| limiter.count(20, now)).sum();
            assert_eq!(granted, burst);
            let again = (SECOND / rate) * burst;
            assert_eq!(limiter.count(20, 999 + again), burst);
        }
    }
}

/// pingora-limits: 11 to 15 of 16 threads panicked in the first second, when the time since the
/// start was negative.
#[test]
fn threads_at_the_start_of_a_clock_are_answered() {
    deadline("threads that ask a limiter", || {
        // The threads' clocks differ by a few moments, and some are before the start.
        let [limiter, _] = both(Quota::per_day(500));
        let granted = on_threads(0..16, |id| {
            let now = tick(SECOND).saturating_sub(Duration::from_millis(id * 100));
            let at = limiter.0.at(now);
            let take = |_| at.take_up_to(1).n() + at.take_up_to(0).n();
            (0..100).map(take).sum::<u64>()
        });
        // The last permit is not for callers whose tick is before the first one's.
        let rest = limiter.0.at(tick(SECOND)).take_up_to(1000);
        assert_eq!(granted.into_iter().sum::<u64>() + rest.n(), 500);
        // From the clock's first tick, with windows that began before it.
        let kinds = [&WINDOWS[..1], &WINDOWS[2..3], &INTERVALS[..1]];
        for limiter in limiters(&kinds, "500/d origin 86399s") {
            let granted = on_threads(0..16, |id| limiter.count(100, id / 8));
            assert_eq!(granted.into_iter().sum::<u64>(), 500, "{limiter:?}");
        }
    });
}
