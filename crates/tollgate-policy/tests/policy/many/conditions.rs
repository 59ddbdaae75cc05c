//! Requests that more limits meet, by the conditions of their rules, than a composition has room
//! for. Each is decided as a model decides it, and all or nothing.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use tollgate::ManualClock;
use tollgate_policy::{Asked, Outcome, Policy, Reason};

use crate::many::rules;
use crate::random::Random;

/// Returns a policy whose rules apply to requests with the header of their number.
fn by_headers(count: usize, rule: impl Fn(usize) -> String) -> (Policy<ManualClock>, ManualClock) {
    let text = rules(count, |index| {
        format!("when = {{ header.h{index} = true }}\n{}", rule(index))
    });
    let clock = ManualClock::new();
    let policy = Policy::builder().clock(clock.clone()).build_toml(&text);
    (policy.expect("a policy"), clock)
}

fn headers(which: impl Iterator<Item = usize>) -> Vec<(String, String)> {
    let headers = which.map(|index| (format!("header:h{index}"), String::from("1")));
    headers.chain([("user".into(), "ann".into())]).collect()
}

fn left(policy: &Policy<ManualClock>, count: usize) -> Vec<u64> {
    let one = |index| {
        let pairs = headers(std::iter::once(index));
        let decision = policy.decide(&pairs);
        let left = decision.asked().next().expect("one limit");
        let left = left.remaining() + u64::from(decision.is_allowed());
        decision.undo();
        left
    };
    (0..count).map(one).collect()
}

#[test]
fn each_request_is_decided_as_the_model_decides_it() {
    for count in [65, 200] {
        let (policy, _) = by_headers(count, |index| {
            format!("limit = 'fixed-window {}/h'", 3 + index % 50)
        });
        let mut model: Vec<u64> = (0..count).map(|index| 3 + index as u64 % 50).collect();
        let mut random = Random(7);
        let (mut allowed, mut denied) = (0, 0);
        for _ in 0..300 {
            let leaves_out = random.below(4) as usize;
            let skipped: Vec<_> = (0..leaves_out * 20)
                .map(|_| random.below(count as u64) as usize)
                .collect();
            let asked: Vec<_> = (0..count).filter(|it| !skipped.contains(it)).collect();
            let pairs = headers(asked.iter().copied());
            let decision = policy.decide(&pairs);
            let grants = asked.iter().all(|index| model[*index] > 0);
            assert_eq!(decision.is_allowed(), grants, "{decision:?}");
            assert_eq!(decision.asked().count(), asked.len());
            match (grants, random.below(3)) {
                (false, _) => {
                    denied += 1;
                    let by = decision.denied_by().expect("a rule").to_owned();
                    let index: usize = by[1..].parse().expect("a number");
                    assert_eq!(model[index], 0, "{by}");
                    assert!(decision.retry_after().is_some());
                }
                (true, 0) => assert_eq!(decision.undo(), asked.len() as u64),
                (true, _) => {
                    allowed += 1;
                    asked.iter().for_each(|index| model[*index] -= 1);
                    let least = asked.iter().map(|index| model[*index]).min();
                    assert_eq!(decision.remaining(), least);
                }
            }
        }
        assert!(allowed > 2 && denied > 100, "{allowed} {denied}");
        assert_eq!(left(&policy, count), model);
    }
}

#[test]
fn sixty_four_concurrencies_without_a_clock_decide() {
    let (policy, _) = by_headers(64, |_| "limit = 'concurrency 1'".into());
    let pairs = headers(0..64);
    let inside = policy.decide(&pairs);
    assert!(inside.is_allowed(), "{inside:?}");
    assert!(!policy.decide(&pairs).is_allowed());
    drop(inside);
    assert!(policy.decide(&pairs).is_allowed());
}

#[test]
fn bans_count_too_and_work() {
    let (policy, clock) = by_headers(33, |_| {
        "key = 'user'\nlimit = '1/h'\nban = { after = 2, for = '10h' }".into()
    });
    let pairs = headers(0..33);
    let decide = || {
        let decision = policy.decide(&pairs);
        (decision.is_allowed(), decision.retry_after())
    };
    let hours = |hours: u64| Some(Duration::from_secs(hours * 3600));
    assert_eq!(decide(), (true, None));
    assert_eq!(decide(), (false, hours(1)));
    assert_eq!(decide(), (false, hours(10)));
    clock.advance(Duration::from_secs(9 * 3600));
    assert_eq!(decide(), (false, hours(1)));
    clock.advance(Duration::from_secs(3600));
    assert_eq!(decide(), (true, None));
}

#[test]
fn what_a_request_holds_is_settled_and_left() {
    let count = 70;
    let (policy, _) = by_headers(count, |index| match index {
        0 => "limit = 'concurrency 1'".into(),
        1 => "limit = '50/h'\ncount = 'failures'".into(),
        2 => "limit = '1/h'\nshadow = true".into(),
        _ => "limit = '50/h'\ncost = { default = 10, settle = 'used' }".into(),
    });
    let pairs = headers(0..count);
    let first = policy.decide(&pairs);
    assert!(first.needs_finish());
    let denied = policy.decide(&pairs);
    let by_place = Some(Reason::Limit {
        rule: "r0",
        denied: tollgate::Denied::busy(1),
    });
    assert_eq!(denied.reason(), by_place);
    drop(denied);
    let settled = first.finish(Outcome::Success, &[("used", "4")]);
    assert_eq!(settled.returned, 6 * (count as u64 - 3) + 1);
    let second = policy.decide(&pairs);
    assert!(second.is_allowed(), "{second:?}");
    let shadow = second.asked().find(Asked::is_shadow).expect("one on trial");
    assert!(!shadow.would_allow());
    drop(second);
    let third = policy.decide(&pairs);
    assert!(third.is_allowed(), "{third:?}");
}

#[test]
fn two_threads_get_all_or_nothing() {
    const COUNT: usize = 66;
    const EACH: u64 = 500;
    let (policy, _) = by_headers(COUNT, |index| {
        format!("limit = 'fixed-window {}/h'", 500 + 7 * index)
    });
    let barrier = Barrier::new(2);
    // One thread asks all limits, and the other all but one: both sets are large.
    let kept = thread::scope(|scope| {
        let run = |skip: usize| {
            let (policy, barrier) = (&policy, &barrier);
            scope.spawn(move || {
                let pairs = headers(skip..COUNT);
                barrier.wait();
                let mut kept = 0;
                for n in 0..EACH {
                    let decision = policy.decide(&pairs);
                    let granted = decision.asked().filter(|it| it.grant().is_some()).count();
                    match decision.is_allowed() {
                        true => assert_eq!(granted, COUNT - skip),
                        false => assert_eq!(granted, 0),
                    }
                    match decision.is_allowed() && n % 3 == 0 {
                        true => assert_eq!(decision.undo(), (COUNT - skip) as u64),
                        false => kept += u64::from(decision.is_allowed()),
                    }
                }
                kept
            })
        };
        [run(0), run(1)].map(|thread| thread.join().expect("no panic"))
    });
    // The permits last for each thread's first request.
    assert!(kept.iter().all(|kept| *kept > 0), "{kept:?}");
    let left = left(&policy, COUNT);
    assert_eq!(left[0], 500 - kept[0]);
    for (index, left) in left.iter().enumerate().skip(1) {
        assert_eq!(*left, 500 + 7 * index as u64 - kept[0] - kept[1], "{index}");
    }
}
