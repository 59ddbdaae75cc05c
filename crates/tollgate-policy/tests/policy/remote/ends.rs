//! How decisions end that asked a store: each permit comes back at most once.

use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use tollgate::Denied;
use tollgate_policy::{LivePolicy, Outcome, Reason, RuleState};

use crate::remote::store::Store;
use crate::remote::{ANN, TestPolicy, policy, run};

/// A place for one request, a rate, and a limit on `far`, all or nothing.
const THREE: &str = "
    apply = 'all'
    [[rule]]
    name = 'inside'
    limit = 'concurrency 1'
    [[rule]]
    name = 'rate'
    limit = '10/h'
    cost = { default = 2, settle = 'used' }
    [[rule]]
    name = 'far'
    limit = '3'
    cost = { estimate = 'n', settle = 'used' }
    store = 'far'
    fallback = 'closed'
";

/// Returns whether one request fits inside, and not two, and how many permits the rate has left.
fn here(policy: &TestPolicy, far: &Store) -> (bool, u64) {
    let allowed = std::mem::take(&mut far.state().taken);
    let first = run(policy.decide_async(&ANN));
    let second = run(policy.decide_async(&ANN));
    assert!(!second.is_allowed());
    let fits = first.is_allowed();
    let rate = first.asked().find(|it| it.rule() == "rate");
    let left = rate.map_or(0, |it| it.remaining());
    run(first.undo_async()).expect("the store answers");
    far.state().taken = allowed;
    (fits, left)
}

#[test]
fn nothing_changes_if_a_request_ends_that_a_store_denied() {
    let used = [("used", "7")];
    for end in 0..7 {
        let (policy, _, far) = policy(THREE);
        let denied = run(policy.decide_async(&[("n", "4")]));
        assert_eq!(denied.denied_by(), Some("far"));
        let came_back = match end {
            0 => denied.finish(Outcome::Failure, &used).charged,
            1 => denied.settle(&used).charged,
            2 => denied.undo(),
            3 => {
                run(denied.finish_async(Outcome::Success, &used))
                    .expect("it is over")
                    .charged
            }
            4 => run(denied.settle_async(&used)).expect("it is over").charged,
            5 => run(denied.undo_async()).expect("it is over"),
            _ => 0,
        };
        assert_eq!(came_back, 0, "{end}");
        assert_eq!(here(&policy, &far), (true, 8), "{end}");
        assert_eq!(far.taken("far"), 0, "{end}");
    }
}

#[test]
fn a_place_is_free_again_however_the_decision_ends() {
    let used = [("used", "1")];
    for (end, left) in [(0, 7), (1, 7), (2, 8), (3, 6), (4, 7), (5, 8)] {
        let (policy, _, far) = policy(THREE);
        let allowed = run(policy.decide_async(&ANN));
        assert!(allowed.is_allowed());
        match end {
            0 => drop(run(allowed.finish_async(Outcome::Failure, &used)).expect("it answers")),
            1 => drop(run(allowed.settle_async(&used)).expect("it answers")),
            2 => drop(run(allowed.undo_async()).expect("it answers")),
            3 => drop(allowed),
            4 => drop(allowed.finish(Outcome::Failure, &used)),
            _ => drop(allowed.undo()),
        }
        assert_eq!(here(&policy, &far), (true, left), "{end}");
        // Only `undo_async` returns the permits of the store; `undo` can't ask it.
        assert_eq!(far.taken("far"), u64::from(end != 2), "{end}");
    }
}

#[test]
fn a_future_that_ends_a_decision_can_be_dropped_at_every_poll() {
    let used = [("used", "1")];
    for undo in [false, true] {
        for polls in 0..3 {
            let (policy, _, far) = policy(THREE);
            let allowed = run(policy.decide_async(&ANN));
            far.state().pending = [1, 0];
            let mut context = Context::from_waker(Waker::noop());
            let mut poll = |future: std::pin::Pin<&mut dyn Future<Output = bool>>| {
                let mut future = future;
                let polled = (0..polls).map(|_| future.as_mut().poll(&mut context).is_ready());
                polled.fold(false, |_, is_ready| is_ready)
            };
            let is_ready = match undo {
                true => poll(pin!(async { allowed.undo_async().await.is_ok() })),
                false => poll(pin!(async { allowed.settle_async(&used).await.is_ok() })),
            };
            far.state().pending = [0, 0];
            assert_eq!(is_ready, polls == 2);
            let left = match (polls, undo) {
                // It was dropped before it began, like the decision.
                (0, _) => 6,
                (_, true) => 8,
                (_, false) => 7,
            };
            assert_eq!(here(&policy, &far), (true, left), "{undo} {polls}");
        }
    }
}

