//! Which requests wait for which limits.

use std::time::Duration;

use http::Request;
use tokio::time::Instant;
use tollgate_client::{ClientLimitError, ClientLimitLayer};
use tower::{Layer, ServiceExt};

use crate::served::{Script, answer, get};

const EMPTY: &[(&str, &str)] = &[
    ("ratelimit-policy", r#""a";q=10;w=100;pk=:AAAA:"#),
    ("ratelimit", r#""a";r=0;t=20;pk=:AAAA:"#),
    ("retry-after", "20"),
];

fn with_key(uri: &str, key: &str) -> Request<()> {
    Request::get(uri)
        .header("authorization", key)
        .body(())
        .unwrap()
}

/// Returns whether a request goes within a second.
async fn goes<S>(client: &S, request: Request<()>) -> bool
where
    S: tower::Service<Request<()>, Response = http::Response<()>> + Clone,
{
    let sent = tokio::time::timeout(Duration::from_secs(1), client.clone().oneshot(request));
    sent.await.is_ok_and(|sent| sent.is_ok())
}

#[tokio::test(start_paused = true)]
async fn a_hold_is_for_one_origin_and_one_credential() {
    let script = Script::new(|before| match before {
        0 => answer(429, &[("retry-after", "20")]),
        _ => answer(200, &[]),
    });
    let client = ClientLimitLayer::new()
        .max_attempts(1)
        .layer(script.service());
    assert!(goes(&client, with_key("https://a.example.com/x", "one")).await); // 429
    assert!(!goes(&client, with_key("https://a.example.com/y", "one")).await);
    assert!(!goes(&client, with_key("HTTPS://A.example.com:443/", "one")).await);
    assert!(goes(&client, with_key("https://a.example.com/", "two")).await);
    assert!(goes(&client, with_key("http://a.example.com/", "one")).await);
    assert!(goes(&client, with_key("https://a.example.com:444/", "one")).await);
    assert!(goes(&client, with_key("https://b.example.com/", "one")).await);
}

#[tokio::test(start_paused = true)]
async fn groups_can_be_told_apart_by_other_things() {
    let script = Script::new(|before| match before {
        0 => answer(429, &[("retry-after", "20")]),
        _ => answer(200, &[]),
    });
    let layer = ClientLimitLayer::new()
        .max_attempts(1)
        .group_by(|head| head.path().starts_with("/search"));
    let client = layer.layer(script.service());
    assert!(goes(&client, with_key("https://a.example.com/search/1", "one")).await); // 429
    assert!(!goes(&client, with_key("https://a.example.com/search/2", "two")).await);
    assert!(goes(&client, with_key("https://a.example.com/users", "one")).await);
}

#[tokio::test(start_paused = true)]
async fn groups_whose_answers_name_one_partition_share_its_state() {
    let other: &[_] = &[
        ("ratelimit-policy", r#""a";q=10;w=100;pk=:BBBB:"#),
        ("ratelimit", r#""a";r=9;t=10;pk=:BBBB:"#),
    ];
    let same: &[_] = &[
        ("ratelimit-policy", r#""a";q=10;w=100;pk=:AAAA:"#),
        ("ratelimit", r#""a";r=9;t=10;pk=:AAAA:"#),
    ];
    let script = Script::new(move |before| match before {
        0 => answer(200, other),
        1 => answer(200, same),
        2 => answer(429, EMPTY),
        _ => answer(200, &[]),
    });
    let client = ClientLimitLayer::new()
        .max_attempts(1)
        .layer(script.service());
    let uri = "https://a.example.com/";
    for key in ["other", "same", "refused"] {
        assert!(goes(&client, with_key(uri, key)).await);
    }
    assert!(!goes(&client, with_key(uri, "refused")).await);
    assert!(!goes(&client, with_key(uri, "same")).await); // its limit has no permits left
    assert!(goes(&client, with_key("https://b.example.com/", "same")).await); // another origin
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(goes(&client, with_key(uri, "other")).await);
}

#[tokio::test(start_paused = true)]
async fn few_requests_go_before_the_first_answer() {
    let script = Script::always(200, &[]);
    let client = ClientLimitLayer::new().layer(script.service());
    let tasks: Vec<_> = (0..100)
        .map(|_| tokio::spawn(client.clone().oneshot(get("https://a.example.com/"))))
        .collect();
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(script.count(), 4);
    // The answers come after 10 ms, and name no limit.
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(script.count(), 100);
    for task in tasks {
        task.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn requests_of_a_group_go_in_the_order_of_arrival() {
    let script = Script::always(
        200,
        &[
            ("ratelimit-policy", r#""a";q=10;w=1"#),
            ("ratelimit", r#""a";r=4;t=1"#),
        ],
    );
    let (sender, mut order) = tokio::sync::mpsc::unbounded_channel();
    let client = ClientLimitLayer::new().layer(script.service());
    for number in 0..30 {
        let (client, sender) = (client.clone(), sender.clone());
        tokio::spawn(async move {
            client.oneshot(get("https://a.example.com/")).await.unwrap();
            sender.send(number).unwrap();
        });
    }
    drop(sender);
    for number in 0..30 {
        assert_eq!(order.recv().await, Some(number));
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waited_for_max_wait_fails() {
    let script = Script::always(
        200,
        &[
            ("ratelimit-policy", r#""a";q=10;w=10"#),
            ("ratelimit", r#""a";r=0;t=10"#),
        ],
    );
    let layer = ClientLimitLayer::new().max_wait(Duration::from_secs(5));
    let client = layer.layer(script.service());
    client
        .clone()
        .oneshot(get("https://a.example.com/"))
        .await
        .unwrap();
    let begun = Instant::now();
    let tasks: Vec<_> = (0..100)
        .map(|_| tokio::spawn(client.clone().oneshot(get("https://a.example.com/"))))
        .collect();
    let mut failed = 0;
    for task in tasks {
        if let Err(error) = task.await.unwrap() {
            assert!(matches!(error, ClientLimitError::WaitTooLong { .. }));
            failed += 1;
        }
    }
    assert!(failed > 80, "{failed}");
    assert!(
        begun.elapsed() <= Duration::from_millis(5_020),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn memory_is_bounded() {
    let script = Script::new(|before| {
        let mut response = answer(200, &[]);
        let names = (0..64).map(|limit| format!("\"{before}-{limit}\";r=5;t=1"));
        let names = names.collect::<Vec<_>>().join(", ");
        response
            .headers_mut()
            .insert("ratelimit", names.parse().unwrap());
        let policies = (0..64).map(|limit| format!("\"{before}-{limit}\";q=10;w=1"));
        let policies = policies.collect::<Vec<_>>().join(", ");
        response
            .headers_mut()
            .insert("ratelimit-policy", policies.parse().unwrap());
        response
    });
    let client = ClientLimitLayer::new()
        .max_groups(160)
        .layer(script.service());
    for number in 0..2000 {
        let uri = format!("https://{number}.example.com/");
        client.clone().oneshot(get(&uri)).await.unwrap();
    }
    let (groups, limits) = client.remembered();
    assert!((160..=175).contains(&groups), "{groups}");
    assert!(limits <= groups * 64, "{limits}");
    // One group whose answers name other limits each time.
    for _ in 0..200 {
        client
            .clone()
            .oneshot(get("https://0.example.com/"))
            .await
            .unwrap();
    }
    let (groups, limits) = client.remembered();
    assert!(
        groups <= 175 && limits <= groups * 64,
        "{groups} and {limits}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_group_whose_requests_wait_is_not_forgotten() {
    let script = Script::always(429, &[("retry-after", "20")]);
    let layer = ClientLimitLayer::new().max_attempts(1).max_groups(1);
    let client = layer.layer(script.service());
    for _ in 0..5 {
        let sent = with_key("https://a.example.com/", "one");
        tokio::spawn(client.clone().oneshot(sent));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let before = script.count();
    assert!(goes(&client, with_key("https://a.example.com/", "two")).await);
    for _ in 0..20 {
        let sent = with_key("https://a.example.com/", "one");
        tokio::spawn(client.clone().oneshot(sent));
    }
    tokio::time::sleep(Duration::from_secs(19)).await;
    assert_eq!(script.count() - before, 1); // of the other group
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(script.count() - before, 2); // one of all that waited has tried
    // As soon as none waits, there are as many groups as are allowed.
    tokio::time::sleep(Duration::from_secs(600)).await;
    client
        .clone()
        .oneshot(with_key("https://a.example.com/", "three"))
        .await
        .unwrap();
    assert_eq!(client.remembered().0, 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_may_know_its_callers_by_many_credentials() {
    let script = Script::always(429, &[("retry-after", "250")]);
    let client = ClientLimitLayer::new()
        .max_attempts(1)
        .layer(script.service());
    // Of one server, as many as are remembered by default.
    for number in 0..1024 {
        let sent = with_key("https://a.example.com/", &number.to_string());
        client.clone().oneshot(sent).await.unwrap();
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    assert_eq!(client.remembered().0, 1024);
    for number in (0..1024).step_by(50) {
        let key = number.to_string();
        assert!(!goes(&client, with_key("https://a.example.com/", &key)).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_only_how_long_to_wait_is_not_asked_much_too_often() {
    use std::sync::{Arc, Mutex};
    let limiter = Arc::new(tollgate::Limiter::with_clock(
        tollgate::TokenBucket::new(tollgate::Quota::per_second(20)).unwrap(),
        crate::clock::RuntimeClock::new(),
    ));
    let counts = Arc::new(Mutex::new((0_u32, 0_u32)));
    let counted = Arc::clone(&counts);
    let script = Script::new(move |_| {
        let mut counts = counted.lock().unwrap();
        if limiter.try_acquire().is_ok() {
            counts.0 += 1;
            answer(200, &[])
        } else {
            counts.1 += 1;
            answer(429, &[("retry-after", "1")])
        }
    });
    let client = ClientLimitLayer::new().layer(script.service());
    for _ in 0..20 {
        let client = client.clone();
        tokio::spawn(async move {
            loop {
                _ = client.clone().oneshot(get("https://a.example.com/")).await;
            }
        });
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    *counts.lock().unwrap() = (0, 0);
    tokio::time::sleep(Duration::from_secs(120)).await;
    let (granted, refused) = *counts.lock().unwrap();
    println!("{granted} granted, {refused} refused");
    assert!(
        refused * 50 <= granted,
        "{refused} of {granted} were refused"
    );
    assert!(granted >= 120 * 20 / 2, "{granted} were granted");
}
