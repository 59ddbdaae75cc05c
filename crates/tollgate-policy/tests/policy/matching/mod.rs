//! Conditions, patterns and the index that finds the rules of a request.

mod patterns;
mod random;
mod repeated;

use std::ops::ControlFlow;

use random::Random;
use tollgate_policy::when::{Condition, Matcher, Pattern, Test, When};
use tollgate_policy::{FactName, Facts};

/// The rules that the index finds.
fn found(matcher: &Matcher, facts: &impl Facts) -> Vec<usize> {
    let mut found = Vec::new();
    let end = matcher.each(facts, |index| {
        found.push(index);
        ControlFlow::<()>::Continue(())
    });
    assert!(end.is_continue());
    found
}

/// 400 sets of up to 24 rules, 50 requests each. Each rule is compared with its plain definition.
#[test]
fn index_finds_exactly_the_rules_whose_conditions_hold() {
    let mut random = Random(1);
    let (mut matches, mut misses) = (0, 0);
    for _ in 0..400 {
        let count = random.below(25);
        let rules: Vec<_> = (0..count)
            .map(|_| (!random.one_in(12)).then(|| random::when(&mut random, 2)))
            .collect();
        let matcher = Matcher::new(rules.iter().map(Option::as_ref));
        for _ in 0..50 {
            let request = random::request(&mut random);
            let holds = |when: &Option<When>| when.as_ref().is_none_or(|when| when.holds(&request));
            let expected: Vec<_> = (0..count).filter(|index| holds(&rules[*index])).collect();
            assert_eq!(
                found(&matcher, &request),
                expected,
                "{request:?} in {rules:?}"
            );
            let first = matcher.each(&request, ControlFlow::Break);
            assert_eq!(first.break_value(), expected.first().copied());
            matches += expected.len();
            misses += count - expected.len();
        }
    }
    // Neither side is rare.
    assert!(
        matches > 20_000 && misses > 20_000,
        "{matches} matches, {misses} misses"
    );
}

/// If conditions cover others, each request that fulfills the others fulfills them.
#[test]
fn conditions_hold_where_those_hold_that_they_cover() {
    let mut random = Random(2);
    let (mut covered, mut held) = (0, 0);
    for _ in 0..60 {
        let rules: Vec<_> = (0..16).map(|_| random::when(&mut random, 1)).collect();
        let requests: Vec<_> = (0..150).map(|_| random::request(&mut random)).collect();
        for rule in &rules {
            let holds: Vec<_> = requests.iter().map(|request| rule.holds(request)).collect();
            for other in rules.iter().filter(|other| rule.covers(other)) {
                covered += 1;
                for (request, holds) in requests.iter().zip(&holds) {
                    if other.holds(request) {
                        held += 1;
                        assert!(*holds, "{rule} covers {other}, but not {request:?}");
                    }
                }
            }
        }
    }
    assert!(
        covered > 1000 && held > 10_000,
        "{covered} covered, {held} held"
    );
}

/// Rules of one condition each.
fn rules<'t>(conditions: impl IntoIterator<Item = (&'t str, String)>) -> Vec<When> {
    let when = |(fact, text): (&str, String)| {
        let fact = FactName::new(fact);
        let test = Test::OneOf(vec![Pattern::parse(&fact, &text).unwrap()]);
        When {
            all: vec![Condition { fact, test }],
            ..When::default()
        }
    };
    conditions.into_iter().map(when).collect()
}

#[test]
fn covers_what_it_should_know() {
    for (fact, wide, narrow) in [
        ("path", "/api/**", "/api/*/x"),
        ("path", "/api/**", "/api"),
        ("path", "/api/**/x/**", "/api/a/**/x/b*"),
        ("path", "/{a}/b", "/c/b"),
        ("path", "/a*", "/ab"),
        ("path", "/**", "/**/b"),
        ("client-ip", "10.0.0.0/8", "10.1.0.0/16"),
        ("host", "*.b", "a.b"),
        ("host", "*.b", "*.a.b"),
        ("user", "a*", "ab*"),
        ("user", "a*", "ab*c"),
        ("user", "*", "a"),
    ] {
        let [wide, narrow] = &rules([(fact, wide.to_owned()), (fact, narrow.to_owned())])[..]
        else {
            unreachable!()
        };
        assert!(wide.covers(narrow), "{wide} covers {narrow}");
        assert!(!narrow.covers(wide), "{narrow} does not cover {wide}");
        let both = When {
            any: vec![wide.clone(), narrow.clone()],
            ..When::default()
        };
        assert!(wide.covers(&both) && both.covers(wide));
        let except = |when: &When| When {
            not: Some(Box::new(when.clone())),
            ..When::default()
        };
        assert!(except(narrow).covers(&except(wide)));
        assert!(!except(wide).covers(&except(narrow)));
        assert!(When::default().covers(wide));
        assert!(!wide.covers(&When::default()));
    }
    let [a, b] = &rules([("user", "a".to_owned()), ("user", "b".to_owned())])[..] else {
        unreachable!()
    };
    let not_b = When {
        not: Some(Box::new(b.clone())),
        ..When::default()
    };
    assert!(not_b.covers(a) && !not_b.covers(b));
}

