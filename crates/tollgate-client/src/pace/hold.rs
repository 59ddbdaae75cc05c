//! Waits that a server names.

use std::time::Duration;

use tollgate::Tick;

/// How long a server wants no requests. The first one after that tries, and the others wait for its
/// answer: a server that stays shut gets one request for each wait that it names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hold {
    /// No request may go before this tick.
    until: Tick,
    /// When the server said so, and how long the wait is: zero if there is no hold.
    said: Tick,
    wait: Duration,
    /// When the request that tries was sent. `None` once its answer has come.
    tried: Option<Tick>,
}

impl Hold {
    pub(super) const fn new() -> Self {
        Self {
            until: Tick::ZERO,
            said: Tick::ZERO,
            wait: Duration::ZERO,
            tried: None,
        }
    }

    pub(super) const fn until(&self) -> Tick {
        self.until
    }

    /// Returns whether a request has tried and has no answer yet.
    pub(super) const fn is_tried(&self) -> bool {
        self.tried.is_some()
    }

    /// Lets no request go before `until`. Returns whether that changes anything: nothing changes if
    /// an earlier answer named a later tick.
    pub(super) fn begin(&mut self, until: Tick, now: Tick) -> bool {
        let counts = self.is_tried() || until > self.until;
        if counts {
            *self = Self {
                until,
                said: now,
                wait: until.saturating_since(now),
                tried: None,
            };
        }
        counts
    }

    /// A request goes. If it is the first request after a hold, the others wait for its answer, but
    /// no longer than the hold was.
    pub(super) fn sent(&mut self, now: Tick) {
        if self.wait > Duration::ZERO {
            self.until = self.until.max(now.saturating_add(self.wait));
            self.tried = Some(now);
        }
    }

    /// The server did not refuse a request that went at `sent`. If the request went after the wait
    /// was named, the hold is over.
    pub(super) fn granted(&mut self, sent: Tick) {
        if sent > self.said {
            *self = Self::new();
        }
    }

    /// Returns whether a request that went at `sent` is the one that tries. No other goes before
    /// its answer.
    pub(super) fn is_tried_by(&self, sent: Tick) -> bool {
        self.is_tried() && sent > self.said
    }

    /// A request that went at `sent` gets no answer. If it tried, the next one tries.
    pub(super) fn failed(&mut self, sent: Tick) {
        if let Some(tried) = self.tried.filter(|_| sent > self.said) {
            (self.until, self.tried) = (tried, None);
        }
    }
}
