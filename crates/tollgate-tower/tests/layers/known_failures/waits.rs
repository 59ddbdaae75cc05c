//! Estimates, waiters and places that leak, and functions that are called too often.

use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use tollgate::{Concurrency, Keyed, Limiter, ManualClock, Quota, Tick};
use tollgate_http::RequestFacts;
use tollgate_tower::{CountedRequests, RateLimitLayer};
use tower::{Layer, ServiceExt};

use crate::known_failures::page::{Page, bucket, from, send};

/// An estimate that was settled later leaked: 663 tokens went through a limit of 100 (#18730).
#[tokio::test]
async fn litellm_no_more_tokens_than_the_limit() {
    let limiter = Limiter::with_clock(bucket(Quota::per_hour(100)), ManualClock::new());
    let limiter = Arc::new(limiter);
    let tokens = |facts: &RequestFacts<'_>| facts.header_number("x-estimate");
    let layer = RateLimitLayer::shared(Arc::clone(&limiter))
        .cost(move |facts| tokens(facts).unwrap_or(10))
        .settle(|ended| ended.header_number("x-tokens").unwrap_or(ended.taken()));
    let service = layer.layer(Page);
    let mut used = 0;
    // All are sent before one ends. Each is estimated at 10 tokens, and uses 7.
    let mut open = Vec::new();
    for _ in 0..100 {
        let request = from("192.0.2.1").header("x-tokens", "7").body(()).unwrap();
        let answer = service.clone().oneshot(request).await.unwrap();
        used += if answer.status() == 200 { 7 } else { 0 };
        open.push(answer);
    }
    assert_eq!((used, limiter.available()), (70, 0));
    drop(open);
    assert_eq!(limiter.available(), 30);
    // One that uses more than its estimate leaves a debt, and the next ones are denied for it.
    let request = from("192.0.2.1")
        .header("x-estimate", "20")
        .header("x-tokens", "35");
    assert_eq!(send(&service, request).await.0, 200);
    assert_eq!(send(&service, from("192.0.2.1")).await, (429, Some(540)));
}

/// A waiter that was dropped stored an old state, and the bucket never filled again.
#[tokio::test(start_paused = true)]
async fn leaky_bucket_a_waiter_that_is_dropped_stops_no_other() {
    let clock = tollgate::clock::TokioClock;
    let limiter = Limiter::with_clock(bucket(Quota::per_second(10).burst(1)), clock);
    let layer = RateLimitLayer::shared(limiter)
        .wait(Duration::from_secs(60), 1000)
        .unwrap();
    let service = layer.layer(Page);
    for round in 0..20 {
        let mut waiting = Vec::new();
        for _ in 0..10 {
            let request = from("192.0.2.1").body(()).unwrap();
            let mut answer = Box::pin(service.clone().oneshot(request));
            let mut context = Context::from_waker(Waker::noop());
            let _ = answer.as_mut().poll(&mut context);
            waiting.push(answer);
        }
        // From the first to the last, and from the last to the first.
        match round % 2 {
            0 => drop(waiting),
            _ => waiting.into_iter().rev().for_each(drop),
        }
    }
    // Those that were dropped from the first on leave gaps, which are over after some time.
    tokio::time::sleep(Duration::from_secs(60)).await;
    let start = tokio::time::Instant::now();
    for number in 0..20 {
        assert_eq!(send(&service, from("192.0.2.1")).await.0, 200);
        assert_eq!(start.elapsed().as_millis() / 100, number);
    }
}

/// A slot of a concurrency was held for ever by a request that was dropped.
#[tokio::test]
async fn shenyu_a_request_that_is_dropped_leaves_its_place() {
    let places = Arc::new(Concurrency::new(2).unwrap());
    let service = RateLimitLayer::concurrency(Arc::clone(&places)).layer(Page);
    for _ in 0..100 {
        let request = || from("192.0.2.1").body(()).unwrap();
        let (one, two) = (
            service.clone().oneshot(request()),
            service.clone().oneshot(request()),
        );
        let answers = (one.await.unwrap(), two.await.unwrap());
        assert_eq!(send(&service, from("192.0.2.1")).await, (503, None));
        drop(answers);
        assert_eq!(places.inside(), 0);
    }
}

/// Middleware was called again for each attempt to change the state, so that its counts were too
/// high. Functions of the program are called once for each decision.
#[tokio::test]
async fn governor_functions_are_called_once() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let note = |what: &'static str| {
        let seen = Arc::clone(&seen);
        move || seen.lock().unwrap().push(what)
    };
    let (key, cost, failure, settle) = (note("key"), note("cost"), note("failure"), note("settle"));
    let table = Keyed::with_clock(bucket(Quota::per_hour(9)), 10, ManualClock::at(Tick::ZERO));
    let layer = RateLimitLayer::by_key(table.unwrap(), move |_: &RequestFacts<'_>| {
        key();
        Some(1)
    });
    let layer = layer.cost(move |_| {
        cost();
        1
    });
    let layer = layer.count(CountedRequests::Failures).failure_if(move |_| {
        failure();
        true
    });
    let layer = layer.settle(move |ended| {
        settle();
        ended.taken()
    });
    assert_eq!(send(&layer.layer(Page), from("192.0.2.1")).await.0, 200);
    let seen = seen.lock().unwrap();
    assert_eq!(*seen, ["key", "cost", "failure", "settle"]);
}
