//! What a policy decided about a request.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use smallvec::SmallVec;
use tollgate::clock::{Clock, SystemClock};
use tollgate::compose::{All, AllGranted, Held, Members, Within};
use tollgate::outcome::{GrantInfo, Settled};
use tollgate::{ConfigError, Denied, Tick};

use crate::asked::Asked;
use crate::asks::{Ask, Asks};
use crate::fact::Facts;
use crate::file::Count;
use crate::policy::Policy;
use crate::visits::{Available, Correct, GiveBack};

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It succeeded. Rules that count failures give its permits back.
    Success,
    /// It failed. Rules that count successes give its permits back.
    Failure,
}

/// Why a request is denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason<'d> {
    /// A limit of this rule denies it.
    Limit {
        /// The name of the rule.
        rule: &'d str,
        /// The limit's answer.
        denied: Denied,
    },
    /// This entry of the list `deny` denies it.
    Listed {
        /// The name of the entry.
        entry: &'d str,
    },
    /// A fact of this rule's key is missing.
    MissingKey {
        /// The name of the rule.
        rule: &'d str,
    },
    /// The request has none of this rule's plans.
    NoPlan {
        /// The name of the rule.
        rule: &'d str,
    },
    /// The limits that apply can't be combined: there are more than 64, or registered ones have
    /// other clocks.
    Invalid(ConfigError),
}

/// What decided without a limit.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Why {
    /// An entry of `deny`, by its position.
    Entry(usize),
    /// An entry of `allow`.
    Allowed(usize),
    /// A rule whose key is missing.
    Missing(usize),
    /// A rule that has no plan for the request.
    NoPlan(usize),
}

pub(crate) type Composed<R, C> = All<Asks<R, C>, C>;

#[expect(
    clippy::large_enum_variant,
    reason = "a box would allocate for each decision"
)]
pub(crate) enum State<R, C>
where
    R: Deref<Target = Policy<C>>,
    C: Clock + fmt::Debug + Send + Sync,
{
    /// No limit applies.
    Free(R, Option<Why>),
    /// Denied without asking a limit.
    Refused(R, Why),
    /// The limits can't be composed.
    Invalid(ConfigError),
    /// A limit denies it.
    Denied(Asks<R, C>, usize, Denied),
    /// The only limit grants it. It is a rate, so a decision that is dropped has nothing to leave.
    One(Asks<R, C>, Held),
    /// All limits grant it.
    Granted(AllGranted<Within<Composed<R, C>>, Asks<R, C>, C>),
}

/// What a policy decided about a request, with the permits that it took.
///
/// If the request is allowed, call [`finish`](Self::finish) when it is over: this settles costs,
/// and gives back what its outcome makes free. [`undo`](Self::undo) gives all permits back. A
/// decision that is dropped keeps its permits, and leaves its concurrency limits.
///
/// ```
/// use tollgate_policy::{Outcome, Policy};
///
/// let policy = Policy::from_toml(
///     r#"
///     [[rule]]
///     name  = "login"
///     key   = "client-ip"
///     limit = "5/h"
///     count = "failures"
///     "#,
/// )?;
/// let request = [("client-ip", "10.0.0.7")];
///
/// let decision = policy.decide(&request);
/// assert!(decision.is_allowed());
/// assert_eq!(decision.remaining(), Some(4));
/// decision.finish(Outcome::Success, &()); // the password was right
/// assert_eq!(policy.decide(&request).remaining(), Some(4));
/// # Ok::<(), tollgate_policy::Problems>(())
/// ```
#[must_use = "dropping a decision leaves its concurrency limits"]
pub struct Decision<R, C = SystemClock>
where
    R: Deref<Target = Policy<C>>,
    C: Clock + fmt::Debug + Send + Sync,
{
    pub(crate) state: State<R, C>,
}

