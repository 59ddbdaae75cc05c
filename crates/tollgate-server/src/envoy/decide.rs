//! Decides about Envoy's descriptors, all or nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use tollgate::Denied;
use tollgate_http::PathForm;
use tollgate_policy::{Policy, Reason, RemoteError};

use super::descriptor::{self, Descriptor, Mode, Placed};
use super::frame::{Status, StatusOfCall};
use super::messages::{RateLimitRequest, RateLimitResponse};
use super::say::{self, Said};
use crate::counters::Protocol;
use crate::overrides::Taken;
use crate::service::{Decided, Service};

/// Answers a request whose caller waits for so long, if that is known. Returns the answer, and how
/// long it must wait.
pub(super) async fn decide(
    service: &Service,
    request: &RateLimitRequest,
    patience: Option<Duration>,
) -> Result<(RateLimitResponse, Duration), Status> {
    let policy = service.policy.load();
    let is_asynchronous = policy.is_asynchronous();
    let deciding = decide_by(service, policy, request, patience);
    match is_asynchronous {
        // A decision takes much room. It is kept only where it waits for a store.
        true => Box::pin(deciding).await,
        false => deciding.now_or_never().unwrap_or_else(|| {
            let message = "a limit of this process waits";
            Err(Status::new(StatusOfCall::Internal, message))
        }),
    }
}

async fn decide_by(
    service: &Service,
    policy: Arc<Policy>,
    request: &RateLimitRequest,
    patience: Option<Duration>,
) -> Result<(RateLimitResponse, Duration), Status> {
    let start = Instant::now();
    let form = policy.client().path.map(PathForm::from).unwrap_or_default();
    let all = descriptor::read(request, form)?;
    let (asking, changing): (Vec<_>, Vec<_>) = all
        .iter()
        .enumerate()
        .partition(|(_, descriptor)| descriptor.mode == Mode::Take);
    let own = match take_own(service, &asking) {
        Ok(own) => own,
        Err((index, denied)) => {
            service.counters.took(Protocol::Envoy, start.elapsed());
            let answer = say::denied_by_own(service, &all, index, denied);
            return Ok((answer, Duration::ZERO));
        }
    };
    let decided = decide_by_policy(service, &policy, &asking).await;
    service.counters.count(&decided);
    if let Some(Reason::Invalid(error)) = decided.reason() {
        own.into_iter().for_each(|(_, taken)| taken.undo());
        return Err(Status::new(StatusOfCall::Internal, error.to_string()));
    }
    let said = Said {
        service,
        all: &all,
        asking: &asking,
        decided: &decided,
    };
    let delay = decided.delay();
    if !decided.is_allowed() || !is_in_time(delay, patience) {
        let answer = said.denied(delay);
        own.into_iter().for_each(|(_, taken)| taken.undo());
        // If a store does not answer, its grant stays as it is.
        let _ = decided.undo_async().await;
        service.counters.took(Protocol::Envoy, start.elapsed());
        return Ok((answer, Duration::ZERO));
    }
    let answer = said.allowed(&own);
    // Envoy does not tell when its request ends, so a place is free at once.
    service.end(decided);
    for (_, descriptor) in changing {
        let changed = change(service, &policy, descriptor).await;
        changed.map_err(|why| Status::new(StatusOfCall::Unavailable, why.to_string()))?;
    }
    service.counters.took(Protocol::Envoy, start.elapsed());
    Ok((answer, delay))
}

async fn decide_by_policy(
    service: &Service,
    policy: &Arc<Policy>,
    asking: &[Placed<'_, '_>],
) -> Decided {
    let policy = Arc::clone(policy);
    let deciding = match asking {
        // Most requests have one.
        [(_, only)] => service.decide_by(policy, std::slice::from_ref(only)),
        _ => {
            let sets: Vec<_> = asking.iter().map(|(_, descriptor)| *descriptor).collect();
            service.decide_by(policy, &sets)
        }
    };
    deciding.get().await
}

/// Takes from the limits that descriptors bring, or returns which descriptor is denied.
fn take_own(
    service: &Service,
    asking: &[Placed<'_, '_>],
) -> Result<Vec<(usize, Taken)>, (usize, Denied)> {
    let mut all = Vec::new();
    for (index, descriptor) in asking {
        let Some(quota) = descriptor.own else {
            continue;
        };
        let hits = descriptor.hits;
        let limiter = service.overrides.of(descriptor, hits, quota);
        match limiter.and_then(|limiter| Taken::new(limiter, hits)) {
            Ok(taken) => all.push((*index, taken)),
            Err(denied) => {
                all.into_iter()
                    .rev()
                    .for_each(|(_, taken): (_, Taken)| taken.undo());
                return Err((*index, denied));
            }
        }
    }
    Ok(all)
}

/// Returns whether a request can wait for so long before Envoy no longer does. A quarter of Envoy's
/// time is for the way of the question and the answer.
fn is_in_time(delay: Duration, patience: Option<Duration>) -> bool {
    delay.is_zero() || patience.is_none_or(|patience| delay <= patience / 4 * 3)
}

/// Gives hits back, or charges them.
async fn change(
    service: &Service,
    policy: &Arc<Policy>,
    descriptor: &Descriptor<'_>,
) -> Result<(), RemoteError> {
    let hits = descriptor.hits;
    if hits == 0 {
        return Ok(());
    }
    // Where there is no room, or a quota of 0, there is nothing to change.
    let own = descriptor
        .own
        .map(|own| service.overrides.of(descriptor, hits, own));
    if let Some(Ok(limiter)) = own {
        match descriptor.mode {
            Mode::Refund => drop(limiter.refund(hits)),
            _ => drop(limiter.charge(hits.min(limiter.quota().largest_settlement()))),
        }
    }
    match descriptor.mode {
        Mode::Refund => policy.refund_async(descriptor).await,
        _ => policy.charge_async(descriptor).await,
    }
    .map(drop)
}
