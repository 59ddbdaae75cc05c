//! Compares leases with a bucket in exact fractions: at intervals that are no whole number of
//! nanoseconds, a lease is answered as its limiter would answer one request for what is missing,
//! and that is right to the nanosecond.

use crate::support::reference::Reference;
use crate::support::reference::bucket::Bucket;
use crate::support::*;

/// A quota of up to 10 permits a nanosecond.
fn any_quota(random: &mut Random) -> Quota {
    let periods = [SECOND, 60 * SECOND, 1_000_000_007, 7, DAY];
    let period = periods[random.below(5) as usize];
    let n = 1 + random.upto(10 * period - 1).min(10_000_000_000);
    per_ns(n, period).burst(2 + random.below(60))
}

/// Makes requests at random ticks and at those at which permits are due. Returns how many were
/// granted to the last available permit, and how many were denied.
fn run(seed: u64, requests: u64) -> (u64, u64) {
    let mut random = Random(seed);
    let quota = any_quota(&mut random);
    let (period, burst) = (quota.period().as_nanos() as u64, quota.burst_size());
    let (total, start) = (1 + random.below(burst - 1), random.upto(40 * YEAR));
    let bucket = TokenBucket::new(quota).expect("a bucket");
    let clock = ManualClock::at(tick(start));
    let limiter = Leases::with_clock(bucket, total, clock.clone()).expect("leases");
    let mut lease = limiter.lease(random.below(total + 1));
    let most = burst - total;
    let mut exact = Bucket::from_quota(quota.burst(most));
    let (mut last, mut denials, mut now) = (0, 0, start);
    for _ in 0..requests {
        now = match random.below(4) {
            0 => now,
            1 => now + random.upto(2 * burst * period / quota.permits()),
            2 => now.max(exact.due(1 + random.below(most)) + random.below(2)),
            _ => now.max(exact.due(most)),
        };
        let tick = tick(now);
        clock.set(tick);
        let (held, there) = (lease.held(), limiter.limiter().available());
        let n = match random.below(4) {
            0 => 1,
            1 => held + 1 + random.below(most),
            2 => (held + there).max(1),
            _ => held + there + 1,
        };
        let why = format!("seed {seed:#x}: {n} at {now}, {held} and {there}, {exact:?}");
        let missing = n.saturating_sub(held);
        let wait = limiter.limiter().time_until(missing);
        let answer = lease.try_acquire_n(n);
        assert_eq!(answer.is_ok(), n <= held + there, "{why}");
        if missing > 0 && missing <= most {
            let due = exact.due(missing).max(now);
            let got = match answer {
                Ok(()) => now,
                Err(Denied::Later { retry_after, .. }) => {
                    denials += 1;
                    assert_eq!(Some(retry_after), wait, "{why}");
                    now + retry_after.as_nanos() as u64
                }
                Err(other) => panic!("{other}: {why}"),
            };
            let off = got.abs_diff(due);
            assert!(off <= u64::from(!exact.exact), "{got}, {due}: {why}");
        }
        let used = if answer.is_ok() { n } else { 0 };
        last += u64::from(answer.is_ok() && n == held + there && missing > 0);
        exact.take(now, lease.held() + used - held);
    }
    (last, denials)
}

#[test]
fn a_lease_is_answered_as_one_request_would_be() {
    let cases = debug_or_release(4_000, 100_000);
    deadline("exact leases", move || {
        let mut random = Random(0x0070_11a7_e703);
        let (mut last, mut denials) = (0, 0);
        for _ in 0..cases {
            let (more_last, more_denials) = run(random.next(), 12);
            (last, denials) = (last + more_last, denials + more_denials);
        }
        assert!(last > cases && denials > cases, "{last}, {denials}");
    });
}
