//! Rules that go together, where some are skipped, on trial or refused; and the bans of their keys.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use tollgate::ManualClock;
use tollgate_policy::{Outcome, Policy, Reason};

use crate::decisions::policy;

/// Four rules, each of which names the next one.
fn chain(second: &str) -> String {
    let rule =
        |name: &str, rest: &str| format!("[[rule]]\nname = '{name}'\nlimit = '9/h'\n{rest}\n");
    rule("a", "also = ['b']")
        + &rule("b", &format!("when = 'never'\nalso = ['c']\n{second}"))
        + &rule("c", "when = 'never'\nalso = ['d']")
        + &rule("d", "when = 'never'")
}

fn names(policy: &Policy<ManualClock>) -> Vec<(String, bool)> {
    let decision = policy.decide(&());
    let names = decision
        .asked()
        .map(|it| (it.rule().to_owned(), it.would_allow()));
    names.collect()
}

#[test]
fn a_rule_that_is_skipped_or_on_trial_ends_the_chain() {
    for (second, expected) in [
        (
            "",
            &[("a", true), ("b", true), ("c", true), ("d", true)][..],
        ),
        ("key = 'user'\nmissing = 'skip'", &[("a", true)]),
        (
            "key = 'user'\nmissing = 'shared'",
            &[("a", true), ("b", true), ("c", true), ("d", true)],
        ),
        ("shadow = true", &[("a", true), ("b", true)]),
        ("shadow = true\nkey = 'user'", &[("a", true), ("b", false)]),
        (
            "shadow = true\nkey = 'user'\nmissing = 'skip'",
            &[("a", true)],
        ),
    ] {
        let policy = policy(&chain(second));
        let found = names(&policy);
        let found: Vec<_> = found
            .iter()
            .map(|(name, allows)| (name.as_str(), *allows))
            .collect();
        assert_eq!(found, expected, "{second}");
    }
}

#[test]
fn a_rule_in_a_chain_that_is_refused_takes_nothing_from_the_others() {
    let plan = "plan = { by = 'tier', pro = '9/h' }";
    let no_plan = chain("").replacen(
        "name = 'b'\nlimit = '9/h'",
        &format!("name = 'b'\n{plan}"),
        1,
    );
    for (text, reason) in [
        (chain("key = 'user'"), Reason::MissingKey { rule: "b" }),
        (no_plan, Reason::NoPlan { rule: "b" }),
    ] {
        let policy = policy(&text);
        let denied = policy.decide(&());
        assert_eq!(denied.reason(), Some(reason));
        assert_eq!((denied.asked().count(), denied.undo()), (0, 0));
        let facts = [("user", "ann"), ("tier", "pro")];
        assert_eq!(policy.decide(&facts).remaining(), Some(8));
    }
}

#[test]
fn a_rule_that_two_others_name_is_asked_once() {
    let policy = policy(
        "apply = 'all'\n\
         [[rule]]\nname = 'a'\nlimit = '9/h'\nalso = ['c']\n\
         [[rule]]\nname = 'b'\nlimit = '9/h'\nalso = ['c', 'a']\n\
         [[rule]]\nname = 'c'\nlimit = '9/h'",
    );
    let all = ["a", "c", "b"].map(|name| (name.to_owned(), true));
    assert_eq!(names(&policy), all);
    assert_eq!(policy.decide(&()).undo(), 3);
}

#[test]
fn a_rule_that_came_by_another_ends_the_search_where_it_matches() {
    let policy = policy(
        "[[rule]]\nname = 'trial'\nlimit = '9/h'\nshadow = true\nalso = ['a']\n\
         [[rule]]\nname = 'skipped'\nkey = 'user'\nmissing = 'skip'\nlimit = '9/h'\nalso = ['b']\n\
         [[rule]]\nname = 'a'\nlimit = '9/h'\n\
         [[rule]]\nname = 'b'\nlimit = '9/h'",
    );
    let all = ["trial", "a"].map(|name| (name.to_owned(), true));
    assert_eq!(names(&policy), all);
}

#[test]
fn all_rules_that_match_are_allowed_or_none_takes() {
    let policy = policy(
        "apply = 'all'\n\
         [[rule]]\nname = 'rate'\nlimit = '9/h'\n\
         [[rule]]\nname = 'inside'\nlimit = 'concurrency 9'\n\
         [[rule]]\nname = 'own'\nkey = 'user'\nlimit = ['9/h', 'gcra 1/h']\nmissing = 'shared'\n\
         [[rule]]\nname = 'trial'\nlimit = '2/h'\nshadow = true",
    );
    let first = policy.decide(&());
    assert!(first.is_allowed());
    for _ in 0..20 {
        let denied = policy.decide(&());
        assert_eq!(denied.denied_by(), Some("own"));
        assert_eq!(denied.finish(Outcome::Failure, &()).charged, 0);
    }
    let bob = policy.decide(&[("user", "bob")]);
    let remaining: Vec<_> = bob.asked().map(|it| it.remaining()).collect();
    assert_eq!(remaining, [7, 7, 8, 0, 0]);
}

