//! `explain` says what a policy then does.

use std::sync::Arc;

use tollgate::{Denied, ManualClock};
use tollgate_policy::explain::{Applied, Explained, KeyPart, List};
use tollgate_policy::file::PolicyFile;
use tollgate_policy::{Decision, Policy, Problems, Reason, explain};

use crate::guide::lines::Pairs;
use crate::guide::random_policies::{ATTEMPTS, policy, request};
use crate::random::Random;

/// A limit that a request asks: its rule, whether that is in the shadow, the text, the plan, and
/// the cost.
type Ask = (String, bool, String, Option<String>, u64);

/// Reads a policy. Its tables are small.
fn small(text: &str) -> PolicyFile {
    let mut file = PolicyFile::from_toml(text).expect("a policy");
    for rule in &mut file.rules {
        rule.capacity = 64.into();
    }
    file
}

fn build(file: &PolicyFile) -> Result<Policy<ManualClock>, Problems> {
    Policy::builder().clock(ManualClock::new()).build(file)
}

/// Returns the limits that a request asks, by what is explained.
fn explained(rules: &[Explained]) -> Vec<Ask> {
    let mut asks = Vec::new();
    for rule in rules {
        let is_shadow = rule.applies == Applied::Shadow;
        let Some(asked) = &rule.asks else {
            assert_eq!(rule.applies, Applied::No);
            continue;
        };
        let plan = asked.plan.as_ref().map(|plan| plan.name.clone());
        let ask =
            |limit: &str, plan, cost| (rule.name.clone(), is_shadow, limit.into(), plan, cost);
        match asked.denies {
            Some(_) => asks.push(ask("", None, 0)),
            // A decision does not show the limit of an override.
            None if asked.limits == ["unlimited"] => {}
            None if asked.is_override => asks.push(ask("override", None, asked.cost.permits)),
            None => {
                for limit in asked.limits.iter().filter(|limit| *limit != "unlimited") {
                    asks.push(match limit == ATTEMPTS {
                        true => ask(limit, None, 1),
                        false => ask(limit, plan.clone(), asked.cost.permits),
                    });
                }
            }
        }
    }
    asks.sort();
    asks
}

/// Returns the limits that a request asked. Those of overrides that grant something are not shown.
fn asked(decision: &Decision<&Policy<ManualClock>, ManualClock>, rules: &[Explained]) -> Vec<Ask> {
    let is_override = |name: &str| {
        let rule = rules.iter().find(|rule| rule.name == name);
        let asks = rule.and_then(|rule| rule.asks.as_ref());
        asks.is_some_and(|asks| asks.is_override && asks.denies.is_none())
    };
    let asks = decision.asked().map(|asked| {
        let (limit, plan) = match is_override(asked.rule()) {
            true => ("override", None),
            false => (asked.limit(), asked.plan().map(str::to_owned)),
        };
        let rule = asked.rule().to_owned();
        (
            rule,
            asked.is_shadow(),
            limit.to_owned(),
            plan,
            asked.cost(),
        )
    });
    let mut asks: Vec<_> = asks.collect();
    asks.sort();
    asks
}

/// How many policies there are, and how many requests each decides: a million in release.
const SIZES: (usize, usize) = if cfg!(debug_assertions) {
    (1000, 2)
} else {
    (20_000, 50)
};

/// Returns random policies, each as often as it has requests.
fn policies(
    random: &mut Random,
) -> impl Iterator<Item = (Arc<str>, Arc<PolicyFile>, Arc<Policy<ManualClock>>, Pairs)> {
    let (policies, requests) = SIZES;
    (0..policies).flat_map(move |_| {
        let text = policy(random);
        let file = small(&text);
        let built = build(&file).ok().map(Arc::new);
        let (text, file) = (Arc::from(text), Arc::new(file));
        let facts: Vec<_> = (0..requests).map(|_| request(random)).collect();
        let facts = facts.into_iter();
        facts.filter_map(move |it| Some((Arc::clone(&text), Arc::clone(&file), built.clone()?, it)))
    })
}