impl<R, C> Decision<R, C>
where
    R: Deref<Target = Policy<C>>,
    C: Clock + fmt::Debug + Send + Sync,
{
    /// Returns whether the request is allowed.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        matches!(
            self.state,
            State::Free(..) | State::One(..) | State::Granted(_)
        )
    }

    /// Returns why the request is denied, or `None` if it is allowed.
    #[must_use]
    pub fn reason(&self) -> Option<Reason<'_>> {
        Some(match &self.state {
            State::Free(..) | State::One(..) | State::Granted(_) => return None,
            State::Refused(policy, Why::Missing(rule)) => Reason::MissingKey {
                rule: policy.rule_name(*rule),
            },
            State::Refused(policy, Why::NoPlan(rule)) => Reason::NoPlan {
                rule: policy.rule_name(*rule),
            },
            State::Refused(policy, Why::Entry(entry) | Why::Allowed(entry)) => Reason::Listed {
                entry: policy.deny.name(*entry),
            },
            State::Invalid(error) => Reason::Invalid(*error),
            State::Denied(asks, member, denied) => {
                let rule = asks.list.get(*member).map_or(usize::MAX, |ask| ask.rule);
                Reason::Limit {
                    rule: asks.policy.rule_name(rule),
                    denied: *denied,
                }
            }
        })
    }

    /// Returns the name of the rule, or of the entry of the list `deny`, that denies the request.
    #[must_use]
    pub fn denied_by(&self) -> Option<&str> {
        match self.reason()? {
            Reason::Limit { rule, .. }
            | Reason::MissingKey { rule }
            | Reason::NoPlan { rule }
            | Reason::Listed { entry: rule } => Some(rule),
            Reason::Invalid(_) => None,
        }
    }

    /// Returns the name of the entry of the list `allow` that exempts the request from all rules.
    #[must_use]
    pub fn exempted_by(&self) -> Option<&str> {
        match &self.state {
            State::Free(policy, Some(Why::Allowed(entry))) => Some(policy.allow.name(*entry)),
            _ => None,
        }
    }

    /// Returns how long until all limits would grant the request, if it is denied and no other
    /// caller comes. `None` if no wait helps, or if it is not known.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match &self.state {
            State::Denied(_, _, denied) => denied.retry_after(),
            _ => None,
        }
    }

    /// Returns how many permits the tightest limit has left. `None` if no limit applies.
    #[must_use]
    pub fn remaining(&self) -> Option<u64> {
        self.tightest().map(|asked| asked.remaining())
    }

    /// Returns how long the caller must wait before it goes on: only a `leaky-queue` delays.
    #[must_use]
    pub fn delay(&self) -> Duration {
        let limits = self.asks().map_or(0, |asks| asks.list.len());
        let delays = (0..limits).filter_map(|index| Some(self.info(index)?.delay()));
        delays.max().unwrap_or(Duration::ZERO)
    }

    /// Returns the limit with the fewest permits left, among those that can deny.
    #[must_use]
    pub fn tightest(&self) -> Option<Asked<'_>> {
        let asked = self.asked().filter(|asked| !asked.is_shadow());
        asked.min_by_key(Asked::remaining)
    }

    /// Returns all limits that were asked, in the order of the rules, with their answers.
    pub fn asked(&self) -> impl Iterator<Item = Asked<'_>> {
        let asks = self.asks();
        let list = asks.into_iter().flat_map(move |asks| {
            let limits = asks.list.iter().enumerate();
            limits.filter_map(move |(index, ask)| self.asked_at(asks, index, ask))
        });
        let missing = asks.into_iter().flat_map(|asks| {
            let rules = asks.would_deny.iter();
            rules.map(|rule| Asked::without_key(asks.policy.rule_name(*rule)))
        });
        list.chain(missing)
    }

    fn asked_at<'d>(
        &'d self,
        asks: &'d Asks<R, C>,
        index: usize,
        ask: &'d Ask,
    ) -> Option<Asked<'d>> {
        let rule = asks.policy.rules.get(ask.rule)?;
        let asked = Asked::new(rule, ask)?;
        if let State::Denied(_, member, denied) = &self.state {
            let now = asks.now();
            let own = asks.look(index, now);
            let own = own.or((index == *member).then_some(*denied));
            return Some(asked.denied(own, asks.available(index, now)));
        }
        let info = self.info(index)?;
        let is_exempt = ask.trial && info.remaining() == u64::MAX;
        Some(match (ask.takes, is_exempt) {
            (false, _) => {
                let now = asks.now();
                asked.denied(asks.look(index, now), asks.available(index, now))
            }
            (true, true) => asked.would_deny(asks.look(index, asks.now())),
            (true, false) => asked.granted(info),
        })
    }

    fn asks(&self) -> Option<&Asks<R, C>> {
        match &self.state {
            State::Free(..) | State::Refused(..) | State::Invalid(_) => None,
            State::Denied(asks, ..) | State::One(asks, _) => Some(asks),
            State::Granted(granted) => Some(granted.composition().inner()),
        }
    }

    /// Returns what a limit granted.
    fn info(&self, index: usize) -> Option<GrantInfo> {
        match &self.state {
            State::One(_, held) => (index == 0).then(|| held.granted.info()),
            State::Granted(granted) => granted.member(index),
            _ => None,
        }
    }

    /// Ends an allowed request: settles its costs by the facts of the answer, gives back the
    /// permits of rules that do not count this outcome, and leaves concurrency limits. A denied
    /// request took nothing, so nothing happens. Returns what came back and what was charged.
    pub fn finish(self, outcome: Outcome, answer: &impl Facts) -> Settled {
        self.end(Some(outcome), answer)
    }

    /// Settles the costs of an allowed request by the facts of the answer, whatever its outcome,
    /// and leaves concurrency limits. Returns what came back and what was charged.
    pub fn settle(self, answer: &impl Facts) -> Settled {
        self.end(None, answer)
    }

    fn end(self, outcome: Option<Outcome>, answer: &impl Facts) -> Settled {
        let costs = |asks: &Asks<R, C>| -> SmallVec<[u64; 8]> {
            let asked = asks.list.iter();
            asked.map(|ask| asks.actual(ask, outcome, answer)).collect()
        };
        match self.state {
            State::One(asks, held) => {
                let actual = costs(&asks).first().copied();
                let actual = actual.unwrap_or(held.granted.n());
                let now = asks.now();
                asks.visit(0, Correct { held, actual, now })
                    .unwrap_or_default()
            }
            State::Granted(mut granted) => {
                let costs = costs(granted.composition().inner());
                // There is a cost for each limit.
                granted.settle(costs).unwrap_or_default()
            }
            _ => Settled::default(),
        }
    }

    /// Gives all permits of an allowed request back, as far as they can be. Returns how many came
    /// back, over all limits.
    pub fn undo(self) -> u64 {
        match self.state {
            State::One(asks, held) => {
                let now = asks.now();
                asks.visit(0, GiveBack { held, now }).unwrap_or(0)
            }
            State::Granted(granted) => granted.undo(),
            _ => 0,
        }
    }
}

