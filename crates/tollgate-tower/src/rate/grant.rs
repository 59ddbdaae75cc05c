//! The grant of a rate limit, which a request holds until it ends.

use std::fmt;

use tollgate::Granted;
use tollgate::TryAcquire;
use tollgate::clock::Clock;
use tollgate::traits::GiveBackLimiter;

use super::{Cancel, Source};
use crate::admission::Grant;

/// The grant of a rate limit, which a request holds until it ends. It is in a box, since it is
/// large and is moved several times.
pub struct RateGrant<S: Source> {
    pub(super) granted: Granted,
    /// The most that is settled.
    pub(super) most: u64,
    pub(super) limiter: S::Owned,
    pub(super) cancel: Option<Cancel<S::Owned>>,
}

impl<S: Source> fmt::Debug for RateGrant<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RateGrant").field(&self.granted).finish()
    }
}

impl<S: Source> Grant for Box<RateGrant<S>> {
    fn cancel(self) {
        let now = self.limiter.clock().now();
        match self.cancel {
            Some(cancel) => {
                let n = self.granted.n();
                cancel(&self.limiter, self.granted, n, now);
            }
            // Nothing comes back while another request waits behind this one.
            None => {
                self.limiter.roll_back_at(self.granted, now);
            }
        }
    }
}
