//! No permit is stranded: at a standing tick, threads together get exactly the limit from 1 to 16
//! shards or slots, from a log and from leases. After idling all of it is available again.
//!
//! For shards of fewer than eight permits this holds for two threads. With three or more threads,
//! fractions of permits may be left in the shards and become whole permits later. The threads never
//! get more than the limit.

use std::collections::BTreeSet;

use tollgate::TryAcquire;

use crate::support::*;

const THREADS: u64 = scaled(3, 4, 4);

/// A multiple of all numbers up to 16, so that it divides evenly into that many slots.
const SLOT_NS: u64 = 720_720;
const PERIOD: Duration = Duration::from_nanos(SLOT_NS * 1000);

/// The middle of a period of any kind.
const START: Tick = tick(1_000_000 * SLOT_NS + SLOT_NS / 3);

type AnyLimiter = Box<dyn TryAcquire<Clock = ManualClock> + Sync>;

/// Limits from 1 to `all`, and some larger ones. Under Miri, which is slow, only one.
fn limits(all: u64) -> impl Iterator<Item = u64> {
    let larger: &[u64] = if cfg!(miri) { &[3] } else { &[5, 16, 97, 1000] };
    (1..=all).chain(larger.iter().copied().filter(move |n| *n > all))
}

/// In a release build, every limit up to this one is tested.
const ALL: u64 = scaled(0, 24, 1000);

/// 1 to 16.
fn parts() -> impl Iterator<Item = usize> + Clone {
    1..=scaled(2, 16, 16) as usize
}

/// Creates a limiter with this many shards, or one for each permit if there are fewer.
fn sharded(algorithm: AnyAlgorithm, limit: u64, clock: &ManualClock) -> Vec<AnyLimiter> {
    let shards = parts().filter(|shards| *shards as u64 <= limit);
    let limiter = |shards| Sharded::with_shards(algorithm, shards, clock.clone());
    let boxed = |shards| Box::new(limiter(shards).expect("a part for each permit")) as AnyLimiter;
    shards.map(boxed).collect()
}

/// Takes permits one by one until a denial, with a maximum in case that never comes.
fn drain(mut take: impl FnMut() -> bool) -> u64 {
    (0..2000).take_while(|_| take()).count() as u64
}

/// Returns the permits that this many threads get from each limiter, one by one.
fn taken(threads: u64, limiters: &[AnyLimiter]) -> Vec<u64> {
    let counts = on_threads(0..threads, |_| {
        let each = limiters.iter();
        let each = each.map(|limiter| drain(|| limiter.try_acquire().is_ok()));
        each.collect::<Vec<_>>()
    });
    let sum = |place| counts.iter().map(|counts| counts[place]).sum();
    (0..limiters.len()).map(sum).collect()
}

/// Checks that threads get exactly the limit of each limiter, and exactly the limit again after
/// `periods` periods.
fn are_exact(threads: u64, limit: u64, periods: u32, clock: &ManualClock, limiters: &[AnyLimiter]) {
    for _ in 0..2 {
        let taken = taken(threads, limiters);
        for (place, limiter) in limiters.iter().enumerate() {
            assert_eq!(taken[place], limit, "the limiter at {place}");
            assert_eq!(limiter.available_at(clock.now()), 0);
        }
        clock.advance(periods * PERIOD);
        for limiter in limiters {
            assert_eq!(limiter.available_at(clock.now()), limit);
        }
    }
}

/// Checks that two threads get exactly the limit of each limiter, and that more threads never get
/// more. With shards of eight permits or more they do not get less either. After some periods the
/// limit is available again.
fn shards_are_exact(algorithm: AnyAlgorithm, limit: u64) {
    let clock = ManualClock::at(START);
    let limiters = sharded(algorithm, limit, &clock);
    are_exact(2, limit, 2, &clock, &limiters);
    let taken = taken(THREADS, &limiters);
    for ((shards, taken), limiter) in parts().zip(taken).zip(&limiters) {
        let rest = drain(|| limiter.try_acquire().is_ok());
        let is_right = match shards as u64 * 8 <= limit {
            true => taken + rest == limit,
            false => taken + rest <= limit,
        };
        assert!(is_right, "{taken} and {rest} of {algorithm} in {shards}");
    }
    clock.advance(2 * PERIOD);
    for limiter in limiters {
        assert_eq!(limiter.available_at(clock.now()), limit);
    }
}

