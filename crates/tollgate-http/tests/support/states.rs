//! States of limits, made by hand.

#![allow(dead_code, reason = "each test uses some of these")]

use std::num::NonZeroU64;
use std::time::Duration;

use tollgate::outcome::GrantInfo;
use tollgate::{Denied, Granted, Quota, Tick};
use tollgate_http::LimitState;

/// A grant of `n` permits that leaves this many, and after which the limit is whole after `reset`.
pub(crate) fn grant(n: u64, left: u64, reset: Duration) -> GrantInfo {
    let reset = Tick::from_nanos(u64::try_from(reset.as_nanos()).unwrap_or(u64::MAX));
    Granted::new(n, Tick::ZERO)
        .with_remaining(left, NonZeroU64::MIN)
        .with_reset_at(reset)
        .info()
}

/// A rate that granted the request.
pub(crate) fn granted(name: &str, quota: Quota, left: u64, reset: Duration) -> LimitState<'_> {
    LimitState::of_rate(name, quota).granted(grant(1, left, reset))
}

/// A rate that denied the request.
pub(crate) fn denied(name: &str, quota: Quota, left: u64, wait: Duration) -> LimitState<'_> {
    LimitState::of_rate(name, quota).denied(&Denied::later(1, wait), left)
}
