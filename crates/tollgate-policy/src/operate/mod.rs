//! What operators ask of a policy: one key of a rule ([`Policy::key`]), and the statistics of its
//! tables ([`Policy::stats`]). [The guide](crate::guide::policy#operating) has examples.

mod error;
mod remote;
mod stats;

use std::fmt;
use std::time::Duration;

use ipnet::IpNet;
use tollgate::compose::Member;
use tollgate::keyed::KeyHasher;

use crate::decide::With;
use crate::facts::{FactKind, FactName};
use crate::file::Rule;
use crate::limit::{KeyHash, KeyRef, PolicyClock, RuleLimit, Spec};
use crate::policy::Policy;
use crate::rule::{AFTER_BAN, Bytes, CompiledRule, KeySpec, can_be_key};
pub use error::KeyError;
pub use stats::{PolicyStats, RuleStats, StoredStats, TableStats};

/// One key of a rule, which [`Policy::key`] returns: how much it may have, and what changes that.
///
/// The verbs are those of a [`Keyed`](tollgate::Keyed) table's keys. If the rule is on a store that
/// is asked asynchronously, use the forms that end in `_async`, which are for all rules.
pub struct RuleKey<'p, C> {
    policy: &'p Policy<C>,
    rule: &'p CompiledRule<C>,
    bytes: Bytes,
    hash: u64,
}

/// How many permits of one limit a key has: see [`RuleKey::available`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Available<'p> {
    /// The text of the limit, or of the key's override.
    pub limit: &'p str,
    /// The plan, if the rule has plans and the key has no override.
    pub plan: Option<&'p str>,
    /// The number of permits. 0 while the key is banned, and [`u64::MAX`] if it is unlimited.
    pub permits: u64,
}

impl<C: PolicyClock> Policy<C> {
    /// Returns one key of a rule. Pass the values that an override of the key would have: one for
    /// each part of the rule's key, in its order. A network, as [`explain`](crate::explain()) shows
    /// it, is a value too. A rule without a key has the key without parts, `[]`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_policy::{LivePolicy, Policy};
    ///
    /// let text = "[[rule]]\nname = 'login'\nkey = 'client-ip'\nlimit = '5/h'";
    /// let live = LivePolicy::new(Policy::from_toml(text)?);
    /// let policy = live.load();
    /// let key = policy.key("login", ["10.0.0.7"])?;
    /// assert!(live.decide(&[("client-ip", "10.0.0.7")]).is_allowed());
    /// assert_eq!(key.available()?[0].permits, 4);
    ///
    /// key.ban_for(Duration::from_secs(60))?;
    /// assert!(!live.decide(&[("client-ip", "10.0.0.7")]).is_allowed());
    /// assert!(key.reset()?);
    /// assert_eq!((key.available()?[0].permits, key.banned_for()?), (5, None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`KeyError`] if there is no such rule, or if it needs other values.
    pub fn key<'k>(
        &self,
        rule: &str,
        values: impl IntoIterator<Item = &'k str>,
    ) -> Result<RuleKey<'_, C>, KeyError> {
        let mut rules = self.rules.iter();
        let Some(found) = rules.find(|known| *known.name == *rule) else {
            let known = self.rules.iter().map(|known| &*known.name);
            return Err(KeyError::unknown_rule(rule, known));
        };
        let values: Vec<&str> = values.into_iter().collect();
        let bytes = bytes_of(&found.source, &values)?;
        Ok(RuleKey {
            policy: self,
            rule: found,
            hash: self.hasher.0.hash_key(bytes.as_slice()),
            bytes,
        })
    }
}

