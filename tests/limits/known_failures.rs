//! What went wrong in other rate limiters, each as a test that it does not go wrong here. Every
//! test runs on both the token bucket and GCRA, or on all that it concerns, unless it says otherwise. What
//! went wrong in windows alone is in tests/windows/known_failures.rs, and what in slots, logs and shards in
//! tests/many/known_failures.rs, and what with reservations in tests/reservations/known_failures.rs.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use tollgate::{
    AnyAlgorithm, ConfigError, Denied, Gcra, Granted, Limiter, NoClock, Quota, Tick, TokenBucket,
};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

/// A limiter whose clock is the test's.
trait Gate: Sync {
    fn take(&self, n: u64, now_ns: u64) -> Result<Granted, Denied>;
    fn undo(&self, granted: Granted, now_ns: u64) -> u64;

    /// How many of `tries` single permits are granted at this moment.
    fn count(&self, tries: u64, now_ns: u64) -> u64 {
        (0..tries)
            .map(|_| u64::from(self.take(1, now_ns).is_ok()))
            .sum()
    }
}

macro_rules! gate {
    ($algorithm:ty) => {
        impl Gate for Limiter<$algorithm, NoClock> {
            fn take(&self, n: u64, now_ns: u64) -> Result<Granted, Denied> {
                self.try_acquire_n_at(n, Tick::from_nanos(now_ns))
            }
            fn undo(&self, granted: Granted, now_ns: u64) -> u64 {
                self.at(Tick::from_nanos(now_ns)).undo(granted)
            }
        }
    };
}
gate!(TokenBucket);
gate!(Gcra);
gate!(AnyAlgorithm);

fn both(quota: Quota) -> [Box<dyn Gate>; 2] {
    let bucket = TokenBucket::new(quota).expect("a bucket");
    let gcra = Gcra::new(quota).expect("a gcra");
    [
        Box::new(Limiter::unstarted(bucket, NoClock)),
        Box::new(Limiter::unstarted(gcra, NoClock)),
    ]
}

/// The others, each with this many permits at once.
const OTHERS: [&str; 8] = [
    "leaky-meter",
    "leaky-queue",
    "fixed-window",
    "fixed-window first-hit",
    "sliding-window",
    "sliding-window rounding down",
    "intervals",
    "intervals greedy",
];

/// Those of which `of` is true, from a quota written as text.
fn others(
    quota: &str,
    of: impl Fn(&str) -> bool,
) -> impl Iterator<Item = Limiter<AnyAlgorithm, NoClock>> {
    let texts = OTHERS
        .into_iter()
        .filter(move |name| of(name))
        .map(move |name| {
            let (name, option) = name.split_once(' ').unwrap_or((name, ""));
            format!("{name} {quota} {option}")
        });
    texts.map(|text| Limiter::unstarted(text.parse().expect("an algorithm"), NoClock))
}

