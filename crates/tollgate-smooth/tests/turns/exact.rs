//! The limiter that stores free permits, checked step by step with large integers. Costs are never
//! too low, and less than a nanosecond too high. The stored permits are right except for their last
//! digits.

use crate::support::*;

const CALLS: u64 = debug_or_release(3_000, 20_000);

/// Stored permits on a grid of `2^-digits`, the last digit of a store of a second's permits.
struct Exact {
    rate: i128,
    digits: u32,
}

impl Exact {
    /// Scaling by a power of two is exact.
    fn stored(&self, limiter: &SmoothBursty<NoClock>) -> i128 {
        let stored = limiter.stored_at(Tick::ZERO) * (1_u64 << self.digits) as f64;
        assert_eq!(stored.fract(), 0.0, "it is on the grid");
        stored as i128
    }

    /// Checks one call of `n` at `now` by the state before and after it: the next free tick, and
    /// the stored permits. All values are in permits times 10^9 times `2^digits`.
    fn check(&self, before: (u64, i128), now: u64, n: u64, after: (u64, i128)) {
        let scale = i128::from(SECOND);
        let full = (self.rate * scale) << self.digits;
        let came = (i128::from(now.saturating_sub(before.0)) * self.rate) << self.digits;
        let had = (before.1 * scale + came).min(full);
        let wanted = (i128::from(n) * scale) << self.digits;
        let (spent, start) = (had.min(wanted), before.0.max(now));
        // The stored permits are never too many and hardly too few, except for the last digit of
        // what was added.
        let (left, kept) = (had - spent, after.1 * scale);
        let inexact = came.min(full) >> 51;
        assert!(kept <= left + inexact, "{kept} of {left}");
        assert!(kept + 2 * scale + inexact >= left, "{kept} of {left}");
        // The cost in permits: the next caller's wait pays for everything that was not stored.
        let fresh = wanted - spent;
        let paid = (i128::from(after.0 - start) * self.rate) << self.digits;
        let nanosecond = self.rate << self.digits;
        // Except for the last digit of a double, and for what the store may have lost.
        let least = fresh - (fresh >> 50) - inexact;
        let most = fresh + nanosecond + (fresh >> 50) + 2 * scale + inexact;
        assert!((least..=most).contains(&paid), "{paid} for {fresh}");
    }
}

#[test]
fn each_step_is_exact() {
    let mut random = Random(5);
    for rate in [
        1_u32,
        2,
        3,
        7,
        10,
        97,
        1_000,
        12_345,
        3_000_000,
        700_000_001,
        4_000_000_000,
    ] {
        let exact = Exact {
            rate: rate.into(),
            digits: 52 - rate.ilog2(),
        };
        let limiter = bursty(f64::from(rate)).max_burst(Duration::from_secs(1));
        let limiter = limiter.expect("a store");
        let (mut now, interval) = (0_u64, SECOND / u64::from(rate) + 1);
        for _ in 0..CALLS {
            let next = limiter.next_free_at(Tick::ZERO).as_nanos();
            now = match random.below(6) {
                0 => now,
                1 => next,
                2 => next + random.upto(2 * SECOND),
                3 => next.saturating_sub(random.below(interval)),
                4 => now + random.below(2 * interval),
                _ => now + random.upto(SECOND),
            };
            let n = match random.below(4) {
                0 => 1 + random.upto(2 * u64::from(rate)),
                _ => 1 + random.below(3),
            };
            let before = (next, exact.stored(&limiter));
            let turn = limiter.reserve_at(n, tick(now)).expect("a turn");
            assert_eq!(turn.due(), tick(next.max(now)));
            let after = limiter.next_free_at(Tick::ZERO).as_nanos();
            exact.check(before, now, n, (after, exact.stored(&limiter)));
        }
    }
}
