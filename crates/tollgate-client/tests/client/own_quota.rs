//! The client's own quota.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tollgate::Quota;
use tollgate_client::{ClientLimitError, ClientLimitLayer};
use tower::{Layer, ServiceExt};

use crate::fleet::Random;
use crate::served::{Script, get};

const API: &str = "https://api.example.com/";

#[tokio::test(start_paused = true)]
async fn requests_go_at_the_rate_of_the_quota() {
    let script = Script::always(200, &[]);
    let layer = ClientLimitLayer::new()
        .quota(Quota::per_second(5000).burst(1))
        .unwrap();
    let client = layer.layer(script.service());
    let begun = Instant::now();
    let tasks: Vec<_> = (0..10_001)
        .map(|_| tokio::spawn(client.clone().oneshot(get(API))))
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    // Two seconds, 10 ms for the last answer, and a few for the timer's milliseconds.
    let range = Duration::from_millis(2_010)..Duration::from_millis(2_030);
    assert!(range.contains(&begun.elapsed()), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn each_attempt_counts() {
    let script = Script::always(503, &[]);
    let layer = ClientLimitLayer::new()
        .quota(Quota::per_second(1).burst(3))
        .unwrap();
    let client = layer.layer(script.service());
    let begun = Instant::now();
    client.clone().oneshot(get(API)).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(1));
    client.oneshot(get(API)).await.unwrap();
    assert_eq!(script.count(), 6);
    assert!(begun.elapsed() >= Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn requests_that_give_up_lose_no_permit() {
    let script = Script::always(200, &[]);
    let layer = ClientLimitLayer::new()
        .quota(Quota::per_second(1000).burst(1))
        .unwrap()
        .max_wait(Duration::from_secs(60));
    let client = layer.layer(script.service());
    let mut random = Random(7);
    let begun = Instant::now();
    let tasks: Vec<_> = (0..10_000)
        .map(|number| {
            // Several servers, so that several requests are the first of their group.
            let uri = format!("https://{}.example.com/", number % 5);
            let gives_up = random
                .draw()
                .is_multiple_of(2)
                .then(|| random.below(Duration::from_secs(10)));
            let (client, uri) = (client.clone(), uri);
            tokio::spawn(async move {
                let sent = client.oneshot(get(&uri));
                match gives_up {
                    Some(after) => timeout(after, sent).await.is_ok(),
                    None => sent.await.is_ok(),
                }
            })
        })
        .collect();
    let mut served = 0;
    for task in tasks {
        served += u64::from(task.await.unwrap());
    }
    // What was served took a permit, and so did requests that gave up while they were served, which
    // takes 10 ms.
    let sent = u64::try_from(script.count()).unwrap();
    assert!(served <= sent && sent < served + 200, "{served} of {sent}");
    assert!(served >= 5000, "{served}");
    let needed = Duration::from_millis(sent - 1);
    let last = *script.asked.lock().unwrap().last().unwrap() - begun;
    let range = needed..=needed + Duration::from_millis(5);
    assert!(range.contains(&last), "{last:?} for {sent} requests");
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_hopeless_is_refused_at_once() {
    let script = Script::always(200, &[]);
    let layer = ClientLimitLayer::new()
        .quota(Quota::per_second(1).burst(1))
        .unwrap()
        .max_wait(Duration::from_millis(2_500));
    let client = layer.layer(script.service());
    let begun = Instant::now();
    let tasks: Vec<_> = (0..10)
        .map(|_| tokio::spawn(client.clone().oneshot(get(API))))
        .collect();
    sleep(Duration::from_millis(1)).await;
    let at_once = tasks.iter().filter(|task| task.is_finished()).count();
    let mut failed = 0;
    for task in tasks {
        if let Err(error) = task.await.unwrap() {
            assert!(matches!(error, ClientLimitError::WaitTooLong { wait, .. } if !wait.is_zero()));
            failed += 1;
        }
    }
    assert_eq!((failed, script.count()), (7, 3)); // at 0, 1 and 2 seconds
    assert!(at_once >= 5, "{at_once}");
    assert!(begun.elapsed() <= Duration::from_millis(2_510));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_holds_its_requests_does_not_take_the_permits_of_others() {
    let held = Script::always(429, &[("retry-after", "20")]);
    let layer = ClientLimitLayer::new()
        .quota(Quota::per_second(10).burst(1))
        .unwrap();
    let client = layer.layer(held.service());
    tokio::spawn(client.clone().oneshot(get("https://held.example.com/")));
    sleep(Duration::from_secs(1)).await;
    for _ in 0..50 {
        tokio::spawn(client.clone().oneshot(get("https://held.example.com/")));
    }
    let other = Script::always(200, &[]);
    let layer = layer.layer(other.service());
    let begun = Instant::now();
    for _ in 0..11 {
        layer
            .clone()
            .oneshot(get("https://other.example.com/"))
            .await
            .unwrap();
    }
    assert!(
        begun.elapsed() <= Duration::from_millis(1_200),
        "{:?}",
        begun.elapsed()
    );
}
