//! How many permits a node holds of a key: what it needs until the next answer, twice.

/// A draw lasts at least this long, so that a busy key is asked about seldom: 50 ms.
const LASTS_NS: u64 = 50_000_000;

/// The demand for one key, at one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Demand {
    target: u64,
}

/// What was spent since the demand was noted before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Spending {
    pub(crate) spent: u64,
    /// Permits that were asked for, and not there.
    pub(crate) missed: u64,
    /// The most of them that one request asked for.
    pub(crate) largest: u64,
    pub(crate) for_ns: u64,
    /// How long an answer takes.
    pub(crate) turnaround_ns: u64,
}

impl Demand {
    /// Returns how many permits the node should hold.
    pub(crate) const fn target(&self) -> u64 {
        self.target
    }

    /// Notes what was spent. The target grows at once, and shrinks by a quarter each time. It is at
    /// most `most`.
    pub(crate) fn note(&mut self, spending: Spending, most: u64) {
        let Spending {
            spent,
            missed,
            largest,
            for_ns,
            turnaround_ns,
        } = spending;
        let asked = spent.saturating_add(missed);
        let lasts = turnaround_ns.saturating_mul(2).max(LASTS_NS);
        // A short time says little: a draw of one permit that was used at once is no rate.
        let needs = scaled(asked, lasts, for_ns.max(turnaround_ns).max(1_000_000));
        // So that it is granted next time.
        let needs = needs.max(largest);
        let shrunk = self.target.saturating_sub(self.target.div_ceil(4));
        self.target = needs.max(shrunk).min(most);
    }
}

/// How many idle slots there were since the demand was noted before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Fluctuation {
    pub(crate) highest: u64,
    pub(crate) lowest: u64,
    /// Slots that were asked for, and not there.
    pub(crate) missed: u64,
}

impl Demand {
    /// Notes how far the number of idle slots fell. The target grows at once, and shrinks by half
    /// if the time is one of a review. It is at most `most`.
    pub(crate) fn note_slots(&mut self, idle: Fluctuation, is_review: bool, most: u64) {
        let fell = idle.highest.saturating_sub(idle.lowest);
        let needs = fell.saturating_add(idle.missed);
        let shrunk = if is_review {
            self.target / 2
        } else {
            self.target
        };
        self.target = needs.max(shrunk).min(most);
    }
}

/// Returns `n * a / b`, rounded up.
fn scaled(n: u64, a: u64, b: u64) -> u64 {
    let product = u128::from(n).saturating_mul(a.into());
    u64::try_from(product.div_ceil(u128::from(b.max(1)))).unwrap_or(u64::MAX)
}
