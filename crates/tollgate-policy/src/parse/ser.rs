//! Writes a policy as a tree, which serde can write.

use std::time::Duration;

use serde::{Serialize, Serializer};
use tollgate::Quota;

use super::failures;
use super::fields::{Fields, many, one_or_more};
use super::parts::FIXED_COST;
use super::parts::{BAN_OF, NETWORKS};
use super::rule::{CAPACITY, COUNT, MEMORY, MISSING, OVERFLOW, REPEATED};
use super::secret::KEY_SECRET;
use super::top::APPLY;
use super::tree::Tree;
use super::write_when;
use crate::file::{
    Applies, At, Ban, Cost, Entry, Fallback, KeySecret, Networks, Override, Plans, PolicyFile, Rule,
};

/// Writes the fields that differ from their defaults. What is written is read as the same policy.
impl Serialize for PolicyFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        file(self).serialize(serializer)
    }
}

fn text(text: &At<String>) -> Tree {
    Tree::text(text.as_str())
}

fn number(number: &At<u64>) -> Tree {
    Tree::Integer(number.value.into())
}

fn status(status: &At<u16>) -> Tree {
    Tree::Integer(status.value.into())
}

/// Writes a length of time as quotas do, with the number always.
fn duration(duration: &At<Duration>) -> Tree {
    let quota = Quota::per(1, duration.value).to_string();
    let period = quota.strip_prefix("1/").unwrap_or(&quota);
    let one = match period.starts_with(|c: char| c.is_ascii_digit()) {
        true => "",
        false => "1",
    };
    Tree::Text(format!("{one}{period}"))
}

fn file(file: &PolicyFile) -> Tree {
    let mut fields = Fields::default();
    fields.push_choice("apply", &APPLY, file.apply);
    fields.push_some("memory", file.memory.as_ref(), number);
    fields.push_some("facts", file.facts.as_ref(), |facts| many(facts, text));
    fields.push_some(KEY_SECRET, file.key_secret.as_ref(), |it| secret(it));
    fields.push_if(!file.deny.is_empty(), "deny", || many(&file.deny, entry));
    fields.push_if(!file.allow.is_empty(), "allow", || many(&file.allow, entry));
    fields.push_if(!file.rules.is_empty(), "rule", || many(&file.rules, rule));
    fields.table()
}

fn secret(secret: &KeySecret) -> Tree {
    match secret {
        KeySecret::Text(secret) => Tree::text(secret.reveal()),
        KeySecret::Env(name) => Fields::default()
            .with("env", Tree::text(name.as_str()))
            .table(),
    }
}

fn entry(entry: &Entry) -> Tree {
    let fields = Fields::default().with("name", text(&entry.name));
    let mut fields = fields.with("when", write_when::when(&entry.when));
    fields.push_some("status", entry.status.as_ref(), status);
    fields.table()
}

fn rule(rule: &Rule) -> Tree {
    let mut fields = Fields::default().with("name", text(&rule.name));
    match &rule.when.value {
        Applies::Always => {}
        Applies::Never => fields.push("when", Tree::text("never")),
        Applies::When(when) => fields.push("when", write_when::when(when)),
    }
    let texts = |list: &Vec<At<String>>| one_or_more(list, text);
    fields.push_if(!rule.key.is_empty(), "key", || texts(&rule.key));
    fields.push_choice("missing", &MISSING, rule.missing);
    fields.push_choice("repeated", &REPEATED, rule.repeated);
    let is_default = rule.network == NETWORKS;
    fields.push_if(!is_default, "network", || networks(&rule.network));
    fields.push_if(!rule.limits.is_empty(), "limit", || texts(&rule.limits));
    fields.push_some("plan", rule.plan.as_ref(), |plan| plans(plan));
    fields.push_if(!rule.overrides.is_empty(), "override", || {
        many(&rule.overrides, own)
    });
    fields.push_if(rule.cost != FIXED_COST, "cost", || cost(&rule.cost));
    fields.push_choice("count", &COUNT, rule.count);
    fields.push_if(!rule.failures.is_empty(), "failures", || {
        one_or_more(&rule.failures, |failure| failures::write(failure.value))
    });
    fields.push_some("ban", rule.ban.as_ref(), |value| ban(value));
    fields.push_if(!rule.also.is_empty(), "also", || texts(&rule.also));
    fields.push_if(rule.shadow, "shadow", || Tree::Bool(true));
    fields.push_some("status", rule.status.as_ref(), status);
    let has_capacity = rule.capacity.value != CAPACITY;
    fields.push_if(has_capacity, "capacity", || number(&rule.capacity));
    fields.push_choice("overflow", &OVERFLOW, rule.overflow);
    let has_store = rule.store.value != MEMORY;
    fields.push_if(has_store, "store", || text(&rule.store));
    fields.push_some("fallback", rule.fallback.as_ref(), |value| fallback(value));
    fields.table()
}

fn networks(networks: &Networks) -> Tree {
    let bits = |bits: &At<u8>| Tree::Integer(bits.value.into());
    let fields = Fields::default().with("v4", bits(&networks.v4));
    fields.with("v6", bits(&networks.v6)).table()
}

fn plans(plans: &Plans) -> Tree {
    let mut fields = Fields::default().with("by", text(&plans.by));
    for (name, limit) in &plans.limits {
        fields.push(name, text(limit));
    }
    fields.push_some("default", plans.default.as_ref(), text);
    fields.table()
}

fn own(own: &Override) -> Tree {
    let key = one_or_more(&own.key, |part| Tree::text(part.as_str()));
    let fields = Fields::default().with("key", key);
    fields.with("limit", text(&own.limit)).table()
}

fn cost(cost: &Cost) -> Tree {
    let mut fields = Fields::default();
    let estimate = cost.estimate.as_ref();
    fields.push_some("estimate", estimate, |fact| Tree::text(fact.as_str()));
    fields.push("default", number(&cost.default));
    fields.push_if(cost.min.value != 1, "min", || number(&cost.min));
    fields.push_some("max", cost.max.as_ref(), number);
    fields.push_some("settle", cost.settle.as_ref(), |fact| {
        Tree::text(fact.as_str())
    });
    fields.table()
}

fn ban(ban: &Ban) -> Tree {
    let mut fields = Fields::default()
        .with("after", number(&ban.after))
        .with("for", duration(&ban.duration));
    fields.push_choice("of", &BAN_OF, ban.of);
    fields.push_some("within", ban.within.as_ref(), duration);
    fields.table()
}

fn fallback(fallback: &Fallback) -> Tree {
    match fallback {
        Fallback::Closed => Tree::text("closed"),
        Fallback::Open => Tree::text("open"),
        Fallback::OpenAtMost { at_most, per } => {
            let mut open = Fields::default().with("at_most", number(at_most));
            open.push_some("per", per.as_ref(), duration);
            Fields::default().with("open", open.table()).table()
        }
        Fallback::Local { processes, keys } => {
            let local = Fields::default().with("processes", number(processes));
            let local = local.with("keys", number(keys));
            Fields::default().with("local", local.table()).table()
        }
    }
}
