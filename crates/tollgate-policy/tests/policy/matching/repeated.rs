//! Random policies and requests whose facts have several values, against a model that goes through
//! all values of all conditions.

use std::collections::HashMap;

use tollgate_policy::explain::Explanation;
use tollgate_policy::file::{Applies, Apply, Entry, MissingFact, PolicyFile, Repeated, Rule};
use tollgate_policy::when::{Condition, Test, When};
use tollgate_policy::{FactName, FactValue, FactValues, Facts, Policy, Reason, explain};

use crate::matching::random::{Random, request, when};

/// A request: the values of each fact, and whether there can be more.
#[derive(Debug)]
struct Request(Vec<(FactName, Vec<FactValue<'static>>, bool)>);

impl Request {
    fn random(random: &mut Random) -> Self {
        let names = [
            "method",
            "host",
            "client-ip",
            "header:x-key",
            "query:q",
            "user",
        ];
        let repeats = random.one_in(2);
        let facts = names.map(FactName::new).map(|name| {
            let count = if repeats { 1 + random.below(3) } else { 1 };
            let values = (0..count).filter_map(|_| owned(&request(random), &name));
            let values: Vec<_> = values.collect();
            let more = repeats && random.one_in(12);
            (name, values, more)
        });
        let path = FactName::new("path");
        let mut facts = Vec::from(facts);
        let one = owned(&request(random), &path);
        facts.push((path, one.into_iter().collect(), false));
        Self(facts)
    }

    fn known(&self, name: &FactName) -> (&[FactValue<'static>], bool) {
        let found = self.0.iter().find(|(known, ..)| known == name);
        found.map_or((&[], false), |(_, values, more)| (values, *more))
    }
}

fn owned(facts: &impl Facts, name: &FactName) -> Option<FactValue<'static>> {
    Some(match facts.fact(name)? {
        FactValue::Text(text) => text.into_owned().into(),
        FactValue::Address(address) => address.into(),
        FactValue::Number(number) => number.into(),
        other => panic!("{other:?}"),
    })
}

impl Facts for Request {
    fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
        self.values(name).single()
    }

    fn values(&self, name: &FactName) -> FactValues<'_> {
        let (known, more) = self.known(name);
        let values = FactValues::of(known.iter().cloned());
        if more { values.and_more() } else { values }
    }
}

/// A request that has one value of one fact.
struct Single<'r>(&'r FactName, Option<&'r FactValue<'static>>);

impl Facts for Single<'_> {
    fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
        (self.0 == name).then(|| self.1.cloned()).flatten()
    }
}

/// Whether conditions hold for any value, or for each. Unknown values may be anything, or are left
/// out.
fn holds(when: &When, request: &Request, each: bool, unknown: bool) -> bool {
    let condition = |it: &Condition| {
        let (known, more) = request.known(&it.fact);
        let holds = |value| it.holds(&Single(&it.fact, value));
        let mut outcomes: Vec<bool> = known.iter().map(|value| holds(Some(value))).collect();
        if more && unknown {
            // A further value, or none, can be anything. But what is there stays there.
            match (&it.test, known.is_empty()) {
                (Test::Present, false) => {}
                (Test::Absent, false) => {}
                _ => outcomes.extend([true, false]),
            }
        } else if known.is_empty() {
            outcomes.push(holds(None));
        }
        match each {
            true => outcomes.iter().all(|it| *it),
            false => outcomes.iter().any(|it| *it),
        }
    };
    when.all.iter().all(condition)
        && (when.any.is_empty() || when.any.iter().any(|it| holds(it, request, each, unknown)))
        && !when
            .not
            .as_ref()
            .is_some_and(|it| holds(it, request, !each, unknown))
}

/// The decision.
#[derive(Debug, PartialEq)]
enum Decided {
    Listed(String),
    Exempt(String),
    Ambiguous(String),
    Missing(String),
    /// Each rule with its cost and what is left.
    Asked(Vec<(String, u64, u64)>),
}

/// The value of a key's part. `Err` if it is ambiguous.
fn part(name: &str, rule: &Rule, request: &Request) -> Result<Option<String>, ()> {
    let (known, more) = request.known(&FactName::new(name));
    let differ = known.windows(2).any(|pair| pair[0] != pair[1]);
    let value = match rule.repeated {
        Repeated::Deny if differ || more => return Err(()),
        Repeated::First if more && known.is_empty() => return Err(()),
        Repeated::Last if more => return Err(()),
        Repeated::Last => known.last(),
        _ => known.first(),
    };
    Ok(value.map(|value| match value {
        FactValue::Address(address) => format!("address {address}"),
        value => value.as_text().into_owned(),
    }))
}

type Used = HashMap<(String, Vec<Option<String>>), u64>;

