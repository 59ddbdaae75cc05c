//! A policy that is reloaded while it decides: what stays, what starts anew, and that no bound is
//! exceeded.

mod changes;
mod from_file;
mod stores;
mod used;

use std::collections::HashMap;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use tollgate::{ManualClock, Quota, TokenBucket};
use tollgate_audit::{Audit, Bounded, Log};
use tollgate_policy::file::PolicyFile;
use tollgate_policy::{FactName, LivePolicy, Policy, RuleState};

fn live(text: &str) -> (LivePolicy<ManualClock>, ManualClock) {
    let clock = ManualClock::new();
    let policy = Policy::builder().clock(clock.clone()).build_toml(text);
    (LivePolicy::new(policy.expect("a policy")), clock)
}

fn rule(name: &str, rest: &str) -> String {
    format!("[[rule]]\nname = '{name}'\n{rest}\n")
}

/// Returns how many permits a user has left after one more request.
fn left(live: &LivePolicy<ManualClock>, user: &str) -> Option<u64> {
    live.decide(&[("user", user)]).remaining()
}

#[track_caller]
fn states(live: &LivePolicy<ManualClock>, text: &str) -> Vec<(String, RuleState)> {
    let reloaded = live.reload_toml(text).expect("a policy");
    let rules = reloaded.rules();
    rules
        .map(|(name, state)| (name.to_owned(), state))
        .collect()
}

#[test]
fn an_unchanged_rule_keeps_its_state() {
    let text = rule(
        "a",
        "key = 'user'\nlimit = ['10/h', 'sliding-window 100/d']",
    );
    let (live, _) = live(&text);
    assert_eq!(left(&live, "ann"), Some(9));
    let moved = format!(
        "{}\n# moved\n{text}",
        rule("b", "when = { path = '/b' }\nlimit = '1/s'")
    );
    let kept = [("b".into(), RuleState::New), ("a".into(), RuleState::Kept)];
    assert_eq!(states(&live, &moved), kept);
    assert_eq!(left(&live, "ann"), Some(8));
    let gone = [
        ("a".into(), RuleState::Kept),
        ("b".into(), RuleState::Removed),
    ];
    assert_eq!(states(&live, &text), gone);
    assert_eq!(left(&live, "ann"), Some(7));
}

#[test]
fn other_conditions_keep_the_state() {
    let (live, _) = live(&rule("a", "key = 'user'\nlimit = '10/h'"));
    assert_eq!(left(&live, "ann"), Some(9));
    let text = rule(
        "a",
        "when = { user = true }\nkey = 'user'\nlimit = '10/h'\ncost = 2",
    );
    assert_eq!(states(&live, &text), [("a".into(), RuleState::Kept)]);
    assert_eq!(left(&live, "ann"), Some(7));
}

#[test]
fn a_changed_quota_applies_to_each_key() {
    let (live, clock) = live(&rule("a", "key = 'user'\nlimit = '10/h'"));
    for _ in 0..6 {
        let _ = left(&live, "ann");
    }
    let larger = rule("a", "key = 'user'\nlimit = '20/h'");
    assert_eq!(states(&live, &larger), [("a".into(), RuleState::Migrated)]);
    // She used 7 of 20.
    assert_eq!(left(&live, "ann"), Some(13));
    clock.advance(Duration::from_secs(900));
    assert_eq!(left(&live, "ann"), Some(17));
    let smaller = rule("a", "key = 'user'\nlimit = '5/h'");
    assert_eq!(states(&live, &smaller), [("a".into(), RuleState::Migrated)]);
    assert_eq!(left(&live, "ann"), Some(1));
}

#[test]
fn plans_and_overrides_change_and_keep_the_state() {
    let policy = |pro: u32, acme: &str| {
        let plan =
            format!("plan = {{ by = 'tier', free = '5/h', pro = '{pro}/h', default = 'free' }}");
        rule("a", &format!("key = 'user'\n{plan}\noverride = [{acme}]"))
    };
    let (live, _) = live(&policy(10, "{ key = 'acme', limit = '100/h' }"));
    let pro = |user: &'static str| [("user", user), ("tier", "pro")];
    assert_eq!(live.decide(&pro("ann")).remaining(), Some(9));
    assert_eq!(left(&live, "acme"), Some(99));
    let text = policy(
        8,
        "{ key = 'acme', limit = '50/h' }, { key = 'bob', limit = '2/h' }",
    );
    assert_eq!(states(&live, &text), [("a".into(), RuleState::Migrated)]);
    assert_eq!(live.decide(&pro("ann")).remaining(), Some(6));
    assert_eq!(left(&live, "acme"), Some(48));
    assert_eq!(left(&live, "bob"), Some(1));
    assert_eq!(
        states(&live, &policy(8, "")),
        [("a".into(), RuleState::Migrated)]
    );
    // Back to its plan, of which it used 3.
    assert_eq!(left(&live, "acme"), Some(2));
}

