//! Which limits of a policy go on in the next one, and how they change.

use std::sync::Arc;

use tollgate::Keep;
use tollgate::algorithm::ChangeQuota;
use tollgate::clock::Clock;
use tollgate::{AnyAlgorithm, Quota};

use super::RuleState;
use super::saved::Saved;
use crate::file::Rule;
use crate::limit::{KeyHash, Overrides, PolicyClock, RuleLimit, Spec, Table};
use crate::rule::CompiledRule;

/// A change of a limit that keeps its state. It is made when the whole policy is known to be valid.
pub(crate) struct Change<C> {
    limit: Arc<RuleLimit<C>>,
    what: What,
}

enum What {
    Quota { plan: usize, quota: Quota },
    Concurrency { plan: usize, limit: u64 },
    Set { hash: u64, algorithm: AnyAlgorithm },
    Unset { hash: u64 },
}

/// A rule as the policy has it now, and what becomes of its limits.
pub(crate) struct Reuse<'p, C> {
    old: Option<&'p CompiledRule<C>>,
    /// Whether stores hide keys by another secret from now on.
    has_new_secret: bool,
    /// The state of another process.
    saved: Option<&'p Saved>,
    fresh: Option<&'static str>,
    pub(crate) changes: Vec<Change<C>>,
}

impl<'p, C> Reuse<'p, C> {
    pub(crate) const fn of(
        old: Option<&'p CompiledRule<C>>,
        has_new_secret: bool,
        saved: Option<&'p Saved>,
    ) -> Self {
        Self {
            old,
            has_new_secret,
            saved,
            fresh: None,
            changes: Vec::new(),
        }
    }

    /// Returns what becomes of the rule's state.
    pub(crate) const fn state(&self) -> RuleState {
        match (self.old, self.fresh) {
            (None, None) if self.saved.is_none() => RuleState::New,
            (_, Some(why)) => RuleState::Fresh(why),
            _ if self.changes.is_empty() => RuleState::Kept,
            _ => RuleState::Migrated,
        }
    }

    /// Returns the rule as the policy has it now, if its keys mean the same as before.
    pub(crate) fn same_keys(&self, rule: &Rule) -> Option<&'p CompiledRule<C>> {
        let old = self.old?;
        let is_same = old.source.key == rule.key && old.source.network == rule.network;
        (is_same && old.source.capacity == rule.capacity).then_some(old)
    }

    /// Returns a limit that keeps its state, and notes its changes. `None` if it starts anew.
    pub(crate) fn limit(
        &mut self,
        rule: &Rule,
        index: usize,
        specs: &[Spec],
        overrides: &Overrides,
    ) -> Option<Arc<RuleLimit<C>>> {
        let old = self.old?;
        let found = match different(&old.source, rule) {
            Some(why) => Err(why),
            None if self.has_new_secret && is_remote(old, index) => Err("the key secret changed"),
            None => changes(old, rule, index, specs, overrides),
        };
        match found {
            Ok((limit, found)) => {
                let changes = found.into_iter().map(|what| Change {
                    limit: Arc::clone(&limit),
                    what,
                });
                self.changes.extend(changes);
                Some(limit)
            }
            Err(why) => {
                self.fresh.get_or_insert(why);
                None
            }
        }
    }
}

impl<C: PolicyClock> Reuse<'_, C> {
    /// Restores the state of a new limit.
    pub(crate) fn restore(
        &mut self,
        rule: &Rule,
        index: usize,
        specs: &[Spec],
        clock: &C,
        limit: &mut RuleLimit<C>,
    ) {
        if let Some(saved) = self.saved {
            if let Err(why) = saved.restore(rule, index, specs, clock, limit) {
                self.fresh.get_or_insert(why);
            }
        }
    }

    /// Restores a table of a rule's bans or strikes, if it is one of another process.
    pub(crate) fn restore_table(
        &self,
        rule: &Rule,
        section: u32,
        texts: &[String],
        table: &mut Table<C>,
    ) {
        if let Some(saved) = self.saved {
            saved.restore_table(rule, section, texts, table);
        }
    }
}

/// Returns whether a limit of a rule is one of a store that decides asynchronously.
fn is_remote<C>(rule: &CompiledRule<C>, index: usize) -> bool {
    let limit = rule.limits.get(index);
    limit.is_some_and(|limit| matches!(**limit, RuleLimit::Remote(_)))
}

