//! What the decision of a policy says, as an answer.

use std::time::Duration;

use tollgate::{Denied, Keyed, ManualClock, Quota, TokenBucket};
use tollgate_http::{Answers, Cause, Fields, LimitState, LimitStates, Refusal, RefusalBody};
use tollgate_policy::{Decision, LimitSpec, LivePolicy, Policy, Reason, Store};

use crate::{lines, written};

type Decided<'p> = Decision<&'p Policy<ManualClock>, ManualClock>;

const NONE: [(&str, &str); 0] = [];

fn policy(text: &str) -> Policy<ManualClock> {
    let policy = Policy::builder().clock(ManualClock::new()).build_toml(text);
    policy.unwrap_or_else(|errors| panic!("{errors}"))
}

fn refusal<'d>(decision: &'d Decided<'_>) -> Refusal<'d> {
    Refusal::of_reason(&decision.reason().expect("it is denied"))
}

#[test]
fn each_reason_has_its_cause_and_rule() {
    let policy = policy(
        "[[deny]]\nname = 'bots'\nwhen = { path = '/bot' }\n\
         [[rule]]\nname = 'login'\nwhen = { path = '/login' }\nkey = 'user'\nlimit = '1/min'\n\
         [[rule]]\nname = 'slots'\nwhen = { path = '/slots' }\nlimit = 'concurrency 1'\n\
         [[rule]]\nname = 'plans'\nwhen = { path = '/plans' }\nplan = { by = 'tier', pro = '1/s' }\n\
         [[rule]]\nname = 'large'\nwhen = { path = '/large' }\nlimit = '5/s'\n\
         cost = { default = 9, max = 9 }\n\
         [[rule]]\nname = 'bans'\nwhen = { path = '/bans' }\nkey = 'user'\nlimit = '1/s'\n\
         ban = { after = 1, for = '1h' }",
    );
    let path = |path| [("path", path), ("user", "ann")];
    // They take what there is.
    let login = policy.decide(&path("/login"));
    let slots = policy.decide(&path("/slots"));
    let bans = policy.decide(&path("/bans"));
    assert!(login.is_allowed() && slots.is_allowed() && bans.is_allowed());
    let hour = Duration::from_secs(3600);
    for (facts, cause, rule, wait) in [
        (path("/login"), Cause::Limit, "login", Some(hour / 60)),
        (path("/slots"), Cause::Overload, "slots", None),
        (path("/bot"), Cause::Listed, "bots", None),
        (path("/plans"), Cause::NoPlan, "plans", None),
        (path("/large"), Cause::TooLarge, "large", None),
        (path("/bans"), Cause::Banned, "bans", Some(hour)),
    ] {
        let decision = policy.decide(&facts);
        let refusal = refusal(&decision);
        assert_eq!((refusal.cause(), refusal.rule_name()), (cause, Some(rule)));
        assert_eq!(refusal.wait(), wait, "{rule}");
    }
    let decision = policy.decide(&[("path", "/login")]);
    assert_eq!(refusal(&decision).cause(), Cause::MissingKey);
}

#[test]
fn a_policy_that_cannot_decide_is_misconfigured() {
    // The limits of this store are on a clock of their own.
    let builder = Policy::builder().clock(ManualClock::new());
    let other = Store::here(|spec: &LimitSpec<'_, ManualClock>| {
        let bucket = TokenBucket::new(Quota::per_hour(9)).map_err(|error| error.to_string())?;
        let table = Keyed::with_clock(bucket, 9, ManualClock::new());
        let table = table.map_err(|error| error.to_string())?;
        Ok(Box::new(table.with_hasher(spec.hasher.clone())))
    });
    let text = "apply = 'all'\n[[rule]]\nname = 'a'\nlimit = '9/h'\n\
                [[rule]]\nname = 'b'\nlimit = '9/h'\nstore = 'other'\nfallback = 'closed'";
    let policy = builder.store("other", other).build_toml(text);
    let policy = policy.expect("a policy");
    let decision = policy.decide(&NONE);
    let refusal = refusal(&decision);
    assert_eq!(
        (refusal.cause(), refusal.rule_name()),
        (Cause::Misconfigured, None)
    );
    assert_eq!(Answers::new().refuse(&refusal).status(), 500);
}

