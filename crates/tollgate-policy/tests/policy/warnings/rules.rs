//! Rules that never match, never apply or take too much memory.

use std::fmt::Write;

use tollgate_policy::file::PolicyFile;
use tollgate_policy::warnings;

/// Returns the warnings of a policy, one a line.
fn warned(text: &str) -> String {
    let file = PolicyFile::from_toml(text).unwrap_or_else(|problems| panic!("{problems}"));
    let problems = warnings(&file);
    assert!(!problems.has_errors());
    problems.to_string()
}

/// Returns a policy of rules, each of which has a name and these fields.
fn rules(fields: &[&str]) -> String {
    let mut text = String::new();
    for (name, fields) in ('a'..).zip(fields) {
        let _ = writeln!(text, "[[rule]]\nname = '{name}'\nlimit = '1/s'\n{fields}");
    }
    text
}

#[test]
fn a_rule_that_an_earlier_one_covers_never_matches() {
    let (all, one) = (
        "when = { path = '/api/**' }",
        "when = { path = '/api/users' }",
    );
    let message = "8:8: warning: rule \"b\" is never reached: rule \"a\" comes first and \
                   matches the same requests";
    assert_eq!(warned(&rules(&[all, one])), message);
    assert_eq!(warned(&rules(&[one, all])), "");
    assert!(warned(&rules(&["", one])).contains("\"b\""));
}

#[test]
fn a_rule_that_does_not_end_the_search_covers_none() {
    let (all, one) = (
        "when = { path = '/api/**' }",
        "when = { path = '/api/users' }",
    );
    for fields in ["shadow = true", "key = 'user'\nmissing = 'skip'"] {
        assert_eq!(warned(&rules(&[&format!("{all}\n{fields}"), one])), "");
    }
    let one = format!("key = 'user'\n{one}");
    let text = format!("apply = 'all'\n{}", rules(&[all, &one]));
    assert_eq!(warned(&text), "");
}

#[test]
fn an_entry_of_the_lists_covers_rules_too() {
    for list in ["deny", "allow"] {
        let entry = format!("[[{list}]]\nname = 'x'\nwhen = {{ method = 'GET' }}\n");
        let rule = rules(&["when = { method = 'GET', path = '/a' }"]);
        for apply in ["first", "all"] {
            let text = format!("apply = '{apply}'\n{entry}{rule}");
            assert!(warned(&text).contains(&format!("{list} \"x\" comes first")));
        }
    }
}

#[test]
fn a_rule_that_only_others_use_must_be_used() {
    let never = "when = 'never'";
    let message = "4:8: warning: rule \"a\": when is \"never\", but no rule names it in `also`, so it \
                   never applies";
    assert_eq!(warned(&rules(&[never])), message);
    assert_eq!(warned(&rules(&[never, "also = 'a'\nkey = 'user'"])), "");
}

#[test]
fn a_rule_in_the_shadow_denies_nothing_through_others() {
    let text = rules(&["when = 'never'", "key = 'user'\nalso = 'a'\nshadow = true"]);
    let message = "9:8: warning: rule \"b\": also has no effect: a shadow rule never denies";
    assert_eq!(warned(&text), message);
}

#[test]
fn what_comes_back_to_leases_comes_late() {
    let leased = "store = 'redis'\nfallback = 'closed'\nkey = 'user'\nmode = 'leased'";
    let says = |field: &str| {
        format!(
            "2:8: warning: rule \"a\": mode is \"leased\", but `{field}` gives permits back when a \
             request is done, and of a busy key they stay taken then; write \"direct\""
        )
    };
    for (field, fields) in [
        ("count", "count = 'failures'"),
        ("settle", "cost = { default = 5, settle = 'tokens' }"),
    ] {
        let text = rules(&[&format!("{leased}\n{fields}")]);
        assert_eq!(warned(&text), says(field));
        assert_eq!(warned(&text.replace("leased", "direct")), "");
        assert_eq!(warned(&text.replace("1/s", "concurrency 5 lease 60s")), "");
    }
    assert_eq!(warned(&rules(&[leased])), "");
    let counts = rules(&[&format!("{leased}\ncount = 'failures'")]);
    assert_eq!(warned(&counts.replace("1/s", "unlimited")), "");
    let own = "override = [{ key = 'bob', limit = '9/s' }]";
    let counts = counts.replace("1/s", "concurrency 5 lease 60s");
    assert_eq!(warned(&format!("{counts}{own}")), says("count"));
}

