use std::sync::Arc;

use tollgate::error::QuotaError;
use tollgate::{Limiter, Quota, TokenBucket, const_unwrap};

use super::clock::SinceMade;

/// The permits of one retry. A request pays in as many as its percentage.
const RETRY: u64 = 100;

/// At most this many seconds' worth of retries is saved up.
const SAVED_SECONDS: u64 = 10;

/// Limits how many retries a client makes: a part of its requests, and a few a second.
///
/// If a server is down, each request would otherwise be sent three times, and a server that is
/// overloaded would get three times the load. With a budget of 20 %, it gets 1.2 times.
///
/// Each request pays a part of a retry into a token bucket, which is also filled at a rate. The
/// bucket begins with the retries of one second, and holds those of 10 seconds, or 10 if that is
/// more. A retry that finds too little is not made, and the caller gets the answer or the error.
///
/// Clones share their bucket. Give several layers clones of one budget if they call one server.
///
/// ```
/// use tollgate_client::RetryBudget;
///
/// # fn main() -> Result<(), tollgate::error::QuotaError> {
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
    bucket: Arc<Limiter<TokenBucket, SinceMade>>,
    percent: u64,
}

/// Ten retries a second.
const DEFAULT: TokenBucket = const_unwrap!(TokenBucket::new(
    Quota::per_second(10 * RETRY)
        .burst(10 * RETRY * SAVED_SECONDS)
        .initial(10 * RETRY)
));

impl RetryBudget {
    /// Makes a budget of retries: `percent` of the requests, and `per_second`. With 0 a second, the
    /// bucket is filled with one retry in a hundred days.
    ///
    /// # Errors
    ///
    /// [`QuotaError`] if `per_second` is too large for a quota.
    pub fn new(percent: u32, per_second: u32) -> Result<Self, QuotaError> {
        let rate = u64::from(per_second).saturating_mul(RETRY);
        let saved = rate.saturating_mul(SAVED_SECONDS).max(10 * RETRY);
        let quota = match rate {
            0 => Quota::per_day(1),
            _ => Quota::per_second(rate),
        };
        let bucket = TokenBucket::new(quota.burst(saved).initial(rate))?;
        Ok(Self::of(bucket, percent))
    }

    fn of(bucket: TokenBucket, percent: u32) -> Self {
        Self {
            bucket: Arc::new(Limiter::with_clock(bucket, SinceMade::now())),
            percent: percent.into(),
        }
    }

    /// Pays in for a request. The layer does so when a request is sent for the first time.
    pub fn deposit(&self) {
        if self.percent > 0 {
            self.bucket.refund(self.percent);
        }
    }

    /// Takes a retry, or returns `false` if the budget is used up.
    #[must_use = "a retry that is not taken must not be made"]
    pub fn withdraw(&self) -> bool {
        self.bucket.try_acquire_n(RETRY).is_ok()
    }
}

/// 20 % of the requests, and 10 a second.
impl Default for RetryBudget {
    fn default() -> Self {
        Self::of(DEFAULT, 20)
    }
}
