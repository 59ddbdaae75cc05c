//! What is sent again, when, and how often.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use http::{Method, Request, Response};
use tokio::time::{Instant, sleep};
use tollgate_client::{ClientLimitError, ClientLimitLayer, NeverCopy, RetryBudget};
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::served::{Script, answer, get};

const API: &str = "https://api.example.com/";

/// A service of which each call fails.
fn broken(
    calls: &Arc<Mutex<usize>>,
) -> impl Service<Request<()>, Response = Response<()>, Error = io::Error, Future: Send>
+ Clone
+ Send
+ 'static {
    let calls = Arc::clone(calls);
    service_fn(move |_: Request<()>| {
        *calls.lock().unwrap() += 1;
        async { Err(io::Error::from(io::ErrorKind::ConnectionRefused)) }
    })
}

#[tokio::test(start_paused = true)]
async fn retries_stay_within_the_budget_while_a_server_is_down() {
    let down = Script::always(503, &[]);
    let calls = Arc::new(Mutex::new(0));
    let layer = || ClientLimitLayer::new().budget(RetryBudget::new(20, 10).unwrap());
    let (answers, errors) = (layer().layer(down.service()), layer().layer(broken(&calls)));
    // 100 requests a second for 20 seconds: far more retries are wanted than there are.
    for _ in 0..2000 {
        tokio::spawn(answers.clone().oneshot(get(API)));
        tokio::spawn(errors.clone().oneshot(get(API)));
        sleep(Duration::from_millis(10)).await;
    }
    // 10 in each second, also in the one that has just begun, and 20 % of the requests. The
    // retries of the last requests may not have been made yet.
    let most = 10 + 10 * 20 + 2000 / 5;
    for sent in [down.count(), *calls.lock().unwrap()] {
        let retries = sent - 2000;
        assert!(
            (most - 20..=most).contains(&retries),
            "{retries} retries, and {most} allowed"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_is_sent_three_times_unless_set_otherwise() {
    for (layer, times) in [
        (ClientLimitLayer::new(), 3),
        (ClientLimitLayer::new().max_attempts(1), 1),
        (ClientLimitLayer::new().max_attempts(5), 5),
    ] {
        let down = Script::always(503, &[]);
        let answer = layer.layer(down.service()).oneshot(get(API)).await.unwrap();
        assert_eq!((answer.status().as_u16(), down.count()), (503, times));
    }
}

#[tokio::test(start_paused = true)]
async fn waits_between_attempts_double() {
    let down = Script::always(503, &[]);
    let client = ClientLimitLayer::new()
        .max_attempts(6)
        .layer(down.service());
    client.oneshot(get(API)).await.unwrap();
    let asked = down.asked.lock().unwrap();
    for (attempt, pair) in (0..).zip(asked.windows(2)) {
        let most = Duration::from_millis(100 << attempt);
        let wait = pair[1] - pair[0];
        // Each answer takes 10 ms, and the timer rounds up to a millisecond.
        let range = most / 2 + Duration::from_millis(10)..=most + Duration::from_millis(12);
        assert!(range.contains(&wait), "{wait:?} after attempt {attempt}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_requests_that_a_server_may_get_twice_are_sent_again_after_a_failure() {
    let post = || Request::post(API).body(()).unwrap();
    let keyed = || {
        Request::post(API)
            .header("idempotency-key", "7")
            .body(())
            .unwrap()
    };
    let plain = ClientLimitLayer::new;
    let opted = || ClientLimitLayer::new().retry_method(Method::POST);
    let later: &[_] = &[("retry-after", "1")];
    for (layer, request, fields, times) in [
        (plain(), get(API), &[] as &[_], 3),
        (plain(), get(API), later, 3),
        (plain(), post(), &[], 1),
        // The server may have begun with it.
        (plain(), post(), later, 1),
        (plain(), keyed(), later, 3),
        (opted(), post(), later, 3),
    ] {
        let down = Script::always(503, fields);
        let calls = Arc::new(Mutex::new(0));
        layer
            .layer(down.service())
            .oneshot(request.clone())
            .await
            .unwrap();
        let error = layer
            .layer(broken(&calls))
            .oneshot(request)
            .await
            .unwrap_err();
        assert!(matches!(error, ClientLimitError::Inner(_)));
        assert_eq!((down.count(), *calls.lock().unwrap()), (times, times));
    }
}

#[tokio::test(start_paused = true)]
async fn requests_that_a_server_refused_are_sent_again_whatever_their_method() {
    for (status, fields) in [(429, &[("retry-after", "1")] as &[_]), (429, &[])] {
        let script = Script::new(move |before| match before {
            0 => answer(status, fields),
            _ => answer(200, &[]),
        });
        let post = Request::post(API).body(()).unwrap();
        let sent = ClientLimitLayer::new()
            .layer(script.service())
            .oneshot(post);
        assert_eq!(
            (sent.await.unwrap().status(), script.count()),
            (200.try_into().unwrap(), 2)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn other_answers_are_not_sent_again() {
    for status in [200, 301, 400, 404, 500, 502, 504] {
        let script = Script::always(status, &[("retry-after", "1")]);
        let client = ClientLimitLayer::new().layer(script.service());
        assert_eq!(client.oneshot(get(API)).await.unwrap().status(), status);
        assert_eq!(script.count(), 1, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_comes_back_when_the_server_says() {
    let now = SystemTime::now();
    let (date, later) = (
        httpdate::fmt_http_date(now),
        httpdate::fmt_http_date(now + Duration::from_secs(7)),
    );
    for fields in [
        vec![("retry-after".to_owned(), "7".to_owned())],
        vec![("date".to_owned(), date), ("retry-after".to_owned(), later)],
        vec![
            ("ratelimit-policy".to_owned(), r#""a";q=5;w=10"#.to_owned()),
            ("ratelimit".to_owned(), r#""a";r=0;t=7"#.to_owned()),
        ],
    ] {
        let script = Script::new(move |before| {
            let fields: Vec<_> = fields.iter().map(|(k, v)| (&**k, &**v)).collect();
            answer(if before == 0 { 429 } else { 200 }, &fields)
        });
        let sent = ClientLimitLayer::new()
            .layer(script.service())
            .oneshot(get(API));
        assert_eq!(sent.await.unwrap().status(), 200);
        let asked = script.asked.lock().unwrap();
        let wait = asked[1] - asked[0];
        // At random up to a quarter and half a second later, or within the interval of the limit.
        assert!(wait >= Duration::from_secs(7), "{wait:?}");
        assert!(wait <= Duration::from_secs(30), "{wait:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_too_long_gives_the_answer_back_at_once() {
    let script = Script::always(429, &[("retry-after", "1000000")]);
    let client = ClientLimitLayer::new().layer(script.service());
    let begun = Instant::now();
    let answer = client.clone().oneshot(get(API)).await.unwrap();
    assert_eq!((answer.status().as_u16(), script.count()), (429, 1));
    let error = client.clone().oneshot(get(API)).await.unwrap_err();
    assert!(
        matches!(error, ClientLimitError::WaitTooLong { wait, max_wait }
        if wait > max_wait && max_wait == Duration::from_secs(30))
    );
    assert!(begun.elapsed() < Duration::from_millis(20));

    // Other servers are not held.
    let other = get("https://other.example.com/");
    client.oneshot(other).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_few_requests_try_again_after_max_hold() {
    let refused: &[_] = &[
        ("retry-after", "1000000"),
        ("ratelimit-policy", r#""a";q=100;w=86400"#),
        ("ratelimit", r#""a";r=0;t=86400"#),
    ];
    let granted: &[_] = &[
        ("ratelimit-policy", r#""a";q=100;w=86400"#),
        ("ratelimit", r#""a";r=99;t=864"#),
    ];
    for (fields, granted) in [(&refused[..1], &[] as &[_]), (refused, granted)] {
        let fields = fields.to_vec();
        let begun = Instant::now();
        let script = Script::new(move |_| match begun.elapsed().as_secs() {
            0..100 => answer(429, &fields),
            _ => answer(200, granted),
        });
        let layer = ClientLimitLayer::new().max_hold(Duration::from_secs(60));
        let client = layer.layer(script.service());
        client.clone().oneshot(get(API)).await.unwrap();
        sleep(Duration::from_secs(59)).await;
        let tasks: Vec<_> = (0..50)
            .map(|_| tokio::spawn(client.clone().oneshot(get(API))))
            .collect();
        sleep(Duration::from_millis(990)).await;
        assert_eq!(script.count(), 1);
        sleep(Duration::from_millis(20)).await;
        assert!((2..=5).contains(&script.count())); // a few try again, and are refused
        for task in tasks {
            _ = task.await.unwrap();
        }
        sleep(Duration::from_secs(100)).await;
        // The server has changed its mind, so it no longer holds anything.
        let begun = Instant::now();
        for _ in 0..3 {
            let answer = client.clone().oneshot(get(API)).await.unwrap();
            assert_eq!(answer.status(), 200);
        }
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "{:?}",
            begun.elapsed()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn clients_that_are_refused_together_come_back_apart() {
    for fields in [
        &[("retry-after", "2")] as &[_],
        &[
            ("retry-after", "2"),
            ("ratelimit-policy", r#""a";q=100;w=1"#),
            ("ratelimit", r#""a";r=0;t=2"#),
        ],
    ] {
        let script = Script::new(move |before| match before {
            0..8 => answer(429, fields),
            _ => answer(200, &[]),
        });
        let clients = (0..8).map(|_| {
            let client = ClientLimitLayer::new().layer(script.service());
            tokio::spawn(client.oneshot(get(API)))
        });
        for client in clients.collect::<Vec<_>>() {
            client.await.unwrap().unwrap();
        }
        let asked = script.asked.lock().unwrap();
        let mut back: Vec<_> = asked[8..]
            .iter()
            .map(|at| at.duration_since(asked[0]))
            .collect();
        assert!(back[0] >= Duration::from_secs(2));
        back.dedup();
        assert!(back.len() >= 6, "{back:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_not_copied_is_sent_once() {
    struct Stream;
    let calls = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&calls);
    let service = service_fn(move |_: Request<Stream>| {
        *counted.lock().unwrap() += 1;
        async { Ok::<_, Infallible>(answer(429, &[])) }
    });
    let client = ClientLimitLayer::new().copy_with(NeverCopy).layer(service);
    let sent = client
        .oneshot(Request::get(API).body(Stream).unwrap())
        .await
        .unwrap();
    assert_eq!((sent.status().as_u16(), *calls.lock().unwrap()), (429, 1));
}
