//! The generations of fields: the drafts of the HTTP API group, and what came before them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{HeaderMap, HeaderName, RETRY_AFTER};
use smallvec::SmallVec;

use super::fields::Fields;
use super::names::{self, Names};
use super::value::{MAX_NUMBER, Value, insert_number, seconds_until};
use crate::{LimitState, Unit};

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");
const X_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const X_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const X_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const X_RATE: HeaderName = HeaderName::from_static("x-ratelimit-replenish-rate");
const X_BURST: HeaderName = HeaderName::from_static("x-ratelimit-burst-capacity");
const X_REQUESTED: HeaderName = HeaderName::from_static("x-ratelimit-requested-tokens");

/// The most limits of a list. Proxies refuse answers whose headers have more than 4 or 8 KB.
const LISTED: usize = 16;

/// The most bytes that the names of a list have together.
const NAMED: usize = 512;

/// Writes the fields of these generations.
pub(super) fn write<'a>(
    fields: Fields,
    limits: impl Iterator<Item = LimitState<'a>> + Clone,
    now: SystemTime,
    headers: &mut HeaderMap,
) {
    let has_list = fields.contains(Fields::LIST);
    if has_list {
        write_list(limits.clone(), headers);
    }
    if fields == Fields::LIST {
        return;
    }
    let Some(limit) = tightest(limits.clone()) else {
        return;
    };
    let reset = limit.reset().map(seconds_until);
    if !has_list && fields.has_any(Fields::DICTIONARY | Fields::TRIPLE) {
        write_windows(limits, headers);
    }
    let is_kept = || is_kept(headers, left_in_dictionary(headers), &limit);
    if !has_list && fields.contains(Fields::DICTIONARY) && !is_kept() {
        write_dictionary(&limit, reset, headers);
    }
    if fields.contains(Fields::TRIPLE) && !has_tighter(headers, &REMAINING, &limit) {
        write_number(headers, LIMIT, Some(policy_of(&limit).0));
        write_number(headers, REMAINING, Some(limit.remaining()));
        write_number(headers, RESET, reset);
    }
    let has_x = fields.has_any(Fields::X_SECONDS | Fields::X_EPOCH);
    let has_spring = fields.contains(Fields::SPRING);
    if !has_x && !has_spring || has_tighter(headers, &X_REMAINING, &limit) {
        return;
    }
    write_number(headers, X_REMAINING, Some(limit.remaining()));
    if has_x {
        let reset = if fields.contains(Fields::X_SECONDS) {
            reset
        } else {
            limit.reset().map(|reset| epoch(now, reset))
        };
        write_number(headers, X_LIMIT, Some(policy_of(&limit).0));
        write_number(headers, X_RESET, reset);
    }
    if has_spring {
        write_number(headers, X_RATE, per_second(&limit));
        write_number(headers, X_BURST, Some(limit.quota()));
        write_number(headers, X_REQUESTED, Some(limit.cost()));
    }
}

/// Drafts 08 to 11.
fn write_list<'a>(limits: impl Iterator<Item = LimitState<'a>> + Clone, headers: &mut HeaderMap) {
    let (mut policy, mut state) = (Value::default(), Value::default());
    let mut rest = limits.clone();
    match (rest.next(), rest.next()) {
        (Some(limit), None) => {
            names::write(limit.name(), &mut policy);
            state.text(policy.as_bytes());
            write_member(&limit, &mut policy, &mut state);
        }
        _ => {
            let names = Names::of(limits.clone());
            let listed = listed(limits.clone());
            for (index, limit) in limits.enumerate() {
                if listed
                    .as_ref()
                    .is_some_and(|listed| !listed.contains(&index))
                {
                    continue;
                }
                for value in [&mut policy, &mut state] {
                    value.separate();
                    value.text(names.get(index));
                }
                write_member(&limit, &mut policy, &mut state);
            }
        }
    }
    policy.append(headers, POLICY);
    state.append(headers, RATE_LIMIT);
}

/// Returns which limits are written, by their positions, if there are too many: the tightest.
fn listed<'a>(limits: impl Iterator<Item = LimitState<'a>>) -> Option<SmallVec<[usize; LISTED]>> {
    // The reset of a concurrency is not known, so only its remaining permits say how tight it is.
    let tight = |limit: &LimitState<'_>| {
        let (grants, _, wait, left) = slack(limit);
        (grants, wait, left)
    };
    let mut order: SmallVec<[_; LISTED]> = limits
        .enumerate()
        .map(|(index, limit)| (tight(&limit), index, limit.name().len()))
        .collect();
    if order.len() <= LISTED && order.iter().map(|it| it.2).sum::<usize>() <= NAMED {
        return None;
    }
    order.sort_unstable();
    let mut bytes = 0_usize;
    let fits = |&(_, index, len): &(_, usize, usize)| {
        bytes = bytes.saturating_add(len);
        (bytes <= NAMED).then_some(index)
    };
    Some(order.iter().take(LISTED).map_while(fits).collect())
}

