//! The bounds as docs/WHICH_LIMITER.md states them. `tollgate_audit::Bounded` has the proofs,
//! except for three bounds that only this file checks:
//!
//! # Departures from a queue
//!
//! Let no request ask for more than `k` permits, and let `V` be the tick at which the bucket is
//! empty. A grant of `n` permits at `t` sets `V` to `max(V, t) + n / rate`, and leaves at
//! `D = max(t, V - (free + 1) / rate)`, with the new `V`. Of the grants that leave in `[a, b]`, let
//! `f` be the first and `l` the last that changed the word. Each grant after `f` raises `V` by its
//! permits divided by the rate, or more. So all departures together are at most
//! `n + rate * (V_l - V_f)`, where `n <= k` are the permits of `f`, and
//! `V_l <= b + (free + 1) / rate`.
//!
//! - If `f` had to wait, then `V_f = D_f + (free + 1) / rate >= a + (free + 1) / rate`. All are at
//!   most `n + rate * (b - a)`.
//! - Otherwise `V_f >= a + n / rate`. All are at most `free + 1 + rate * (b - a)`. (If the rate is
//!   not exact, `V_f` may be less than one unit lower, which is less than the nanosecond below.)
//!
//! `D` is rounded up to a whole nanosecond, so it is only known to be later than `a - 1 ns`. The
//! bound is wrong without that nanosecond: at 3/s with nothing free, departures at 333 333 334 and
//! 666 666 667 ns are less than a third of a second apart.
//!
//! # A fixed window that the first hit opens
//!
//! Windows last a period or longer, do not overlap, and each begins with a permit. At most
//! `1 + floor((b - a) / period)` windows begin in `[a, b]`. If another window began before `a`, so
//! did the permit that opened it, and at most `n - 1` of that window are in the interval.
//!
//! # Greedy intervals
//!
//! Refills are a period or more apart. If the bucket was full at `a`, its first refill is a period
//! after the first grant, so at most `floor((b - a) / period)` refills are in the interval.
//! Otherwise at most `burst - 1` permits were there at `a`, and at most one refill more comes.

use super::drive::Driven;

/// Returns what the rate allows in less than a unit, times the period. A unit is at most a quarter
/// of a nanosecond. Exact rates have none.
fn unit(n: u128, period: u128) -> u128 {
    match n / divisor(n, period) {
        ..=11 => 0,
        _ => n.div_ceil(4) - 1,
    }
}

fn divisor(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// An upper bound on the permits granted in any interval of a given length.
#[derive(Debug, Clone, Copy)]
pub(super) enum Promise {
    /// `burst + rate * (length + one unit)`; without the unit if the rate is exact.
    Steady,
    /// `n * (1 + ceil(length / period))`
    Windows,
    /// `n * (2 + floor(length / period)) - 1`. Skewed clocks lengthen the interval by a quantum.
    FirstHit,
    /// `n + rate * length`
    Sliding,
    /// Less than one permit above the sliding window.
    RoundedDown,
    /// `burst + min(n, burst) * ceil(length / period)`
    Refills,
    /// `burst - 1 + min(n, burst) * (1 + floor(length / period))`, with the quantum as above.
    Greedy,
    /// The departures of a queue with this many free permits: `max(free + 1, largest) + rate *
    /// (length + 1 ns)`.
    Departures(u64),
}

impl Promise {
    /// Returns how many permits an interval of `length` nanoseconds may have.
    pub(super) fn allows(self, driven: &Driven, length: u64) -> u128 {
        let [n, period, burst, length] =
            [driven.n, driven.period_ns, driven.burst, length].map(u128::from);
        let late = u128::from(driven.quantum_ns.min(driven.skew_ns));
        let (whole, begun) = ((length + late) / period, length.div_ceil(period));
        match self {
            Self::Steady => burst + (n * length + unit(n, period)) / period,
            Self::Windows => n * (1 + begun),
            Self::FirstHit => n * (2 + whole) - 1,
            Self::Sliding => n + n * length / period,
            // A partial permit counts as a whole one.
            Self::RoundedDown => n + (n * length).div_ceil(period),
            Self::Refills => burst + n.min(burst) * begun,
            Self::Greedy => burst - 1 + n.min(burst) * (1 + whole),
            Self::Departures(free) => {
                u128::from(driven.largest.max(free + 1)) + n * (length + 1) / period
            }
        }
    }

    /// Returns the first interval with more permits than the promise minus `less` allows: its
    /// start, its end, the permits granted and the permits allowed.
    pub(super) fn broken(self, driven: &Driven, less: u128) -> Option<[u128; 4]> {
        let mut taken = match self {
            Self::Departures(_) => driven.left.clone(),
            _ => driven.taken.clone(),
        };
        taken.sort_unstable();
        for (i, &(from, _)) in taken.iter().enumerate() {
            let mut sum = 0;
            let mut rest = taken.iter().skip(i).peekable();
            while let Some(&(to, n)) = rest.next() {
                sum += u128::from(n);
                // All permits taken at a tick belong to every interval that ends at it.
                if rest.peek().is_some_and(|next| next.0 == to) {
                    continue;
                }
                let allowed = self.allows(driven, to - from) - less;
                if sum > allowed {
                    return Some([from.into(), to.into(), sum, allowed]);
                }
            }
        }
        None
    }
}
