//! What a policy decides, where the examples of the page do not show it.

mod costs;
mod failures;
mod fixed;
mod keys;
mod own_limits;
mod permits;
mod plans;
mod sets;
mod together;

use std::time::Duration;

use tollgate::{Denied, ManualClock};
use tollgate_policy::{Outcome, Policy, Reason};

fn policy(text: &str) -> Policy<ManualClock> {
    let policy = Policy::builder().clock(ManualClock::new()).build_toml(text);
    policy.unwrap_or_else(|errors| panic!("{errors}"))
}

/// A rule whose key is tried again and again.
const BAN: &str = "[[rule]]\nname = 'login'\nkey = 'user'\nban = { after = 2, for = '5s' }\n";

#[test]
fn a_ban_lasts_as_long_as_it_says_whatever_the_limit() {
    for limit in ["1/d", "fixed-window 1/d", "sliding-window 1/d", "gcra 1/d"] {
        let policy = policy(&format!("{BAN}limit = ['{limit}', '10/s']"));
        let ask = || policy.decide(&[("user", "ann")]).retry_after();
        assert_eq!(ask(), None);
        let unbanned = ask();
        assert!(unbanned > Some(Duration::from_secs(80_000)), "{limit}");
        // The second denial bans, and it is the longer wait that counts.
        assert_eq!((ask(), ask()), (unbanned, unbanned), "{limit}");
    }
    let policy = policy(&format!("{BAN}limit = 'fixed-window 1/s'"));
    let ask = || policy.decide(&[("user", "ann")]).retry_after();
    assert_eq!(ask(), None);
    assert!(ask() <= Some(Duration::from_secs(1)));
    // The denial that bans the key says so.
    assert_eq!(ask(), Some(Duration::from_secs(5)));
    assert_eq!(ask(), Some(Duration::from_secs(5)));
    policy.clock().advance(Duration::from_nanos(4_999_999_999));
    assert_eq!(ask(), Some(Duration::from_nanos(1)));
    policy.clock().advance(Duration::from_nanos(1));
    assert_eq!(ask(), None);
}

#[test]
fn denials_count_anew_after_a_ban() {
    let rule = "key = 'user'\nban = { after = 2, for = '5s', within = '1h' }\nlimit = '1/s'";
    let policy = policy(&format!("[[rule]]\nname = 'login'\n{rule}"));
    let ask = || policy.decide(&[("user", "ann")]).retry_after();
    let second = Some(Duration::from_secs(1));
    let ban = Some(Duration::from_secs(5));
    for _ in 0..3 {
        assert_eq!((ask(), ask(), ask(), ask()), (None, second, ban, ban));
        policy.clock().advance(Duration::from_secs(5));
    }
}

#[test]
fn a_denial_by_two_limits_of_a_rule_counts_once() {
    let policy = policy(&format!("{BAN}limit = ['1/min', 'fixed-window 1/s']"));
    let denials = || {
        let denied = policy.decide(&[("user", "ann")]);
        let asked = denied.asked().filter_map(|asked| asked.denial());
        let bans = asked.filter(|denied| matches!(denied, Denied::Banned { .. }));
        bans.count()
    };
    assert_eq!([denials(), denials(), denials()], [0, 0, 2]);
    assert_eq!(denials(), 2);
}

#[test]
fn a_denial_by_another_rule_does_not_ban() {
    let text = format!("apply = 'all'\n{BAN}limit = '5/h'\n[[rule]]\nname = 'all'\nlimit = '1/d'");
    let policy = policy(&text);
    let ann = [("user", "ann")];
    assert!(policy.decide(&ann).is_allowed());
    for _ in 0..5 {
        let denied = policy.decide(&ann);
        assert!(matches!(
            denied.reason(),
            Some(Reason::Limit { rule: "all", .. })
        ));
        let login = denied.asked().find(|asked| asked.rule() == "login");
        assert_eq!(
            login.map(|asked| (asked.would_allow(), asked.remaining())),
            Some((true, 4))
        );
    }
}

