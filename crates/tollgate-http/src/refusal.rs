//! Why a request is refused.

use std::time::Duration;

use http::StatusCode;

use crate::LimitState;

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// A rate is used up: 429.
    Limit,
    /// Too many requests are being served, or wait: 503.
    Overload,
    /// The key is banned for a time: 429.
    Banned,
    /// An entry of a list denies the request: 403.
    Listed,
    /// The request lacks the key of its limit: 400.
    MissingKey,
    /// The request has none of its rule's plans: 403.
    NoPlan,
    /// The request asks for more than it can ever get: 413? see Answers.
    TooLarge,
    /// The limits can't decide, because they can't be combined or need an asynchronous store: 500.
    Misconfigured,
}

/// A request that is refused, as its answer says it.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct Refusal<'a> {
    pub(crate) cause: Cause,
    pub(crate) rule: Option<&'a str>,
    pub(crate) status: Option<StatusCode>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) limits: &'a [LimitState<'a>],
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
}
