//! What a decision returns: a grant, or a denial.

use std::error::Error;
use std::fmt;

use tollgate::{Denied, Granted};

use crate::kind::{Mark, Taken};
use crate::outage::{Decider, Episode};

/// A granted request.
///
/// ```no_run
/// # async fn show(
/// #     alice: tollgate_redis::RedisKey<'_, tollgate_redis::client::Connection>,
/// # ) -> Result<(), tollgate_redis::Denial> {
/// let grant = alice.try_acquire_n(3).await?;
/// println!("{} left, says {:?}", grant.granted().remaining(), grant.decider());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, PartialEq, Eq, Hash)]
#[must_use]
pub struct Grant {
    pub(crate) granted: Granted,
    pub(crate) decider: Decider,
    /// What an undo by the server needs.
    pub(crate) mark: Mark,
    /// The outage in which a fallback made the grant.
    pub(crate) episode: Episode,
}

impl Grant {
    pub(crate) fn by_server(taken: Taken, is_reserved: bool) -> Self {
        Self {
            granted: taken.granted,
            decider: Decider::Server,
            mark: Mark {
                at: taken.mark,
                is_reserved,
            },
            episode: Episode::Outage(0),
        }
    }

    /// Returns the grant's numbers: how many permits it has, how many remain, and how long to wait.
    ///
    /// The ticks of a server's grant count from 2026-01-01 00:00 UTC, on the server's clock. Those
    /// of a fallback count on a clock of this process.
    #[must_use]
    pub const fn granted(&self) -> &Granted {
        &self.granted
    }

    /// Returns the party that made the grant.
    #[must_use]
    pub const fn decider(&self) -> Decider {
        self.decider
    }
}

/// A denied request.
///
/// ```no_run
/// # async fn show(alice: tollgate_redis::RedisKey<'_, tollgate_redis::client::Connection>) {
/// if let Err(denial) = alice.try_acquire().await {
///     let status = if denial.decider().is_fallback() { 503 } else { 429 };
///     println!("{status}, Retry-After: {:?}", denial.denied().retry_after_secs());
/// }
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub struct Denial {
    pub(crate) denied: Denied,
    pub(crate) decider: Decider,
    pub(crate) index: usize,
}

impl Denial {
    /// Returns why the request was denied, and when to try again. If a fallback made the denial,
    /// that is at the next probe of the server, or when the local share has the permits.
    pub const fn denied(&self) -> Denied {
        self.denied
    }

    /// Returns the party that made the denial.
    #[must_use]
    pub const fn decider(&self) -> Decider {
        self.decider
    }

    /// Returns which limit of a [`RedisAll`](crate::RedisAll) denied the request, counted from 0.
    /// If several did, the server names the one with the longest wait, and fallbacks the first one.
    #[must_use]
    pub const fn index(&self) -> usize {
        self.index
    }
}

impl From<Denial> for Denied {
    fn from(denial: Denial) -> Self {
        denial.denied
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.denied.fmt(f)?;
        match self.decider.is_fallback() {
            true => f.write_str(" (decided without the server)"),
            false => Ok(()),
        }
    }
}

impl Error for Denial {}
