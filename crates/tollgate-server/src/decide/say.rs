//! What is said of a decision.

use std::time::Duration;

use serde::{Serialize, Serializer};
use smallvec::SmallVec;
use tollgate::outcome;
use tollgate_http::{Cause, LimitState, Refusal};
use tollgate_policy::FallbackKind;

use crate::service::{Decided, Service};

/// A decision. Times are rounded up, so nobody comes before its permit is there.
#[derive(Debug, Serialize)]
pub(super) struct Said<'d> {
    allowed: bool,
    /// The rule, or the entry of the list `deny`, that denies the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
    /// The status of HTTP that fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    /// How long the caller must wait before it goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_ms: Option<u64>,
    /// The entry of the list `allow` that exempts the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    exempted_by: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fallback: Option<&'static str>,
    #[serde(serialize_with = "list")]
    limits: SmallVec<[Limit<'d>; 2]>,
    /// The rules in shadow that would deny the request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    would_deny: Vec<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'d str>,
}

/// A limit that was asked.
#[derive(Debug, Serialize)]
struct Limit<'d> {
    rule: &'d str,
    quota: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    window_ms: Option<u64>,
    remaining: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reset_ms: Option<u64>,
    cost: u64,
}

impl<'d> Said<'d> {
    /// There is no room to hold a decision.
    pub(super) const NO_ROOM: Said<'static> = Said {
        allowed: false,
        rule: None,
        cause: Some("too-many-held"),
        status: Some(503),
        retry_after_ms: None,
        wait_ms: None,
        exempted_by: None,
        fallback: None,
        limits: SmallVec::new_const(),
        would_deny: Vec::new(),
        token: None,
    };

    /// Counts a decision and says it. The limits that it asked are walked only once: they are most
    /// of what is said.
    pub(super) fn of(decided: &'d Decided, token: Option<&'d str>, service: &Service) -> Self {
        let refusal = Refusal::of_decision(decided);
        let mut counting = service.counters.begin(decided);
        let (mut limits, mut would_deny) = (SmallVec::new(), Vec::new());
        decided.asked().for_each(|asked| {
            counting.add(&asked);
            limits.extend(LimitState::of_asked(&asked).map(Limit::of));
            let denies = asked.is_shadow() && !asked.would_allow();
            if denies && would_deny.last() != Some(&asked.rule()) {
                would_deny.push(asked.rule());
            }
        });
        counting.end();
        let wait = Some(decided.delay()).filter(|wait| !wait.is_zero());
        Self {
            allowed: decided.is_allowed(),
            rule: decided.denied_by(),
            cause: refusal.as_ref().map(|refusal| name_of(refusal.cause())),
            status: refusal
                .as_ref()
                .map(|it| service.answers.status_of(it).as_u16()),
            retry_after_ms: refusal.and_then(|refusal| refusal.wait()).map(ceil_ms),
            wait_ms: wait.map(ceil_ms),
            exempted_by: decided.exempted_by(),
            fallback: decided.fallback().map(FallbackKind::as_str),
            limits,
            would_deny,
            token,
        }
    }
}

impl<'d> Limit<'d> {
    fn of(state: LimitState<'d>) -> Self {
        Self {
            rule: state.name(),
            quota: state.quota(),
            window_ms: state.window().map(ceil_ms),
            remaining: state.remaining(),
            reset_ms: state.reset().map(ceil_ms),
            cost: state.cost(),
        }
    }
}

fn list<T: Serialize, S: Serializer>(list: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    list.serialize(serializer)
}

const fn name_of(cause: Cause) -> &'static str {
    match cause {
        Cause::Limit => "limit",
        Cause::Overload => "overload",
        Cause::Unavailable => "unavailable",
        Cause::Banned => "banned",
        Cause::Listed => "listed",
        Cause::MissingKey => "missing-key",
        Cause::Ambiguous => "ambiguous",
        Cause::NoPlan => "no-plan",
        Cause::TooLarge => "too-large",
        _ => "misconfigured",
    }
}

fn ceil_ms(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// What became of a held decision.
#[derive(Debug, Default, Serialize)]
pub(super) struct Settled {
    /// How many permits came back.
    returned: u64,
    /// How many were charged in addition.
    charged: u64,
}

impl Settled {
    pub(super) const fn returned(returned: u64) -> Self {
        Self {
            returned,
            charged: 0,
        }
    }
}

impl From<outcome::Settled> for Settled {
    fn from(settled: outcome::Settled) -> Self {
        Self {
            returned: settled.returned,
            charged: settled.charged,
        }
    }
}
