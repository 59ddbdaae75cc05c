//! Limits that never deny, because a tighter one does.

use std::time::Duration;

use tollgate::{AnyAlgorithm, Limiter, ManualClock};
use tollgate_policy::file::PolicyFile;
use tollgate_policy::warnings;

/// Returns the limits that a rule with two limits is warned of.
fn warned(tight: &str, loose: &str, fields: &str) -> Vec<String> {
    let text = format!("[[rule]]\nname = 'a'\nlimit = ['{tight}', '{loose}']\n{fields}\n");
    let file = PolicyFile::from_toml(&text).unwrap_or_else(|problems| panic!("{problems}"));
    let problems = warnings(&file);
    problems
        .iter()
        .map(|problem| problem.value.clone())
        .collect()
}

#[test]
fn a_limit_that_a_tighter_one_implies_never_denies() {
    for (tight, loose) in [
        ("10/s", "1000/min"),
        ("10/s", "600/min"),
        ("10/s", "10/s burst 11"),
        ("10/s", "fixed-window 610/min"),
        ("10/s", "sliding-window 610/min"),
        ("sliding-window 10/s", "660/min burst 11"),
        ("fixed-window 10/s", "600/min burst 20"),
        ("fixed-window 10/min", "fixed-window 11/min"),
        ("sliding-window 10/min", "sliding-window 11/min"),
    ] {
        assert_eq!(warned(tight, loose, ""), [format!("{loose:?}")], "{tight}");
        assert_eq!(warned(loose, tight, ""), [format!("{loose:?}")], "{tight}");
    }
}

#[test]
fn a_limit_that_can_deny_is_not_warned_of() {
    for (tight, loose) in [
        ("10/s", "599/min"),
        ("10/s burst 700", "600/min burst 699"),
        ("10/s", "600/min burst 9"),
        ("10/s", "600/min initial 1"),
        ("10/s", "fixed-window 609/min"),
        ("10/s", "sliding-window 609/min"),
        ("fixed-window 10/s", "600/min burst 19"),
        ("fixed-window 10/min", "fixed-window 11/min utc"),
        ("10/s", "concurrency 100000"),
        ("10/s", "leaky-queue 1000/min"),
    ] {
        let warned = warned(tight, loose, "");
        assert!(!warned.contains(&format!("{loose:?}")), "{tight} {loose}");
    }
}

#[test]
fn limits_of_which_not_all_grants_count_are_not_compared() {
    for fields in [
        "count = 'failures'",
        "shadow = true",
        "store = 'redis'\nfallback = 'closed'",
        "cost = { settle = 'used' }",
        "key = 'user'\noverflow = 'admit'",
        "key = 'user'\noverride = [{ key = 'acme', limit = '9/s' }]",
    ] {
        assert!(warned("10/s", "1000/min", fields).is_empty(), "{fields}");
    }
    assert_eq!(warned("10/s", "1000/min", "key = 'user'").len(), 1);
}

#[test]
fn the_limit_of_a_rule_that_is_named_too_is_compared_if_the_key_is_the_same() {
    let warned = |own: &str, key: &str| {
        let text = format!(
            "[[rule]]\nname = 'a'\nkey = '{own}'\nlimit = '1000/min'\nalso = 'b'\n\
             [[rule]]\nname = 'b'\nkey = '{key}'\nlimit = '10/s'\nwhen = {{ path = '/x/{{id}}' }}\n"
        )
        .replace(
            "limit = '1000",
            "when = { path = '/{id}/**' }\nlimit = '1000",
        );
        warnings(&PolicyFile::from_toml(&text).expect("a policy")).to_string()
    };
    let message = "5:9: warning: rule \"a\": limit is \"1000/min\", but never denies a request: \
                   \"10/s\" of rule \"b\" always denies it first";
    assert!(warned("user", "user").contains(message));
    assert!(!warned("user", "tenant").contains("never denies"));
    assert!(!warned("path:id", "path:id").contains("never denies"));
}

#[test]
fn where_all_rules_apply_the_limits_of_different_rules_are_compared() {
    let warned = |first: &str, second: &str| {
        let text =
            format!("apply = 'all'\n[[rule]]\nname = 'a'\n{first}\n[[rule]]\nname = 'b'\n{second}");
        let file = PolicyFile::from_toml(&text).unwrap_or_else(|problems| panic!("{problems}"));
        warnings(&file).to_string()
    };
    let (tight, loose) = ("limit = '5/s'", "limit = '10/s'");
    let message = "warning: rule \"b\": limit is \"10/s\", but never denies a request: \"5/s\" of rule \
                   \"a\" always denies it first";
    assert_eq!(warned(tight, loose), format!("7:9: {message}"));
    assert!(warned(loose, tight).starts_with("4:9: warning: rule \"a\": limit is \"10/s\""));
    assert!(warned(tight, tight).starts_with("7:9: warning: rule \"b\": limit is \"5/s\""));
    assert_eq!(warned(tight, tight).lines().count(), 1);
    let when = "when = { path = '/api/**' }";
    let (tight_here, loose_here) = (format!("{when}\n{tight}"), format!("{when}\n{loose}"));
    assert_eq!(warned(tight, &loose_here), format!("8:9: {message}"));
    assert_eq!(warned(&tight_here, &loose_here), format!("9:9: {message}"));
    // The first rule does not see each request that the second one sees.
    assert_eq!(warned(&tight_here, loose), "");
    assert_eq!(warned(tight, &format!("key = 'user'\n{loose}")), "");
    assert_eq!(warned(tight, &format!("shadow = true\n{loose}")), "");
    let named = format!(
        "when = {{ method = 'GET', path = '/api/**' }}\n{loose}\n[[rule]]\nname = 'c'\nlimit = '1/h'\nkey = 'user'\nalso = 'b'"
    );
    assert_eq!(warned(&tight_here, &named), "");
}

/// The decisions themselves agree: what the tight limit grants, the loose one grants.
#[test]
fn a_limit_that_is_warned_of_grants_all_that_the_other_grants() {
    let limits = [
        "10/s",
        "600/min",
        "20/s burst 5",
        "1000/min",
        "fixed-window 10/s",
        "fixed-window 1200/min",
        "sliding-window 10/s",
        "sliding-window 620/min",
        "7/3s burst 12",
        "600/min burst 20",
        "fixed-window 1210/min",
        "660/min burst 11",
        "fixed-window 7/s",
        "sliding-window 7/s",
    ];
    let mut compared = 0;
    for tight in limits {
        for loose in limits {
            if tight == loose || warned(tight, loose, "") != [format!("{loose:?}")] {
                continue;
            }
            compared += 1;
            grants_the_same(tight, loose);
        }
    }
    assert!(compared >= 20, "{compared} pairs");
}

fn grants_the_same(tight: &str, loose: &str) {
    let clock = ManualClock::new();
    let [first, second] = [tight, loose].map(|text| {
        let algorithm: AnyAlgorithm = text.parse().expect("an algorithm");
        Limiter::with_clock(algorithm, clock.clone())
    });
    let mut state = 1_u64;
    for step in 0..20_000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        // Steady demand, and pauses of up to 33 seconds.
        let pause = if state >> 60 == 0 { 1 << 35 } else { 1 << 26 };
        clock.advance(Duration::from_nanos((state >> 20) % pause));
        let n = 1 + (state >> 40) % 4;
        if first.try_acquire_n(n).is_ok() {
            assert!(
                second.try_acquire_n(n).is_ok(),
                "{tight}, {loose}, step {step}"
            );
        }
    }
}
