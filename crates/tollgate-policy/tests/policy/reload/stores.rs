//! A reload can't change the server that has the limits.

use std::time::Duration;

use tollgate::{AnyAlgorithm, Keyed};
use tollgate_policy::{LivePolicy, Policy, RuleState, Store};

const RULE: &str = "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = '5/h'\n";

/// A policy whose program registers a store as `redis`.
fn live(text: &str) -> LivePolicy {
    let store = Store::here(|spec| {
        let algorithm: Result<AnyAlgorithm, _> = spec.limits[0].parse();
        let algorithm = algorithm.map_err(|error| error.to_string())?;
        let table = Keyed::new(algorithm, spec.capacity).map_err(|error| error.to_string())?;
        Ok(Box::new(table.with_hasher(spec.hasher.clone())))
    });
    let builder = Policy::builder().store("redis", store);
    LivePolicy::new(builder.build_toml(text).expect("a policy"))
}

fn with_store(settings: &str) -> String {
    format!("store = {{ {settings}, fallback = 'open' }}\n{RULE}")
}

const FIRST: &str = "redis = 'redis://:swordfish@a', namespace = 'shop', budget = '20ms'";

fn left(live: &LivePolicy) -> Option<u64> {
    live.decide(&[("user", "ann")]).remaining()
}

#[test]
fn the_address_the_namespace_and_the_budget_stay() {
    let live = live(&with_store(FIRST));
    assert_eq!(left(&live), Some(4));
    let after = "can't change in a reload; restart the program";
    for (from, to, expected) in [
        (
            "swordfish",
            "sword",
            format!("1:19: error: store.redis {after}"),
        ),
        (
            "'redis://:swordfish@a'",
            "{ env = 'REDIS_URL' }",
            format!("1:19: error: store.redis {after}"),
        ),
        (
            "shop",
            "inn",
            format!("1:55: error: store.namespace {after}"),
        ),
        ("20ms", "30ms", format!("1:72: error: store.budget {after}")),
        (
            ", budget = '20ms'",
            "",
            format!("1:19: error: store.budget {after}"),
        ),
        (
            FIRST,
            "redis = 'redis://b'",
            format!(
                "1:19: error: store.budget {after}\n1:19: error: store.namespace {after}\n\
                 1:19: error: store.redis {after}"
            ),
        ),
    ] {
        let text = with_store(&FIRST.replace(from, to));
        let problems = live.reload_toml(&text).expect_err(&text);
        let mut lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
        lines.sort();
        assert_eq!(lines.join("\n"), expected);
        assert!(!format!("{problems:?}").contains("sword"), "{problems:?}");
    }
    // Nothing has changed.
    assert_eq!(left(&live), Some(3));
    let store = live.current().store().cloned().expect("a table");
    assert_eq!(store.namespace.value, "shop");
    assert_eq!(store.budget, Some(Duration::from_millis(20).into()));
}

#[test]
fn a_server_neither_comes_nor_goes() {
    let with = live(&with_store(FIRST));
    let problems = with.reload_toml(RULE).unwrap_err().to_string();
    assert_eq!(
        problems,
        "error: store is missing, but can't change in a reload; restart the program"
    );
    let without = live(RULE);
    let problems = without.reload_toml(&with_store(FIRST)).unwrap_err();
    assert_eq!(
        problems.to_string(),
        "1:19: error: store is new, but can't change in a reload; restart the program"
    );
    assert_eq!((left(&with), left(&without)), (Some(4), Some(4)));
    // With another error, nothing is known of the table.
    let problems = with.reload_toml("[store]\nredis = 5").unwrap_err();
    assert_eq!(problems.errors(), 1, "{problems}");
}

#[test]
fn the_fallback_and_the_place_of_a_rule_change() {
    let live = live(&with_store(FIRST));
    assert_eq!(left(&live), Some(4));
    let text = with_store(FIRST);
    let states = |text: &str| live.reload_toml(text).expect("a policy").state("a");
    assert_eq!(states(&format!("\n{text}")), Some(RuleState::Kept));
    // What is the default may be said.
    let named = text.replace(RULE, &format!("{RULE}store = 'redis'\nfallback = 'open'\n"));
    assert_eq!(states(&named), Some(RuleState::Kept));
    assert_eq!(left(&live), Some(3));
    for text in [
        text.replace("fallback = 'open'", "fallback = 'closed'"),
        text.replace(RULE, &format!("{RULE}store = 'memory'\n")),
    ] {
        let state = states(&text);
        assert!(matches!(state, Some(RuleState::Fresh(_))), "{state:?}");
        assert_eq!(left(&live), Some(4));
    }
}
