//! `/decide`, `/finish` and `/undo`: what programs ask, in JSON.

mod ask;
#[cfg(any(fuzzing, test))]
#[cfg_attr(test, allow(unreachable_pub, reason = "it is public for fuzzing"))]
pub mod fuzzing;
mod say;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use futures_util::future::join_all;
use http::StatusCode;
use tollgate_policy::Policy;

use self::ask::{Ask, Asks, Finish, Undo};
use self::say::{Said, Settled};
use crate::counters::Protocol;
use crate::held::Held;
use crate::json::{JSON, failure, json, malformed, write};
use crate::service::{Answer, Decided, Service, of_kind, path_form};

/// How many sets of facts a body has at most. Each of them costs a decision's time and an answer's
/// memory, and takes only a few bytes.
const MOST_SETS: usize = 1000;

/// Most answers to a question have fewer bytes.
const ANSWER_BYTES: usize = 224;

/// Answers `/decide`: one question, or a list of them.
pub(crate) async fn decide(service: &Service, body: &[u8]) -> Answer {
    let start = Instant::now();
    // All names and values at once are checked sooner than each of them.
    let read = match str::from_utf8(body) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(body),
    };
    let mut asks: Asks<'_> = match read {
        Ok(asks) => asks,
        Err(error) => return malformed(&error),
    };
    if asks.sets() > MOST_SETS {
        let error = format_args!("a body has at most {MOST_SETS} sets of facts");
        return failure(StatusCode::PAYLOAD_TOO_LARGE, &error);
    }
    let policy = service.policy.load();
    asks.normalize(path_form(&policy));
    let (list, is_list) = match &asks {
        Asks::One(ask) => (std::slice::from_ref(ask), false),
        Asks::Many(asks) => (asks.as_slice(), true),
    };
    let mut out = Vec::with_capacity(ANSWER_BYTES.saturating_mul(list.len()));
    if is_list {
        out.push(b'[');
    }
    // Futures in boxes keep this one small, and no decision is moved.
    if policy.is_asynchronous() {
        Box::pin(ask_stores(service, policy, list, &mut out)).await;
    } else {
        // A place that one question frees is there for the next one.
        for ask in list {
            let decided = Arc::clone(&policy).decide_together_owned(ask.sets.as_slice());
            match ask.holds(&decided) {
                false => write(&mut out, &Said::of(&decided, None, service)),
                true => Box::pin(hold(service, decided, &mut out)).await,
            }
            out.push(b',');
        }
    }
    if !list.is_empty() {
        out.pop();
    }
    if is_list {
        out.push(b']');
    }
    service.counters.took(Protocol::Decide, start.elapsed());
    of_kind(StatusCode::OK, JSON, out)
}

/// Decides a list of questions by a policy that asks stores: all of them at once.
async fn ask_stores(service: &Service, policy: Arc<Policy>, list: &[Ask<'_>], out: &mut Vec<u8>) {
    let decide = |ask: &Ask<'_>| {
        service
            .decide_by(Arc::clone(&policy), ask.sets.as_slice())
            .get()
    };
    for (ask, decided) in list.iter().zip(join_all(list.iter().map(decide)).await) {
        match ask.holds(&decided) {
            false => {
                write(out, &Said::of(&decided, None, service));
                service.end(decided);
            }
            true => hold(service, decided, out).await,
        }
        out.push(b',');
    }
}

/// Writes what was decided, and holds the decision for the caller.
async fn hold(service: &Service, decided: Decided, out: &mut Vec<u8>) {
    let token = Held::token().filter(|_| service.held.has_room());
    let Some(token) = token else {
        return no_room(service, decided, out).await;
    };
    let start = out.len();
    write(out, &Said::of(&decided, Some(&token), service));
    if let Err(decided) = service.held.keep(&token, decided) {
        out.truncate(start);
        no_room(service, *decided, out).await;
    }
}

/// Gives back what a decision took that can't be held.
async fn no_room(service: &Service, decided: Decided, out: &mut Vec<u8>) {
    service.held.refused.fetch_add(1, Relaxed);
    // If a store does not answer, its grant stays as it is.
    let _ = decided.undo_async().await;
    write(out, &Said::NO_ROOM);
}

/// Answers `/finish`.
pub(crate) async fn finish(service: &Service, body: &[u8]) -> Answer {
    let finish: Finish<'_> = match serde_json::from_slice(body) {
        Ok(finish) => finish,
        Err(error) => return malformed(&error),
    };
    let Some(decided) = service.held.take(&finish.token) else {
        return unknown();
    };
    let settled = match finish.ended() {
        Some(outcome) => decided.finish_async(outcome, &finish.facts).await,
        None => decided.settle_async(&finish.facts).await,
    };
    match settled {
        Ok(settled) => json(StatusCode::OK, &Settled::from(settled)),
        Err(error) => failure(StatusCode::BAD_GATEWAY, &error),
    }
}

/// Answers `/undo`.
pub(crate) async fn undo(service: &Service, body: &[u8]) -> Answer {
    let undo: Undo<'_> = match serde_json::from_slice(body) {
        Ok(undo) => undo,
        Err(error) => return malformed(&error),
    };
    let Some(decided) = service.held.take(&undo.token) else {
        return unknown();
    };
    match decided.undo_async().await {
        Ok(returned) => json(StatusCode::OK, &Settled::returned(returned)),
        Err(error) => failure(StatusCode::BAD_GATEWAY, &error),
    }
}

fn unknown() -> Answer {
    let error = "token is not known: it was used, or its time is over";
    failure(StatusCode::NOT_FOUND, error)
}
