//! Limits that are decided in one call, because they have the same server and the same hash tag.

use std::cmp::Ordering;
use std::sync::Arc;

use tollgate::Denied;
use tollgate::outcome::Settled;

use crate::client::{Client, Reply};
use crate::limiter::RedisKey;
use crate::limiter::decision::{Denial, Found, Grant};
use crate::limiter::leased;
use crate::outage::{Decider, Outage, Unavailable};
use crate::script::packed::BadReply;
use crate::server::call::{self, Call, Part};

/// Limits that are decided in one call.
pub(super) struct Group<'a, C> {
    /// Each with its index among all limits.
    pub(super) keys: Vec<(usize, RedisKey<'a, C>)>,
}

/// Returns what belongs to each limit in the order of the limits.
pub(super) fn in_order<C, T>(groups: Vec<(&Group<'_, C>, Vec<T>)>) -> Vec<T> {
    let mut all = Vec::new();
    for (group, answers) in groups {
        let indexes = group.keys.iter().map(|&(index, _)| index);
        all.extend(indexes.zip(answers));
    }
    all.sort_by_key(|&(index, _)| index);
    all.into_iter().map(|(_, answer)| answer).collect()
}

impl<C> Group<'_, C> {
    /// Returns whether a key can be decided in the same call.
    pub(super) fn is_of(&self, key: &RedisKey<'_, C>) -> bool {
        self.keys.first().is_some_and(|(_, one)| {
            // What is leased is decided without the others.
            let leases = [one, key].iter().any(|key| key.limiter.leases.is_some());
            !leases
                && Arc::ptr_eq(&one.limiter.server, &key.limiter.server)
                && tag(one.name()) == tag(key.name())
        })
    }

    /// Returns the keys with their costs. `costs` are in the order of all limits.
    pub(super) fn requests<'s>(
        &'s self,
        costs: &'s [u64],
    ) -> impl Iterator<Item = (&'s RedisKey<'s, C>, u64)> {
        let keys = self.keys.iter();
        keys.filter_map(|(index, key)| Some((key, *costs.get(*index)?)))
    }

    /// Returns a denial of this group with the index among all limits.
    pub(super) fn denial(&self, denial: Denial) -> Denial {
        let index = self.keys.get(denial.index).map_or(0, |&(index, _)| index);
        Denial { index, ..denial }
    }
}

