//! The bounds as docs/ALGORITHMS.md states them, and nothing else.

use super::drive::Driven;

/// An upper bound on the permits granted in any interval of a given length.
#[derive(Debug, Clone, Copy)]
pub(super) enum Promise {
    /// `burst + rate * length`
    Steady,
    /// `n * (1 + ceil(length / period))`
    Windows,
    /// `n * (2 + floor(length / period)) - 1`, where clocks that differ make the interval longer by
    /// a quantum.
    FirstHit,
    /// `n + rate * length`
    Sliding,
    /// Less than one permit more.
    RoundedDown,
    /// `burst + min(n, burst) * ceil(length / period)`
    Refills,
    /// `burst - 1 + min(n, burst) * (1 + floor(length / period))`, and the same.
    Greedy,
    /// `max(free + 1, largest) + rate * (length + 1 ns)`, of a queue with this many free permits.
    Departures(u64),
}

impl Promise {
    /// How many, in an interval of `length` nanoseconds.
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
            // A part of a permit is counted whole.
            Self::RoundedDown => n + (n * length).div_ceil(period),
            Self::Refills => burst + n.min(burst) * begun,
            Self::Greedy => burst - 1 + n.min(burst) * (1 + whole),
            Self::Departures(free) => {
                u128::from(driven.largest.max(free + 1)) + n * (length + 1) / period
            }
        }
    }

    /// The first interval in which more permits were granted than the promise, minus `less`,
    /// allows: its start, its end, the permits granted and the permits allowed.
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
                // All that is taken at a moment is in every interval that ends at it.
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
