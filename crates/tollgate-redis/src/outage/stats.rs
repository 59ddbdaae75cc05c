//! The parties that decide, and the counts of their decisions.

/// The party that made a decision.
///
/// ```
/// use tollgate_redis::Decider;
///
/// assert!(!Decider::Server.is_fallback());
/// assert!(Decider::Local.is_fallback());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Decider {
    /// The server, or this process in its place if the request can never be granted, because it is
    /// for more than the burst, or if it [remembers] that the server denied it.
    ///
    /// [remembers]: crate::RedisLimiter::remember_denials
    Server,
    /// This process, from permits that it [leased](crate::RedisLimiter::leased) from the server, or
    /// of its [allowance](crate::Leasing::with_allowance).
    Lease,
    /// [`Fallback::Closed`](crate::Fallback::Closed).
    Closed,
    /// [`Fallback::Open`](crate::Fallback::Open), or
    /// [`Fallback::OpenAtMost`](crate::Fallback::OpenAtMost).
    Open,
    /// [`Fallback::Local`](crate::Fallback::Local).
    Local,
}

impl Decider {
    /// Returns whether the decision was made without the server.
    #[must_use]
    pub const fn is_fallback(self) -> bool {
        !matches!(self, Self::Server | Self::Lease)
    }
}

/// How many decisions were made by the server and by each fallback, and how many answers were lost.
///
/// ```
/// use tollgate_redis::Stats;
///
/// let stats = Stats::default();
/// assert_eq!((stats.server, stats.fallbacks(), stats.lost), (0, 0, 0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Calls that the server answered: decisions and all other verbs.
    pub server: u64,
    /// Decisions by [`Fallback::Closed`](crate::Fallback::Closed). If several limits are asked
    /// together, each grant counts, or else the denial.
    pub closed: u64,
    /// Decisions by [`Fallback::Open`](crate::Fallback::Open) and
    /// [`Fallback::OpenAtMost`](crate::Fallback::OpenAtMost).
    pub open: u64,
    /// Decisions by [`Fallback::Local`](crate::Fallback::Local).
    pub local: u64,
    /// Calls that failed, or that their caller dropped. A call that was not sent because of an
    /// outage does not count.
    pub failed: u64,
    /// Calls that failed, or that their caller dropped, and that may have taken effect on the
    /// server. Also grants that stay taken because they could not be undone: after another limit
    /// denied the request, or when their [guard](crate::RedisGuard) was dropped.
    pub lost: u64,
    /// Outages that have begun.
    pub outages: u64,
    /// Decisions for which no call was made, because a denial is
    /// [remembered](crate::RedisLimiter::remember_denials).
    pub remembered: u64,
}

impl Stats {
    /// Returns how many decisions were made without the server.
    #[must_use]
    pub const fn fallbacks(&self) -> u64 {
        self.closed
            .saturating_add(self.open)
            .saturating_add(self.local)
    }

    /// Returns the sums of two counts.
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            server: self.server.saturating_add(other.server),
            closed: self.closed.saturating_add(other.closed),
            open: self.open.saturating_add(other.open),
            local: self.local.saturating_add(other.local),
            failed: self.failed.saturating_add(other.failed),
            lost: self.lost.saturating_add(other.lost),
            outages: self.outages.saturating_add(other.outages),
            remembered: self.remembered.saturating_add(other.remembered),
        }
    }

    pub(crate) fn count(&mut self, decider: Decider) {
        let count = match decider {
            Decider::Server | Decider::Lease => return,
            Decider::Closed => &mut self.closed,
            Decider::Open => &mut self.open,
            Decider::Local => &mut self.local,
        };
        *count = count.saturating_add(1);
    }
}
