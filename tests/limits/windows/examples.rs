//! What the documents say in numbers, one by one.

use std::time::Duration;

use tollgate::{
    Algorithm, Debt, FixedWindow, Forecast, Gauge, Gcra, GiveBack, Intervals, LeakyBucket, Limiter,
    ManualClock, NoClock, Quota, Requota, Rounding, SlidingWindow, Tick, TokenBucket,
};

use crate::support::random::Random;

const SECOND: u64 = 1_000_000_000;

fn seconds(n: u64) -> Tick {
    Tick::from_nanos(n * SECOND)
}

#[test]
fn the_example_of_the_literature() {
    let window = SlidingWindow::new(Quota::per_minute(10)).expect("a window");
    for rounding in [Rounding::Exact, Rounding::Down] {
        let gate = Limiter::unstarted(window.rounding(rounding), NoClock);
        assert_eq!(gate.at(seconds(30)).charge(9).debt(), 0);
        // A quarter into the next window three quarters of the nine count: 6.75.
        let now = gate.at(seconds(75));
        assert_eq!(now.level().as_f64(), 6.75);
        let there = match rounding {
            Rounding::Exact => 3,
            _ => 4,
        };
        assert_eq!(now.available(), there);
        // With five more it is 11.75, which is above 10.
        assert_eq!(now.charge(5).n(), 5);
        assert_eq!(now.level().as_f64(), 11.75);
        assert_eq!((now.level().floor(), now.level().ceil()), (11, 12));
        let denied = now.try_acquire().expect_err("11.75 > 10");
        // Room for one is when 9 * left / 60 s is at most 4, or below 5: at 26.67 or 33.33 s to go.
        let wait = denied.retry_after().expect("in this window").as_nanos();
        let right = match rounding {
            Rounding::Exact => 45 * SECOND - 80 * SECOND / 3,
            _ => 45 * SECOND - 100 * SECOND / 3 + 1,
        };
        assert!(wait.abs_diff(right.into()) <= 1, "{wait} and {right}");
    }
}

#[test]
fn nginxs_queue() {
    // rate=10r/s burst=4 delay=1.
    let queue = LeakyBucket::queue(Quota::per_second(10).burst(5)).expect("a queue");
    let delays = |queue: LeakyBucket| {
        let gate = Limiter::with_clock(queue, ManualClock::new());
        let mut delays = Vec::new();
        while let Ok(granted) = gate.try_acquire() {
            delays.push(granted.delay().as_millis());
        }
        delays
    };
    assert_eq!(delays(queue), [0, 100, 200, 300, 400]);
    assert_eq!(delays(queue.free(1)), [0, 0, 100, 200, 300]);
    assert_eq!(delays(queue.free(4)), [0; 5]);
    assert_eq!(delays(queue.free(u64::MAX)), [0; 5]);
    // Several at once leave together, when the last of them is due.
    let gate = Limiter::with_clock(queue, ManualClock::new());
    let three = gate.try_acquire_n(3).expect("there is room");
    assert_eq!(three.delay(), Duration::from_millis(200));
    assert_eq!(
        gate.try_acquire_n(0).map(|none| none.delay()),
        Ok(Duration::ZERO)
    );
    assert_eq!(gate.take_up_to(9).delay(), Duration::from_millis(400));
}

/// Bursts of every size, whole intervals and others.
fn steady() -> [Quota; 6] {
    [
        Quota::per_second(10).burst(20),
        Quota::per_second(13).burst(7),
        Quota::per_second(9_999_999_999).burst(1000),
        Quota::per_day(5).burst(1).initial(0),
        Quota::per(3, Duration::from_nanos(10)),
        Quota::per(999_999_937, Duration::from_millis(7919)),
    ]
}

#[test]
fn a_meter_decides_as_the_token_bucket_and_gcra_do() {
    let mut random = Random(0x0070_11a7_e401);
    for quota in steady() {
        let meter = LeakyBucket::meter(quota).expect("a meter");
        let bucket = TokenBucket::new(quota).expect("a bucket");
        let gcra = Gcra::new(quota).expect("a gcra");
        for _ in 0..2000 {
            let now = Tick::from_nanos(random.upto(u64::MAX));
            let n = random.upto(2 * quota.burst_size());
            let word = bucket.charge(0, now, random.upto(2 * quota.burst_size())).0;
            let word = word.saturating_add(random.below(3)).min(u64::MAX - 1);
            assert_eq!(meter.step(word, now, n), bucket.step(word, now, n));
            assert_eq!(meter.step(word, now, n), gcra.step(word, now, n));
            assert_eq!(
                meter.take_up_to(word, now, n),
                bucket.take_up_to(word, now, n)
            );
            assert_eq!(meter.charge(word, now, n), bucket.charge(word, now, n));
            assert_eq!(meter.refund(word, now, n), bucket.refund(word, now, n));
            assert_eq!(meter.due(word, now, n), bucket.due(word, now, n));
            assert_eq!(meter.level(word, now), bucket.level(word, now));
            assert_eq!(meter.initial_word(now), bucket.initial_word(now));
        }
    }
}

