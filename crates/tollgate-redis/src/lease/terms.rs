//! The numbers of a limit's leases.

/// After an answer with too few permits, a node waits for about this long, or until half of what it
/// may hold is refilled.
pub(crate) const LONGEST_PAUSE_NS: u64 = 12_500_000;

/// The numbers of a lease.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) life_ns: u64,
    /// The most permits that a node may hold of a key.
    pub(crate) most: u64,
    /// How long a permit takes to refill.
    pub(crate) cost_ns: u64,
    /// Whether what is out when a window begins counts in it: then the server must know soon what
    /// is spent.
    pub(crate) is_window: bool,
    /// How often all keys are looked at.
    pub(crate) review_ns: u64,
    /// Of a limit on concurrency, how long a grant holds its slots that is not given back.
    pub(crate) slots_ns: Option<u64>,
}

impl Terms {
    /// Returns how long permits may be spent, from when the message was sent: the life less a 50th.
    /// So clocks may differ by 2 %, which no two do.
    pub(crate) const fn spendable_ns(&self) -> u64 {
        self.life_ns.saturating_sub(self.life_ns / 50)
    }

    /// Returns how long a node waits after an answer without permits.
    pub(crate) fn pause_ns(&self) -> u64 {
        let half = self.cost_ns.saturating_mul(self.most.div_ceil(2));
        half.min(LONGEST_PAUSE_NS)
            .max(self.cost_ns.min(LONGEST_PAUSE_NS))
    }
}
