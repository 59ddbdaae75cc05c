//! Several limits in one call, all or nothing.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::bucket::{self, Part};
use crate::client::Client;
use crate::decision::{Denial, Grant};
use crate::limiter::RedisKey;
use crate::outage::{Decider, Outage, OutageId};

/// Several limits of one server and one hash tag, which are decided in one call: all grant, or none
/// takes anything.
///
/// ```no_run
/// use tollgate_redis::RedisAll;
/// # type Limiter = tollgate_redis::RedisLimiter<redis::aio::ConnectionManager>;
///
/// # async fn show(
/// #     per_second: Limiter,
/// #     per_day: Limiter,
/// # ) -> Result<(), Box<dyn std::error::Error>> {
/// let alice = RedisAll::new(vec![per_second.key("alice"), per_day.key("alice")])?;
/// let grants = alice.try_acquire().await?;
/// alice.undo(grants).await?;
/// # Ok(())
/// # }
/// ```
///
/// In an outage each limit's own fallback decides, and all or none grant too.
pub struct RedisAll<'a, C> {
    keys: Vec<RedisKey<'a, C>>,
}

impl<'a, C> RedisAll<'a, C> {
    /// Combines limits. A key must not occur twice.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::Quota;
    /// use tollgate_redis::{AllError, Keys, RedisAll, RedisLimiter, Server};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Arc::new(Server::new(()));
    /// let login = RedisLimiter::new(server, &Keys::new("api")?, "login", Quota::per_minute(10))?;
    /// let error = RedisAll::new(vec![login.key("alice"), login.key("bob")]).unwrap_err();
    /// assert_eq!(error, AllError::OtherTag { index: 1 });
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`AllError`] if the limits can't be decided in one call.
    pub fn new(keys: Vec<RedisKey<'a, C>>) -> Result<Self, AllError> {
        let Some(one) = keys.first() else {
            return Err(AllError::Empty);
        };
        for (index, key) in keys.iter().enumerate() {
            if !Arc::ptr_eq(&one.limiter.server, &key.limiter.server) {
                return Err(AllError::OtherServer { index });
            }
            if tag(&one.key) != tag(&key.key) {
                return Err(AllError::OtherTag { index });
            }
            if keys.iter().take(index).any(|other| other.key == key.key) {
                return Err(AllError::Twice { index });
            }
        }
        Ok(Self { keys })
    }
}

impl<C: Client> RedisAll<'_, C> {
    /// Takes one permit of each limit, or of none. The grants are in the order of the limits.
    ///
    /// # Errors
    ///
    /// [`Denial`] if a limit denies it. [`Denial::index`] says which.
    pub async fn try_acquire(&self) -> Result<Vec<Grant>, Denial> {
        self.try_acquire_n(1).await
    }

    /// Takes `n` permits of each limit, or of none. The grants are in the order of the limits.
    ///
    /// # Errors
    ///
    /// [`Denial`] if a limit denies them. [`Denial::index`] says which.
    pub async fn try_acquire_n(&self, n: u64) -> Result<Vec<Grant>, Denial> {
        let requests: Vec<_> = self.keys.iter().map(|key| (key, n)).collect();
        take(&requests).await
    }

    /// Gives grants back, which must be in the order of the limits, and returns how many permits
    /// each has again. The grants of the server take one call.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](crate::Unavailable) if the server does not answer.
    pub async fn undo(&self, grants: Vec<Grant>) -> Result<Vec<u64>, crate::Unavailable> {
        let by_server = grants.iter().all(|grant| grant.decider == Decider::Server);
        let pairs = self.keys.iter().zip(grants);
        let Some(one) = self.keys.first().filter(|_| by_server) else {
            return Ok(pairs.map(|(key, grant)| key.undo_without(grant)).collect());
        };
        let parts: Vec<_> = pairs
            .map(|(key, grant)| (key.part(grant.granted.n()), Some(grant.mark)))
            .collect();
        let call = bucket::give(&parts);
        let read = |reply: &_| bucket::given(&parts, reply);
        let given = one.limiter.server.call(&call, read).await;
        given.map_err(|(why, _)| why)
    }
}

/// Takes the permits of all requests, which are of one server and one tag, or of none.
pub(crate) async fn take<C: Client>(
    requests: &[(&RedisKey<'_, C>, u64)],
) -> Result<Vec<Grant>, Denial> {
    let Some((one, _)) = requests.first() else {
        return Ok(Vec::new());
    };
    let by_server = |(index, denied)| Denial {
        denied,
        decider: Decider::Server,
        index,
    };
    let parts: Vec<Part<'_>> = requests.iter().map(|(key, n)| key.part(*n)).collect();
    let call = bucket::take(&parts).map_err(by_server)?;
    let read = |reply: &_| bucket::taken(&parts, reply);
    match one.limiter.server.call(&call, read).await {
        Ok(Ok(taken)) => Ok(taken
            .into_iter()
            .map(|taken| Grant {
                granted: taken.granted,
                decider: Decider::Server,
                mark: taken.mark,
                outage: OutageId::default(),
            })
            .collect()),
        Ok(Err(denied)) => Err(by_server(denied)),
        Err((_, outage)) => take_without(requests, outage),
    }
}

/// Lets the fallbacks decide: all grant, or none.
fn take_without<C>(
    requests: &[(&RedisKey<'_, C>, u64)],
    outage: Outage,
) -> Result<Vec<Grant>, Denial> {
    let mut grants = Vec::with_capacity(requests.len());
    for (index, (key, n)) in requests.iter().enumerate() {
        match key.take_without(*n, outage) {
            Ok(grant) => grants.push(grant),
            Err(denial) => {
                for ((key, _), grant) in requests.iter().zip(grants) {
                    key.undo_without(grant);
                }
                key.limiter.server.count(denial.decider, outage);
                return Err(Denial { index, ..denial });
            }
        }
    }
    // The decision counts once, for its first limit.
    if let Some((key, _)) = requests.first() {
        let decider = key.limiter.deputy.decider();
        key.limiter.server.count(decider, outage);
    }
    Ok(grants)
}

/// Returns the hash tag of a key, which [`crate::Keys`] has made.
fn tag(key: &[u8]) -> Option<&[u8]> {
    key.split(|byte| matches!(byte, b'{' | b'}')).nth(1)
}

/// The reason why limits can't be decided in one call.
///
/// ```
/// use tollgate_redis::AllError;
///
/// let error = AllError::OtherTag { index: 2 };
/// assert_eq!(
///     error.to_string(),
///     "limit 2 has another hash tag than limit 0, but all must have the same",
/// );
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AllError {
    /// There are no limits.
    Empty,
    /// A limit is on another server than the first one.
    OtherServer {
        /// Which limit, counted from 0.
        index: usize,
    },
    /// A limit has another hash tag than the first one, and may be in another slot.
    OtherTag {
        /// Which limit, counted from 0.
        index: usize,
    },
    /// A limit occurs twice with the same key.
    Twice {
        /// Which limit, counted from 0.
        index: usize,
    },
}

impl fmt::Display for AllError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("there are no limits, but there must be at least 1"),
            Self::OtherServer { index } => write!(
                f,
                "limit {index} is on another server than limit 0, but all must be on the same"
            ),
            Self::OtherTag { index } => write!(
                f,
                "limit {index} has another hash tag than limit 0, but all must have the same"
            ),
            Self::Twice { index } => {
                write!(f, "limit {index} occurs twice, but must occur only once")
            }
        }
    }
}

impl Error for AllError {}

impl<C> fmt::Debug for RedisAll<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisAll")
            .field("keys", &self.keys)
            .finish()
    }
}