#[test]
fn a_queue_that_delays_nothing_is_a_meter() {
    for quota in steady() {
        let (meter, queue) = (LeakyBucket::meter(quota), LeakyBucket::queue(quota));
        let (meter, queue) = (meter.expect("a meter"), queue.expect("a queue"));
        assert_eq!(queue.free(u64::MAX), meter);
        assert_eq!(meter.free_permits(), None);
        assert_ne!(queue, meter);
        assert_eq!(queue.free_permits(), Some(0));
        let last = quota.burst_size() - 1;
        assert_eq!(queue.free(last).free_permits(), Some(last));
        // It delays nothing either, and is still a queue: a larger burst would be delayed.
        let gate = Limiter::unstarted(queue.free(last), NoClock);
        gate.reset();
        for part in [last / 2, 1, u64::MAX] {
            let granted = gate.at(seconds(77)).take_up_to(part);
            assert_eq!(granted.delay(), Duration::ZERO, "{quota}");
        }
        let larger = queue
            .free(last)
            .with_quota(quota.burst(quota.burst_size() + 2));
        assert_eq!(larger.map(|queue| queue.free_permits()), Ok(Some(last)));
    }
}

/// A queue whose interval is no whole number of nanoseconds: what is told is at most a nanosecond
/// later than what it is in rational numbers, and never earlier.
#[test]
fn a_delay_is_never_short_and_at_most_a_nanosecond_long() {
    let mut random = Random(0x0070_11a7_e402);
    for quota in steady() {
        let quota = quota.initial(quota.burst_size());
        let (n, period) = (u128::from(quota.permits()), quota.period().as_nanos());
        for free in [0, 1, quota.burst_size() / 2] {
            let queue = LeakyBucket::queue(quota).expect("a queue").free(free);
            for _ in 0..200 {
                let gate = Limiter::unstarted(queue, NoClock);
                let start = Tick::from_nanos(random.upto(SECOND * 86_400 * 365 * 49));
                // The bucket is empty at `start`, and busy from then on.
                let mut inside = 0;
                while inside < u128::from(quota.burst_size()) {
                    let left = u128::from(quota.burst_size()) - inside;
                    let more = 1 + random.upto(left as u64 - 1);
                    // Of a burst taken in parts the last permit may come a nanosecond later.
                    let Ok(granted) = gate.at(start).try_acquire_n(more) else {
                        assert_eq!(u128::from(more), left, "{quota}");
                        break;
                    };
                    inside += u128::from(more);
                    let ahead = inside.saturating_sub(u128::from(free) + 1);
                    let due = (ahead * period).div_ceil(n);
                    let told = granted.delay().as_nanos();
                    assert!(due <= told && told <= due + 1, "{told} for {due}: {quota}");
                }
            }
        }
    }
}

#[test]
fn what_was_granted_in_a_window_that_is_over_is_not_given_back() {
    let fixed = FixedWindow::new(Quota::per_minute(10)).expect("windows");
    let first = fixed.opened_by_first_hit().expect("a quantum");
    let quantum = first.quantum().expect("opened by the first hit");
    assert_eq!(fixed.quantum(), None);
    for window in [fixed, first] {
        let gate = Limiter::unstarted(window, NoClock);
        let granted = gate.try_acquire_n_at(4, Tick::ZERO).expect("all are there");
        assert!(gate.try_acquire_n_at(3, Tick::ZERO).is_ok());
        let over = Tick::ZERO.saturating_add(Duration::from_secs(60) + quantum);
        let now = gate.at(over);
        assert!(now.try_acquire_n(10).is_ok());
        assert_eq!((now.undo(granted), now.available()), (0, 0));
    }
    let sliding = SlidingWindow::new(Quota::per_minute(10)).expect("a window");
    let gate = Limiter::unstarted(sliding, NoClock);
    let granted = gate.try_acquire_n_at(8, Tick::ZERO).expect("all are there");
    assert_eq!(gate.at(seconds(60)).undo(granted), 0);
    assert_eq!(gate.at(seconds(60)).level().floor(), 8);
}

