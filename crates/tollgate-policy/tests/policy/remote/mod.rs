//! Rules whose stores decide asynchronously, together with rules in memory.

mod ends;
mod keys;
mod store;

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tollgate::ManualClock;
use tollgate_policy::file::PolicyFile;
use tollgate_policy::{Asked, FallbackKind, LivePolicy, Outcome, Policy, Reason, RuleState};

use store::Store;

/// Polls a future until it is ready. The store's futures are ready after some polls.
fn run<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

type TestPolicy = Policy<ManualClock>;

/// Returns a policy with two stores, `near` and `far`.
fn policy(text: &str) -> (TestPolicy, Store, Store) {
    let (near, far) = (Store::default(), Store::default());
    let builder = Policy::builder().clock(ManualClock::new());
    let builder = builder.store("near", near.clone());
    let builder = builder.store("far", far.clone());
    (builder.build_toml(text).expect("a policy"), near, far)
}

/// One rule in memory, two on `near` and one on `far`, all or nothing.
const FOUR: &str = "
    apply = 'all'
    [[rule]]
    name = 'far'
    key = 'user'
    limit = '3'
    store = 'far'
    fallback = 'closed'
    [[rule]]
    name = 'near-user'
    key = 'user'
    limit = '9'
    store = 'near'
    fallback = 'closed'
    [[rule]]
    name = 'memory'
    key = 'user'
    limit = '5/h'
    [[rule]]
    name = 'near-all'
    limit = '8'
    store = 'near'
    fallback = 'closed'
";

const ANN: [(&str, &str); 1] = [("user", "ann")];

fn names_and_left<'d>(asked: impl Iterator<Item = Asked<'d>>) -> Vec<(&'d str, u64)> {
    asked.map(|it| (it.rule(), it.remaining())).collect()
}

/// Returns how many permits the rule `memory` of [`FOUR`] has for a user.
fn left_in_memory(policy: &TestPolicy, store: &Store) -> u64 {
    store.state().is_down = true;
    let decision = run(policy.decide_async(&ANN));
    store.state().is_down = false;
    let mut asked = decision.asked();
    let memory = asked.find(|it| it.rule() == "memory");
    memory.map_or(0, |it| it.remaining())
}

#[test]
fn each_store_gets_one_call_and_all_limits_show() {
    let (policy, near, far) = policy(FOUR);
    let decision = run(policy.decide_async(&ANN));
    assert!(decision.is_allowed());
    assert_eq!(
        names_and_left(decision.asked()),
        [("memory", 4), ("far", 2), ("near-user", 8), ("near-all", 7)]
    );
    assert_eq!(decision.remaining(), Some(2));
    assert_eq!(decision.tightest().map(|it| it.rule()), Some("far"));
    assert_eq!(far.calls(), ["take [far]"]);
    assert_eq!(near.calls(), ["take [near-user near-all]"]);
}

#[test]
fn several_sets_are_all_or_none_at_stores_too() {
    let text = "[[rule]]\nname = 'near'\nkey = 'user'\nlimit = '2'\nstore = 'near'\n\
                fallback = 'closed'\n[[rule]]\nname = 'memory'\nkey = 'user'\nlimit = '9/h'";
    let (policy, near, _) = policy(&format!("apply = 'all'\n{text}"));
    let [ann, bob] = ["ann", "bob"].map(|name| [("user", name)]);
    let decision = run(policy.decide_together_async(&[&ann, &bob, &ann]));
    assert!(decision.is_allowed());
    assert_eq!(
        names_and_left(decision.asked()),
        [("memory", 8), ("memory", 8), ("near", 1), ("near", 1)]
    );
    assert_eq!(near.calls(), ["take [near near]"]);
    assert_eq!(run(decision.undo_async()).ok(), Some(4));
    assert!(run(policy.decide_async(&bob)).is_allowed());
    assert!(run(policy.decide_async(&bob)).is_allowed());
    // Bob has no permit left, so Ann keeps hers.
    let denied = run(policy.decide_together_async(&[&ann, &bob]));
    assert_eq!(denied.denied_by(), Some("near"));
    assert_eq!(run(policy.decide_async(&ann)).remaining(), Some(1));
}

