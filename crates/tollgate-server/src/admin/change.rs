//! What needs the token: keys, bans, reloads.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use http::StatusCode;
use serde::{Deserialize, Serialize};
use tollgate_policy::operate::KeyError;
use tollgate_policy::{FileError, RuleState};

use crate::json::{failure, json, malformed};
use crate::reload::Reloader;
use crate::service::{Answer, Service};

/// Answers `/rules`.
pub(super) fn rules(service: &Service) -> Answer {
    #[derive(Serialize)]
    struct Said<'p> {
        name: &'p str,
        key: Vec<&'p str>,
        limits: Vec<&'p str>,
        shadow: bool,
        store: &'p str,
    }

    let policy = service.policy.load();
    let rules = policy.rules().map(|rule| Said {
        name: &rule.name,
        key: rule.key.iter().map(|part| part.as_str()).collect(),
        limits: rule.limits.iter().map(|limit| limit.as_str()).collect(),
        shadow: rule.shadow,
        store: &rule.store,
    });
    json(StatusCode::OK, &rules.collect::<Vec<_>>())
}

/// Answers `/key`: how much a key has left.
pub(super) async fn key(service: &Service, query: &str) -> Answer {
    #[derive(Serialize)]
    struct Limit<'p> {
        limit: &'p str,
        #[serde(skip_serializing_if = "Option::is_none")]
        plan: Option<&'p str>,
        remaining: u64,
    }

    #[derive(Serialize)]
    struct Said<'p> {
        limits: Vec<Limit<'p>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        banned_for_ms: Option<u64>,
    }

    let (mut rule, mut values) = (None, Vec::new());
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "rule" => rule = Some(value),
            "value" => values.push(value),
            _ => {
                let why = format!("unknown parameter `{name}`, expected `rule` or `value`");
                return failure(StatusCode::BAD_REQUEST, &why);
            }
        }
    }
    let Some(rule) = rule else {
        return failure(StatusCode::BAD_REQUEST, "missing parameter `rule`");
    };
    let policy = service.policy.load();
    let found = policy.key(&rule, values.iter().map(AsRef::as_ref));
    let looked = async {
        let key = found?;
        Ok((key.available_async().await?, key.banned_for_async().await?))
    };
    let (available, banned) = match looked.await {
        Ok(looked) => looked,
        Err(error) => return refused(&error),
    };
    let limits = available.into_iter().map(|it| Limit {
        limit: it.limit,
        plan: it.plan,
        remaining: it.permits,
    });
    let limits = limits.collect();
    let ms = |time: Duration| u64::try_from(time.as_nanos().div_ceil(1_000_000));
    let banned_for_ms = banned.map(|banned| ms(banned).unwrap_or(u64::MAX));
    let said = Said {
        limits,
        banned_for_ms,
    };
    json(StatusCode::OK, &said)
}

/// Answers `/ban`.
pub(super) async fn ban(service: &Service, body: &[u8]) -> Answer {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Ban<'a> {
        #[serde(borrow)]
        rule: Cow<'a, str>,
        values: Vec<String>,
        for_s: u64,
    }

    let ban: Ban<'_> = match serde_json::from_slice(body) {
        Ok(ban) => ban,
        Err(error) => return malformed(&error),
    };
    let policy = service.policy.load();
    let done = async {
        let key = policy.key(&ban.rule, ban.values.iter().map(String::as_str))?;
        key.ban_for_async(Duration::from_secs(ban.for_s)).await
    };
    match done.await {
        Ok(()) => {
            tracing::info!(rule = &*ban.rule, seconds = ban.for_s, "a key was banned");
            json(StatusCode::OK, &Done { done: true })
        }
        Err(error) => refused(&error),
    }
}

/// Answers `/reset`.
pub(super) async fn reset(service: &Service, body: &[u8]) -> Answer {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Reset<'a> {
        #[serde(borrow)]
        rule: Cow<'a, str>,
        values: Vec<String>,
    }

    let reset: Reset<'_> = match serde_json::from_slice(body) {
        Ok(reset) => reset,
        Err(error) => return malformed(&error),
    };
    let policy = service.policy.load();
    let done = async {
        let key = policy.key(&reset.rule, reset.values.iter().map(String::as_str))?;
        key.reset_async().await
    };
    match done.await {
        Ok(done) => {
            tracing::info!(rule = &*reset.rule, "a key was reset");
            json(StatusCode::OK, &Done { done })
        }
        Err(error) => refused(&error),
    }
}

/// Answers `/drain`.
pub(super) fn drain(service: &Service, body: &[u8]) -> Answer {
    #[derive(Deserialize, Serialize)]
    #[serde(deny_unknown_fields)]
    struct Drain {
        drain: bool,
    }

    let drain: Drain = match serde_json::from_slice(body) {
        Ok(drain) => drain,
        Err(error) => return malformed(&error),
    };
    service.drains.store(drain.drain, Relaxed);
    tracing::info!(
        drain = drain.drain,
        "whether load balancers should send elsewhere"
    );
    json(StatusCode::OK, &drain)
}

/// Answers `/reload`.
pub(super) async fn reload(reloader: Arc<Reloader>) -> Answer {
    #[derive(Serialize)]
    struct Rule {
        rule: String,
        state: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<&'static str>,
    }

    #[derive(Serialize)]
    struct Said<W> {
        rules: Vec<Rule>,
        warnings: W,
    }

    // It reads a file.
    let reloaded = tokio::task::spawn_blocking(move || reloader.reload()).await;
    let reloaded = match reloaded {
        Ok(Ok(reloaded)) => reloaded,
        Ok(Err(FileError::Policy(problems))) => {
            return json(StatusCode::UNPROCESSABLE_ENTITY, &problems);
        }
        Ok(Err(error)) => return failure(StatusCode::UNPROCESSABLE_ENTITY, &error),
        Err(error) => return failure(StatusCode::INTERNAL_SERVER_ERROR, &error),
    };
    let rules = reloaded.rules().map(|(rule, state)| {
        let (state, why) = match state {
            RuleState::Kept => ("kept", None),
            RuleState::Migrated => ("migrated", None),
            RuleState::New => ("new", None),
            RuleState::Removed => ("removed", None),
            RuleState::Fresh(why) => ("fresh", Some(why)),
            _ => ("unknown", None),
        };
        let rule = rule.to_owned();
        Rule { rule, state, why }
    });
    let rules = rules.collect();
    let warnings = reloaded.warnings();
    json(StatusCode::OK, &Said { rules, warnings })
}

#[derive(Serialize)]
struct Done {
    done: bool,
}

/// Says why a key can't be found or changed.
fn refused(error: &KeyError) -> Answer {
    let status = match error {
        KeyError::UnknownRule { .. } => StatusCode::NOT_FOUND,
        KeyError::Store { .. } => StatusCode::BAD_GATEWAY,
        KeyError::NoRoom { .. } => StatusCode::INSUFFICIENT_STORAGE,
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    };
    failure(status, error)
}