fn decide(file: &PolicyFile, request: &Request, used: &mut Used) -> Decided {
    let listed = |list: &[Entry], each| {
        let found = list.iter().find(|it| holds(&it.when, request, each, true));
        found.map(|entry| entry.name.value.clone())
    };
    if let Some(entry) = listed(&file.deny, false) {
        return Decided::Listed(entry);
    }
    if let Some(entry) = listed(&file.allow, true) {
        return Decided::Exempt(entry);
    }
    let mut asked = Vec::new();
    for rule in &file.rules {
        let name = rule.name.value.clone();
        let when = match &rule.when.value {
            Applies::When(when) => when,
            _ => &When::default(),
        };
        if !holds(when, request, false, true) {
            continue;
        }
        if !holds(when, request, false, false) {
            return Decided::Ambiguous(name);
        }
        let parts = rule.key.iter().map(|it| part(it, rule, request));
        let Ok(key) = parts.collect::<Result<Vec<_>, _>>() else {
            return Decided::Ambiguous(name);
        };
        match rule.missing {
            MissingFact::Skip if key.contains(&None) => continue,
            MissingFact::Deny if key.contains(&None) => return Decided::Missing(name),
            _ => {}
        }
        let mut cost = 1;
        if let Some(fact) = &rule.cost.estimate {
            let (known, more) = request.known(fact);
            if more {
                return Decided::Ambiguous(name);
            }
            cost = known
                .iter()
                .filter_map(FactValue::as_number)
                .max()
                .unwrap_or(1)
                .max(1);
        }
        asked.push((name, key, cost));
        if file.apply == Apply::First && holds(when, request, true, true) {
            break;
        }
    }
    let asked = asked.into_iter().map(|(name, key, cost)| {
        let used = used.entry((name.clone(), key)).or_default();
        *used += cost;
        (name, cost, 1_000_000 - *used)
    });
    Decided::Asked(asked.collect())
}

fn real(policy: &Policy, request: &Request) -> Decided {
    let decision = policy.decide(request);
    match decision.reason() {
        Some(Reason::Listed { entry }) => return Decided::Listed(entry.into()),
        Some(Reason::Ambiguous { rule }) => return Decided::Ambiguous(rule.into()),
        Some(Reason::MissingKey { rule }) => return Decided::Missing(rule.into()),
        Some(other) => panic!("{other:?}"),
        None => {}
    }
    if let Some(entry) = decision.exempted_by() {
        return Decided::Exempt(entry.into());
    }
    let asked = decision.asked();
    Decided::Asked(
        asked
            .map(|it| (it.rule().into(), it.cost(), it.remaining()))
            .collect(),
    )
}

fn policy(random: &mut Random) -> PolicyFile {
    let entry = |random: &mut Random, list: &str, index| Entry {
        name: format!("{list} {index}").into(),
        when: nonempty(random),
        status: None,
    };
    let rule = |random: &mut Random, index: usize| {
        let text = format!("[[rule]]\nname = 'rule {index}'\nlimit = '1000000/365d'\n");
        let mut rule = PolicyFile::from_toml(&text).unwrap().rules.remove(0);
        rule.capacity = 1000.into();
        if !random.one_in(6) {
            rule.when = Applies::When(when(random, 2)).into();
        }
        let names = ["header:x-key", "query:q", "user"];
        let names = names.into_iter().filter(|_| random.one_in(3));
        rule.key = names.map(|name| String::from(name).into()).collect();
        rule.missing = [MissingFact::Deny, MissingFact::Skip, MissingFact::Shared][random.below(3)];
        rule.repeated = [Repeated::Deny, Repeated::First, Repeated::Last][random.below(3)];
        if random.one_in(3) {
            rule.cost.estimate = Some(FactName::new("header:x-key").into());
        }
        rule
    };
    PolicyFile {
        apply: if random.one_in(2) {
            Apply::First
        } else {
            Apply::All
        },
        deny: (0..random.below(3))
            .map(|it| entry(random, "deny", it))
            .collect(),
        allow: (0..random.below(3))
            .map(|it| entry(random, "allow", it))
            .collect(),
        rules: (0..1 + random.below(6))
            .map(|it| rule(random, it))
            .collect(),
        ..PolicyFile::default()
    }
}

/// Conditions that not all requests fulfill.
fn nonempty(random: &mut Random) -> When {
    loop {
        let when = when(random, 2);
        if when != When::default() {
            return when;
        }
    }
}

/// Checks that an explanation is about this decision.
#[track_caller]
fn assert_explained(explained: &Explanation, decided: &Decided) {
    let entry = explained.entry.as_ref().map(|entry| &entry.name);
    let rules = explained.rules.iter();
    let mut asks = rules.filter_map(|rule| Some((&rule.name, rule.asks.as_ref()?)));
    match decided {
        Decided::Listed(name) | Decided::Exempt(name) => assert_eq!(entry, Some(name)),
        Decided::Ambiguous(name) | Decided::Missing(name) => {
            let denies = asks.find(|(_, asks)| asks.denies.is_some());
            assert_eq!(denies.map(|(rule, _)| rule), Some(name), "{explained}");
        }
        Decided::Asked(asked) => {
            let explained: Vec<_> = asks
                .map(|(rule, asks)| {
                    assert_eq!(asks.denies, None);
                    (rule, asks.cost.permits)
                })
                .collect();
            let asked = asked.iter().map(|(rule, cost, _)| (rule, *cost));
            assert!(explained.iter().copied().eq(asked), "{explained:?}");
        }
    }
}

#[test]
fn decisions_are_those_of_the_model() {
    let mut random = Random(11);
    let mut counts = [0; 5];
    for _ in 0..400 {
        let file = policy(&mut random);
        let policy = Policy::builder().build(&file).unwrap();
        let mut used = Used::new();
        for _ in 0..20 {
            let request = Request::random(&mut random);
            let expected = decide(&file, &request, &mut used);
            assert_eq!(real(&policy, &request), expected, "{request:#?}\n{file:#?}");
            assert_explained(&explain(&file, &request), &expected);
            let kind = match &expected {
                Decided::Listed(_) => 0,
                Decided::Exempt(_) => 1,
                Decided::Ambiguous(_) => 2,
                Decided::Missing(_) => 3,
                Decided::Asked(_) => 4,
            };
            counts[kind] += 1;
        }
    }
    assert!(counts.iter().all(|count| *count > 200), "{counts:?}");
}