#[test]
fn a_denial_in_memory_makes_no_call() {
    let (policy, near, far) = policy(&FOUR.replace("5/h", "1/h"));
    assert!(run(policy.decide_async(&ANN)).is_allowed());
    near.calls();
    far.calls();
    let denied = run(policy.decide_async(&ANN));
    assert_eq!(denied.denied_by(), Some("memory"));
    assert_eq!((near.calls().len(), far.calls().len()), (0, 0));
    assert_eq!((near.taken("near-all"), far.taken("far")), (1, 1));
}

#[test]
fn a_denial_by_a_store_gives_everything_back() {
    let (policy, near, far) = policy(&FOUR.replace("'8'", "'2'"));
    for _ in 0..2 {
        assert!(run(policy.decide_async(&ANN)).is_allowed());
    }
    far.calls();
    let denied = run(policy.decide_async(&ANN));
    assert!(!denied.is_allowed());
    assert_eq!(denied.denied_by(), Some("near-all"));
    assert_eq!(denied.retry_after(), Some(Duration::from_secs(30)));
    let would_allow: Vec<_> = denied
        .asked()
        .map(|it| (it.rule(), it.would_allow()))
        .collect();
    assert_eq!(
        would_allow,
        [("memory", true), ("far", true), ("near-all", false)]
    );
    assert_eq!(
        names_and_left(denied.asked())[..2],
        [("memory", 3), ("far", 1)]
    );
    assert_eq!(far.calls(), ["take [far]", "undo"]);
    assert_eq!((near.taken("near-user"), far.taken("far")), (2, 2));
    assert_eq!(denied.undo(), 0);
    assert_eq!(left_in_memory(&policy, &far), 3);
}

/// A store that does not answer says nothing about the request. One that denies it does.
#[test]
fn the_denial_of_a_limit_is_the_answer_and_not_that_of_a_store_that_is_down() {
    for down in ["far", "near"] {
        let (policy, near, far) = policy(&FOUR.replace("'3'", "'1'").replace("'8'", "'1'"));
        assert!(run(policy.decide_async(&ANN)).is_allowed());
        let (down, denying, rule) = match down {
            "far" => (&far, &near, "near-all"),
            _ => (&near, &far, "far"),
        };
        down.state().is_down = true;
        let denied = run(policy.decide_async(&ANN));
        assert_eq!(denied.denied_by(), Some(rule));
        assert_eq!(denied.retry_after(), Some(Duration::from_secs(30)));
        denying.state().is_down = true;
        let denied = run(policy.decide_async(&ANN));
        assert_eq!(denied.retry_after(), Some(Duration::from_secs(1)));
        assert_eq!((near.taken("near-user"), far.taken("far")), (1, 1));
        assert_eq!(left_in_memory(&policy, &far), 4);
    }
}

#[test]
fn a_store_that_is_down_is_another_reason_than_a_limit() {
    let ban = "\n    ban = { after = 1, for = '1h', within = '1h' }";
    let rule = "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = '9'\nstore = 'far'";
    let (policy, _, far) = policy(&format!("{rule}\nfallback = 'closed'{ban}"));
    let second = Some(Duration::from_secs(1));
    for (kind, is_unavailable) in [
        (FallbackKind::Closed, true),
        (FallbackKind::Open, true),
        (FallbackKind::Local, false),
    ] {
        far.state().is_down = true;
        far.state().fallback = kind;
        let decision = run(policy.decide_async(&ANN));
        assert_eq!(decision.fallback(), Some(kind));
        let asked: Vec<_> = decision.asked().map(|it| it.fallback()).collect();
        assert_eq!(asked, [Some(kind)]);
        let reason = decision.reason().expect("it is denied");
        match is_unavailable {
            true => assert_eq!(
                reason,
                Reason::Unavailable {
                    rule: "a",
                    retry_after: second
                }
            ),
            false => assert!(matches!(reason, Reason::Limit { rule: "a", .. })),
        }
        assert_eq!(
            (decision.denied_by(), decision.retry_after()),
            (Some("a"), second)
        );
        // None of them is a strike.
        far.state().is_down = false;
        let decision = run(policy.decide_async(&ANN));
        assert!(decision.is_allowed());
        assert_eq!(decision.fallback(), None);
        assert!(far.state().banned.is_empty());
    }
}

