//! Reads a rule.

use tollgate::keyed::Overflow;

use super::fact::{Allowed, check_or_registered};
use super::failures;
use super::field::{Field, refuse_text};
use super::overrides;
use super::rule_fields;
use super::store::{self, MEMORY, REDIS, StoreOfRules};
use super::table::Table;
use super::tree::{Tree, at};
use super::when::Reader;
use crate::file::{Applies, At, BanOf, CountOf, MissingFact, Networks, Repeated, Rule};
use crate::limit::{Fixed, is_concurrency};
use crate::problem::Problems;
use crate::when::When;

pub(super) const MISSING: [(&str, MissingFact); 3] = [
    ("deny", MissingFact::Deny),
    ("skip", MissingFact::Skip),
    ("shared", MissingFact::Shared),
];
const REPEATED: [(&str, Repeated); 3] = [
    ("deny", Repeated::Deny),
    ("first", Repeated::First),
    ("last", Repeated::Last),
];
pub(super) const COUNT: [(&str, CountOf); 3] = [
    ("all", CountOf::All),
    ("failures", CountOf::Failures),
    ("successes", CountOf::Successes),
];
/// Whether permits are leased.
const MODE: [(&str, bool); 2] = [("direct", false), ("leased", true)];
const OVERFLOW: [(&str, Overflow); 3] = [
    ("evict", Overflow::Evict),
    ("deny", Overflow::Deny),
    ("admit", Overflow::Admit),
];

/// The number of keys that a rule has room for, if it does not say.
pub(super) const CAPACITY: u64 = 100_000;
/// Why requests without a key are not banned.
pub(crate) const BAN_OF_ALL: &str = "can't be combined with `missing = \"shared\"`: any client \
    could ban all others without a key; write `missing = \"deny\"` or \"skip\", or no `ban`";
/// Why a rule without a key bans nothing.
pub(crate) const BAN_WITHOUT_KEY: &str = "needs a `key`: a ban is for one key";
/// The most parts of a key.
const MAX_PARTS: usize = 8;

/// What the file says of all rules.
pub(super) struct OfRules<'f> {
    /// The facts that the program supplies, if the file lists them.
    pub(super) facts: Option<&'f [At<String>]>,
    pub(super) network: Networks,
    pub(super) store: StoreOfRules,
}

/// Reads a rule, or a limit that rules name. An invalid field is reported, and treated as absent.
pub(super) fn rule(
    table: Table<'_>,
    is_limit: bool,
    of_rules: &OfRules<'_>,
    problems: &mut Problems,
) -> Rule {
    let facts = of_rules.facts;
    match is_limit {
        true => table.only("a limit", "limit", problems),
        false => table.only("a rule", "rule", problems),
    }
    let name = table.need("name", problems);
    let name = name.and_then(|name| name.name(problems));
    let mut captures = Vec::new();
    let when = match is_limit {
        true => at(Applies::Never, table.position),
        false => applies(&table, facts, &mut captures, problems),
    };
    let allowed = Allowed {
        facts,
        captures: &captures,
        answer: false,
    };
    let mut rule = Rule {
        name: name.unwrap_or_else(|| String::new().into()),
        is_limit,
        when,
        key: key(&table, allowed, problems),
        missing: choice(&table, "missing", &MISSING, problems),
        repeated: choice(&table, "repeated", &REPEATED, problems),
        network: rule_fields::networks(&table, &of_rules.network, problems),
        limits: table
            .get("limit")
            .map_or(Vec::new(), |limit| limit.limits(problems)),
        plan: None,
        overrides: rule_fields::overrides(&table, problems),
        cost: rule_fields::FIXED_COST,
        count: choice(&table, "count", &COUNT, problems),
        failures: failures::read(&table, problems),
        ban: None,
        also: Vec::new(),
        shadow: false,
        status: rule_fields::status(&table, problems),
        capacity: CAPACITY.into(),
        overflow: choice(&table, "overflow", &OVERFLOW, problems),
        store: of_rules.store.store.clone(),
        fallback: None,
        is_leased: choice(&table, "mode", &MODE, problems),
        allowance: None,
        remember: None,
    };
    if !is_limit {
        let what = "the name of a rule or a limit, or a list of names";
        let also = table.get("also");
        rule.also = also.map_or(Vec::new(), |also| also.texts(what, problems));
    }
    if let Some(plan) = table.get("plan") {
        rule.plan = rule_fields::plans(plan, allowed, problems);
    }
    if let Some(cost) = table.get("cost") {
        rule.cost = rule_fields::cost(cost, allowed, problems).unwrap_or(rule.cost);
    }
    if let Some(ban) = table.get("ban") {
        rule.ban = rule_fields::ban(ban, problems);
    }
    if let Some(shadow) = table.get("shadow") {
        rule.shadow = shadow.bool(problems).unwrap_or_default();
    }
    if let Some(capacity) = table.get("capacity") {
        let capacity = capacity.number(1, u64::MAX, problems);
        rule.capacity = capacity.unwrap_or(rule.capacity);
    }
    if let Some(store) = table.get("store") {
        rule.store = store::name(store, problems).unwrap_or(rule.store);
    }
    rule.fallback = match table.get("fallback") {
        Some(fallback) => rule_fields::fallback(fallback, problems),
        None if rule.store.value == REDIS => of_rules.store.fallback.clone(),
        None => None,
    };
    if let Some(allowance) = table.get("allowance") {
        rule.allowance = rule_fields::allowance(allowance, problems);
    }
    if let Some(remember) = table.get("remember") {
        rule.remember = remember.bool(problems);
    }
    together(&table, &rule, of_rules, problems);
    rule
}

