//! Finding the rules of a request and deciding about it do not allocate.

use std::ops::ControlFlow;
use tollgate_policy::when::{Condition, Matcher, Pattern, Test, When};
use tollgate_policy::{FactKind, FactName, FactValue, Facts, Outcome, Policy};

use crate::allocations::allocated;

/// Facts of all kinds: a host and a path that have to be changed before they are compared, an
/// address and a number.
struct Request;

impl Facts for Request {
    fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
        Some(match name.kind() {
            FactKind::Path => "//api/users/alice/?a=b".into(),
            FactKind::Host => "Www.Example.COM:8080".into(),
            FactKind::ClientIp => FactValue::Address([10, 0, 0, 7].into()),
            FactKind::Header("x-size") => FactValue::Number(800),
            FactKind::Header("x-from") => FactValue::Address([10, 0, 0, 7].into()),
            _ => return None,
        })
    }
}

#[test]
fn finding_rules_does_not_allocate() {
    let path = FactName::new("path");
    let prefix = Condition {
        test: Test::OneOf(vec![Pattern::prefix(&path, "/api/u").unwrap()]),
        fact: path,
    };
    let prefix = When {
        all: vec![prefix],
        ..When::default()
    };
    let rules = [
        ("path", "/api/users/{user}"),
        ("path", "/api/*/alice"),
        ("path", "/**/a*"),
        ("host", "*.example.com"),
        ("host", "*exam*"),
        ("client-ip", "10.0.0.0/8"),
        ("client-ip", "10.0.0.7"),
        ("header:x-size", "8*"),
        ("header:x-from", "10.*"),
    ];
    let rules = rules.map(|(fact, text)| {
        let fact = FactName::new(fact);
        let test = Test::OneOf(vec![Pattern::parse(&fact, text).unwrap()]);
        When {
            all: vec![Condition { fact, test }],
            ..When::default()
        }
    });
    let matcher = Matcher::new(rules.iter().chain([&prefix]).map(Some));
    let mut found = 0;
    let before = allocated();
    let end = matcher.each(&Request, |_| {
        found += 1;
        ControlFlow::<()>::Continue(())
    });
    let plain = rules.iter().all(|when| when.holds(&Request)) && prefix.holds(&Request);
    let after = allocated();
    assert!(end.is_continue() && plain);
    assert_eq!((found, after - before), (10, 0));
}

/// A request with keys of up to 64 bytes: the texts have 63, and the key says what they are in one
/// more.
struct Call {
    path: &'static str,
}

const TEXT: &str = "a-key-of-63-bytes-0123456789-0123456789-0123456789-0123456789-0";
/// A path that is not a key as it is: it has empty segments.
const LONG_PATH: &str = "//a//path/of/67/bytes/that/has/63/when/it/is/clean/0123456789/012//";

impl Facts for Call {
    fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
        Some(match name.kind() {
            FactKind::Method => "GET".into(),
            FactKind::Path => self.path.into(),
            FactKind::Host => {
                "Www.A-Host-Of-63-Bytes-0123456789-0123456789-012345.Example.COM".into()
            }
            FactKind::ClientIp => FactValue::Address([10, 0, 0, 7].into()),
            FactKind::Header("x-api-key") => TEXT.into(),
            FactKind::Other("tier") => "pro".into(),
            FactKind::Other("number") => FactValue::Number(u64::MAX),
            FactKind::Other("peer") => FactValue::Address([10, 0, 0, 8].into()),
            FactKind::Header("x-cost") => "1".into(),
            _ => return None,
        })
    }
}

/// The rules that the tests use. Each grants two requests of a key.
const RULES: [(&str, &str); 11] = [
    ("address", "key = 'client-ip'\nlimit = '2/d'"),
    ("text", "key = 'header:x-api-key'\nlimit = '2/d'"),
    (
        "parts",
        "key = ['client-ip', 'peer', 'number']\nlimit = '2/d'",
    ),
    ("host", "key = 'host'\nlimit = '2/d'"),
    ("two", "key = 'client-ip'\nlimit = ['2/d', '9/h']"),
    ("also", "key = 'number'\nlimit = '2/d'\nalso = ['whole']"),
    (
        "banned",
        "key = 'client-ip'\nlimit = '2/d'\nban = { after = 9, for = '1h' }",
    ),
    (
        "plan",
        "key = 'client-ip'\nplan = { by = 'tier', free = '1/d', pro = '2/d' }",
    ),
    ("inside", "key = 'client-ip'\nlimit = 'concurrency 2'"),
    (
        "cost",
        "key = 'client-ip'\nlimit = '2/d'\ncost = { estimate = 'header:x-cost' }",
    ),
    ("captured", "key = 'path:0'\nlimit = '2/d'"),
];

fn policy() -> Policy {
    let mut text = String::new();
    for (name, fields) in RULES {
        let path = if name == "captured" {
            "/captured/{0}"
        } else {
            name
        };
        let path = path.trim_start_matches('/');
        text += &format!("[[rule]]\nname = '{name}'\nwhen = {{ path = '/{path}' }}\n{fields}\n");
    }
    text += "[[rule]]\nname = 'path'\nkey = 'path'\nlimit = '2/d'\n";
    text += "[[rule]]\nname = 'whole'\nwhen = 'never'\nlimit = '100/d'\n";
    Policy::from_toml(&text).unwrap()
}

/// Makes four requests to each rule. Returns what was allocated, and how many `decide` allowed.
fn decide_all(decide: impl Fn(&Policy, &Call) -> bool) -> Vec<(&'static str, u64, u32)> {
    let policy = policy();
    let paths = [
        "/address",
        "/text",
        "/parts",
        "/host",
        "/two",
        "/also",
        "/banned",
        "/plan",
        "/inside",
        "/cost",
        "/captured/x",
        LONG_PATH,
    ];
    let each = paths.map(|path| {
        let call = Call { path };
        let before = allocated();
        let allowed = (0..4).map(|_| u32::from(decide(&policy, &call))).sum();
        (path, allocated() - before, allowed)
    });
    each.into()
}

/// Each rule grants two of the four requests. A concurrency grants all, since each one leaves it.
fn check(decided: &[(&str, u64, u32)]) {
    for (path, allocated, allowed) in decided {
        let expected = if *path == "/inside" { 4 } else { 2 };
        assert_eq!((*allocated, *allowed), (0, expected), "{path}");
    }
}

#[test]
fn decisions_do_not_allocate() {
    check(&decide_all(|policy, call| policy.decide(call).is_allowed()));
}

#[test]
fn finished_decisions_do_not_allocate() {
    check(&decide_all(|policy, call| {
        let decision = policy.decide(call);
        let is_allowed = decision.is_allowed();
        let _ = (decision.remaining(), decision.retry_after());
        let _ = decision.finish(Outcome::Success, call);
        is_allowed
    }));
}
