//! [`RedisGuard`]: slots of a limit on concurrency that are renewed while it lives.
//!
//! A guard and a task share two channels:
//!
//! ```text
//!  guard ── leave: the guard is dropped, or asks for an answer ──► task ──► renew, give
//!    ▲                                                              │
//!    └──────────── ends: when the lease ends, if it is not renewed ─┘
//! ```
//!
//! The task renews at every third of the lease, and gives the slots back when the guard leaves. So
//! no renewal can come after the slots were given back.
//!
//! By this process's clock, the lease ends one lease time after the last answered call was *sent*.
//! The server began the lease later, so it frees the slots no earlier. A guard that has ended never
//! revives: the task moves `ends` only before that time, under the channel's lock.
//!
//! Slots that the process [leased](crate::RedisLimiter::leased) need no task: they are held as long
//! as the process's lease of the key is renewed.

use std::error::Error;
use std::fmt;
use std::future::pending;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout_at};
use tollgate::Denied;

use crate::client::{Client, ClientError};
use crate::lease::Inside;
use crate::limit::Limit;
use crate::limit::kind::{Kind, Mark, Slots};
use crate::limiter::RedisKey;
use crate::limiter::decision::{Denial, Grant};
use crate::limiter::verbs;
use crate::outage::fallback::Deputy;
use crate::outage::{Decider, Unavailable};
use crate::server::RedisServer;
use crate::server::call::Part;

/// Slots of a [limit on concurrency](Limit::concurrency), from [`RedisKey::try_enter`]. Dropping
/// the guard leaves them.
///
/// While it lives, a task on the runtime that entered renews its lease, every third of the lease,
/// in an outage too. If a renewal fails, the next turn tries again. The guard is lost if no renewal
/// succeeds for a lease, or if the server says that it does not hold the slots any more: then other
/// clients may hold them, and the work should stop.
///
/// ```no_run
/// # async fn upload() {}
/// # async fn show(
/// #     alice: tollgate_redis::RedisKey<'_, tollgate_redis::client::Connection>,
/// # ) -> Result<(), Box<dyn std::error::Error>> {
/// let guard = alice.try_enter().await?;
/// tokio::select! {
///     () = upload() => println!("{} slots came back", guard.leave().await?),
///     () = guard.lost() => println!("another client may hold the slot"),
/// }
/// # Ok(())
/// # }
/// ```
///
/// The guard keeps neither the limit nor the key borrowed, and may be sent to other tasks and
/// threads. If the runtime shuts down, or the process ends, the slots are free when the lease ends.
///
/// A [fallback](crate::Fallback)'s slots have no lease: they are not renewed, and never lost.
///
/// Slots that the process [leased](crate::RedisLimiter::leased) come back to it at once, without a
/// call. They are held while the process's lease of the key is renewed, by the task that draws
/// permits. If it is not, or the server says that it does not hold them any more, the key's guards
/// are lost together.
#[must_use = "dropping the guard leaves the slots"]
pub struct RedisGuard {
    n: u64,
    remaining: u64,
    decider: Decider,
    held: Held,
}

enum Held {
    /// By the server. A task renews them.
    Leased {
        ends: watch::Receiver<Instant>,
        leave: oneshot::Sender<AskedToLeave>,
    },
    /// By the process's lease of the key.
    Inside(Inside),
    /// By the fallback.
    Unleased(Box<Unleased>),
}

/// The task answers here how many slots came back.
type AskedToLeave = oneshot::Sender<Result<u64, Unavailable>>;

impl<C: Client + 'static> RedisKey<'_, C> {
    /// Takes one slot of a limit on [concurrency](Limit::concurrency), with a guard that renews it
    /// and gives it back when it is dropped.
    ///
    /// # Errors
    ///
    /// [`EnterError`] if no slot is free, or if the limit has no slots.
    pub async fn try_enter(&self) -> Result<RedisGuard, EnterError> {
        self.try_enter_n(1).await
    }

