//! What one limit answered.

use tollgate::outcome::GrantInfo;
use tollgate::{Denied, Quota};

use super::asks::Ask;
use super::key::RequestKey;
use crate::limit::FallbackKind;
use crate::rule::{Allowed, CompiledRule, What};

/// One limit that a request asked, and its answer: see [`Decision::asked`](crate::Decision::asked).
///
/// ```
/// use tollgate_policy::Policy;
///
/// let text = "[[rule]]\nname = 'search'\nkey = 'user'\nlimit = ['10/s', '100/h']";
/// let policy = Policy::from_toml(text)?;
/// let decision = policy.decide(&[("user", "ann")]);
/// let asked = decision.asked().map(|it| (it.rule(), it.limit(), it.remaining()));
/// let asked: Vec<_> = asked.collect();
/// assert_eq!(asked, [("search", "10/s", 9), ("search", "100/h", 99)]);
/// # Ok::<(), tollgate_policy::Problems>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Asked<'d> {
    rule: &'d str,
    limit: &'d str,
    plan: Option<&'d str>,
    key: Option<RequestKey<'d>>,
    cost: u64,
    shadow: bool,
    allowed: Option<Allowed>,
    answer: Answer,
    fallback: Option<FallbackKind>,
    is_remaining_known: bool,
    set: u32,
    others: &'d [u32],
}

#[derive(Debug, Clone, Copy)]
enum Answer {
    Granted(GrantInfo),
    /// Nothing was taken. `denied` is this limit's own denial, if it denies.
    Denied {
        denied: Option<Denied>,
        remaining: u64,
    },
}

impl<'d> Asked<'d> {
    pub(crate) fn new<C>(
        rule: &'d CompiledRule<C>,
        ask: &Ask,
        keys: &'d [u8],
        others: &'d [u32],
    ) -> Option<Self> {
        let (limit, allowed) = match ask.what {
            What::Limit(limit) => (
                rule.texts.get(limit)?.get(ask.plan)?,
                rule.allowed(limit, ask.plan, ask.hash),
            ),
            What::Attempt => {
                let attempts = rule.ban.as_ref()?.attempts.as_ref()?;
                (&attempts.text, Some(Allowed::Rate(attempts.quota)))
            }
            What::Ban | What::Clock => return None,
        };
        let plans = rule
            .reads
            .plans
            .as_ref()
            .filter(|_| ask.what != What::Attempt);
        Some(Self {
            rule: &rule.name,
            limit,
            plan: plans
                .and_then(|plans| plans.names.get(ask.plan))
                .map(|name| &**name),
            key: RequestKey::of(rule, ask, keys),
            cost: ask.cost,
            shadow: ask.trial,
            allowed,
            answer: Answer::Denied {
                denied: None,
                remaining: 0,
            },
            fallback: None,
            is_remaining_known: true,
            set: ask.set,
            others,
        })
    }

    /// A rule in the shadow that would deny the request because a fact of its key is missing or
    /// ambiguous, because it has no plan, or because its limit is 0.
    pub(crate) fn without_key(rule: &'d str) -> Self {
        Self {
            rule,
            limit: "",
            plan: None,
            key: None,
            cost: 0,
            shadow: true,
            allowed: None,
            answer: Answer::Denied {
                denied: Some(Denied::busy(0)),
                remaining: 0,
            },
            fallback: None,
            is_remaining_known: true,
            set: 0,
            others: &[],
        }
    }

    pub(crate) fn by(self, fallback: Option<FallbackKind>, is_remaining_known: bool) -> Self {
        Self {
            fallback,
            is_remaining_known,
            ..self
        }
    }

    pub(crate) fn granted(self, info: GrantInfo) -> Self {
        Self {
            answer: Answer::Granted(info),
            ..self
        }
    }

    pub(crate) fn denied(self, denied: Option<Denied>, remaining: u64) -> Self {
        Self {
            answer: Answer::Denied { denied, remaining },
            ..self
        }
    }

    /// The limit is on trial, and denied the request.
    pub(crate) fn would_deny(self, denied: Option<Denied>) -> Self {
        self.denied(Some(denied.unwrap_or(Denied::busy(self.cost))), 0)
    }

