//! How a limit that leases permits decides.

use tokio::task::consume_budget;
use tollgate::Denied;

use crate::client::Client;
use crate::lease::{Leases, Said};
use crate::limit::kind::Kind;
use crate::limiter::RedisKey;
use crate::limiter::all;
use crate::limiter::decision::{Denial, Grant};
use crate::outage::Decider;
use crate::server::call;

/// Takes `n` permits that the process holds, or asks the server beside the leases.
pub(crate) async fn take<C: Client>(
    key: &RedisKey<'_, C>,
    leases: &Leases<C>,
    n: u64,
) -> Result<Grant, Denial> {
    let most = key.limiter.limit.permits();
    if n > most {
        return Err(key.denial(Denied::never(n, most), Decider::Server));
    }
    // Without this, callers in a loop would let no other task run, not even the one that draws.
    consume_budget().await;
    match leases.spend(&key.user, n) {
        Said::Granted { left, after } => Ok(Grant::by_lease(n, left, after)),
        Said::Denied { wait } => {
            // When a slot is left is not known.
            let denied = match key.limiter.limit.kind {
                Kind::Slots(_) => Denied::busy(n),
                _ => Denied::later(n, wait),
            };
            Err(key.denial(denied, Decider::Lease))
        }
        Said::Ask => ask(key, leases, n).await,
        Said::Fall => {
            let outage = key.limiter.server.outage(key.name());
            let grants = all::take_without(&[(key, n)], outage)?;
            let busy = || key.denial(Denied::busy(n), Decider::Server);
            grants.into_iter().next().ok_or_else(busy)
        }
    }
}

async fn ask<C: Client>(
    key: &RedisKey<'_, C>,
    leases: &Leases<C>,
    n: u64,
) -> Result<Grant, Denial> {
    if let Some(recalled) = key.recall(n) {
        key.count_recalled();
        return Err(key.denial(recalled.denied(n), Decider::Server));
    }
    let part = key.part(n);
    let busy = || key.denial(Denied::busy(n), Decider::Server);
    let call = call::take_beside(part).ok_or_else(busy)?;
    leases.note(&key.user, key.name(), false);
    let sent = key.sent();
    let read = |reply: &_| call::taken(&[part], reply);
    let granted = |taken: &Result<_, _>| n > 0 && taken.is_ok();
    match key.limiter.server.call_to_take(&call, read, granted).await {
        Ok(Ok(taken)) => {
            let grant = taken.into_iter().next().ok_or_else(busy)?;
            Ok(Grant::by_server(grant, false))
        }
        Ok(Err((_, denied))) => {
            leases.note(&key.user, key.name(), true);
            key.remember(n, &denied, sent);
            Err(key.denial(denied, Decider::Server))
        }
        Err((_, outage)) => {
            let grants = all::take_without(&[(key, n)], outage)?;
            grants.into_iter().next().ok_or_else(busy)
        }
    }
}