#[test]
fn a_policy_asks_what_is_explained() {
    let mut random = Random(3);
    let (mut asks, mut refused, mut listed) = (0, 0, 0);
    for (text, file, policy, facts) in policies(&mut random) {
        let explanation = explain(&file, &facts);
        let decision = policy.decide(&facts);
        let context = || format!("{text}\n{facts:?}\n{explanation}\n{decision:?}");
        if let Some(entry) = &explanation.entry {
            let name = Some(entry.name.as_str());
            match entry.list {
                List::Deny => assert_eq!(decision.denied_by(), name, "{}", context()),
                List::Allow => assert_eq!(decision.exempted_by(), name, "{}", context()),
            }
            listed += 1;
            continue;
        }
        assert_eq!(decision.exempted_by(), None, "{}", context());
        let denies = |rule: &Explained| {
            let asks = rule.asks.as_ref();
            rule.applies == Applied::Yes && asks.is_some_and(|asks| asks.denies.is_some())
        };
        match decision.reason() {
            Some(
                Reason::MissingKey { rule }
                | Reason::Ambiguous { rule }
                | Reason::NoPlan { rule }
                | Reason::Limit {
                    rule,
                    denied: Denied::Never { limit: 0, .. },
                },
            ) => {
                let rule = explanation.rules.iter().find(|known| known.name == rule);
                assert!(rule.is_some_and(denies), "{}", context());
                refused += 1;
            }
            Some(Reason::Listed { .. } | Reason::Invalid(_)) => panic!("{}", context()),
            _ => {
                assert!(!explanation.rules.iter().any(denies), "{}", context());
                let asked = asked(&decision, &explanation.rules);
                assert_eq!(asked, explained(&explanation.rules), "{}", context());
                asks += asked.len();
            }
        }
    }
    // Enough of each.
    assert!(
        asks > 300 && refused > 60 && listed > 60,
        "{asks} {refused} {listed}"
    );
}

const KEYS: [&str; 6] = [
    "'client-ip'",
    "'host'",
    "'path'",
    "'path:x'",
    "['user', 'client-ip']",
    "['path:x', 'host', 'tier']",
];

#[test]
fn requests_share_a_limit_if_their_keys_are_explained_alike() {
    let mut random = Random(5);
    let (mut same, mut different) = (0, 0);
    for _ in 0..600 {
        let key = KEYS[random.below(KEYS.len() as u64) as usize];
        let text = format!(
            "[[rule]]\nname = 'r'\nwhen = {{ any = [{{ path = '/a/{{x}}' }}, {{ path = '/**' }}] }}\n\
             key = {key}\nmissing = 'shared'\nlimit = '1/d'\nnetwork = {{ v4 = 24, v6 = 48 }}"
        );
        let file = small(&text);
        let policy = build(&file).expect("a policy");
        let requests = [request(&mut random), request(&mut random)];
        let keys = requests.each_ref().map(|facts| {
            let mut explanation = explain(&file, facts);
            let asks = explanation.rules.remove(0).asks;
            // A key of several values is denied.
            let asks = asks.filter(|asks| asks.denies.is_none());
            asks.map(|asks| asks.key)
        });
        let [Some(first), Some(second)]: [Option<Vec<KeyPart>>; 2] = keys else {
            continue;
        };
        assert!(policy.decide(&requests[0]).is_allowed());
        let is_allowed = policy.decide(&requests[1]).is_allowed();
        assert_eq!(is_allowed, first != second, "{text}\n{requests:?}");
        *(if is_allowed {
            &mut different
        } else {
            &mut same
        }) += 1;
    }
    assert!(same > 60 && different > 60, "{same} {different}");
}

#[test]
fn statuses_are_explained() {
    let file = small(
        "[[deny]]\nname = 'removed'\nwhen = { path = '/v1' }\nstatus = 410\n\
         [[rule]]\nname = 'all'\nlimit = '9/s'\nstatus = 503\n",
    );
    let explained = |path| explain(&file, &[("path", path)]).to_string();
    assert_eq!(
        explained("/v1"),
        "denied by removed, an entry of the list `deny`, with status 410"
    );
    assert_eq!(
        explained("/v2"),
        "asks all\nall: applies: it has no conditions; key: none; limit: 9/s; cost: 1; status: 503"
    );
}
