use std::sync::{Arc, Mutex};
use std::time::Duration;

use tollgate::clock::Clock;
use tollgate::error::LimiterError;
use tollgate::{Quota, SlidingLog};
use tower::retry::budget::Budget;

use super::clock::SinceMade;
use super::memory::lock;

/// The price of one retry. A request pays as much as its percentage.
const RETRY: u64 = 100;

/// What requests paid is forgotten after one to two such periods.
const PERIOD: Duration = Duration::from_secs(10);

/// Limits how many retries a client makes: a part of its requests, and a few in any second.
///
/// If a server is down, each request would otherwise be sent three times, and a server that is
/// overloaded would get three times the load. With a budget of 20 %, it gets 1.2 times.
///
/// The bound: in any second, at most `per_second` retries are made that no request paid. In any
/// span of time, the other retries are at most `percent` of the requests that were sent in this
/// span or in the 20 seconds before. What a request paid is spent once, and idle time pays nothing.
/// A retry above the bound is not made, and the caller gets the answer or the error.
///
/// Clones share what was paid. Give several layers clones of one budget if they call one server.
///
/// ```
/// use tollgate_client::RetryBudget;
/// use tower::retry::budget::Budget;
///
/// # fn main() -> Result<(), tollgate::error::LimiterError> {
/// let budget = RetryBudget::new(20, 0)?; // 20 % of the requests, and none a second
/// assert!(!budget.withdraw());
/// for _ in 0..5 {
///     budget.deposit();
/// }
/// assert!(budget.withdraw() && !budget.withdraw());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RetryBudget {
    clock: SinceMade,
    percent: u64,
    paid: Arc<Mutex<Paid>>,
    /// Limits the retries that no request has to pay. `None` if there are no such retries.
    free: Option<Arc<SlidingLog<SinceMade>>>,
}

/// What requests paid in one period, and what is left of the period before.
#[derive(Debug, Default)]
struct Paid {
    period: u128,
    before: u64,
    now: u64,
}

impl RetryBudget {
    /// Makes a budget of retries: `percent` of the requests plus `per_second` in any second. They
    /// are counted in 8 bytes each.
    ///
    /// # Errors
    ///
    /// [`LimiterError`] if `per_second` is above [`SlidingLog::MAX_PERMITS`].
    pub fn new(percent: u32, per_second: u32) -> Result<Self, LimiterError> {
        let clock = SinceMade::now();
        let free = match per_second {
            0 => None,
            n => Some(SlidingLog::with_clock(Quota::per_second(n.into()), clock)?),
        };
        Ok(Self {
            clock,
            percent: percent.into(),
            paid: Arc::default(),
            free: free.map(Arc::new),
        })
    }

    /// Forgets payments that are too old, and then changes the others.
    fn with_paid<T>(&self, change: impl FnOnce(&mut Paid) -> T) -> T {
        let period = u128::from(self.clock.now().as_nanos()) / PERIOD.as_nanos();
        let mut paid = lock(&self.paid);
        match period.saturating_sub(paid.period) {
            0 => {}
            1 => (paid.period, paid.before, paid.now) = (period, paid.now, 0),
            _ => (paid.period, paid.before, paid.now) = (period, 0, 0),
        }
        change(&mut paid)
    }
}

impl Budget for RetryBudget {
    /// A request pays. The layer calls this when a request is sent for the first time.
    fn deposit(&self) {
        self.with_paid(|paid| paid.now = paid.now.saturating_add(self.percent));
    }

    fn withdraw(&self) -> bool {
        let is_free = self
            .free
            .as_ref()
            .is_some_and(|free| free.try_acquire().is_ok());
        is_free
            || self.with_paid(|paid| {
                if paid.before.saturating_add(paid.now) < RETRY {
                    return false;
                }
                let old = paid.before.min(RETRY);
                paid.before -= old;
                paid.now -= RETRY - old;
                true
            })
    }
}

/// 20 % of the requests plus 10 in any second.
impl Default for RetryBudget {
    fn default() -> Self {
        Self::new(20, 10).expect("10 a second is a valid limit")
    }
}
