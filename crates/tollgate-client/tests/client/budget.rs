//! What the retry budget counts.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use tokio::time::{Instant, advance, sleep};
use tollgate_client::{ClientLimitLayer, RetryBudget};
use tower::retry::budget::{Budget, TpsBudget};
use tower::{Layer, ServiceExt, service_fn};

use crate::fleet::Random;
use crate::served::{Script, get};

#[tokio::test(start_paused = true)]
async fn a_request_that_was_never_sent_pays_for_no_retry() {
    // Time begins before the test.
    sleep(Duration::from_secs(60)).await;
    let [held, down] = [(); 2].map(|()| Arc::new(Mutex::new(0_usize)));
    let counts = [Arc::clone(&held), Arc::clone(&down)];
    let servers = service_fn(move |request: Request<()>| {
        let answer = Response::builder();
        let answer = match request.uri().host() {
            Some("held.example.com") => {
                *counts[0].lock().unwrap() += 1;
                answer.status(429).header("retry-after", "3600")
            }
            _ => {
                *counts[1].lock().unwrap() += 1;
                answer.status(503)
            }
        };
        async move { Ok::<_, Infallible>(answer.body(()).unwrap()) }
    });
    let client = ClientLimitLayer::new()
        .budget(RetryBudget::new(20, 0).unwrap())
        .layer(servers);
    for number in 0..10_000 {
        let host = match number % 20 {
            0 => "down",
            _ => "held", // These give up at once, since the first one was refused.
        };
        let request = Request::get(format!("https://{host}.example.com/")).body(());
        tokio::spawn(client.clone().oneshot(request.unwrap()));
        sleep(Duration::from_millis(1)).await;
    }
    sleep(Duration::from_secs(5)).await;
    assert!((1..=4).contains(&*held.lock().unwrap()), "{held:?}");
    let retries = *down.lock().unwrap() - 500;
    // A fifth of the 500 requests and of the few that were held.
    assert!((95..=101).contains(&retries), "{retries} retries");
}

#[tokio::test(start_paused = true)]
async fn after_idle_time_retries_are_a_fifth_of_the_requests_and_ten() {
    let down = Script::always(503, &[]);
    let client = ClientLimitLayer::new().layer(down.service());
    sleep(Duration::from_secs(60)).await;
    for _ in 0..100 {
        tokio::spawn(client.clone().oneshot(get("https://api.example.com/")));
    }
    sleep(Duration::from_millis(900)).await;
    assert_eq!(down.count(), 100 + 20 + 10);
}

#[tokio::test(start_paused = true)]
async fn no_second_has_more_than_ten_retries_that_no_request_paid() {
    let budget = RetryBudget::new(0, 10).unwrap();
    let mut random = Random(1);
    let mut made = Vec::new();
    for _ in 0..2000 {
        advance(random.below(Duration::from_millis(40))).await;
        made.extend(budget.withdraw().then(Instant::now));
    }
    let eleven = made.windows(11).map(|made| made[10] - made[0]);
    assert!(eleven.min() >= Some(Duration::from_secs(1)));
    // Almost all of them are made.
    assert!(made.len() > 380, "{} retries in 40 seconds", made.len());
}

#[tokio::test(start_paused = true)]
async fn what_requests_paid_is_not_saved_for_long() {
    let budget = RetryBudget::new(20, 0).unwrap();
    for _ in 0..1000 {
        budget.deposit();
    }
    advance(Duration::from_secs(11)).await;
    assert!((0..50).all(|_| budget.withdraw()));
    advance(Duration::from_secs(9)).await;
    assert!(!budget.withdraw());
}

#[tokio::test(start_paused = true)]
async fn any_budget_of_tower_bounds_the_retries() {
    let down = Script::always(503, &[]);
    // A reserve of 5, and no part of the requests.
    let budget = TpsBudget::new(Duration::from_secs(1), 5, 0.0);
    let client = ClientLimitLayer::new().budget(budget).layer(down.service());
    for _ in 0..100 {
        tokio::spawn(client.clone().oneshot(get("https://api.example.com/")));
    }
    sleep(Duration::from_millis(900)).await;
    assert_eq!(down.count(), 100 + 5);
}
