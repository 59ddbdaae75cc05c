//! What the decision of a policy says, for its answer.

use std::ops::Deref;

use http::StatusCode;
use smallvec::SmallVec;
use tollgate_policy::{Asked, Decision, FallbackKind, Policy, PolicyClock, Reason};

use crate::{Cause, LimitState, Refusal};

/// The states of all limits that a policy asked about a request: a slice of [`LimitState`]s.
///
/// ```
/// use http::HeaderMap;
/// use tollgate_http::{Answers, Fields, LimitStates, Refusal};
/// use tollgate_policy::Policy;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let text = "[[rule]]\nname = 'search'\nkey = 'user'\nlimit = ['1/s', '100/h']";
/// let policy = Policy::from_toml(text)?;
/// let answers = Answers::new().fields(Fields::LIST);
///
/// let decision = policy.decide(&[("user", "ann")]);
/// let limits = LimitStates::of(&decision);
/// let mut headers = HeaderMap::new();
/// answers.write(limits.iter().copied(), &mut headers);
/// assert_eq!(headers["ratelimit-policy"], r#""search";q=1;w=1, "search-2";q=100;w=3600"#);
///
/// let denied = policy.decide(&[("user", "ann")]);
/// if let Some(refusal) = Refusal::of_decision(&denied) {
///     let limits = LimitStates::of(&denied);
///     let answer = answers.refuse(&refusal.limits(&limits));
///     assert_eq!(answer.status(), 429);
///     assert_eq!(answer.headers()["retry-after"], "1");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct LimitStates<'d>(SmallVec<[LimitState<'d>; 4]>);

impl<'d> LimitStates<'d> {
    /// Reads the states of the limits of a decision, in the order of the rules. Limits without a
    /// state by [`LimitState::of_asked`] are left out.
    pub fn of<R, C>(decision: &'d Decision<R, C>) -> Self
    where
        R: Deref<Target = Policy<C>>,
        C: PolicyClock,
    {
        let mut states = SmallVec::new();
        // A loop inside of the iterator takes half the time of one outside.
        let limits = decision.asked();
        limits.for_each(|asked| states.extend(LimitState::of_asked(&asked)));
        Self(states)
    }
}

impl<'d> Deref for LimitStates<'d> {
    type Target = [LimitState<'d>];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<'a> LimitState<'a> {
    /// Reads the state of a limit of a policy, under the name of its rule. `None` for a shadow
    /// rule, for a registered limit that has neither a rate nor a concurrency, and if the remaining
    /// permits are unknown: a fallback that counts nothing decided, or the process had leased what
    /// it granted.
    #[must_use]
    pub fn of_asked(asked: &Asked<'a>) -> Option<Self> {
        let is_counted = matches!(asked.fallback(), None | Some(FallbackKind::Local));
        let is_known = is_counted && asked.is_remaining_known();
        if asked.is_shadow() || !is_known {
            return None;
        }
        let name = asked.rule();
        let state = match (asked.quota(), asked.concurrency()) {
            (Some(quota), _) => Self::of_rate(name, quota),
            (None, Some(limit)) => Self::of_concurrency(name, limit),
            (None, None) => return None,
        };
        Some(match (asked.grant(), asked.denial()) {
            (Some(info), _) => state.granted(info),
            (None, Some(denied)) => state.denied(&denied, asked.remaining()),
            (None, None) => state.untouched(asked.cost(), asked.remaining()),
        })
    }
}

impl<'d> Refusal<'d> {
    /// The refusal of a request that a policy denies, with the rule's name, its status and the
    /// wait. `None` if the policy allows it.
    ///
    /// ```
    /// use tollgate_http::{Answers, Refusal};
    /// use tollgate_policy::Policy;
    ///
    /// let text = "[[rule]]\nname = 'report'\nkey = 'user'\nlimit = '1/min'\nstatus = 503";
    /// let policy = Policy::from_toml(text)?;
    /// let decision = policy.decide(&[("tenant", "acme")]);
    /// let refusal = Refusal::of_decision(&decision).expect("it has no user");
    /// assert_eq!(refusal.rule_name(), Some("report"));
    /// assert_eq!(Answers::new().refuse(&refusal).status(), 503);
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    #[must_use]
    pub fn of_decision<R, C>(decision: &'d Decision<R, C>) -> Option<Self>
    where
        R: Deref<Target = Policy<C>>,
        C: PolicyClock,
    {
        let refusal = Self::of_reason(&decision.reason()?);
        let status = decision.status();
        Some(match status.map(StatusCode::from_u16) {
            Some(Ok(status)) => refusal.status(status),
            _ => refusal,
        })
    }
}

impl<'a> Refusal<'a> {
    /// The refusal of a request that a policy denies, with the rule's name and the wait.
    pub fn of_reason(reason: &Reason<'a>) -> Self {
        match *reason {
            Reason::Limit { rule, denied } => Self::of_denied(&denied).rule(rule),
            Reason::Unavailable { rule, retry_after } => {
                let refusal = Self::new(Cause::Unavailable).rule(rule);
                match retry_after {
                    Some(wait) => refusal.retry_after(wait),
                    None => refusal,
                }
            }
            Reason::Listed { entry } => Self::new(Cause::Listed).rule(entry),
            Reason::MissingKey { rule } => Self::new(Cause::MissingKey).rule(rule),
            Reason::Ambiguous { rule } => Self::new(Cause::Ambiguous).rule(rule),
            Reason::NoPlan { rule } => Self::new(Cause::NoPlan).rule(rule),
            Reason::Asynchronous { rule } => Self::new(Cause::Misconfigured).rule(rule),
            _ => Self::new(Cause::Misconfigured),
        }
    }
}
