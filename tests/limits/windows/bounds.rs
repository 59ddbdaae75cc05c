//! The admission bounds that the documentation states: on small windows for everything that callers can
//! do, by trying it all; on large ones for callers that take what they can, some of them by clocks that
//! are behind.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tollgate::{
    Algorithm, AnyAlgorithm, FixedWindow, Intervals, LeakyBucket, Limiter, NoClock, Quota,
    Rounding, SlidingWindow, Tick,
};

use crate::windows::budget::FIFTY_YEARS;
use crate::windows::first::FirstHit;
use crate::windows::fixed::Fixed;
use crate::support::model::Model;
use crate::windows::quotas;
use crate::support::random::Random;
use crate::windows::sliding::Sliding;

fn per_ns(n: u64, period_ns: u64) -> Quota {
    Quota::per(n, Duration::from_nanos(period_ns))
}

/// What is promised of an interval from a tick to one so much later.
type Bound = Box<dyn Fn(u64) -> u64>;

/// The most that can be granted in each length of interval, whatever callers take in it and before it.
/// At each tick anything from nothing to all there is may be taken.
fn worst(algorithm: &impl Algorithm, limit: u64, period: u64) -> Vec<u64> {
    let (lead, length) = (3 * period, 3 * period + 2);
    let next = |word: u64, tick: u64| {
        let each = (0..=limit).filter_map(move |n| {
            let taken = algorithm.step(word, Tick::from_nanos(tick), n);
            taken.ok().map(|(next, granted)| (next, granted.n()))
        });
        // Where there is debt, not even nothing is granted.
        each.chain([(word, 0)]).collect::<Vec<_>>()
    };
    let mut reached = HashSet::from([0]);
    let mut worst = vec![0; length as usize];
    for begin in 0..lead {
        let mut most: HashMap<u64, u64> = reached.iter().map(|word| (*word, 0)).collect();
        for (since, worst) in worst.iter_mut().enumerate() {
            let mut then = HashMap::new();
            for (word, total) in most {
                for (next, n) in next(word, begin + since as u64) {
                    let best = then.entry(next).or_insert(0);
                    *best = total.saturating_add(n).max(*best);
                }
            }
            *worst = then.values().copied().max().unwrap_or(0).max(*worst);
            most = then;
        }
        let words: Vec<_> = reached.iter().copied().collect();
        reached.extend(
            words
                .into_iter()
                .flat_map(|word| next(word, begin))
                .map(|(next, _)| next),
        );
    }
    worst
}

#[track_caller]
fn assert_worst(algorithm: impl Into<AnyAlgorithm>, limit: u64, period: u64, bound: &Bound) {
    let algorithm = algorithm.into();
    let worst = worst(&algorithm, limit, period);
    assert_eq!(worst[0], limit, "{algorithm}");
    for (length, most) in worst.into_iter().enumerate() {
        let right = bound(length as u64);
        assert!(most <= right, "{algorithm}: {most} in {length} ns");
    }
}

/// Every small window there is; a few of them, where overflow is checked as well.
fn small() -> impl Iterator<Item = (u64, u64)> {
    let (periods, most): (&[u64], _) = match cfg!(debug_assertions) {
        true => (&[1, 3, 4], 3),
        false => (&[1, 2, 3, 4, 5, 7, 8, 11], 5),
    };
    let windows = periods
        .iter()
        .flat_map(move |p| (1..=most).map(move |n| (n, *p)));
    windows.filter(|(n, period)| *n <= 10 * period)
}

#[test]
fn a_sliding_window_admits_no_more_than_its_limit_and_the_rate() {
    for (n, period) in small().filter(|(n, period)| *n <= Sliding::largest(*period)) {
        let exact = SlidingWindow::new(per_ns(n, period)).expect("a window");
        let offset = Duration::from_nanos(period / 2);
        let bound: Bound = Box::new(move |length| n + n * length / period);
        assert_worst(exact, n, period, &bound);
        assert_worst(exact.offset(offset), n, period, &bound);
        // Less than one more.
        let more: Bound =
            Box::new(move |length| ((n + 1) * period + n * length).div_ceil(period) - 1);
        let down = exact.rounding(Rounding::Down);
        assert_worst(down, n, period, &more);
        assert_worst(down.offset(offset), n, period, &more);
    }
}