#[test]
fn tables_must_fit_the_memory() {
    let text = |memory: &str, fields: &str| {
        let key = format!("key = 'user'\ncapacity = '1M'\n{fields}");
        format!("memory = '{memory}'\n{}", rules(&[&key]))
    };
    let message =
        "1:10: warning: memory is 23999999, but the tables of the rules take about 23 MiB";
    assert_eq!(warned(&text("23999999", "")), message);
    assert_eq!(warned(&text("24000000", "")), "");
    let own = "override = [{ key = 'acme', limit = '9/s' }]";
    assert!(warned(&text("24001399", own)).contains("about 23 MiB"));
    assert_eq!(warned(&text("24001400", own)), "");
    // A ban has two tables of its own.
    let ban = "ban = { after = 3, for = '1h' }";
    assert!(warned(&text("71999999", ban)).contains("about 69 MiB"));
    assert_eq!(warned(&text("72000000", ban)), "");
    assert_eq!(
        warned(&text("1", "store = 'redis'\nfallback = 'closed'")),
        ""
    );
    assert_eq!(warned(&format!("memory = 1\n{}", rules(&[""]))), "");
}

#[test]
fn many_conditions_that_no_index_finds_are_slow() {
    let policy = |count: usize| {
        let globs = (0..count).map(|index| format!("when = {{ user = '*{index}*' }}"));
        let fields: Vec<String> = globs.collect();
        let mut text = String::new();
        for (index, when) in fields.iter().enumerate() {
            let _ = writeln!(
                text,
                "[[rule]]\nname = '{index}'\nlimit = '1/s'\nshadow = true\n{when}"
            );
        }
        text
    };
    assert_eq!(warned(&policy(64)), "");
    assert!(warned(&policy(65)).starts_with("warning: 65 rules have only conditions"));
}

#[test]
fn an_entry_that_an_earlier_one_covers_never_matches() {
    let text = "[[deny]]\nname = 'net'\nwhen = { client-ip = '10.0.0.0/8' }\n\
                [[deny]]\nname = 'part'\nwhen = { client-ip = '10.1.0.0/16', method = 'GET' }\n\
                [[deny]]\nname = 'other'\nwhen = { client-ip = '192.0.2.0/24' }\n\
                [[allow]]\nname = 'office'\nwhen = { client-ip = '10.2.0.0/16' }\n";
    let message = "is never reached: deny \"net\" comes first and matches the same requests";
    assert_eq!(
        warned(text),
        format!("5:8: warning: deny \"part\" {message}\n11:8: warning: allow \"office\" {message}")
    );
}

#[test]
fn conditions_that_contradict_each_other_never_hold() {
    let never = |when: &str| {
        let fields = format!("when = {{ {when} }}");
        let rule = warned(&rules(&[&fields]));
        let entry = warned(&format!("[[deny]]\nname = 'x'\n{fields}\n"));
        let contradicts = "never applies: its conditions contradict each other";
        assert_eq!(
            rule.contains(contradicts),
            entry.contains(contradicts),
            "{when}"
        );
        if rule.is_empty() {
            return false;
        }
        assert_eq!(rule, format!("4:8: warning: rule \"a\" {contradicts}"));
        true
    };
    for when in [
        "method = 'GET', not = { method = 'GET' }",
        "method = 'GET', not = { method = ['GET', 'PUT'] }",
        "path = '/x', not = {}",
        "header.a = false, not = { header.a = false }",
        "any = [{ user = 'a', not = { user = true } }]",
        "any = [{ user = 'a' }, { user = 'b' }], not = { user = true }",
    ] {
        assert!(never(when), "{when}");
    }
    for when in [
        "method = 'GET', not = { method = 'GET', path = '/a' }",
        "method = ['GET', 'PUT'], not = { method = 'GET' }",
        "not = { method = 'GET' }",
        "any = [{ user = 'a', not = { user = true } }, { method = 'GET' }]",
        "path = '/x', any = [{}]",
    ] {
        assert!(!never(when), "{when}");
    }
}

#[test]
fn a_policy_without_rules_limits_nothing() {
    let message = "warning: the policy has no rules, so it limits nothing";
    assert_eq!(warned(""), message);
    let entry = |list: &str| format!("[[{list}]]\nname = 'x'\nwhen = {{ method = 'GET' }}\n");
    assert_eq!(warned(&entry("allow")), message);
    assert_eq!(warned(&entry("deny")), "");
}

#[test]
fn a_limit_that_no_rule_names_never_applies() {
    let limit = "[[limit]]\nname = 'whole'\nlimit = '9/s'\n";
    let message = "2:8: warning: limit \"whole\": name is \"whole\", but no rule names it in `also`, so \
                   it never applies";
    let text = format!("{limit}{}", rules(&[""]));
    assert_eq!(warned(&text), message);
    let text = format!("{limit}{}", rules(&["also = 'whole'"]));
    assert_eq!(warned(&text), "");
    assert_eq!(
        warned(limit),
        format!("warning: the policy has no rules, so it limits nothing\n{message}")
    );
}