#[test]
fn no_permit_is_stranded_in_shards_slots_or_a_log() {
    deadline("threads that take all", || {
        for limit in limits(ALL) {
            let (clock, quota) = (ManualClock::at(START), Quota::per(limit, PERIOD));
            let bucket = algorithm(&format!("token-bucket 1/us burst {limit}"));
            shards_are_exact(bucket, limit);
            let slots = |slots| {
                let limiter = SlottedWindow::with_clock(quota, slots, clock.clone());
                Box::new(limiter.expect("slots")) as AnyLimiter
            };
            let slotted: Vec<_> = parts().map(slots).collect();
            are_exact(THREADS, limit, 1, &clock, &slotted);
            let log = SlidingLog::with_clock(quota, clock.clone()).expect("a log");
            are_exact(THREADS, limit, 1, &clock, &[Box::new(log) as AnyLimiter]);
            // Not a nanosecond earlier.
            let log = SlidingLog::with_clock(quota, clock.clone()).expect("a log");
            let taken = sum(0..THREADS, |_| drain(|| log.try_acquire().is_ok()));
            clock.advance(PERIOD - Duration::from_nanos(1));
            assert_eq!((taken, log.available()), (limit, 0));
        }
    });
}

#[test]
fn no_permit_is_stranded_in_shards_of_each_algorithm() {
    deadline("threads that take all", || {
        for limit in limits(scaled(0, 12, 40)) {
            let burst = format!("1/us burst {limit}");
            let window = format!("{limit}/{}ns", PERIOD.as_nanos());
            let texts = [
                format!("gcra {burst}"),
                format!("leaky-meter {burst}"),
                format!("fixed-window {window}"),
                format!("fixed-window {window} first-hit"),
                format!("sliding-window {window}"),
                format!("sliding-window {window} rounding down"),
                format!("intervals {window}"),
                format!("intervals {window} greedy"),
            ];
            for text in &texts[..scaled(2, 8, 8) as usize] {
                shards_are_exact(algorithm(text), limit);
            }
        }
    });
}

/// Requests for several permits that collide may leave fractions in the shards, but all of these
/// become whole permits later.
#[test]
fn requests_for_several_permits_strand_none_for_good() {
    deadline("threads that take several", || {
        for limit in limits(0) {
            let clock = ManualClock::at(START);
            let bucket = algorithm(&format!("token-bucket 1/us burst {limit}"));
            for limiter in sharded(bucket, limit, &clock).into_iter().skip(1) {
                for most in [3, limit.div_ceil(4).max(2)] {
                    let granted = sum(0..THREADS, |id| {
                        let asked = (0..scaled(4, 100, 200)).map(|turn| (id + turn) % most + 1);
                        let granted = asked.filter_map(|n| limiter.try_acquire_n(n).ok());
                        granted.map(|granted| granted.n()).sum()
                    });
                    let rest = drain(|| limiter.try_acquire().is_ok());
                    assert!(granted + rest <= limit, "{granted} and {rest} of {limit}");
                    clock.advance(2 * PERIOD);
                    assert_eq!(limiter.available_at(clock.now()), limit);
                }
            }
        }
    });
}

/// Half of the threads use leases, half do not. At a tick they draw everything except the lent
/// permits, plus the permits that full leases already held.
fn with_leases(limiter: &Leases<AnyAlgorithm, ManualClock>, are_full: bool) -> u64 {
    let wanted = limiter.max_lent().div_ceil(2);
    let mut leases: Vec<_> = (0..THREADS)
        .map(|id| limiter.lease(wanted * (id % 2)))
        .collect();
    if are_full {
        // After a denial of too large a request, a lease holds everything that was available.
        for lease in &mut leases {
            assert!(lease.try_acquire_n(u64::MAX).is_err());
        }
        limiter.limiter().clock().advance(2 * PERIOD);
    }
    sum(leases, |mut lease| {
        drain(|| lease.try_acquire().is_ok() || limiter.try_acquire().is_ok())
    })
}

#[test]
fn leases_strand_only_what_they_hold() {
    deadline("leases that take all", || {
        for limit in limits(ALL).filter(|limit| *limit > 1) {
            for total in BTreeSet::from([1, limit / 2, limit - 1]) {
                let bucket = algorithm(&format!("token-bucket 1/us burst {limit}"));
                let clock = ManualClock::at(START);
                let limiter = Leases::with_clock(bucket, total, clock.clone()).expect("it lends");
                for _ in 0..2 {
                    assert_eq!(with_leases(&limiter, false), limit - total);
                    assert_eq!(limiter.lent(), 0);
                    clock.advance(2 * PERIOD);
                }
                // The leases find less than they want if less is left than is lent.
                let held = total.min(limit - total);
                assert_eq!(with_leases(&limiter, true), limit - total + held);
                clock.advance(2 * PERIOD);
                let mut lease = limiter.lease(total);
                assert!(lease.try_acquire_n(u64::MAX).is_err());
                assert_eq!(limiter.limiter().available(), limit - total - held);
                drop(lease);
                assert_eq!(limiter.limiter().available(), limit - total);
            }
        }
    });
}
