//! What each form of a pattern means.

use tollgate_policy::FactName;
use tollgate_policy::when::{Condition, Glob, PathPattern, Pattern, PatternErrorKind, Test, When};

fn parse(fact: &str, text: &str) -> Pattern {
    Pattern::parse(&FactName::new(fact), text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Asserts which values a pattern matches, and that it is displayed as it is written.
fn matches(fact: &str, text: &str, yes: &[&str], no: &[&str]) {
    let pattern = parse(fact, text);
    let name = FactName::new(fact);
    for value in yes {
        assert!(
            pattern.matches(&name, (*value).into()),
            "{text} matches {value}"
        );
    }
    for value in no {
        assert!(
            !pattern.matches(&name, (*value).into()),
            "{text} does not match {value}"
        );
    }
    assert_eq!(pattern.to_string(), text);
    assert_eq!(parse(fact, &pattern.to_string()), pattern);
}

#[test]
fn text_of_other_facts() {
    matches("user", "a", &["a"], &["", "A", "aa"]);
    matches("user", "a*", &["a", "ab"], &["", "ca"]);
    matches("user", "*a", &["a", "ca"], &["", "ab"]);
    matches("user", "a*b", &["ab", "acb", "abab"], &["a", "b", "aba"]);
    matches("user", "aba*aba", &["abaaba"], &["aba", "ababa"]);
    matches("user", "*a*b*", &["ab", "xaybz"], &["bca", ""]);
    matches("user", "*", &["", "a"], &[]);
    matches("user", "", &[""], &["a"]);
    matches("user", r"a\*\\*", &[r"a*\", r"a*\b"], &["a", r"a\"]);
    matches("user", "{a}", &["{a}"], &["a"]);
}

#[test]
fn paths() {
    matches(
        "path",
        "/login",
        &["/login", "/login/", "//login", "login", "/login?a=/b"],
        &["/", "/Login", "/login/a", "/a/login", ""],
    );
    matches("path", "/", &["/", "", "//", "/?a"], &["/a"]);
    matches("path", "/*", &["/a", "/a/", "//a"], &["/", "/a/b"]);
    matches(
        "path",
        "/a/**",
        &["/a", "/a/", "/a/b", "/a/b/c"],
        &["/", "/ab", "/b/a"],
    );
    matches("path", "/**", &["/", "", "/a/b"], &[]);
    matches("path", "/**/a", &["/a", "/b/a", "/a/a"], &["/", "/a/b"]);
    matches(
        "path",
        "/a/**/b/**/c",
        &["/a/b/c", "/a/x/b/y/z/c", "/a/b/b/c/c"],
        &["/a/c", "/a/b"],
    );
    matches(
        "path",
        "/**/a/a/**/a",
        &["/a/a/a", "/a/b/a/a/b/a"],
        &["/a/a", "/a/b/a/a"],
    );
    matches(
        "path",
        "/v*/x",
        &["/v/x", "/v1/x"],
        &["/x", "/w/x", "/v/1/x"],
    );
    matches(
        "path",
        "/a*b/{id}",
        &["/ab/7", "/axb/7"],
        &["/ab", "/a/b/7"],
    );
    matches("path", r"/\*/\{a\}\\", &[r"/*/{a}\"], &[r"/a/{a}\"]);
}

#[test]
fn paths_as_text_ignore_slashes_too() {
    let path = FactName::new("path");
    let prefix = Pattern::prefix(&path, "/api/a").unwrap();
    for value in ["/api/ab", "//api//ab/", "api/a?b"] {
        assert!(prefix.matches(&path, value.into()), "{value}");
    }
    assert!(!prefix.matches(&path, "/api?/a".into()));
    let suffix = Pattern::suffix(&path, ".php").unwrap();
    assert!(suffix.matches(&path, "/a.php//?b".into()));
    let glob = Pattern::glob(&path, "/a*z").unwrap();
    assert!(glob.matches(&path, "/a/b/z/".into()));
    let equal = Pattern::equal(&path, "/a*/{b}/").unwrap();
    assert!(equal.matches(&path, "//a*/{b}".into()));
    assert!(!equal.matches(&path, "/ab/{b}".into()));
    assert_eq!(equal.to_string(), r"/a\*/\{b\}");
}

#[test]
fn captures_are_found_in_paths_that_match() {
    let pattern = PathPattern::parse("/a/{x}/**/{y}").unwrap();
    assert_eq!(pattern.names().collect::<Vec<_>>(), ["x", "y"]);
    assert_eq!(pattern.capture("//a/1/2/3/?x=4", "x"), Some("1"));
    assert_eq!(pattern.capture("/a/1/2/3/", "y"), Some("3"));
    assert_eq!(pattern.capture("/a/1/2", "z"), None);
    assert_eq!(pattern.capture("/a/1", "x"), None);
    let middle = PathPattern::parse("/**/a/{x}/b/**").unwrap();
    assert_eq!(middle.capture("/a/1/c/a/2/b/a/3/b", "x"), Some("2"));
}

#[test]
fn hosts_have_no_case_and_no_port() {
    let yes = [
        "a.example.com",
        "A.EXAMPLE.COM:8080",
        "b.a.example.com.",
        "x.example.com.:80",
    ];
    matches(
        "host",
        "*.example.com",
        &yes,
        &["example.com", "aexample.com", "a.example.com.evil"],
    );
    matches("host", "::1", &["[::1]", "[::1]:80", "::1"], &["[::2]"]);
    assert_eq!(parse("host", "A*.B*"), parse("host", "a*.b*"));
}

#[test]
fn addresses_and_networks() {
    matches(
        "client-ip",
        "10.0.0.7",
        &["10.0.0.7", "::ffff:10.0.0.7", "64:ff9b::10.0.0.7"],
        &["10.0.0.8", "", "x"],
    );
    matches(
        "client-ip",
        "10.0.0.0/8",
        &["10.255.0.1", "::ffff:10.1.1.1", "64:ff9b::10.1.1.1"],
        &["11.0.0.0", "::10"],
    );
    matches(
        "client-ip",
        "2001:db8::/32",
        &["2001:db8:1::"],
        &["2001:db9::", "10.0.0.7"],
    );
    assert_eq!(
        parse("client-ip", "::ffff:10.0.0.7"),
        parse("client-ip", "10.0.0.7")
    );
    assert_eq!(
        parse("client-ip", "::ffff:10.0.0.0/104"),
        parse("client-ip", "10.0.0.0/8")
    );
    assert_eq!(
        parse("client-ip", "64:ff9b::10.0.0.0/104"),
        parse("client-ip", "10.0.0.0/8")
    );
    assert!(!parse("client-ip", "::/0").matches(&FactName::new("client-ip"), "10.0.0.7".into()));
    let forwarded = FactName::new("header:x-forwarded-for");
    let network = Pattern::network("10.0.0.0/8").unwrap();
    assert!(network.matches(&forwarded, "10.0.0.7".into()));
}

#[test]
fn errors_say_what_is_wrong_and_where() {
    use PatternErrorKind as Kind;
    let network = "10.0.0.0/8".parse().unwrap();
    for (fact, text, offset, kind) in [
        ("path", "login", 0, Kind::NoSlash),
        ("path", "", 0, Kind::NoSlash),
        ("path", "/a?b", 2, Kind::Query),
        ("path", "/a/b**", 4, Kind::DoubleStar),
        ("path", "/a/v{x}", 4, Kind::Brace),
        ("path", "/a/x}", 4, Kind::Brace),
        ("path", "/a/{}", 4, Kind::CaptureName),
        ("path", "/{a b}", 2, Kind::CaptureName),
        ("path", "/{a}/{a}", 6, Kind::DuplicateCapture("a".into())),
        ("path", r"/a/\b", 3, Kind::Escape),
        ("user", r"ab\", 2, Kind::Escape),
        ("method", "GeT", 1, Kind::LowerCaseMethod),
        ("host", "a.b:80", 3, Kind::HostPort),
        ("host", "[::1]", 0, Kind::HostPort),
        ("host", "*.b.", 3, Kind::HostPort),
        ("client-ip", "10.0.0", 0, Kind::Network),
        ("client-ip", "10.0.0.0/33", 0, Kind::Network),
        ("client-ip", "10.0.0.*", 0, Kind::Network),
        ("client-ip", "10.0.0.7/8", 0, Kind::HostBits(network)),
    ] {
        let error = Pattern::parse(&FactName::new(fact), text).expect_err(text);
        assert_eq!((error.offset(), error.kind()), (offset, &kind), "{text}");
    }
    let address = FactName::new("client-ip");
    let error = Pattern::prefix(&address, "10.").unwrap_err();
    assert_eq!(error.kind(), &Kind::AddressAsText);
}

/// One condition.
fn when(fact: &str, patterns: &[&str]) -> When {
    let patterns = patterns.iter().map(|text| parse(fact, text)).collect();
    let (fact, test) = (FactName::new(fact), Test::OneOf(patterns));
    When {
        all: vec![Condition { fact, test }],
        ..When::default()
    }
}

#[test]
fn conditions_are_displayed_as_a_policy_writes_them() {
    assert_eq!(When::default().to_string(), "{}");
    let mut rule = when("header:x-key", &["a", r"b\*"]);
    rule.any = vec![when("path", &["/a/{x}"]), when("client-ip", &["10.0.0.7"])];
    rule.not = Some(when("query:a b", &["\""]).into());
    let text = r#"{ header.x-key = ["a", 'b\*'], any = [{ path = "/a/{x}" }, "#.to_owned()
        + r#"{ client-ip = "10.0.0.7" }], not = { query."a b" = '"' } }"#;
    assert_eq!(rule.to_string(), text);
    let path = FactName::new("path");
    let explicit = Test::OneOf(vec![Pattern::prefix(&path, "/a*").unwrap()]);
    let explicit = Condition {
        fact: path,
        test: explicit,
    };
    assert_eq!(explicit.to_string(), r#"path = { prefix = "/a*" }"#);
    let user = FactName::new("user");
    let network = Test::OneOf(vec![Pattern::network("::1").unwrap()]);
    let network = Condition {
        fact: user.clone(),
        test: network,
    };
    assert_eq!(network.to_string(), r#"user = { network = "::1" }"#);
    let absent = Condition {
        fact: user,
        test: Test::Absent,
    };
    assert_eq!(absent.to_string(), "user = false");
}

#[test]
fn failures_name_the_condition_and_the_value() {
    let facts = [("method", "GET"), ("path", "/a\n")];
    let failure = |when: &When| {
        when.first_failure(&facts)
            .map(|failure| failure.to_string())
    };
    let mut rule = when("method", &["POST", "PUT"]);
    assert_eq!(failure(&rule).unwrap(), "method is GET, not POST or PUT");
    assert_eq!(
        failure(&when("user", &["a"])).unwrap(),
        "user is absent, not a"
    );
    assert_eq!(
        failure(&when("path", &["/b"])).unwrap(),
        r#"path is "/a\n", not /b"#
    );
    rule = when("method", &["GET"]);
    assert_eq!(failure(&rule), None);
    rule.not = Some(when("method", &["G*"]).into());
    assert_eq!(failure(&rule).unwrap(), r#"`not`: { method = "G*" } holds"#);
    rule.any = vec![when("user", &["a"]), when("user", &["b"])];
    assert_eq!(
        failure(&rule).unwrap(),
        "`any`: none of the 2 alternatives holds"
    );
    let absent = Condition {
        fact: FactName::new("method"),
        test: Test::Absent,
    };
    let absent = When {
        all: vec![absent],
        ..When::default()
    };
    assert_eq!(failure(&absent).unwrap(), "method is GET, not absent");
}

#[test]
fn captures_come_from_the_pattern_that_matches() {
    let rule = when("path", &["/a/{x}", "/b/{y}/{x}"]);
    assert_eq!(rule.capture("/b/1/2", "x"), Some("2"));
    assert_eq!(rule.capture("/a/1", "y"), None);
}

#[test]
fn globs_do_not_try_a_star_again() {
    let text = "a".repeat(1_000_000);
    let glob = Glob::parse(&"*a".repeat(1000)).unwrap();
    assert!(glob.matches(&text));
    assert!(
        !Glob::parse(&("*a".repeat(1000) + "*b*"))
            .unwrap()
            .matches(&text)
    );
    assert!(
        !Glob::parse("*a*a*a*a*a*a*a*a*a*a*b")
            .unwrap()
            .matches(&text)
    );
}