#[test]
fn an_outcome_that_does_not_count_is_free_whatever_it_used_and_bans_nobody() {
    let policy = policy(
        "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = '20/h'\ncount = 'failures'\n\
         cost = { default = 10, max = 30, settle = 'used' }\nban = { after = 1, for = '5h' }",
    );
    let ann = [("user", "ann")];
    for _ in 0..9 {
        let settled = policy
            .decide(&ann)
            .finish(Outcome::Success, &[("used", "999")]);
        assert_eq!((settled.returned, settled.charged), (10, 0));
    }
    let settled = policy
        .decide(&ann)
        .finish(Outcome::Failure, &[("used", "30")]);
    assert_eq!((settled.returned, settled.charged), (0, 20));
    // Its debt denies the next request, and that denial bans it.
    assert!(!policy.decide(&ann).is_allowed());
    assert_eq!(
        policy.decide(&ann).retry_after(),
        Some(Duration::from_secs(5 * 3600))
    );
}

#[test]
fn a_grant_that_ends_during_a_ban_changes_no_ban() {
    let policy = policy(
        "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = '2/s'\nban = { after = 1, for = '10s' }\n\
         cost = { default = 1, settle = 'used' }",
    );
    let ann = [("user", "ann")];
    let held = [policy.decide(&ann), policy.decide(&ann)];
    assert!(!policy.decide(&ann).is_allowed());
    let [first, second] = held;
    assert_eq!(first.undo(), 1);
    assert_eq!(second.settle(&[("used", "0")]).returned, 1);
    let denied = policy.decide(&ann);
    assert_eq!(denied.retry_after(), Some(Duration::from_secs(10)));
    policy.clock().advance(Duration::from_secs(10));
    assert_eq!(policy.decide(&ann).remaining(), Some(1));
}

#[test]
fn costs_of_which_no_wait_helps_count_towards_a_ban() {
    let policy = policy(
        "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = '2/s'\ncost = 'n'\n\
         ban = { after = 2, for = '10s' }",
    );
    let too_much = [("user", "ann"), ("n", "3")];
    assert_eq!(policy.decide(&too_much).retry_after(), None);
    assert_eq!(policy.decide(&too_much).retry_after(), None);
    let banned = Some(Duration::from_secs(10));
    assert_eq!(policy.decide(&[("user", "ann")]).retry_after(), banned);
    // A cost of 0 is denied too.
    assert_eq!(
        policy.decide(&[("user", "ann"), ("n", "0")]).retry_after(),
        banned
    );
}

#[test]
fn requests_that_find_no_place_count_towards_a_ban() {
    let policy = policy(
        "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = ['concurrency 1', '9/s']\n\
         ban = { after = 2, for = '10s' }",
    );
    let ann = [("user", "ann")];
    let held = policy.decide(&ann);
    assert!(!policy.decide(&ann).is_allowed() && !policy.decide(&ann).is_allowed());
    drop(held);
    assert_eq!(
        policy.decide(&ann).retry_after(),
        Some(Duration::from_secs(10))
    );
}

#[test]
fn a_rule_on_trial_bans_nobody() {
    let policy = policy(
        "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = '1/h'\nshadow = true\n\
         ban = { after = 1, for = '10h' }\n\
         [[rule]]\nname = 'b'\nkey = 'user'\nlimit = '2/h'",
    );
    let ann = [("user", "ann")];
    for _ in 0..9 {
        let decision = policy.decide(&ann);
        let trial = decision
            .asked()
            .find(|it| it.is_shadow())
            .expect("a rule on trial");
        assert!(
            trial
                .denial()
                .is_none_or(|denied| denied.retry_after() <= Some(Duration::from_secs(3600)))
        );
    }
    policy.clock().advance(Duration::from_secs(3600));
    let decision = policy.decide(&ann);
    assert!(decision.asked().all(|it| it.would_allow()), "{decision:?}");
}

#[test]
fn threads_ban_a_key_at_the_number_of_denials() {
    const THREADS: u64 = 4;
    for after in [1, 5, 40] {
        let text = format!(
            "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = '1/h'\nban = {{ after = {after}, for = '9h' }}"
        );
        let policy = policy(&text);
        let ann = [("user", "ann")];
        assert!(policy.decide(&ann).is_allowed());
        let barrier = Barrier::new(THREADS as usize);
        let banned = || policy.decide(&ann).retry_after() > Some(Duration::from_secs(3600));
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    barrier.wait();
                    // Together one denial fewer than a ban needs, if all of them are counted.
                    for _ in 0..(after - 1) / THREADS {
                        assert!(!banned());
                    }
                });
            }
        });
        for _ in 0..after - 1 - (after - 1) / THREADS * THREADS {
            assert!(!banned(), "{after}");
        }
        assert!(banned(), "{after}");
    }
}

