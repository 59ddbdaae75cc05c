//! Requests that say how many permits they take, that only look, and permits that are given back or
//! charged by facts.

use std::time::Duration;

use tollgate::Tick;
use tollgate_policy::{FactName, FactValue, Facts, KeyRef, KeyedLimit, Policy, Reason};

use crate::decisions::policy;

/// A user that asks for a number of permits.
#[derive(Debug, Clone, Copy)]
struct Ask(&'static str, u64);

impl Facts for Ask {
    fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
        (name.as_str() == "user").then(|| self.0.into())
    }

    fn permits(&self) -> Option<u64> {
        Some(self.1)
    }
}

const ALGORITHMS: [&str; 8] = [
    "10/d",
    "gcra 10/d",
    "leaky-meter 10/d",
    "fixed-window 10/d",
    "fixed-window 10/d first-hit",
    "sliding-window 10/d",
    "intervals 10/d",
    "intervals 10/d greedy",
];

fn rule(rest: &str) -> String {
    format!("[[rule]]\nname = 'api'\nkey = 'user'\n{rest}")
}

#[test]
fn permits_of_the_request_are_the_cost_of_a_rule_without_one() {
    let without = policy(&rule("limit = '10/d'"));
    assert_eq!(without.decide(&Ask("ann", 4)).remaining(), Some(6));
    // Facts in front of it change nothing.
    let facts = ([("tenant", "acme")], &Ask("ann", 3));
    assert_eq!(without.decide(&facts).remaining(), Some(3));
    assert!(!without.decide(&Ask("ann", 4)).is_allowed());

    let with = policy(&rule("limit = '10/d'\ncost = 3"));
    assert_eq!(with.decide(&Ask("ann", 9)).remaining(), Some(7));
    let inside = policy(&rule("limit = 'concurrency 2'"));
    let first = inside.decide(&Ask("ann", 9));
    assert_eq!(first.remaining(), Some(1));
}

#[test]
fn a_request_that_looks_takes_nothing_and_is_denied_if_nothing_is_left() {
    for limit in ALGORITHMS {
        let policy = policy(&rule(&format!("limit = ['{limit}', '90/d']\ncost = 2")));
        for _ in 0..30 {
            assert_eq!(
                policy.decide(&Ask("ann", 0)).remaining(),
                Some(10),
                "{limit}"
            );
        }
        for _ in 0..5 {
            assert!(policy.decide(&Ask("ann", 1)).is_allowed(), "{limit}");
        }
        let denied = policy.decide(&Ask("ann", 0));
        assert_eq!(denied.denied_by(), Some("api"), "{limit}");
        let next = policy.decide(&Ask("ann", 1)).retry_after();
        assert!(denied.retry_after() <= next, "{limit}");
        assert!(policy.decide(&Ask("bob", 0)).is_allowed(), "{limit}");
    }
}

#[test]
fn looks_count_towards_no_ban_but_see_one() {
    let text = rule("limit = '1/h'\nban = { after = 3, for = '2h' }");
    let policy = policy(&text);
    assert!(policy.decide(&Ask("ann", 1)).is_allowed());
    let hour = Some(Duration::from_secs(3600));
    for _ in 0..9 {
        assert_eq!(policy.decide(&Ask("ann", 0)).retry_after(), hour);
    }
    for _ in 0..3 {
        assert!(!policy.decide(&Ask("ann", 1)).is_allowed());
    }
    assert_eq!(
        policy.decide(&Ask("ann", 0)).retry_after(),
        hour.map(|it| it * 2)
    );
}

#[test]
fn of_two_sets_with_one_key_the_one_that_takes_counts() {
    for sets in [
        [Ask("ann", 0), Ask("ann", 3)],
        [Ask("ann", 3), Ask("ann", 0)],
    ] {
        for limit in ["limit = '10/d'", "limit = 'concurrency 10'"] {
            let policy = policy(&rule(limit));
            let decision = policy.decide_together(&sets);
            let taken = if limit.contains("concurrency") { 1 } else { 3 };
            assert_eq!(decision.remaining(), Some(10 - taken));
            let asked: Vec<_> = decision.asked().flat_map(|it| it.sets()).collect();
            assert_eq!(asked, [0, 1]);
        }
    }
}