#[test]
fn the_answer_settles_a_cost_unless_the_outcome_is_not_counted() {
    let policy = policy(
        "[[rule]]\nname = 'a'\nlimit = '100/h'\ncount = 'failures'\n\
         cost = { default = 10, settle = 'used' }",
    );
    let left = || policy.decide(&()).remaining();
    let _ = policy
        .decide(&())
        .finish(Outcome::Failure, &[("used", "30")]);
    assert_eq!(left(), Some(60));
    let _ = policy
        .decide(&())
        .finish(Outcome::Success, &[("used", "30")]);
    assert_eq!(left(), Some(50));
}

#[test]
fn a_concurrency_limit_counts_requests_whatever_they_cost() {
    let policy = policy("[[rule]]\nname = 'a'\nlimit = ['concurrency 2', '100/h']\ncost = 30");
    let (first, second) = (policy.decide(&()), policy.decide(&()));
    assert_eq!((first.remaining(), second.remaining()), (Some(1), Some(0)));
    assert!(!policy.decide(&()).is_allowed());
    drop(first);
    let third = policy.decide(&());
    let left: Vec<_> = third.asked().map(|asked| asked.remaining()).collect();
    assert_eq!(left, [0, 10]);
}

#[test]
fn a_rule_in_the_shadow_reports_a_missing_key_once() {
    let policy = policy(
        "apply = 'all'\n[[rule]]\nname = 'a'\nlimit = '5/h'\nalso = ['trial']\n\
         [[rule]]\nname = 'trial'\nkey = 'user'\nlimit = '5/h'\nshadow = true",
    );
    let decision = policy.decide(&());
    let asked: Vec<_> = decision
        .asked()
        .map(|it| (it.rule(), it.would_allow()))
        .collect();
    assert_eq!(asked, [("a", true), ("trial", false)]);
    assert!(decision.is_allowed());
}

#[test]
fn a_rule_in_the_shadow_takes_from_all_its_limits_or_from_none() {
    let policy = policy("[[rule]]\nname = 'a'\nlimit = ['1/s', '2/h']\nshadow = true");
    let asks = || {
        let decision = policy.decide(&());
        assert!(decision.is_allowed());
        let answers: Vec<_> = decision.asked().map(|it| it.would_allow()).collect();
        answers
    };
    assert_eq!(asks(), [true, true]);
    assert_eq!(asks(), [false, true]);
    policy.clock().advance(Duration::from_secs(1));
    assert_eq!(asks(), [true, true]);
}

#[test]
fn the_denial_that_bans_a_key_and_the_limits_of_its_rule_agree() {
    let policy = policy(&format!("{BAN}limit = '1/s'"));
    let ask = || policy.decide(&[("user", "ann")]);
    assert!(ask().is_allowed() && !ask().is_allowed());
    let denied = ask();
    let ban = Denied::banned(1, Some(Duration::from_secs(5)));
    let reason = Reason::Limit {
        rule: "login",
        denied: ban,
    };
    assert_eq!(denied.reason(), Some(reason));
    let asked: Vec<_> = denied.asked().map(|asked| asked.denial()).collect();
    assert_eq!(asked, [Some(ban)]);
}

#[test]
fn an_estimate_counts_between_one_permit_and_the_most() {
    let rule = "limit = '1000/d'\ncost = { estimate = 'header:x-n', default = 7, max = 800 }";
    let cost = |estimate: &str| {
        let policy = policy(&format!("[[rule]]\nname = 'a'\n{rule}"));
        let decision = policy.decide(&[("Header:X-N", estimate)]);
        1000 - decision.remaining().expect("a limit")
    };
    let estimates = [
        "0",
        "1",
        "800",
        "801",
        "18446744073709551616",
        "-5",
        "2.5",
        "",
    ];
    let costs = estimates.map(cost);
    assert_eq!(costs, [1, 1, 800, 800, 800, 7, 7, 7]);
}

