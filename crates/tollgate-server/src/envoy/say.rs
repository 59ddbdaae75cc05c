//! What Envoy is told of a decision.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap};
use tollgate::{Denied, Quota};
use tollgate_http::{Cause, LimitState, LimitStates, Refusal};
use tollgate_policy::Asked;

use super::descriptor::{Descriptor, Placed};
use super::messages::{Code, DescriptorStatus, HeaderField, RateLimit, RateLimitResponse, Seconds};
use crate::overrides::{Taken, Unit};
use crate::service::{Decided, Service};

/// The name of a limit that a descriptor brings.
const OWN: &str = "limit-override";

/// A decision, and what it is about.
pub(super) struct Said<'a, 'r> {
    pub(super) service: &'a Service,
    pub(super) all: &'a [Descriptor<'r>],
    /// The descriptors that the policy decided about.
    pub(super) asking: &'a [Placed<'a, 'r>],
    pub(super) decided: &'a Decided,
}

impl Said<'_, '_> {
    /// The request is allowed, also by the limits that descriptors bring.
    pub(super) fn allowed(&self, own: &[(usize, Taken)]) -> RateLimitResponse {
        let mut statuses = self.statuses();
        let states = LimitStates::of(self.decided);
        let mut fields = HeaderMap::new();
        if own.is_empty() {
            let values = self.service.answers.values(states.iter().copied());
            values.write(&mut fields);
        } else {
            let mut states = states.to_vec();
            for (index, taken) in own {
                let state = LimitState::of_rate(OWN, taken.limiter.quota());
                let state = state.granted(taken.granted.info());
                states.push(state);
                if let Some(status) = statuses.get_mut(*index) {
                    let is_tighter = state.remaining() < u64::from(status.limit_remaining);
                    if is_tighter || status.current_limit.is_none() {
                        set(status, &state);
                    }
                }
            }
            let values = self.service.answers.values(states.iter().copied());
            values.write(&mut fields);
        }
        RateLimitResponse {
            overall_code: Code::Ok.into(),
            statuses,
            response_headers_to_add: header_fields(&fields),
            raw_body: Bytes::new(),
        }
    }

    /// The policy denies the request, or the request would have to wait for so long that Envoy does
    /// not.
    pub(super) fn denied(&self, delay: Duration) -> RateLimitResponse {
        let mut statuses = self.statuses();
        let states = LimitStates::of(self.decided);
        let (refusal, set) = match Refusal::of_decision(self.decided) {
            Some(refusal) => (refusal, self.decided.denied_set()),
            None => {
                let slowest = self
                    .decided
                    .asked()
                    .max_by_key(|it| it.grant().map(|it| it.delay()));
                let refusal = Refusal::new(Cause::Limit).retry_after(delay);
                match slowest {
                    Some(asked) => (refusal.rule(asked.rule()), asked.sets().next()),
                    None => (refusal, None),
                }
            }
        };
        let placed = set.and_then(|set| self.asking.get(set));
        if let Some(status) = placed.and_then(|(index, _)| statuses.get_mut(*index)) {
            status.code = Code::OverLimit.into();
            if let Some(wait) = refusal.wait() {
                status.duration_until_reset = Some(ceil(wait));
            }
        }
        refuse(self.service, statuses, &refusal.limits(&states))
    }

    /// Returns what each descriptor is told.
    fn statuses(&self) -> Vec<DescriptorStatus> {
        // The limit that says most about each set of facts.
        let mut tightest: Vec<Option<Asked<'_>>> = self.asking.iter().map(|_| None).collect();
        for asked in self.decided.asked().filter(|asked| !asked.is_shadow()) {
            for set in asked.sets() {
                let Some(known) = tightest.get_mut(set) else {
                    continue;
                };
                if known.is_none_or(|known| rank(&asked) < rank(&known)) {
                    *known = Some(asked);
                }
            }
        }
        let mut statuses: Vec<_> = self.all.iter().map(|_| unlimited()).collect();
        for ((index, _), asked) in self.asking.iter().zip(&tightest) {
            let (Some(status), Some(asked)) = (statuses.get_mut(*index), asked) else {
                continue;
            };
            if asked.denial().is_some() {
                status.code = Code::OverLimit.into();
                status.limit_remaining = 0;
            }
            if let Some(state) = LimitState::of_asked(asked) {
                set(status, &state);
            }
        }
        statuses
    }
}

