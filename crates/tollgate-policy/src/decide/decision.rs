//! What a policy decided about a request.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use tollgate::clock::SystemClock;
use tollgate::compose::Member;
use tollgate::error::ComposeError;
use tollgate::outcome::GrantInfo;
use tollgate::{Denied, Tick};

use super::asked::Asked;
use super::asks::{Ask, Asks, others};
use super::key::RequestKey;
use super::remotes::{DeniedElsewhere, Remotes};
use super::state::State;
use super::visits::With;
use crate::choose::{NoLimit, Why};
use crate::limit::{FallbackKind, PolicyClock};
use crate::policy::Policy;

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
    /// The store of this rule does not answer, and its fallback denies: it is `closed`, or `open`
    /// and has granted its permits. This says nothing about what the client sent.
    Unavailable {
        /// The name of the rule.
        rule: &'d str,
        /// When the store will have been asked again.
        retry_after: Option<Duration>,
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
    /// A part of this rule's key has several different values. Or the rule's key, conditions or
    /// cost depend on a fact that has more values than are read.
    Ambiguous {
        /// The name of the rule.
        rule: &'d str,
    },
    /// The request has none of this rule's plans.
    NoPlan {
        /// The name of the rule.
        rule: &'d str,
    },
    /// The store of this rule decides asynchronously. Call
    /// [`decide_async`](Policy::decide_async).
    Asynchronous {
        /// The name of the rule.
        rule: &'d str,
    },
    /// The limits that apply can't be combined: registered ones have different clocks.
    Invalid(ComposeError),
}

/// What a policy decided about a request, with the permits that it took.
///
/// If the request is allowed, call [`finish`](Self::finish) when it is over: this settles costs,
/// and returns permits that this outcome does not count. [`undo`](Self::undo) gives all permits
/// back. A decision that is dropped keeps its permits, and frees its concurrency slots. A decision
/// of [`decide_async`](Policy::decide_async) ends with [`finish_async`](Self::finish_async),
/// [`settle_async`](Self::settle_async) or [`undo_async`](Self::undo_async).
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
#[must_use = "dropping a decision frees its concurrency slots"]
pub struct Decision<R, C = SystemClock>
where
    R: Deref<Target = Policy<C>>,
    C: PolicyClock,
{
    pub(crate) state: State<R, C>,
    /// What stores elsewhere answered, if any were asked.
    pub(crate) remotes: Option<Box<Remotes>>,
}

impl<R: Deref<Target = Policy<C>>, C: PolicyClock> From<State<R, C>> for Decision<R, C> {
    #[inline]
    fn from(state: State<R, C>) -> Self {
        Self {
            state,
            remotes: None,
        }
    }
}