impl<C: Client> Group<'_, C> {
    /// Sends a call about some of the keys.
    async fn call<T>(
        &self,
        call: &Call,
        read: impl FnOnce(&Reply) -> Result<Vec<T>, BadReply>,
    ) -> Result<Vec<T>, Unavailable> {
        match self.keys.first() {
            Some((_, one)) if !call.keys.is_empty() => {
                let answer = one.limiter.server.call(call, read).await;
                answer.map_err(|(why, _)| why)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Notes that this group's permits stay taken although no caller has them.
    pub(super) fn lost(&self) {
        if let Some((_, one)) = self.keys.first() {
            one.limiter.server.lost(&[one.name().to_vec()]);
        }
    }

    /// Gives grants back. A group's grants have the same decider.
    pub(super) async fn undo(&self, grants: Vec<Grant>) -> Result<Vec<u64>, Unavailable> {
        let pairs = self.keys.iter().map(|(_, key)| key).zip(grants);
        let (by_server, without): (Vec<_>, Vec<_>) =
            pairs.partition(|(_, grant)| grant.decider == Decider::Server);
        let back = without.into_iter();
        let mut back: Vec<_> = back.map(|(key, grant)| key.undo_without(grant)).collect();
        let _forget: Vec<_> = by_server.iter().map(|(key, _)| key.forgets()).collect();
        let parts = by_server.iter();
        let parts = parts.map(|(key, grant)| (key.part(grant.granted.n()), Some(grant.mark())));
        let parts: Vec<_> = parts.collect();
        let read = |reply: &_| call::given(&parts, reply);
        back.extend(self.call(&call::give(&parts), read).await?);
        Ok(back)
    }

    /// Settles grants: one call gives back what was not used, and one charges what was used in
    /// addition. `costs` are in the order of all limits.
    pub(super) async fn settle(
        &self,
        grants: Vec<Grant>,
        costs: &[u64],
    ) -> Result<Vec<Settled>, Unavailable> {
        let mut settled = Vec::with_capacity(grants.len());
        let (mut unused, mut missing, mut forget) = (Vec::new(), Vec::new(), Vec::new());
        for (at, ((index, key), grant)) in self.keys.iter().zip(grants).enumerate() {
            let (n, mark) = (grant.granted.n(), Some(grant.mark()));
            let actual = costs.get(*index).copied().unwrap_or(n);
            let is_fallback = grant.decider.is_fallback();
            let is_leased = grant.decider == Decider::Lease;
            if grant.found == Found::Allowance {
                let own = key.settle_own(grant, actual);
                let rest = actual.saturating_sub(n).saturating_sub(own.charged);
                if rest > 0 {
                    // The allowance had no room for the key.
                    missing.push((at, key.part(rest)));
                }
                settled.push(own);
                continue;
            }
            settled.push(match is_fallback {
                true => key.settle_without(grant, actual),
                false if is_leased => key.settle_leased(grant, actual),
                false => Settled::default(),
            });
            match n.cmp(&actual) {
                Ordering::Greater if !is_fallback && !is_leased => {
                    forget.push(key.forgets());
                    unused.push((at, (key.part(n.saturating_sub(actual)), mark)))
                }
                Ordering::Less if !is_fallback => {
                    missing.push((at, key.part(actual.saturating_sub(n))))
                }
                _ => {}
            }
        }
        let (at, parts): (Vec<_>, Vec<_>) = unused.into_iter().unzip();
        let read = |reply: &_| call::given(&parts, reply);
        let given = self.call(&call::give(&parts), read).await;
        drop(forget);
        let given = given?;
        for (at, ((part, _), back)) in at.into_iter().zip(parts.iter().zip(given)) {
            if let Some(settled) = settled.get_mut(at) {
                settled.returned = back;
                settled.lost = part.n.saturating_sub(back);
            }
        }
        let (at, parts): (Vec<_>, Vec<_>) = missing.into_iter().unzip();
        let read = |reply: &_| call::charged(&parts, reply);
        let Some((_, one)) = self.keys.first() else {
            return Ok(settled);
        };
        let charged = self.call(&one.charging(&parts), read).await?;
        for (at, charged) in at.into_iter().zip(charged) {
            if let Some(settled) = settled.get_mut(at) {
                settled.charged = settled.charged.saturating_add(charged.n());
            }
        }
        Ok(settled)
    }
}

pub(super) fn by_server((index, denied): (usize, Denied)) -> Denial {
    Denial {
        denied,
        decider: Decider::Server,
        index,
    }
}

/// Takes the permits of all requests, or none. All requests are for one server and one tag.
pub(crate) async fn take<C: Client>(
    requests: &[(&RedisKey<'_, C>, u64)],
) -> Result<Vec<Grant>, Denial> {
    let Some((one, n)) = requests.first() else {
        return Ok(Vec::new());
    };
    if let Some(leases) = &one.limiter.leases {
        // It is alone in its group.
        return leased::take(one, leases, *n).await.map(|grant| vec![grant]);
    }
    let parts: Vec<Part<'_>> = requests.iter().map(|(key, n)| key.part(*n)).collect();
    let call = call::take(&parts).map_err(by_server)?;
    let read = |reply: &_| call::taken(&parts, reply);
    let takes = parts.iter().any(|part| part.n > 0);
    let granted = |taken: &Result<_, _>| takes && taken.is_ok();
    let sent: Vec<_> = requests.iter().map(|(key, _)| key.sent()).collect();
    let server = &one.limiter.server;
    match server.call_to_take(&call, read, granted).await {
        Ok(Ok(taken)) => Ok(taken
            .into_iter()
            .map(|taken| Grant::by_server(taken, false))
            .collect()),
        Ok(Err((index, denied))) => {
            if let (Some((key, n)), Some(sent)) = (requests.get(index), sent.get(index)) {
                key.remember(*n, &denied, *sent);
            }
            Err(by_server((index, denied)))
        }
        Err((_, outage)) => take_without(requests, outage),
    }
}

/// Returns whether [`take`] would take the permits, and takes nothing.
pub(crate) async fn check<C: Client>(requests: &[(&RedisKey<'_, C>, u64)]) -> Result<(), Denial> {
    let Some((one, _)) = requests.first() else {
        return Ok(());
    };
    let parts: Vec<Part<'_>> = requests.iter().map(|(key, n)| key.part(*n)).collect();
    call::take(&parts).map_err(by_server)?;
    let read = |reply: &_| call::seen(&parts, reply);
    let server = &one.limiter.server;
    match server.call(&call::look(&parts), read).await {
        Ok(seen) => call::longest(&parts, &seen).map_or(Ok(()), |denied| Err(by_server(denied))),
        Err((_, outage)) => {
            let checked = requests.iter().enumerate().map(|(index, (key, n))| {
                let checked = key.check_without(*n, outage);
                checked.map_err(|denial| Denial { index, ..denial })
            });
            let denied = checked.filter_map(Result::err).reduce(Denial::more_telling);
            count(requests, denied.as_ref(), outage);
            denied.map_or(Ok(()), Err)
        }
    }
}

/// Lets the fallbacks decide: all grant, or none.
pub(crate) fn take_without<C>(
    requests: &[(&RedisKey<'_, C>, u64)],
    outage: Outage,
) -> Result<Vec<Grant>, Denial> {
    let mut grants = Vec::with_capacity(requests.len());
    let mut denied: Option<Denial> = None;
    for (index, (key, n)) in requests.iter().enumerate() {
        match key.take_without(*n, outage) {
            Ok(grant) => grants.push((key, grant)),
            Err(denial) => {
                let denial = Denial { index, ..denial };
                denied = Some(denied.map_or(denial, |denied| denied.more_telling(denial)));
            }
        }
    }
    count(requests, denied.as_ref(), outage);
    match denied {
        None => Ok(grants.into_iter().map(|(_, grant)| grant).collect()),
        Some(denial) => {
            for (key, grant) in grants {
                key.undo_without(grant);
            }
            Err(denial)
        }
    }
}

/// Counts what fallbacks decided: the grant of each limit, or the denial.
fn count<C>(requests: &[(&RedisKey<'_, C>, u64)], denial: Option<&Denial>, outage: Outage) {
    let Some((one, _)) = requests.first() else {
        return;
    };
    let server = &one.limiter.server;
    match denial {
        Some(denial) => server.count(denial.decider, outage),
        None => {
            for (key, _) in requests {
                server.count(key.limiter.deputy.decider(), outage);
            }
        }
    }
}

/// Returns the hash tag of a key, which [`crate::Keys`] has made.
fn tag(key: &[u8]) -> Option<&[u8]> {
    key.split(|byte| matches!(byte, b'{' | b'}')).nth(1)
}
