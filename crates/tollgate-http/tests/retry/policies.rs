//! Policies of several rules and limits.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use tollgate::ManualClock;
use tollgate_http::{Cause, LimitState, LimitStates, Refusal};
use tollgate_policy::{Decision, Policy};

use crate::random::Random;
use crate::{ANSWERS, REQUESTS, advance, algorithm, granted, refused};

/// A request that costs one permit.
const ONE: [(&str, &str); 2] = [("user", "ann"), ("n", "1")];

/// A policy of up to three rules with up to three limits each. All of them apply to each request.
fn policy(random: &mut Random) -> String {
    let mut text = String::new();
    let rules = 1 + random.below(3);
    for rule in 0..rules {
        // A rule has each limit once.
        let limits: BTreeSet<_> = (0..1 + random.below(3))
            .map(|_| format!("'{}'", algorithm(random).0))
            .collect();
        let limits = Vec::from_iter(limits);
        writeln!(text, "[[rule]]\nname = 'r{rule}'").expect("a string");
        writeln!(text, "limit = [{}]", limits.join(", ")).expect("a string");
        writeln!(text, "cost = {{ estimate = 'n', max = 100 }}").expect("a string");
        if random.one_in(2) {
            writeln!(text, "key = 'user'").expect("a string");
        }
        if random.one_in(4) {
            writeln!(text, "shadow = true").expect("a string");
        }
        if rule + 1 < rules {
            writeln!(text, "also = ['r{}']", rule + 1).expect("a string");
        }
    }
    text
}

/// Returns the lengths of the periods of its limits.
fn periods(decision: &Decision<&Policy<ManualClock>, ManualClock>) -> Vec<Duration> {
    let quotas = decision.asked().filter_map(|asked| asked.quota());
    quotas.map(|quota| quota.period()).collect()
}

#[test]
fn a_retry_at_retry_after_is_granted_by_a_policy() {
    let mut random = Random(4);
    for _ in 0..ANSWERS / REQUESTS {
        let text = policy(&mut random);
        let clock = ManualClock::new();
        let policy = Policy::builder().clock(clock.clone()).build_toml(&text);
        let policy = policy.unwrap_or_else(|errors| panic!("{text}{errors}"));
        let first = policy.decide(&ONE);
        let periods = periods(&first);
        let whole = remaining(&first);
        for _ in 0..REQUESTS {
            let period = periods[random.below(periods.len() as u64) as usize];
            advance(&clock, &mut random, period);
            let n = (1 + random.skewed(60)).to_string();
            let request = [("user", "ann"), ("n", n.as_str())];
            let decision = policy.decide(&request);
            let limits = LimitStates::of(&decision);
            let Some(reason) = decision.reason() else {
                if !limits.is_empty() {
                    check_grant(&policy, &limits, &whole, &mut random);
                }
                continue;
            };
            let refusal = Refusal::of_reason(&reason).limits(&limits);
            let Some(retry_after) = refused(&refusal) else {
                assert_eq!(refusal.cause(), Cause::TooLarge, "{text}{decision:?}");
                continue;
            };
            clock.advance(retry_after);
            let again = policy.decide(&request);
            assert!(
                again.is_allowed(),
                "{text}{n} after {retry_after:?}: {again:?}"
            );
        }
    }
}

/// Checks that each limit is whole when the longest `t` is over: what a request for one permit
/// leaves is what it left of the new limits. (Of a rate that is not exact it may leave one permit
/// less, until a nanosecond later.)
fn check_grant(
    policy: &Policy<ManualClock>,
    limits: &LimitStates<'_>,
    whole: &[u64],
    random: &mut Random,
) {
    let times = granted(limits);
    if !random.one_in(8) {
        return;
    }
    let last = times.into_iter().flatten().max();
    let last = last.expect("rates have resets");
    policy.clock().advance(Duration::from_secs(last));
    let next = policy.decide(&ONE);
    assert!(next.is_allowed(), "{next:?}");
    assert_eq!(remaining(&next), whole, "{next:?}");
}

/// Returns what the limits have left that can deny.
fn remaining(decision: &Decision<&Policy<ManualClock>, ManualClock>) -> Vec<u64> {
    let limits = LimitStates::of(decision);
    limits.iter().map(LimitState::remaining).collect()
}
