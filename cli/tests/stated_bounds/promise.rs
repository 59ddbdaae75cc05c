//! The bounds as docs/ALGORITHMS.md states them, and nothing else.

/// At most so many permits in every interval of a length.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Promise {
    /// `burst + rate * length`
    Steady { burst: u64 },
    /// `n * (1 + ceil(length / period))`
    Windows,
    /// `n * (2 + floor(length / period)) - 1`, where clocks that differ make the interval longer by a
    /// quantum.
    FirstHit { skew_ns: u64 },
    /// `n + rate * length`, and with rounding down less than one permit more.
    Sliding { down: bool },
    /// `burst + min(n, burst) * ceil(length / period)`
    Refills { burst: u64 },
    /// `burst - 1 + min(n, burst) * (1 + floor(length / period))`, and the same.
    Greedy { burst: u64, skew_ns: u64 },
    /// `max(free + 1, largest) + rate * (length + 1 ns)`
    Departures { free: u64, largest: u64 },
}

/// What a quota says of a rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    pub(crate) n: u64,
    pub(crate) period_ns: u64,
}

impl Rate {
    /// How many permits come in so long, with a part of one left out.
    fn made(self, length_ns: u64) -> u128 {
        u128::from(self.n) * u128::from(length_ns) / u128::from(self.period_ns)
    }
}

impl Promise {
    pub(crate) fn allows(self, rate: Rate, length_ns: u64) -> u128 {
        let Rate { n, period_ns } = rate;
        let whole = |skew_ns: u64| u128::from((length_ns + skew_ns) / period_ns);
        let begun = u128::from(length_ns.div_ceil(period_ns));
        let many = u128::from(n);
        match self {
            Self::Steady { burst } => u128::from(burst) + rate.made(length_ns),
            Self::Windows => many * (1 + begun),
            Self::FirstHit { skew_ns } => many * (2 + whole(skew_ns)) - 1,
            Self::Sliding { down: false } => many + rate.made(length_ns),
            // Less than one permit more, so a part of one is counted whole.
            Self::Sliding { down: true } => {
                many + (many * u128::from(length_ns)).div_ceil(period_ns.into())
            }
            Self::Refills { burst } => u128::from(burst) + u128::from(n.min(burst)) * begun,
            Self::Greedy { burst, skew_ns } => {
                u128::from(burst) - 1 + u128::from(n.min(burst)) * (1 + whole(skew_ns))
            }
            Self::Departures { free, largest } => {
                u128::from(largest.max(free + 1)) + rate.made(length_ns + 1)
            }
        }
    }

    /// The first interval with more in it than is promised, of permits at such moments: from, to, how
    /// many, and how many may be.
    pub(crate) fn broken(self, rate: Rate, taken: &[(u64, u64)]) -> Option<[u128; 4]> {
        let mut taken = taken.to_vec();
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
                let allowed = self.allows(rate, to - from);
                if sum > allowed {
                    return Some([from.into(), to.into(), sum, allowed]);
                }
            }
        }
        None
    }
}
