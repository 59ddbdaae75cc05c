//! Warns of policies that can be used but probably do not do what was meant.

use std::collections::{HashMap, HashSet};

use crate::choose::Chooser;
use crate::compile::check_possible;
use crate::file::{Applies, BanOf, PolicyFile, Rule};
use crate::limit::{Fixed, is_concurrency, limits_with_state};

use crate::parse::REDIS;
use crate::problem::{Problem, Problems, quoted, short_number};

use super::report::{is_in_memory, warn};
use super::{costs, covered, exceptions, names, tighter};

/// The most conditions that no index finds.
const MAX_UNINDEXED: usize = 64;
/// The bytes of a table for each key of its capacity.
const KEY_BYTES: u128 = 24;
/// The most bytes that the limit of a single key takes.
const OVERRIDE_BYTES: u128 = 1400;

/// Returns the warnings of a policy: rules that can never match, limits that never deny because
/// another one always does first, limits that no rule names, costs that no limit grants, names that
/// are probably misspelled, exceptions that a `*` in a path leaves without effect, tables that take
/// more memory than the policy allows, a secret that no store uses, a server that no rule uses, a
/// server's password in the file, a trust in every address, permits of leases that come back too
/// late, and conditions under which more limits apply to one request than decide together at once.
///
/// Warnings are certain for requests with one value a fact, but some problems get no warning.
///
/// ```
/// use tollgate_policy::file::PolicyFile;
///
/// let file = PolicyFile::from_toml("[[rule]]\nname = 'api'\nlimit = ['10/s', '1000/min']\n")?;
/// assert_eq!(
///     tollgate_policy::warnings(&file).to_string(),
///     "3:18: warning: rule \"api\": limit is \"1000/min\", but never denies a request: \
///      \"10/s\" of rule \"api\" always denies it first"
/// );
/// # Ok::<(), tollgate_policy::Problems>(())
/// ```
#[must_use]
pub fn warnings(file: &PolicyFile) -> Problems {
    warnings_with(file, |_| false)
}

/// Returns the warnings of a policy whose program registers some names.
pub(crate) fn warnings_with(file: &PolicyFile, is_registered: impl Fn(&str) -> bool) -> Problems {
    let mut problems = Problems::new();
    let has_rules = file.rules.iter().any(|rule| !rule.is_limit);
    if !has_rules && file.deny.is_empty() && !file.no_rules {
        let message = "the policy has no rules, so it limits nothing";
        problems.push(Problem::warning("", "", message));
    }
    clients(file, &mut problems);
    server(file, &mut problems);
    covered::check(file, &mut problems);
    exceptions::check(file, &mut problems);
    names::check(file, is_registered, &mut problems);
    unused(file, &mut problems);
    memory(file, &mut problems);
    secret(file, &mut problems);
    unindexed(file, &mut problems);
    let names: HashMap<&str, &Rule> = file
        .rules
        .iter()
        .map(|rule| (rule.name.as_str(), rule))
        .collect();
    for rule in &file.rules {
        tighter::check(rule, &names, &mut problems);
        costs::check(rule, &mut problems);
        late(rule, &mut problems);
        if let (true, Some(first)) = (rule.shadow, rule.also.first()) {
            let message = "has no effect: a shadow rule never denies";
            warn(rule, "also", "", message, first.position, &mut problems);
        }
    }
    tighter::check_all(file, &mut problems);
    check_possible(file, &mut problems);
    problems
}

/// Warns of each limit that no rule names in `also`, and of each rule with `when = "never"` that
/// none names.
fn unused(file: &PolicyFile, problems: &mut Problems) {
    let also = file.rules.iter().flat_map(|rule| &rule.also);
    let named: HashSet<&str> = also.map(|name| name.as_str()).collect();
    for rule in &file.rules {
        let (field, value, position) = match rule.is_limit {
            true => ("name", quoted(&rule.name), rule.name.position),
            false => ("when", "\"never\"".into(), rule.when.position),
        };
        if rule.when.value == Applies::Never && !named.contains(rule.name.as_str()) {
            let message = "no rule names it in `also`, so it never applies";
            warn(rule, field, &value, message, position, problems);
        }
    }
}