/// A limit that a descriptor brings denies the request.
pub(super) fn denied_by_own(
    service: &Service,
    all: &[Descriptor<'_>],
    index: usize,
    denied: Denied,
) -> RateLimitResponse {
    let mut statuses: Vec<_> = all.iter().map(|_| unlimited()).collect();
    let own = all.get(index).and_then(|descriptor| descriptor.own);
    let quota = own.map_or(Quota::per_second(0), |own| own.quota());
    let state = LimitState::of_rate(OWN, quota).denied(&denied, 0);
    if let Some(status) = statuses.get_mut(index) {
        set(status, &state);
        status.code = Code::OverLimit.into();
    }
    let refusal = Refusal::of_denied(&denied).rule(OWN);
    refuse(service, statuses, &refusal.limits(&[state]))
}

fn refuse(
    service: &Service,
    statuses: Vec<DescriptorStatus>,
    refusal: &Refusal<'_>,
) -> RateLimitResponse {
    let (mut head, body) = service.answers.refuse(refusal).into_parts();
    // Envoy writes these for the body itself.
    head.headers.remove(CONTENT_TYPE);
    head.headers.remove(CONTENT_LENGTH);
    RateLimitResponse {
        overall_code: Code::OverLimit.into(),
        statuses,
        response_headers_to_add: header_fields(&head.headers),
        raw_body: body,
    }
}

fn header_fields(headers: &HeaderMap) -> Vec<HeaderField> {
    let fields = headers.iter().filter_map(|(name, value)| {
        let value = value
            .to_str()
            .ok()
            .filter(|value| value.len() <= MOST_BYTES)?;
        Some(HeaderField {
            key: name.as_str().to_owned(),
            value: value.to_owned(),
        })
    });
    fields.collect()
}

/// The longest value of a header that Envoy takes. With a longer one, it would refuse the answer.
const MOST_BYTES: usize = 16 * 1024;

/// What is told of a descriptor that no limit applies to.
fn unlimited() -> DescriptorStatus {
    DescriptorStatus {
        code: Code::Ok.into(),
        current_limit: None,
        limit_remaining: u32::MAX,
        duration_until_reset: None,
    }
}

/// Returns which of several limits is told: one that denies with the longest wait, or else the one
/// with the fewest permits left. The least rank is told.
fn rank(asked: &Asked<'_>) -> (bool, u64, u64) {
    match asked.denial() {
        Some(denied) => {
            let wait = denied
                .retry_after()
                .map_or(u128::MAX, |wait| wait.as_nanos());
            let wait = u64::try_from(wait).unwrap_or(u64::MAX);
            (false, u64::MAX - wait, 0)
        }
        None => (true, 0, asked.remaining()),
    }
}

/// Tells of a limit.
fn set(status: &mut DescriptorStatus, state: &LimitState<'_>) {
    let (requests_per_unit, unit) = match state.rate() {
        Some(quota) => per_unit(quota),
        None => (state.quota(), 0),
    };
    status.current_limit = Some(RateLimit {
        requests_per_unit: u32::try_from(requests_per_unit).unwrap_or(u32::MAX),
        unit,
        name: state.name().to_owned(),
    });
    status.limit_remaining = u32::try_from(state.remaining()).unwrap_or(u32::MAX);
    status.duration_until_reset = state.reset().map(ceil);
}

/// Returns a rate as Envoy says it: in the shortest unit in which it is a whole number, or else
/// rounded down in the shortest unit in which it is at least 1.
fn per_unit(quota: Quota) -> (u64, i32) {
    let period = quota.period().as_nanos().max(1);
    let mut rounded = None;
    for (unit, _, seconds) in Unit::ALL {
        let permits = u128::from(quota.permits()) * u128::from(seconds) * 1_000_000_000;
        let whole = u64::try_from(permits / period).unwrap_or(u64::MAX);
        if whole > 0 && permits % period == 0 {
            return (whole, unit as i32);
        }
        if whole > 0 {
            rounded.get_or_insert((whole, unit as i32));
        }
    }
    rounded.unwrap_or((0, Unit::Year as i32))
}

/// Returns whole seconds. Envoy rounds down what it is told, which would be too early.
fn ceil(time: Duration) -> Seconds {
    let seconds = time
        .as_secs()
        .saturating_add(u64::from(time.subsec_nanos() > 0));
    Seconds {
        seconds: i64::try_from(seconds).unwrap_or(i64::MAX).min(MOST_SECONDS),
    }
}

/// The longest duration of Protocol Buffers: 10 000 years.
const MOST_SECONDS: i64 = 315_576_000_000;