/// Returns why the state of a rule can't go on, if it can't.
fn different(old: &Rule, new: &Rule) -> Option<&'static str> {
    let names = |rule: &Rule| {
        let plans = rule.plan.iter().flat_map(|plan| &plan.limits);
        plans
            .map(|(name, _)| name.value.clone())
            .collect::<Vec<_>>()
    };
    let reasons = [
        (old.key == new.key, "its key changed"),
        (old.network == new.network, "its network changed"),
        (old.store == new.store, "its store changed"),
        (old.fallback == new.fallback, "its fallback changed"),
        (old.capacity == new.capacity, "its capacity changed"),
        (old.overflow == new.overflow, "its overflow changed"),
        (names(old) == names(new), "its plans have other names"),
        (
            old.limits.len() == new.limits.len(),
            "it has another number of limits",
        ),
    ];
    let mut reasons = reasons.into_iter();
    reasons.find_map(|(is_same, why)| (!is_same).then_some(why))
}

type Changes<C> = (Arc<RuleLimit<C>>, Vec<What>);

fn changes<C>(
    old: &CompiledRule<C>,
    rule: &Rule,
    index: usize,
    specs: &[Spec],
    overrides: &Overrides,
) -> Result<Changes<C>, &'static str> {
    const OTHER: &str = "its algorithm changed";
    let (Some(limit), Some(was)) = (old.limits.get(index), old.specs.get(index)) else {
        return Err(OTHER);
    };
    let mut changes = Vec::new();
    let has_state = |spec: &Spec| !matches!(spec, Spec::Fixed(_));
    let had_state = !matches!(&**limit, RuleLimit::OneSlots(plans) if plans.is_empty());
    if !had_state && overrides.iter().any(|(_, own)| has_state(own)) {
        return Err(OTHER);
    }
    if matches!(**limit, RuleLimit::Own(_) | RuleLimit::Remote(_)) {
        let same = old.source.limits == rule.limits && old.source.plan == rule.plan;
        let same_overrides = old.source.overrides == rule.overrides;
        let remembered = old.source.remembers_denials();
        return match same {
            _ if is_remote(old, index) && old.source.is_leased != rule.is_leased => {
                Err("its mode changed")
            }
            _ if is_remote(old, index) && old.source.allowance != rule.allowance => {
                Err("its allowance changed")
            }
            _ if is_remote(old, index) && remembered != rule.remembers_denials() => {
                Err("whether denials are remembered changed")
            }
            true if is_remote(old, index) && !same_overrides => Err("its overrides changed"),
            true => Ok((Arc::clone(limit), changes)),
            false => Err("a registered limit can't change"),
        };
    }
    for (plan, (was, spec)) in was.iter().zip(specs).enumerate() {
        match (was, spec) {
            _ if was == spec => {}
            // The plan is not asked.
            (_, Spec::Fixed(_)) => {}
            (Spec::Rate(was), Spec::Rate(spec)) => {
                let quota = spec.quota();
                if was.with_quota(quota) != Ok(*spec) {
                    return Err(OTHER);
                }
                changes.push(What::Quota { plan, quota });
            }
            (Spec::Concurrency(_), Spec::Concurrency(n)) => match &**limit {
                RuleLimit::OneSlots(_) => changes.push(What::Concurrency { plan, limit: *n }),
                _ => return Err("the concurrency of keys can't change"),
            },
            _ => return Err(OTHER),
        }
    }
    if let RuleLimit::Table(table) = &**limit {
        if overrides.len() > table.max_overrides() {
            return Err("its table has no room for so many overrides");
        }
        let gone = old
            .overrides
            .iter()
            .filter(|(hash, _)| !has(overrides, *hash));
        changes.extend(gone.map(|(hash, _)| What::Unset { hash: *hash }));
        let set = overrides.iter().filter(|own| !old.overrides.contains(own));
        changes.extend(set.map(|(hash, own)| match *own {
            Spec::Rate(algorithm) => What::Set {
                hash: *hash,
                algorithm,
            },
            _ => What::Unset { hash: *hash },
        }));
    }
    Ok((Arc::clone(limit), changes))
}

fn has(overrides: &Overrides, hash: u64) -> bool {
    overrides.iter().any(|(known, _)| *known == hash)
}

impl<C: Clock> Change<C> {
    /// Makes the change. The algorithms exist already, so their quotas can be represented. A key
    /// keeps what it used, so it gains nothing if limits change up and down.
    pub(crate) fn apply(self) {
        match (&*self.limit, self.what) {
            (RuleLimit::Table(table), What::Quota { plan, quota }) => {
                let _ = table.set_plan_quota(plan, quota, Keep::Used);
            }
            (RuleLimit::Single(limiter), What::Quota { quota, .. }) => {
                let _ = limiter.set_quota(quota, Keep::Used);
            }
            (RuleLimit::OneSlots(plans), What::Concurrency { plan, limit }) => {
                let _ = plans.get(plan).map(|plan| plan.set_limit(limit));
            }
            (RuleLimit::Table(table), What::Set { hash, algorithm }) => {
                let _ = table.key(&KeyHash(hash)).set_override(algorithm);
            }
            (RuleLimit::Table(table), What::Unset { hash }) => {
                table.key(&KeyHash(hash)).remove_override();
            }
            _ => {}
        }
    }
}
