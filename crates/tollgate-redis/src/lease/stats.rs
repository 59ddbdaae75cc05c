//! What leases have done.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate::stats::{Metric, Metrics, Value};

use crate::lease::holder::{Ask, Brought};

/// What the leases of a limit have done in this process. They are
/// [metrics](tollgate::stats::write_prometheus).
///
/// If `messages` and the calls of [`RedisServer::stats`](crate::RedisServer::stats) together grow
/// as fast as your requests, leases save nothing. If `lapsed` grows steadily, processes hold more
/// than they need: see [`Leasing::with_share`](crate::Leasing::with_share).
///
/// ```
/// use tollgate_redis::LeaseStats;
///
/// assert_eq!(LeaseStats::default().messages, 0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct LeaseStats {
    /// Messages to the server, each about one key.
    pub messages: u64,
    /// Round trips for them: messages that are sent together are one.
    pub trips: u64,
    /// Answers that brought permits. So a draw has `drawn / draws` permits on average.
    pub draws: u64,
    /// Permits that were drawn.
    pub drawn: u64,
    /// Permits that were given back unspent.
    pub returned: u64,
    /// Permits that the process drew, and could not spend in time: it held them when their lease
    /// ended, or when the server had forgotten them or the key was banned. They are counted when
    /// the process next says or hears something about the key. Permits of an answer that was lost
    /// are not counted, because the process does not know of them.
    pub lapsed: u64,
    /// Permits that the process holds, and may still spend. Of slots, the idle ones.
    pub held: u64,
    /// Permits that the process granted of its [allowance](crate::Leasing::with_allowance).
    pub allowed: u64,
    /// Keys that have a lease, or are to get one.
    pub keys: usize,
}

impl Metrics for LeaseStats {
    fn value(&self, metric: Metric) -> Option<Value> {
        let value = match metric {
            Metric::LeaseMessages => self.messages,
            Metric::LeaseTrips => self.trips,
            Metric::LeaseDraws => self.draws,
            Metric::LeaseDrawn => self.drawn,
            Metric::LeaseReturned => self.returned,
            Metric::LeaseLapsed => self.lapsed,
            Metric::LeaseHeld => self.held,
            Metric::LeaseAllowed => self.allowed,
            Metric::LeaseKeys => u64::try_from(self.keys).unwrap_or(u64::MAX),
            _ => return None,
        };
        Some(value.into())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    messages: AtomicU64,
    trips: AtomicU64,
    draws: AtomicU64,
    drawn: AtomicU64,
    returned: AtomicU64,
    lapsed: AtomicU64,
}

impl Counts {
    pub(crate) fn asked(&self, ask: &Ask) {
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.returned.fetch_add(ask.returns, Ordering::Relaxed);
    }

    /// Notes that messages are sent together.
    pub(crate) fn sent(&self) {
        self.trips.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn answered(&self, brought: &Brought) {
        let has_permits = u64::from(brought.granted > 0);
        self.draws.fetch_add(has_permits, Ordering::Relaxed);
        self.drawn.fetch_add(brought.granted, Ordering::Relaxed);
    }

    pub(crate) fn lapsed(&self, permits: u64) {
        self.lapsed.fetch_add(permits, Ordering::Relaxed);
    }
}

impl Counts {
    pub(crate) fn seen(&self, held: u64, keys: usize) -> LeaseStats {
        LeaseStats {
            messages: self.messages.load(Ordering::Relaxed),
            trips: self.trips.load(Ordering::Relaxed),
            draws: self.draws.load(Ordering::Relaxed),
            drawn: self.drawn.load(Ordering::Relaxed),
            returned: self.returned.load(Ordering::Relaxed),
            lapsed: self.lapsed.load(Ordering::Relaxed),
            held,
            allowed: 0,
            keys,
        }
    }
}