impl<R: Deref<Target = Policy<C>>, C: PolicyClock> Decision<R, C> {
    /// Returns whether the request is allowed.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.state.is_allowed() && self.denied_elsewhere().is_none()
    }

    /// Returns why the request is denied, or `None` if it is allowed.
    #[must_use]
    pub fn reason(&self) -> Option<Reason<'_>> {
        if let Some(by) = self.denied_elsewhere() {
            let (denied, rule) = (by.denied, self.state.policy()?.rule_name(by.ask.rule));
            return Some(match by.is_unavailable() {
                true => Reason::Unavailable {
                    rule,
                    retry_after: denied.retry_after(),
                },
                false => Reason::Limit { rule, denied },
            });
        }
        Some(match &self.state {
            State::Free(..) | State::Asked(_, Ok(_)) | State::Granted(_) | State::Many(_) => {
                return None;
            }
            State::Refused(policy, Why::Rule(rule, why), _) => {
                let rule = policy.rule_name(*rule);
                match why {
                    NoLimit::Missing => Reason::MissingKey { rule },
                    NoLimit::Ambiguous | NoLimit::Unread => Reason::Ambiguous { rule },
                    NoLimit::NoPlan => Reason::NoPlan { rule },
                    NoLimit::Zero(asked) => Reason::Limit {
                        rule,
                        denied: Denied::never(asked.cost, 0),
                    },
                    NoLimit::Remote => Reason::Asynchronous { rule },
                }
            }
            State::Refused(policy, Why::Entry(entry) | Why::Allowed(entry), _) => Reason::Listed {
                entry: policy.chooser.deny.name(*entry),
            },
            State::Invalid(error) => Reason::Invalid(*error),
            State::Asked(asks, Err((member, denied))) => {
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
            | Reason::Unavailable { rule, .. }
            | Reason::MissingKey { rule }
            | Reason::Ambiguous { rule }
            | Reason::NoPlan { rule }
            | Reason::Asynchronous { rule }
            | Reason::Listed { entry: rule } => Some(rule),
            Reason::Invalid(_) => None,
        }
    }

    /// Returns the key to which the limit belongs that denies the request. `None` if the request is
    /// allowed, or if no limit of a key denies it.
    ///
    /// ```
    /// use tollgate_policy::Policy;
    ///
    /// let text = "[[rule]]\nname = 'login'\nkey = ['client-ip', 'user']\nlimit = '1/h'";
    /// let policy = Policy::from_toml(text)?;
    /// let request = [("client-ip", "10.0.0.7"), ("user", "ann")];
    /// assert!(policy.decide(&request).denied_key().is_none());
    /// let denied = policy.decide(&request);
    /// assert_eq!(denied.denied_key().unwrap().values(), ["10.0.0.7", "ann"]);
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    #[must_use]
    pub fn denied_key(&self) -> Option<RequestKey<'_>> {
        if let Some(by) = self.denied_elsewhere() {
            let rule = self.state.policy()?.rules.get(by.ask.rule)?;
            let keys = self.remotes.as_ref()?.keys();
            return RequestKey::of(rule, &by.ask, keys);
        }
        match &self.state {
            State::Asked(asks, Err((member, _))) => {
                let ask = asks.list.get(*member)?;
                RequestKey::of(asks.policy.rules.get(ask.rule)?, ask, &asks.keys)
            }
            _ => None,
        }
    }

    /// Returns the number by which the program's protocol answers this denial: the `status` of the
    /// rule, or of the entry of the list `deny`, that denies the request. `None` if the request is
    /// allowed, if the file does not say one, or if the rule's store is not available.
    ///
    /// ```
    /// use tollgate_policy::Policy;
    ///
    /// let policy = Policy::from_toml(
    ///     r#"
    ///     [[rule]]
    ///     name   = "report"
    ///     limit  = "1/min"
    ///     status = 503
    ///     "#,
    /// )?;
    /// assert_eq!(policy.decide(&()).status(), None);
    /// assert_eq!(policy.decide(&()).status(), Some(503));
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        let policy = self.state.policy()?;
        let rule = match (self.denied_elsewhere(), &self.state) {
            // That is another answer than the rule's to those that send too much.
            (Some(by), _) if by.is_unavailable() => return None,
            (Some(by), _) => by.ask.rule,
            (None, State::Refused(_, Why::Entry(entry), _)) => {
                return policy.chooser.deny.status(*entry);
            }
            (None, State::Refused(_, Why::Rule(rule, _), _)) => *rule,
            (None, State::Asked(asks, Err((member, _)))) => asks.list.get(*member)?.rule,
            _ => return None,
        };
        policy.rule_status(rule)
    }

    /// Returns which set of facts is the reason why the request is denied, by its position in
    /// [`decide_together`](Policy::decide_together). `None` if the request is allowed, or if its
    /// limits can't be combined.
    ///
    /// ```
    /// use tollgate_policy::Policy;
    ///
    /// let policy = Policy::from_toml("[[deny]]\nname = 'eve'\nwhen = { user = 'eve' }")?;
    /// let denied = policy.decide_together(&[[("user", "ann")], [("user", "eve")]]);
    /// assert_eq!(denied.denied_set(), Some(1));
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    #[must_use]
    pub fn denied_set(&self) -> Option<usize> {
        let set = match (self.denied_elsewhere(), &self.state) {
            (Some(by), _) => by.ask.set,
            (None, State::Refused(.., set)) => *set,
            (None, State::Asked(asks, Err((member, _)))) => asks.list.get(*member)?.set,
            _ => return None,
        };
        usize::try_from(set).ok()
    }

    /// Returns the name of the entry of the list `allow` that exempts the request from all rules.
    #[must_use]
    pub fn exempted_by(&self) -> Option<&str> {
        match &self.state {
            State::Free(policy, Some(Why::Allowed(entry))) => {
                Some(policy.chooser.allow.name(*entry))
            }
            _ => None,
        }
    }

    /// Returns how long until all limits would grant the request, if it is denied and no other
    /// caller comes. `None` if no wait helps, or if it is not known.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match &self.state {
            State::Asked(_, Err((_, denied))) => denied.retry_after(),
            _ => self.denied_elsewhere()?.denied.retry_after(),
        }
    }

    /// Returns the fallback that decided because a store did not answer: that of the limit that
    /// denies the request, or the first one that grants it. `None` if each limit decided itself.
    /// Shadow rules decide nothing.
    ///
    /// ```
    /// # #[cfg(feature = "redis")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use tollgate_redis::Keys;
    /// use tollgate_policy::{FallbackKind, Policy, Reason};
    /// use tollgate_policy::redis::RedisStore;
    ///
    /// let text = "[[rule]]\nname = 'api'\nkey = 'user'\nlimit = '9/h'\nstore = 'redis'\n\
    ///             fallback = { open = { at_most = 1 } }";
    /// // Without a server, the fallback decides.
    /// let store = RedisStore::without_server(Keys::new("api")?);
    /// let policy = Policy::builder().store("redis", store).build_toml(text)?;
    /// let ann = [("user", "ann")];
    /// let decision = policy.decide_async(&ann).await;
    /// assert!(decision.is_allowed());
    /// assert_eq!(decision.fallback(), Some(FallbackKind::Open));
    /// let denied = policy.decide_async(&ann).await;
    /// assert!(matches!(denied.reason(), Some(Reason::Unavailable { rule: "api", .. })));
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "redis"))]
    /// # fn main() {}
    /// ```
    #[must_use]
    pub fn fallback(&self) -> Option<FallbackKind> {
        match self.denied_elsewhere() {
            Some(by) => by.fallback,
            None => {
                let mut asked = self.asked_elsewhere().filter(|asked| !asked.is_shadow());
                asked.find_map(|asked| asked.fallback())
            }
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
        if let State::Asked(_, Ok(held)) = &self.state {
            return held.granted.delay();
        }
        let limits = self.state.asks().map_or(0, |asks| asks.list.len());
        let delays = (0..limits).filter_map(|index| Some(self.info(index)?.delay()));
        let elsewhere = self.asked_elsewhere().filter_map(|asked| asked.grant());
        let delays = delays.chain(elsewhere.map(|info| info.delay()));
        delays.max().unwrap_or(Duration::ZERO)
    }

    /// Returns the limit with the fewest permits left, among those that can deny.
    #[must_use]
    pub fn tightest(&self) -> Option<Asked<'_>> {
        let asked = self.asked().filter(|asked| !asked.is_shadow());
        asked.min_by_key(Asked::remaining)
    }

    /// Returns all limits that were asked, in the order of the rules, with their answers. Limits of
    /// stores that decide asynchronously come last.
    pub fn asked(&self) -> impl Iterator<Item = Asked<'_>> {
        let asks = self.state.asks();
        let list = asks.into_iter().flat_map(move |asks| {
            let limits = asks.list.iter().enumerate();
            limits.filter_map(move |(index, ask)| self.asked_at(asks, index, ask))
        });
        let missing = asks.into_iter().flat_map(|asks| {
            let rules = asks.would_deny.iter();
            rules.map(|rule| Asked::without_key(asks.policy.rule_name(*rule)))
        });
        list.chain(missing).chain(self.asked_elsewhere())
    }

    fn asked_elsewhere(&self) -> impl Iterator<Item = Asked<'_>> {
        let members = self.remotes.iter().flat_map(|remotes| &remotes.members);
        members.filter_map(|member| {
            let rule = self.state.policy()?.rules.get(member.ask.rule)?;
            let others = self
                .remotes
                .as_ref()
                .map_or(&[][..], |it| it.others(&member.ask));
            let keys = self.remotes.as_ref().map_or(&[][..], |it| it.keys());
            let asked = Asked::new(rule, &member.ask, keys, others)?;
            let asked = asked.by(member.fallback, member.is_remaining_known);
            Some(match member.answer? {
                Ok(info) if self.denied_elsewhere().is_some() => {
                    // It was given back.
                    asked.denied(None, info.remaining().saturating_add(info.n()))
                }
                Ok(info) => asked.granted(info),
                Err(denied) => asked.denied(Some(denied), 0),
            })
        })
    }

    fn denied_elsewhere(&self) -> Option<DeniedElsewhere> {
        self.remotes.as_ref()?.denied
    }

    fn asked_at<'d>(
        &'d self,
        asks: &'d Asks<R, C>,
        index: usize,
        ask: &'d Ask,
    ) -> Option<Asked<'d>> {
        let rule = asks.policy.rules.get(ask.rule)?;
        let others = others(&asks.also_asked_by, ask);
        let asked = Asked::new(rule, ask, &asks.keys, others)?;
        if let State::Asked(_, Err((member, denied))) = &self.state {
            let now = asks.now();
            let own = asks.look(index, now);
            let own = own.or((index == *member).then_some(*denied));
            return Some(asked.denied(own, asks.available(index, now)));
        }
        if self.denied_elsewhere().is_some() {
            // Its permits were given back.
            let now = asks.now();
            return Some(asked.denied(asks.look(index, now), asks.available(index, now)));
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

    /// Returns what a limit granted.
    fn info(&self, index: usize) -> Option<GrantInfo> {
        match &self.state {
            State::Asked(_, Ok(held)) => (index == 0).then(|| held.granted.info()),
            State::Granted(granted) => granted.member(index),
            State::Many(many) => many.info(index),
            _ => None,
        }
    }
}

impl<R: Deref<Target = Policy<C>>, C: PolicyClock> Asks<R, C> {
    pub(crate) fn now(&self) -> Tick {
        self.policy.clock.now()
    }

    fn available(&self, index: usize, now: Tick) -> u64 {
        let available = |ask: &Ask| {
            let limit = self.limit(ask)?;
            let available = With(|limit: &dyn Member<C>| limit.available_at(now));
            limit.visit(self.key(ask), ask.plan, false, available)
        };
        self.list.get(index).and_then(available).unwrap_or(0)
    }
}

impl<R: Deref<Target = Policy<C>>, C: PolicyClock> fmt::Debug for Decision<R, C> {
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
