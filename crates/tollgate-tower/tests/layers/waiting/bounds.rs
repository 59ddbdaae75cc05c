//! The bounds of time and number are exact, and a refusal comes at once.

use std::sync::Arc;
use std::time::Duration;

use tollgate::error::LimiterError;
use tollgate::{Concurrency, Keyed, Limiter, Quota, TokenBucket};
use tollgate_http::RequestFacts;
use tollgate_policy::{LivePolicy, Policy};
use tollgate_tower::{Admission, RateLimitLayer};

use crate::clock::{RuntimeClock, paused};
use crate::waiting::served::{Ended, Limited};

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn second() -> TokenBucket {
    TokenBucket::new(Quota::per_second(1)).unwrap()
}

/// A refusal that came with the first poll, at this time.
fn refused(status: u16, retry_after: Option<u64>, at: Duration) -> Ended {
    Ended {
        status,
        retry_after,
        at,
        polls: 1,
    }
}

/// The layer lets three wait, and each for up to ten seconds. One is served each second.
async fn three_wait<A>(clock: RuntimeClock, layer: RateLimitLayer<A>, next: Option<u64>)
where
    A: Admission<Grant: Send, Pending: Send> + Clone + Send + Sync + 'static,
{
    let limited = Limited::new(clock, &layer);
    assert_eq!(limited.call(0, Duration::ZERO).await.status, 200);
    let waiting: Vec<_> = (1..4)
        .map(|number| limited.spawn(number, Duration::ZERO))
        .collect();
    tokio::task::yield_now().await;
    for number in 4..100 {
        let ended = limited.call(number, Duration::ZERO).await;
        assert_eq!(ended, refused(429, next, Duration::ZERO), "{number}");
    }
    // One place is free when the first one is served.
    tokio::time::sleep(Duration::from_millis(1001)).await;
    let late = limited.spawn(100, Duration::ZERO);
    tokio::task::yield_now().await;
    assert_eq!(limited.call(101, Duration::ZERO).await.status, 429);
    for task in waiting {
        assert_eq!(task.await.unwrap().status, 200);
    }
    assert_eq!(late.await.unwrap().status, 200);
    let served: Vec<_> = limited
        .served()
        .iter()
        .map(|(_, at)| at.as_secs())
        .collect();
    assert_eq!(served, [0, 1, 2, 3, 4]);
}

#[test]
fn the_fourth_that_would_wait_is_refused_at_once() {
    paused().block_on(async {
        let clock = RuntimeClock::new();
        let limiter = Limiter::with_clock(second(), clock);
        let layer = RateLimitLayer::shared(limiter).wait(secs(10), 3).unwrap();
        // Three are in line before it.
        three_wait(clock, layer, Some(4)).await;
    });
    paused().block_on(async {
        let clock = RuntimeClock::new();
        let table = Keyed::with_clock(second(), 9, clock).unwrap();
        let key = |facts: &RequestFacts<'_>| facts.headers().get("x-key").cloned();
        let layer = RateLimitLayer::by_key(table, key)
            .wait(secs(10), 3)
            .unwrap();
        three_wait(clock, layer, Some(4)).await;
    });
}

fn policy(text: &str, clock: RuntimeClock) -> LivePolicy<RuntimeClock> {
    LivePolicy::new(Policy::builder().clock(clock).build_toml(text).unwrap())
}

#[test]
fn a_policy_lets_three_wait() {
    paused().block_on(async {
        let clock = RuntimeClock::new();
        let live = policy("[[rule]]\nname = 'a'\nlimit = '1/s'", clock);
        let layer = RateLimitLayer::policy(live).wait(secs(10), 3).unwrap();
        // They have not reserved anything: a policy is asked again.
        three_wait(clock, layer, Some(1)).await;
    });
}

/// The third in line would wait for three seconds.
#[test]
fn a_wait_as_long_as_the_bound_is_allowed_and_a_longer_one_is_refused_at_once() {
    for (bound, waits) in [(secs(3), true), (secs(3) - Duration::from_nanos(1), false)] {
        paused().block_on(async {
            let clock = RuntimeClock::new();
            let limiter = Limiter::with_clock(second(), clock);
            let layer = RateLimitLayer::shared(limiter).wait(bound, 100).unwrap();
            let limited = Limited::new(clock, &layer);
            let _line: Vec<_> = (0..3).map(|number| limited.call(number, secs(0))).collect();
            let ended = limited.call(3, secs(0)).await;
            match waits {
                true => assert_eq!((ended.status, ended.at), (200, secs(3))),
                false => assert_eq!(ended, refused(429, Some(3), secs(0))),
            }
        });
    }
}

/// The client that comes back at `Retry-After` is granted its request.
#[test]
fn a_refusal_says_when_to_come_back() {
    paused().block_on(async {
        let clock = RuntimeClock::new();
        let limiter = Limiter::with_clock(second(), clock);
        let layer = RateLimitLayer::shared(limiter)
            .wait(Duration::from_millis(2500), 100)
            .unwrap();
        let limited = Limited::new(clock, &layer);
        let line: Vec<_> = (0..3)
            .map(|number| limited.spawn(number, secs(0)))
            .collect();
        tokio::task::yield_now().await;
        let denied = limited.call(3, secs(0)).await;
        assert_eq!(denied, refused(429, Some(3), secs(0)));
        tokio::time::sleep(secs(3)).await;
        let again = limited.call(3, secs(0)).await;
        assert_eq!((again.status, again.at), (200, secs(3)));
        for task in line {
            assert_eq!(task.await.unwrap().status, 200);
        }
    });
}

