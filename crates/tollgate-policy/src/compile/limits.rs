//! Makes the limits of rules.

use std::collections::BTreeSet;
use std::sync::Arc;

use tollgate::error::LimiterError;
use tollgate::keyed::{KeyHasher, KeyedConcurrency};
use tollgate::{Adjustable, AnyAlgorithm, Concurrency, Keep, Keyed};

use super::refuse::{of_refusal, refuse, too_large};
use crate::file::secret::Secret;
use crate::file::{At, Fallback, Override, Rule, StoreSettings};
use crate::limit::{
    Fixed, Hashed, KeyHash, LimitSpec, Overrides, PolicyClock, Remote, RemoteLimit, RemoteRefusal,
    RemoteStore, RuleLimit, Spec, config_message, is_concurrency,
};
use crate::parse::{MAX_PLANS, MEMORY, REDIS, known_names};
use crate::problem::{Problem, Problems};
use crate::registry::{Registry, StoreKind};
use crate::rule::KeySpec;
use crate::state::Reuse;

/// What limits are made with.
pub(crate) struct Maker<'m, C> {
    pub(crate) registry: &'m Registry<C>,
    pub(crate) clock: &'m C,
    pub(crate) hasher: &'m Hashed,
    /// The secret by which stores hide keys.
    pub(crate) key_secret: Option<&'m Secret>,
    /// The server that the file names.
    pub(crate) server: Option<&'m StoreSettings>,
}

/// A limit of a rule, with its text (or the text of each plan) and what it says.
pub(crate) struct Made<C> {
    pub(crate) limit: Arc<RuleLimit<C>>,
    pub(crate) specs: Vec<Spec>,
    pub(crate) texts: Vec<Box<str>>,
}

impl<C> Made<C> {
    /// Returns whether none of its texts needs a state.
    pub(crate) fn is_fixed(&self) -> bool {
        self.specs.iter().all(|spec| matches!(spec, Spec::Fixed(_)))
    }
}

/// A limit of a rule as the file says it: a text, or one for each plan.
struct Texts<'r> {
    field: String,
    index: usize,
    texts: Vec<&'r At<String>>,
    /// Whether it is the limit of one key alone.
    is_override: bool,
}

