//! How a limit that leases permits decides.

use std::time::Duration;

use tokio::task::consume_budget;
use tollgate::Denied;

use crate::client::Client;
use crate::lease::{Leases, Said};
use crate::limit::kind::Kind;
use crate::limiter::RedisKey;
use crate::limiter::all;
use crate::limiter::decision::{Denial, Grant};
use crate::outage::{Decider, Outage};
use crate::server::call;

/// What a process says to a request.
pub(crate) enum Decided {
    /// The decision.
    Now(Result<Grant, Denial>),
    /// The server decides. Its denial need not tell a longer wait than this, if there is one.
    ByServer(Option<Duration>),
}

/// Takes `n` permits that the process holds, or asks the server beside the leases.
pub(crate) async fn take<C: Client>(
    key: &RedisKey<'_, C>,
    leases: &Leases<C>,
    n: u64,
) -> Result<Grant, Denial> {
    // Without this, callers in a loop would let no other task run, not even the one that draws.
    consume_budget().await;
    if let Some(grant) = spend(key, leases, n) {
        return Ok(grant);
    }
    match decide(key, leases, n) {
        Decided::Now(decided) => decided,
        Decided::ByServer(wait) => ask(key, leases, n, wait).await,
    }
}

/// Takes permits that the process holds. If there are too few, [`decide`] says what to do.
#[inline(always)]
pub(crate) fn spend<C>(key: &RedisKey<'_, C>, leases: &Leases<C>, n: u64) -> Option<Grant> {
    let (left, after) = leases.spend(&key.user, n)?;
    Some(Grant::by_lease(n, left, after))
}

/// Decides from what the process holds.
#[inline(never)]
pub(crate) fn decide<C: Client>(key: &RedisKey<'_, C>, leases: &Leases<C>, n: u64) -> Decided {
    let most = key.limiter.limit.permits();
    if n > most {
        return Decided::Now(Err(key.denial(Denied::never(n, most), Decider::Server)));
    }
    let said = leases.decide(&key.user, n);
    if let Said::Granted { left, after } = said {
        return Decided::Now(Ok(Grant::by_lease(n, left, after)));
    }
    let is_banned = matches!(said, Said::Denied { is_banned, .. } if is_banned);
    let mut wait = None;
    if let (Some((own, now_ns)), true) = (leases.own(), n > 0) {
        match own.take(&key.user, now_ns, n) {
            Ok(granted) => return Decided::Now(Ok(Grant::by_allowance(granted))),
            Err(own) => wait = own,
        }
    }
    let denial = match said {
        Said::Ask | Said::Granted { .. } => return Decided::ByServer(wait),
        Said::Fall => match fall_back(key, n, key.limiter.server.outage(key.name())) {
            Ok(grant) => return Decided::Now(Ok(grant)),
            Err(denial) => denial,
        },
        Said::Denied { wait, .. } => {
            // When a slot is left is not known.
            let denied = match key.limiter.limit.kind {
                _ if is_banned => Denied::banned(n, Some(wait)),
                Kind::Slots(_) => Denied::busy(n),
                _ => Denied::later(n, wait),
            };
            key.denial(denied, Decider::Lease)
        }
    };
    Decided::Now(Err(denial.no_later_than(wait)))
}

/// Lets the fallback decide.
fn fall_back<C>(key: &RedisKey<'_, C>, n: u64, outage: Outage) -> Result<Grant, Denial> {
    let grants = all::take_without(&[(key, n)], outage)?;
    let busy = || key.denial(Denied::busy(n), Decider::Server);
    grants.into_iter().next().ok_or_else(busy)
}

/// Asks the server. Its denial tells no longer wait than this, if there is one.
pub(crate) async fn ask<C: Client>(
    key: &RedisKey<'_, C>,
    leases: &Leases<C>,
    n: u64,
    wait: Option<Duration>,
) -> Result<Grant, Denial> {
    if let Some(recalled) = key.recall(n) {
        key.count_recalled();
        let denial = key.denial(recalled.denied(n), Decider::Server);
        return Err(denial.no_later_than(wait));
    }
    let part = key.part(n);
    let busy = || key.denial(Denied::busy(n), Decider::Server);
    let call = call::take_beside(part).ok_or_else(busy)?;
    leases.note(&key.user, key.name(), false);
    let resets = leases.resets();
    let sent = key.sent();
    let read = |reply: &_| Ok((call::taken(&[part], reply)?, call::ban_beside(part, reply)));
    let granted = |read: &(Result<_, _>, _)| n > 0 && read.0.is_ok();
    match key.limiter.server.call_to_take(&call, read, granted).await {
        Ok((Ok(taken), _)) => {
            let grant = taken.into_iter().next().ok_or_else(busy)?;
            Ok(Grant::by_server(grant, false))
        }
        Ok((Err((_, denied)), ban)) => {
            leases.note(&key.user, key.name(), true);
            key.remember(n, &denied, sent);
            if let Some(left) = ban {
                leases.banned(&key.user, left, resets);
            }
            Err(key.denial(denied, Decider::Server).no_later_than(wait))
        }
        Err((_, outage)) => fall_back(key, n, outage).map_err(|denial| denial.no_later_than(wait)),
    }
}