/// Returns the bytes of a rule's key that has these values.
pub(crate) fn bytes_of(rule: &Rule, values: &[&str]) -> Result<Bytes, KeyError> {
    let parts = rule.key.iter().map(|part| part.value.clone());
    if parts.len() != values.len() {
        return Err(KeyError::Values {
            rule: rule.name.value.clone(),
            parts: parts.collect(),
            given: values.len(),
        });
    }
    let mut bare = Vec::new();
    for (part, value) in rule.key.iter().zip(values) {
        let name = FactName::new(part);
        let address = match name.kind() {
            FactKind::ClientIp => address_of(rule, value),
            _ => value,
        };
        if !can_be_key(&name, &address.into()) {
            let (part, value) = (part.value.clone(), (*value).to_owned());
            return Err(KeyError::Address { part, value });
        }
        bare.push(address);
    }
    Ok(KeySpec::of(rule).of_values(bare))
}

/// Returns the address of a network with as many bits as the rule's keys have, or the value.
fn address_of<'v>(rule: &Rule, value: &'v str) -> &'v str {
    let is_key = |it: &IpNet| it.prefix_len() == rule.network.bits(it.addr());
    let network = value.parse().ok().filter(is_key);
    match (network, value.split_once('/')) {
        (Some(_), Some((address, _))) => address,
        _ => value,
    }
}

