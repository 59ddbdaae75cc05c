//! Several limits, all or nothing: one call for each slot of a server.

mod group;

use std::error::Error;
use std::fmt;
use std::mem;
use std::sync::Arc;

use tokio::task::consume_budget;
use tollgate::Denied;
use tollgate::outcome::Settled;

use crate::client::Client;
use crate::limiter::RedisKey;
use crate::limiter::decision::{Denial, Found, Grant};
use crate::outage::{Decider, Unavailable};
use group::{Group, by_server, in_order};

pub(crate) use group::{check, take, take_without};

/// Several limits that grant together: all grant, or none keeps anything.
///
/// ```no_run
/// use tollgate_redis::RedisAll;
/// # type Limiter = tollgate_redis::RedisLimiter<tollgate_redis::client::Connection>;
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
/// # One call, or several
///
/// Limits with the same server and the same hash tag are decided in one call. Other callers see all
/// of it or nothing. One that [leases](crate::RedisLimiter::leased) is decided by itself. By
/// default [`Keys`](crate::Keys) gives a user's limits the same tag.
///
/// Limits with other tags, or on other servers, are decided in calls of their own, in the order in
/// which their first limit was given. If one denies, the earlier calls are undone, with one call
/// for each. Each call has a budget of its own. Put the limit that denies most often first.
///
/// - Until it is undone, other callers may be denied because of permits that the request does not
///   keep. No limit grants more than its bound.
/// - If an undo fails, or the caller drops the future between two calls, the permits stay taken
///   until they are refilled. Each such call counts in [`Stats::lost`](crate::Stats::lost).
/// - In an outage, the fallbacks of the limits that are down decide, and the other servers decide
///   for theirs. All or none grant too. After a fallback denies, the remaining servers are asked
///   whether they would deny the request too, because that says more to the client.
pub struct RedisAll<'a, C> {
    groups: Vec<Group<'a, C>>,
}

