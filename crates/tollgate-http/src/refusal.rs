//! Why a request is refused.

use std::time::Duration;

use http::StatusCode;
use tollgate::Denied;

use crate::LimitState;

/// Why a request is refused, with the status of its answer unless [`Answers`](crate::Answers) have
/// another one.
///
/// ```
/// use http::StatusCode;
/// use tollgate_http::{Answers, Cause, Refusal};
///
/// let overload = Refusal::new(Cause::Overload);
/// assert_eq!(Answers::new().refuse(&overload).status(), 503);
/// let answers = Answers::new().status(Cause::Overload, StatusCode::TOO_MANY_REQUESTS);
/// assert_eq!(answers.refuse(&overload).status(), 429);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// A rate is used up: 429. The answer has no `Retry-After` if the wait is not known or endless.
    Limit,
    /// Too many requests are being served, or wait, or a table has no room for another key: 503.
    Overload,
    /// The store that counts requests does not answer, and its fallback denies: 503, and
    /// `UNAVAILABLE` in gRPC. This says nothing about what the client sent. `Retry-After` is the
    /// time until the process asks the store again.
    Unavailable,
    /// The key is banned for a time: 429.
    Banned,
    /// An entry of a list denies the request: 403.
    Listed,
    /// The request lacks the key of its limit: 400.
    MissingKey,
    /// The request has several values of its key that differ, or too many values of a fact that its
    /// limit reads: 400.
    Ambiguous,
    /// The request has none of its rule's plans: 403.
    NoPlan,
    /// The request asks for more than it can ever get: 429, without `Retry-After`.
    TooLarge,
    /// The limits can't decide, because they can't be combined or need an asynchronous store: 500.
    Misconfigured,
}

impl Cause {
    /// Returns why a limit denies a request.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Denied;
    /// use tollgate_http::Cause;
    ///
    /// assert_eq!(Cause::of(&Denied::later(1, Duration::from_secs(2))), Cause::Limit);
    /// assert_eq!(Cause::of(&Denied::busy(1)), Cause::Overload);
    /// assert_eq!(Cause::of(&Denied::never(5, 3)), Cause::TooLarge);
    /// ```
    #[must_use]
    pub const fn of(denied: &Denied) -> Self {
        match denied {
            Denied::Banned { .. } => Self::Banned,
            Denied::Busy { .. } | Denied::LineFull { .. } | Denied::NoRoom { .. } => Self::Overload,
            Denied::NoSuchPlan { .. } => Self::NoPlan,
            Denied::Never { .. } => Self::TooLarge,
            Denied::TimerMismatch { .. } => Self::Misconfigured,
            _ => Self::Limit,
        }
    }
}

/// A refused request, as its answer describes it.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
/// use tollgate_http::{Answers, Cause, LimitState, Refusal};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let quota = Quota::per_minute(60).burst(1);
/// let limiter = Limiter::with_clock(TokenBucket::new(quota)?, ManualClock::new());
/// limiter.try_acquire()?;
/// let denied = limiter.try_acquire().unwrap_err();
///
/// let limits = [LimitState::of_rate("api", quota).denied(&denied, limiter.available())];
/// let refusal = Refusal::of_denied(&denied).rule("api").limits(&limits);
/// assert_eq!((refusal.cause(), refusal.wait()), (Cause::Limit, Some(Duration::from_secs(1))));
///
/// let answer = Answers::new().refuse(&refusal);
/// assert_eq!(answer.status(), 429);
/// assert_eq!(answer.headers()["retry-after"], "1");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct Refusal<'a> {
    cause: Cause,
    rule: Option<&'a str>,
    status: Option<StatusCode>,
    retry_after: Option<Duration>,
    limits: &'a [LimitState<'a>],
}

impl<'a> Refusal<'a> {
    /// Creates a refusal.
    pub const fn new(cause: Cause) -> Self {
        Self {
            cause,
            rule: None,
            status: None,
            retry_after: None,
            limits: &[],
        }
    }

    /// Creates the refusal of a request that a limit denies.
    pub const fn of_denied(denied: &Denied) -> Self {
        Self {
            retry_after: denied.retry_after(),
            ..Self::new(Cause::of(denied))
        }
    }

    /// Sets the name of the rule that refuses the request.
    pub const fn rule(self, rule: &'a str) -> Self {
        Self {
            rule: Some(rule),
            ..self
        }
    }

    /// Sets the status, in place of the cause's.
    pub const fn status(self, status: StatusCode) -> Self {
        Self {
            status: Some(status),
            ..self
        }
    }

    /// Sets how long until the request would be granted, if no other caller comes.
    pub const fn retry_after(self, wait: Duration) -> Self {
        Self {
            retry_after: Some(wait),
            ..self
        }
    }

    /// Sets the limits that were asked.
    pub const fn limits(self, limits: &'a [LimitState<'a>]) -> Self {
        Self { limits, ..self }
    }

    /// Returns why the request is refused.
    #[must_use]
    pub const fn cause(&self) -> Cause {
        self.cause
    }

    /// Returns the name of the rule that refuses the request.
    #[must_use]
    pub const fn rule_name(&self) -> Option<&'a str> {
        self.rule
    }

    /// Returns the status that takes the place of the cause's.
    #[must_use]
    pub const fn own_status(&self) -> Option<StatusCode> {
        self.status
    }

    /// Returns how long until the request would be granted, if no other caller comes: at least as
    /// long as each limit that denies it says. `None` if no wait helps, or if it is not known.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        let denying = self.limits.iter().filter(|limit| limit.denies());
        let waits = denying.filter_map(LimitState::reset);
        // The limits may have been looked at after the decision.
        self.retry_after.map(|wait| waits.fold(wait, Duration::max))
    }

    /// Returns the limits that were asked.
    pub const fn asked(&self) -> &'a [LimitState<'a>] {
        self.limits
    }
}