#[test]
fn a_future_that_is_dropped_at_any_poll_leaves_its_place() {
    for is_denied in [false, true] {
        for polls in 0..4 {
            let (policy, _, far) = policy(THREE);
            far.state().pending = [2, 1];
            {
                let facts = [("n", if is_denied { "4" } else { "1" })];
                let mut future = pin!(policy.decide_async(&facts));
                let mut context = Context::from_waker(Waker::noop());
                for poll in 0..polls {
                    assert!(future.as_mut().poll(&mut context).is_pending(), "{poll}");
                }
            }
            far.state().pending = [0, 0];
            assert_eq!(here(&policy, &far), (true, 8), "{is_denied} {polls}");
        }
    }
}

#[test]
fn a_banned_key_makes_no_call() {
    let (policy, _, far) = policy(
        "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = '00'\nstore = 'far'\nfallback = 'closed'\n\
         ban = { after = 2, for = '10min', within = '1h' }",
    );
    for (calls, seconds) in [(1, 30), (1, 600), (0, 600), (0, 600)] {
        let denied = run(policy.decide_async(&ANN));
        assert_eq!(far.calls().len(), calls, "{denied:?}");
        let wait = denied.retry_after().map(|wait| wait.as_secs());
        assert_eq!(wait, Some(seconds));
    }
    policy.clock().advance(Duration::from_secs(600));
    assert!(!run(policy.decide_async(&ANN)).is_allowed());
    assert_eq!(far.calls().len(), 1);
}

#[test]
fn denials_that_a_dropped_future_did_not_see_do_not_count() {
    let (policy, _, far) = policy(
        "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = '00'\nstore = 'far'\nfallback = 'closed'\n\
         ban = { after = 2, for = '10min', within = '1h' }",
    );
    far.state().pending = [0, 1];
    for _ in 0..5 {
        let mut future = pin!(policy.decide_async(&ANN));
        let mut context = Context::from_waker(Waker::noop());
        assert!(future.as_mut().poll(&mut context).is_pending());
    }
    assert!(!run(policy.decide_async(&ANN)).is_allowed());
    assert!(far.state().banned.is_empty());
    assert!(!run(policy.decide_async(&ANN)).is_allowed());
    assert_eq!(far.state().banned.len(), 1);
}

#[test]
fn a_rule_in_the_shadow_takes_from_all_its_limits_at_a_store_or_from_none() {
    let (policy, _, far) = policy(
        "[[rule]]\nname = 'trial'\nlimit = ['9', '1']\nstore = 'far'\nfallback = 'closed'\nshadow = true\n\
         [[rule]]\nname = 'other'\nlimit = '9'\nstore = 'far'\nfallback = 'closed'\nshadow = true",
    );
    for other in [1, 2, 3] {
        assert!(run(policy.decide_async(&ANN)).is_allowed());
        assert_eq!((far.taken("trial"), far.taken("trial/1")), (1, 1));
        assert_eq!(far.taken("other"), other);
    }
    let decision = run(policy.decide_async(&ANN));
    let asked = decision.asked().filter(|it| it.rule() == "trial");
    let would_allow: Vec<_> = asked.map(|it| (it.limit(), it.would_allow())).collect();
    assert!(would_allow.contains(&("1", false)), "{would_allow:?}");
}

#[test]
fn the_synchronous_decision_reports_a_rule_in_the_shadow_once() {
    let (policy, _, far) = policy(
        "[[rule]]\nname = 'trial'\nlimit = ['9', '8']\nstore = 'far'\nfallback = 'closed'\nshadow = true\n\
         [[rule]]\nname = 'a'\nlimit = '5/h'",
    );
    let decision = policy.decide(&ANN);
    let asked = decision.asked().map(|it| (it.rule(), it.would_allow()));
    assert_eq!(asked.collect::<Vec<_>>(), [("a", true), ("trial", false)]);
    assert_eq!(far.calls().len(), 0);
}

#[test]
fn a_store_that_names_a_limit_out_of_range_denies_by_the_first() {
    let (policy, _, far) =
        policy("[[rule]]\nname = 'a'\nlimit = ['5', '00']\nstore = 'far'\nfallback = 'closed'");
    far.state().wrong_index = Some(usize::MAX);
    let denied = run(policy.decide_async(&ANN));
    assert!(matches!(
        denied.reason(),
        Some(Reason::Limit { rule: "a", .. })
    ));
    assert_eq!(
        denied.asked().map(|it| it.limit()).collect::<Vec<_>>(),
        ["5"]
    );
}

