//! The generations of fields: the drafts of the HTTP API group, and what came before them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
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

/// What the fields of an answer say of its limits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Said {
    policy: Option<HeaderValue>,
    state: Option<HeaderValue>,
}

/// Writes the fields of these generations.
pub(super) fn write<'a>(
    fields: Fields,
    limits: impl Iterator<Item = LimitState<'a>> + Clone,
    now: SystemTime,
    headers: &mut HeaderMap,
) {
    let (mut policy, mut state) = (Value::default(), Value::default());
    write_texts(fields, limits.clone(), &mut policy, &mut state);
    // Each value goes into the headers at once: it takes longer if it is kept in between.
    policy.append(headers, POLICY);
    state.append(headers, RATE_LIMIT);
    if let Some(numbers) = Numbers::of(fields, limits, now) {
        numbers.write(headers);
    }
}

/// Writes the texts of these generations.
fn write_texts<'a>(
    fields: Fields,
    limits: impl Iterator<Item = LimitState<'a>> + Clone,
    policy: &mut Value,
    state: &mut Value,
) {
    if fields.contains(Fields::LIST) {
        write_list(limits, policy, state);
    } else if fields.has_any(Fields::DICTIONARY | Fields::TRIPLE) {
        write_windows(limits, policy);
    }
}

impl Said {
    /// Returns the texts of these generations, and the numbers of those that have numbers.
    pub(super) fn of<'a>(
        fields: Fields,
        limits: impl Iterator<Item = LimitState<'a>> + Clone,
        now: SystemTime,
    ) -> (Self, Option<Numbers>) {
        let (mut policy, mut state) = (Value::default(), Value::default());
        write_texts(fields, limits.clone(), &mut policy, &mut state);
        let said = Self {
            policy: policy.finish(),
            state: state.finish(),
        };
        (said, Numbers::of(fields, limits, now))
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.policy.is_none() && self.state.is_none()
    }

    pub(super) fn write(self, numbers: Option<&Numbers>, headers: &mut HeaderMap) {
        // If there is no room for another header, it is left out.
        if let Some(policy) = self.policy {
            let _ = headers.try_append(POLICY, policy);
        }
        if let Some(state) = self.state {
            let _ = headers.try_append(RATE_LIMIT, state);
        }
        if let Some(numbers) = numbers {
            numbers.write(headers);
        }
    }
}

/// The numbers of the tightest limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbers {
    fields: Fields,
    quota: u64,
    remaining: u64,
    cost: u64,
    per_second: Option<u64>,
    reset: Option<u64>,
    /// When it is reset, in seconds since 1970.
    epoch: Option<u64>,
}

impl Numbers {
    fn of<'a>(
        fields: Fields,
        limits: impl Iterator<Item = LimitState<'a>>,
        now: SystemTime,
    ) -> Option<Self> {
        if fields == Fields::LIST {
            return None;
        }
        let limit = limits.min_by_key(slack)?;
        let is_epoch = fields.contains(Fields::X_EPOCH);
        let has_spring = fields.contains(Fields::SPRING);
        Some(Self {
            fields,
            quota: limit.quota(),
            remaining: limit.remaining(),
            cost: limit.cost(),
            per_second: has_spring.then(|| per_second(&limit)).flatten(),
            reset: limit.reset().map(seconds_until),
            epoch: limit.reset().filter(|_| is_epoch).map(|it| epoch(now, it)),
        })
    }

    fn write(&self, headers: &mut HeaderMap) {
        let Self { fields, .. } = *self;
        let has_list = fields.contains(Fields::LIST);
        if !has_list && fields.contains(Fields::DICTIONARY) {
            self.write_dictionary(headers);
        }
        if fields.contains(Fields::TRIPLE) && !self.is_looser_than(&REMAINING, headers) {
            write_number(headers, LIMIT, Some(self.quota));
            write_number(headers, REMAINING, Some(self.remaining));
            write_number(headers, RESET, self.reset);
        }
        let has_x = fields.has_any(Fields::X_SECONDS | Fields::X_EPOCH);
        let has_spring = fields.contains(Fields::SPRING);
        if !has_x && !has_spring || self.is_looser_than(&X_REMAINING, headers) {
            return;
        }
        write_number(headers, X_REMAINING, Some(self.remaining));
        if has_x {
            let has_seconds = fields.contains(Fields::X_SECONDS);
            let reset = if has_seconds { self.reset } else { self.epoch };
            write_number(headers, X_LIMIT, Some(self.quota));
            write_number(headers, X_RESET, reset);
        }
        if has_spring {
            write_number(headers, X_RATE, self.per_second);
            write_number(headers, X_BURST, Some(self.quota));
            write_number(headers, X_REQUESTED, Some(self.cost));
        }
    }

    /// Draft 07: a dictionary.
    fn write_dictionary(&self, headers: &mut HeaderMap) {
        if self.is_kept(left_in_dictionary(headers), headers) {
            return;
        }
        let mut value = Value::default();
        value.text("limit=");
        value.number(self.quota);
        value.text(", remaining=");
        value.number(self.remaining);
        if let Some(reset) = self.reset {
            value.text(", reset=");
            value.number(reset);
        }
        value.insert(headers, RATE_LIMIT);
    }

    /// Whether an inner layer has written a tighter limit.
    fn is_looser_than(&self, name: &HeaderName, headers: &HeaderMap) -> bool {
        let left = headers.get(name).and_then(|value| value.to_str().ok());
        self.is_kept(left.and_then(|left| left.parse().ok()), headers)
    }

    /// Whether fields are kept in which an inner layer says how many permits are left: it has fewer
    /// of them, or it has refused the request.
    fn is_kept(&self, left: Option<u64>, headers: &HeaderMap) -> bool {
        left.is_some_and(|left| left < self.remaining || headers.contains_key(RETRY_AFTER))
    }
}

/// Drafts 08 to 11.
fn write_list<'a>(
    limits: impl Iterator<Item = LimitState<'a>> + Clone,
    policy: &mut Value,
    state: &mut Value,
) {
    let mut rest = limits.clone();
    match (rest.next(), rest.next()) {
        (Some(limit), None) => {
            names::write(limit.name(), policy);
            state.text(policy.as_bytes());
            write_member(&limit, policy, state);
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
                for value in [&mut *policy, &mut *state] {
                    value.separate();
                    value.text(names.get(index));
                }
                write_member(&limit, policy, state);
            }
        }
    }
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
fn write_windows<'a>(limits: impl Iterator<Item = LimitState<'a>> + Clone, value: &mut Value) {
    let windows = limits.filter_map(|limit| {
        let (quota, window) = policy_of(&limit);
        Some((quota.min(MAX_NUMBER), window?))
    });
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
