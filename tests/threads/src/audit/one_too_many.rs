//! The audit finds a single permit too many among all others, with each kind of bound. So the
//! bounds are as small as possible: an algorithm grants everything that its bound allows.

use tollgate::TryAcquire;

use crate::support::*;

const TICKS: u64 = scaled(200, 2000, 100_000);

/// Takes all available permits one by one at the ticks `from`, `from + step` and so on. At the tick
/// `slip` it records one permit more than was granted.
fn history(
    (from, step): (u64, u64),
    slip: Option<u64>,
    take: &mut dyn FnMut(Tick) -> Option<Tick>,
) -> Audit {
    let mut logs = [Log::new(), Log::new(), Log::new()];
    for turn in 0..TICKS {
        let now = from + turn * step;
        let log = &mut logs[turn as usize % 3];
        // The count is limited in case the limiter never denies.
        for at in (0..10_000).map_while(|_| take(tick(now))) {
            log.grant(at, 1);
        }
        if slip == Some(now) {
            log.grant(tick(now), 1);
        }
    }
    logs.into_iter().collect()
}

fn is_found<T: FnMut(Tick) -> Option<Tick>>(
    of: &str,
    bound: Bound,
    (from, step, slip): (u64, u64, u64),
    fresh: impl Fn() -> T,
) {
    let kept = history((from, step), None, &mut fresh()).check(&bound);
    let summary = kept.unwrap_or_else(|excess| panic!("{of}: {excess}"));
    let wrong = history((from, step), Some(from + slip * step), &mut fresh());
    match wrong.check(&bound) {
        Ok(wrong) => panic!("{of}: {summary:?}, {wrong:?}"),
        Err(excess) => assert_eq!(excess.granted as u128, excess.allowed + 1, "{of}: {excess}"),
    }
}

fn of(limiter: impl TryAcquire) -> impl FnMut(Tick) -> Option<Tick> {
    move |now| Some(limiter.try_acquire_n_at(1, now).ok()?.at())
}

const MIDDLE: u64 = TICKS / 2;

/// Nanoseconds from the last tick of a 100 us sliding window to a tick at which each of eight
/// shards has whole permits. A shard gets one every 800 ns.
const WHOLE: u64 = 1 + MIDDLE / 800 * 800;

/// Tests each algorithm in one word and in shards. The slip is at a tick at which no shard has a
/// fraction of a permit. A sliding window is full at its end, and from the start of the next one
/// callers ask for its permits.
#[test]
fn the_audit_finds_one_permit_too_many_of_each_algorithm() {
    deadline("a limiter that denies", || {
        for (text, shards, ticks) in [
            ("token-bucket 1/10ns burst 50", [1, 4, 16], (3, 8, MIDDLE)),
            ("gcra 1/10ns burst 50", [1, 4, 16], (3, 8, MIDDLE)),
            ("gcra 1/70ns tolerance 333ns", [1, 1, 1], (3, 7, MIDDLE)),
            ("leaky-meter 1/10ns burst 50", [1, 4, 16], (3, 8, MIDDLE)),
            ("leaky-queue 1/10ns burst 50", [1, 1, 1], (3, 7, MIDDLE)),
            ("fixed-window 100/1us", [1, 2, 8], (3, 7, MIDDLE)),
            ("fixed-window 100/1us offset 5ns", [1, 2, 8], (3, 7, MIDDLE)),
            // Starts at a multiple of the quantum, so that nothing is rounded.
            (
                "fixed-window 3/4096ns first-hit",
                [1, 2, 3],
                (64, 4096, MIDDLE),
            ),
            ("sliding-window 1000/100us", [1, 2, 8], (99_999, 1, WHOLE)),
            (
                "sliding-window 1000/100us rounding down",
                [1, 2, 8],
                (99_999, 1, WHOLE + 1),
            ),
            ("intervals 3/4096ns burst 10", [1, 2, 3], (5, 64, MIDDLE)),
            (
                "intervals 3/4096ns burst 10 greedy",
                [1, 2, 3],
                (64, 4096, MIDDLE),
            ),
        ] {
            let algorithm = algorithm(text);
            for shards in shards {
                is_found(
                    &format!("{text} in {shards}"),
                    algorithm.bound(),
                    ticks,
                    || {
                        let limiter = Sharded::starting_at(algorithm, shards, NoClock, Tick::ZERO);
                        of(limiter.expect("it splits"))
                    },
                );
            }
        }
    });
}

/// Leases that were full before, and a caller without a lease.
#[test]
fn the_audit_finds_one_permit_too_many_of_leases() {
    let bucket = algorithm("token-bucket 1/10ns burst 50");
    is_found("leases", bucket.bound(), (1000, 7, MIDDLE), || {
        let clock = ManualClock::new();
        let limiter = Leases::with_clock(bucket, 20, clock.clone()).expect("it lends");
        let limiter = Arc::new(limiter);
        let mut leases = [8, 12].map(|size| limiter.lease_owned(size));
        for lease in &mut leases {
            // After a denial of too large a request, a lease holds everything that was available.
            assert!(lease.try_acquire_n(1000).is_err());
            assert_eq!(lease.held(), lease.size());
        }
        move |now| {
            clock.set(now);
            let mut by_lease = leases.iter_mut().map(|lease| lease.try_acquire().is_ok());
            (by_lease.any(|taken| taken) || limiter.try_acquire().is_ok()).then_some(now)
        }
    });
}

#[test]
fn the_audit_finds_one_permit_too_many_of_slots_and_logs() {
    let quota = Quota::per(100, Duration::from_nanos(100_000));
    let ticks = (3, 70, MIDDLE);
    for slots in [1, 4, 10, 100] {
        let bound = Bound::of_slots(quota, slots).expect("a quota");
        is_found(&format!("{slots} slots"), bound, ticks, || {
            of(SlottedWindow::with_clock(quota, slots, NoClock).expect("a quota"))
        });
    }
    let bound = Bound::of_log(quota).expect("a quota");
    is_found("a log", bound, ticks, || {
        of(SlidingLog::with_clock(quota, NoClock).expect("a quota"))
    });
}
