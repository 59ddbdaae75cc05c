//! Makes a policy from what a file says.

mod limits;
mod refuse;
mod together;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use tollgate::algorithm::ChangeQuota;
use tollgate::error::LimiterError;
use tollgate::{AnyAlgorithm, Keyed, Quota, TokenBucket};

use crate::choose::Chooser;
use crate::file::secret::Secret;
use crate::file::{BanOf, MissingFact, PolicyFile, Rule};
use crate::limit::{Hashed, PolicyClock, RuleLimit, Spec, Table, config_message};
use crate::parse::{BAN_OF_ALL, BAN_WITHOUT_KEY, MEMORY, no_fallback};
use crate::policy::Policy;
use crate::problem::{Problem, Problems, quoted};
use crate::registry::Registry;
use crate::rule::failure::{self, Named};
use crate::rule::{AFTER_BAN, Attempts, Ban, CompiledRule, MissingKeys, Reads, strikes_text};
use crate::state::{BANS, Change, Reuse, RuleState, STRIKES, Saved};
use limits::{Made, Maker};
use together::check_always;
pub(crate) use together::check_possible;

/// What a policy is made from, besides its file.
pub(crate) struct Given<'p, C> {
    pub(crate) registry: Arc<Registry<C>>,
    pub(crate) clock: C,
    pub(crate) hasher: Hashed,
    /// The policy as it is now, if it is reloaded.
    pub(crate) previous: Option<&'p Policy<C>>,
    /// The state of another process.
    pub(crate) saved: Option<&'p Saved>,
}

/// A policy, and what is left to do before it is used.
pub(crate) struct Compiled<C> {
    pub(crate) policy: Policy<C>,
    /// The changes of limits that go on.
    pub(crate) changes: Vec<Change<C>>,
    /// What becomes of the state of each rule.
    pub(crate) states: Vec<RuleState>,
}

/// Makes a policy. Adds what is wrong to `problems`; if there are errors, the policy lacks limits.
pub(crate) fn compile<C: PolicyClock>(
    file: &PolicyFile,
    given: Given<'_, C>,
    problems: &mut Problems,
) -> Compiled<C> {
    let Given {
        registry,
        clock,
        hasher,
        previous,
        saved,
    } = given;
    problems.append(file.check_facts(|name| registry.resolvers.contains_key(name)));
    check_always(file, |store| registry.remote(store).is_some(), problems);
    let key_secret = key_secret(file, &registry, problems);
    let maker = Maker {
        registry: &registry,
        clock: &clock,
        hasher: &hasher,
        key_secret: key_secret.as_ref(),
        server: file.store.as_ref(),
    };
    let has_new_secret = previous.is_some_and(|old| old.key_secret != key_secret);
    let old = previous.map_or(&[][..], |policy| &policy.rules);
    let old: HashMap<&str, _> = old.iter().map(|rule| (&*rule.name, rule)).collect();
    let (mut changes, mut states) = (Vec::new(), Vec::new());
    let mut rules = Vec::new();
    let reads = Reads::of_all(file);
    for ((index, rule), reads) in file.numbered().zip(reads) {
        let saved = saved.filter(|saved| saved.has(rule));
        let mut reuse = Reuse::of(old.get(rule.name.as_str()).copied(), has_new_secret, saved);
        rules.push(compile_rule(rule, reads, &maker, &mut reuse, problems));
        if rule.name.is_empty() {
            // Where the file is read, errors of such a rule have its number too.
            let kind = rule.kind();
            problems.rename(&format!("{kind} \"\":"), &format!("{kind} {}:", index + 1));
        }
        states.push(reuse.state());
        changes.append(&mut reuse.changes);
    }
    let mut limits = rules.iter().flat_map(|rule| &rule.limits);
    let policy = Policy {
        chooser: Chooser::of(file),
        asynchronous: limits.any(|limit| matches!(**limit, RuleLimit::Remote(_))),
        rules,
        file: file.clone(),
        client: OnceLock::new(),
        registry,
        hasher,
        key_secret,
        clock,
        restored: Vec::new(),
    };
    Compiled {
        policy,
        changes,
        states,
    }
}

/// Returns the secret of a file's keys. If a rule names a store that takes no secret, that is an
/// error.
fn key_secret<C>(
    file: &PolicyFile,
    registry: &Registry<C>,
    problems: &mut Problems,
) -> Option<Secret> {
    let secret = match file.resolve_key_secret() {
        Ok(secret) => secret?,
        Err(found) => {
            problems.append(found);
            return None;
        }
    };
    let names: BTreeSet<&str> = file.rules.iter().map(|rule| rule.store.as_str()).collect();
    for name in names {
        let store = registry.remote(name);
        if let Some(Err(message)) = store.map(|store| store.take_key_secret()) {
            let field = format!("key-secret of the store {}", quoted(name));
            let position = file.key_secret.as_ref().and_then(|it| it.position);
            problems.push(Problem::error(field, "", message).at(position));
        }
    }
    Some(secret)
}