/// governor: 400 M/s ran at +25 %, 600 M/s at +66.7 %, 3 G/s at -66.7 %; gcra: 3 G/s was unlimited.
#[test]
fn intervals_that_are_no_whole_nanoseconds_keep_their_rate() {
    for rate in [400_000_000, 600_000_000, 3_000_000_000, 9_999_999_999] {
        let quota = Quota::per_second(rate).burst(100_000);
        for gate in both(quota) {
            // All there is, every microsecond for ten milliseconds.
            let mut granted = 0;
            for now in (0..=10 * MS).step_by(1000) {
                let more = match gate.take(100_000, now) {
                    Ok(all) => all.n(),
                    Err(_) => (0..17)
                        .rev()
                        .map(|bit| gate.take(1 << bit, now).map_or(0, |granted| granted.n()))
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

/// governor: 1/day with burst 300 000 admitted 86 496.
#[test]
fn a_burst_of_centuries_is_granted_in_full_or_refused() {
    let quota = Quota::per_day(1);
    let (burst, max) = (300_000, 97_620);
    let refused = Err(ConfigError::BurstTooLarge { burst, max });
    assert_eq!(TokenBucket::new(quota.burst(burst)), refused);
    for gate in both(quota.burst(max)) {
        assert_eq!(gate.count(100_000, 5), max);
    }
}

/// governor: 1/day with burst 10 granted 213 505 at once, since the weight wrapped.
#[test]
fn a_request_of_centuries_is_never_granted() {
    let limit = 10;
    for gate in both(Quota::per_day(1).burst(limit)) {
        for n in [11, 213_505, 213_504, 427_010, 1 << 63, u64::MAX] {
            assert_eq!(gate.take(n, 5), Err(Denied::never(n, limit)));
        }
        assert_eq!(gate.count(20, 5), limit);
    }
}

/// ratelimit: the remainder of each refill was dropped, so 1/us polled every 1.999 us ran at half
/// its rate.
#[test]
fn polling_between_permits_loses_no_part_of_them() {
    for gate in both(Quota::per(1, Duration::from_micros(1)).burst(3).initial(0)) {
        let polls = 0..=100_000;
        let granted: u64 = polls.map(|poll| gate.count(2, poll * 1999)).sum();
        assert_eq!(granted, 100_000 * 1999 / 1000);
    }
    // One a second, polled half a million times in it.
    for gate in both(Quota::per_second(1).burst(2).initial(0)) {
        let polls = 0..=2 * SECOND / 1999 + 1;
        assert_eq!(polls.map(|poll| gate.count(1, poll * 1999)).sum::<u64>(), 2);
    }
}

/// leaky-bucket: 1000/s delivered 470/s, because each deadline began at the last wake-up and not at
/// the last deadline.
#[test]
fn callers_that_oversleep_get_the_full_rate() {
    for gate in both(Quota::per_second(1000).burst(5)) {
        let (mut now, mut granted) = (0, 0);
        for _ in 0..100_000 {
            if now > 10 * SECOND {
                break;
            }
            match gate.take(1, now) {
                Ok(_) => granted += 1,
                Err(denied) => {
                    let wait = denied.retry_after().expect("later").as_nanos() as u64;
                    now += wait + MS + 100_000;
                }
            }
        }
        assert!((10_000..=10_005).contains(&granted), "{granted}");
    }
}

/// leaky-bucket: a waiter that gave up stored a stale state, and the bucket never filled again.
#[test]
fn a_request_that_is_given_up_leaves_nothing_stale() {
    for gate in both(Quota::per_second(10).burst(5)) {
        for turn in 0..20 {
            let now = turn * SECOND;
            let given_up = gate.take(3, now).expect("it has filled");
            let kept = gate.take(2, now + 1).expect("it was full");
            assert_eq!(gate.undo(given_up, now + 2), 3);
            assert_eq!((kept.remaining(), gate.count(9, now + 3)), (0, 3));
        }
    }
}

/// gcra: a request larger than the burst deleted the key, so 5/h admitted 100.
#[test]
fn a_request_above_the_burst_resets_nothing() {
    let check = |gate: &dyn Gate| {
        let mut granted = 0;
        for now in 0..100 {
            assert_eq!(gate.take(6, now), Err(Denied::never(6, 5)));
            granted += gate.count(1, now);
        }
        assert_eq!(granted, 5);
    };
    both(Quota::per_hour(5))
        .iter()
        .for_each(|gate| check(gate.as_ref()));
    others("5/h", |_| true).for_each(|gate| check(&gate));
}

/// throttlecrab: clamping the arrival time to now - tolerance let 17 through a burst of 10;
/// axum_gcra: N at first, N + 1 after idling.
#[test]
fn idling_banks_no_more_than_the_burst() {
    let interval = SECOND / 10;
    for gate in both(Quota::per_second(10).burst(10)) {
        let mut now = 0;
        for idle in [0, 10, 11, 17, 1000, 1_000_000].map(|intervals| intervals * interval) {
            for part in [0, 1, interval / 2, interval - 1] {
                now += 10 * interval + idle + part;
                assert_eq!(gate.count(30, now), 10, "after {idle} + {part}");
            }
        }
    }
    let spaced = Gcra::from_interval(Duration::from_millis(100), Duration::from_millis(950));
    let gate = Limiter::unstarted(spaced.expect("a gcra"), NoClock);
    for now in [0, 5, 50, 5000].map(|seconds| seconds * SECOND) {
        assert_eq!(gate.count(30, now), 10, "1 + floor(950 / 100)");
    }
}

/// axum_gcra: N at first, N + 1 after idling, where permits come all at once as well. A window that was
/// idle has one window's permits, and not those of two.
#[test]
fn idle_windows_and_refills_bank_nothing() {
    for gate in others("10/s", |name| !name.contains("leaky")) {
        let mut now = 0;
        for idle in [2, 3, 17, 1000, 1_000_000] {
            for part in [0, 1, SECOND / 2, SECOND - 1] {
                now += idle * SECOND + part;
                // A refill by the clock may come in the same second.
                now -= now % SECOND;
                assert_eq!(
                    gate.count(30, now),
                    10,
                    "{gate:?} after {idle} s and {part} ns"
                );
                assert_eq!(gate.count(30, now + SECOND - 1), 0, "{gate:?}");
            }
        }
    }
}

/// throttlecrab: a huge period panicked.
#[test]
fn a_huge_period_is_an_error() {
    for period in [Duration::MAX, Duration::from_secs(u64::MAX / 1000)] {
        let quota = Quota::per(1, period);
        assert_eq!(
            TokenBucket::new(quota),
            Err(ConfigError::PeriodTooLong { period })
        );
        assert!(Gcra::new(quota).is_err() && Gcra::from_interval(period, period).is_err());
    }
}

/// pingora-limits: 11 to 15 of 16 threads panicked in the first second, when the time since the
/// start went below zero.
#[test]
fn threads_in_the_first_moments_of_a_clock_are_answered() {
    let day = Quota::per_day(500);
    let bucket = TokenBucket::new(day).expect("a bucket");
    let gate = Limiter::new(bucket);
    // Each thread's clock is some moments off another's, before the start as well.
    let granted = on_threads(16, |id| {
        let now = gate.now().saturating_sub(Duration::from_millis(id * 100));
        (0..100)
            .map(|_| gate.at(now).take_up_to(1).n() + gate.take_up_to(0).n())
            .sum()
    });
    // The last is not for callers whose time is before the first's.
    assert_eq!(granted + gate.take_up_to(1000).n(), 500);
    // From a clock's very first tick, with windows that began before it.
    for text in [
        "fixed-window 500/d",
        "sliding-window 500/d",
        "intervals 500/d",
    ] {
        let text = format!("{text} origin 86399s");
        let gate: AnyAlgorithm = text.parse().expect("an algorithm");
        let gate = Limiter::unstarted(gate, NoClock);
        assert_eq!(on_threads(16, |id| gate.count(100, id / 8)), 500, "{text}");
    }
}

/// limitador: check, then add: 1001 of 1000; Sentinel: the first pass was a plain store.
#[test]
fn threads_get_the_limit_and_not_one_more() {
    for gate in both(Quota::per_day(1000)) {
        let gate = gate.as_ref();
        assert_eq!(on_threads(8, |_| gate.count(1000, 5)), 1000);
    }
    for gate in others("1000/d", |_| true) {
        assert_eq!(on_threads(8, |_| gate.count(1000, 5)), 1000, "{gate:?}");
    }
}

/// Sentinel: a slot of the LeapArray is checked and added to separately, and made new by whoever comes
/// first, so that counts of the old window were lost or counted in the new one.
#[test]
fn threads_on_both_sides_of_a_windows_edge_get_each_windows_limit() {
    for gate in others("1000/s", |name| name == "fixed-window") {
        for second in 1..20 {
            // Half of them are a nanosecond before the edge, and may find the word behind it.
            let now = |id: u64| second * SECOND - id % 2;
            let before = on_threads(8, |id| {
                let granted = (0..500).filter_map(|_| gate.take(1, now(id)).ok());
                granted
                    .filter(|granted| granted.at() < Tick::from_nanos(second * SECOND))
                    .count() as u64
            });
            assert!(before <= 1000, "{before}");
            let left = gate.at(Tick::from_nanos(second * SECOND)).available();
            // 4000 asked in all, 2000 of them after the edge.
            assert_eq!(
                left, 0,
                "what was counted before the edge is not counted after it"
            );
            gate.reset();
        }
    }
}

/// Runs `work` on so many threads at once, and adds up.
fn on_threads(threads: u64, work: impl Fn(u64) -> u64 + Sync) -> u64 {
    let start = Barrier::new(threads as usize);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|id| {
                let (start, work) = (&start, &work);
                scope.spawn(move || {
                    start.wait();
                    work(id)
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("no panic"))
            .sum()
    })
}

/// tower_governor: `Retry-After: 0`; System.Threading.RateLimiting: it rounds down.
#[test]
fn a_denial_never_says_now_and_its_wait_is_long_enough() {
    for quota in [
        Quota::per_second(3),
        Quota::per_second(13),
        Quota::per_second(9_999_999_999),
    ] {
        for gate in both(quota.burst(2)) {
            let mut now = 0;
            for _ in 0..10_000 {
                if let Err(denied) = gate.take(2, now) {
                    let wait = denied.retry_after().expect("later").as_nanos() as u64;
                    assert!(wait > 0, "{denied}");
                    now += wait - 1;
                    assert!(wait == 1 || gate.take(2, now).is_err(), "{quota}: {denied}");
                    now += 1;
                    assert!(gate.take(2, now).is_ok(), "{quota}: {denied}");
                }
                now += 7;
            }
        }
    }
}

/// x/time/rate: an older caller moved the bucket's time back: two callers a second apart got 1000
/// grants where 110 are right. Spring, ShenYu: time that goes back is credited twice.
#[test]
fn callers_whose_clocks_differ_get_no_more() {
    for gate in both(Quota::per_second(10).burst(100)) {
        let turns = 0..500;
        let granted: u64 = turns
            .map(|_| gate.count(1, SECOND) + gate.count(1, 0))
            .sum();
        assert_eq!(
            granted,
            110 - 10,
            "the older caller is counted at the word's time"
        );
        assert_eq!(gate.count(1000, SECOND), 0);
    }
    for gate in both(Quota::per_second(10).burst(100)) {
        assert_eq!(gate.count(1000, 0), 100);
        let turns = 0..500;
        let granted: u64 = turns
            .map(|_| gate.count(1, SECOND) + gate.count(1, 0))
            .sum();
        assert_eq!(granted, 10, "110 in all");
    }
}

/// Guava: a warm-up of zero made NaN, and NaN is no limit at all.
#[test]
fn nothing_is_an_error_and_not_unlimited() {
    let bucket = |quota| TokenBucket::new(quota).map(|_| ());
    assert_eq!(bucket(Quota::per_second(0)), Err(ConfigError::ZeroPermits));
    assert_eq!(
        bucket(Quota::per_second(1).burst(0)),
        Err(ConfigError::ZeroBurst)
    );
    assert_eq!(
        bucket(Quota::per(1, Duration::ZERO)),
        Err(ConfigError::ZeroPeriod)
    );
    let gcra = Gcra::from_interval(Duration::ZERO, Duration::ZERO).map(|_| ());
    assert_eq!(gcra, Err(ConfigError::ZeroInterval));
}

/// Spring Cloud Gateway: a rate above twice the capacity gave its keys a life of 0 seconds, so that
/// nothing was limited; ShenYu: its script failed, and failing let everything through.
#[test]
fn a_rate_far_above_the_burst_is_a_limit() {
    for (rate, burst) in [(100, 10), (1000, 1), (1_000_000, 3)] {
        for gate in both(Quota::per_second(rate).burst(burst)) {
            let granted: u64 = (0..1000).map(|now| gate.count(20, now)).sum();
            assert_eq!(granted, burst);
            let again = (SECOND / rate) * burst;
            assert_eq!(gate.count(20, 999 + again), burst);
        }
    }
}
