//! Local limits before those of a server.

use std::error::Error;
use std::fmt;

use tollgate::clock::Clock;
use tollgate::compose::{All, AllDenied, AllGranted, Members};
use tollgate::outcome::Settled;

use crate::all::RedisAll;
use crate::client::Client;
use crate::decision::{Denial, Grant};
use crate::outage::Unavailable;

impl<'r, C> RedisAll<'r, C> {
    /// Asks limits of this process first: see [`WithLocal`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::compose::All;
    /// use tollgate::{Limiter, Quota};
    /// use tollgate_redis::{Fallback, Keys, RedisAll, RedisLimiter, Server};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Arc::new(Server::new(()));
    /// let (keys, quota) = (Keys::new("api")?, Quota::per_minute(10));
    /// let users = RedisLimiter::new(server, &keys, "user", quota, Fallback::Closed)?;
    /// let process = Limiter::token_bucket(Quota::per_second(1000))?;
    ///
    /// let local = All::new([&process])?;
    /// let limits = RedisAll::new(vec![users.key("alice")])?.with_local(&local);
    /// # drop(limits);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn with_local<'l, M, K>(self, local: &'l All<M, K>) -> WithLocal<'l, 'r, C, M, K> {
        WithLocal {
            local,
            server: self,
        }
    }
}

/// Limits of this process and limits of servers, from [`RedisAll::with_local`], which grant
/// together: all grant, or none keeps anything.
///
/// The local limits are asked first, because they answer at once and cost nothing to undo. If one
/// denies, no call is made. If a server denies, fails or panics, or if the caller drops the future,
/// the local grant is [undone](AllGranted::undo).
///
/// ```no_run
/// use tollgate::compose::All;
/// use tollgate::{Keyed, Limiter, Quota, TokenBucket};
/// use tollgate_redis::{RedisAll, RedisLimiter};
/// # type Limits = RedisLimiter<tollgate_redis::client::Connection>;
///
/// async fn call(
///     process: &Limiter<TokenBucket>,
///     addresses: &Keyed<TokenBucket>,
///     users: &Limits,
/// ) -> Result<(), Box<dyn std::error::Error>> {
///     let local = All::new((process, addresses.key("10.0.0.1")))?;
///     let limits = RedisAll::new(vec![users.key("alice")])?.with_local(&local);
///     let granted = limits.try_acquire_n(30).await?;
///     // ... the work takes 10
///     limits.settle(granted, 10).await?;
///     Ok(())
/// }
/// ```
///
/// Until the servers have answered, other callers in this process may be denied because of local
/// permits that the request does not keep.
pub struct WithLocal<'l, 'r, C, M, K> {
    local: &'l All<M, K>,
    server: RedisAll<'r, C>,
}

/// A granted request to [`WithLocal`].
///
/// Dropping it keeps the permits taken, and leaves each [`Concurrency`](tollgate::Concurrency)
/// among the local limits.
///
/// ```no_run
/// # use tollgate::clock::Clock;
/// # use tollgate::compose::Members;
/// # use tollgate_redis::{WithLocal, WithLocalDenial, client::Client};
/// # async fn show<C: Client, M: Members<K>, K: Clock>(
/// #     limits: WithLocal<'_, '_, C, M, K>,
/// # ) -> Result<(), WithLocalDenial> {
/// let granted = limits.try_acquire().await?;
/// println!("{} left here", granted.local.remaining());
/// for grant in &granted.server {
///     println!("{} left there", grant.granted().remaining());
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping the grant leaves the local concurrency limits"]
#[non_exhaustive]
pub struct WithLocalGrant<'l, M: Members<K>, K> {
    /// The grant of the local limits.
    pub local: AllGranted<&'l All<M, K>, M, K>,
    /// The grants of the servers, in the order of their limits.
    pub server: Vec<Grant>,
}

/// A denied request to [`WithLocal`].
///
/// ```no_run
/// # use tollgate_redis::WithLocalDenial;
/// # fn show(denial: WithLocalDenial) {
/// match denial {
///     WithLocalDenial::Local(denied) => println!("here: {denied}"),
///     WithLocalDenial::Server(denial) => println!("there: {denial}"),
///     other => println!("{other}"),
/// }
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
#[non_exhaustive]
pub enum WithLocalDenial {
    /// A local limit denies. No server was asked.
    Local(AllDenied),
    /// A limit of a server denies the request, or its fallback does.
    Server(Denial),
}

/// A local grant while the servers are asked. Dropped, it is undone.
struct Held<'l, M: Members<K>, K: Clock>(Option<AllGranted<&'l All<M, K>, M, K>>);

impl<M: Members<K>, K: Clock> Drop for Held<'_, M, K> {
    fn drop(&mut self) {
        if let Some(granted) = self.0.take() {
            granted.undo();
        }
    }
}

impl<'l, C: Client, M: Members<K>, K: Clock> WithLocal<'l, '_, C, M, K> {
    /// Takes one permit of each limit, or of none.
    ///
    /// # Errors
    ///
    /// [`WithLocalDenial`] if a limit denies it.
    pub async fn try_acquire(&self) -> Result<WithLocalGrant<'l, M, K>, WithLocalDenial> {
        self.try_acquire_n(1).await
    }

    /// Takes `n` permits of each limit, or of none.
    ///
    /// # Errors
    ///
    /// [`WithLocalDenial`] if a limit denies them.
    pub async fn try_acquire_n(&self, n: u64) -> Result<WithLocalGrant<'l, M, K>, WithLocalDenial> {
        let granted = self.local.try_acquire_n(n);
        let mut held = Held(Some(granted.map_err(WithLocalDenial::Local)?));
        let server = self.server.try_acquire_n(n).await;
        let server = server.map_err(WithLocalDenial::Server)?;
        match held.0.take() {
            Some(local) => Ok(WithLocalGrant { local, server }),
            // It was put there above.
            None => Err(WithLocalDenial::Local(AllDenied::Line)),
        }
    }

    /// Gives a grant back: first the local permits, then those of the servers. Returns how many
    /// came back locally, over all limits, and to each limit of the servers.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if a server does not answer. The local permits have come back.
    pub async fn undo(
        &self,
        grant: WithLocalGrant<'l, M, K>,
    ) -> Result<(u64, Vec<u64>), Unavailable> {
        let back = grant.local.undo();
        Ok((back, self.server.undo(grant.server).await?))
    }

    /// Corrects a grant to its actual cost of each limit: first locally, then at the servers.
    /// Returns the sum of the local limits, and what each limit of the servers returned or charged.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if a server does not answer. The local grant is settled.
    pub async fn settle(
        &self,
        grant: WithLocalGrant<'l, M, K>,
        actual: u64,
    ) -> Result<(Settled, Vec<Settled>), Unavailable> {
        let mut local = grant.local;
        let costs = vec![actual; self.local.members()];
        // There is a cost for each member.
        let settled = local.settle(costs).unwrap_or_default();
        Ok((settled, self.server.settle(grant.server, actual).await?))
    }
}

impl fmt::Display for WithLocalDenial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(denied) => denied.fmt(f),
            Self::Server(denial) => denial.fmt(f),
        }
    }
}

impl Error for WithLocalDenial {}

impl<C, M: fmt::Debug, K> fmt::Debug for WithLocal<'_, '_, C, M, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithLocal")
            .field("local", &self.local)
            .field("server", &self.server)
            .finish()
    }
}

impl<M: Members<K>, K> fmt::Debug for WithLocalGrant<'_, M, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithLocalGrant")
            .field("local", &self.local)
            .field("server", &self.server)
            .finish()
    }
}
