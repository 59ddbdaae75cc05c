//! Exceptions that have no effect, because `*` matches one segment of a path.

use tollgate_policy::file::PolicyFile;
use tollgate_policy::{explain, warnings};

fn warned(text: &str) -> String {
    let file = PolicyFile::from_toml(text).unwrap_or_else(|problems| panic!("{problems}"));
    warnings(&file).to_string()
}

fn rule(when: &str) -> String {
    format!("[[rule]]\nname = 'a'\nlimit = '1/s'\nwhen = {{ {when} }}\n")
}

fn allow(when: &str) -> String {
    format!("[[allow]]\nname = 'x'\nwhen = {{ {when} }}\n")
}

const HINT: &str = "`*` matches one segment; `/api/**` matches all below";

#[test]
fn a_not_below_a_star_has_no_effect() {
    let message = format!("4:8: warning: rule \"a\": when.not has no effect: {HINT}");
    for not in ["'/api/a/b'", "['/api/a/b', '/api/{x}/c']", "'/api'"] {
        let of = |path: &str| warned(&rule(&format!("path = {path}, not = {{ path = {not} }}")));
        assert_eq!(of("'/api/*'"), message, "{not}");
        assert_eq!(of("['/x', '/api/*']"), message, "{not}");
        assert_eq!(of("'/api/**'"), "", "{not}");
    }
    for when in [
        "path = '/api/*', not = { path = '/api/a' }",
        // Nor would it have an effect with `**`.
        "path = '/api/*', not = { path = '/web/a/b' }",
        "path = '/api/*', not = { path = ['/api/a/b', '/api/a'] }",
        "path = '/api/*', not = { path = ['/api/a/b', '/web/a'] }",
        "path = ['/api/*', '/api/*/*'], not = { path = '/api/a/b' }",
        "path = '/api/*/c', not = { path = '/api/a/b/c' }",
        "path = '/api/{x}', not = { path = '/api/a/b' }",
        "path = '/**/api/*', not = { path = '/b' }",
        // It has none, but that is not found.
        "path = '/api/*', not = { path = '/api/a/**/b' }",
        "path = '/api/*', not = { method = 'GET' }",
        "method = 'GET', not = { path = '/api/a/b' }",
    ] {
        assert_eq!(warned(&rule(when)), "", "{when}");
    }
}

#[test]
fn an_entry_of_allow_below_a_star_has_no_effect() {
    let message =
        format!("2:8: warning: allow \"x\" has no effect: no rule applies to its requests; {HINT}");
    let below = allow("path = '/api/health/live'");
    assert_eq!(warned(&(below.clone() + &rule("path = '/api/*'"))), message);
    let two =
        rule("path = '/api/*', method = 'GET'") + &rule("path = '/web'").replace("'a'", "'b'");
    assert_eq!(warned(&(below.clone() + &two)), message);
    let named = rule("path = '/api/*'") + "also = ['b']\n[[rule]]\nname = 'b'\nwhen = 'never'\n";
    assert_eq!(warned(&(below.clone() + &named + "limit = '9/s'")), message);
    for rules in [
        rule("path = '/api/**'"),
        rule("path = '/web/*'"),
        // Another rule applies to the entry's requests, or may.
        rule("path = '/api/*'") + "[[rule]]\nname = 'b'\nlimit = '9/s'",
        rule("path = '/api/*'") + &rule("method = 'GET'").replace("'a'", "'b'"),
        rule("path = '/api/*'") + &rule("path = '/api/*/live'").replace("'a'", "'b'"),
    ] {
        assert_eq!(warned(&(below.clone() + &rules)), "", "{rules}");
    }
    // `allow` makes no exception of `deny`, and the two rules can be meant as they are.
    let deny = allow("path = '/api/*'").replace("allow", "deny");
    assert!(!warned(&(deny + &below)).contains(HINT));
    let two = rule("path = '/api/*'") + &rule("path = '/api/a/b'").replace("'a'", "'b'");
    assert_eq!(warned(&two), "");
    assert_eq!(warned(&format!("apply = 'all'\n{two}")), "");
}

#[test]
fn explain_says_that_a_star_is_one_segment() {
    let why = |paths: &str, path: &str| {
        let file = PolicyFile::from_toml(&rule(&format!("path = {paths}"))).expect("a policy");
        let explained = explain(&file, &[("path", path)]);
        explained.rules[0].why.clone()
    };
    for path in ["/api/a/b", "/api/a/b/c?x=1", "/api"] {
        let not = format!("path is {path}, not /api/*");
        assert_eq!(why("'/api/*'", path), format!("{not}; {HINT}"));
    }
    assert!(why("['/x', '/api/*']", "/api/a/b").ends_with(HINT));
    for (paths, path) in [
        ("'/api/*'", "/web/a/b"),
        ("'/api/{x}'", "/api/a/b"),
        ("'/api/*/c'", "/api/a/b/c"),
        ("'/api/v*'", "/api/v1/a"),
        ("'/**/a/*'", "/a"),
    ] {
        assert!(!why(paths, path).contains("matches"), "{paths} {path}");
    }
}