fn choice<T: Copy + Default>(
    table: &Table<'_>,
    name: &str,
    choices: &[(&'static str, T)],
    problems: &mut Problems,
) -> T {
    let field = table.get(name);
    let choice = field.and_then(|field| field.choice(choices, problems));
    choice.unwrap_or_default()
}

fn applies(
    table: &Table<'_>,
    facts: Option<&[At<String>]>,
    captures: &mut Vec<String>,
    problems: &mut Problems,
) -> At<Applies> {
    let Some(field) = table.get("when") else {
        return at(Applies::Always, table.position);
    };
    if matches!(&field.node.value, Tree::Text(text) if text == "never") {
        return at(Applies::Never, field.node.position);
    }
    let mut reader = Reader {
        facts,
        captures,
        problems,
    };
    let when = reader.when(field, "a table of conditions, or \"never\"", 1);
    let applies = match when {
        Some(when) if when == When::default() => Applies::Always,
        Some(when) => Applies::When(when),
        None => Applies::Never,
    };
    at(applies, field.node.position)
}

fn key(table: &Table<'_>, allowed: Allowed<'_>, problems: &mut Problems) -> Vec<At<String>> {
    let Some(field) = table.get("key") else {
        return Vec::new();
    };
    let mut key = Vec::new();
    for part in field.texts(
        "the name of a fact or a resolver, or a list of names",
        problems,
    ) {
        match check_or_registered(&part, allowed) {
            // In another spelling.
            Ok(name) if key.iter().any(|known: &At<String>| known.value == name) => {
                refuse_text(&field.place, &part, "must not be given twice", problems);
            }
            Ok(name) => key.push(at(name, part.position)),
            Err(message) => refuse_text(&field.place, &part, message, problems),
        }
    }
    if key.len() > MAX_PARTS {
        field.refuse(format!("must have at most {MAX_PARTS} parts"), problems);
    }
    key
}

/// What is wrong with a rule that has a store, and no fallback.
pub(crate) fn no_fallback(rule: &Rule, has_server: bool) -> String {
    let forms = rule_fields::FALLBACKS;
    let or = match has_server && rule.store.value == REDIS {
        true => ", or [store] says it for all rules that do not",
        false => "",
    };
    format!(
        "is missing; a rule with a `store` says what decides while the store does not answer{or}: \
         {forms}"
    )
}

/// Checks what several fields say together. A field that is there but wrong is reported already,
/// so it is not reported as missing.
fn together(table: &Table<'_>, rule: &Rule, of_rules: &OfRules<'_>, problems: &mut Problems) {
    let has = |name| table.get(name).is_some();
    let bans_failures = (rule.ban.as_ref()).is_some_and(|ban| ban.of == BanOf::Failures);
    match (has("limit"), has("plan")) {
        (true, true) => table.refuse("plan", "can't be combined with `limit`", problems),
        // Its own limit is that of the failures.
        (false, false) if bans_failures => {}
        (false, false) => table.refuse("limit", "is missing; write `limit` or `plan`", problems),
        _ => {}
    }
    if has("ban") && rule.missing == MissingFact::Shared {
        table.refuse("ban", BAN_OF_ALL, problems);
    }
    let has_outcomes = rule.count != CountOf::All || bans_failures;
    if !rule.failures.is_empty() && !has_outcomes && rule.ban.is_some() == has("ban") {
        let message = "needs `count = \"failures\"` or \"successes\", or a `ban` with \
                       `of = \"failures\"`";
        table.refuse("failures", message, problems);
    }
    if has("ban") && !has("key") {
        table.refuse("ban", BAN_WITHOUT_KEY, problems);
    }
    let counts_only_running =
        |limit: &At<String>| is_concurrency(limit) || Fixed::of(limit).is_some();
    let all_running = !rule.limits.is_empty()
        && rule.overrides.is_empty()
        && rule.limits.iter().all(counts_only_running);
    if has("ban") && !bans_failures && all_running {
        let message =
            "needs a limit that has a period: `concurrency`, `unlimited` and `0` have none";
        table.refuse("ban", message, problems);
    }
    if has("fallback") && rule.store.value == MEMORY {
        let message = "needs a `store` other than \"memory\", which always answers";
        table.refuse("fallback", message, problems);
    }
    if has("mode") && rule.store.value == MEMORY {
        let message = "needs a `store` other than \"memory\", which needs no call";
        table.refuse("mode", message, problems);
    }
    // A mode that is wrong is reported already.
    let is_direct = |mode: Field<'_>| matches!(&mode.node.value, Tree::Text(it) if it == "direct");
    let may_be_leased = table.get("mode").is_some_and(|mode| !is_direct(mode));
    if has("allowance") && !may_be_leased {
        table.refuse("allowance", "needs `mode = \"leased\"`", problems);
    }
    if has("allowance") && has("ban") {
        let message = "can't be combined with `ban`: other processes would learn of a ban too late";
        table.refuse("allowance", message, problems);
    }
    let plans = rule.plan.iter().flat_map(|plan| &plan.limits);
    let plans = plans.map(|(_, limit)| limit);
    let overrides = rule.overrides.iter().map(|own| &own.limit);
    let mut limits = rule.limits.iter().chain(plans).chain(overrides);
    let has_limits = !rule.limits.is_empty() || rule.plan.is_some();
    if has("allowance") && has_limits && limits.all(counts_only_running) {
        let message =
            "needs a limit that has a period: `concurrency`, `unlimited` and `0` have none";
        table.refuse("allowance", message, problems);
    }
    if has("remember") && rule.store.value == MEMORY {
        let message = "needs a `store` other than \"memory\", which needs no call";
        table.refuse("remember", message, problems);
    }
    if !has("fallback") && rule.fallback.is_none() && rule.store.value != MEMORY {
        let message = no_fallback(rule, of_rules.store.has_server);
        table.refuse("fallback", message, problems);
    }
    if has("override") && !has("key") {
        table.refuse("override", "needs a `key`", problems);
    }
    if let (Some(plan), true) = (&rule.plan, has("override")) {
        if plan.limits.len() > rule_fields::MAX_PLANS - 1 {
            let message = format!(
                "can't be combined with {} plans: with overrides, a rule has at most {}",
                plan.limits.len(),
                rule_fields::MAX_PLANS - 1
            );
            table.refuse("override", message, problems);
        }
    }
    if has("key") && !rule.key.is_empty() {
        overrides::check(table, rule, problems);
    }
}
