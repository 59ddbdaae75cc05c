//! Fifty years of uninterrupted use: permit `k` is due `k * period / n` after the bucket ran dry,
//! to less than a quarter of a nanosecond early and a nanosecond late, for any number of permits
//! taken on the way there.

use crate::algorithm::quotas;
use crate::support::*;

/// Returns how many permits of a bucket that runs dry at `start` were due a nanosecond later than
/// the first tick that the rate allows, and how many were due a nanosecond sooner, because less
/// than a quarter of a nanosecond was missing.
fn off(quota: Quota, start: u64, random: &mut Random) -> [u64; 2] {
    let bucket = TokenBucket::new(quota.initial(0)).expect("a bucket");
    let limiter = Limiter::unstarted(bucket, NoClock);
    let (n, period) = (u128::from(quota.permits()), quota.period().as_nanos());
    let all = u128::from(FIFTY_YEARS - start) * n / period;
    let (mut taken, mut late, mut early) = (0, 0, 0);
    for turn in 1..=40 {
        // Takes permits further and further ahead of their time. The clock stands still, so the
        // bucket is never full in between.
        let until = u64::try_from(all * turn / 40 - taken).unwrap_or(u64::MAX);
        let skipped = limiter.at(tick(start)).charge(random.upto(until));
        taken += u128::from(skipped.n());
        let n_next = 1 + random.upto(quota.burst_size() - 1);
        let right = (taken + u128::from(n_next)) * period;
        let due = u128::from(start) + right.div_ceil(n);
        let Some(due) = u64::try_from(due).ok().filter(|due| *due <= FIFTY_YEARS) else {
            break;
        };
        let at = |nanos| limiter.at(tick(nanos));
        let wait = at(start).time_until(n_next).expect("in time").as_nanos();
        let label = format!("{quota} from {start}, {taken} taken, due at {due} after {wait} ns");
        assert!(wait <= u128::from(due - start) + 1, "{label}");
        assert!(4 * (right - (n * wait).min(right)) < n, "{label}");
        let granted = start + wait as u64;
        assert!(
            granted == start || at(granted - 1).try_acquire_n(n_next).is_err(),
            "{label}"
        );
        assert!(at(granted).available() >= n_next, "{label}");
        late += u64::from(granted > due);
        early += u64::from(granted < due);
    }
    [late, early]
}

#[test]
fn permit_k_is_due_k_intervals_after_the_bucket_ran_dry() {
    let mut random = Random(0x0070_11a7_e005);
    let mut all = |quotas: Vec<Quota>| {
        let quotas = quotas
            .into_iter()
            .flat_map(|quota| [(quota, 0), (quota, 7), (quota, 1 << 59)]);
        let all = quotas.map(|(quota, start)| off(quota, start, &mut random));
        all.fold([0; 2], |[a, b], [late, early]| [a + late, b + early])
    };
    assert_eq!(all(quotas::exact()), [0, 0]);
    let elsewhere = all(quotas::elsewhere());
    assert!(elsewhere.iter().all(|off| *off > 0), "{elsewhere:?}");
}
