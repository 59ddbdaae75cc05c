//! Limits without a state: `unlimited` and `0`.

use std::time::Duration;

use tollgate::{Denied, ManualClock};
use tollgate_policy::file::PolicyFile;
use tollgate_policy::{Decision, LivePolicy, Outcome, Policy, Reason, RuleState, explain};

use crate::decisions::policy;

type Decided<'p> = Decision<&'p Policy<ManualClock>, ManualClock>;

/// Whether a request is allowed, and no limit was asked.
fn is_unlimited(decision: &Decided<'_>) -> bool {
    decision.is_allowed() && decision.asked().count() == 0 && decision.remaining().is_none()
}

/// Whether a rule denies a request, and no wait helps.
fn is_closed(decision: &Decided<'_>) -> bool {
    let reason = decision.reason();
    let denied = matches!(
        reason,
        Some(Reason::Limit {
            rule: "a",
            denied: Denied::Never { limit: 0, .. }
        })
    );
    denied && decision.retry_after().is_none() && decision.asked().count() == 0
}

fn rule(rest: &str) -> String {
    format!("[[rule]]\nname = 'a'\n{rest}\n")
}

#[test]
fn a_rule_can_be_unlimited_or_closed() {
    for key in ["", "key = 'user'\n", "key = 'user'\ncost = 3\n"] {
        let open = policy(&rule(&format!("{key}limit = 'unlimited'")));
        let closed = policy(&rule(&format!("{key}limit = [' 0 ']\nstatus = 403")));
        for _ in 0..3 {
            let decision = open.decide(&[("user", "ann")]);
            assert!(
                is_unlimited(&decision) && decision.status().is_none(),
                "{key}"
            );
            decision.finish(Outcome::Failure, &());
            let decision = closed.decide(&[("user", "ann")]);
            assert!(is_closed(&decision), "{key}");
            assert_eq!(decision.status(), Some(403));
        }
    }
    // A request without its key is denied, as by any rule.
    let open = policy(&rule("key = 'user'\nlimit = 'unlimited'"));
    assert_eq!(
        open.decide(&()).reason(),
        Some(Reason::MissingKey { rule: "a" })
    );
}

#[test]
fn a_plan_can_be_unlimited_or_closed() {
    for limit in ["2/h", "concurrency 2", "sliding-window 2/h"] {
        let policy = policy(&rule(&format!(
            "key = 'user'\nplan = {{ by = 'tier', none = '0', free = '{limit}', pro = 'unlimited' }}"
        )));
        let ask = |tier: &'static str| policy.decide(&[("user", "ann"), ("tier", tier)]);
        let held: Vec<_> = (0..3).map(|_| ask("free")).collect();
        let allowed = held.iter().map(|it| it.is_allowed());
        assert!(allowed.eq([true, true, false]), "{limit}");
        assert_eq!(held[0].tightest().and_then(|it| it.plan()), Some("free"));
        for _ in 0..3 {
            assert!(
                is_unlimited(&ask("pro")) && is_closed(&ask("none")),
                "{limit}"
            );
        }
        assert_eq!(ask("gold").reason(), Some(Reason::NoPlan { rule: "a" }));
    }
}

#[test]
fn an_override_can_be_unlimited_or_closed_and_replace_both() {
    let overrides = "override = [{ key = 'ann', limit = 'unlimited' }, { key = 'bob', limit = '0' }, \
                     { key = 'carol', limit = '2/h' }]";
    for limit in [
        "limit = '1/h'",
        "limit = 'unlimited'",
        "limit = '0'",
        "plan = { by = 'tier', free = '1/h' }",
        "plan = { by = 'tier', free = '0', default = 'free' }",
        "plan = { by = 'tier', free = 'unlimited', pro = '1/h', default = 'free' }",
    ] {
        let policy = policy(&rule(&format!("key = 'user'\n{limit}\n{overrides}")));
        let ask = |user: &'static str| policy.decide(&[("user", user)]);
        for _ in 0..3 {
            assert!(
                is_unlimited(&ask("ann")) && is_closed(&ask("bob")),
                "{limit}"
            );
        }
        let left: Vec<_> = (0..3).map(|_| ask("carol")).collect();
        let allowed = left.iter().map(|it| it.is_allowed());
        assert!(allowed.eq([true, true, false]), "{limit}");
        let quota = left[0].tightest().and_then(|it| it.quota());
        assert_eq!(quota.map(|it| it.permits()), Some(2), "{limit}");
    }
}

#[test]
fn an_unlimited_key_still_has_the_concurrency_of_its_rule() {
    let policy = policy(&rule(
        "key = 'user'\nlimit = ['1/h', 'concurrency 2']\n\
         override = [{ key = 'ann', limit = 'unlimited' }]",
    ));
    let ask = || policy.decide(&[("user", "ann")]);
    let held = [ask(), ask()];
    assert!(
        held.iter()
            .all(|it| it.is_allowed() && it.asked().count() == 1)
    );
    assert!(!ask().is_allowed());
    drop(held);
    assert!(ask().is_allowed());
}

