//! Groups that have heard nothing for longer than `max_hold`.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use tokio::time::sleep;
use tollgate_client::ClientLimitLayer;
use tower::{Layer, Service, ServiceExt, service_fn};

/// Answers each request after 50 ms with this status and these fields, and counts them.
fn server(
    status: u16,
    fields: &'static [(&'static str, &'static str)],
    count: &Arc<Mutex<usize>>,
) -> impl Service<Request<()>, Response = Response<()>, Error = Infallible, Future: Send>
+ Clone
+ Send
+ 'static {
    let count = Arc::clone(count);
    service_fn(move |_: Request<()>| {
        *count.lock().unwrap() += 1;
        async move {
            sleep(Duration::from_millis(50)).await;
            let mut answer = Response::builder().status(status);
            for (name, value) in fields {
                answer = answer.header(*name, *value);
            }
            Ok(answer.body(()).unwrap())
        }
    })
}

/// Sends one request, and 100 after this time. Returns how many went before the first answer.
async fn burst_after(
    idle: Duration,
    status: u16,
    fields: &'static [(&'static str, &'static str)],
) -> usize {
    // Time begins before the test.
    sleep(Duration::from_secs(60)).await;
    let count = Arc::default();
    let layer = ClientLimitLayer::new().max_attempts(1);
    let client = layer.layer(server(status, fields, &count));
    let get = || Request::get("https://a.example.com/").body(()).unwrap();
    let _ = client.clone().oneshot(get()).await;
    sleep(idle).await;
    for _ in 0..100 {
        tokio::spawn(client.clone().oneshot(get()));
    }
    sleep(Duration::from_millis(40)).await;
    *count.lock().unwrap() - 1
}

#[tokio::test(start_paused = true)]
async fn a_group_that_was_idle_for_longer_than_max_hold_keeps_its_pace() {
    let fields = &[
        ("ratelimit-policy", r#""a";q=100;w=100"#),
        ("ratelimit", r#""a";r=50;t=50"#),
    ];
    for idle in [60, 299, 301, 3600] {
        let went = burst_after(Duration::from_secs(idle), 200, fields).await;
        assert!((1..=5).contains(&went), "{went} went after {idle} s");
    }
}

#[tokio::test(start_paused = true)]
async fn one_request_tries_after_max_hold() {
    let fields = &[("retry-after", "86400")];
    let went = burst_after(Duration::from_secs(299), 429, fields).await;
    assert_eq!(went, 0);
    let went = burst_after(Duration::from_secs(301), 429, fields).await;
    assert_eq!(went, 1);
}