    /// Returns the name of the rule.
    #[must_use]
    pub const fn rule(&self) -> &'d str {
        self.rule
    }

    /// Returns the text of the limit, or of the plan's limit. An override of a single key does not
    /// show: see [`quota`](Self::quota).
    #[must_use]
    pub const fn limit(&self) -> &'d str {
        self.limit
    }

    /// Returns the quota: that of the plan, or the key's own. `None` for a concurrency, and for
    /// limits that the program registered.
    ///
    /// ```
    /// use tollgate::Quota;
    /// use tollgate_policy::Policy;
    ///
    /// let text = "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = '10/s'\n\
    ///             override = [{ key = 'ann', limit = '20/s' }]";
    /// let policy = Policy::from_toml(text)?;
    /// let decision = policy.decide(&[("user", "ann")]);
    /// let asked = decision.tightest().expect("a limit applies");
    /// assert_eq!((asked.limit(), asked.quota()), ("10/s", Some(Quota::per_second(20))));
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    #[must_use]
    pub const fn quota(&self) -> Option<Quota> {
        match self.allowed {
            Some(Allowed::Rate(quota)) => Some(quota),
            _ => None,
        }
    }

    /// Returns how many requests may be inside at once, if the limit is a concurrency.
    #[must_use]
    pub const fn concurrency(&self) -> Option<u64> {
        match self.allowed {
            Some(Allowed::Concurrency(limit)) => Some(limit),
            _ => None,
        }
    }

    /// Returns the name of the plan, if the rule has plans.
    #[must_use]
    pub const fn plan(&self) -> Option<&'d str> {
        self.plan
    }

    /// Returns the request's key of the rule. `None` if the rule has no key, or the request lacks a
    /// part of it.
    #[must_use]
    pub const fn key(&self) -> Option<RequestKey<'d>> {
        self.key
    }

    /// Returns how many permits the request asked for.
    #[must_use]
    pub const fn cost(&self) -> u64 {
        self.cost
    }

    /// Returns the sets of facts that ask this limit, by their positions in
    /// [`decide_together`](crate::Policy::decide_together). Sets with the same key share a limit.
    ///
    /// ```
    /// use tollgate_policy::Policy;
    ///
    /// let text = "[[rule]]\nname = 'user'\nwhen = { user = true }\nkey = 'user'\nlimit = '5/h'\n\
    ///             also = ['all']\n[[limit]]\nname = 'all'\nlimit = '9/h'";
    /// let policy = Policy::from_toml(text)?;
    /// let decision = policy.decide_together(&[[("user", "ann")], [("user", "bob")]]);
    /// let asked = decision.asked().map(|it| (it.rule(), it.sets().collect::<Vec<_>>()));
    /// let asked: Vec<_> = asked.collect();
    /// assert_eq!(asked, [("user", vec![0]), ("all", vec![0, 1]), ("user", vec![1])]);
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    pub fn sets(&self) -> impl Iterator<Item = usize> + use<'d> {
        let sets = [self.set].into_iter().chain(self.others.iter().copied());
        sets.filter_map(|set| usize::try_from(set).ok())
    }

    /// Returns whether the rule only reports what it would decide.
    #[must_use]
    pub const fn is_shadow(&self) -> bool {
        self.shadow
    }

    /// Returns which fallback answered in this limit's place, because its store did not.
    #[must_use]
    pub const fn fallback(&self) -> Option<FallbackKind> {
        self.fallback
    }

    /// Returns whether this limit would allow the request. If another one denied it, nothing was
    /// taken from this one.
    #[must_use]
    pub const fn would_allow(&self) -> bool {
        matches!(
            self.answer,
            Answer::Granted(_) | Answer::Denied { denied: None, .. }
        )
    }

    /// Returns this limit's denial, if it denies.
    #[must_use]
    pub const fn denial(&self) -> Option<Denied> {
        match self.answer {
            Answer::Granted(_) => None,
            Answer::Denied { denied, .. } => denied,
        }
    }

    /// Returns what the limit granted, if the request is allowed.
    #[must_use]
    pub const fn grant(&self) -> Option<GrantInfo> {
        match self.answer {
            Answer::Granted(info) => Some(info),
            Answer::Denied { .. } => None,
        }
    }

    /// Returns whether [`remaining`](Self::remaining) is known of the limit. It is not if this
    /// process has granted permits that it leased (`mode = "leased"`).
    #[must_use]
    pub const fn is_remaining_known(&self) -> bool {
        self.is_remaining_known
    }

    /// Returns how many permits the limit has left, or how many this process holds of it if no more
    /// [is known](Self::is_remaining_known).
    #[must_use]
    pub fn remaining(&self) -> u64 {
        match self.answer {
            Answer::Granted(info) => info.remaining(),
            Answer::Denied { remaining, .. } => remaining,
        }
    }
}
