//! The grant of a rate limit, which a request holds until it ends.

use std::fmt;
use std::sync::{Arc, OnceLock};

use http::HeaderMap;
use tollgate::clock::Clock;
use tollgate::traits::{GiveBackLimiter, SettleLimiter};
use tollgate::{Granted, Quota, TryAcquire};
use tollgate_http::{LimitState, Unit};

use super::{Cancel, Source, in_partition};
use crate::admission::Grant;
use crate::answered::Ended;
use crate::costs::Settlement;
use crate::settings::Settings;

/// The grant of a rate limit, which a request holds until it ends. It is in a box, since it is
/// large and is moved several times.
pub struct RateGrant<S: Source> {
    pub(super) granted: Granted,
    /// The quota, if it is written into fields.
    pub(super) quota: Option<Quota>,
    pub(super) partition: Option<[u8; 8]>,
    pub(super) unit: Unit,
    pub(super) settlement: Option<Settlement>,
    /// The limiter, if permits may come back.
    pub(super) limiter: Option<S::Owned>,
    pub(super) cancel: Option<Cancel<S::Owned>>,
    pub(super) is_queue: Option<Arc<OnceLock<()>>>,
}

impl<S: Source> fmt::Debug for RateGrant<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RateGrant").field(&self.granted).finish()
    }
}

impl<S: Source> Grant for Box<RateGrant<S>> {
    fn write(&self, settings: &Settings, headers: &mut HeaderMap) {
        if let Some(quota) = self.quota {
            let state = LimitState::of_rate(&settings.name, quota).unit(self.unit);
            let state = in_partition(state.granted(self.granted.info()), &self.partition);
            settings.answers.write(std::iter::once(state), headers);
        }
    }

    #[inline]
    fn needs_end(&self) -> bool {
        self.settlement.is_some()
    }

    fn reads_headers(&self, settings: &Settings) -> bool {
        let settlement = self.settlement.as_ref();
        settlement.is_some_and(|settlement| settlement.reads_headers(settings))
    }

    fn end(self, mut ended: Ended<'_>, settings: &Settings) {
        let (Some(settlement), Some(limiter)) = (self.settlement, self.limiter) else {
            return;
        };
        let now = limiter.clock().now();
        let taken = self.granted.n();
        ended.elapsed = now.saturating_since(self.granted.at());
        ended.taken = taken;
        let actual = settlement.actual(&ended, settings);
        let is_queue = self.is_queue.is_some_and(|it| it.get().is_some());
        match (actual < taken, self.cancel) {
            // Callers may wait behind this grant.
            (true, Some(cancel)) => {
                cancel(&limiter, self.granted, taken - actual, now);
            }
            // The same, in a queue. Elsewhere no caller waits, and a limiter in debt gets all back.
            (true, None) if actual == 0 && is_queue => {
                limiter.roll_back_at(self.granted, now);
            }
            _ if actual == taken => {}
            _ => {
                limiter.settle_at(self.granted, actual, now);
            }
        }
    }

    fn cancel(self) {
        let Some(limiter) = self.limiter else { return };
        let now = limiter.clock().now();
        match self.cancel {
            Some(cancel) => {
                let n = self.granted.n();
                cancel(&limiter, self.granted, n, now);
            }
            // Nothing comes back while another request waits behind this one.
            None => {
                limiter.roll_back_at(self.granted, now);
            }
        }
    }
}