#[test]
fn a_limit_at_a_store_goes_on_only_if_all_that_made_it_is_the_same() {
    let base = "key = 'user'\nlimit = '1'\nstore = 'far'\nfallback = 'closed'";
    let plan = "key = 'user'\nplan = { by = 'tier', free = '1', pro = '1', default = 'free' }\nstore = 'far'\nfallback = 'closed'";
    let changed = RuleState::Fresh("a registered limit can't change");
    for (old, new, expected) in [
        (
            base,
            "limit = '1'\n# moved\nkey = 'user'\nstore = 'far'\nfallback = 'closed'",
            RuleState::Kept,
        ),
        (plan, plan, RuleState::Kept),
        (
            base,
            "key = 'user'\nlimit = '2'\nstore = 'far'\nfallback = 'closed'",
            changed,
        ),
        (plan, &plan.replace("pro = '1'", "pro = '2'"), changed),
        (
            base,
            &base.replace("far", "near"),
            RuleState::Fresh("its store changed"),
        ),
        (
            base,
            "key = 'user'\nlimit = '1/h'",
            RuleState::Fresh("its store changed"),
        ),
        (
            base,
            "key = 'user'\nlimit = '1'\nstore = 'far'\nfallback = { open = { at_most = 5 } }",
            RuleState::Fresh("its fallback changed"),
        ),
        (base, &format!("{base}\nmode = 'direct'"), RuleState::Kept),
        (
            base,
            &format!("{base}\nmode = 'leased'"),
            RuleState::Fresh("its mode changed"),
        ),
        (
            &format!("{base}\nmode = 'leased'"),
            &format!(
                "{base}\nmode = 'leased'\nallowance = {{ percent = 1, processes = 1, keys = 1 }}"
            ),
            RuleState::Fresh("its allowance changed"),
        ),
        (base, &format!("{base}\nremember = true"), RuleState::Kept),
        (
            base,
            &format!("{base}\ncount = 'failures'"),
            RuleState::Fresh("whether denials are remembered changed"),
        ),
    ] {
        let text = |rest: &str| format!("[[rule]]\nname = 'a'\n{rest}");
        let (policy, near, far) = policy(&text(old));
        let live = LivePolicy::new(policy);
        assert!(run(live.decide_async(&ANN)).is_allowed());
        let state = live.reload_toml(&text(new)).expect("a policy").state("a");
        assert_eq!(state, Some(expected), "{new}");
        let _ = run(live.decide_async(&ANN));
        let calls = (near.calls().len(), far.calls().len());
        let expected = match (new.contains("near"), new.contains("far")) {
            (true, _) => (1, 1),
            (_, true) => (0, 2),
            _ => (0, 1),
        };
        assert_eq!(calls, expected, "{new}");
    }
}

#[test]
fn costs_go_to_the_limits_that_they_are_of() {
    let (policy, near, far) = policy(
        "apply = 'all'\n\
         [[rule]]\nname = 'a'\nlimit = ['90', '91']\nstore = 'far'\nfallback = 'closed'\ncost = { default = 5, settle = 'a' }\n\
         [[rule]]\nname = 'b'\nlimit = '92'\nstore = 'near'\nfallback = 'closed'\ncost = { default = 6, settle = 'b' }\n\
         [[rule]]\nname = 'c'\nlimit = '93'\nstore = 'far'\nfallback = 'closed'\ncost = { default = 7, settle = 'c' }\n\
         count = 'successes'\n\
         [[rule]]\nname = 'd'\nlimit = '1/h burst 50'\ncost = { default = 8, settle = 'd' }",
    );
    let a = || far.taken("a") + far.taken("a/1");
    let used = [("a", "1"), ("b", "20"), ("c", "30"), ("d", "9")];
    let settled = run(run(policy.decide_async(&ANN)).finish_async(Outcome::Success, &used));
    let settled = settled.expect("the stores answer");
    assert_eq!((settled.returned, settled.charged), (8, 14 + 23 + 1));
    assert_eq!(far.calls(), ["take [a a/1 c]", "settle [1, 1, 30]"]);
    assert_eq!(near.calls(), ["take [b]", "settle [20]"]);
    assert_eq!((a(), near.taken("b"), far.taken("c")), (2, 20, 30));
    let settled = run(run(policy.decide_async(&ANN)).finish_async(Outcome::Failure, &used));
    let settled = settled.expect("the stores answer");
    assert_eq!((settled.returned, settled.charged), (8 + 7, 14 + 1));
    assert_eq!((a(), near.taken("b"), far.taken("c")), (4, 40, 30));
    assert_eq!(
        run(run(policy.decide_async(&ANN)).undo_async()).expect("they answer"),
        31
    );
}