#[test]
fn a_window_rounded_down_does_admit_a_permit_more() {
    // Of three before, 2.4 are still within the period: it counts two.
    let exact = SlidingWindow::new(per_ns(3, 5)).expect("a window");
    let down = exact.rounding(Rounding::Down);
    let beyond = |window| {
        let worst = worst(&window, 3, 5).into_iter();
        worst
            .enumerate()
            .any(|(length, most)| most > 3 + 3 * length as u64 / 5)
    };
    assert!(beyond(down) && !beyond(exact));
}

#[test]
fn a_fixed_window_admits_its_limit_in_each_window_an_interval_touches() {
    for (n, period) in small() {
        let aligned = FixedWindow::new(per_ns(n, period)).expect("windows");
        let bound: Bound = Box::new(move |length| n * (2 + length / period));
        assert_worst(aligned, n, period, &bound);
        assert_worst(aligned.offset(Duration::from_nanos(1)), n, period, &bound);
        if n <= FirstHit::largest(period) {
            let first = aligned.opened_by_first_hit().expect("a quantum");
            assert_worst(first, n, period, &bound);
        }
        // The double burst at the edge is there.
        if period > 1 {
            assert_eq!(worst(&aligned, n, period)[1], 2 * n);
        }
    }
}

#[test]
fn a_window_opened_by_the_first_hit_admits_its_limit_in_a_period_from_it() {
    for (n, period) in small().filter(|(n, period)| *n <= FirstHit::largest(*period)) {
        let first = FixedWindow::new(per_ns(n, period)).expect("windows");
        let first = first.opened_by_first_hit().expect("a quantum");
        let gate = Limiter::unstarted(first, NoClock);
        for opened in 0..4 * period {
            gate.reset();
            let granted: u64 = (opened..opened + period)
                .map(|tick| gate.at(Tick::from_nanos(tick)).take_up_to(u64::MAX).n())
                .sum();
            assert_eq!(granted, n, "{n} in {period} from {opened}");
        }
    }
}

#[test]
fn intervals_admit_their_burst_and_a_refill_for_each_period_begun() {
    for (n, period) in small() {
        for burst in [1, n, n + 2, 2 * n + 1] {
            let aligned = Intervals::new(per_ns(n, period).burst(burst)).expect("a bucket");
            let bound: Bound = Box::new(move |length| burst + n * (1 + length / period));
            assert_worst(aligned, burst, period, &bound);
            assert_worst(
                aligned.offset(Duration::from_nanos(2)),
                burst,
                period,
                &bound,
            );
            if burst <= FirstHit::largest(period) {
                let greedy = aligned.greedy().expect("a quantum");
                assert_worst(greedy, burst, period, &bound);
            }
        }
    }
}

/// Permits that count at a tick.
type Taken = Vec<(u64, u64)>;

/// What callers get that ask for all there is and for parts of it, at edges and between, with clocks
/// that are up to `skew` behind.
fn greedy_callers(algorithm: &AnyAlgorithm, period: u64, skew: u64, random: &mut Random) -> Taken {
    let gate = Limiter::unstarted(*algorithm, NoClock);
    let mut now = random.upto(FIFTY_YEARS / 2);
    let mut taken = Taken::new();
    for _ in 0..120 {
        let caller = gate.at(Tick::from_nanos(now.saturating_sub(random.upto(skew))));
        let granted = match random.below(3) {
            0 => caller.take_up_to(u64::MAX),
            1 => caller.take_up_to(1 + random.upto(caller.available())),
            _ => caller.take_up_to(1),
        };
        if granted.n() > 0 {
            taken.push((granted.at().as_nanos(), granted.n()));
        }
        let wait = match random.below(7) {
            0 => 0,
            1 => 1 + random.below(3),
            2 => random.upto(period),
            3 => random.below(period),
            4 => period - now % period - random.below(2),
            // As soon as there is any, and so often at an edge.
            _ => {
                let due = gate.at(Tick::from_nanos(now)).time_until(1);
                due.map_or(0, |due| due.as_nanos() as u64)
            }
        };
        now = now.saturating_add(wait).min(FIFTY_YEARS);
    }
    taken.sort_unstable();
    taken
}

