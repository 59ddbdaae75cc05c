//! The verbs of [`RedisKey`].

use std::time::Duration;

use tokio::task::consume_budget;
use tollgate::Denied;
use tollgate::outcome::{Charged, Settled};

use crate::client::Client;
use crate::lease::Leases;
use crate::limit::kind::{Kind, Mark, Seen};
use crate::limiter::RedisKey;
use crate::limiter::decision::{Denial, Found, Grant};
use crate::limiter::leased::Decided;
use crate::limiter::{all, leased};
use crate::outage::{Decider, Outage, Unavailable};
use crate::script::packed::BadReply;
use crate::server::RedisServer;
use crate::server::call::{self, Call, Part};

impl<C: Client> RedisKey<'_, C> {
    /// Takes one permit, if it is available.
    ///
    /// # Errors
    ///
    /// [`Denial`] if it is not available, or if the fallback denies it.
    pub fn try_acquire(&self) -> impl Future<Output = Result<Grant, Denial>> {
        self.try_acquire_n(1)
    }

    /// Takes `n` permits, if all are available.
    ///
    /// ```no_run
    /// # async fn show(
    /// #     alice: tollgate_redis::RedisKey<'_, tollgate_redis::client::Connection>,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// match alice.try_acquire_n(5).await {
    ///     Ok(grant) => println!("go, {} left", grant.granted().remaining()),
    ///     Err(denial) => println!("try again in {:?}", denial.denied().retry_after()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Denial`] if they are not available, or if the fallback denies them.
    pub async fn try_acquire_n(&self, n: u64) -> Result<Grant, Denial> {
        if let Some(leases) = &self.limiter.leases {
            // Without this, callers in a loop would let no other task run, not even the one that
            // draws.
            consume_budget().await;
            if let Some(grant) = leased::spend(self, leases, n) {
                return Ok(grant);
            }
            return match leased::decide(self, leases, n) {
                Decided::Now(decided) => decided,
                Decided::ByServer(wait) => leased::ask(self, leases, n, wait).await,
            };
        }
        if let Some(recalled) = self.recall(n) {
            self.count_recalled();
            // Without this, callers in a loop would let no other task run.
            consume_budget().await;
            return Err(self.denial(recalled.denied(n), Decider::Server));
        }
        let granted = all::take(&[(self, n)]).await?;
        let none = self.denial(Denied::busy(n), Decider::Server);
        granted.into_iter().next().ok_or(none)
    }

    /// Takes `n` permits that a bucket has within `max_wait`, now or later.
    ///
    /// [`Granted::delay`](tollgate::Granted::delay) says how long the caller must wait before it
    /// uses them. Limits other than buckets, those that lease, and fallbacks grant only permits
    /// that are available now.
    ///
    /// An [`undo`](Self::undo) of the last reservation in line gives all its permits back. If other
    /// reservations wait behind it, it gives none back.
    ///
    /// ```no_run
    /// # async fn show(
    /// #     alice: tollgate_redis::RedisKey<'_, tollgate_redis::client::Connection>,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    ///
    /// let grant = alice.reserve_within(5, Duration::from_secs(2)).await?;
    /// tokio::time::sleep(grant.granted().delay()).await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Denial`] if they are not available by then, or if the fallback denies them.
    pub async fn reserve_within(&self, n: u64, max_wait: Duration) -> Result<Grant, Denial> {
        let kind = &self.limiter.limit.kind;
        if !matches!(kind, Kind::Bucket(_)) || self.limiter.leases.is_some() {
            return self.try_acquire_n(n).await;
        }
        let by_server = |denied| self.denial(denied, Decider::Server);
        let (part, wait) = (self.part(n), kind.capped_wait(max_wait));
        let call = call::reserve(part, wait).map_err(by_server)?;
        let read = |reply: &_| call::reserved(part, wait, reply);
        let server = &self.limiter.server;
        let granted = |taken: &Result<_, _>| n > 0 && taken.is_ok();
        match server.call_to_take(&call, read, granted).await {
            Ok(Ok(taken)) => Ok(Grant::by_server(taken, true)),
            Ok(Err(denied)) => Err(by_server(denied)),
            Err((_, outage)) => all::take_without(&[(self, n)], outage).and_then(|granted| {
                let first = granted.into_iter().next();
                first.ok_or_else(|| by_server(Denied::busy(n)))
            }),
        }
    }

    /// Begins the lease of a grant of [concurrency](crate::Limit::concurrency) again, and returns
    /// how many slots the grant still holds. It has lost some if its lease has ended or the key was
    /// reset. For another limit this returns 0, and for a fallback's grant all that was granted.
    /// The call is sent in an outage too, as a probe. There is none for a grant that this process
    /// [leased](crate::RedisLimiter::leased).
    ///
    /// A [guard](Self::try_enter) does this by itself.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if the server does not answer. The lease then ends as it was.
    pub async fn renew(&self, grant: &Grant) -> Result<u64, Unavailable> {
        let n = grant.granted.n();
        if !matches!(self.limiter.limit.kind, Kind::Slots(_)) {
            return Ok(0);
        }
        if let (Found::Lease(after), Some(leases)) = (&grant.found, &self.limiter.leases) {
            let mut after = after.lock();
            let renewed = leases.renew(&self.user, n, *after);
            return Ok(renewed.map_or(0, |renewed| {
                *after = renewed;
                n
            }));
        }
        if grant.decider != Decider::Server {
            return Ok(n);
        }
        renew(&self.limiter.server, self.part(n), grant.mark()).await
    }

    /// Returns whether [`try_acquire_n`](Self::try_acquire_n) would take the permits, and takes
    /// nothing.
    ///
    /// ```no_run
    /// # async fn show(
    /// #     alice: tollgate_redis::RedisKey<'_, tollgate_redis::client::Connection>,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// if alice.check_n(5).await.is_ok() {
    ///     println!("5 permits are available");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Denial`] if they are not available, or if the fallback would deny them.
    pub async fn check_n(&self, n: u64) -> Result<(), Denial> {
        let leases = self.limiter.leases.as_ref();
        if leases.is_some_and(|leases| leases.holds(&self.user, n)) {
            return Ok(());
        }
        let own = leases.and_then(Leases::own);
        let may_fit = n > 0 && n <= self.limiter.limit.permits();
        if may_fit && own.is_some_and(|(own, now_ns)| own.check(&self.user, now_ns, n)) {
            return Ok(());
        }
        if let Some(recalled) = self.recall(n) {
            self.count_recalled();
            consume_budget().await;
            return Err(self.denial(recalled.denied(n), Decider::Server));
        }
        all::check(&[(self, n)]).await
    }

    /// Returns how many permits can be taken now.
    ///
    /// ```no_run
    /// # async fn show(
    /// #     alice: tollgate_redis::RedisKey<'_, tollgate_redis::client::Connection>,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// println!("{} left", alice.available().await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if the server does not answer.
    pub async fn available(&self) -> Result<u64, Unavailable> {
        let seen = self.look(0).await;
        seen.map(|seen| self.limiter.limit.kind.available(&seen))
            .map_err(why)
    }

    /// Returns how long the key is still banned, or `None` if it is not.
    ///
    /// ```no_run
    /// # async fn show(
    /// #     alice: tollgate_redis::RedisKey<'_, tollgate_redis::client::Connection>,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// if let Some(left) = alice.banned_for().await? {
    ///     println!("banned for {left:?}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if the server does not answer.
    pub async fn banned_for(&self) -> Result<Option<Duration>, Unavailable> {
        let seen = self.look(0).await;
        seen.map(|seen| seen.banned_for()).map_err(why)
    }

    /// Gives a grant back, and returns how many permits this makes available: fewer than the grant
    /// had if time has refilled some already. After a change of a bucket's quota, what one of the
    /// two rates would have refilled does not come back. A [queue](crate::Limit::leaky_queue) gets
    /// nothing back while others wait behind the grant. A limit on
    /// [concurrency](crate::Limit::concurrency) frees the grant's slots.
    ///
    /// ```no_run
    /// # async fn show(
    /// #     alice: tollgate_redis::RedisKey<'_, tollgate_redis::client::Connection>,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// let grant = alice.try_acquire_n(5).await?;
    /// // The work was not done.
    /// let returned = alice.undo(grant).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if the server does not answer. The permits then stay taken, unless
    /// [`may_have_taken_effect`](Unavailable::may_have_taken_effect) says that they may have come
    /// back.
    pub async fn undo(&self, grant: Grant) -> Result<u64, Unavailable> {
        match grant.decider {
            Decider::Server => self.give(grant.granted.n(), Some(grant.mark())).await,
            _ => Ok(self.undo_without(grant)),
        }
    }

    /// Gives `n` permits back, as far as they have not been refilled, and returns how many.
    ///
    /// ```no_run
    /// # async fn show(
    /// #     alice: tollgate_redis::RedisKey<'_, tollgate_redis::client::Connection>,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// let returned = alice.refund(3).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if the server does not answer.
    pub async fn refund(&self, n: u64) -> Result<u64, Unavailable> {
        self.give(n, None).await
    }

    /// Takes `n` permits unconditionally. The key may go into debt.
    ///
    /// ```no_run
    /// # async fn show(
    /// #     alice: tollgate_redis::RedisKey<'_, tollgate_redis::client::Connection>,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// // The request was served, and then it turned out to cost 50 more.
    /// let charged = alice.charge(50).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if the server does not answer.
    pub async fn charge(&self, n: u64) -> Result<Charged, Unavailable> {
        let parts = [self.part(n)];
        let read = |reply: &_| first(call::charged(&parts, reply)?);
        let server = &self.limiter.server;
        let call = self.charging(&parts);
        server.call(&call, read).await.map_err(why)
    }

    /// Corrects a grant to its actual cost: gives unused permits back, or charges the missing ones.
    ///
    /// ```no_run
    /// # async fn show(
    /// #     alice: tollgate_redis::RedisKey<'_, tollgate_redis::client::Connection>,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// let grant = alice.try_acquire_n(30).await?;
    /// let settled = alice.settle(grant, 10).await?;
    /// assert_eq!(settled.returned, 20);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if the server made the grant and does not answer.
    pub async fn settle(&self, grant: Grant, actual: u64) -> Result<Settled, Unavailable> {
        if grant.decider.is_fallback() {
            return Ok(self.settle_without(grant, actual));
        }
        if grant.found == Found::Allowance {
            let missing = actual.saturating_sub(grant.granted.n());
            let mut settled = self.settle_own(grant, actual);
            let rest = missing.saturating_sub(settled.charged);
            if rest > 0 {
                // The allowance had no room for the key.
                settled.charged = settled.charged.saturating_add(self.charge(rest).await?.n());
            }
            return Ok(settled);
        }
        let n = grant.granted.n();
        let mut settled = Settled::default();
        if let Some(unused) = n.checked_sub(actual).filter(|&unused| unused > 0) {
            if grant.decider == Decider::Lease {
                return Ok(self.settle_leased(grant, actual));
            }
            settled.returned = self.give(unused, Some(grant.mark())).await?;
            settled.lost = unused.saturating_sub(settled.returned);
        } else if actual > n {
            settled.charged = self.charge(actual.saturating_sub(n)).await?.n();
        }
        Ok(settled)
    }

    /// Deletes the state of the key on the server: all its permits are available, and it is not
    /// banned. A value that is no state of this limit stays.
    ///
    /// ```no_run
    /// # async fn show(
    /// #     alice: tollgate_redis::RedisKey<'_, tollgate_redis::client::Connection>,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// alice.reset().await?;
    /// assert_eq!(alice.banned_for().await?, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if the server does not answer, or if the key has a foreign value.
    pub async fn reset(&self) -> Result<(), Unavailable> {
        let _forgets = self.forgets();
        let call = call::reset(&[self.part(0)]);
        let server = &self.limiter.server;
        let reset = server.call(&call, |_| Ok(())).await.map_err(why);
        if let Some(leases) = &self.limiter.leases {
            match &reset {
                Err(why) if !why.may_have_taken_effect() => {}
                _ => leases.was_reset(&self.user),
            }
        }
        reset
    }

    /// Bans the key on the server, for at most 50 years, and returns how long it is banned. An
    /// earlier ban that ends later stays. Fallbacks do not know the ban.
    ///
    /// ```no_run
    /// # async fn show(
    /// #     alice: tollgate_redis::RedisKey<'_, tollgate_redis::client::Connection>,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    ///
    /// let banned_for = alice.ban_for(Duration::from_secs(3600)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if the server does not answer.
    pub async fn ban_for(&self, long: Duration) -> Result<Duration, Unavailable> {
        // What is remembered would tell a wait that is too short.
        let _forgets = self.forgets();
        if let Some(leases) = &self.limiter.leases {
            leases.drop_held(&self.user);
        }
        let resets = self.limiter.leases.as_ref().map_or(0, Leases::resets);
        let parts = [self.part(0)];
        let read = |reply: &_| first(call::banned(&parts, reply)?);
        let server = &self.limiter.server;
        let call = call::ban(&parts, long);
        let banned = server.call(&call, read).await.map_err(why);
        if let Some(leases) = &self.limiter.leases {
            // What was drawn in the meantime.
            leases.drop_held(&self.user);
            match &banned {
                Ok(left) => leases.banned(&self.user, *left, resets),
                Err(why) if why.may_have_taken_effect() => leases.banned(&self.user, long, resets),
                Err(_) => {}
            }
        }
        banned
    }

    /// Puts back what a lease's grant did not use.
    pub(crate) fn settle_leased(&self, grant: Grant, actual: u64) -> Settled {
        let unused = grant.granted.n().saturating_sub(actual);
        let mut settled = Settled::default();
        if unused > 0 {
            settled.returned = self.put_back(grant, unused);
            settled.lost = unused.saturating_sub(settled.returned);
        }
        settled
    }

    /// Settles what the fallback took.
    pub(crate) fn settle_without(&self, grant: Grant, actual: u64) -> Settled {
        let (deputy, episode) = (&self.limiter.deputy, grant.episode());
        match deputy.decider() == grant.decider {
            true => deputy.settle(self.name(), grant.granted, actual, episode),
            false => Settled::default(),
        }
    }

    async fn look(&self, n: u64) -> Result<Seen, (Unavailable, Outage)> {
        let parts = [self.part(n)];
        let read = |reply: &_| first(call::seen(&parts, reply)?);
        let server = &self.limiter.server;
        server.call(&call::look(&parts), read).await
    }

    /// Returns the call that takes permits of the parts unconditionally. A key that has leases is
    /// alone.
    pub(crate) fn charging(&self, parts: &[Part<'_>]) -> Call {
        match (&self.limiter.leases, parts) {
            (Some(_), [part]) => call::charge_beside(*part),
            _ => call::charge(parts),
        }
    }

    async fn give(&self, n: u64, mark: Option<Mark>) -> Result<u64, Unavailable> {
        let _forgets = self.forgets();
        let parts = [(self.part(n), mark)];
        let read = |reply: &_| first(call::given(&parts, reply)?);
        let server = &self.limiter.server;
        let given = server.call(&call::give(&parts), read).await.map_err(why);
        if let (Some(leases), Ok(1..)) = (&self.limiter.leases, &given) {
            leases.forget(&self.user);
        }
        given
    }
}