#[test]
fn the_limit_that_denies_is_banned_at_its_store() {
    let (policy, _, far) = policy(
        "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = ['9', '00']\nstore = 'far'\nfallback = 'closed'\n\
         ban = { after = 1, for = '10min', within = '1h' }",
    );
    assert!(!run(policy.decide_async(&ANN)).is_allowed());
    let state = far.state();
    let banned = state.banned.iter().map(|((limit, _), _)| limit.as_str());
    assert_eq!(banned.collect::<Vec<_>>(), ["a/1"]);
}

#[test]
fn a_store_that_fails_to_settle_does_not_keep_the_others_from_it() {
    let text = "apply = 'all'\n\
         [[rule]]\nname = 'a'\nlimit = '9'\nstore = 'far'\nfallback = 'closed'\ncount = 'failures'\n\
         [[rule]]\nname = 'b'\nlimit = '9'\nstore = 'near'\nfallback = 'closed'\ncount = 'failures'";
    for far_is_down in [true, false] {
        let (policy, near, far) = policy(text);
        let decision = run(policy.decide_async(&ANN));
        let (down, up) = if far_is_down {
            (&far, &near)
        } else {
            (&near, &far)
        };
        down.state().is_down = true;
        assert!(run(decision.finish_async(Outcome::Success, &())).is_err());
        assert_eq!(down.taken("a") + down.taken("b"), 1);
        assert_eq!(up.taken("a") + up.taken("b"), 0);
    }
}

#[test]
fn stores_give_back_in_the_opposite_order() {
    let text = "apply = 'all'\n\
         [[rule]]\nname = 'a'\nlimit = '9'\nstore = 'far'\nfallback = 'closed'\n\
         [[rule]]\nname = 'b'\nlimit = '9'\nstore = 'near'\nfallback = 'closed'";
    let (policy, near, far) = policy(text);
    let decision = run(policy.decide_async(&ANN));
    near.state().pending = [1, 0];
    let mut future = pin!(decision.undo_async());
    let mut context = Context::from_waker(Waker::noop());
    assert!(future.as_mut().poll(&mut context).is_pending());
    assert_eq!((far.taken("a"), near.taken("b")), (1, 1));
    assert!(future.as_mut().poll(&mut context).is_ready());
    assert_eq!((far.taken("a"), near.taken("b")), (0, 0));
}

#[test]
fn rules_on_trial_are_asked_last_and_apart() {
    let trial = "[[rule]]\nname = 'trial'\nlimit = '00'\nstore = 'near'\nfallback = 'closed'\nshadow = true\n";
    for store in ["near", "far"] {
        let rule =
            format!("[[rule]]\nname = 'a'\nlimit = '1'\nstore = '{store}'\nfallback = 'closed'");
        let (policy, near, far) = policy(&format!("{trial}{rule}"));
        let allowed = run(policy.decide_async(&ANN));
        assert!(allowed.is_allowed(), "{store}");
        assert_eq!(allowed.remaining(), Some(0));
        let (mut calls, more) = (far.calls(), near.calls());
        calls.extend(more);
        assert_eq!(calls, ["take [a]", "take [trial]"], "{store}");
        // If the request is denied, nobody asks the rule on trial.
        let denied = run(policy.decide_async(&ANN));
        assert_eq!(denied.denied_by(), Some("a"));
        let calls = [far.calls(), near.calls()].concat();
        assert_eq!(calls, ["take [a]"], "{store}");
    }
}

#[test]
fn only_denials_for_too_many_permits_count_towards_a_ban() {
    let (policy, _, far) = policy(
        "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = '00'\nstore = 'far'\nfallback = 'closed'\n\
         ban = { after = 3, for = '10min', within = '1h' }",
    );
    let deny = |denied: Denied| {
        far.state().denied = Some(denied);
        assert!(!run(policy.decide_async(&ANN)).is_allowed());
        far.state().banned.len()
    };
    let banned = Denied::banned(1, Some(Duration::from_secs(1)));
    let others = [banned, Denied::no_room(1)];
    for denied in others.into_iter().cycle().take(9) {
        assert_eq!(deny(denied), 0, "{denied:?}");
    }
    assert_eq!(deny(Denied::never(1, 0)), 0);
    assert_eq!(deny(Denied::busy(1)), 0);
    assert_eq!(deny(Denied::later(1, Duration::from_secs(1))), 1);
}