#[test]
fn an_unlimited_key_takes_no_slot_and_a_closed_one_takes_nothing_of_other_rules() {
    let text = "apply = 'all'\n[[rule]]\nname = 'all'\nlimit = '100000/h'\n";
    let plan = "key = 'user'\ncapacity = 1\noverflow = 'deny'\n\
                plan = { by = 'tier', free = '9/h', pro = 'unlimited', none = '0' }";
    let policy = policy(&format!("{text}{}", rule(plan)));
    let ask = |user: &str, tier: &'static str| {
        let decision = policy.decide(&[("user", user), ("tier", tier)]);
        (decision.is_allowed(), decision.remaining())
    };
    for left in (95_000..100_000).rev() {
        assert_eq!(ask(&format!("u{left}"), "pro"), (true, Some(left)));
        assert_eq!(ask(&format!("v{left}"), "none"), (false, None));
    }
    let keys = || {
        let stats = policy.stats().rules;
        let tables = stats.iter().flat_map(|rule| &rule.tables);
        tables.map(|table| table.keys.tracked).sum::<u64>()
    };
    assert_eq!(keys(), 0);
    assert_eq!(ask("ann", "free"), (true, Some(8)));
    assert_eq!(keys(), 1);
}

/// A rate in place of an unlimited plan would stand beside the concurrency of another plan.
#[test]
fn an_override_needs_a_rate_or_a_rule_that_counts_nothing() {
    let own = |limit: &str| format!("override = [{{ key = 'ann', limit = '{limit}' }}]");
    let plan = "key = 'user'\nplan = { by = 'tier', a = 'unlimited', b = 'concurrency 5' }\n";
    for limit in ["2/h", "unlimited", "0"] {
        let text = rule(&format!("{plan}{}", own(limit)));
        let problems = Policy::from_toml(&text).expect_err(limit).to_string();
        let expected = "override needs a limit that is a rate, which it replaces";
        assert!(problems.contains(expected), "{limit}: {problems}");
        let open = rule(&format!(
            "key = 'user'\nlimit = 'unlimited'\n{}",
            own(limit)
        ));
        assert!(Policy::from_toml(&open).is_ok(), "{limit}");
    }
}

#[test]
fn a_shadow_rule_reports_that_it_would_deny() {
    let text = format!(
        "{}[[rule]]\nname = 'b'\nlimit = '9/h'",
        rule("limit = '0'\nshadow = true")
    );
    let policy = policy(&text);
    let decision = policy.decide(&());
    assert!(decision.is_allowed());
    let shadow = decision
        .asked()
        .find(|it| it.is_shadow())
        .expect("a shadow");
    assert_eq!((shadow.rule(), shadow.would_allow()), ("a", false));
    assert_eq!(shadow.denial().and_then(|it| it.retry_after()), None);
    let text = text.replace("'0'", "'unlimited'");
    assert!(
        crate::decisions::policy(&text)
            .decide(&())
            .asked()
            .all(|it| it.rule() == "b")
    );
}

#[test]
fn a_ban_of_failures_bans_an_unlimited_key_too() {
    let policy = policy(&rule(
        "key = 'user'\nlimit = 'unlimited'\nban = { after = 2, of = 'failures' }",
    ));
    for _ in 0..2 {
        let decision = policy.decide(&[("user", "ann")]);
        assert!(decision.is_allowed());
        decision.finish(Outcome::Failure, &());
    }
    let denied = policy.decide(&[("user", "ann")]);
    assert_eq!(denied.retry_after(), Some(Duration::from_secs(900)));
}

#[test]
fn a_denial_by_a_limit_of_0_counts_towards_no_ban() {
    let policy = policy(&rule(
        "key = 'user'\nlimit = '1/h'\nban = { after = 2, for = '1h' }\n\
         override = [{ key = 'ann', limit = '0' }]",
    ));
    for _ in 0..5 {
        assert!(is_closed(&policy.decide(&[("user", "ann")])));
    }
}

