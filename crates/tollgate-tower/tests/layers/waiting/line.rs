//! A thousand requests that wait are served in the order in which they came, and exactly when they
//! are due. Each costs one timer.

use std::time::Duration;

use tollgate::{Concurrency, Keyed, LeakyBucket, Limiter, Quota, TokenBucket};
use tollgate_http::RequestFacts;
use tollgate_tower::{Admission, RateLimitLayer};

use crate::clock::{RuntimeClock, paused};
use crate::waiting::served::Limited;

const REQUESTS: usize = 1000;
const INTERVAL: Duration = Duration::from_millis(10);

fn quota() -> Quota {
    Quota::per_second(100).burst(1)
}

/// Sends a thousand requests at once, to a limit of one every 10 ms.
async fn in_order<A>(clock: RuntimeClock, layer: RateLimitLayer<A>)
where
    A: Admission<Grant: Send, Pending: Send> + Clone + Send + Sync + 'static,
{
    let limited = Limited::new(clock, &layer);
    let tasks: Vec<_> = (0..REQUESTS)
        .map(|number| limited.spawn(number, Duration::ZERO))
        .collect();
    for (number, task) in tasks.into_iter().enumerate() {
        let ended = task.await.unwrap();
        let due = INTERVAL * u32::try_from(number).unwrap();
        assert_eq!((ended.status, ended.at), (200, due), "{number}");
        // When it is sent, and when it is due.
        assert_eq!(ended.polls, if number == 0 { 1 } else { 2 }, "{number}");
    }
    let served = limited.served();
    assert!(served.iter().map(|(number, _)| *number).eq(0..REQUESTS));
}

const LONG: Duration = Duration::from_secs(3600);

#[test]
fn of_one_limiter() {
    paused().block_on(async {
        let clock = RuntimeClock::new();
        let limiter = Limiter::with_clock(TokenBucket::new(quota()).unwrap(), clock);
        in_order(
            clock,
            RateLimitLayer::shared(limiter).wait(LONG, 1000).unwrap(),
        )
        .await;
    });
}

#[test]
fn of_one_key() {
    paused().block_on(async {
        let clock = RuntimeClock::new();
        let bucket = TokenBucket::new(quota()).unwrap();
        let table = Keyed::with_clock(bucket, 100, clock).unwrap();
        let key = |facts: &RequestFacts<'_>| facts.headers().get("x-key").cloned();
        in_order(
            clock,
            RateLimitLayer::by_key(table, key).wait(LONG, 1000).unwrap(),
        )
        .await;
    });
}

/// A queue of the limiter needs no wait of the layer's.
#[test]
fn of_a_queue() {
    paused().block_on(async {
        let clock = RuntimeClock::new();
        let queue = LeakyBucket::queue(quota().burst(1000)).unwrap();
        let limiter = Limiter::with_clock(queue, clock);
        in_order(clock, RateLimitLayer::shared(limiter)).await;
    });
}

/// A wait without an end is a wait.
#[test]
fn without_an_end() {
    paused().block_on(async {
        let clock = RuntimeClock::new();
        let limiter = Limiter::with_clock(TokenBucket::new(quota()).unwrap(), clock);
        let layer = RateLimitLayer::shared(limiter)
            .wait(Duration::MAX, 1000)
            .unwrap();
        in_order(clock, layer).await;
        let places = RateLimitLayer::concurrency(Concurrency::new(1).unwrap());
        let limited = Limited::new(clock, &places.wait(Duration::MAX, 1000).unwrap());
        let (first, second) = (limited.spawn(0, LONG), limited.spawn(1, LONG));
        assert_eq!(second.await.unwrap().at - first.await.unwrap().at, LONG);
    });
}

/// Those that wait for a place get it in order, each as soon as the one before leaves.
#[test]
fn of_places() {
    paused().block_on(async {
        let clock = RuntimeClock::new();
        let places = RateLimitLayer::concurrency(Concurrency::new(1).unwrap());
        let limited = Limited::new(clock, &places.wait(LONG, 1000).unwrap());
        let spawn = |number| limited.spawn(number, INTERVAL);
        let tasks: Vec<_> = (0..REQUESTS).map(spawn).collect();
        for (number, task) in tasks.into_iter().enumerate() {
            let ended = task.await.unwrap();
            let due = INTERVAL * u32::try_from(number).unwrap();
            assert_eq!((ended.status, ended.at), (200, due), "{number}");
            assert_eq!(ended.polls, if number == 0 { 1 } else { 2 }, "{number}");
        }
    });
}

/// Requests that are dropped at the end of the line leave no gap. One in the middle leaves its own:
/// those behind it already know when they are due.
#[test]
fn with_gaps_only_in_the_middle() {
    paused().block_on(async {
        let clock = RuntimeClock::new();
        let limiter = Limiter::with_clock(TokenBucket::new(quota()).unwrap(), clock);
        let layer = RateLimitLayer::shared(limiter).wait(LONG, 1000).unwrap();
        let limited = Limited::new(clock, &layer);
        let mut calls: Vec<_> = (0..10)
            .map(|it| Some(limited.call(it, Duration::ZERO)))
            .collect();
        for dropped in [9, 8, 7, 3] {
            calls[dropped] = None;
        }
        calls.extend((10..13).map(|it| Some(limited.call(it, Duration::ZERO))));
        for call in calls.into_iter().flatten() {
            assert_eq!(call.await.status, 200);
        }
        let served = [0, 1, 2, 4, 5, 6, 10, 11, 12].into_iter();
        let due = [0, 1, 2, 4, 5, 6, 7, 8, 9].map(|intervals| INTERVAL * intervals);
        assert_eq!(limited.served(), served.zip(due).collect::<Vec<_>>());
    });
}

/// Others are served at once while requests of another key wait.
#[test]
fn no_key_waits_for_another() {
    paused().block_on(async {
        let clock = RuntimeClock::new();
        let bucket = TokenBucket::new(quota()).unwrap();
        let table = Keyed::with_clock(bucket, 100, clock).unwrap();
        let key = |facts: &RequestFacts<'_>| facts.extension::<usize>().map(|number| number % 3);
        let limited = Limited::new(
            clock,
            &RateLimitLayer::by_key(table, key).wait(LONG, 9).unwrap(),
        );
        let tasks: Vec<_> = (0..9)
            .map(|number| limited.spawn(number, Duration::ZERO))
            .collect();
        for (number, task) in tasks.into_iter().enumerate() {
            let due = INTERVAL * u32::try_from(number / 3).unwrap();
            assert_eq!(task.await.unwrap().at, due);
        }
    });
}
