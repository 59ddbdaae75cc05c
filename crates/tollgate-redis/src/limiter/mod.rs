//! [`RedisLimiter`], a limit for each key that a server decides, and [`RedisKey`], one of its keys.

pub(crate) mod all;
pub(crate) mod decision;
pub(crate) mod guard;
mod leased;
mod verbs;

use std::fmt;
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;
use tollgate::Denied;
use tollgate::outcome::Settled;

use crate::client::Client;
use crate::key::Keys;
use crate::lease::time::Time;
use crate::lease::{LeaseError, LeaseStats, Leases, Leasing, Own, divided};
use crate::limit::Limit;
use crate::limit::error::LimitError;
use crate::limiter::decision::{Denial, Found, Grant};
use crate::outage::fallback::{Deputy, Fallback};
use crate::outage::{Decider, Outage};
use crate::remembered::{Forgets, Memory, Recalled, Sent};
use crate::server::RedisServer;
use crate::server::call::Part;

/// A limit for each key that holds over all processes that use the same server.
///
/// A key is a user, an address or any other bytes. A [`Quota`](tollgate::Quota) is a token bucket;
/// see [`Limit`] for the other algorithms. The server stores one small value for each key that is
/// in use, or an entry for each permit of a log and each slot of a limit on concurrency, and
/// decides on its own clock.
///
/// ```no_run
/// use std::sync::Arc;
/// use tollgate::Quota;
/// use tollgate_redis::client::connect_lazily;
/// use tollgate_redis::{Fallback, Keys, RedisLimiter, RedisServer};
///
/// # async fn start() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Arc::new(RedisServer::new(connect_lazily("redis://127.0.0.1/")?));
/// let fallback = Fallback::Local { processes: 4, keys: 10_000 };
/// let quota = Quota::per_minute(100);
/// let login = RedisLimiter::new(server, &Keys::new("api")?, "login", quota, fallback)?;
///
/// match login.key("alice").try_acquire().await {
///     Ok(grant) => println!("go, {} left", grant.granted().remaining()),
///     Err(denial) => println!("{denial}"),
/// }
/// # Ok(())
/// # }
/// ```
///
/// All processes must use the same limit for a name. After a change of its quota, what was
/// used stays used, as with [`Keep::Used`](tollgate::Keep::Used): a limit that is raised from 100
/// to 1000 adds 900 permits. To change the algorithm, choose a new name: until it expires, a key
/// with the state of another algorithm falls back.
///
/// # When the server does not answer
///
/// The limit's [`Fallback`] decides. Over all processes the bound is then the server's bound plus
/// what the fallbacks grant. The permits of a grant whose answer is
/// lost stay taken on the server.
pub struct RedisLimiter<C> {
    pub(crate) server: Arc<RedisServer<C>>,
    pub(crate) limit: Limit,
    /// The limit, if a part of it is the allowances of processes.
    whole: Limit,
    fallback: Fallback,
    pub(crate) deputy: Arc<Deputy>,
    /// If it remembers denials.
    memory: Option<Memory>,
    /// If it leases permits.
    pub(crate) leases: Option<Leases<C>>,
    keys: Keys,
    name: Box<str>,
}

impl<C> RedisLimiter<C> {
    /// Creates the limit `name` on a server. `fallback` decides while the server does not answer.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::Quota;
    /// use tollgate_redis::{Fallback, Keys, RedisLimiter, RedisServer};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Arc::new(RedisServer::new(()));
    /// let keys = Keys::new("api")?;
    /// let quota = Quota::per_minute(10);
    /// assert!(RedisLimiter::new(Arc::clone(&server), &keys, "a", quota, Fallback::Open).is_ok());
    /// let fallback = Fallback::Local { processes: 0, keys: 100 };
    /// let error = RedisLimiter::new(server, &keys, "a", quota, fallback).unwrap_err();
    /// assert_eq!(error.to_string(), "processes is 0, but must be at least 1");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LimitError`] if the server can't count the limit exactly, or if the fallback is not
    /// accepted: a local share has no processes, [`tollgate::Keyed`] does not accept its quota or
    /// its number of keys, or the limit is one on concurrency, which has no local share.
    pub fn new<L>(
        server: Arc<RedisServer<C>>,
        keys: &Keys,
        name: &str,
        limit: L,
        fallback: Fallback,
    ) -> Result<Self, LimitError>
    where
        L: TryInto<Limit>,
        LimitError: From<L::Error>,
    {
        let limit = limit.try_into()?;
        Ok(Self {
            server,
            limit,
            whole: limit,
            fallback,
            deputy: Arc::new(Deputy::new(fallback, &limit).map_err(LimitError::Fallback)?),
            memory: None,
            leases: None,
            keys: keys.clone(),
            name: name.into(),
        })
    }

