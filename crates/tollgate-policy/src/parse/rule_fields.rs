//! Reads the parts of a rule that are tables of their own.

use super::fact::{Allowed, check_or_registered, fact};
use super::field::{Field, refuse_text};
use super::fields;
use super::nearest::known_names;
use super::table::Table;
use super::tree::{Tree, at};
use crate::file::{Allowance, At, Ban, BanOf, Cost, Fallback, Networks, Override, Plans};
use crate::problem::Problems;
use crate::rule::failure::BAN_OF_FAILURES;

/// The most plans of a rule. Overrides count as one more.
pub(crate) const MAX_PLANS: usize = 8;

/// The cost of requests, if a rule says nothing.
pub(super) const FIXED_COST: Cost = Cost {
    estimate: None,
    default: nowhere(1),
    min: nowhere(1),
    max: None,
    settle: None,
};

/// The bits of an address that count, if a rule says nothing.
pub(super) const NETWORKS: Networks = Networks {
    v4: nowhere(32),
    v6: nowhere(64),
};

/// Returns a value that the file does not say.
const fn nowhere<T: Copy>(value: T) -> At<T> {
    At {
        value,
        position: None,
    }
}

pub(super) fn plans(
    field: Field<'_>,
    allowed: Allowed<'_>,
    problems: &mut Problems,
) -> Option<At<Plans>> {
    let table = Table::of(field, "a table of plans", problems)?;
    let by = table.need("by", problems);
    let by = by.and_then(|by| Some((by, by.text("the name of a fact or a lookup", problems)?)));
    let by = by.and_then(|(field, name)| match check_or_registered(&name, allowed) {
        Ok(value) => Some(at(value, name.position)),
        Err(message) => {
            field.refuse(message, problems);
            None
        }
    });
    let default = table.get("default");
    let default = default.and_then(|plan| plan.text("a plan's name", problems));
    let mut limits = Vec::new();
    let mut count = 0;
    for (name, node) in table.entries {
        if fields::of("plan").contains(&name.as_str()) {
            continue;
        }
        count += 1;
        let place = table.place.field(name);
        let field = Field { node, place };
        if name.is_empty() || name.chars().any(char::is_control) || name.chars().count() > 64 {
            let message = "must be a plan's name of 1 to 64 characters, without control characters";
            refuse_text(&table.place, name, message, problems);
        } else if let Some(limit) = field.limit("the text of a limit", problems) {
            limits.push((name.clone(), limit));
        }
    }
    if count == 0 || count > MAX_PLANS {
        let message = format!("must have 1 to {MAX_PLANS} plans, not {count}");
        field.refuse(message, problems);
    }
    if let Some(default) = &default {
        if table.get(default).is_none() || fields::of("plan").contains(&default.as_str()) {
            let names = limits.iter().map(|(name, _)| name.as_str());
            let message = format!("must be one of the plans{}", known_names(default, names));
            refuse_text(&table.place.field("default"), default, message, problems);
        }
    }
    let plans = Plans {
        by: by?,
        limits,
        default,
    };
    Some(at(plans, table.position))
}

pub(super) fn overrides(table: &Table<'_>, problems: &mut Problems) -> Vec<Override> {
    let Some(field) = table.get("override") else {
        return Vec::new();
    };
    let mut overrides = Vec::new();
    let list = field.list("a list of tables with `key` and `limit`", problems);
    for (index, node) in list.iter().enumerate() {
        let place = field.place.element(index);
        let what = "a table with `key` and `limit`";
        let Some(table) = Table::of(Field { node, place }, what, problems) else {
            continue;
        };
        table.only("an override", "override", problems);
        let key = table.need("key", problems);
        let key = key.and_then(|key| override_key(key, problems));
        let limit = table.need("limit", problems);
        let limit = limit.and_then(|limit| limit.limit("the text of a limit", problems));
        // An invalid override stays in the list, because later messages say positions in it.
        overrides.push(Override {
            key: key.unwrap_or_else(|| Vec::new().into()),
            limit: limit.unwrap_or_else(|| String::new().into()),
        });
    }
    overrides
}

/// Reads a value for each part of a key.
fn override_key(field: Field<'_>, problems: &mut Problems) -> Option<At<Vec<String>>> {
    let mut key = Vec::new();
    for node in field.one_or_more(problems) {
        match node.as_plain() {
            Some(part) => key.push(part),
            None => {
                let message = "must be text, or a list with a text for each part of the key";
                field.with(node).refuse(message, problems);
                return None;
            }
        }
    }
    Some(at(key, field.node.position))
}

pub(super) fn cost(
    field: Field<'_>,
    allowed: Allowed<'_>,
    problems: &mut Problems,
) -> Option<Cost> {
    match &field.node.value {
        Tree::Integer(_) => {
            let default = field.number(1, u64::MAX, problems)?;
            return Some(Cost {
                default,
                ..FIXED_COST
            });
        }
        Tree::Text(_) => {
            let estimate = fact(field, allowed, problems)?;
            return Some(Cost {
                estimate: Some(estimate),
                ..FIXED_COST
            });
        }
        _ => {}
    }
    let what =
        "a number, a fact's name, or a table with `estimate`, `default`, `min`, `max` and `settle`";
    let table = Table::of(field, what, problems)?;
    table.only("a cost", "cost", problems);
    let estimate = table.get("estimate");
    let estimate = estimate.and_then(|name| fact(name, allowed, problems));
    let answer = Allowed {
        answer: true,
        ..allowed
    };
    let settle = table.get("settle");
    let settle = settle.and_then(|name| fact(name, answer, problems));
    let default = table.get("default");
    let default = default.and_then(|number| number.number(1, u64::MAX, problems));
    let min = table.get("min");
    let min = min.and_then(|number| number.number(0, u64::MAX, problems));
    let min = min.unwrap_or(FIXED_COST.min);
    let max = table.get("max");
    let max = max.and_then(|number| number.number(min.value.max(1), u64::MAX, problems));
    Some(Cost {
        estimate,
        default: default.unwrap_or(FIXED_COST.default),
        min,
        max,
        settle,
    })
}