    /// Takes `n` slots of a limit on [concurrency](Limit::concurrency), all or nothing: see
    /// [`try_enter`](Self::try_enter).
    ///
    /// If the future is dropped before the answer, slots that the server granted are free when
    /// their lease ends.
    ///
    /// ```no_run
    /// # async fn show(
    /// #     alice: tollgate_redis::RedisKey<'_, tollgate_redis::client::Connection>,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// let guard = alice.try_enter_n(2).await?;
    /// assert_eq!(guard.n(), 2);
    /// drop(guard);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`EnterError`] if fewer slots are free, or if the limit has no slots.
    pub async fn try_enter_n(&self, n: u64) -> Result<RedisGuard, EnterError> {
        let Kind::Slots(slots) = self.limiter.limit.kind else {
            let limit = self.limiter.limit;
            return Err(EnterError::NoSlots { limit });
        };
        let sent = Instant::now();
        let grant = self.try_acquire_n(n).await?;
        let decider = grant.decider();
        let remaining = grant.granted().remaining();
        let held = match decider {
            Decider::Server => self.leased(slots, &grant, sent),
            Decider::Lease => Held::Inside(self.inside(n, &grant)?),
            _ => Held::Unleased(Box::new(Unleased {
                deputy: Arc::clone(&self.limiter.deputy),
                key: self.name().to_vec(),
                grant: Some(grant),
            })),
        };
        Ok(RedisGuard {
            n,
            remaining,
            decider,
            held,
        })
    }

    /// Takes over the slots of a lease's grant.
    fn inside(&self, n: u64, grant: &Grant) -> Result<Inside, Denial> {
        let leases = self.limiter.leases.as_ref();
        let adopted = leases.and_then(|leases| leases.adopt(&self.user, n, grant.after()));
        // They were lost in the meantime.
        adopted.ok_or_else(|| self.denial(Denied::busy(n), Decider::Lease))
    }

    /// Starts the task that renews a grant.
    fn leased(&self, slots: Slots, grant: &Grant, sent: Instant) -> Held {
        let lease = Duration::from_micros(slots.lease);
        let (ends, seen) = watch::channel(sent + lease);
        let (leave, leaves) = oneshot::channel();
        let keeper = Keeper {
            server: Arc::clone(&self.limiter.server),
            key: self.name().to_vec(),
            kind: self.limiter.limit.kind,
            n: grant.granted().n(),
            mark: grant.mark(),
            lease,
            ends,
        };
        // Without a runtime, the call that took the slots could not have been made.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(keeper.run(leaves, sent));
        }
        Held::Leased { ends: seen, leave }
    }
}

impl RedisGuard {
    /// Returns how many slots the guard has.
    #[must_use]
    pub const fn n(&self) -> u64 {
        self.n
    }

    /// Returns how many slots were free after the guard had entered: for leased ones, how many this
    /// process still had.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Returns the party that granted the slots.
    #[must_use]
    pub const fn decider(&self) -> Decider {
        self.decider
    }

    /// Returns whether the guard is lost: its lease has ended without a renewal, or the server said
    /// that it does not hold all slots any more. A lost guard stays lost.
    ///
    /// The lease ends by the monotonic clock of this process, before the server frees the slots. If
    /// the server loses the key, its clock jumps ahead, or this machine sleeps, the guard is lost
    /// at its next renewal. The clock of a leased guard goes on while the machine sleeps.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        match &self.held {
            Held::Leased { ends, .. } => has_ended(&ends.borrow()),
            Held::Inside(inside) => inside.is_lost(),
            Held::Unleased(_) => false,
        }
    }

    /// Waits until the guard is [lost](Self::is_lost).
    pub async fn lost(&self) {
        let ends = match &self.held {
            Held::Leased { ends, .. } => ends,
            Held::Inside(inside) => return inside.lost().await,
            Held::Unleased(_) => return pending().await,
        };
        let mut seen = ends.clone();
        loop {
            let end = *seen.borrow_and_update();
            match timeout_at(end, seen.changed()).await {
                Ok(Ok(())) => {}
                // The task has ended, so nothing changes any more.
                Ok(Err(_)) => return sleep_until(end).await,
                Err(_) if self.is_lost() => return,
                Err(_) => {}
            }
        }
    }

    /// Gives the slots back, and returns how many came back: none of a lost guard.
    ///
    /// ```no_run
    /// # async fn show(
    /// #     alice: tollgate_redis::RedisKey<'_, tollgate_redis::client::Connection>,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// let guard = alice.try_enter().await?;
    /// assert_eq!(guard.leave().await?, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if the server does not answer, or if the runtime of the guard has shut down.
    /// The slots are then free when their lease ends.
    pub async fn leave(self) -> Result<u64, Unavailable> {
        let (ends, leave) = match self.held {
            Held::Leased { ends, leave } => (ends, leave),
            Held::Inside(mut inside) => return Ok(inside.leave()),
            Held::Unleased(mut slots) => return Ok(slots.give()),
        };
        // The task does not answer: it has ended with the guard's lease, or with its runtime.
        let ended = |error: fn(String) -> ClientError| match has_ended(&ends.borrow()) {
            true => Ok(0),
            false => {
                let why = "the task that renews the slots has ended".to_owned();
                Err(Unavailable::Client(error(why)))
            }
        };
        let (ask, answer) = oneshot::channel();
        if leave.send(ask).is_err() {
            return ended(ClientError::NotSent);
        }
        // The guard's runtime may stand still for longer than the lease.
        let end = *ends.borrow();
        match timeout_at(end, answer).await {
            Ok(Ok(given)) => given,
            _ => ended(ClientError::Unknown),
        }
    }
}