#[test]
fn a_client_address_that_is_none_is_missing() {
    let policy = policy("[[rule]]\nname = 'a'\nkey = 'client-ip'\nlimit = '1/d'");
    let ask = |from: &str| policy.decide(&[("client-ip", from)]).is_allowed();
    assert!(ask("10.0.0.1"));
    for same in [
        "10.0.0.1:55",
        "::ffff:10.0.0.1",
        "[::ffff:10.0.0.1]:9",
        " 10.0.0.1 ",
    ] {
        assert!(!ask(same), "{same}");
    }
    let denied = policy.decide(&[("client-ip", "10.0.0.2, 10.0.0.3")]);
    assert_eq!(denied.reason(), Some(Reason::MissingKey { rule: "a" }));
}

#[test]
fn what_is_registered_for_another_clock_is_an_error() {
    let builder = Policy::builder().resolver("tenant", |_| Some("acme".into()));
    let builder = builder.algorithm("hourly", |_| {
        tollgate::TokenBucket::new(tollgate::Quota::per_hour(1))
    });
    let errors = builder
        .clock(ManualClock::new())
        .build_toml("")
        .expect_err("an error");
    assert_eq!(
        errors.to_string().trim(),
        "error: a registered name is \"hourly\", but must be registered after the call of `clock`"
    );
    let builder = Policy::builder().resolver("tenant", |_| Some("acme".into()));
    let policy = builder
        .clock(ManualClock::new())
        .build_toml("[[rule]]\nname = 'a'\nkey = 'tenant'\nlimit = '1/d'")
        .expect("a policy");
    assert!(policy.decide(&()).is_allowed());
}

#[test]
fn a_forgotten_key_begins_anew_and_keeps_its_override() {
    let policy = policy(&format!(
        "{BAN}limit = '1/d'\noverride = [{{ key = 'bob', limit = '2/d' }}]"
    ));
    let ask = |user: &str| policy.decide(&[("user", user)]).retry_after();
    let day = Some(Duration::from_secs(86_400));
    for user in ["ann", "bob"] {
        while ask(user).is_none() {}
        let key = policy.key("login", [user]).expect("a key");
        assert_eq!((key.reset(), key.reset()), (Ok(true), Ok(false)));
        assert_eq!(ask(user), None);
        let quota = policy
            .decide(&[("user", user)])
            .tightest()
            .and_then(|asked| asked.quota());
        assert_eq!(
            quota.map(|quota| quota.permits()),
            Some(if user == "bob" { 2 } else { 1 })
        );
    }
    assert_eq!(ask("ann"), day);
}

#[test]
fn the_status_is_that_of_the_rule_or_entry_that_denies() {
    let policy = policy(
        "
        [[deny]]
        name = 'removed'
        when = { path = '/v1' }
        status = 410
        [[deny]]
        name = 'blocked'
        when = { path = '/v2' }
        [[rule]]
        name = 'trial'
        limit = '1/h'
        cost = 2
        shadow = true
        status = 599
        [[rule]]
        name = 'login'
        when = { path = '/login' }
        key = 'user'
        limit = '1/h'
        ban = { after = 1, for = '1d' }
        status = 400
        [[rule]]
        name = 'export'
        when = { path = '/export' }
        plan = { by = 'tier', pro = '1/h' }
        status = 402
        [[rule]]
        name = 'all'
        limit = '3/h'
        ",
    );
    let status = |facts: &[(&str, &str)]| {
        let decision = policy.decide(&facts.to_vec());
        (decision.is_allowed(), decision.status())
    };
    let (allowed, denied) = ((true, None), |status| (false, status));
    assert_eq!(status(&[("path", "/v1")]), denied(Some(410)));
    assert_eq!(status(&[("path", "/v2")]), denied(None));
    let ann = [("path", "/login"), ("user", "ann")];
    assert_eq!(status(&ann), allowed);
    assert_eq!(status(&ann), denied(Some(400)));
    // Now the ban denies.
    assert_eq!(status(&ann), denied(Some(400)));
    assert_eq!(status(&[("path", "/login")]), denied(Some(400)));
    assert_eq!(status(&[("path", "/export")]), denied(Some(402)));
    // A rule in the shadow would deny it.
    assert_eq!(status(&[]), allowed);
    assert_eq!((status(&[]), status(&[])), (allowed, allowed));
    assert_eq!(status(&[]), denied(None));
}