/// A shadow rule decides nothing, so its fallback does not either.
#[test]
fn the_fallback_of_a_shadow_rule_is_none_of_the_decision() {
    let (policy, near, far) = policy(
        "apply = 'all'\n\
         [[rule]]\nname = 'a'\nlimit = '9'\nstore = 'far'\nfallback = 'closed'\n\
         [[rule]]\nname = 'trial'\nlimit = '9'\nstore = 'near'\nfallback = 'closed'\nshadow = true",
    );
    near.state().is_down = true;
    let decision = run(policy.decide_async(&ANN));
    assert!(decision.is_allowed());
    assert_eq!(decision.fallback(), None);
    assert_eq!(far.taken("a"), 1);
}

#[test]
fn a_policy_of_a_program_names_a_fallback_too() {
    let text = "[[rule]]\nname = 'a'\nlimit = '9'\nstore = 'far'\nfallback = 'open'";
    let mut file = PolicyFile::from_toml(text).expect("a policy");
    let build = |file: &PolicyFile| {
        let builder = Policy::builder().clock(ManualClock::new());
        builder.store("far", Store::default()).build(file)
    };
    assert!(build(&file).is_ok());
    file.rules[0].fallback = None;
    let problems = build(&file).expect_err("an error").to_string();
    assert!(
        problems.contains("rule \"a\": fallback is missing"),
        "{problems}"
    );
    assert_eq!(problems.lines().count(), 1, "{problems}");
}

#[test]
fn a_future_that_is_dropped_gives_the_permits_of_this_process_back() {
    // Of every call, before and after it takes effect, at every poll.
    for stop_after in 0..12 {
        let (policy, near, far) = policy(FOUR);
        far.state().pending = [2, 2];
        near.state().pending = [2, 2];
        {
            let mut future = pin!(policy.decide_async(&ANN));
            let mut context = Context::from_waker(Waker::noop());
            let polls = (0..stop_after).map(|_| future.as_mut().poll(&mut context).is_ready());
            let is_ready = polls.take_while(|is_ready| !is_ready).count() < stop_after;
            assert_eq!(is_ready, stop_after > 8, "{stop_after}");
            if is_ready {
                continue;
            }
        }
        assert_eq!(left_in_memory(&policy, &far), 5, "{stop_after}");
        // The store that has granted before is as it documents.
        assert_eq!(far.taken("far"), u64::from(stop_after > 2), "{stop_after}");
    }
}

#[test]
fn a_future_that_is_dropped_while_a_store_undoes_gives_the_permits_of_this_process_back() {
    let (policy, _, far) = policy(&FOUR.replace("'8'", "'00'"));
    far.state().pending = [1, 0];
    {
        let mut future = pin!(policy.decide_async(&ANN));
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..2 {
            assert!(future.as_mut().poll(&mut context).is_pending());
        }
    }
    assert_eq!(far.calls(), ["take [far]"]);
    assert_eq!(left_in_memory(&policy, &far), 5);
}

#[test]
fn costs_are_settled_everywhere() {
    let costs = "cost = { estimate = 'n', settle = 'used' }\n";
    let text = FOUR.replace("key = 'user'\n", &format!("key = 'user'\n{costs}"));
    let (policy, near, far) = policy(&text);
    let request = [("user", "ann"), ("n", "3")];
    let decision = run(policy.decide_async(&request));
    let settled = run(decision.settle_async(&[("used", "1")])).expect("the stores answer");
    // Of the far one, the near one and the one in memory.
    assert_eq!((settled.returned, settled.charged), (6, 0));
    assert_eq!((near.taken("near-user"), near.taken("near-all")), (1, 1));
    assert_eq!(far.taken("far"), 1);

    let decision = run(policy.decide_async(&ANN));
    let settled = run(decision.finish_async(Outcome::Success, &[("used", "2")]));
    assert_eq!(settled.expect("the stores answer").charged, 3);
    assert_eq!(far.taken("far"), 3);
}

#[test]
fn an_outcome_that_does_not_count_gives_permits_back() {
    let text = FOUR.replace("store = 'far'", "store = 'far'\ncount = 'failures'");
    let (policy, near, far) = policy(&text);
    let decision = run(policy.decide_async(&ANN));
    run(decision.finish_async(Outcome::Success, &())).expect("the stores answer");
    assert_eq!((far.taken("far"), near.taken("near-all")), (0, 1));
    let decision = run(policy.decide_async(&ANN));
    assert_eq!(run(decision.undo_async()).expect("the stores answer"), 4);
    assert_eq!((far.taken("far"), near.taken("near-all")), (0, 1));
}

