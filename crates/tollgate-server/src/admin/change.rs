//! What needs the token: keys, bans, reloads.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use http::StatusCode;
use serde::Serialize;
use tollgate_policy::{FileError, RuleState};

use super::fields::{Fields, Refused};
use crate::error::ReloadError;
use crate::json::json;
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
pub(super) async fn key(service: &Service, query: &str) -> Result<Answer, Refused> {
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
            _ => return Err(Refused::unknown("parameter", &name, &["rule", "value"])),
        }
    }
    let rule = rule.ok_or_else(|| Refused::missing("parameter", "rule"))?;
    let policy = service.policy.load();
    let key = policy.key(&rule, values.iter().map(AsRef::as_ref))?;
    let available = key.available_async().await?;
    let banned = key.banned_for_async().await?;
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
    Ok(json(StatusCode::OK, &said))
}

/// Answers `/ban`.
pub(super) async fn ban(service: &Service, body: &[u8]) -> Result<Answer, Refused> {
    let fields = Fields::read(body, &["rule", "values", "for"])?;
    let (rule, values) = (fields.text("rule")?, fields.texts("values")?);
    let time = fields.time("for")?;
    let policy = service.policy.load();
    let key = policy.key(rule, values)?;
    key.ban_for_async(time).await?;
    tracing::info!(rule, ?time, "a key was banned");
    Ok(json(StatusCode::OK, &Done { done: true }))
}

/// Answers `/reset`.
pub(super) async fn reset(service: &Service, body: &[u8]) -> Result<Answer, Refused> {
    let fields = Fields::read(body, &["rule", "values"])?;
    let (rule, values) = (fields.text("rule")?, fields.texts("values")?);
    let policy = service.policy.load();
    let done = policy.key(rule, values)?.reset_async().await?;
    tracing::info!(rule, done, "a key was reset");
    Ok(json(StatusCode::OK, &Done { done }))
}

/// Answers `/drain`.
pub(super) fn drain(service: &Service, body: &[u8]) -> Result<Answer, Refused> {
    #[derive(Serialize)]
    struct Drain {
        drain: bool,
    }

    let drain = match body.is_empty() {
        true => true,
        false => Fields::read(body, &["drain"])?.is_set("drain")?,
    };
    service.drains.store(drain, Relaxed);
    match drain {
        true => tracing::info!("an operator drains the service: /readyz answers 503"),
        false => tracing::info!("the service is not drained any more"),
    }
    Ok(json(StatusCode::OK, &Drain { drain }))
}

/// Answers `/reload`.
pub(super) async fn reload(reloader: Arc<Reloader>) -> Result<Answer, Refused> {
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

    // It reads files.
    let reloaded = tokio::task::spawn_blocking(move || reloader.reload()).await;
    let reloaded = match reloaded {
        Ok(Ok(reloaded)) => reloaded,
        Ok(Err(ReloadError::Policy(FileError::Policy(problems)))) => {
            return Ok(json(StatusCode::UNPROCESSABLE_ENTITY, &problems));
        }
        Ok(Err(error)) => {
            let field = match &error {
                ReloadError::Policy(_) => "policy",
                #[cfg(feature = "tls")]
                ReloadError::Tls(_) => "tls",
            };
            return Err(Refused::new(StatusCode::UNPROCESSABLE_ENTITY, error).of(field));
        }
        Err(error) => return Err(Refused::new(StatusCode::INTERNAL_SERVER_ERROR, error)),
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
    Ok(json(StatusCode::OK, &Said { rules, warnings }))
}

#[derive(Serialize)]
struct Done {
    done: bool,
}