/// The promise for every interval that begins and ends with a grant; between these it is looser.
#[track_caller]
fn assert_kept(taken: &Taken, what: impl std::fmt::Display, bound: impl Fn(u64) -> u128) {
    for (i, (from, _)) in taken.iter().enumerate() {
        let mut total = 0;
        for (to, n) in &taken[i..] {
            total += u128::from(*n);
            let most = bound(to - from);
            assert!(
                total <= most,
                "{what}: {total} of {most} from {from} to {to}"
            );
        }
    }
}

/// Runs with clocks that agree, and that differ by more and more.
fn with_skews(period: u64, random: &mut Random, check: impl Fn(u64, &mut Random)) {
    // About a quantum, where there is one, among them.
    for skew in [0, 3, period / 70, period / 3, period, 3 * period] {
        for _ in 0..if cfg!(debug_assertions) { 1 } else { 8 } {
            check(skew, random);
        }
    }
}

#[test]
fn a_sliding_windows_bound_holds_at_any_size_and_skew() {
    let mut random = Random(0x0070_11a7_e201);
    for (window, _) in quotas::sliding() {
        let quota = tollgate::Requota::quota(&window);
        let (n, period) = (quota.permits(), quota.period().as_nanos() as u64);
        let any = AnyAlgorithm::from(window);
        // Less than one permit more, if the window before is rounded down.
        let more = u128::from(any.to_string().ends_with("rounding down"));
        with_skews(period, &mut random, |skew, random| {
            let taken = greedy_callers(&any, period, skew, random);
            assert_kept(&taken, any, |length| {
                let all = (u128::from(n) + more) * u128::from(period);
                (all + u128::from(n) * u128::from(length) - more) / u128::from(period)
            });
        });
    }
}

#[test]
fn intervals_bounds_hold_at_any_size_and_skew() {
    let mut random = Random(0x0070_11a7_e202);
    let aligned = quotas::intervals().into_iter().map(|(bucket, _)| bucket);
    let greedy = quotas::greedy().into_iter().map(|(bucket, _)| bucket);
    for bucket in aligned.chain(greedy) {
        let quota = tollgate::Requota::quota(&bucket);
        let (n, period) = (quota.permits(), quota.period().as_nanos() as u64);
        let any = AnyAlgorithm::from(bucket);
        with_skews(period, &mut random, |skew, random| {
            let taken = greedy_callers(&any, period, skew, random);
            assert_kept(&taken, any, |length| {
                u128::from(quota.burst_size()) + u128::from(n) * u128::from(1 + length / period)
            });
        });
    }
}

#[test]
fn a_fixed_window_grants_its_limit_in_each_window_and_no_more_at_any_skew() {
    let mut random = Random(0x0070_11a7_e203);
    for (windows, (model, _)) in quotas::fixed() {
        let quota = tollgate::Requota::quota(&windows);
        let (n, period) = (quota.permits(), quota.period().as_nanos() as u64);
        let any = AnyAlgorithm::from(windows);
        with_skews(period, &mut random, |skew, random| {
            let taken = greedy_callers(&any, period, skew, random);
            let mut in_window: HashMap<i128, u64> = HashMap::new();
            for (tick, granted) in taken {
                *in_window.entry(model.window_of(tick)).or_default() += granted;
            }
            assert!(
                in_window.values().all(|granted| *granted <= n),
                "{any}: {in_window:?}"
            );
        });
        exactly_its_limit(&any, n, &model, &mut random);
    }
    for (windows, _) in quotas::first_hit() {
        let quota = tollgate::Requota::quota(&windows);
        let (n, period) = (quota.permits(), quota.period().as_nanos() as u64);
        let any = AnyAlgorithm::from(windows);
        with_skews(period, &mut random, |skew, random| {
            let taken = greedy_callers(&any, period, skew, random);
            assert_kept(&taken, any, |length| {
                u128::from(n) * u128::from(2 + length / period)
            });
        });
    }
}