const BAN_OF: [(&str, BanOf); 2] = [("denials", BanOf::Denials), ("failures", BanOf::Failures)];

pub(super) fn ban(field: Field<'_>, problems: &mut Problems) -> Option<At<Ban>> {
    let table = Table::of(
        field,
        "a table with `after`, `of`, `for` and `within`",
        problems,
    )?;
    table.only("a ban", "ban", problems);
    let after = table.need("after", problems);
    let after = after.and_then(|number| number.number(1, u64::MAX, problems));
    let of = table.get("of").map(|of| of.choice(&BAN_OF, problems));
    let of = of.unwrap_or(Some(BanOf::Denials));
    let duration = match (of, table.get("for")) {
        (Some(BanOf::Denials), None) => {
            table.need("for", problems);
            None
        }
        (_, None) => Some(nowhere(BAN_OF_FAILURES)),
        (_, Some(time)) => time.duration(problems),
    };
    let within = table.get("within");
    let within = within.and_then(|time| time.duration(problems));
    let ban = Ban {
        after: after?,
        of: of?,
        duration: duration?,
        within,
    };
    Some(at(ban, table.position))
}

/// Reads the number by which a denial is answered.
pub(super) fn status(table: &Table<'_>, problems: &mut Problems) -> Option<At<u16>> {
    let field = table.get("status")?;
    let number = match field.node.value {
        Tree::Integer(number) => u16::try_from(number).ok(),
        _ => None,
    };
    let status = number.filter(|number| (400..=599).contains(number));
    if status.is_none() {
        field.refuse("must be a whole number from 400 to 599", problems);
    }
    Some(at(status?, field.node.position))
}

/// Reads how many bits of an address count. `unless` says it for bits that are not given.
pub(super) fn networks(table: &Table<'_>, unless: &Networks, problems: &mut Problems) -> Networks {
    let mut networks = unless.clone();
    let Some(field) = table.get("network") else {
        return networks;
    };
    let Some(table) = Table::of(field, "a table with `v4` and `v6`", problems) else {
        return networks;
    };
    table.only("a network", "network", problems);
    for (name, most, bits) in [("v4", 32, &mut networks.v4), ("v6", 128, &mut networks.v6)] {
        let number = table.get(name);
        let number = number.and_then(|number| number.number(1, most, problems));
        if let Some((number, value)) =
            number.and_then(|n| Some((n.position, n.value.try_into().ok()?)))
        {
            *bits = at(value, number);
        }
    }
    networks
}

/// The forms of a fallback.
pub(super) const FALLBACKS: &str = "\"closed\", \"open\", { open = { at_most = 100, per = \"1m\" } } or \
     { local = { processes = 4, keys = 10000 } }";

pub(super) fn fallback(field: Field<'_>, problems: &mut Problems) -> Option<At<Fallback>> {
    let position = field.node.position;
    let fallback = match &field.node.value {
        Tree::Text(text) if text == "closed" => Fallback::Closed,
        Tree::Text(text) if text == "open" => Fallback::Open,
        _ => {
            let table = Table::of(field, FALLBACKS, problems)?;
            table.only("a fallback", "fallback", problems);
            match (table.get("open"), table.get("local")) {
                (Some(open), None) => open_at_most(open, problems)?,
                (None, Some(local)) => local_share(local, problems)?,
                _ => {
                    field.refuse(format!("must be {FALLBACKS}"), problems);
                    return None;
                }
            }
        }
    };
    Some(at(fallback, position))
}

fn open_at_most(field: Field<'_>, problems: &mut Problems) -> Option<Fallback> {
    let table = Table::of(field, "a table with `at_most`, and `per` or not", problems)?;
    table.only("an open fallback", "fallback.open", problems);
    let at_most = table.need("at_most", problems);
    let at_most = at_most.and_then(|number| number.number(1, u64::MAX, problems));
    let per = table.get("per").map(|per| per.duration(problems));
    Some(Fallback::OpenAtMost {
        at_most: at_most?,
        per: per.map_or(Some(None), |per| per.map(Some))?,
    })
}

pub(super) fn allowance(field: Field<'_>, problems: &mut Problems) -> Option<At<Allowance>> {
    let position = field.node.position;
    let what = "a table with `percent`, `processes` and `keys`";
    let table = Table::of(field, what, problems)?;
    table.only("an allowance", "allowance", problems);
    let [percent, processes, keys] = [
        ("percent", 99),
        ("processes", u64::from(u32::MAX)),
        ("keys", u64::MAX),
    ]
    .map(|(name, most)| {
        let number = table.need(name, problems);
        number.and_then(|number| number.number(1, most, problems))
    });
    let allowance = Allowance {
        percent: percent?,
        processes: processes?,
        keys: keys?,
    };
    Some(at(allowance, position))
}

fn local_share(field: Field<'_>, problems: &mut Problems) -> Option<Fallback> {
    let table = Table::of(field, "a table with `processes` and `keys`", problems)?;
    table.only("a local fallback", "fallback.local", problems);
    let processes = table.need("processes", problems);
    let processes = processes.and_then(|number| number.number(1, u64::from(u32::MAX), problems));
    let keys = table.need("keys", problems);
    let keys = keys.and_then(|number| number.number(1, u64::MAX, problems));
    Some(Fallback::Local {
        processes: processes?,
        keys: keys?,
    })
}