#[test]
fn a_store_that_fails_to_undo_does_not_keep_the_others_from_it() {
    let (policy, near, far) = policy(FOUR);
    let decision = run(policy.decide_async(&ANN));
    near.state().is_down = true;
    assert!(run(decision.undo_async()).is_err());
    assert_eq!((near.taken("near-all"), far.taken("far")), (1, 0));
    assert_eq!(left_in_memory(&policy, &far), 5);
}

#[test]
fn a_rule_in_the_shadow_reports_and_never_denies() {
    let (policy, near, far) = policy(&FOUR.replace("limit = '3'", "limit = '1'\nshadow = true"));
    for allowed in [true, false] {
        let decision = run(policy.decide_async(&ANN));
        assert!(decision.is_allowed());
        let far = decision.asked().find(|it| it.rule() == "far");
        assert_eq!(far.map(|it| it.would_allow()), Some(allowed));
        assert!(far.is_some_and(|it| it.is_shadow()));
    }
    assert_eq!((near.taken("near-all"), far.taken("far")), (2, 1));
}

#[test]
fn the_synchronous_decision_is_refused_and_takes_nothing() {
    let (policy, near, _) = policy(FOUR);
    let decision = policy.decide(&ANN);
    assert_eq!(
        decision.reason(),
        Some(Reason::Asynchronous { rule: "far" })
    );
    assert_eq!(near.calls().len(), 0);
    assert_eq!(left_in_memory(&policy, &near), 5);
}

#[test]
fn the_status_is_that_of_the_rule_whose_store_denies() {
    let statuses = |text: &str| {
        let text = text.replace("store = 'far'", "store = 'far'\n    status = 502");
        text.replace("limit = '8'", "limit = '2'\n    status = 503")
    };
    let (policy, _, _) = policy(&statuses(FOUR));
    for _ in 0..2 {
        assert_eq!(run(policy.decide_async(&ANN)).status(), None);
    }
    let denied = run(policy.decide_async(&ANN));
    assert_eq!(
        (denied.denied_by(), denied.status()),
        (Some("near-all"), Some(503))
    );
    // The synchronous decision names the first rule that it can't ask.
    let refused = policy.decide(&ANN);
    assert_eq!(
        (refused.denied_by(), refused.status()),
        (Some("far"), Some(502))
    );
}

#[test]
fn too_many_denials_ban_the_key_at_the_store() {
    let rule = "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = '1'\nstore = 'far'\nfallback = 'closed'\n\
                ban = { after = 2, for = '10min', within = '1h' }";
    let (policy, _, far) = policy(rule);
    assert!(run(policy.decide_async(&ANN)).is_allowed());
    far.state().is_down = true;
    for _ in 0..5 {
        // An outage is not the caller's fault.
        assert!(!run(policy.decide_async(&ANN)).is_allowed());
    }
    far.state().is_down = false;
    assert!(!run(policy.decide_async(&ANN)).is_allowed());
    assert!(far.state().banned.is_empty());
    assert!(!run(policy.decide_async(&ANN)).is_allowed());
    let banned: Vec<_> = far.state().banned.iter().map(|(_, long)| *long).collect();
    assert_eq!(banned, [Duration::from_secs(600)]);
}

#[test]
fn a_plan_decides_by_its_own_limit() {
    let rule = "[[rule]]\nname = 'a'\nkey = 'user'\nstore = 'far'\nfallback = 'closed'\n\
                plan = { by = 'tier', free = '1', pro = '2', default = 'free' }";
    let (policy, _, _) = policy(rule);
    let request = |tier| [("user", "ann"), ("tier", tier)];
    assert!(run(policy.decide_async(&request("pro"))).is_allowed());
    assert!(run(policy.decide_async(&request("pro"))).is_allowed());
    assert!(!run(policy.decide_async(&request("pro"))).is_allowed());
}

