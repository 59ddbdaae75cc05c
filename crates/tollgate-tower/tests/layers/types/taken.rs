//! How many permits a request took, as functions of the program see it.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
use tollgate_policy::Policy;
use tollgate_tower::RateLimitLayer;
use tower::{Layer, ServiceExt, service_fn};

async fn page(_: Request<()>) -> Result<Response<String>, Infallible> {
    Ok(Response::new("page".into()))
}

/// Returns what [`Ended::taken`](tollgate_tower::Ended::taken) is for a request under this policy.
async fn taken(text: &str) -> Vec<u64> {
    let policy = Policy::from_toml(text).expect("a policy");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let all = Arc::clone(&seen);
    let layer = RateLimitLayer::policy(policy).answer_fact("tokens", move |ended| {
        all.lock().expect("one thread").push(ended.taken());
        Some(ended.taken())
    });
    let answer = layer
        .layer(service_fn(page))
        .oneshot(Request::new(()))
        .await;
    drop(answer.expect("an answer"));
    let mut seen = seen.lock().expect("one thread");
    std::mem::take(&mut *seen)
}

/// The rules of a policy may take different numbers. The largest is what the request cost.
#[tokio::test]
async fn under_a_policy_it_is_the_most_that_one_limit_took() {
    let tokens = "apply = 'all'\n\
                  [[rule]]\nname = 'tokens'\nlimit = '1000/h'\n\
                  cost = { default = 500, settle = 'tokens' }\n";
    let requests = "[[rule]]\nname = 'requests'\nlimit = ['9/h', 'concurrency 3']\n";
    let trial = "[[rule]]\nname = 'trial'\nlimit = '1000/h'\nshadow = true\n\
                 cost = { default = 700 }\n";
    assert_eq!(taken(tokens).await, [500]);
    assert_eq!(taken(&format!("{tokens}{requests}")).await, [500]);
    assert_eq!(taken(&format!("{tokens}{requests}{trial}")).await, [500]);
}

/// A number that is too large is the largest, and not none.
#[tokio::test]
async fn a_header_that_says_too_much_is_settled_as_the_most() {
    let limiter = Limiter::with_clock(
        TokenBucket::new(Quota::per_hour(1000)).expect("a quota"),
        ManualClock::new(),
    );
    let limiter = Arc::new(limiter);
    let layer = RateLimitLayer::shared(Arc::clone(&limiter))
        .cost(|_| 5)
        .max_cost(400);
    let layer = layer.settle(|ended| ended.header_number("x-tokens").unwrap_or(ended.taken()));
    let page = service_fn(async |_: Request<()>| {
        let answer = Response::builder().header("x-tokens", "18446744073709551616");
        answer.body(String::from("page"))
    });
    let answer = layer.layer(page).oneshot(Request::new(())).await;
    drop(answer.expect("an answer"));
    assert_eq!(limiter.available(), 600);
}