#[test]
fn a_denial_says_which_set_is_denied() {
    let text = "[[deny]]\nname = 'eve'\nwhen = { user = 'eve' }\n".to_owned()
        + &rule("when = { user = true }\nlimit = '2/d'");
    let policy = policy(&text);
    assert_eq!(
        policy
            .decide_together(&[Ask("ann", 1), Ask("bob", 1)])
            .denied_set(),
        None
    );
    for (sets, expected) in [
        ([Ask("ann", 1), Ask("bob", 2)], 1),
        ([Ask("bob", 2), Ask("ann", 1)], 0),
        ([Ask("ann", 0), Ask("eve", 1)], 1),
        ([Ask("eve", 0), Ask("bob", 2)], 0),
    ] {
        let denied = policy.decide_together(&sets);
        assert_eq!(denied.denied_set(), Some(expected), "{sets:?}");
        let is_listed = matches!(denied.reason(), Some(Reason::Listed { .. }));
        assert_eq!(is_listed, sets.iter().any(|set| set.0 == "eve"));
    }
}

#[test]
fn a_refund_gives_back_what_was_taken_and_no_more() {
    for limit in ALGORITHMS {
        for key in ["", "key = 'user'\n"] {
            let text = format!("[[rule]]\nname = 'api'\n{key}limit = '{limit}'");
            let policy = policy(&text);
            assert!(policy.decide(&Ask("ann", 7)).is_allowed(), "{text}");
            assert_eq!(policy.refund(&Ask("ann", 4)), 4, "{text}");
            assert_eq!(policy.decide(&Ask("ann", 0)).remaining(), Some(7), "{text}");
            assert_eq!(policy.refund(&Ask("ann", u64::MAX)), 3, "{text}");
            assert_eq!(
                policy.decide(&Ask("ann", 0)).remaining(),
                Some(10),
                "{text}"
            );
            assert_eq!(policy.refund(&Ask("ann", 1)), 0, "{text}");
        }
    }
}

#[test]
fn a_charge_goes_into_debt_but_not_without_end() {
    for limit in ALGORITHMS {
        let policy = policy(&rule(&format!("limit = '{limit}'")));
        assert_eq!(policy.charge(&Ask("ann", 6)), 6, "{limit}");
        assert_eq!(
            policy.decide(&Ask("ann", 0)).remaining(),
            Some(4),
            "{limit}"
        );
        // At most the whole limit at once.
        assert_eq!(policy.charge(&Ask("ann", u64::MAX)), 10, "{limit}");
        let denied = policy.decide(&Ask("ann", 1));
        assert!(
            denied.retry_after() > Some(Duration::from_secs(3600)),
            "{limit}"
        );
        assert_eq!(policy.refund(&Ask("ann", 7)), 7, "{limit}");
        assert_eq!(
            policy.decide(&Ask("ann", 0)).remaining(),
            Some(1),
            "{limit}"
        );
    }
}

#[test]
fn what_decides_without_a_limit_changes_nothing() {
    let text = "[[deny]]\nname = 'eve'\nwhen = { user = 'eve' }\n\
                [[allow]]\nname = 'root'\nwhen = { user = 'root' }\n\
                [[rule]]\nname = 'all'\nlimit = '9/d'\nalso = ['inside']\n\
                [[limit]]\nname = 'inside'\nlimit = 'concurrency 2'";
    let policy = policy(text);
    for user in ["eve", "root"] {
        assert_eq!(policy.charge(&Ask(user, 5)), 0);
    }
    assert_eq!(policy.charge(&Ask("ann", 5)), 5);
    assert_eq!(policy.refund(&Ask("ann", 2)), 2);
    assert_eq!(policy.decide(&Ask("ann", 0)).remaining(), Some(2));
}

/// A limit of the program's own, which only counts what comes back.
#[derive(Debug)]
struct Own;

impl KeyedLimit for Own {
    fn take(&self, _: KeyRef<'_>, _: u64, _: Tick) -> Result<u64, tollgate::Denied> {
        Ok(9)
    }

    fn undo(&self, _: KeyRef<'_>, n: u64, _: Tick) -> u64 {
        n.min(5)
    }
}

#[test]
fn a_limit_of_the_program_gets_its_permits_back() {
    let builder = Policy::builder().limit("own", |_| Ok(Box::new(Own)));
    let policy = builder.build_toml(&rule("limit = 'own'")).unwrap();
    assert_eq!(policy.refund(&Ask("ann", 3)), 3);
    assert_eq!(policy.refund(&Ask("ann", 9)), 5);
}
