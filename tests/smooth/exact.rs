//! The limiter that stores free permits, step by step against whole numbers of any size: costs are never less than
//! they are, nor more by a nanosecond; what is stored is never more than came (by more than the last digit of a double), nor less by two of its last digits.

use std::time::Duration;

use tollgate::{NoClock, SmoothBursty, Tick};

use crate::random::Random;
use crate::{SECOND, tick};

/// A double that is no less than 0, as a multiple of a power of two: `(m, e)` is `m * 2^-e`.
fn exactly(value: f64) -> (i128, u32) {
    let bits = value.to_bits();
    let (exponent, digits) = ((bits >> 52) as i64, bits & ((1 << 52) - 1));
    match exponent {
        0 => (i128::from(digits), 1_074),
        _ => {
            let m = i128::from(digits | (1 << 52));
            let zeros = i64::from(m.trailing_zeros());
            match 1_075 - exponent - zeros {
                e if e >= 0 => (m >> zeros, e as u32),
                e => ((m >> zeros) << -e, 0),
            }
        }
    }
}

/// On a grid of `2^-digits` permits: what is stored, at most a second's permits.
struct Exact {
    rate: i128,
    digits: u32,
}

impl Exact {
    /// The store is kept in multiples of the last digit of its size.
    fn new(rate: u32) -> Self {
        let digits = 52 - (31 - rate.leading_zeros());
        Self {
            rate: rate.into(),
            digits,
        }
    }

    fn stored(&self, gate: &SmoothBursty<NoClock>) -> i128 {
        let (m, e) = exactly(gate.stored_at(Tick::ZERO));
        assert!(m == 0 || e <= self.digits, "it is on the grid");
        if m == 0 { 0 } else { m << (self.digits - e) }
    }

    /// One call of `n` at `now`, judged by what was before and what is after, all in permits times 10^9 times
    /// `2^digits`.
    fn check(&self, before: (u64, i128), now: u64, n: u64, after: (u64, i128)) {
        let scale = i128::from(SECOND);
        let full = (self.rate * scale) << self.digits;
        let came = (i128::from(now.saturating_sub(before.0)) * self.rate) << self.digits;
        let had = (before.1 * scale + came).min(full);
        let wanted = (i128::from(n) * scale) << self.digits;
        let (spent, start) = (had.min(wanted), before.0.max(now));
        // Stored: never more and hardly less, but for the last digit of what came.
        let (left, kept) = (had - spent, after.1 * scale);
        let inexact = came.min(full) >> 51;
        assert!(kept <= left + inexact, "{kept} of {left}");
        assert!(kept + 2 * scale + inexact >= left, "{kept} of {left}");
        // The cost, as permits: what the next one waits for pays for all that was not stored.
        let fresh = wanted - spent;
        let cost = i128::from(after.0 - start);
        let paid = (cost * self.rate) << self.digits;
        let nanosecond = self.rate << self.digits;
        // By the last digit of a double, of what was not stored, or of what the store may have lost.
        let inexact = (fresh >> 50) + 2 * scale + inexact;
        let least = fresh - (fresh >> 50) - (came.min(full) >> 51);
        assert!(paid >= least, "early by {}", fresh - paid);
        assert!(paid <= fresh + nanosecond + inexact, "{paid} for {fresh}");
    }
}

#[test]
fn each_step_is_exact() {
    let mut random = Random(5);
    for rate in [
        1,
        2,
        3,
        7,
        10,
        97,
        1_000,
        12_345,
        3_000_000,
        700_000_001,
        4_000_000_000_u32,
    ] {
        let exact = Exact::new(rate);
        let gate = SmoothBursty::started_at(f64::from(rate), NoClock, Tick::ZERO);
        let gate = gate.expect("a rate").max_burst(Duration::from_secs(1));
        let gate = gate.expect("a store");
        let (mut now, interval) = (0_u64, SECOND / u64::from(rate) + 1);
        for _ in 0..20_000 {
            let next = gate.next_free_at(Tick::ZERO).as_nanos();
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
            let before = (next, exact.stored(&gate));
            let turn = gate.reserve_at(n, tick(now)).expect("a turn");
            assert_eq!(turn.due(), tick(next.max(now)));
            let after = gate.next_free_at(Tick::ZERO).as_nanos();
            exact.check(before, now, n, (after, exact.stored(&gate)));
        }
    }
}
