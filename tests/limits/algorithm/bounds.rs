//! The admission bounds in the documentation. Small limits are checked exhaustively, for all
//! possible callers. Large limits are checked with callers that take what they can, some of them
//! with clocks that are behind.

use std::collections::{HashMap, HashSet};

use tollgate::algorithm::Rounding;

use crate::algorithm::cases;
use crate::algorithm::first::FirstHit;
use crate::support::reference::bucket::Bucket;
use crate::support::*;

/// Returns the most permits that may be granted in an interval of a given length.
fn promised(algorithm: &AnyAlgorithm) -> impl Fn(u64) -> u128 + use<> {
    let (quota, text) = (algorithm.quota(), algorithm.to_string());
    let (n, period) = (u128::from(quota.permits()), quota.period().as_nanos());
    let burst = u128::from(quota.burst_size());
    let (by_window, at_edges) = match algorithm {
        AnyAlgorithm::FixedWindow(_) => (true, 2 * n),
        AnyAlgorithm::Intervals(_) => (true, burst + n),
        _ => (false, burst),
    };
    // Less than one permit more, if the previous window is rounded down, or if a tolerance holds a
    // fraction of a permit more than the burst.
    let more = u128::from(text.ends_with("rounding down") || text.contains("tolerance"));
    // A bucket whose rate is not exact grants what the rate allows in less than a quarter of a
    // nanosecond more.
    let is_window = matches!(algorithm, AnyAlgorithm::SlidingWindow(_));
    let unit = match is_window || text.contains("tolerance") || Bucket::from_quota(quota).exact {
        true => 0,
        false => n.div_ceil(4) - 1,
    };
    move |length| match u128::from(length) {
        length if by_window => at_edges + n * (length / period),
        length => ((burst + more) * period + n * length + unit - more) / period,
    }
}

