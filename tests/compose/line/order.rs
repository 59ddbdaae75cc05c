//! A thousand callers.

use std::collections::BTreeSet;

use super::{Caller, Tested, rate};
use crate::support::*;

const CALLERS: usize = 1000;
const LIMIT: usize = 3;

/// 100 permits a second.
fn quota() -> Quota {
    Quota::per_second(100).burst(5)
}

/// How long each caller stays inside: from 0 to 48 ms, or 16 on average for each place.
fn stay(caller: usize) -> u64 {
    (caller as u64 * 7919 % 97) * 500_000
}

/// When each caller is served at the earliest, if they are served in order.
fn earliest() -> Vec<Tick> {
    let clock = Tested::new(quota(), 1).clock;
    let rate = rate(quota(), &clock);
    let (mut now, mut leaves) = (Tick::ZERO, BTreeSet::new());
    let serve = |caller| {
        leaves.retain(|(at, _)| *at > now);
        if leaves.len() == LIMIT {
            now = leaves.pop_first().map_or(now, |(at, _)| at);
        }
        while let Err(denied) = rate.at(now).try_acquire_n(1) {
            now = now.saturating_add(denied.retry_after().expect("a wait"));
        }
        leaves.insert((tick(now.as_nanos() + stay(caller)), caller));
        now
    };
    (0..CALLERS).map(serve).collect()
}

#[test]
fn a_thousand_callers_are_served_in_order_with_at_most_two_sleeps_each() {
    deadline("a thousand callers", a_thousand_callers);
}

fn a_thousand_callers() {
    let tested = Tested::new(quota(), LIMIT as u64);
    let mut callers: Vec<Caller> = (0..CALLERS).map(|_| tested.caller(1)).collect();
    let (mut served, mut inside) = (Vec::new(), BTreeSet::new());
    let mut grants: Vec<_> = (0..CALLERS).map(|_| None).collect();
    let mut pending = [0; CALLERS];
    let mut is_first_round = true;
    while served.len() < CALLERS {
        for (number, caller) in callers.iter_mut().enumerate() {
            if !is_first_round && !caller.was_woken() {
                continue;
            }
            match caller.poll() {
                Poll::Ready(granted) => {
                    let now = tested.clock.now();
                    grants[number] = Some(granted.expect("it will be there"));
                    inside.insert((tick(now.as_nanos() + stay(number)), number));
                    served.push((number, now));
                }
                Poll::Pending => pending[number] += 1,
            }
        }
        is_first_round = false;
        if callers.iter().any(Caller::was_woken) {
            continue;
        }
        // The next thing that happens: a caller leaves, or the first in line wakes.
        let leaves = inside.first().map(|(at, _)| *at);
        let next = leaves.into_iter().chain(tested.clock.next_sleeper()).min();
        tested
            .clock
            .set(next.unwrap_or(Tick::ZERO).max(tested.clock.now()));
        while let Some((at, number)) = inside.first().copied() {
            if at > tested.clock.now() {
                break;
            }
            inside.pop_first();
            grants[number] = None;
        }
    }
    let expected: Vec<_> = earliest().into_iter().enumerate().collect();
    assert_eq!(served, expected);
    for (caller, pending) in callers.iter().zip(pending) {
        // For the rate, and for the room. Before, each waits once for its turn.
        assert!(
            caller.sleeps() <= 1,
            "{} sleeps for the rate",
            caller.sleeps()
        );
        assert!(pending <= 3, "{pending} sleeps, with the one in line");
    }
    let sleep_twice = pending.iter().filter(|pending| **pending == 3).count();
    assert!(sleep_twice > 0, "no caller waits for both");
    drop(grants);
    tested.assert_empty();
}