impl<'a, C> RedisAll<'a, C> {
    /// Combines limits. A key must not occur twice.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::Quota;
    /// use tollgate_redis::{AllError, Fallback, Keys, RedisAll, RedisLimiter, RedisServer};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Arc::new(RedisServer::new(()));
    /// let (keys, quota) = (Keys::new("api")?, Quota::per_minute(10));
    /// let login = RedisLimiter::new(server, &keys, "login", quota, Fallback::Closed)?;
    /// assert!(RedisAll::new(vec![login.key("alice"), login.key("bob")]).is_ok());
    /// let error = RedisAll::new(vec![login.key("alice"), login.key("alice")]).unwrap_err();
    /// assert_eq!(error, AllError::Twice { index: 1 });
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`AllError`] if there are no limits, or if one occurs twice.
    pub fn new(keys: Vec<RedisKey<'a, C>>) -> Result<Self, AllError> {
        let mut groups = Vec::<Group<'a, C>>::new();
        for (index, key) in keys.into_iter().enumerate() {
            let is_same = |other: &RedisKey<'_, C>| {
                Arc::ptr_eq(&other.limiter.server, &key.limiter.server)
                    && other.name() == key.name()
            };
            let mut earlier = groups.iter().flat_map(|group| &group.keys);
            if earlier.any(|(_, other)| is_same(other)) {
                return Err(AllError::Twice { index });
            }
            let group = groups.iter_mut().find(|group| group.is_of(&key));
            match group {
                Some(group) => group.keys.push((index, key)),
                None => groups.push(Group {
                    keys: vec![(index, key)],
                }),
            }
        }
        match groups.is_empty() {
            true => Err(AllError::Empty),
            false => Ok(Self { groups }),
        }
    }

    fn len(&self) -> usize {
        self.groups.iter().map(|group| group.keys.len()).sum()
    }

    /// Returns all keys with their indexes and costs, by group.
    fn requests<'s>(
        &'s self,
        costs: &'s [u64],
    ) -> impl Iterator<Item = (usize, &'s RedisKey<'a, C>, u64)> {
        let keys = self.groups.iter().flat_map(|group| &group.keys);
        keys.filter_map(|(index, key)| Some((*index, key, *costs.get(*index)?)))
    }

    /// Returns the longest denial that is remembered, so that no call is needed.
    fn recall(&self, costs: &[u64]) -> Option<Denial> {
        let recalled = self.requests(costs).filter_map(|(index, key, n)| {
            // What a process holds it grants in spite of an earlier denial.
            let leases = key.limiter.leases.is_some();
            let recalled = if leases { None } else { key.recall(n) }?;
            Some((recalled.wait, key, by_server((index, recalled.denied(n)))))
        });
        let (_, key, denial) = recalled.reduce(|longest, other| match longest.0 < other.0 {
            true => other,
            false => longest,
        })?;
        key.count_recalled();
        Some(denial)
    }

    /// Gives each group its grants.
    fn by_group(&self, grants: Vec<Grant>) -> Vec<(&Group<'a, C>, Vec<Grant>)> {
        let mut grants: Vec<_> = grants.into_iter().map(Some).collect();
        let mut of = |index: usize| grants.get_mut(index).and_then(Option::take);
        self.groups
            .iter()
            .map(|group| {
                let grants = group.keys.iter().filter_map(|&(index, _)| of(index));
                (group, grants.collect())
            })
            .collect()
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
        self.try_acquire_each(&vec![n; self.len()]).await
    }

    /// Takes as many permits of each limit as its cost says, or none. The costs and the grants are
    /// in the order of the limits.
    ///
    /// ```no_run
    /// # async fn show(
    /// #     alice: tollgate_redis::RedisAll<'_, tollgate_redis::client::Connection>,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// // One request of 800 tokens.
    /// let grants = alice.try_acquire_each(&[1, 800]).await?;
    /// alice.settle_each(grants, &[1, 650]).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Denial`] if a limit denies them, or if there is not one cost for each limit: then no wait
    /// helps.
    pub async fn try_acquire_each(&self, costs: &[u64]) -> Result<Vec<Grant>, Denial> {
        if costs.len() != self.len() {
            let most = costs.iter().max().copied().unwrap_or(0);
            return Err(by_server((0, Denied::never(most, 0))));
        }
        // A request that some limit never grants is denied here, without a call.
        for (index, key, n) in self.requests(costs) {
            let most = key.limiter.limit.permits();
            if n > most {
                return Err(by_server((index, Denied::never(n, most))));
            }
        }
        if let Some(denial) = self.recall(costs) {
            consume_budget().await;
            return Err(denial);
        }
        let mut taken = Taken(Vec::with_capacity(self.groups.len()));
        let mut denied: Option<Denial> = None;
        for group in &self.groups {
            let requests: Vec<_> = group.requests(costs).collect();
            let answer = match denied {
                None => take(&requests).await,
                // A fallback denies. If a server denies too, its denial says more.
                Some(_) => check(&requests).await.map(|()| Vec::new()),
            };
            match answer {
                Ok(grants) if denied.is_none() => taken.0.push((group, grants)),
                Ok(_) => {}
                Err(denial) => {
                    let denial = group.denial(denial);
                    denied = Some(denied.map_or(denial, |denied| denied.more_telling(denial)));
                }
            }
            if denied.is_some_and(|denied| !denied.decider.is_fallback()) {
                break;
            }
        }
        match denied {
            None => Ok(in_order(taken.keep())),
            Some(denial) => {
                taken.undo().await;
                Err(denial)
            }
        }
    }

    /// Gives grants back, which must be in the order of the limits, and returns how many permits
    /// each has again. There are as many calls as there were to take the permits.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if a server does not answer. The grants of the others are given back.
    pub async fn undo(&self, grants: Vec<Grant>) -> Result<Vec<u64>, Unavailable> {
        let mut given = Vec::with_capacity(self.groups.len());
        for (group, grants) in self.by_group(grants) {
            given.push(group.undo(grants).await.map(|back| (group, back)));
        }
        Ok(in_order(given.into_iter().collect::<Result<_, _>>()?))
    }

    /// Corrects grants, which must be in the order of the limits, to their actual cost of each
    /// limit: gives unused permits back, or charges the missing ones. There are as many calls as
    /// there were to take the permits.
    ///
    /// ```no_run
    /// # async fn show(
    /// #     alice: tollgate_redis::RedisAll<'_, tollgate_redis::client::Connection>,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// let grants = alice.try_acquire_n(30).await?;
    /// for settled in alice.settle(grants, 10).await? {
    ///     println!("{} came back", settled.returned);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if a server does not answer. The grants of the others are settled.
    pub async fn settle(
        &self,
        grants: Vec<Grant>,
        actual: u64,
    ) -> Result<Vec<Settled>, Unavailable> {
        self.settle_each(grants, &vec![actual; self.len()]).await
    }

    /// Corrects grants to their actual costs. Both must be in the order of the limits; a grant
    /// without a cost stays as it is. See [`settle`](Self::settle).
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if a server does not answer. The grants of the others are settled.
    pub async fn settle_each(
        &self,
        grants: Vec<Grant>,
        costs: &[u64],
    ) -> Result<Vec<Settled>, Unavailable> {
        let mut settled = Vec::with_capacity(self.groups.len());
        for (group, grants) in self.by_group(grants) {
            let group_settled = group.settle(grants, costs).await;
            settled.push(group_settled.map(|settled| (group, settled)));
        }
        Ok(in_order(settled.into_iter().collect::<Result<_, _>>()?))
    }
}

