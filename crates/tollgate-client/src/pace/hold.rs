//! Waits that a server names.

use std::time::Duration;

use tollgate::Tick;

/// How long a server wants no requests. The first one after that tries, and the others wait for its
/// answer: a server that stays shut gets one request for each wait that it names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hold {
    /// No request may go before this tick.
    until: Tick,
    /// When that was said. If a request tries, when it went.
    since: Tick,
    /// Whether a request has tried and has no answer yet.
    is_tried: bool,
}

impl Hold {
    pub(super) const fn new() -> Self {
        Self {
            until: Tick::ZERO,
            since: Tick::ZERO,
            is_tried: false,
        }
    }

    pub(super) const fn until(&self) -> Tick {
        self.until
    }

    /// Lets no request go before `until`. Returns whether that changes anything: it does not if an
    /// earlier answer named a later tick.
    pub(super) fn begin(&mut self, until: Tick, now: Tick) -> bool {
        let counts = self.is_tried || until > self.until;
        if counts {
            (self.until, self.since, self.is_tried) = (until, now, false);
        }
        counts
    }

    /// A request goes. If it is the first after a hold, the others wait for its answer, or for as
    /// long again.
    pub(super) fn sent(&mut self, now: Tick) {
        let wait = self.until.saturating_since(self.since);
        if wait > Duration::ZERO {
            let until = self.until.max(now.saturating_add(wait));
            (self.until, self.since, self.is_tried) = (until, now, true);
        }
    }

    /// The server did not refuse a request that went at `sent`. If the request went after the hold
    /// was named, the hold is over.
    pub(super) fn granted(&mut self, sent: Tick) {
        if sent > self.since || self.is_tried_by(sent) {
            *self = Self::new();
        }
    }

    /// Returns whether the request that went at `sent` is the one that tries. No other one goes
    /// before its answer, and it may have gone a little after it was let go.
    pub(super) fn is_tried_by(&self, sent: Tick) -> bool {
        self.is_tried && sent >= self.since
    }
}