/// Gives a grant's slots back, also in an outage, and returns how many came back.
pub(crate) async fn leave<C: Client>(
    server: &RedisServer<C>,
    part: Part<'_>,
    mark: Mark,
) -> Result<u64, Unavailable> {
    let call = call::give(&[(part, Some(mark))]);
    call_anyway(server, &call, part, mark).await
}

/// Begins the lease of a grant's slots again, also in an outage, and returns how many were still
/// held.
pub(crate) async fn renew<C: Client>(
    server: &RedisServer<C>,
    part: Part<'_>,
    mark: Mark,
) -> Result<u64, Unavailable> {
    call_anyway(server, &call::renew(part, mark), part, mark).await
}

/// Sends a call about a grant's slots, also in an outage, and returns how many were held.
async fn call_anyway<C: Client>(
    server: &RedisServer<C>,
    call: &Call,
    part: Part<'_>,
    mark: Mark,
) -> Result<u64, Unavailable> {
    let parts = [(part, Some(mark))];
    let read = |reply: &_| first(call::given(&parts, reply)?);
    server.call_anyway(call, read).await.map_err(why)
}

fn why((why, _): (Unavailable, Outage)) -> Unavailable {
    why
}

fn first<T>(answers: Vec<T>) -> Result<T, BadReply> {
    answers.into_iter().next().ok_or(BadReply)
}