/// Writes the parameters of one limit.
fn write_member(limit: &LimitState<'_>, policy: &mut Value, state: &mut Value) {
    let (quota, window) = policy_of(limit);
    policy.text(";q=");
    policy.number(quota);
    match limit.counts() {
        Unit::Requests => {}
        Unit::ContentBytes => policy.text(";qu=\"content-bytes\""),
        Unit::ConcurrentRequests => policy.text(";qu=\"concurrent-requests\""),
    }
    if let Some(seconds) = window {
        policy.text(";w=");
        policy.number(seconds);
    }
    state.text(";r=");
    state.number(limit.remaining());
    if let Some(reset) = limit.reset() {
        state.text(";t=");
        state.number(seconds_until(reset));
    }
    if let Some(key) = limit.partition_key() {
        let key = STANDARD.encode(key);
        for value in [policy, state] {
            value.text(";pk=:");
            value.text(&key);
            value.text(":");
        }
    }
}

/// The policies of drafts 04 to 07. They have no names, and no two may have the same quota: only
/// the one with the longest window is written, because it is the strictest in the long run.
fn write_windows<'a>(
    limits: impl Iterator<Item = LimitState<'a>> + Clone,
    headers: &mut HeaderMap,
) {
    let windows = limits.filter_map(|limit| {
        let (quota, window) = policy_of(&limit);
        Some((quota.min(MAX_NUMBER), window?))
    });
    let mut value = Value::default();
    for (index, (quota, seconds)) in windows.clone().enumerate() {
        let mut others = windows.clone().enumerate();
        let is_covered = others.any(|(other, (its_quota, its_seconds))| {
            its_quota == quota && (its_seconds, index) > (seconds, other)
        });
        if !is_covered {
            value.separate();
            value.number(quota);
            value.text(";w=");
            value.number(seconds);
        }
    }
    value.append(headers, POLICY);
}

/// Draft 07.
fn write_dictionary(limit: &LimitState<'_>, reset: Option<u64>, headers: &mut HeaderMap) {
    let mut value = Value::default();
    value.text("limit=");
    value.number(policy_of(limit).0);
    value.text(", remaining=");
    value.number(limit.remaining());
    if let Some(reset) = reset {
        value.text(", reset=");
        value.number(reset);
    }
    value.insert(headers, RATE_LIMIT);
}

/// Returns whether another layer has written a limit that these fields keep.
fn has_tighter(headers: &HeaderMap, name: &HeaderName, limit: &LimitState<'_>) -> bool {
    let left = headers.get(name).and_then(|value| value.to_str().ok());
    is_kept(headers, left.and_then(|left| left.parse().ok()), limit)
}

/// Returns whether another layer's limit is kept: it has fewer permits left, or has refused the
/// request.
fn is_kept(headers: &HeaderMap, left: Option<u64>, limit: &LimitState<'_>) -> bool {
    left.is_some_and(|left| left < limit.remaining() || headers.contains_key(RETRY_AFTER))
}

/// Returns how many permits are left in the dictionary that another layer has written.
fn left_in_dictionary(headers: &HeaderMap) -> Option<u64> {
    let mut members = headers.get(RATE_LIMIT)?.to_str().ok()?.split(", ");
    let left = members.find_map(|member| member.strip_prefix("remaining="));
    left?.parse().ok()
}

/// Sets a field to a number. Without a number, removes what another layer wrote.
fn write_number(headers: &mut HeaderMap, name: HeaderName, number: Option<u64>) {
    match number {
        Some(number) => insert_number(headers, name, number),
        None => {
            headers.remove(name);
        }
    }
}

/// Returns the limit that a field with one limit names.
fn tightest<'a>(limits: impl Iterator<Item = LimitState<'a>>) -> Option<LimitState<'a>> {
    limits.min_by_key(slack)
}

/// Orders limits, the tightest first: those that deny, by their waits, then the others, by what is
/// left.
fn slack(limit: &LimitState<'_>) -> (bool, bool, Duration, u64) {
    let reset = limit.reset();
    let wait = reset.unwrap_or_default();
    let wait = if limit.denies() { wait } else { Duration::ZERO };
    (
        !limit.denies(),
        reset.is_none(),
        Duration::MAX - wait,
        limit.remaining(),
    )
}

/// Returns the window in whole seconds, rounded up. `None` for a concurrency.
fn window(limit: &LimitState<'_>) -> Option<u64> {
    Some(seconds_until(limit.window()?).max(1))
}

/// Returns a policy: the most permits that are available at once, and in how many seconds they come
/// back, rounded up. A concurrency has no seconds.
///
/// So the difference to what is left says how many were used. A burst that comes back in a part of
/// a second, such as one permit at 10 a second, seems to come back more slowly than it does.
fn policy_of(limit: &LimitState<'_>) -> (u64, Option<u64>) {
    (limit.quota(), window(limit))
}

/// Returns the permits per second, rounded down.
fn per_second(limit: &LimitState<'_>) -> Option<u64> {
    let rate = limit.rate()?;
    let permits = u128::from(rate.permits()) * 1_000_000_000;
    let permits = permits.checked_div(rate.period().as_nanos())?;
    Some(u64::try_from(permits).unwrap_or(u64::MAX))
}

/// Returns a time as seconds since 1970, rounded up.
fn epoch(now: SystemTime, after: Duration) -> u64 {
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    seconds_until(now.saturating_add(after))
}
