//! The bounds exactly as docs/ALGORITHMS.md states them.

use super::drive::Driven;

/// An upper bound on the permits granted in any interval of a given length.
#[derive(Debug, Clone, Copy)]
pub(super) enum Promise {
    /// `burst + rate * length`
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
            Self::Steady => burst + n * length / period,
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
