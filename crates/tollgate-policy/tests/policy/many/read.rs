//! Limits that always apply are counted when the file is read. If more may apply, there is a
//! warning.

use std::fmt::Write;

use tollgate_policy::{LivePolicy, Policy};

use crate::many::rules;

/// Returns what is wrong with a policy.
fn errors(text: &str) -> String {
    match Policy::from_toml(text) {
        Ok(_) => String::new(),
        Err(problems) => problems.to_string(),
    }
}

fn limits(count: usize) -> String {
    let limits: Vec<_> = (0..count).map(|n| format!("'{}/h'", n + 1)).collect();
    format!("limit = [{}]\n", limits.join(", "))
}

#[test]
fn sixty_four_limits_of_a_rule_are_read_and_decide() {
    let text = format!("[[rule]]\nname = 'a'\n{}", limits(64));
    let policy = Policy::from_toml(&text).expect("as many as may be");
    assert!(policy.decide(&()).is_allowed());
    assert_eq!(policy.decide(&()).denied_by(), Some("a"));
}

#[test]
fn sixty_five_limits_of_a_rule_are_refused() {
    let text = format!("[[rule]]\nname = 'a'\nkey = 'user'\n{}", limits(65));
    let found = errors(&text);
    assert!(found.contains("error: rule \"a\""), "{found}");
    assert!(found.contains("65") && found.contains("64"), "{found}");
    // Nor does it matter whether the rule has conditions: its limits always go together.
    let found = errors(&text.replace("key = 'user'", "when = { path = '/a' }"));
    assert!(found.contains("65"), "{found}");
}

#[test]
fn a_ban_counts_as_one_more() {
    let rule = |index| {
        format!(
            "key = 'user'\nlimit = '{}/h'\nban = {{ after = 3, for = '1h' }}",
            index + 9
        )
    };
    assert_eq!(errors(&rules(32, rule)), "");
    let found = errors(&rules(33, rule));
    assert!(found.contains("66") && found.contains("64"), "{found}");
    assert!(
        found.contains("\"r32\"") && found.contains("\"r0\""),
        "{found}"
    );
}

#[test]
fn rules_that_are_named_count_with_the_rule_that_names_them() {
    let mut text = String::new();
    for index in 0..65 {
        let when = if index == 0 {
            "{ path = '/a' }"
        } else {
            "'never'"
        };
        writeln!(
            text,
            "[[rule]]\nname = 'r{index}'\nwhen = {when}\nlimit = '{}/h'",
            index + 9
        )
        .expect("memory");
        if index < 64 {
            writeln!(text, "also = ['r{}']", index + 1).expect("memory");
        }
    }
    let found = errors(&text);
    assert!(found.contains("\"r0\"") && found.contains("65"), "{found}");
}

#[test]
fn a_rule_that_may_be_skipped_is_not_what_always_applies() {
    let text = rules(70, |index| {
        format!(
            "key = 'header:h{index}'\nmissing = 'skip'\nlimit = '{}/h'",
            index + 9
        )
    });
    assert_eq!(errors(&text), "");
}

#[test]
fn a_reload_of_such_a_file_is_refused_and_the_policy_stays() {
    let before = "[[rule]]\nname = 'a'\nlimit = '2/h'";
    let live = LivePolicy::new(Policy::from_toml(before).expect("a policy"));
    let text = format!("[[rule]]\nname = 'a'\n{}", limits(65));
    let refused = live.reload_toml(&text).expect_err("too many");
    assert!(refused.to_string().contains("65"), "{refused}");
    let allowed = [(); 3].map(|()| live.decide(&()).is_allowed());
    assert_eq!(allowed, [true, true, false]);
}

#[test]
fn what_may_apply_together_is_warned_of_with_names() {
    let by_header = |index: usize| {
        format!(
            "when = {{ header.h{index} = true }}\nlimit = '{}/h'",
            index + 9
        )
    };
    assert_eq!(
        Policy::builder()
            .check_toml(&rules(64, by_header))
            .to_string(),
        ""
    );
    let found = Policy::builder().check_toml(&rules(65, by_header));
    assert!(!found.has_errors(), "{found}");
    let found = found.to_string();
    assert!(
        found.contains("warning") && found.contains("\"r0\""),
        "{found}"
    );
    assert!(found.contains("65") && found.contains("64"), "{found}");
}

#[test]
fn rules_that_exclude_each_other_are_not_warned_of() {
    for rule in [
        |index: usize| format!("when = {{ path = '/p{index}' }}\nlimit = '{}/h'", index + 9),
        |index: usize| {
            format!(
                "when = {{ any = [{{ path = '/p{index}' }}, {{ path = '/q{index}' }}] }}\nlimit = '{}/h'",
                index + 9
            )
        },
    ] {
        let found = Policy::builder().check_toml(&rules(200, rule)).to_string();
        assert_eq!(found, "");
    }
    // With `apply = "first"`, one rule decides.
    let first = rules(200, |index| {
        format!("when = {{ header.h{index} = true }}\nlimit = '9/h'")
    });
    let found = Policy::builder().check_toml(&first.replace("'all'", "'first'"));
    assert_eq!(found.to_string(), "");
}
