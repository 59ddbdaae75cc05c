//! The limits of single keys: the decision and its explanation use the same one.

use tollgate::ManualClock;
use tollgate_policy::file::PolicyFile;
use tollgate_policy::{Facts, Policy, explain};

/// Returns what the tightest limit has left after a request, and the limits of the explanation.
fn asked(text: &str, facts: &impl Facts) -> (Option<u64>, Vec<String>) {
    let file = PolicyFile::from_toml(text).unwrap_or_else(|errors| panic!("{errors}"));
    let policy = Policy::builder().clock(ManualClock::new()).build(&file);
    let policy = policy.unwrap_or_else(|errors| panic!("{errors}"));
    let left = policy.decide(facts).remaining();
    let explained = explain(&file, facts);
    let asks = explained.rules.into_iter().find_map(|rule| rule.asks);
    (left, asks.expect("the rule applies").limits)
}

#[test]
fn the_explanation_shows_the_limit_that_the_decision_uses() {
    let text = "[[rule]]\nname = 'a'\nkey = ['client-ip', 'path']\nnetwork = { v4 = 24 }\n\
                limit = '2/s'\n\
                override = [{ key = ['10.0.0.7', '/a'], limit = '9/s' },\n\
                { key = ['10.0.1.0', '/a'], limit = '7/s' }]";
    for (address, path, left, limit) in [
        ("10.0.0.1", "//a/", 8, "9/s"),
        ("::ffff:10.0.0.9", "/a", 8, "9/s"),
        ("10.0.0.9:443", "/a", 8, "9/s"),
        ("10.0.1.5", "/a", 6, "7/s"),
        ("10.0.1.5", "/b", 1, "2/s"),
        ("10.9.0.1", "/a", 1, "2/s"),
    ] {
        let facts = [("client-ip", address), ("path", path)];
        assert_eq!(
            asked(text, &facts),
            (Some(left), vec![limit.to_owned()]),
            "{facts:?}"
        );
    }
}

#[test]
fn an_override_replaces_the_rates_and_leaves_the_concurrency() {
    let text = "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = ['5/h', 'concurrency 3', '2/s']\n\
                override = [{ key = 'ann', limit = '100/s' }]";
    let limits = |list: &[&str]| list.iter().map(|it| String::from(*it)).collect::<Vec<_>>();
    let ann = limits(&["100/s", "concurrency 3"]);
    assert_eq!(asked(text, &[("user", "ann")]), (Some(2), ann));
    let bob = limits(&["5/h", "concurrency 3", "2/s"]);
    assert_eq!(asked(text, &[("user", "bob")]), (Some(1), bob));
}

#[test]
fn an_override_needs_a_rate_that_it_can_replace() {
    let text = "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = 'concurrency 3'\n\
                override = [{ key = 'ann', limit = '100/s' }]";
    assert_eq!(
        Policy::builder().check_toml(text).to_string(),
        "5:21: error: rule \"a\": override needs a limit that is a rate, which it replaces"
    );
}

#[test]
fn a_rule_with_a_key_can_have_eight_plans() {
    let plans: Vec<String> = (1..=8).map(|n| format!("p{n} = '{n}/h'")).collect();
    let text = format!(
        "[[rule]]\nname = 'a'\nkey = 'user'\nplan = {{ by = 'tier', {} }}",
        plans.join(", ")
    );
    let ann = [("user", "ann"), ("tier", "p8")];
    assert_eq!(asked(&text, &ann), (Some(7), vec!["8/h".to_owned()]));
}

#[test]
fn an_override_that_needs_no_state_is_explained_as_one() {
    let text = "[[rule]]\nname = 'a'\nkey = 'user'\n\
                plan = { by = 'tier', free = '5/h', none = '0', default = 'free' }\n\
                override = [{ key = 'ann', limit = '0' }, { key = 'bob', limit = 'unlimited' }]";
    let file = PolicyFile::from_toml(text).unwrap_or_else(|errors| panic!("{errors}"));
    for (user, tier, is_override, denies) in [
        ("ann", "free", true, true),
        ("ann", "none", true, true),
        ("bob", "free", true, false),
        ("carol", "free", false, false),
        ("carol", "none", false, true),
    ] {
        let explained = explain(&file, &[("user", user), ("tier", tier)]);
        let asks = explained.rules.into_iter().find_map(|rule| rule.asks);
        let asks = asks.expect("the rule applies");
        let said = (asks.is_override, asks.denies.is_some());
        assert_eq!(said, (is_override, denies), "{user} {tier}");
    }
}