fn compile_rule<C: PolicyClock>(
    rule: &Rule,
    reads: Reads,
    maker: &Maker<'_, C>,
    reuse: &mut Reuse<'_, C>,
    problems: &mut Problems,
) -> CompiledRule<C> {
    let key = &reads.key;
    let mut overrides = maker.overrides(rule, key, problems);
    overrides.sort_unstable_by_key(|(hash, _)| *hash);
    let made = maker.limits(rule, &overrides, reuse, problems);
    let is_rate = |made: &Made<C>| match &*made.limit {
        RuleLimit::Remote(remote) => {
            let mut plans = 0..made.specs.len();
            plans.all(|plan| remote.concurrency(plan).is_none())
        }
        limit => limit.table().is_some(),
    };
    let is_replaced = |made: &Made<C>| is_rate(made) || made.is_fixed();
    if !overrides.is_empty() && !made.is_empty() && !made.iter().any(is_replaced) {
        let field = format!("{}: override", rule.title());
        let position = rule.overrides.first().and_then(|own| own.key.position);
        let message = "needs a limit that is a rate, which it replaces";
        problems.push(Problem::error(field, "", message).at(position));
    }
    let field = format!("{}: fallback", rule.title());
    let has_store = rule.store.as_str() != MEMORY;
    // If the policy was read from text, this may be reported already.
    if has_store && rule.fallback.is_none() && !problems.has_error(&field) {
        let problem = Problem::error(field, "", no_fallback(rule, maker.server.is_some()));
        problems.push(problem.at(rule.store.position));
    }
    let ban = ban(rule, &made, maker, reuse, problems);
    let (mut limits, mut specs, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    for made in made {
        limits.push(made.limit);
        specs.push(made.specs);
        texts.push(made.texts);
    }
    CompiledRule {
        name: rule.name.as_str().into(),
        ban,
        limits,
        specs,
        texts,
        reads,
        count: rule.count,
        failures: Named::of(rule),
        overrides,
        missing_keys: MissingKeys::default(),
        source: rule.clone(),
    }
}

/// Makes what counts the denials or failures of keys, and bans them.
fn ban<C: PolicyClock>(
    rule: &Rule,
    made: &[Made<C>],
    maker: &Maker<'_, C>,
    reuse: &Reuse<'_, C>,
    problems: &mut Problems,
) -> Option<Ban<C>> {
    let ban = rule.ban.as_ref()?;
    let refuse = |part: &str, message: &str, problems: &mut Problems| {
        let field = format!("{}: ban", rule.title());
        // The error may be reported already, where the file is read.
        if !problems.has_error(&field) {
            let problem = Problem::error(field + part, "", message);
            problems.push(problem.at(ban.position));
        }
    };
    if rule.missing == MissingFact::Shared {
        refuse("", BAN_OF_ALL, problems);
        return None;
    }
    if rule.key.is_empty() {
        // A key that is wrong is reported already.
        if !problems.has_errors() {
            refuse("", BAN_WITHOUT_KEY, problems);
        }
        return None;
    }
    let of_failures = ban.of == BanOf::Failures;
    if made.is_empty() && !of_failures {
        // Their errors are reported.
        return None;
    }
    if !of_failures && !made.iter().any(|made| made.limit.can_ban()) {
        refuse(
            "",
            "needs a limit other than `concurrency`, `unlimited` and `0`",
            problems,
        );
        return None;
    }
    let mut rates = made
        .iter()
        .flat_map(|made| &made.specs)
        .filter_map(|spec| match spec {
            Spec::Rate(algorithm) => Some(algorithm.quota().period()),
            _ => None,
        });
    let within = match (of_failures, &ban.within) {
        (true, _) => Some(failure::within(ban)),
        (false, Some(within)) => Some(within.value),
        (false, None) => rates.next(),
    };
    let Some(within) = within else {
        let message = "is missing, but must be given: the period of the limit is not known";
        refuse(".within", message, problems);
        return None;
    };
    let old = reuse.same_keys(rule).and_then(|old| old.ban.as_ref());
    let old_strikes = old.filter(|old| {
        let known = (old.attempts.is_some(), old.after, old.within);
        known == (of_failures, ban.after.value, within)
    });
    let make = || {
        let window = failure::window(ban.after.value, within)?;
        let strikes = match old_strikes {
            Some(old) => Arc::clone(&old.strikes),
            None => {
                let text = strikes_text(of_failures, ban.after.value, within);
                let mut strikes = table(window, rule, maker)?;
                reuse.restore_table(rule, STRIKES, &[text], &mut strikes);
                Arc::new(strikes)
            }
        };
        let bans = match old {
            Some(old) => Arc::clone(&old.bans),
            None => {
                let bucket = TokenBucket::new(Quota::per(1, AFTER_BAN))?;
                let mut bans = table(bucket.into(), rule, maker)?;
                reuse.restore_table(rule, BANS, &[], &mut bans);
                Arc::new(bans)
            }
        };
        let attempts = match old_strikes.and_then(|old| old.attempts.as_ref()) {
            None if of_failures => Some(Arc::new(Attempts {
                limit: RuleLimit::Table(table(window, rule, maker)?),
                quota: window.quota(),
                text: window.to_string().into(),
            })),
            old => old.map(Arc::clone),
        };
        Ok(Ban {
            duration: ban.duration.value,
            after: ban.after.value,
            within,
            attempts,
            strikes,
            bans,
        })
    };
    make()
        .map_err(|error: LimiterError| {
            let message = format!("can't be counted: {}", config_message(error));
            refuse("", &message, problems);
        })
        .ok()
}

/// Makes a table for the keys of a rule.
fn table<C: PolicyClock>(
    algorithm: AnyAlgorithm,
    rule: &Rule,
    maker: &Maker<'_, C>,
) -> Result<Table<C>, LimiterError> {
    let capacity = usize::try_from(rule.capacity.value).unwrap_or(usize::MAX);
    let table = Keyed::with_clock(algorithm, capacity, maker.clock.clone())?;
    Ok(table.with_hasher(maker.hasher.clone()))
}
