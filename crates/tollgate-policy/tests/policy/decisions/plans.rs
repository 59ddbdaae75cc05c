//! Plans of each kind of limit, and limits that the program registers.

use tollgate::{AnyAlgorithm, ManualClock};
use tollgate_policy::Policy;

use crate::decisions::policy;

const PLANS: &str =
    "plan = { by = 'tier', free = 'concurrency 1', pro = 'concurrency 3', default = 'free' }";

#[test]
fn a_plan_says_how_many_requests_are_inside() {
    for key in ["", "key = 'user'\n"] {
        let policy = policy(&format!("[[rule]]\nname = 'a'\n{key}{PLANS}"));
        let ask = |tier: &'static str| policy.decide(&[("user", "ann"), ("tier", tier)]);
        let held = [ask("pro"), ask("pro"), ask("pro")];
        assert!(held.iter().all(|it| it.is_allowed()), "{key}");
        let denied = ask("pro");
        assert_eq!((denied.is_allowed(), denied.remaining()), (false, Some(0)));
        // Each plan has places of its own, and unknown plans are the default.
        let free = ask("gold");
        assert!(free.is_allowed() && !ask("free").is_allowed());
        assert_eq!(free.tightest().and_then(|it| it.plan()), Some("free"));
        drop(free);
        assert_eq!(ask("free").remaining(), Some(0), "{key}");
        drop(held);
        assert_eq!(ask("pro").remaining(), Some(2), "{key}");
    }
}

#[test]
fn a_concurrency_without_a_rate_waits_for_nobody_and_shows_what_is_left() {
    let policy = policy(
        "apply = 'all'\n\
         [[rule]]\nname = 'a'\nkey = 'user'\nlimit = 'concurrency 1'\n\
         [[rule]]\nname = 'b'\nlimit = 'concurrency 5'",
    );
    let first = policy.decide(&[("user", "ann")]);
    let denied = policy.decide(&[("user", "ann")]);
    assert_eq!(
        (denied.denied_by(), denied.retry_after()),
        (Some("a"), None)
    );
    let remaining: Vec<_> = denied
        .asked()
        .map(|it| (it.remaining(), it.would_allow()))
        .collect();
    assert_eq!(remaining, [(0, false), (4, true)]);
    drop((first, denied));
    assert_eq!(
        policy
            .decide(&[("user", "ann")])
            .asked()
            .last()
            .map(|it| it.remaining()),
        Some(4)
    );
}

fn hourly(text: &str) -> Policy<ManualClock> {
    let builder = Policy::builder().clock(ManualClock::new());
    let builder = builder.algorithm("hourly", |n| format!("{n}/h").parse::<AnyAlgorithm>());
    builder
        .build_toml(text)
        .unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn a_registered_limit_on_trial_reports_and_never_denies() {
    let policy = hourly("[[rule]]\nname = 'a'\nlimit = 'hourly 1'\nshadow = true");
    for allows in [true, false, false] {
        let decision = policy.decide(&());
        assert!(decision.is_allowed());
        let asked: Vec<_> = decision.asked().map(|it| it.would_allow()).collect();
        assert_eq!(asked, [allows]);
    }
}

#[test]
fn a_registered_limit_settles_and_bans_like_others() {
    let policy = hourly(
        "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = 'hourly 9'\n\
         cost = { default = 3, settle = 'used' }\nban = { after = 1, for = '9h', within = '1h' }",
    );
    let ann = [("user", "ann")];
    assert_eq!(policy.decide(&ann).undo(), 3);
    assert_eq!(policy.decide(&ann).settle(&[("used", "1")]).returned, 2);
    assert_eq!(policy.decide(&ann).settle(&[("used", "8")]).charged, 5);
    assert!(!policy.decide(&ann).is_allowed());
    let wait = policy.decide(&ann).retry_after();
    assert_eq!(wait.map(|wait| wait.as_secs()), Some(9 * 3600));
    assert_eq!(policy.decide(&[("user", "bob")]).remaining(), Some(6));
}

#[test]
fn an_override_helps_a_key_that_has_no_plan() {
    let policy = policy(
        "[[rule]]\nname = 'a'\nkey = 'user'\nplan = { by = 'tier', pro = '5/h' }\n\
         override = [{ key = 'ann', limit = '3/h' }]",
    );
    assert_eq!(policy.decide(&[("user", "ann")]).remaining(), Some(2));
    assert_eq!(policy.decide(&[("user", "bob")]).denied_by(), Some("a"));
    assert_eq!(
        policy
            .decide(&[("user", "ann"), ("tier", "pro")])
            .remaining(),
        Some(1)
    );
}

#[test]
fn the_longest_delay_of_all_limits_counts() {
    let policy = policy(
        "[[rule]]\nname = 'a'\nlimit = ['leaky-queue 10/s burst 5', 'leaky-queue 1/s burst 5', '9/s']",
    );
    assert!(policy.decide(&()).delay().is_zero());
    assert_eq!(policy.decide(&()).delay().as_millis(), 1000);
}
