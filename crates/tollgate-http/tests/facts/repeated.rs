//! Headers, parameters and cookies that a request has several times.

use http::{HeaderMap, StatusCode};
use tollgate_http::{AnswerFacts, Answers, Refusal, RequestFacts};
use tollgate_policy::{Outcome, Policy};

use crate::request;

/// A header line, or the query if the name is empty.
type Line<'l> = (&'l str, &'l str);

/// What is answered to a request with these lines: 200 if it is allowed.
#[track_caller]
pub(crate) fn status(policy: &Policy, lines: &[Line<'_>]) -> u16 {
    let query = lines.iter().find(|(name, _)| name.is_empty());
    let uri = query.map_or("/".to_owned(), |(_, query)| format!("/?{query}"));
    let headers = lines.iter().filter(|(name, _)| !name.is_empty());
    let headers: Vec<_> = headers
        .map(|(name, value)| (*name, value.as_bytes()))
        .collect();
    let request = request(&uri, &headers);
    let decision = policy.decide(&RequestFacts::new(&request));
    match Refusal::of_decision(&decision) {
        Some(refusal) => Answers::new().refuse(&refusal).status().as_u16(),
        None => 200,
    }
}

/// One request an hour for each key.
fn by_key(key: &str, more: &str) -> Policy {
    let text = format!("[[rule]]\nname = 'a'\nkey = '{key}'\nlimit = '1/h'\n{more}");
    Policy::from_toml(&text).unwrap()
}

#[test]
fn a_key_whose_lines_differ_is_refused_whatever_missing_says() {
    for missing in ["deny", "skip", "shared"] {
        for (key, one, several) in [
            (
                "header:x-api-key",
                &[("x-api-key", "k1")][..],
                &[("x-api-key", "k1"), ("x-api-key", "other")][..],
            ),
            (
                "query:api_key",
                &[("", "api_key=k1")],
                &[("", "api_key=k1&api_key=other")],
            ),
            (
                "cookie:session",
                &[("cookie", "session=k1")],
                &[("cookie", "session=k1; session=other")],
            ),
            (
                "cookie:session",
                &[("cookie", "session=k1")],
                &[("cookie", "session=k1"), ("cookie", "a=b; session=other")],
            ),
            (
                "host",
                &[("host", "a.example")],
                &[("host", "a.example"), ("host", "b.example")],
            ),
            (
                "header:host",
                &[("host", "a.example")],
                &[("host", "a.example"), ("host", "b.example")],
            ),
        ] {
            let policy = by_key(key, &format!("missing = '{missing}'"));
            assert_eq!(status(&policy, one), 200, "{key}");
            assert_eq!(status(&policy, one), 429, "{key}");
            assert_eq!(status(&policy, several), 400, "{key}, missing = {missing}");
        }
    }
}

#[test]
fn equal_lines_are_one() {
    for (key, one, several) in [
        (
            "header:x-api-key",
            &[("x-api-key", "k1")][..],
            &[("x-api-key", "k1"), ("x-api-key", "k1")][..],
        ),
        (
            "query:api_key",
            &[("", "api_key=k1")],
            &[("", "api_key=k1&api_key=%6b1")],
        ),
        (
            "cookie:session",
            &[("cookie", "session=k1")],
            &[("cookie", "session=\"k1\"; session=k1")],
        ),
    ] {
        let policy = by_key(key, "");
        assert_eq!(status(&policy, several), 200, "{key}");
        assert_eq!(status(&policy, one), 429, "{key}");
    }
}

#[test]
fn a_rule_can_say_which_line_its_service_reads() {
    let lines = [
        ("x-api-key", "k1"),
        ("x-api-key", "k2"),
        ("x-api-key", "k1"),
    ];
    for (repeated, same, other) in [("first", "k1", "k2"), ("last", "k3", "k1")] {
        let policy = by_key("header:x-api-key", &format!("repeated = '{repeated}'"));
        let mut lines = Vec::from(lines);
        lines.extend((repeated == "last").then_some(("x-api-key", "k3")));
        assert_eq!(status(&policy, &lines), 200);
        assert_eq!(status(&policy, &[("x-api-key", same)]), 429);
        assert_eq!(status(&policy, &[("x-api-key", other)]), 200);
    }
}

#[test]
fn a_list_is_joined() {
    let lines = [("accept", "a/b"), ("accept", "c/d")];
    let policy = by_key("header:accept", "");
    assert_eq!(status(&policy, &lines), 200);
    assert_eq!(status(&policy, &[("accept", "a/b, c/d")]), 429);
    assert_eq!(status(&policy, &[("accept", "a/b")]), 200);
    let policy = Policy::from_toml("[[deny]]\nname = 'bad'\nwhen = { header.via = '*a, b*' }");
    assert_eq!(
        status(&policy.unwrap(), &[("via", "1.1 a"), ("via", "b")]),
        403
    );
}

#[test]
fn a_denial_and_a_rule_match_any_line_and_an_exemption_each() {
    let lines = |one, other| [("x-key", one), ("x-key", other)];
    let deny = "[[deny]]\nname = 'stolen'\nwhen = { header.x-key = 'stolen' }";
    let deny = Policy::from_toml(deny).unwrap();
    for (one, other, expected) in [
        ("good", "good", 200),
        ("stolen", "other", 403),
        ("other", "stolen", 403),
        ("stolen", "stolen", 403),
    ] {
        assert_eq!(status(&deny, &lines(one, other)), expected);
    }
    let allow = "[[allow]]\nname = 'us'\nwhen = { header.x-key = ['us', 'me'] }\n\
                 [[deny]]\nname = 'bots'\nwhen = { header.x-bot = true, \
                 not = { header.x-bot = 'good' } }\n\
                 [[rule]]\nname = 'none'\nlimit = '1/d'\ncost = 2";
    let allow = Policy::from_toml(allow).unwrap();
    for (one, other, expected) in [
        ("us", "us", 200),
        ("us", "me", 200),
        ("us", "other", 429),
        ("other", "us", 429),
    ] {
        assert_eq!(
            status(&allow, &lines(one, other)),
            expected,
            "{one} {other}"
        );
    }
    // A condition within `not` holds only if it holds for each line.
    for (one, other, expected) in [("good", "good", 429), ("good", "bad", 403)] {
        assert_eq!(
            status(&allow, &[("x-bot", one), ("x-bot", other)]),
            expected
        );
    }
    let rule = "[[rule]]\nname = 'slow'\nwhen = { query.slow = '1' }\nlimit = '1/d'\ncost = 2";
    let rule = Policy::from_toml(rule).unwrap();
    assert_eq!(status(&rule, &[("", "slow=0&slow=1")]), 429);
    assert_eq!(status(&rule, &[("", "slow=0&slow=2")]), 200);
}

#[test]
fn a_plan_needs_each_line() {
    let text = "[[rule]]\nname = 'a'\nplan = { by = 'header:x-tier', gold = '9/h', free = '2/h', \
                default = 'free' }\n";
    let policy = Policy::from_toml(text).unwrap();
    assert_eq!(
        status(&policy, &[("x-tier", "gold"), ("x-tier", "gold")]),
        200
    );
    let both = [("x-tier", "gold"), ("x-tier", "free")];
    assert_eq!([(); 2].map(|()| status(&policy, &both)), [200, 429]);
}

#[test]
fn a_cost_is_the_largest_that_can_be_read() {
    let text = "[[rule]]\nname = 'a'\nlimit = '10/h'\n\
                cost = { estimate = 'header:x-items', default = 1, max = 8 }";
    for (lines, left) in [
        (&[("x-items", "6"), ("x-items", "nothing")][..], 4),
        (&[("x-items", "0"), ("x-items", "5"), ("x-items", "2")], 5),
        (&[("x-items", "900"), ("x-items", "5")], 2),
        (&[("x-items", "a"), ("x-items", "b")], 9),
    ] {
        let policy = Policy::from_toml(text).unwrap();
        let lines: Vec<_> = lines
            .iter()
            .map(|(name, it)| (*name, it.as_bytes()))
            .collect();
        let request = request("/", &lines);
        let decision = policy.decide(&RequestFacts::new(&request));
        assert_eq!(decision.remaining(), Some(left), "{lines:?}");
    }
    let text = "[[rule]]\nname = 'a'\nlimit = '1000/h'\n\
                cost = { default = 1, settle = 'response-header:x-used' }";
    let policy = Policy::from_toml(text).unwrap();
    let decision = policy.decide(&());
    let lines = [("x-used", "1"), ("x-used", "700"), ("x-used", "many")];
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(name, value.parse().unwrap());
    }
    let answer = AnswerFacts::new(StatusCode::OK, &headers);
    assert_eq!(decision.finish(Outcome::Success, &answer).charged, 699);
}

/// As a number of a policy does, and as a service may read it.
#[test]
fn a_number_that_is_too_large_is_the_largest() {
    let number = |lines: &[&str]| {
        let lines: Vec<_> = lines.iter().map(|it| ("x-items", it.as_bytes())).collect();
        RequestFacts::new(&request("/", &lines)).header_number("x-items")
    };
    assert_eq!(number(&["18446744073709551615"]), Some(u64::MAX));
    assert_eq!(number(&["18446744073709551616"]), Some(u64::MAX));
    assert_eq!(number(&["99999999999999999999999999", "3"]), Some(u64::MAX));
    assert_eq!(number(&["-99999999999999999999999999", "many"]), None);
}