#[test]
fn those_that_wait_for_a_place() {
    let places = || Concurrency::new(2).unwrap();
    three_wait_for_a_place(places(), 3);
    // The bound of the places holds too, and its refusal is the same.
    three_wait_for_a_place(places().max_waiting_permits(3), 100);
}

fn three_wait_for_a_place(places: Concurrency, requests: u64) {
    paused().block_on(async {
        let clock = RuntimeClock::new();
        let places = Arc::new(places);
        let layer = RateLimitLayer::concurrency(Arc::clone(&places))
            .wait(secs(3), requests)
            .unwrap();
        let limited = Limited::new(clock, &layer);
        let spawn = |number, holds| limited.spawn(number, secs(holds));
        let inside = [spawn(0, 2), spawn(1, 100)];
        let waiting = [spawn(2, 100), spawn(3, 1), spawn(4, 1)];
        tokio::task::yield_now().await;
        assert_eq!((places.inside(), places.waiting()), (2, 3));
        for number in 5..100 {
            let ended = limited.call(number, secs(0)).await;
            assert_eq!(ended, refused(503, None, secs(0)));
        }
        let [first, second, third] = waiting;
        // The others waited until their time was over, and no longer.
        let waited = |at| Ended {
            polls: 2,
            ..refused(503, None, at)
        };
        assert_eq!(second.await.unwrap(), waited(secs(3)));
        assert_eq!(third.await.unwrap(), waited(secs(3)));
        assert_eq!((places.inside(), places.waiting()), (2, 0));
        let first = first.await.unwrap();
        assert_eq!((first.status, first.at), (200, secs(2)));
        for task in inside {
            assert_eq!(task.await.unwrap().status, 200);
        }
        assert_eq!((places.inside(), places.waiting()), (0, 0));
    });
}

/// A policy asks again at each denial, and stops at the bound.
#[test]
fn a_policy_that_waits() {
    paused().block_on(async {
        let clock = RuntimeClock::new();
        let text = "apply = 'all'\n[[rule]]\nname = 'a'\nlimit = '1/s'\n\
                    [[rule]]\nname = 'b'\nlimit = '2/9s'";
        let layer = RateLimitLayer::policy(policy(text, clock))
            .wait(secs(5), 9)
            .unwrap();
        let limited = Limited::new(clock, &layer);
        assert_eq!(limited.call(0, secs(0)).await.status, 200);
        // The rule `a` lets it wait for a second.
        let ended = limited.call(1, secs(0)).await;
        assert_eq!((ended.status, ended.at, ended.polls), (200, secs(1), 2));
        // The rule `b` would let it wait until second 4.5.
        let ended = limited.call(2, secs(0)).await;
        assert_eq!((ended.status, ended.at), (200, Duration::from_millis(4500)));
        // Two come at once. Both ask again when the first permit is there, and one gets it. The
        // other one's time is over before the second permit.
        let both = [limited.spawn(3, secs(0)), limited.spawn(4, secs(0))];
        let mut ended = Vec::new();
        for task in both {
            ended.push(task.await.unwrap());
        }
        assert_eq!((ended[0].status, ended[0].at), (200, secs(9)));
        assert_eq!((ended[1].status, ended[1].at), (429, secs(9)));
        assert_eq!(ended[1].retry_after, Some(5));
    });
}

/// A key that is banned is refused, and does not wait until its ban is over.
#[test]
fn a_banned_key_does_not_wait() {
    paused().block_on(async {
        let clock = RuntimeClock::new();
        let table = Arc::new(Keyed::with_clock(second(), 9, clock).unwrap());
        let key = |_: &RequestFacts<'_>| Some("a");
        let layer = RateLimitLayer::by_key(Arc::clone(&table), key)
            .wait(secs(60), 9)
            .unwrap();
        let limited = Limited::new(clock, &layer);
        table.key("a").ban_for(secs(5)).unwrap();
        let ended = limited.call(0, secs(0)).await;
        assert_eq!((ended.status, ended.polls, ended.at), (429, 1, secs(0)));

        let text = "[[rule]]\nname = 'a'\nlimit = '1/s'\nkey = 'header:x-key'\n\
                    ban = { after = 1, for = '5s' }";
        let layer = RateLimitLayer::policy(policy(text, clock))
            .wait(Duration::ZERO, 9)
            .unwrap();
        let limited = Limited::new(clock, &layer);
        let statuses = [200, 429, 429];
        for status in statuses {
            let ended = limited.call(0, secs(0)).await;
            assert_eq!((ended.status, ended.polls), (status, 1));
        }
    });
}

#[test]
fn the_number_that_may_wait_has_a_range() {
    let layer = || RateLimitLayer::shared(Limiter::token_bucket(Quota::per_second(1)).unwrap());
    assert_eq!(
        layer().wait(secs(1), 0).unwrap_err(),
        LimiterError::ZeroConcurrency
    );
    assert!(layer().wait(secs(1), u64::MAX).is_err());
    assert!(layer().wait(Duration::ZERO, Concurrency::MAX_LIMIT).is_ok());
}