    /// Remembers the server's denials in this process, each for at most a second, and no longer
    /// than its wait. A flood of denied requests then makes one call a second, and takes a
    /// hundredth of the time.
    ///
    /// Use it for limits that other processes don't give back to. What they give back, and a reset
    /// or a new quota, is seen up to a second late. The server still makes each grant, so the bound
    /// stays.
    ///
    /// - A denial holds for the same key and the same number of permits, for `try_acquire_n`,
    ///   `check_n` and [`RedisAll`](crate::RedisAll). It tells the rest of the wait: at most a
    ///   round trip more than the server would, and 3 ms or 1 / 65 536 of the wait. Its
    ///   [decider](Decider) is the server, also in an outage.
    /// - Denials of [`reserve_within`](RedisKey::reserve_within) on a bucket and of fallbacks are
    ///   not remembered, nor any of a limit on [concurrency](Limit::concurrency).
    /// - A call through this limit that may free permits (`undo`, `refund`, `settle`, `reset`), or
    ///   a ban, forgets all denials of the limit. If its answer is lost, it may take effect later,
    ///   which is then seen up to a second late.
    /// - All limits of a [`RedisServer`] remember up to 65 536 denials, in a
    ///   [table](tollgate::Keyed) of 1.5 MiB. If it is full, some are forgotten.
    ///   [`Stats::remembered`](crate::Stats::remembered) counts the decisions without a call.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::Quota;
    /// use tollgate_redis::{Fallback, Keys, RedisLimiter, RedisServer};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Arc::new(RedisServer::new(()));
    /// let (keys, quota) = (Keys::new("api")?, Quota::per_minute(10));
    /// let login = RedisLimiter::new(server, &keys, "login", quota, Fallback::Closed)?;
    /// let login = login.remember_denials();
    /// assert_eq!(login.server().stats().remembered, 0);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn remember_denials(self) -> Self {
        let is_rate = self.limit.quota().is_some();
        // Without memory for the table, each denial is the server's.
        let denials = is_rate.then(|| self.server.denials()).flatten();
        Self {
            memory: denials.map(Memory::new),
            ..self
        }
    }

    /// Returns what the leases of the limit have done in this process, if it leases permits.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate::Quota;
    /// # use tollgate_redis::{Fallback, Keys, RedisLimiter, RedisServer};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = Arc::new(RedisServer::new(()));
    /// # let (keys, quota) = (Keys::new("api")?, Quota::per_minute(10));
    /// let login = RedisLimiter::new(server, &keys, "login", quota, Fallback::Closed)?;
    /// assert_eq!(login.lease_stats(), None);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn lease_stats(&self) -> Option<LeaseStats> {
        self.leases.as_ref().map(Leases::stats)
    }

    /// Returns the limit of one key, which has all verbs. The key may be any bytes. [`Keys`] calls
    /// it the user, and says how it is stored.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::Quota;
    /// use tollgate_redis::{Fallback, Keys, RedisLimiter, RedisServer};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Arc::new(RedisServer::new(()));
    /// let (keys, quota) = (Keys::new("api")?, Quota::per_minute(10));
    /// let login = RedisLimiter::new(server, &keys, "login", quota, Fallback::Closed)?;
    /// assert_eq!(login.key("alice").name(), keys.key("login", b"alice"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn key(&self, key: impl AsRef<[u8]>) -> RedisKey<'_, C> {
        RedisKey {
            limiter: self,
            user: SmallVec::from_slice(key.as_ref()),
            name: OnceLock::new(),
        }
    }

    /// Returns what the server counts for each key.
    #[must_use]
    pub const fn limit(&self) -> &Limit {
        &self.limit
    }

    /// Returns the server.
    #[must_use]
    pub fn server(&self) -> &Arc<RedisServer<C>> {
        &self.server
    }
}