impl<'p, C: PolicyClock> RuleKey<'p, C> {
    /// Returns how many permits the key has now, of each limit of the rule. If the rule has plans,
    /// it is of each plan: a request says its plan, not the key. If failures ban keys, the first
    /// limit is that of the requests that may fail.
    ///
    /// ```
    /// use tollgate_policy::Policy;
    ///
    /// let text = "[[rule]]\nname = 'api'\nkey = 'user'\n\
    ///             plan = { by = 'tier', free = '10/h', pro = '100/h', default = 'free' }\n\
    ///             override = [{ key = 'bob', limit = '7/h' }]";
    /// let policy = Policy::from_toml(text)?;
    /// let of = |user| policy.key("api", [user])?.available();
    /// let ann = of("ann")?;
    /// assert_eq!((ann[0].limit, ann[0].plan, ann[0].permits), ("10/h", Some("free"), 10));
    /// assert_eq!((ann[1].limit, ann[1].plan, ann[1].permits), ("100/h", Some("pro"), 100));
    /// assert_eq!((of("bob")?.len(), of("bob")?[0].permits), (1, 7));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`KeyError::Asynchronous`].
    pub fn available(&self) -> Result<Vec<Available<'p>>, KeyError> {
        self.only_here()?;
        Ok(self.available_here())
    }

    /// Returns how long the key is still banned, or `None` if it is not. A ban in a limit's own
    /// table is over when the key has its first permit.
    ///
    /// # Errors
    ///
    /// [`KeyError::Asynchronous`].
    pub fn banned_for(&self) -> Result<Option<Duration>, KeyError> {
        self.only_here()?;
        Ok(self.banned_here())
    }

    /// Bans the key for this duration. Another ban can extend a ban, but not shorten it;
    /// [`reset`](Self::reset) lifts it.
    ///
    /// If the rule has `ban`, the key is banned as by its denials. If not, the table of its first
    /// rate bans it: when the ban is over, the key refills from empty, and a window has no permits
    /// before it ends.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoKey`] if the rule has no key, [`KeyError::Unable`] if it has neither `ban` nor
    /// a rate in memory, [`KeyError::NoRoom`] if the table has no slot for the ban, or
    /// [`KeyError::Asynchronous`].
    pub fn ban_for(&self, long: Duration) -> Result<(), KeyError> {
        self.only_here()?;
        self.ban_here(long)
    }

    /// Forgets all that is known of the key: its limits are as they were before its first request,
    /// its denials and failures do not count, and a ban ends. Returns whether anything was known.
    ///
    /// Limits of concurrency and those that the program registered remain as they are.
    ///
    /// # Errors
    ///
    /// [`KeyError::Unable`] if all limits of the rule remain as they are, or
    /// [`KeyError::Asynchronous`].
    pub fn reset(&self) -> Result<bool, KeyError> {
        self.only_here()?;
        self.reset_here().ok_or_else(|| self.unable("reset"))
    }

    fn only_here(&self) -> Result<(), KeyError> {
        match self.remotes().next() {
            None => Ok(()),
            Some(_) => Err(KeyError::Asynchronous { rule: self.name() }),
        }
    }

    /// Returns the permits that the limits of this process have.
    fn available_here(&self) -> Vec<Available<'p>> {
        let now = self.policy.clock.now();
        let key = KeyRef {
            bytes: &self.bytes,
            hash: self.hash,
        };
        let available = |limit: &RuleLimit<C>, plan| {
            limit.visit(
                key,
                plan,
                false,
                With(|it: &dyn Member<C>| it.available_at(now)),
            )
        };
        let mut all = Vec::new();
        if let Some(attempts) = self.rule.ban.as_ref().and_then(|ban| ban.attempts.as_ref()) {
            all.extend(available(&attempts.limit, 0).map(|permits| Available {
                limit: &attempts.text,
                plan: None,
                permits,
            }));
        }
        let own_text = self.own_text();
        let limits = self.rule.limits.iter().zip(&self.rule.texts);
        for (index, ((limit, texts), specs)) in limits.zip(&self.rule.specs).enumerate() {
            let own = self.rule.in_place_of(index, self.hash);
            // An override takes the place of all plans.
            let plans = if own.is_some() { 1 } else { texts.len() };
            for (plan, (text, spec)) in texts.iter().zip(specs).enumerate().take(plans) {
                let permits = match own.unwrap_or(spec) {
                    Spec::Fixed(fixed) => Some(fixed.permits()),
                    _ => available(limit, plan),
                };
                all.extend(permits.map(|permits| Available {
                    limit: own.and(own_text).unwrap_or(text),
                    plan: self.rule.plan_name(plan).filter(|_| own.is_none()),
                    permits,
                }));
            }
        }
        self.unless_banned(&mut all);
        all
    }

    /// Returns the text of the key's override.
    fn own_text(&self) -> Option<&'p str> {
        let rule = self.rule;
        let own = rule.reads.key.override_of(&rule.source, &self.bytes)?;
        Some(&own.limit)
    }

    /// Takes the permits of a key that this process bans.
    fn unless_banned(&self, all: &mut [Available<'p>]) {
        if self.banned_here().is_some() {
            all.iter_mut().for_each(|it| it.permits = 0);
        }
    }

    fn banned_here(&self) -> Option<Duration> {
        let (key, now) = (KeyHash(self.hash), self.policy.clock.now());
        let tables = self.rule.tables();
        let until = tables.filter_map(|table| table.key(&key).at(now).banned_until());
        until.max().map(|until| until.saturating_since(now))
    }

    fn ban_here(&self, long: Duration) -> Result<(), KeyError> {
        let key = KeyHash(self.hash);
        let mut limits = self.rule.limits.iter();
        let banned = match &self.rule.ban {
            Some(ban) => ban.bans.key(&key).ban_for(long.saturating_sub(AFTER_BAN)),
            None if self.rule.reads.key.is_empty() => {
                return Err(KeyError::NoKey { rule: self.name() });
            }
            None => match limits.find_map(|limit| limit.table()) {
                Some(table) => table.key(&key).ban_for(long),
                None => return Err(self.unable("ban_for")),
            },
        };
        banned.map_err(|_| KeyError::NoRoom { rule: self.name() })
    }

    /// Resets the limits of this process. `None` if there is none that can be reset.
    fn reset_here(&self) -> Option<bool> {
        let key = KeyHash(self.hash);
        let tables = self.rule.tables().map(|table| table.key(&key).remove());
        let singles = self.rule.limits.iter().filter_map(|limit| match &**limit {
            RuleLimit::Single(limiter) => {
                limiter.reset();
                Some(true)
            }
            _ => None,
        });
        tables.chain(singles).reduce(|known, other| known | other)
    }

    fn name(&self) -> String {
        self.rule.name.to_string()
    }

    fn unable(&self, verb: &'static str) -> KeyError {
        let rule = self.name();
        KeyError::Unable { rule, verb }
    }
}

impl<C> fmt::Debug for RuleKey<'_, C> {
    /// Does not show the values: they are what a client sent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleKey")
            .field("rule", &self.rule.name)
            .finish_non_exhaustive()
    }
}