#[test]
fn a_key_with_an_override_has_a_limit_of_its_own_at_its_store() {
    let rule = "[[rule]]\nname = 'a'\nkey = 'user'\nstore = 'far'\nfallback = 'closed'\n\
                plan = { by = 'tier', free = '1', pro = '2' }\n\
                override = [{ key = 'zoe', limit = '7' }, { key = 'ann', limit = '5' }]";
    let (policy, _, far) = policy(rule);
    for (user, tier, left) in [
        ("ann", "pro", Some(4)),
        ("zoe", "free", Some(6)),
        ("bob", "pro", Some(1)),
        // The plan of a key with an override does not matter, and it need not have one.
        ("ann", "free", Some(3)),
        ("ann", "gold", Some(2)),
        ("bob", "gold", None),
    ] {
        let decision = run(policy.decide_async(&[("user", user), ("tier", tier)]));
        assert_eq!(decision.remaining(), left, "{user} {tier}");
        let calls = match left {
            Some(_) => vec!["take [a]"],
            None => vec![],
        };
        assert_eq!(far.calls(), calls, "{user} {tier}");
    }
    let decision = run(policy.decide_async(&[("user", "ann"), ("tier", "pro")]));
    assert_eq!(run(decision.undo_async()).ok(), Some(1));
    assert_eq!(far.taken("a"), 5);
}

#[test]
fn a_key_whose_override_is_unlimited_or_0_needs_no_call() {
    for limit in [
        "limit = ['1', '2']",
        "limit = 'unlimited'",
        "limit = '0'",
        "plan = { by = 'tier', free = '1', pro = 'unlimited' }",
    ] {
        let (policy, _, far) = policy(&format!(
            "[[rule]]\nname = 'a'\nkey = 'user'\nstore = 'far'\nfallback = 'closed'\n{limit}\n\
             override = [{{ key = 'ann', limit = 'unlimited' }}, {{ key = 'bob', limit = '0' }}, \
             {{ key = 'zoe', limit = '7' }}]"
        ));
        far.state().is_down = true;
        for (user, is_allowed) in [("ann", true), ("bob", false)] {
            for tier in ["free", "pro", "none"] {
                let request = [("user", user), ("tier", tier)];
                let decision = run(policy.decide_async(&request));
                assert_eq!(decision.is_allowed(), is_allowed, "{user} {limit}");
                assert_eq!(decision.asked().count(), 0, "{user} {limit}");
                assert_eq!(decision.retry_after(), None, "{user} {limit}");
                assert_eq!(policy.decide(&request).is_allowed(), is_allowed);
            }
        }
        assert!(far.calls().is_empty(), "{limit}");
        far.state().is_down = false;
        for tier in ["free", "pro", "none"] {
            let decision = run(policy.decide_async(&[("user", "zoe"), ("tier", tier)]));
            assert!(decision.is_allowed(), "{limit}");
            assert_eq!(far.calls().len(), 1, "{limit}");
        }
    }
}

#[test]
fn an_override_of_a_rule_whose_store_is_in_this_process_is_an_error() {
    let here = tollgate_policy::Store::here(|_| Err("must not be asked".into()));
    let rule = "[[rule]]\nname = 'a'\nkey = 'user'\nstore = 'here'\nfallback = 'closed'\n\
                limit = '5/h'\noverride = [{ key = 'ann', limit = '9/h' }]";
    let problems = Policy::builder().store("here", here).check_toml(rule);
    let text = problems.to_string();
    assert!(
        text.contains(
            "7:36: error: rule \"a\": override[1].limit is \"9/h\", but is possible only for a rule \
             with a key, in memory or on a store that decides asynchronously"
        ),
        "{text}"
    );
}

#[test]
fn an_unknown_store_lists_the_registered_ones() {
    let builder = Policy::builder().store("far", Store::default());
    let rule = "[[rule]]\nname = 'a'\nlimit = '1'\nstore = 'fra'\nfallback = 'closed'";
    let problems = builder
        .build_toml(rule)
        .expect_err("there is no such store");
    let text = problems.to_string();
    assert!(text.contains("`far`") && text.contains("store"), "{text}");
}

#[test]
fn a_reloaded_policy_keeps_a_limit_that_did_not_change() {
    let rule = |limit: &str| {
        format!(
            "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = '{limit}'\nstore = 'far'\nfallback = 'closed'"
        )
    };
    let (policy, _, far) = policy(&rule("2"));
    let live = Arc::new(LivePolicy::new(policy));
    let decision = run(live.decide_async(&ANN));
    let kept = live.reload_toml(&rule("2")).expect("a policy");
    assert_eq!(kept.state("a"), Some(RuleState::Kept));
    let changed = live.reload_toml(&rule("1")).expect("a policy");
    assert!(matches!(changed.state("a"), Some(RuleState::Fresh(_))));
    assert!(!run(live.decide_async(&ANN)).is_allowed());
    // The decision from before the reload ends at the store, on another thread too.
    std::thread::scope(|scope| {
        scope.spawn(|| run(decision.undo_async()).expect("the store answers"));
    });
    assert_eq!(far.taken("a"), 0);
}