#[test]
fn a_rule_whose_state_means_something_else_starts_anew() {
    let base = "key = 'user'\nlimit = '10/h'";
    for (changed, why) in [
        (
            "key = 'tenant'\nmissing = 'shared'\nlimit = '10/h'",
            "its key changed",
        ),
        (
            "key = ['user', 'tenant']\nmissing = 'shared'\nlimit = '10/h'",
            "its key changed",
        ),
        ("key = 'user'\nlimit = 'gcra 10/h'", "its algorithm changed"),
        (
            "key = 'user'\nlimit = 'concurrency 10'",
            "its algorithm changed",
        ),
        (
            "key = 'user'\nlimit = ['10/h', '20/d']",
            "it has another number of limits",
        ),
        (
            "key = 'user'\nlimit = '10/h'\ncapacity = 7",
            "its capacity changed",
        ),
        (
            "key = 'user'\nlimit = '10/h'\noverflow = 'deny'",
            "its overflow changed",
        ),
        (
            "key = 'user'\nlimit = '10/h'\nnetwork = { v4 = 24 }",
            "its network changed",
        ),
        (
            "key = 'user'\nplan = { by = 'tier', a = '10/h', default = 'a' }",
            "its plans have other names",
        ),
    ] {
        let (live, _) = live(&rule("a", base));
        for _ in 0..5 {
            let _ = left(&live, "ann");
        }
        let expected = [("a".into(), RuleState::Fresh(why))];
        assert_eq!(states(&live, &rule("a", changed)), expected, "{changed}");
        assert_eq!(left(&live, "ann"), Some(9), "{changed}");
    }
}

#[test]
fn a_concurrency_counts_on() {
    let (live, _) = live(&rule("a", "limit = 'concurrency 2'"));
    let inside = live.decide(&());
    let text = rule("a", "limit = 'concurrency 1'");
    assert_eq!(states(&live, &text), [("a".into(), RuleState::Migrated)]);
    assert!(!live.decide(&()).is_allowed());
    drop(inside);
    assert!(live.decide(&()).is_allowed());
}

#[test]
fn denials_count_on_towards_a_ban() {
    let text = |limit: &str| {
        rule(
            "a",
            &format!("key = 'user'\nlimit = '{limit}'\nban = {{ after = 2, for = '1h' }}"),
        )
    };
    let (live, _) = live(&text("1/min"));
    assert_eq!(left(&live, "ann"), Some(0));
    assert!(!live.decide(&[("user", "ann")]).is_allowed());
    assert_eq!(
        states(&live, &text("1/min burst 2")),
        [("a".into(), RuleState::Migrated)]
    );
    let _second = live.decide(&[("user", "ann")]);
    let wait = live.decide(&[("user", "ann")]).retry_after();
    assert!(wait >= Some(Duration::from_secs(3600)), "{wait:?}");
}

#[test]
fn a_bad_file_changes_nothing() {
    let (live, _) = live(&rule("a", "key = 'user'\nlimit = '10/h'"));
    assert_eq!(left(&live, "ann"), Some(9));
    // The first rule is good, and would change.
    let text = rule("a", "key = 'user'\nlimit = '2/h'") + &rule("b", "limit = '2/fortnight'");
    let problems = live.reload_toml(&text).expect_err("a unit that is unknown");
    assert!(problems.to_string().contains("fortnight"), "{problems}");
    assert!(live.load().rules().map(|rule| rule.name.as_str()).eq(["a"]));
    assert_eq!(left(&live, "ann"), Some(8));
}

