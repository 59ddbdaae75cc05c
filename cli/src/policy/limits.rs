//! The names and limits that a program would refuse.

use tollgate::AnyAlgorithm;
use tollgate_policy::file::{At, PolicyFile, Rule};
use tollgate_policy::{Problem, Problems};

use super::check::Registered;

/// The stores that `tollgate-policy` and `tollgate-redis` know.
const STORES: [&str; 2] = ["memory", "redis"];

/// Returns the errors that a program reports when it builds the policy.
pub(super) fn errors(file: &PolicyFile, registered: &Registered) -> Problems {
    let mut problems = file.check_facts(|name| registered.facts.iter().any(|known| known == name));
    for rule in &file.rules {
        store(rule, registered, &mut problems);
        // Another store reads its limits itself.
        if rule.store.value == STORES[0] {
            limits(rule, registered, &mut problems);
        }
    }
    problems
}

fn store(rule: &Rule, registered: &Registered, problems: &mut Problems) {
    let own = registered.stores.iter().map(String::as_str);
    let known: Vec<_> = STORES.into_iter().chain(own).collect();
    if !known.contains(&rule.store.as_str()) {
        let message = format!("must be a store; known: {}", known.join(", "));
        refuse(rule, "store", &rule.store, &message, problems);
    }
}

fn limits(rule: &Rule, registered: &Registered, problems: &mut Problems) {
    let mut check = |field: &str, limit: &At<String>| {
        if let Err(message) = read(limit, registered) {
            refuse(rule, field, limit, &message, problems);
        }
    };
    for limit in &rule.limits {
        check("limit", limit);
    }
    for (name, limit) in rule.plan.iter().flat_map(|plan| &plan.limits) {
        check(&format!("plan.{}", name.as_str()), limit);
    }
    for own in &rule.overrides {
        check("override.limit", &own.limit);
    }
}

fn read(limit: &str, registered: &Registered) -> Result<(), String> {
    let limit = limit.trim();
    let (name, rest) = limit.split_once(char::is_whitespace).unwrap_or((limit, ""));
    if registered.algorithms.iter().any(|known| known == name) {
        return Ok(());
    }
    if name == "concurrency" {
        let requests = rest.trim().replace('_', "").parse::<u64>();
        let message = "must be followed by the number of requests, as in `concurrency 50`";
        return requests.map(|_| ()).map_err(|_| message.to_owned());
    }
    let read = limit.parse::<AnyAlgorithm>();
    read.map(|_| ())
        .map_err(|error| format!("can't be read: {error}"))
}

fn refuse(rule: &Rule, field: &str, value: &At<String>, message: &str, problems: &mut Problems) {
    let field = format!("rule {:?}: {field}", rule.name.as_str());
    let shown = format!("{:?}", value.as_str());
    problems.push(Problem::error(field, shown, message).at(value.position));
}