impl<C: Client + 'static> RedisLimiter<C> {
    /// Leases permits: this process draws permits of busy keys ahead of need, and decides from them
    /// without a round trip. Over all processes, the bound stays exact.
    ///
    /// A key that is asked for more than eight times in a second gets a lease; the server decides
    /// the others, or first an [allowance](Leasing::with_allowance). A task draws the next permits
    /// before the last ones are spent, and gives back what is not needed. Processes that lease, and
    /// processes that don't, must not share a limit: the latter would grant what the former hold.
    ///
    /// - A process with nothing left denies, unless it [asks](Leasing::asking_at_the_edge).
    /// - While the server does not answer, a process spends what it holds, for at most the life of
    ///   a lease, and then the fallback decides. One that is killed holds its permits for as long,
    ///   and they count as spent.
    /// - Slots of a limit on [concurrency](Limit::concurrency) come back to the process that
    ///   entered them, without a call. [Guards](crate::RedisGuard) are held while the process's
    ///   lease is renewed, in an outage until it ends, also after the limit is dropped. So are
    ///   grants without a guard, but only if they are [renewed](RedisKey::renew) within the limit's
    ///   lease. The process's lease lasts as long as the limit's, but at most a minute.
    /// - [`undo`](RedisKey::undo) and [`settle`](RedisKey::settle) put the permits of a lease's
    ///   grant back into this process, unless it has told the server since that they are spent:
    ///   then they stay taken. It does so with each message: of a busy key, after 15 to 40 ms.
    /// - [`reserve_within`](RedisKey::reserve_within) grants only permits that are available now.
    ///   `available` and a `check_n` that this process can't answer see what the server counts,
    ///   without what leases hold and allowances have.
    /// - A ban takes what this process holds. Draws that are under way, and what other processes
    ///   hold, may be spent until they next ask: at most for a life. Guards of leased slots are
    ///   lost then. An [allowance](Leasing::with_allowance) learns of bans later.
    /// - A process that forks must do so before its first request.
    ///
    /// [Many machines](crate::guide::distributed) has the protocol, and how to choose.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::Quota;
    /// use tollgate_redis::client::{Client, ClientError, Command, Reply};
    /// use tollgate_redis::{Fallback, Keys, Leasing, RedisLimiter, RedisServer};
    ///
    /// # struct Nowhere;
    /// # impl Client for Nowhere {
    /// #     async fn send(&self, _command: &Command<'_>) -> Result<Reply, ClientError> {
    /// #         Err(ClientError::NotSent("there is no server".into()))
    /// #     }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = Nowhere;
    /// let server = Arc::new(RedisServer::new(client));
    /// let (keys, quota) = (Keys::new("api")?, Quota::per_second(1000));
    /// let fallback = Fallback::Local { processes: 4, keys: 10_000 };
    /// let api = RedisLimiter::new(server, &keys, "api", quota, fallback)?.leased(Leasing::new())?;
    /// assert_eq!(api.lease_stats().map(|stats| stats.held), Some(0));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LeaseError`] if the limit has no leases, or if a number is out of bounds.
    pub fn leased(self, leasing: Leasing) -> Result<Self, LeaseError> {
        let time = Time::new();
        let (limit, own) = match leasing.allowance() {
            None => (self.whole, None),
            Some(allowance) => {
                let (limit, own) = divided(&self.whole, allowance)?;
                let own = Own::new(own, allowance.keys)?;
                (limit, Some(own))
            }
        };
        let terms = leasing.terms(&limit)?;
        let deputy = Deputy::new(self.fallback, &limit).map_err(LeaseError::Fallback)?;
        let server = Arc::clone(&self.server);
        let leases = Leases::new(server, limit.kind, leasing, terms, time, own);
        Ok(Self {
            limit,
            deputy: Arc::new(deputy),
            leases: Some(leases),
            ..self
        })
    }
}

impl<C> fmt::Debug for RedisLimiter<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisLimiter")
            .field("keys", &self.keys)
            .field("name", &self.name)
            .field("limit", &self.limit)
            .field("fallback", &self.deputy)
            .field("leases", &self.leases)
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

/// The limit of one key, from [`RedisLimiter::key`]. Each verb is at most one call to the server.
///
/// The verbs that decide (`try_acquire`, `try_acquire_n`, `reserve_within` and `check_n`) always
/// decide: in an outage the fallback does. The others then return
/// [`Unavailable`](crate::Unavailable), which says whether they may have taken effect all the same.
///
/// ```no_run
/// # async fn show(
/// #     login: tollgate_redis::RedisLimiter<tollgate_redis::client::Connection>,
/// # ) -> Result<(), Box<dyn std::error::Error>> {
/// let alice = login.key("alice");
/// let grant = alice.try_acquire_n(30).await?;
/// let settled = alice.settle(grant, 10).await?;
/// assert_eq!(settled.returned, 20);
/// # Ok(())
/// # }
/// ```
///
/// A limit on concurrency also has [`try_enter`](Self::try_enter), whose [guard](crate::RedisGuard)
/// renews its slots.
///
/// A call whose future is dropped before the answer may have taken effect.
#[must_use = "a key does nothing until a verb is called"]
pub struct RedisKey<'a, C> {
    pub(crate) limiter: &'a RedisLimiter<C>,
    /// Most fit without an allocation.
    pub(crate) user: SmallVec<[u8; 32]>,
    /// Made when a call needs it: a denial that is remembered does not.
    name: OnceLock<Vec<u8>>,
}

