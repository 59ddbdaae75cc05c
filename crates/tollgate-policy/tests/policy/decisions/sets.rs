//! Several sets of facts, decided at once.

use std::time::Duration;

use tollgate_policy::{Outcome, Reason};

use super::policy;

/// One fact.
type Set = [(&'static str, &'static str); 1];

const ANN: Set = [("user", "ann")];
const BOB: Set = [("user", "bob")];
const ACME: Set = [("tenant", "acme")];

const TWO: &str = "
    [[rule]]
    name = 'user'
    when = { user = true }
    key = 'user'
    limit = '2/h'
    [[rule]]
    name = 'tenant'
    when = { tenant = true }
    key = 'tenant'
    limit = '9/h'
    cost = { estimate = 'n' }
";

#[test]
fn all_rules_of_all_sets_are_asked_or_none() {
    let policy = policy(TWO);
    for left in [1, 0] {
        let decision = policy.decide_together(&[ANN, ACME, BOB]);
        assert!(decision.is_allowed());
        let asked: Vec<_> = decision
            .asked()
            .map(|it| (it.rule().to_owned(), it.remaining()))
            .collect();
        let tenant = 7 + left;
        let expected = [("user", left), ("tenant", tenant), ("user", left)];
        let expected = expected.map(|(rule, left)| (rule.to_owned(), left));
        assert_eq!(asked, expected);
    }
    let denied = policy.decide_together(&[ACME, ANN]);
    assert_eq!(denied.denied_by(), Some("user"));
    assert_eq!(policy.decide_together(&[ACME]).remaining(), Some(6));
    assert!(policy.decide_together::<Set>(&[]).is_allowed());
}

#[test]
fn a_rule_is_asked_once_for_a_key_and_for_the_largest_cost() {
    let policy = policy(TWO);
    let sets = ["1", "4", "2"].map(|n| [("tenant", "acme"), ("n", n)]);
    let decision = policy.decide_together(&sets);
    let asked: Vec<_> = decision
        .asked()
        .map(|it| (it.cost(), it.remaining()))
        .collect();
    assert_eq!(asked, [(4, 5)]);
    assert_eq!(decision.undo(), 4);
    assert_eq!(policy.decide(&ACME).remaining(), Some(8));
}

#[test]
fn lists_are_read_for_each_set() {
    let text = format!(
        "{TWO}
        [[deny]]
        name = 'removed'
        when = {{ tenant = 'gone' }}
        status = 410
        [[allow]]
        name = 'office'
        when = {{ user = 'ann' }}"
    );
    let policy = policy(&text);
    let denied = policy.decide_together(&[ACME, ANN, [("tenant", "gone")]]);
    assert_eq!(denied.reason(), Some(Reason::Listed { entry: "removed" }));
    assert_eq!(denied.status(), Some(410));
    // Ann is exempt, but the tenant is not.
    let decision = policy.decide_together(&[ANN, ACME]);
    assert_eq!(
        (decision.exempted_by(), decision.remaining()),
        (None, Some(8))
    );
    let decision = policy.decide_together(&[ANN, ANN]);
    assert_eq!(decision.exempted_by(), Some("office"));
    assert_eq!(decision.asked().count(), 0);
}

#[test]
fn each_key_that_denies_counts_towards_its_own_ban() {
    let text = "[[rule]]\nname = 'login'\nkey = 'user'\nlimit = '1/h'\n\
                ban = { after = 2, for = '1d' }";
    let policy = policy(text);
    assert!(policy.decide_together(&[ANN, BOB]).is_allowed());
    for _ in 0..2 {
        assert!(!policy.decide_together(&[ANN, BOB]).is_allowed());
    }
    for set in [ANN, BOB] {
        let denied = policy.decide(&set);
        assert_eq!(denied.retry_after(), Some(Duration::from_secs(86_400)));
    }
}

#[test]
fn a_failure_counts_for_each_key() {
    let text = "[[rule]]\nname = 'login'\nkey = 'user'\n\
                ban = { after = 1, of = 'failures', for = '1d' }";
    let policy = policy(text);
    let decision = policy.decide_together(&[ANN, BOB]);
    decision.finish(Outcome::Failure, &());
    assert!(!policy.decide(&ANN).is_allowed() && !policy.decide(&BOB).is_allowed());
}

/// Requests of more limits than a composition has members take another path.
#[test]
fn many_sets_are_all_or_none() {
    let policy = policy(TWO);
    let names: Vec<String> = (0..100).map(|number| format!("u{number}")).collect();
    let sets: Vec<_> = names.iter().map(|name| [("user", name.as_str())]).collect();
    assert!(policy.decide_together(&sets).is_allowed());
    assert!(policy.decide_together(&sets).is_allowed());
    assert!(!policy.decide_together(&sets).is_allowed());
    let (last, rest) = sets.split_last().unwrap();
    assert_eq!(policy.decide(last).denied_by(), Some("user"));
    assert!(!policy.decide_together(rest).is_allowed());
    // The hundredth key is new, and keeps its permits if another one denies.
    let mut sets = sets.clone();
    sets.push([("user", "new")]);
    assert!(!policy.decide_together(&sets).is_allowed());
    assert_eq!(policy.decide(&[("user", "new")]).remaining(), Some(1));
}

/// As many as a client could ask a service to decide together.
#[test]
fn ten_thousand_sets_are_all_or_none() {
    let policy = policy(TWO);
    let names: Vec<String> = (0..10_000).map(|number| format!("u{number}")).collect();
    let mut sets: Vec<_> = names.iter().map(|name| [("user", name.as_str())]).collect();
    let decision = policy.decide_together(&sets);
    assert!(decision.is_allowed());
    assert_eq!(decision.asked().count(), 10_000);
    assert_eq!(decision.undo(), 10_000);
    for _ in 0..2 {
        assert!(policy.decide(&[("user", "u9999")]).is_allowed());
    }
    assert!(!policy.decide_together(&sets).is_allowed());
    sets.pop();
    assert!(policy.decide_together(&sets).is_allowed());
    assert!(policy.decide_together(&sets).is_allowed());
    // Ten thousand sets with one key ask once.
    let decision = policy.decide_together(&[ACME; 10_000]);
    assert_eq!(
        (decision.asked().count(), decision.remaining()),
        (1, Some(8))
    );
}

/// A shadow rule of two limits that would deny one key takes nothing from that key alone.
#[test]
fn a_shadow_rule_decides_for_each_key() {
    let text = "[[rule]]\nname = 'trial'\nkey = 'user'\nlimit = ['1/h', '9/d']\nshadow = true\n\
                [[rule]]\nname = 'all'\nlimit = '99/s'";
    let policy = policy(text);
    assert!(policy.decide(&ANN).is_allowed());
    let decision = policy.decide_together(&[ANN, BOB]);
    let trial = decision.asked().filter(|it| it.is_shadow());
    let asked: Vec<_> = trial.map(|it| (it.would_allow(), it.remaining())).collect();
    assert_eq!(asked, [(false, 0), (true, 8), (true, 0), (true, 8)]);
}
