//! Conditions, patterns and the index that finds the rules of a request.

mod random;

use std::ops::ControlFlow;

use random::Random;
use tollgate_policy::Facts;
use tollgate_policy::when::{Matcher, When};

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
