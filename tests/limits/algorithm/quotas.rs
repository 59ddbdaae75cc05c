//! The quotas of the buckets under test: of every shape that the arithmetic distinguishes, at its
//! limits and beyond.

use tollgate::error::QuotaError;

use crate::support::*;

/// Returns the quota with the largest burst that fits.
pub(crate) fn largest(quota: Quota) -> Quota {
    match TokenBucket::new(quota.burst(u64::MAX)) {
        Err(QuotaError::BurstTooLarge { max, .. }) => quota.burst(max),
        other => panic!("{quota} takes a burst of everything: {other:?}"),
    }
}

/// Returns quotas for which every answer must be exact: intervals of whole nanoseconds, and reduced
/// numerators up to 11.
pub(crate) fn exact() -> Vec<Quota> {
    let mut quotas = vec![
        per_ns(1, 1),
        per_ns(1, 1).burst(1000),
        largest(per_ns(1, 1)),
        Quota::per_second(1),
        Quota::per_second(1).burst(5),
        Quota::per_second(10).burst(3),
        Quota::per_second(1000),
        largest(Quota::per_second(1000)),
        Quota::per_minute(1).burst(7),
        Quota::per_hour(5000),
        Quota::per_day(1).burst(90_000),
        largest(Quota::per_day(1)),
        per_ns(1, YEAR),
        per_ns(1, YEAR).burst(3),
        largest(per_ns(1, YEAR)),
        per_ns(1, 999_999_937).burst(11),
        per_ns(1, 1_000_003).burst(1_000_003),
        // 400 M/s, 600 M/s, 3 G/s and 10 G/s.
        Quota::per_second(400_000_000).burst(100),
        Quota::per_second(600_000_000).burst(100),
        Quota::per_second(3_000_000_000).burst(100),
        Quota::per_second(10_000_000_000).burst(100),
        per_ns(10, 1).burst(1 << 40),
        largest(per_ns(9, 1)),
    ];
    for n in 2..=11 {
        for period_ns in [13, 101, 999_983, SECOND + 7, DAY + 1, n * YEAR - 1] {
            let burst = if n == 11 { 1 } else { 1 + n % 4 };
            quotas.push(per_ns(n, period_ns).burst(burst));
        }
        quotas.push(per_ns(n, SECOND + 7).burst(1_000_000));
    }
    quotas
}

/// Returns quotas for which an answer may be a fraction of a nanosecond off.
pub(crate) fn elsewhere() -> Vec<Quota> {
    let mut quotas = vec![
        Quota::per_second(13),
        Quota::per_second(97).burst(1),
        Quota::per_second(97).burst(20),
        Quota::per_second(999_999_937),
        Quota::per_second(2_147_483_647).burst(10),
        Quota::per_second(3_999_999_999).burst(10),
        Quota::per_second(4_000_000_001).burst(10),
        Quota::per_second(9_999_999_967).burst(1 << 40),
        Quota::per_second(9_999_999_999).burst(1),
        Quota::per_second(9_999_999_999).burst(100),
        largest(Quota::per_second(9_999_999_999)),
        largest(Quota::per_second(13)),
        Quota::per_minute(1_000_003),
        Quota::per_hour(4999),
        Quota::per_day(86_399).burst(100),
        per_ns(12, 13).burst(1),
        per_ns(13, 3).burst(50),
        per_ns(17, YEAR).burst(3),
        per_ns(13, 13 * YEAR - 1).burst(2),
        largest(per_ns(13, 13 * YEAR - 1)),
        // A numerator of 11 with a burst that does not fit in the fine unit.
        largest(per_ns(11, DAY + 1)),
        // 61 bits in both numbers.
        per_ns(2_305_843_009_213_693_951, 1_152_921_504_606_846_883).burst(1000),
        per_ns(999_999_999_999_999_989, 9_999_999_999_999_999_961).burst(1000),
    ];
    for (n, period_ns) in [(101, 7919), (7919, 104_729), (104_729, 1_299_709)] {
        quotas.extend([2, 100].map(|burst| per_ns(n, period_ns).burst(burst)));
    }
    quotas
}

/// Returns any quota that can be represented.
pub(crate) fn any(random: &mut Random) -> Quota {
    let tries = (0..1000).find_map(|_| {
        let (n, period_ns) = (random.upto(1 << 60), random.upto((1 << 62) + (1 << 61)));
        let quota = per_ns(1 + n, 1 + period_ns);
        match TokenBucket::new(quota.burst(u64::MAX)) {
            Err(QuotaError::BurstTooLarge { max, .. }) if max > 0 => Some((quota, max)),
            _ => None,
        }
    });
    let (quota, max) = tries.expect("many are valid");
    quota.burst(1 + random.upto(max - 1))
}