#[test]
fn the_last_store_of_a_name_is_used() {
    let here = |message: &'static str| tollgate_policy::Store::here(move |_| Err(message.into()));
    let rule =
        "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = '5'\nstore = 'far'\nfallback = 'closed'";
    let builder = Policy::builder().store("far", here("the first"));
    let builder = builder.store("far", Store::default());
    assert!(builder.build_toml(rule).is_ok());
    let builder = Policy::builder().store("far", Store::default());
    let builder = builder.store("far", here("the last"));
    let problems = builder.build_toml(rule).expect_err("it is refused");
    assert!(problems.to_string().contains("the last"), "{problems}");
}

/// A rule in the shadow with two limits, and one that can deny.
const TRIAL: &str = "
    apply = 'all'
    [[rule]]
    name = 'trial'
    key = 'user'
    limit = ['9', '1']
    store = 'far'
    fallback = 'closed'
    shadow = true
    [[rule]]
    name = 'other-trial'
    limit = '9'
    store = 'far'
    fallback = 'closed'
    shadow = true
    [[rule]]
    name = 'far'
    limit = '9'
    store = 'far'
    fallback = 'closed'
";

#[test]
fn a_rule_in_the_shadow_takes_all_or_nothing_in_one_call() {
    let (policy, _, far) = policy(TRIAL);
    for allowed in [true, false] {
        let decision = run(policy.decide_async(&ANN));
        assert!(decision.is_allowed());
        assert_eq!(
            far.calls(),
            ["take [far]", "take [trial trial/1]", "take [other-trial]"]
        );
        let mut trial = decision.asked().filter(|it| it.rule() == "trial");
        assert_eq!(trial.all(|it| it.would_allow()), allowed);
        // Another rule in the shadow decides on its own.
        let mut asked = decision.asked();
        assert!(asked.any(|it| it.rule() == "other-trial" && it.would_allow()));
    }
    // The limit that would have allowed the second request took nothing.
    assert_eq!((far.taken("trial"), far.taken("trial/1")), (1, 1));
    assert_eq!((far.taken("other-trial"), far.taken("far")), (2, 2));
}

#[test]
fn a_store_that_takes_no_secret_refuses_one() {
    let text = format!("key-secret = 'swordfish-swordfish'\n{FOUR}");
    let builder = Policy::builder().store("near", Store::default());
    let builder = builder.store("far", Store::default());
    let refused = |store: &str| {
        let field = format!("key-secret of the store \"{store}\"");
        format!("1:14: error: {field} must be left out: the store does not hash keys")
    };
    let expected = format!("{}\n{}", refused("far"), refused("near"));
    assert_eq!(builder.check_toml(&text).to_string(), expected);
}

#[test]
fn an_unlimited_or_closed_limit_needs_no_call() {
    let (policy, near, _) = policy(
        "[[rule]]
        name = 'plans'
        when = { path = '/plans' }
        key = 'user'
        plan = { by = 'tier', pro = 'unlimited', free = '3', none = '0' }
        store = 'near'
        fallback = 'closed'
        [[rule]]
        name = 'all'
        limit = 'unlimited'
        store = 'near'
        fallback = 'closed'",
    );
    near.state().is_down = true;
    let ask = |path, tier| {
        let facts = [("path", path), ("user", "ann"), ("tier", tier)];
        let decision = run(policy.decide_async(&facts));
        assert_eq!(
            policy.decide(&facts).is_allowed(),
            decision.is_allowed() && (path, tier) != ("/plans", "free")
        );
        (
            decision.is_allowed(),
            decision.retry_after(),
            decision.asked().count(),
        )
    };
    assert_eq!(ask("/plans", "pro"), (true, None, 0));
    assert_eq!(ask("/plans", "none"), (false, None, 0));
    assert_eq!(ask("/", "free"), (true, None, 0));
    assert!(near.state().calls.is_empty());
    near.state().is_down = false;
    assert_eq!(ask("/plans", "free"), (true, None, 1));
    assert_eq!(near.state().calls.len(), 1);
}
