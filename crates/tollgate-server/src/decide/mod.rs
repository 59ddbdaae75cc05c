//! `/decide`, `/finish` and `/undo`: what programs ask, in JSON.

mod ask;
#[cfg(any(fuzzing, test))]
#[cfg_attr(test, allow(unreachable_pub, reason = "it is public for fuzzing"))]
pub mod fuzzing;
mod say;

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use futures_util::future::join_all;
use http::StatusCode;

use self::ask::{Ask, Asks, Finish, Undo};
use self::say::{Said, Settled};
use crate::counters::Protocol;
use crate::held::Held;
use crate::json::{JSON, failure, json, malformed, write};
use crate::service::{Answer, Decided, Service, of_kind};

/// How many sets of facts a body has at most. Each of them costs a decision's time and an answer's
/// memory, and takes only a few bytes.
const MOST_SETS: usize = 1000;

/// Answers `/decide`: one question, or a list of them.
pub(crate) async fn decide(service: &Service, body: &[u8]) -> Answer {
    let start = Instant::now();
    let mut asks: Asks<'_> = match serde_json::from_slice(body) {
        Ok(asks) => asks,
        Err(error) => return malformed(&error),
    };
    if asks.sets() > MOST_SETS {
        let error = format_args!("a body has at most {MOST_SETS} sets of facts");
        return failure(StatusCode::PAYLOAD_TOO_LARGE, &error);
    }
    asks.normalize(service.path_form());
    let mut out = Vec::with_capacity(256);
    match &asks {
        Asks::One(ask) => {
            let decided = service.decide(&ask.sets).get().await;
            say(service, ask, decided, &mut out).await;
        }
        Asks::Many(asks) => {
            out.push(b'[');
            match service.policy.is_asynchronous() {
                // Stores are asked at once.
                true => {
                    let deciding = asks.iter().map(|ask| service.decide(&ask.sets).get());
                    for (ask, decided) in asks.iter().zip(join_all(deciding).await) {
                        say(service, ask, decided, &mut out).await;
                        out.push(b',');
                    }
                }
                // A place that one question frees is there for the next one.
                false => {
                    for ask in asks {
                        let decided = service.decide(&ask.sets).get().await;
                        say(service, ask, decided, &mut out).await;
                        out.push(b',');
                    }
                }
            }
            if !asks.is_empty() {
                out.pop();
            }
            out.push(b']');
        }
    }
    service.counters.took(Protocol::Decide, start.elapsed());
    of_kind(StatusCode::OK, JSON, out)
}

/// Writes what was decided, and holds the decision if the caller wants it.
async fn say(service: &Service, ask: &Ask<'_>, decided: Decided, out: &mut Vec<u8>) {
    // A decision that asked no limit has nothing to end.
    let holds = ask.hold && decided.is_allowed() && decided.asked().next().is_some();
    if !holds {
        service.counters.count(&decided);
        write(out, &Said::of(&decided, &service.answers));
        return service.end(decided);
    }
    let token = Held::token().filter(|_| service.held.has_room());
    let Some(token) = token else {
        return no_room(service, decided, out).await;
    };
    let start = out.len();
    service.counters.count(&decided);
    write(
        out,
        &Said::of(&decided, &service.answers).with_token(&token),
    );
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