/// Returns the most that can be granted in each length of interval, for any requests in it and
/// before it. At each tick callers take any number from nothing to everything.
fn worst(algorithm: &AnyAlgorithm) -> Vec<u64> {
    let limit = algorithm.quota().burst_size();
    let period = algorithm.quota().period().as_nanos() as u64;
    let next = |word: u64, at: u64| {
        let each = (0..=limit).filter_map(move |n| {
            let taken = algorithm.step(word, tick(at), n);
            taken.ok().map(|(next, granted)| (next, granted.n()))
        });
        // In debt nothing is granted, not even zero permits.
        each.chain([(word, 0)])
    };
    let mut reached = HashSet::from([0]);
    let mut worst = vec![0; 3 * period as usize + 2];
    for begin in 0..3 * period {
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
fn assert_worst(algorithm: impl Into<AnyAlgorithm>) {
    let algorithm = algorithm.into();
    let (worst, promised) = (worst(&algorithm), promised(&algorithm));
    assert_eq!(worst[0], algorithm.quota().burst_size(), "{algorithm}");
    for (length, most) in worst.into_iter().enumerate() {
        let right = promised(length as u64);
        assert!(
            u128::from(most) <= right,
            "{algorithm}: {most} in {length} ns"
        );
    }
}

/// All small limits: permits and nanoseconds. A build with overflow checks tests a few of them.
fn small() -> Vec<(u64, u64)> {
    if cfg!(debug_assertions) {
        return vec![(1, 1), (3, 1), (2, 3), (3, 4)];
    }
    let limits = [1, 2, 3, 4, 5, 7, 8, 11].map(|period| (1..=5).map(move |n| (n, period)));
    limits.into_iter().flatten().collect()
}

#[test]
fn no_order_of_requests_exceeds_the_bound() {
    for (n, period) in small() {
        let (quota, half) = (per_ns(n, period), Duration::from_nanos(period / 2));
        if let Ok(exact) = SlidingWindow::new(quota) {
            let down = exact.rounding(Rounding::Down);
            for window in [exact, exact.offset(half), down, down.offset(half)] {
                assert_worst(window);
            }
        }
        let aligned = FixedWindow::new(quota).expect("windows");
        assert_worst(aligned);
        assert_worst(aligned.offset(Duration::from_nanos(1)));
        if n <= FirstHit::largest(period) {
            assert_worst(aligned.opened_by_first_hit().expect("a quantum"));
        }
        for burst in [1, n, n + 2, 2 * n + 1] {
            assert_worst(TokenBucket::new(quota.burst(burst)).expect("a bucket"));
            let aligned = Intervals::new(quota.burst(burst)).expect("a bucket");
            assert_worst(aligned);
            assert_worst(aligned.offset(Duration::from_nanos(2)));
            if burst <= FirstHit::largest(period) {
                assert_worst(aligned.greedy().expect("a quantum"));
            }
        }
    }
}

#[test]
fn the_bounds_are_tight() {
    // Of three earlier permits, 2.4 still count within the period. Rounded down, that is two.
    let exact = SlidingWindow::new(per_ns(3, 5)).expect("a window");
    let beyond = |window: SlidingWindow| {
        let worst = worst(&window.into()).into_iter().enumerate();
        worst
            .into_iter()
            .any(|(length, most)| most > 3 + 3 * length as u64 / 5)
    };
    assert!(beyond(exact.rounding(Rounding::Down)) && !beyond(exact));
    // A fixed window grants its limit on both sides of a boundary.
    let fixed = FixedWindow::new(per_ns(2, 3)).expect("windows");
    assert_eq!(worst(&fixed.into())[1], 4);
}

/// Runs callers that ask for everything, up to `most`, and for parts of it, at window boundaries
/// and between them, on clocks up to `skew` behind. Returns their grants: the tick at which each
/// may be used, and its permits.
fn granted(algorithm: &AnyAlgorithm, most: u64, skew: u64, random: &mut Random) -> Vec<(u64, u64)> {
    let limiter = Limiter::unstarted(*algorithm, NoClock);
    let period = algorithm.quota().period().as_nanos() as u64;
    let mut now = random.upto(FIFTY_YEARS / 2);
    let mut taken = Vec::new();
    for _ in 0..120 {
        let caller = limiter.at(tick(now.saturating_sub(random.upto(skew))));
        let granted = match random.below(3) {
            0 => caller.take_up_to(most),
            1 => caller.take_up_to((1 + random.upto(caller.available())).min(most)),
            _ => caller.take_up_to(1),
        };
        if granted.n() > 0 {
            let at = granted.at().as_nanos() + granted.delay().as_nanos() as u64;
            taken.push((at, granted.n()));
        }
        let wait = match random.below(7) {
            0 => 0,
            1 => 1 + random.below(3),
            2 => random.upto(period),
            3 => random.below(period),
            4 => period - now % period - random.below(2),
            // Goes to the tick of the next permit, which is often at a boundary.
            _ => {
                let due = limiter.at(tick(now)).time_until(1);
                due.map_or(0, |due| due.as_nanos() as u64)
            }
        };
        now = now.saturating_add(wait).min(FIFTY_YEARS);
    }
    taken.sort_unstable();
    taken
}

/// Checks the bound over every interval that begins and ends with a grant. In between, the bound is
/// looser.
#[track_caller]
fn assert_kept(algorithm: &AnyAlgorithm, taken: &[(u64, u64)], bound: impl Fn(u64) -> u128) {
    for (i, (from, _)) in taken.iter().enumerate() {
        let mut total = 0;
        for (to, n) in &taken[i..] {
            total += u128::from(*n);
            let most = bound(to - from);
            assert!(
                total <= most,
                "{algorithm}: {total} of {most} from {from} to {to}"
            );
        }
    }
}

#[test]
fn the_bounds_hold_at_any_size_and_skew() {
    let mut random = Random(0x0070_11a7_e201);
    for any in cases::all() {
        let (period, promised) = (any.quota().period().as_nanos() as u64, promised(&any));
        // Includes skews of about a quantum, if there is one.
        for skew in [
            0,
            3,
            period / 70,
            period / 3,
            period,
            period.saturating_mul(3),
        ] {
            // A queue's delays are checked below.
            let is_queue = any.to_string().starts_with("leaky-queue");
            for _ in 0..if cfg!(debug_assertions) { 1 } else { 8 } {
                let taken = granted(&any, u64::MAX, skew, &mut random);
                if !is_queue {
                    assert_kept(&any, &taken, &promised);
                }
            }
        }
    }
}

#[test]
fn permits_leave_a_queue_at_the_rate() {
    let mut random = Random(0x0070_11a7_e204);
    let quotas = [
        Quota::per_second(10).burst(20),
        per_ns(1, 7).burst(30),
        per_ns(10, 1).burst(1000),
        Quota::per_second(13).burst(40),
        Quota::per_second(9_999_999_999).burst(1000),
    ];
    for (quota, free, most) in quotas.into_iter().flat_map(|quota| {
        let free = [0, 1, 3, quota.burst_size() / 2];
        free.into_iter()
            .flat_map(move |free| [1, 2, 5].map(|most| (quota, free, most)))
    }) {
        let queue = LeakyBucket::queue(quota)
            .expect("a queue")
            .free(free)
            .into();
        let left = granted(&queue, most, 0, &mut random);
        let (n, period) = (u128::from(quota.permits()), quota.period().as_nanos());
        let at_once = u128::from(most.max(free + 1)) * period;
        // A permit that is due between two nanoseconds leaves at the second, so two permits may be
        // up to a nanosecond closer to each other than the interval.
        let nearer = u128::from(!period.is_multiple_of(n));
        assert_kept(&queue, &left, |length| {
            (at_once + n * (u128::from(length) + nearer) - nearer) / period
        });
    }
}