#[test]
fn what_is_wrong_says_what_is_allowed() {
    let check = |rest: &str| {
        let problems = Policy::builder().check_toml(&rule(rest));
        problems
            .iter()
            .map(|problem| problem.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        check("limit = ['5/s', '0', 'unlimited']"),
        [
            "3:17: error: rule \"a\": limit is \"0\", but must be the only limit of the rule",
            "3:22: error: rule \"a\": limit is \"unlimited\", but must be the only limit of the rule",
        ]
    );
    assert_eq!(
        check("limit = 'unlimitd'"),
        [
            "3:9: error: rule \"a\": limit is \"unlimitd\", but must begin with an algorithm or a rate; \
          did you mean `unlimited`? Known: token-bucket, gcra, leaky-meter, leaky-queue, fixed-window, \
          sliding-window, intervals, concurrency, unlimited"
        ]
    );
    assert_eq!(
        check("key = 'user'\nlimit = '1/s'\noverride = [{ key = 'ann', limit = 'concurrency 3' }]"),
        [
            "5:36: error: rule \"a\": override[1].limit is \"concurrency 3\", but must be a rate, \
          `unlimited` or `0`"
        ]
    );
    for limit in ["0", "unlimited"] {
        let ban = format!("key = 'user'\nlimit = '{limit}'\nban = {{ after = 2, for = '1h' }}");
        let expected = "error: rule \"a\": ban needs a limit that has a period: `concurrency`, \
                        `unlimited` and `0` have none";
        let problems = check(&ban);
        assert!(
            problems.iter().any(|it| it.ends_with(expected)),
            "{problems:?}"
        );
        let store = format!("limit = '{limit}'\nstore = 'disk'\nfallback = 'closed'");
        assert!(check(&store)[0].contains("must be a registered store"));
        assert_eq!(check(&format!("key = 'user'\nlimit = '{limit}'")), [""; 0]);
    }
    // A table takes memory, and there is none here.
    let text = format!(
        "memory = '1B'\n{}",
        rule("key = 'user'\nlimit = 'unlimited'")
    );
    assert!(Policy::builder().check_toml(&text).is_empty());
}

#[test]
fn explanations_say_it() {
    let text = rule(
        "key = 'user'\nplan = { by = 'tier', free = '0', pro = 'unlimited' }\n\
         override = [{ key = 'ann', limit = 'unlimited' }]",
    );
    let file = PolicyFile::from_toml(&text).expect("a policy");
    let explained = |user, tier| explain(&file, &[("user", user), ("tier", tier)]).to_string();
    assert_eq!(
        explained("bob", "free"),
        "denied by a: its limit for this request is 0\n\
         a: applies: it has no conditions; key: user = bob; denies: its limit for this request is 0"
    );
    assert_eq!(
        explained("bob", "pro"),
        "asks a\na: applies: it has no conditions; key: user = bob; \
         limit: unlimited (plan pro: tier is pro); cost: 1"
    );
    assert_eq!(
        explained("ann", "none"),
        "asks a\na: applies: it has no conditions; key: user = ann; \
         limit: unlimited (override of this key); cost: 1"
    );
}

#[test]
fn other_keys_keep_their_permits_when_a_plan_or_a_key_becomes_unlimited() {
    let text = |pro: &str, ann: &str| {
        rule(&format!(
            "key = 'user'\nplan = {{ by = 'tier', free = '9/h', pro = '{pro}', default = 'free' }}\n\
             override = [{{ key = 'ann', limit = '{ann}' }}]"
        ))
    };
    let live = LivePolicy::new(policy(&text("20/h", "5/h")));
    let left = |user: &'static str, tier: &'static str| {
        live.decide(&[("user", user), ("tier", tier)]).remaining()
    };
    assert_eq!((left("bob", "free"), left("ann", "")), (Some(8), Some(4)));
    let state = |text: &str| {
        let reloaded = live.reload_toml(text).expect("a policy");
        let state = reloaded.rules().next().map(|(_, state)| state);
        state.expect("a rule")
    };
    assert_eq!(state(&text("unlimited", "unlimited")), RuleState::Migrated);
    assert_eq!((left("bob", "free"), left("ann", "")), (Some(7), None));
    assert_eq!(left("carol", "pro"), None);
    assert_eq!(state(&text("unlimited", "0")), RuleState::Migrated);
    assert_eq!(left("bob", "free"), Some(6));
    assert!(!live.decide(&[("user", "ann")]).is_allowed());
    assert_eq!(state(&text("unlimited", "3/h")), RuleState::Migrated);
    assert_eq!((left("bob", "free"), left("ann", "")), (Some(5), Some(1)));
    // What a plan had before is not known any more.
    assert_eq!(
        state(&text("20/h", "3/h")),
        RuleState::Fresh("its algorithm changed")
    );
    // A rule without a state gets one.
    let fixed = rule("key = 'user'\nlimit = '0'");
    let _ = state(&fixed);
    let own = format!("{fixed}override = [{{ key = 'ann', limit = '3/h' }}]");
    assert_eq!(state(&own), RuleState::Fresh("its algorithm changed"));
    assert_eq!((left("bob", ""), left("ann", "")), (None, Some(2)));
}

#[test]
fn a_saved_state_goes_on_beside_an_unlimited_plan() {
    let text = rule("key = 'user'\nplan = { by = 'tier', free = '9/h', pro = 'unlimited' }");
    let bob = [("user", "bob"), ("tier", "free")];
    let first = policy(&text);
    assert_eq!(first.decide(&bob).remaining(), Some(8));
    let mut state = Vec::new();
    first.snapshot(&mut state).expect("a state");
    let builder = Policy::builder().clock(ManualClock::new());
    let builder = builder.restore(&mut &*state).expect("a state");
    let next = builder.build_toml(&text).expect("a policy");
    assert_eq!(next.decide(&bob).remaining(), Some(7));
}