#[test]
fn threads_never_exceed_a_concurrency_and_all_of_it_comes_back() {
    const THREADS: usize = 4;
    let policy = policy(
        "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = ['concurrency 2', '1000000/s']\nalso = ['all']\n\
         [[rule]]\nname = 'all'\nwhen = 'never'\nlimit = 'concurrency 3'",
    );
    let barrier = Barrier::new(THREADS);
    let granted: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (policy, barrier) = (&policy, &barrier);
                scope.spawn(move || {
                    let user = [("user", if thread % 2 == 0 { "ann" } else { "bob" })];
                    barrier.wait();
                    let mut granted = 0;
                    for n in 0..5000 {
                        let decision = policy.decide(&user);
                        for asked in decision.asked().filter_map(|it| it.grant()) {
                            assert!(asked.remaining() < 1_000_000);
                        }
                        granted += u64::from(decision.is_allowed());
                        match n % 4 {
                            0 => drop(decision),
                            1 => drop(decision.finish(Outcome::Success, &())),
                            2 => drop(decision.settle(&())),
                            _ => drop(decision.undo()),
                        }
                    }
                    granted
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .sum()
    });
    assert!(granted > 0);
    let [ann, bob] = [[("user", "ann")], [("user", "bob")]];
    let held = [
        policy.decide(&ann),
        policy.decide(&ann),
        policy.decide(&bob),
    ];
    assert!(held.iter().all(|it| it.is_allowed()));
    assert!(!policy.decide(&ann).is_allowed() && !policy.decide(&bob).is_allowed());
    drop(held);
}

#[test]
fn more_limits_than_a_composition_has_room_for_decide_alike() {
    let rules = |n: u32| {
        let rules = (0..n)
            .map(|n| format!("[[rule]]\nname = 'r{n}'\nlimit = '9/h'\nwhen = {{ n = 'x' }}\n"));
        let all: String = rules.collect();
        policy(&format!(
            "apply = 'all'\n[[rule]]\nname = 'first'\nlimit = '9/h'\n{all}"
        ))
    };
    let x = [("n", "x")];
    let most = rules(63);
    assert_eq!(most.decide(&x).remaining(), Some(8));
    let more = rules(64);
    let allowed = more.decide(&x);
    assert_eq!((allowed.reason(), allowed.remaining()), (None, Some(8)));
    assert_eq!(allowed.undo(), 65);
    assert_eq!(more.decide(&()).remaining(), Some(8));
}

#[test]
fn a_new_key_without_a_slot_is_denied_but_not_banned() {
    let policy = policy(
        "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = '9/h'\ncapacity = 1\noverflow = 'deny'\n\
         ban = { after = 1, for = '9h' }",
    );
    let users: Vec<_> = (0..5000).map(|n| n.to_string()).collect();
    let allowed = |user: &String| policy.decide(&[("user", user)]).is_allowed();
    let full: Vec<_> = users.iter().filter(|user| !allowed(user)).collect();
    assert!(full.len() > 100);
    for user in full {
        let denied = policy.decide(&[("user", user)]);
        assert!(
            denied.retry_after() < Some(Duration::from_secs(8 * 3600)),
            "{denied:?}"
        );
    }
}

#[test]
fn a_rule_on_trial_alone_reports_its_missing_key() {
    for (rest, name) in [
        ("key = 'user'\nlimit = '9/h'", "without a key"),
        ("plan = { by = 'tier', pro = '9/h' }", "without a plan"),
    ] {
        let policy = policy(&format!("[[rule]]\nname = 'trial'\nshadow = true\n{rest}"));
        assert_eq!(names(&policy), [("trial".to_owned(), false)], "{name}");
        assert!(policy.decide(&()).is_allowed());
        assert_eq!(policy.decide(&()).remaining(), None, "{name}");
    }
}

#[test]
fn rules_that_go_together_are_asked_in_the_order_of_their_names() {
    let rule = |name: &str, rest: &str| {
        format!("[[rule]]\nname = '{name}'\nlimit = '9/h'\nwhen = 'never'\n{rest}\n")
    };
    let first = rule("a", "also = ['b', 'e', 'c']").replace("when = 'never'\n", "");
    let rest = [
        rule("e", ""),
        rule("d", ""),
        rule("c", ""),
        rule("b", "also = ['d']"),
    ]
    .concat();
    let found = names(&policy(&(first + &rest)));
    let found: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(found, ["a", "b", "d", "e", "c"]);
}

#[test]
fn a_denial_stays_one_when_time_passes() {
    let policy = policy("[[rule]]\nname = 'a'\nlimit = ['1/s', '9/h']");
    assert!(policy.decide(&()).is_allowed());
    let denied = policy.decide(&());
    policy.clock().advance(Duration::from_secs(9));
    let asked = denied.asked().map(|it| it.would_allow());
    assert_eq!(asked.collect::<Vec<_>>(), [false, true]);
    assert_eq!(denied.retry_after(), Some(Duration::from_secs(1)));
}