/// Where enough ask, each window grants all it has: in many parts, at its first tick, between, and at
/// its last.
fn exactly_its_limit(any: &AnyAlgorithm, n: u64, model: &Fixed, random: &mut Random) {
    let gate = Limiter::unstarted(*any, NoClock);
    let mut from = random.upto(FIFTY_YEARS / 2);
    for _ in 0..10 {
        let to = model.edge(from) - 1;
        if to > FIFTY_YEARS {
            break;
        }
        let mut ticks: Vec<_> = (0..8).map(|_| from + random.below(to - from + 1)).collect();
        ticks.extend([from, to]);
        ticks.sort_unstable();
        let asked = ticks.iter().map(|tick| {
            let now = gate.at(Tick::from_nanos(*tick));
            let part = if tick == &to {
                u64::MAX
            } else {
                random.upto(n)
            };
            now.take_up_to(part).n()
        });
        assert_eq!(asked.sum::<u64>(), n, "{any}: from {from} to {to}");
        from = to + 1;
    }
}

/// When the permits of a queue's grants leave, if all wait as they are told.
fn departures(queue: LeakyBucket, most: u64, random: &mut Random) -> Taken {
    let gate = Limiter::unstarted(queue, NoClock);
    let quota = gate.quota();
    let interval = (quota.period().as_nanos() as u64 / quota.permits()).max(1);
    let mut now = random.upto(FIFTY_YEARS / 2);
    let mut left = Taken::new();
    for _ in 0..200 {
        let n = 1 + random.upto(most - 1);
        if let Ok(granted) = gate.at(Tick::from_nanos(now)).try_acquire_n(n) {
            let wait = granted.delay().as_nanos() as u64;
            left.push((now + wait, n));
        }
        now += match random.below(5) {
            0 | 1 => 0,
            2 => random.upto(interval),
            3 => random.upto(3 * interval * most),
            _ => {
                let due = gate.at(Tick::from_nanos(now)).time_until(1);
                due.map_or(0, |due| due.as_nanos() as u64)
            }
        };
    }
    left.sort_unstable();
    left
}

#[test]
fn what_leaves_a_queue_keeps_the_rate() {
    let mut random = Random(0x0070_11a7_e204);
    let quotas = [
        Quota::per_second(10).burst(20),
        Quota::per_second(1000).burst(100),
        per_ns(1, 7).burst(30),
        per_ns(3, 10).burst(12),
        per_ns(10, 1).burst(1000),
        Quota::per_second(13).burst(40),
        Quota::per_second(999_999_937).burst(50),
        Quota::per_second(9_999_999_999).burst(1000),
        Quota::per_day(5).burst(9),
    ];
    for quota in quotas {
        for free in [0, 1, 3, quota.burst_size() / 2] {
            for most in [1, 2, 5] {
                let queue = LeakyBucket::queue(quota).expect("a queue").free(free);
                let left = departures(queue, most, &mut random);
                let (n, period) = (u128::from(quota.permits()), quota.period().as_nanos());
                let at_once = u128::from(most.max(free + 1)) * period;
                // Who must leave between two nanoseconds leaves at the second: so two are up to a
                // nanosecond nearer to each other than the rate has it.
                let nearer = u128::from(!period.is_multiple_of(n));
                assert_kept(&left, AnyAlgorithm::from(queue), |length| {
                    (at_once + n * (u128::from(length) + nearer) - nearer) / period
                });
            }
        }
    }
}