#[test]
fn only_what_can_not_be_narrowed_is_unindexed() {
    let indexed = ["/a", "/{x}/a", "/a/**", "/**/a", "/**", "/v*/a"];
    let paths = indexed.map(|text| ("path", text.to_owned()));
    let others = [
        ("host", "*.b"),
        ("user", "a*b"),
        ("user", "*"),
        ("client-ip", "10.0.0.0/8"),
    ];
    let others = others.map(|(fact, text)| (fact, text.to_owned()));
    let whens = rules(paths.into_iter().chain(others));
    let always = [None, None];
    assert_eq!(
        Matcher::new(whens.iter().map(Some).chain(always)).unindexed(),
        0
    );

    let mut whens = rules([("user", "*a*".to_owned()), ("path", "/v*/w*".to_owned())]);
    let absent = Condition {
        fact: FactName::new("user"),
        test: Test::Absent,
    };
    whens.push(When {
        all: vec![absent],
        ..When::default()
    });
    whens.push(When {
        not: Some(Box::new(whens[0].clone())),
        ..When::default()
    });
    whens.push(When {
        any: vec![whens[0].clone()],
        ..When::default()
    });
    assert_eq!(Matcher::new(whens.iter().map(Some)).unindexed(), 5);
}

/// A request that counts how often its facts are read.
struct Counted<'f>(&'f [(&'f str, &'f str)], std::cell::Cell<usize>);

impl Facts for Counted<'_> {
    fn fact(&self, name: &FactName) -> Option<tollgate_policy::FactValue<'_>> {
        self.1.set(self.1.get() + 1);
        self.0.fact(name)
    }
}

#[test]
fn a_fact_is_read_once() {
    let paths = (0..100).map(|_| ("path", "/a".to_owned()));
    let users = (0..100).map(|user| ("user", user.to_string()));
    let whens = rules(paths.chain(users));
    let matcher = Matcher::new(whens.iter().map(Some));
    let facts = Counted(&[("path", "/a"), ("user", "7")], std::cell::Cell::new(0));
    assert_eq!(found(&matcher, &facts).len(), 101);
    assert_eq!(facts.1.get(), 2);
}

/// Rules that share their path are found by what they don't share: only one is tested.
#[test]
fn the_condition_that_few_rules_share_finds_them() {
    let mut whens = rules((0..10_000).map(|user| ("user", user.to_string())));
    for (index, when) in whens.iter_mut().enumerate() {
        when.all
            .extend(rules([("path", "/a".to_owned())]).remove(0).all);
        when.all.extend(
            rules([("method", ["GET", "PUT"][index % 2].to_owned())])
                .remove(0)
                .all,
        );
    }
    let matcher = Matcher::new(whens.iter().map(Some));
    let facts = [("user", "7777"), ("path", "/a"), ("method", "PUT")];
    let facts = Counted(&facts, std::cell::Cell::new(0));
    assert_eq!(found(&matcher, &facts), [7777]);
    let facts = Counted(
        &[("path", "/a"), ("method", "PUT")],
        std::cell::Cell::new(0),
    );
    assert_eq!(found(&matcher, &facts), Vec::<usize>::new());
    // The other facts are not even read, since no rule is a candidate.
    assert_eq!(facts.1.get(), 1);
}

#[test]
fn hostile_requests_are_decided() {
    let paths = [
        "/a/a/a",
        "/**/a/b/**/a",
        "/*/*/*/*/**",
        "/a*a*a*b/**",
        "/**/b",
        "/a/**/*a*b",
    ];
    let paths = paths.map(|text| ("path", text.to_owned()));
    let others = [
        ("user", "*a*a*a*b"),
        ("user", "a*"),
        ("host", "*.a.a"),
        ("user", "*b"),
    ];
    let others = others.map(|(fact, text)| (fact, text.to_owned()));
    let whens = rules(paths.into_iter().chain(others));
    let matcher = Matcher::new(whens.iter().map(Some));
    for (path, user, host) in [
        (
            "/a".repeat(500_000),
            "a".repeat(1_000_000),
            "a.".repeat(500_000),
        ),
        (
            "a".repeat(1_000_000),
            "*a".repeat(500_000),
            ".".repeat(1_000_000),
        ),
        (
            "/".repeat(1_000_000),
            "é".repeat(500_000),
            ":".repeat(1_000_000),
        ),
        (
            "/b/a".repeat(100_000),
            "ab".repeat(500_000),
            "A.".repeat(500_000),
        ),
    ] {
        let facts = [("path", path), ("user", user), ("host", host)];
        let holds = |index: &usize| whens[*index].holds(&facts);
        let expected: Vec<_> = (0..whens.len()).filter(holds).collect();
        assert_eq!(found(&matcher, &facts), expected);
    }
}
