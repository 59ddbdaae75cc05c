//! What requests cost at first, and in the end.

use std::sync::Arc;

use tollgate::Quota;
use tollgate_http::{RequestFacts, Unit};

use crate::answered::{Ended, Outcome};
use crate::settings::Settings;

/// Which requests a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum CountedRequests {
    /// All requests.
    #[default]
    All,
    /// Requests that failed: see [`Ended::is_failure`]. The permits of others are given back, apart
    /// from those of requests whose client went away before the answer.
    Failures,
    /// Requests that succeeded: see [`Ended::is_success`]. The permits of others are given back,
    /// also those of requests whose client went away before the answer.
    Successes,
}

/// The most that is settled where no quota is known, if the program does not say it.
const UNKNOWN_SETTLEMENT: u64 = u32::MAX as u64;

type CostOf = Arc<dyn Fn(&RequestFacts<'_>) -> u64 + Send + Sync>;
type Settle = Arc<dyn Fn(&Ended<'_>) -> u64 + Send + Sync>;

/// Limits of which requests take permits, as many as they cost.
///
/// No other crate can name this trait.
pub trait HasCosts {
    fn costs(&mut self) -> &mut Costs;
}

/// What requests cost at first, and in the end.
#[derive(Clone, Default)]
#[expect(missing_debug_implementations, reason = "not public")]
pub struct Costs {
    pub(crate) cost: Option<CostOf>,
    pub(crate) count: CountedRequests,
    pub(crate) settle: Option<Settle>,
    /// The most that a request costs, if the program says it.
    pub(crate) max_cost: Option<u64>,
    /// What the limit counts, as fields say it.
    pub(crate) unit: Unit,
}

impl Costs {
    /// Returns what a request costs at first.
    #[inline]
    pub(crate) fn of(&self, facts: &RequestFacts<'_>) -> u64 {
        let most = self.max_cost.unwrap_or(u64::MAX);
        self.cost.as_ref().map_or(1, |cost| cost(facts).min(most))
    }

    /// Returns whether requests may cost something else in the end.
    #[inline]
    pub(crate) fn settles(&self) -> bool {
        self.settle.is_some() || self.count != CountedRequests::All
    }

    /// Returns the most that is settled at the end of a request, by the quota of its limit. By
    /// default it is all permits at once or those of an hour, so that no number blocks a key for
    /// good.
    pub(crate) fn most(&self, quota: impl FnOnce() -> Option<Quota>) -> u64 {
        let of_limit = || quota().map(|quota| quota.largest_settlement());
        let has_settle = self.settle.is_some();
        let most = self
            .max_cost
            .or_else(|| has_settle.then(of_limit).flatten());
        most.unwrap_or(UNKNOWN_SETTLEMENT)
    }

    /// Returns whether [`actual`](Self::actual) reads the headers of the answer.
    pub(crate) fn reads_headers(&self, settings: &Settings) -> bool {
        let counts_some = self.count != CountedRequests::All;
        self.settle.is_some() || (counts_some && settings.is_failure.is_some())
    }

    /// Returns what a request cost in the end.
    pub(crate) fn actual(&self, ended: &Ended<'_>, most: u64, settings: &Settings) -> u64 {
        let outcome = || settings.outcome(ended);
        let counts = match self.count {
            CountedRequests::All => true,
            CountedRequests::Failures => !matches!(outcome(), Outcome::Success | Outcome::Neither),
            CountedRequests::Successes => matches!(outcome(), Outcome::Success),
        };
        match (counts, &self.settle) {
            (false, _) => 0,
            (true, None) => ended.taken,
            (true, Some(settle)) => settle(ended).min(most.max(ended.taken)),
        }
    }
}