impl<C> RedisKey<'_, C> {
    /// Returns the name of the key on the server, which [`Keys::key`] makes.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        let RedisLimiter { keys, name, .. } = self.limiter;
        self.name.get_or_init(|| keys.key(name, &self.user))
    }

    pub(crate) fn part(&self, n: u64) -> Part<'_> {
        Part {
            key: self.name(),
            kind: &self.limiter.limit.kind,
            n,
        }
    }

    /// Lets the fallback take permits.
    pub(crate) fn take_without(&self, n: u64, outage: Outage) -> Result<Grant, Denial> {
        let deputy = &self.limiter.deputy;
        let taken = deputy.take(self.name(), n, outage);
        let decider = deputy.decider();
        taken
            .map(|(granted, episode)| Grant {
                granted,
                decider,
                found: Found::Fallback(episode),
            })
            .map_err(|denied| self.denial(denied, decider))
    }

    /// Returns whether the fallback would take permits.
    pub(crate) fn check_without(&self, n: u64, outage: Outage) -> Result<(), Denial> {
        let deputy = &self.limiter.deputy;
        let checked = deputy.check(self.name(), n, outage);
        checked.map_err(|denied| self.denial(denied, deputy.decider()))
    }

    /// Gives back what the fallback took, or puts back what was leased.
    pub(crate) fn undo_without(&self, grant: Grant) -> u64 {
        let deputy = &self.limiter.deputy;
        if grant.decider == Decider::Lease {
            let n = grant.granted.n();
            return self.put_back(grant, n);
        }
        if deputy.decider() != grant.decider {
            return 0;
        }
        let episode = grant.episode();
        deputy.undo(self.name(), grant.granted, episode)
    }

    /// Puts back permits of a lease's grant that were not used. Returns how many.
    pub(crate) fn put_back(&self, grant: Grant, n: u64) -> u64 {
        let Some(leases) = &self.limiter.leases else {
            return 0;
        };
        match grant.found {
            Found::Allowance => {
                let actual = grant.granted.n().saturating_sub(n);
                self.settle_own(grant, actual).returned
            }
            _ => leases.put_back(&self.user, n, grant.after()),
        }
    }

    /// Settles what the allowance of the process granted: it gives back, or charges.
    pub(crate) fn settle_own(&self, grant: Grant, actual: u64) -> Settled {
        let own = self.limiter.leases.as_ref().and_then(Leases::own);
        own.map_or_else(Settled::default, |(own, now_ns)| {
            own.settle(&self.user, now_ns, grant.granted, actual)
        })
    }

    /// Returns the denial of `n` permits that is remembered, so that no call is needed.
    #[inline]
    pub(crate) fn recall(&self, n: u64) -> Option<Recalled> {
        let memory = self.limiter.memory.as_ref()?;
        memory.recall(&self.user, n, self.limiter.server.tick())
    }

    /// Counts a decision that a remembered denial has answered.
    pub(crate) fn count_recalled(&self) {
        if let Some(memory) = &self.limiter.memory {
            memory.count();
        }
    }

    /// Notes that a call is sent now, whose denial is to be remembered.
    pub(crate) fn sent(&self) -> Option<Sent> {
        let memory = self.limiter.memory.as_ref()?;
        Some(memory.sent(self.limiter.server.tick()))
    }

    /// Remembers a denial by the server, if the limit does.
    pub(crate) fn remember(&self, n: u64, denied: &Denied, sent: Option<Sent>) {
        if let (Some(memory), Some(sent)) = (&self.limiter.memory, sent) {
            let now = self.limiter.server.tick();
            memory.remember(&self.user, n, denied, sent, now);
        }
    }

    /// Forgets what is remembered of the limit, when the value is dropped.
    pub(crate) fn forgets(&self) -> Forgets<'_> {
        Forgets(self.limiter.memory.as_ref())
    }

    pub(crate) fn denial(&self, denied: Denied, decider: Decider) -> Denial {
        Denial {
            denied,
            decider,
            index: 0,
        }
    }
}

impl<C> fmt::Debug for RedisKey<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = String::from_utf8_lossy(self.name());
        f.debug_struct("RedisKey")
            .field("key", &key)
            .finish_non_exhaustive()
    }
}