/// What was granted while other limits are still asked. If it is dropped, it gives back what it can
/// without a call. Permits that servers granted stay taken.
struct Taken<'g, 'a, C: Client>(Vec<(&'g Group<'a, C>, Vec<Grant>)>);

impl<'g, 'a, C: Client> Taken<'g, 'a, C> {
    fn keep(mut self) -> Vec<(&'g Group<'a, C>, Vec<Grant>)> {
        mem::take(&mut self.0)
    }

    /// Gives everything back, the last grants first.
    async fn undo(mut self) {
        while let Some((group, mut grants)) = self.0.pop() {
            for grant in &mut grants {
                // The permits were not used, so nothing comes back while others wait behind them.
                if let Found::Server(mark) = &mut grant.found {
                    mark.is_reserved = true;
                }
            }
            // If the answer was lost, the call has counted that already.
            let undone = group.undo(grants).await;
            if undone.is_err_and(|why| !why.may_have_taken_effect()) {
                group.lost();
            }
        }
    }
}

impl<C: Client> Drop for Taken<'_, '_, C> {
    fn drop(&mut self) {
        for (group, grants) in mem::take(&mut self.0) {
            if grants.iter().any(|grant| grant.decider == Decider::Server) {
                group.lost();
            }
            for ((_, key), grant) in group.keys.iter().zip(grants) {
                key.undo_without(grant);
            }
        }
    }
}

/// The reason why limits can't be combined.
///
/// ```
/// use tollgate_redis::AllError;
///
/// let error = AllError::Twice { index: 2 };
/// assert_eq!(error.to_string(), "limit 2 occurs twice, but must occur only once");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AllError {
    /// There are no limits.
    Empty,
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
            Self::Twice { index } => {
                write!(f, "limit {index} occurs twice, but must occur only once")
            }
        }
    }
}

impl Error for AllError {}

impl<C> fmt::Debug for RedisAll<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.groups.iter().flat_map(|group| &group.keys);
        f.debug_struct("RedisAll")
            .field("keys", &keys.map(|(_, key)| key).collect::<Vec<_>>())
            .finish()
    }
}
