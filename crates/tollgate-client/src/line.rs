//! Lines of requests: one after the other goes, in order of arrival.

use std::sync::Arc;

use tollgate::concurrency::{ConcurrencyGuard, EnterFuture};
use tollgate::{Concurrency, Denied, Tick};

/// A place in a line.
pub(super) type Enter = EnterFuture<Arc<Concurrency>>;

/// The first in a line. Dropping it lets the next one go.
pub(super) type Guard = ConcurrencyGuard<Arc<Concurrency>>;

/// What a request that is the first of its group waits for.
#[derive(Debug)]
pub(super) enum Stop {
    /// The limits of its server, until this tick.
    Pace(Tick),
    /// The answer to another request, which probes the server. Until this tick at most.
    Answer(Tick),
    /// A permit of the client's own quota, until this tick.
    Permit(Tick),
    /// Its turn to take a permit.
    QuotaLine,
    /// Nothing: the request is denied.
    Denied(Denied),
}

/// A line of callers: one is inside, and the others wait for it in order of arrival.
pub(super) fn line() -> Arc<Concurrency> {
    Arc::new(Concurrency::new(1).expect("1 is a valid limit"))
}