/// Keeps the slots of a guard.
struct Keeper<C> {
    server: Arc<RedisServer<C>>,
    key: Vec<u8>,
    kind: Kind,
    n: u64,
    mark: Mark,
    lease: Duration,
    ends: watch::Sender<Instant>,
}

impl<C: Client> Keeper<C> {
    /// Renews the lease, for which the call was sent at `sent`, until the guard leaves or is lost.
    async fn run(self, mut leaves: oneshot::Receiver<AskedToLeave>, mut sent: Instant) {
        let third = self.lease / 3;
        loop {
            if let Ok(left) = timeout_at(sent + third, &mut leaves).await {
                let given = self.give().await;
                match left {
                    // An error says that the caller no longer waits for the answer.
                    Ok(asked) => _ = asked.send(given),
                    // A lost answer counts already.
                    Err(_) if given.is_err_and(|why| !why.may_have_taken_effect()) => {
                        self.server.lost(slice::from_ref(&self.key));
                    }
                    Err(_) => {}
                }
                return;
            }
            if has_ended(&self.ends.borrow()) {
                return;
            }
            sent = Instant::now();
            // A renewal that takes longer is dropped in favor of the next one.
            match timeout_at(sent + third, self.renew()).await {
                Ok(Ok(held)) if held == self.n => self.move_end(sent + self.lease),
                Ok(Ok(_)) => self.move_end(sent),
                Ok(Err(_)) | Err(_) => {}
            }
        }
    }

    /// Moves the end of the lease, unless it has ended already: a caller may have seen that.
    fn move_end(&self, to: Instant) {
        self.ends.send_if_modified(|ends| {
            let is_before = !has_ended(ends);
            if is_before {
                *ends = to;
            }
            is_before
        });
    }

    async fn renew(&self) -> Result<u64, Unavailable> {
        verbs::renew(&self.server, self.part(), self.mark).await
    }

    async fn give(&self) -> Result<u64, Unavailable> {
        verbs::leave(&self.server, self.part(), self.mark).await
    }

    fn part(&self) -> Part<'_> {
        Part {
            key: &self.key,
            kind: &self.kind,
            n: self.n,
        }
    }
}

fn has_ended(lease: &Instant) -> bool {
    Instant::now() >= *lease
}

/// Slots that a fallback granted. Dropped, they go back to it.
struct Unleased {
    deputy: Arc<Deputy>,
    key: Vec<u8>,
    grant: Option<Grant>,
}

impl Unleased {
    fn give(&mut self) -> u64 {
        self.grant.take().map_or(0, |grant| {
            let episode = grant.episode();
            self.deputy.undo(&self.key, grant.granted, episode)
        })
    }
}

impl Drop for Unleased {
    fn drop(&mut self) {
        self.give();
    }
}

impl fmt::Debug for RedisGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisGuard")
            .field("n", &self.n)
            .field("decider", &self.decider)
            .field("is_lost", &self.is_lost())
            .finish()
    }
}

/// The reason why slots were not entered.
///
/// ```
/// use tollgate::Quota;
/// use tollgate_redis::{EnterError, Limit};
///
/// # fn main() -> Result<(), tollgate_redis::LimitError> {
/// let limit = Limit::token_bucket(Quota::per_second(5))?;
/// assert_eq!(
///     EnterError::NoSlots { limit }.to_string(),
///     "limit is `token-bucket 5/s`, but must be like `concurrency 3 lease 60s`",
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EnterError {
    /// Too few slots are free, or the fallback denies them.
    Denied(Denial),
    /// The limit is not one on concurrency.
    NoSlots {
        /// The limit.
        limit: Limit,
    },
}

impl fmt::Display for EnterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied(denial) => denial.fmt(f),
            Self::NoSlots { limit } => write!(
                f,
                "limit is `{limit}`, but must be like `concurrency 3 lease 60s`"
            ),
        }
    }
}

impl Error for EnterError {}

impl From<Denial> for EnterError {
    fn from(denial: Denial) -> Self {
        Self::Denied(denial)
    }
}

#[cfg(test)]
#[path = "../../tests/guard/mod.rs"]
mod tests;