/// A rule may allow so large a cost that its limit never recovers. It is the key that is refused
/// then, and not the policy that is wrong, also after a reload and in the next process.
#[test]
fn a_key_that_never_gets_a_permit_again_is_refused_with_429_and_without_a_wait() {
    let rule = "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = '1/d burst 2'\n\
                cost = { max = 9223372036854775807, settle = 'used' }";
    let ann = [("user", "ann")];
    let is_refused = |policy: &Policy<ManualClock>, user: &str| {
        let decision = policy.decide(&[("user", user)]);
        let Some(reason) = decision.reason() else {
            return false;
        };
        assert!(
            matches!(
                reason,
                Reason::Limit {
                    denied: Denied::Stuck { .. },
                    ..
                }
            ),
            "{reason:?}"
        );
        let answer = Answers::new()
            .body(RefusalBody::Problem)
            .refuse(&Refusal::of_reason(&reason));
        assert_eq!(answer.status(), 429);
        assert!(!answer.headers().contains_key("retry-after"));
        #[cfg(feature = "grpc")]
        {
            let answer = Answers::new().refuse_grpc(&Refusal::of_reason(&reason));
            assert_eq!(answer.headers()["grpc-status"], "8");
        }
        true
    };
    let live = LivePolicy::new(policy(rule));
    let _ = live
        .decide(&ann)
        .settle(&[("used", "18446744073709551615")]);
    assert!(is_refused(&live.load(), "ann") && !is_refused(&live.load(), "bob"));
    let other = rule.replace("max", "default = 2, max");
    let _ = live.reload_toml(&other).expect("a policy");
    assert!(is_refused(&live.load(), "ann"));
    let mut state = Vec::new();
    live.load().snapshot(&mut state).expect("memory");
    let next = Policy::builder().clock(ManualClock::new());
    let next = next
        .restore_after(&mut &state[..], Duration::ZERO)
        .expect("a state");
    let next = next.build_toml(&other).expect("a policy");
    assert!(is_refused(&next, "ann") && !is_refused(&next, "carol"));
}

#[test]
fn all_limits_that_can_deny_are_in_the_fields() {
    let policy = policy(
        "[[rule]]\nname = 'search'\nlimit = ['10/s', 'concurrency 3']\nalso = ['all']\n\
         [[rule]]\nname = 'all'\nlimit = '1000/h'\nalso = ['trial']\n\
         [[rule]]\nname = 'trial'\nlimit = '1/h'\nshadow = true",
    );
    let decision = policy.decide(&NONE);
    assert_eq!(
        lines(&written(Fields::LIST, &LimitStates::of(&decision))),
        [
            concat!(
                r#"ratelimit-policy: "search";q=10;w=1, "#,
                r#""search-2";q=3;qu="concurrent-requests", "all";q=1000;w=3600"#
            ),
            r#"ratelimit: "search";r=9;t=1, "search-2";r=2, "all";r=999;t=4"#,
        ]
    );
}

#[test]
fn a_denial_says_which_limits_deny_and_what_the_others_have_left() {
    let policy = policy("[[rule]]\nname = 'search'\nlimit = ['1/s', '100/h', '1/min']");
    assert!(policy.decide(&NONE).is_allowed());
    policy.clock().advance(Duration::from_millis(500));
    let decision = policy.decide(&NONE);
    let limits = LimitStates::of(&decision);
    let denies: Vec<_> = limits.iter().map(LimitState::denies).collect();
    assert_eq!(denies, [true, false, true]);
    let refusal = refusal(&decision).limits(&limits);
    let answer = Answers::new()
        .fields(Fields::LIST)
        .body(RefusalBody::Problem)
        .refuse(&refusal);
    assert_eq!(answer.headers()["retry-after"], "60");
    let state = r#""search";r=0;t=1, "search-2";r=99, "search-3";r=0;t=60"#;
    assert_eq!(answer.headers()["ratelimit"], state);
    assert!(
        answer
            .body()
            .ends_with(br#""violated-policies":["search","search-3"]}"#)
    );
}

#[test]
fn a_plan_and_an_override_show_their_own_quota() {
    let policy = policy(
        "[[rule]]\nname = 'a'\nkey = 'user'\nplan = { by = 'tier', free = '5/min', pro = '50/min' }\n\
         override = [{ key = 'ann', limit = '500/min' }]",
    );
    for (user, tier, quota) in [("bob", "free", 5), ("cid", "pro", 50), ("ann", "free", 500)] {
        let decision = policy.decide(&[("user", user), ("tier", tier)]);
        let quotas: Vec<_> = LimitStates::of(&decision)
            .iter()
            .map(LimitState::quota)
            .collect();
        assert_eq!(quotas, [quota], "{user}");
    }
}
