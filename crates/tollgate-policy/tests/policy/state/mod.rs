//! The state of a policy goes on in the next process, and a damaged one is refused.

mod attacked;
mod strikes;

use std::time::Duration;

use tollgate::ManualClock;
use tollgate_policy::{Policy, RuleState, StateError};

const MINUTE: Duration = Duration::from_secs(60);

fn policy(text: &str) -> Policy<ManualClock> {
    let builder = Policy::builder().clock(ManualClock::new());
    builder.build_toml(text).expect("a policy")
}

fn saved(policy: &Policy<ManualClock>) -> Vec<u8> {
    let mut state = Vec::new();
    policy.snapshot(&mut state).expect("memory is written");
    state
}

/// The next process begins this long after the state was saved.
fn next(state: &[u8], elapsed: Duration, text: &str) -> Policy<ManualClock> {
    let builder = Policy::builder().clock(ManualClock::new());
    let builder = builder.restore_after(&mut { state }, elapsed);
    builder
        .expect("a state")
        .build_toml(text)
        .expect("a policy")
}

fn rule(name: &str, rest: &str) -> String {
    format!("[[rule]]\nname = '{name}'\n{rest}\n")
}

fn left(policy: &Policy<ManualClock>, facts: &[(&str, &str)]) -> Option<u64> {
    policy.decide(&facts.to_vec()).remaining()
}

#[test]
fn keys_plans_overrides_and_bans_go_on() {
    let text = "apply = 'all'\n".to_owned()
        + &rule(
            "user",
            "key = 'user'\nlimit = '60/min'\noverride = [{ key = 'acme', limit = '90/min' }]",
        )
        + &rule(
            "tier",
            "key = ['user', 'client-ip']\nmissing = 'skip'\nplan = { by = 'tier', free = '10/h', pro = '50/h', default = 'free' }",
        )
        + &rule(
            "login",
            "when = { path = '/login' }\nkey = 'user'\nlimit = '1/min'\nban = { after = 1, for = '1h' }",
        )
        + &rule("all", "limit = '1000/h'");
    let old = policy(&text);
    let ann = [("user", "ann"), ("client-ip", "10.0.0.7"), ("tier", "pro")];
    for _ in 0..20 {
        assert!(old.decide(&ann).is_allowed());
    }
    assert_eq!(left(&old, &[("user", "acme")]), Some(89));
    let mallory = [("user", "mallory"), ("path", "/login")];
    assert!(old.decide(&mallory).is_allowed());
    assert!(!old.decide(&mallory).is_allowed());

    let new = next(&saved(&old), Duration::from_secs(10), &text);
    let states: Vec<_> = new.restored().collect();
    let kept = |name| (name, RuleState::Kept);
    assert_eq!(
        states,
        [kept("user"), kept("tier"), kept("login"), kept("all")]
    );
    let decision = new.decide(&ann);
    let remaining: Vec<_> = decision
        .asked()
        .map(|it| (it.rule(), it.remaining()))
        .collect();
    // 10 of 60 came back, 50 an hour are 0 in 10 s, and 1000 an hour are 2.
    assert_eq!(remaining, [("user", 49), ("tier", 29), ("all", 979)]);
    assert_eq!(left(&new, &[("user", "acme")]), Some(89));
    let wait = new.decide(&mallory).retry_after();
    assert!(
        wait.is_some_and(|wait| wait > 59 * MINUTE - MINUTE),
        "{wait:?}"
    );
}

#[test]
fn a_changed_quota_migrates_and_other_changes_start_anew() {
    let text = rule("a", "key = 'user'\nlimit = '60/h'");
    let old = policy(&text);
    let ann = [("user", "ann")];
    for _ in 0..30 {
        assert!(old.decide(&ann).is_allowed());
    }
    let state = saved(&old);
    for (changed, expected, remaining) in [
        (
            "key = 'user'\nlimit = '60/h'\ncapacity = 5000",
            RuleState::Kept,
            29,
        ),
        ("key = 'user'\nlimit = '10/h'", RuleState::Kept, 9),
        (
            "key = 'tenant'\nmissing = 'shared'\nlimit = '60/h'",
            RuleState::Fresh("its key changed"),
            59,
        ),
        (
            "key = 'user'\nlimit = 'gcra 60/h'",
            RuleState::Fresh("its algorithm changed"),
            59,
        ),
        (
            "key = 'user'\nlimit = 'concurrency 60'",
            RuleState::Fresh("its algorithm changed"),
            59,
        ),
    ] {
        let new = next(&state, Duration::ZERO, &rule("a", changed));
        assert_eq!(
            new.restored().collect::<Vec<_>>(),
            [("a", expected)],
            "{changed}"
        );
        assert_eq!(left(&new, &ann), Some(remaining), "{changed}");
    }
    let new = next(
        &state,
        Duration::ZERO,
        &rule("b", "key = 'user'\nlimit = '60/h'"),
    );
    assert_eq!(new.restored().collect::<Vec<_>>(), [("b", RuleState::New)]);
}

#[test]
fn a_state_that_is_cut_or_damaged_anywhere_is_refused() {
    let old = policy(&(rule("a", "key = 'user'\nlimit = '60/h'") + &rule("b", "limit = '5/h'")));
    assert!(old.decide(&[("user", "ann")]).is_allowed());
    let state = saved(&old);
    let read = |state: &[u8]| Policy::builder().restore(&mut { state }).map(drop);
    assert!(read(&state).is_ok());
    for length in 0..state.len() {
        assert!(read(&state[..length]).is_err(), "cut at {length}");
    }
    for at in 0..state.len() {
        let mut damaged = state.clone();
        damaged[at] ^= 1 << (at % 8);
        let error = read(&damaged).expect_err("it is damaged");
        assert!(
            matches!(error, StateError::NotAState | StateError::Damaged),
            "{error}"
        );
        assert!(!error.to_string().is_empty());
    }
}