#[test]
fn a_thousand_reloads_exceed_no_bound_and_fail_no_decision() {
    const RELOADS: usize = 1000;
    const USERS: [&str; 3] = ["ann", "bob", "carol"];
    let text = |n: usize| {
        rule(
            "kept",
            "key = 'user'\nlimit = '1000/s burst 20'\nalso = ['changed', 'fresh']",
        ) + &rule(
            "changed",
            &format!("when = 'never'\nkey = 'user'\nlimit = '{}/s'", 30 + n % 2),
        ) + &rule(
            "fresh",
            &format!("when = 'never'\nlimit = '{}/ms'", 1000 + n % 3),
        )
    };
    let live = LivePolicy::new(Policy::from_toml(&text(0)).expect("a policy"));
    let barrier = Barrier::new(3);
    let logs = thread::scope(|scope| {
        let threads: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut logs: HashMap<&str, Log> = HashMap::new();
                    barrier.wait();
                    for n in 0..40_000 {
                        let user = USERS[n % USERS.len()];
                        let decision = live.decide(&[("user", user)]);
                        // It is granted, or denied by a limit: never anything else.
                        let retry = decision.retry_after();
                        assert!(decision.is_allowed() || retry.is_some(), "{decision:?}");
                        let granted = decision.asked().find(|asked| asked.rule() == "kept");
                        if let Some(granted) = granted.and_then(|asked| asked.grant()) {
                            logs.entry(user)
                                .or_default()
                                .grant(granted.at(), granted.n());
                        }
                    }
                    logs
                })
            })
            .collect();
        barrier.wait();
        for n in 1..=RELOADS {
            let reloaded = live.reload_toml(&text(n)).expect("a policy");
            assert_eq!(reloaded.state("kept"), Some(RuleState::Kept));
            assert_eq!(reloaded.state("changed"), Some(RuleState::Migrated));
        }
        let joined = threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        joined.collect::<Vec<_>>()
    });
    let bucket = TokenBucket::new(Quota::per_second(1000).burst(20)).expect("a quota");
    for user in USERS {
        let logs = logs.iter().filter_map(|logs| logs.get(user).cloned());
        let audit: Audit = logs.collect();
        let summary = audit.check(&bucket.bound());
        let summary = summary.unwrap_or_else(|excess| panic!("{user}: {excess}"));
        assert!(summary.granted > 0, "{user}");
    }
}

#[test]
fn a_reload_returns_the_warnings_of_the_new_policy() {
    let (live, _) = live(&rule("a", "limit = '5/s'"));
    let text = rule("a", "when = { pth = '/a' }\nlimit = ['5/s', '900/min']");
    let reloaded = live.reload_toml(&text).expect("a policy");
    let warnings = reloaded.warnings();
    assert_eq!(
        (warnings.errors(), warnings.warnings()),
        (0, 2),
        "{warnings}"
    );
    let checked = Policy::builder().check_toml(&text);
    assert_eq!(*warnings, checked);
    let reloaded = live.reload_toml(&rule("a", "limit = '5/s'"));
    assert!(reloaded.expect("a policy").warnings().is_empty());
}

#[test]
fn a_fact_that_a_resolver_computes_is_no_warning() {
    let builder = Policy::builder().clock(ManualClock::new());
    let builder = builder.resolver("pth", |facts| facts.fact(&FactName::new("path")));
    let text = rule("a", "when = { pth = '/a' }\nlimit = '5/s'");
    let live = LivePolicy::new(builder.build_toml(&text).expect("a policy"));
    let reloaded = live.reload_toml(&text).expect("a policy");
    assert!(reloaded.warnings().is_empty(), "{}", reloaded.warnings());
}

#[test]
fn a_policy_that_has_lost_all_rules_is_refused_unless_it_says_so() {
    let deny = "[[deny]]\nname = 'x'\nwhen = { method = 'PUT' }\n";
    let texts = [
        rule("a", "limit = '5/s'"),
        deny.into(),
        deny.replace("deny", "allow"),
    ];
    for text in &texts {
        let (live, _) = live(text);
        for lost in ["", "# limits", "apply = 'all'"] {
            let error = live.reload_toml(lost).expect_err("no rules");
            let message = "error: rule is missing, and so are `deny` and `allow`, but the policy \
                           has some; if no rule is meant, write `rule = []`";
            assert_eq!(error.to_string(), message);
            let error = live.reload(&PolicyFile::default()).expect_err("no rules");
            assert_eq!(error.to_string(), message);
        }
        // The errors of a text that can't be read are enough.
        let error = live.reload_toml("[[rule").expect_err("no policy");
        assert_eq!(error.errors(), 1);
        let put = live.decide(&[("method", "PUT")]);
        assert_eq!(put.asked().count(), usize::from(text.contains("rule")));

        for other in &texts {
            let _ = live.reload_toml(other).expect("a policy");
        }
        let none = live.reload_toml("rule = []\n").expect("no rules");
        assert!(none.warnings().is_empty(), "{}", none.warnings());
        assert!(live.decide(&()).is_allowed());
        // A policy without rules has none to lose.
        assert!(live.reload_toml("# limits").is_ok());
    }
    let (live, _) = live(&texts[0]);
    let none = PolicyFile::from_json("{ \"rule\": [] }").expect("no rules");
    assert_eq!(
        live.reload(&none).expect("no rules").state("a"),
        Some(RuleState::Removed)
    );
}