impl<C: PolicyClock> Maker<'_, C> {
    /// Makes the limits of a rule, or takes those of the policy as it is now.
    pub(crate) fn limits(
        &self,
        rule: &Rule,
        overrides: &Overrides,
        reuse: &mut Reuse<'_, C>,
        problems: &mut Problems,
    ) -> Vec<Made<C>> {
        let written: Vec<Texts<'_>> = match &rule.plan {
            Some(plan) => vec![Texts {
                field: "plan".to_owned(),
                index: 0,
                texts: plan.limits.iter().map(|(_, text)| text).collect(),
                is_override: false,
            }],
            None => {
                let limits = rule.limits.iter().enumerate();
                let texts = limits.map(|(index, text)| Texts {
                    field: "limit".to_owned(),
                    index,
                    texts: vec![text],
                    is_override: false,
                });
                texts.collect()
            }
        };
        if let (None, [_, _, ..]) = (&rule.plan, &*rule.limits) {
            let fixed = rule.limits.iter().filter(|text| Fixed::of(text).is_some());
            for text in fixed {
                let message = "must be the only limit of the rule";
                problems.push(refuse(rule, "limit", text, message));
            }
        }
        let count = rule.plan.as_ref().map_or(0, |plan| plan.limits.len());
        let count = count.saturating_add(usize::from(!rule.overrides.is_empty()));
        // That is reported where the file is read.
        let is_refused = count > MAX_PLANS && problems.has_errors();
        let mut made = Vec::new();
        for limit in written.iter().filter(|limit| !limit.texts.is_empty()) {
            let limit = match is_refused {
                false => self.limit(rule, limit, overrides, reuse),
                // Only the texts can have more errors.
                true => self.specs(rule, limit).and(Err(Problems::new())),
            };
            match limit {
                Ok(limit) => made.push(limit),
                Err(found) => {
                    // An override may be reported already, for another limit of the rule.
                    for problem in &found {
                        if problems.iter().all(|known| known != problem) {
                            problems.push(problem.clone());
                        }
                    }
                }
            }
        }
        made
    }

    fn limit(
        &self,
        rule: &Rule,
        limit: &Texts<'_>,
        overrides: &Overrides,
        reuse: &mut Reuse<'_, C>,
    ) -> Result<Made<C>, Problems> {
        let specs = self.specs(rule, limit)?;
        let texts = limit
            .texts
            .iter()
            .map(|text| text.as_str().into())
            .collect();
        let kept = reuse.limit(rule, limit.index, &specs, overrides);
        let limit = match kept {
            Some(limit) => limit,
            None => {
                let mut fresh = self.fresh(rule, limit, &specs, overrides)?;
                reuse.restore(rule, limit.index, &specs, self.clock, &mut fresh);
                Arc::new(fresh)
            }
        };
        Ok(Made {
            limit,
            specs,
            texts,
        })
    }

    /// Reads the texts of a limit.
    fn specs(&self, rule: &Rule, limit: &Texts<'_>) -> Result<Vec<Spec>, Problems> {
        let is_own = rule.store.as_str() != MEMORY;
        let own = self.own();
        let mut problems = Problems::new();
        let mut specs = Vec::new();
        for text in &limit.texts {
            match Spec::parse(text, &own, self.clock) {
                Ok(spec) => specs.push(spec),
                // The store reads the text, so this is not an error.
                Err(_) if is_own => specs.push(Spec::Own {
                    name: rule.store.value.clone(),
                }),
                Err(message) => problems.push(refuse(rule, &limit.field, text, &message)),
            }
        }
        problems.or(specs)
    }

    /// Makes a limit.
    fn fresh(
        &self,
        rule: &Rule,
        limit: &Texts<'_>,
        specs: &[Spec],
        overrides: &Overrides,
    ) -> Result<RuleLimit<C>, Problems> {
        let has_state = |spec: &&Spec| !matches!(spec, Spec::Fixed(_));
        let own = overrides.iter().map(|(_, own)| own);
        let Some(spec) = specs.iter().chain(own).find(has_state) else {
            let is_known = rule.store.as_str() == MEMORY
                || self.registry.stores.contains_key(&rule.store.value);
            return match is_known {
                true => Ok(RuleLimit::OneSlots(Vec::new())),
                false => Err(self.unknown_store(rule)),
            };
        };
        // A plan without a state is never asked. The limit of another one stands in its place.
        let is_fixed = |text: &str| Fixed::of(text).is_some();
        let mut texts = limit.texts.iter().copied();
        let text = texts.find(|text| !is_fixed(text));
        let with_state = specs.iter().zip(&limit.texts).map(|(known, own)| {
            let stand_in = (spec, text.unwrap_or(own));
            if is_fixed(own) {
                stand_in
            } else {
                (known, *own)
            }
        });
        let (specs, texts): (Vec<_>, Vec<_>) =
            with_state.map(|(spec, text)| (spec.clone(), text)).unzip();
        let limit = &Texts {
            texts,
            field: limit.field.clone(),
            ..*limit
        };
        if rule.store.as_str() != MEMORY {
            return self.of_store(rule, limit, overrides);
        }
        let made = self.of_specs(rule, limit, &specs)?;
        if let RuleLimit::Table(table) = &made {
            for (hash, own) in overrides {
                if let Spec::Rate(algorithm) = own {
                    // There is room for all of them.
                    let _ = table.key(&KeyHash(*hash)).set_override(*algorithm);
                }
            }
        }
        Ok(made)
    }

    /// Makes a limit from texts that must be of one kind.
    fn of_specs(
        &self,
        rule: &Rule,
        limit: &Texts<'_>,
        specs: &[Spec],
    ) -> Result<RuleLimit<C>, Problem> {
        let Some(first) = limit.texts.first() else {
            return Ok(RuleLimit::OneSlots(Vec::new()));
        };
        let capacity = usize::try_from(rule.capacity.value).unwrap_or(usize::MAX);
        let mut rates = Vec::new();
        let mut counts = Vec::new();
        let mut own = Vec::new();
        for (spec, text) in specs.iter().zip(&limit.texts) {
            match spec {
                Spec::Rate(algorithm) => rates.push(*algorithm),
                Spec::Concurrency(limit) => counts.push(*limit),
                Spec::Own { name } => own.push((name, *text)),
                // Another one stands in its place.
                Spec::Fixed(_) => {}
            }
        }
        let wrong = |text, message: &str| refuse(rule, &limit.field, text, message);
        if let Some((name, _)) = own.first() {
            if let Some((_, text)) = own.iter().find(|(other, _)| other != name) {
                let message = format!("must be of the algorithm `{name}`, as the first plan");
                return Err(wrong(*text, &message));
            }
            if own.len() < specs.len() {
                let message = "must be of the same algorithm as the other plans";
                return Err(wrong(first, message));
            }
            return self
                .of_algorithm(rule, name, limit)
                .map_err(|message| wrong(first, &message));
        }
        let error = |error| match error {
            LimiterError::CapacityTooLarge { .. } => too_large(rule),
            error => wrong(first, &config_message(error)),
        };
        match (rates.as_slice(), counts.as_slice(), rule.key.is_empty()) {
            ([_, ..], [_, ..], _) => Err(wrong(
                first,
                "must be `concurrency` in all plans, or in none",
            )),
            (_, [_, ..], true) => {
                let made: Result<_, _> = counts.into_iter().map(Concurrency::new).collect();
                Ok(RuleLimit::OneSlots(made.map_err(error)?))
            }
            (_, [_, ..], false) => {
                let tables = counts.into_iter().map(|limit| {
                    let table = KeyedConcurrency::new(limit, capacity)?;
                    Ok(table.with_hasher(self.hasher.clone()))
                });
                let tables: Result<_, _> = tables.collect();
                Ok(RuleLimit::Slots(tables.map_err(error)?))
            }
            ([algorithm], [], true) => {
                let clock = self.clock.clone();
                Ok(RuleLimit::Single(Adjustable::with_clock(*algorithm, clock)))
            }
            (_, [], is_empty) => {
                let capacity = if is_empty { 1 } else { capacity };
                self.table(rule, rates, capacity).map_err(error)
            }
        }
    }

    fn table(
        &self,
        rule: &Rule,
        plans: Vec<AnyAlgorithm>,
        capacity: usize,
    ) -> Result<RuleLimit<C>, LimiterError> {
        let is_full = rule.overrides.is_empty() && plans.len() >= MAX_PLANS;
        let table = Keyed::with_plans(plans, capacity, self.clock.clone())?;
        // A key that moves to another plan or an override keeps what it used, as in a reload.
        let table = table.with_moves(Keep::Used).with_overflow(rule.overflow);
        // Room for more, when the policy is reloaded. Overrides count as one more plan.
        let overrides = rule.overrides.len().saturating_mul(2).saturating_add(8);
        let table = match rule.key.is_empty() || is_full {
            true => table,
            false => table.with_overrides(overrides)?,
        };
        Ok(RuleLimit::Table(table.with_hasher(self.hasher.clone())))
    }

    fn of_algorithm(
        &self,
        rule: &Rule,
        name: &str,
        limit: &Texts<'_>,
    ) -> Result<RuleLimit<C>, String> {
        let Some(make) = self.registry.algorithms.get(name) else {
            return Err("must be a registered algorithm".into());
        };
        let after_name = |text: &&'_ At<String>| {
            let text = text.trim();
            text.strip_prefix(name).unwrap_or(text).trim().to_owned()
        };
        let texts: Vec<String> = limit.texts.iter().map(after_name).collect();
        let texts = texts.iter().map(String::as_str).collect();
        let spec = self.spec(rule, limit, texts, self.clock);
        make(&spec).map(RuleLimit::Own)
    }

    fn of_store(
        &self,
        rule: &Rule,
        limit: &Texts<'_>,
        overrides: &Overrides,
    ) -> Result<RuleLimit<C>, Problems> {
        let texts = limit.texts.iter().map(|text| text.as_str()).collect();
        let name = rule.store.as_str();
        match self.registry.stores.get(name).map(|store| &store.0) {
            Some(StoreKind::Elsewhere(store)) => {
                let made = self.remote(rule, limit, store, overrides);
                made.map(RuleLimit::Remote)
            }
            Some(StoreKind::Here(make)) => {
                let made = make(&self.spec(rule, limit, texts, self.clock));
                let refusals = |message: String| vec![message.as_str().into()];
                made.map(RuleLimit::Own)
                    .map_err(|message| self.refused(rule, limit, refusals(message)))
            }
            None if limit.index == 0 => Err(self.unknown_store(rule)),
            // Once, not for each limit.
            None => Err(Problems::new()),
        }
    }

    /// Makes a limit of a store that decides asynchronously, and those of single keys in its place.
    fn remote(
        &self,
        rule: &Rule,
        limit: &Texts<'_>,
        store: &Arc<dyn RemoteStore>,
        overrides: &Overrides,
    ) -> Result<Remote, Problems> {
        let make = |limit: &Texts<'_>| {
            let texts = limit.texts.iter().map(|text| text.as_str()).collect();
            let made = store.limit(&self.spec(rule, limit, texts, &()));
            made.map_err(|refusals| self.refused(rule, limit, refusals))
        };
        let has_state = |text: &At<String>| Fixed::of(text).is_none();
        // If no text needs a state, only keys with an override ask the store.
        let needs_state = limit.texts.iter().any(|text| has_state(text));
        let made = needs_state.then(|| make(limit)).transpose()?;
        let is_rate = |made: &Arc<RemoteLimit>| {
            let mut plans = 0..limit.texts.len();
            plans.all(|plan| store.concurrency(&**made, plan).is_none())
        };
        let (mut own_limits, mut problems) = (Vec::new(), Problems::new());
        if made.as_ref().is_none_or(is_rate) {
            let key = KeySpec::of(rule);
            let own = rule.overrides.iter().enumerate();
            for (index, own) in own.filter(|(_, own)| has_state(&own.limit)) {
                let hash = self.hash(&key, own);
                // The others are reported already.
                if !overrides.iter().any(|(known, _)| *known == hash) {
                    continue;
                }
                let texts = Texts {
                    field: override_field(index),
                    index: limit.index,
                    texts: vec![&own.limit],
                    is_override: true,
                };
                match make(&texts) {
                    Ok(made) => own_limits.push((hash, made)),
                    Err(found) => problems.append(found),
                }
            }
        }
        own_limits.sort_unstable_by_key(|(hash, _)| *hash);
        let stand_in = own_limits.first().map(|(_, own)| Arc::clone(own));
        match made.or(stand_in) {
            Some(limit) => problems.or(Remote {
                store: Arc::clone(store),
                limit,
                overrides: own_limits,
            }),
            None => Err(problems),
        }
    }

    /// Returns the problems of a limit that a store refuses.
    fn refused(&self, rule: &Rule, limit: &Texts<'_>, refusals: Vec<RemoteRefusal>) -> Problems {
        let mut problems = Problems::new();
        for mut refusal in refusals {
            if let RemoteRefusal::Limit(index, message) = &mut refusal {
                let text = limit.texts.get(*index);
                if text.is_some_and(|text| self.is_possible_in_memory(rule, text)) {
                    *message += "; or keep it in memory: `store = \"memory\"`";
                }
            }
            problems.push(of_refusal(rule, &limit.field, &limit.texts, &refusal));
        }
        problems
    }

    /// Returns whether a rule is on the server that the file names, perhaps only because the file
    /// names it, but has a limit that is possible in memory.
    fn is_possible_in_memory(&self, rule: &Rule, text: &str) -> bool {
        let is_on_server = self.server.is_some() && rule.store.value == REDIS;
        is_on_server && Spec::parse(text, &self.own(), self.clock).is_ok()
    }

    /// Returns the names of the registered algorithms.
    fn own(&self) -> BTreeSet<&str> {
        self.registry
            .algorithms
            .keys()
            .map(String::as_str)
            .collect()
    }

    fn unknown_store(&self, rule: &Rule) -> Problems {
        let known = self.registry.stores.keys().map(String::as_str);
        let known = known_names(&rule.store, std::iter::once(MEMORY).chain(known));
        let message = format!("must be a registered store{known}");
        match self.server.filter(|_| rule.store.value == REDIS) {
            // It is the same problem for all rules, so it is reported once.
            Some(server) => {
                let message = format!(
                    "needs the store \"redis\", which {message}. The program has to connect to the \
                     server of [store], and to register a RedisStore as \"redis\" before it builds \
                     the policy"
                );
                let problem = Problem::error("store", "", message);
                problem.at(server.redis.position).into()
            }
            None => refuse(rule, "store", &rule.store, &message).into(),
        }
    }

    fn spec<'s, D>(
        &'s self,
        rule: &'s Rule,
        limit: &Texts<'_>,
        limits: Vec<&'s str>,
        clock: &'s D,
    ) -> LimitSpec<'s, D> {
        let plans = rule.plan.iter().filter(|_| !limit.is_override);
        let plans = plans.flat_map(|plan| &plan.limits);
        let fallback = rule.fallback.as_ref();
        LimitSpec {
            rule: &rule.name,
            index: limit.index,
            limits,
            plans: plans.map(|(name, _)| name.as_str()).collect(),
            is_override: limit.is_override,
            has_key: !rule.key.is_empty(),
            capacity: usize::try_from(rule.capacity.value).unwrap_or(usize::MAX),
            overflow: rule.overflow,
            // A rule on a store without a fallback is reported as an error.
            fallback: fallback.map_or(&Fallback::Closed, |it| &it.value),
            is_leased: rule.is_leased,
            allowance: rule.allowance.as_ref().map(|it| &it.value),
            remembers_denials: rule.remembers_denials(),
            key_secret: self.key_secret,
            clock,
            hasher: self.hasher.clone(),
        }
    }

    /// Reads the limits of single keys.
    pub(crate) fn overrides(
        &self,
        rule: &Rule,
        key: &KeySpec,
        problems: &mut Problems,
    ) -> Overrides {
        let mut overrides = Overrides::new();
        for (index, own) in rule.overrides.iter().enumerate() {
            if own.limit.is_empty() && problems.has_errors() {
                // The missing limit is reported already.
                continue;
            }
            let hash = self.hash(key, own);
            let field = override_field(index);
            if overrides.iter().any(|(known, _)| *known == hash) {
                // If the policy was read from text, this is reported already.
                if !problems.has_errors() {
                    let message = "must not be a second limit of the same key";
                    problems.push(refuse(rule, &field, &own.limit, message));
                }
                continue;
            }
            let store = &rule.store.value;
            let is_elsewhere = self.registry.remote(store).is_some();
            let own_spec = match Spec::parse(&own.limit, &BTreeSet::new(), self.clock) {
                _ if key.is_empty() || (store != MEMORY && !is_elsewhere) => {
                    let message = "is possible only for a rule with a key, in memory or on a store \
                                   that decides asynchronously";
                    Err(message.into())
                }
                _ if is_concurrency(&own.limit) => Err("must be a rate, `unlimited` or `0`".into()),
                // The store reads the text, so this is not an error.
                Err(_) if is_elsewhere && !own.limit.is_empty() => Ok(Spec::Own {
                    name: store.clone(),
                }),
                read => read,
            };
            match own_spec {
                Ok(own) => overrides.push((hash, own)),
                Err(message) => problems.push(refuse(rule, &field, &own.limit, &message)),
            }
        }
        overrides
    }

    /// Returns the hash of the key that an override is for.
    fn hash(&self, key: &KeySpec, own: &Override) -> u64 {
        let values = own.key.iter().map(String::as_str);
        self.hasher.0.hash_key(key.of_values(values).as_slice())
    }
}

/// Returns the field of an override's limit.
fn override_field(index: usize) -> String {
    format!("override[{}].limit", index + 1)
}