#[test]
fn a_charge_says_what_it_recorded_and_the_window_forgets_it() {
    let windows = FixedWindow::new(Quota::per_day(1000)).expect("windows");
    let gate = Limiter::unstarted(windows, NoClock);
    let most = 1000 + windows.largest_debt();
    let charged = gate.at(Tick::ZERO).charge(u64::MAX);
    assert_eq!((charged.n(), charged.debt()), (most, most - 1000));
    assert_eq!(charged.clear_after(), Duration::from_secs(86_400));
    assert_eq!(gate.at(Tick::ZERO).charge(1).n(), 0);
    assert_eq!(gate.at(seconds(86_400)).available(), 1000);
    // A bucket does not forget it.
    let bucket = Intervals::new(Quota::per_day(1000)).expect("a bucket");
    let gate = Limiter::unstarted(bucket, NoClock);
    assert_eq!(gate.at(Tick::ZERO).charge(2500).debt(), 1500);
    assert_eq!(gate.at(seconds(86_400)).charge(0).debt(), 500);
    assert_eq!(gate.at(seconds(2 * 86_400)).available(), 500);
}

#[test]
fn what_a_window_in_debt_says_of_nothing_taken_is_right_as_well() {
    let fixed = FixedWindow::new(Quota::per_minute(10)).expect("windows");
    let gate = Limiter::unstarted(fixed, NoClock);
    gate.at(seconds(70)).charge(25);
    // By a clock that is behind: it counts at the beginning of the word's window.
    let none = gate.at(seconds(50)).take_up_to(3);
    assert_eq!((none.n(), none.remaining()), (0, 0));
    assert_eq!(
        (none.at(), none.reset_after()),
        (seconds(60), Duration::from_secs(60))
    );
}

/// Two windows that the first hits open, and callers whose clocks are a nanosecond behind.
#[test]
fn who_comes_before_a_windows_beginning_counts_at_it_and_not_in_the_one_before() {
    for (period, quantum, opened, end) in [(128, 2, 0, 128), (159, 3, 1, 162)] {
        let first = FixedWindow::new(Quota::per(4, Duration::from_nanos(period))).expect("windows");
        let first = first.opened_by_first_hit().expect("a quantum");
        assert_eq!(first.quantum(), Some(Duration::from_nanos(quantum)));
        let gate = Limiter::unstarted(first, NoClock);
        let at = |tick| gate.at(Tick::from_nanos(tick));
        let all = at(opened).try_acquire_n(4).expect("fresh");
        assert_eq!(all.at(), Tick::from_nanos(opened));
        let wait = at(opened).time_until(1);
        assert_eq!(wait, Some(Duration::from_nanos(end - opened)));
        assert_eq!(
            at(end).try_acquire().map(|one| one.at()),
            Ok(Tick::from_nanos(end))
        );
        // By his own clock he is still in the window before, and that one is full.
        let late = at(end - 1).try_acquire().expect("three are left");
        assert!(late.at() >= Tick::from_nanos(end), "{late:?}");
        assert_eq!(late.remaining(), 2);
    }
}

/// What comes back at a period's end is counted then, and not before it by a clock that is behind.
#[test]
fn who_comes_before_a_refill_by_his_own_clock_counts_at_it() {
    let quota = Quota::per(20, Duration::from_nanos(1000)).burst(60);
    let bucket = Intervals::new(quota).expect("a bucket");
    let bucket = bucket.greedy().expect("a quantum");
    assert_eq!(bucket.quantum(), Some(Duration::from_nanos(16)));
    let gate = Limiter::unstarted(bucket, NoClock);
    let at = |tick| gate.at(Tick::from_nanos(tick));
    // The first period begins at 15.625: then they come back at 1015.625, 2015.625 and so on.
    assert!(at(1).try_acquire_n(60).is_ok());
    assert_eq!(at(1).time_until(21), Some(Duration::from_nanos(2015)));
    assert!(at(1016).try_acquire_n(20).is_ok());
    assert!(at(2016).try_acquire_n(1).is_ok());
    let behind = at(2001)
        .try_acquire_n(19)
        .expect("by the word they have come");
    assert_eq!(behind.at(), Tick::from_nanos(2016));
}

#[test]
fn no_verb_of_a_window_needs_more_than_its_trait() {
    fn everything<A: Algorithm + GiveBack + Debt + Forecast + Gauge>(algorithm: A) -> u64 {
        algorithm.available(0, Tick::ZERO)
    }
    let quota = Quota::per_second(5);
    assert_eq!(everything(FixedWindow::new(quota).expect("windows")), 5);
    assert_eq!(everything(SlidingWindow::new(quota).expect("a window")), 5);
    assert_eq!(everything(Intervals::new(quota).expect("a bucket")), 5);
    assert_eq!(everything(LeakyBucket::meter(quota).expect("a bucket")), 5);
}