/// Warns of a leased rate to which requests give permits back: for a busy key, the store is told
/// before that they are spent.
fn late(rule: &Rule, problems: &mut Problems) {
    let plans = rule.plan.iter().flat_map(|plan| &plan.limits);
    let plans = plans.map(|(_, limit)| limit);
    let overrides = rule.overrides.iter().map(|own| &own.limit);
    let mut limits = rule.limits.iter().chain(plans).chain(overrides);
    let mut has_rate = || limits.any(|text| !is_concurrency(text) && Fixed::of(text).is_none());
    if rule.is_leased && rule.gives_back() && has_rate() {
        let field = match rule.cost.settle {
            Some(_) => "`settle`",
            None => "`count`",
        };
        let message = format!(
            "{field} gives permits back when a request is done, and of a busy key they stay taken \
             then; write \"direct\""
        );
        let position = rule.name.position;
        warn(rule, "mode", "\"leased\"", message, position, problems);
    }
}

/// Warns if the tables take more memory than the policy says.
fn memory(file: &PolicyFile, problems: &mut Problems) {
    let Some(memory) = &file.memory else {
        return;
    };
    let bytes: u128 = file.rules.iter().map(table_bytes).sum();
    if bytes > memory.value.into() {
        let mib = |bytes: u128| bytes.div_ceil(1 << 20);
        let mut message = format!("the tables of the rules take about {} MiB", mib(bytes));
        let largest = file.rules.iter().max_by_key(|rule| table_bytes(rule));
        if let (Some(rule), true) = (largest, file.rules.len() > 1) {
            let (name, bytes) = (rule.title(), mib(table_bytes(rule)));
            message += &format!("; those of {name} take the most, about {bytes} MiB");
        }
        let value = short_number(memory.value);
        problems.push(Problem::warning("memory", value, message).at(memory.position));
    }
}

/// Warns of a trusted network that has every address.
fn clients(file: &PolicyFile, problems: &mut Problems) {
    if file.client.hops.is_some() {
        // A client can't add proxies.
        return;
    }
    let trust = file.client.trust.iter().flatten();
    for network in trust.filter(|network| network.prefix_len() == 0) {
        let message = "trusts every address, so each client says which address it has; write the \
                       networks of the proxies, or `hops`";
        let value = quoted(&network.to_string());
        let problem = Problem::warning("client.trust", value, message);
        problems.push(problem.at(network.position));
    }
}

/// Warns of a server that no rule uses, and of its password in the file.
fn server(file: &PolicyFile, problems: &mut Problems) {
    let Some(server) = &file.store else {
        return;
    };
    let mut warn = |field: &str, message: &str| {
        problems.push(Problem::warning(field, "", message).at(server.redis.position));
    };
    if !file.rules.iter().any(|rule| rule.store.value == REDIS) {
        warn("store", "has no effect: no rule is on the store \"redis\"");
    }
    if server.shows_password() {
        let message = "has a password in clear text; write the URL into a variable of the \
                       environment, such as REDIS_URL, and here `redis = { env = \"REDIS_URL\" }`";
        warn("store.redis", message);
    }
}

/// Warns of a secret that no store uses.
fn secret(file: &PolicyFile, problems: &mut Problems) {
    let Some(secret) = &file.key_secret else {
        return;
    };
    if file.rules.iter().all(is_in_memory) {
        let message = "has no effect: all rules are in memory";
        problems.push(Problem::warning("key-secret", "", message).at(secret.position));
    }
}

/// Returns about how many bytes the tables of a rule take.
fn table_bytes(rule: &Rule) -> u128 {
    if rule.key.is_empty() || !is_in_memory(rule) {
        return 0;
    }
    let tables = limits_with_state(rule) as u128;
    // A ban counts denials in a table, and keeps the banned keys in another.
    let of_ban = match rule.ban.as_ref().map(|ban| ban.of) {
        None => 0,
        Some(BanOf::Denials) => 2,
        // And the requests that may fail.
        Some(BanOf::Failures) => 3,
    };
    let tables = tables + of_ban;
    let overrides = rule.overrides.len() as u128 * OVERRIDE_BYTES;
    tables * u128::from(rule.capacity.value) * KEY_BYTES + overrides
}

/// Warns if too many conditions have to be tested one by one.
fn unindexed(file: &PolicyFile, problems: &mut Problems) {
    let count = Chooser::of(file).matcher.unindexed();
    if count > MAX_UNINDEXED {
        let message = format!(
            "{count} rules have only conditions that are tested one by one, such as globs without \
             a fixed beginning or end; more than {MAX_UNINDEXED} make each request slower"
        );
        problems.push(Problem::warning("", "", message));
    }
}
