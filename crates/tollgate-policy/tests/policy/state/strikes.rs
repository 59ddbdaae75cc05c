//! Denials that count towards a ban go on in the next process.

use std::time::Duration;

use tollgate::ManualClock;
use tollgate_policy::{Outcome, Policy};

use crate::state::{next, policy, rule, saved};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
const ANN: [(&str, &str); 1] = [("user", "ann")];

fn login(ban: &str) -> String {
    rule(
        "login",
        &format!("key = 'user'\nlimit = '1/h'\nban = {{ {ban} }}"),
    )
}

/// Three denials in a minute ban a key for a day.
fn three() -> String {
    login("after = 3, for = '1d', within = '1min'")
}

/// Denies a user twice.
fn denied_twice() -> Policy<ManualClock> {
    let old = policy(&three());
    assert!(old.decide(&ANN).is_allowed());
    for _ in 0..2 {
        assert_eq!(old.decide(&ANN).retry_after(), Some(HOUR));
    }
    old
}

/// Denies a user again and again. Returns how many denials banned it, at most nine.
fn denials_until_banned(policy: &Policy<ManualClock>) -> usize {
    let is_ban = |_: &usize| policy.decide(&ANN).retry_after() > Some(2 * HOUR);
    (1..=9).find(is_ban).expect("a ban")
}

#[test]
fn a_restart_between_the_second_and_the_third_denial_still_bans() {
    let old = denied_twice();
    let new = next(&saved(&old), SECOND, &three());
    assert_eq!(denials_until_banned(&new), 1);
    // And over a second restart.
    let new = next(&saved(&old), SECOND, &three());
    let newest = next(&saved(&new), SECOND, &three());
    assert_eq!(denials_until_banned(&newest), 1);
}

#[test]
fn denials_are_as_old_as_the_state() {
    let old = denied_twice();
    old.clock().advance(Duration::from_secs(20));
    let state = saved(&old);
    for (elapsed, denials) in [(0, 1), (39, 1), (41, 3), (7000, 3)] {
        let new = next(&state, elapsed * SECOND, &three());
        if elapsed > 3600 {
            assert!(new.decide(&ANN).is_allowed());
        }
        assert_eq!(denials_until_banned(&new), denials, "{elapsed} s");
    }
}

#[test]
fn denials_count_anew_if_another_number_or_period_of_them_bans() {
    let state = saved(&denied_twice());
    for (ban, denials) in [
        ("after = 3, for = '2d', within = '1min'", 1),
        ("after = 3, for = '1d', within = '60s'", 1),
        ("after = 4, for = '1d', within = '1min'", 4),
        ("after = 3, for = '1d', within = '2min'", 3),
    ] {
        let new = next(&state, Duration::ZERO, &login(ban));
        assert_eq!(denials_until_banned(&new), denials, "{ban}");
    }
    let other_key = three().replace("'user'", "['user']\nnetwork = { v4 = 8 }");
    let new = next(&state, Duration::ZERO, &other_key);
    assert!(new.decide(&ANN).is_allowed());
    assert_eq!(denials_until_banned(&new), 3);
    let fewer_keys = three() + "capacity = 50";
    let new = next(&state, Duration::ZERO, &fewer_keys);
    assert_eq!(denials_until_banned(&new), 1);
}

#[test]
fn a_banned_key_has_no_denials_left() {
    let old = denied_twice();
    assert_eq!(denials_until_banned(&old), 1);
    let new = next(&saved(&old), Duration::ZERO, &three());
    assert!(new.decide(&ANN).retry_after() > Some(2 * HOUR));
    new.clock().advance(24 * HOUR);
    assert!(new.decide(&ANN).is_allowed());
    assert_eq!(denials_until_banned(&new), 3);
}

#[test]
fn a_state_without_denials_is_read_as_before() {
    let state = saved(&denied_twice());
    let older = crate::state::attacked::without_section(&state, "login", u32::MAX - 1);
    assert!(older.len() < state.len());
    let new = next(&older, Duration::ZERO, &three());
    assert_eq!(new.decide(&ANN).retry_after(), Some(HOUR));
    assert_eq!(denials_until_banned(&new), 2);
}

#[test]
fn a_changed_state_has_the_denials_or_none() {
    let state = saved(&denied_twice());
    let content = &state[..state.len() - 4];
    let mut none = 0;
    for at in 0..content.len() {
        let mut changed = content.to_vec();
        changed[at] ^= [1, 0x80, 0xff][at % 3];
        let state = crate::state::attacked::sealed(&changed);
        let builder = Policy::builder().clock(ManualClock::new());
        let Ok(builder) = builder.restore_after(&mut state.as_slice(), Duration::ZERO) else {
            continue;
        };
        let new = builder.build_toml(&(three() + "capacity = 64"));
        let new = new.expect("a policy");
        // One more if the limit starts anew.
        let denials = denials_until_banned(&new);
        assert!((1..=4).contains(&denials), "{at}: {denials}");
        none += usize::from(denials >= 3);
    }
    assert!(none > 100, "{none}");
}

/// Fails this many times, each at once.
fn fails(policy: &Policy<ManualClock>, times: usize) {
    for _ in 0..times {
        let decision = policy.decide(&ANN);
        assert!(decision.is_allowed());
        let _ = decision.finish(Outcome::Failure, &());
    }
}

#[test]
fn failures_count_over_a_restart_and_denials_are_not_failures() {
    let rule = |of: &str| {
        rule(
            "login",
            &format!("key = 'user'\nban = {{ after = 3, of = '{of}', within = '1h', for = '1d' }}"),
        )
    };
    let failures = rule("failures");
    let old = policy(&failures);
    fails(&old, 2);
    let new = next(&saved(&old), SECOND, &failures);
    fails(&new, 1);
    assert_eq!(new.decide(&ANN).retry_after(), Some(24 * HOUR));
    // A ban lasts over a restart too.
    let newest = next(&saved(&new), SECOND, &failures);
    assert_eq!(newest.decide(&ANN).retry_after(), Some(24 * HOUR - SECOND));
    // Two failures are no denials.
    let denials = rule("denials") + "limit = '1/h'\n";
    let new = next(&saved(&old), SECOND, &denials);
    assert!(new.decide(&ANN).is_allowed());
    assert_eq!(denials_until_banned(&new), 3);
}
