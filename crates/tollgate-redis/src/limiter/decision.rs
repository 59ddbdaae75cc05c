//! What a decision returns: a grant, or a denial.

use std::error::Error;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::num::NonZeroU64;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tollgate::{Denied, Granted, Tick};

use crate::lease::GrantedAfter;
use crate::limit::kind::{Mark, Taken};
use crate::outage::Decider;
use crate::outage::fallback::Episode;

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
    pub(crate) found: Found,
}

/// What finds a grant when it is given back.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) enum Found {
    /// What an undo by the server needs.
    Server(Mark),
    /// What a fallback counted the grant in.
    Fallback(Episode),
    Lease(After),
    /// The grant itself: a bucket of the process granted it.
    Allowance,
}

/// What finds a lease's grant. A renewal of slots changes it.
#[derive(Debug)]
pub(crate) struct After(Mutex<GrantedAfter>);

impl After {
    /// Locks it, so that of two renewals one comes after the other.
    pub(crate) fn lock(&self) -> MutexGuard<'_, GrantedAfter> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self) -> GrantedAfter {
        *self.lock()
    }
}

impl PartialEq for After {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for After {}

impl Hash for After {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.get().hash(state);
    }
}

impl Grant {
    pub(crate) fn by_server(taken: Taken, is_reserved: bool) -> Self {
        let then = taken.granted.at().as_nanos() / 1000;
        Self {
            granted: taken.granted,
            decider: Decider::Server,
            found: Found::Server(Mark {
                at: taken.mark,
                is_reserved,
                by: taken.rate.map(|rate| (rate, then)),
            }),
        }
    }

    /// Returns a grant of permits that the process held, of which some are left.
    pub(crate) fn by_lease(n: u64, left: u64, after: GrantedAfter) -> Self {
        Self {
            granted: Granted::new(n, Tick::from_nanos(0)).with_remaining(left, NonZeroU64::MIN),
            decider: Decider::Lease,
            found: Found::Lease(After(Mutex::new(after))),
        }
    }

    /// Returns a grant by the allowance of the process.
    pub(crate) const fn by_allowance(granted: Granted) -> Self {
        Self {
            granted,
            decider: Decider::Lease,
            found: Found::Allowance,
        }
    }

    pub(crate) fn mark(&self) -> Mark {
        match self.found {
            Found::Server(mark) => mark,
            _ => Mark::default(),
        }
    }

    pub(crate) const fn episode(&self) -> Episode {
        match self.found {
            Found::Fallback(episode) => episode,
            _ => Episode::None,
        }
    }

    pub(crate) fn after(&self) -> GrantedAfter {
        match &self.found {
            Found::Lease(after) => after.get(),
            _ => GrantedAfter::default(),
        }
    }

    /// Returns the grant's numbers: how many permits it has, how many remain, and how long to wait.
    ///
    /// The ticks of a server's grant count from 2026-01-01 00:00 UTC, on the server's clock. The
    /// ticks of a fallback's grant count on a clock of this process. A lease's grant has no tick,
    /// and the permits that remain are those that this process still holds. Those of an allowance's
    /// grant are what it has left of the key, and the ticks count on a clock of this process.
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
///     let status = if denial.is_unavailable() { 503 } else { 429 };
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
    /// Returns why the request was denied, and when to try again. After a fallback's denial, try
    /// again at the next probe of the server, or when the local share has the permits.
    pub const fn denied(&self) -> Denied {
        self.denied
    }

    /// Returns the party that made the denial.
    #[must_use]
    pub const fn decider(&self) -> Decider {
        self.decider
    }

    /// Returns whether the request is denied because the server does not answer, and not because of
    /// what the client sent: by [`Fallback::Closed`](crate::Fallback::Closed), or by
    /// [`Fallback::OpenAtMost`](crate::Fallback::OpenAtMost) when it has granted its permits. In
    /// HTTP that is 503, and all other denials are 429.
    #[must_use]
    pub const fn is_unavailable(&self) -> bool {
        matches!(self.decider, Decider::Closed | Decider::Open)
    }

    /// Returns which limit of a [`RedisAll`](crate::RedisAll) denied the request, counted from 0.
    /// If several did, returns one that a server denied, with the longest wait in its call;
    /// otherwise one that a local share denied; otherwise the first one, in the order of the calls.
    #[must_use]
    pub const fn index(&self) -> usize {
        self.index
    }
}

impl Denial {
    /// Returns the denial with this wait, if it has a longer one: something else has the permits
    /// then.
    pub(crate) fn no_later_than(self, wait: Option<Duration>) -> Self {
        match (self.denied, wait) {
            (
                Denied::Later {
                    requested,
                    retry_after,
                    ..
                },
                Some(wait),
            ) if wait < retry_after => Self {
                denied: Denied::later(requested, wait),
                ..self
            },
            _ => self,
        }
    }

    /// Returns the denial that says more about the request: that of a server, or else of a local
    /// share, or else the earlier one.
    pub(crate) fn more_telling(self, later: Self) -> Self {
        let says = |denial: &Self| match denial.decider {
            Decider::Server | Decider::Lease => 2,
            Decider::Local => 1,
            Decider::Closed | Decider::Open => 0,
        };
        match says(&later) > says(&self) {
            true => later,
            false => self,
        }
    }
}

impl From<Denial> for Denied {
    fn from(denial: Denial) -> Self {
        denial.denied
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_unavailable() {
            f.write_str("the server that counts requests does not answer")?;
            return match self.denied.retry_after() {
                Some(wait) => write!(f, ": try again in {wait:?}"),
                None => Ok(()),
            };
        }
        self.denied.fmt(f)?;
        match self.decider {
            Decider::Local => f.write_str(" (decided without the server)"),
            _ => Ok(()),
        }
    }
}

impl Error for Denial {}