impl<R, C> Asks<R, C>
where
    R: Deref<Target = Policy<C>>,
    C: Clock + fmt::Debug + Send + Sync,
{
    /// Returns what a request cost in the end.
    fn actual(&self, ask: &Ask, outcome: Option<Outcome>, answer: &impl Facts) -> u64 {
        let Some(rule) = self.policy.rules.get(ask.rule) else {
            return ask.cost;
        };
        match (rule.count, outcome) {
            (Count::Failures, Some(Outcome::Success))
            | (Count::Successes, Some(Outcome::Failure)) => return 0,
            _ => {}
        }
        let settle = rule.cost.settle.as_ref();
        let actual = settle.and_then(|name| answer.fact(name)?.as_number());
        actual.unwrap_or(ask.cost)
    }

    pub(crate) fn now(&self) -> Tick {
        self.policy.clock.now()
    }

    fn available(&self, index: usize, now: Tick) -> u64 {
        let available = |ask: &Ask| {
            let limit = self.limit(ask)?;
            limit.visit(self.key(ask), ask.plan, false, Available(now))
        };
        self.list.get(index).and_then(available).unwrap_or(0)
    }
}

impl<R, C> fmt::Debug for Decision<R, C>
where
    R: Deref<Target = Policy<C>>,
    C: Clock + fmt::Debug + Send + Sync,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut decision = f.debug_struct("Decision");
        decision.field("is_allowed", &self.is_allowed());
        if let Some(reason) = self.reason() {
            decision.field("reason", &reason);
        }
        decision.field("asked", &self.asked().collect::<Vec<_>>());
        decision.finish()
    }
}
