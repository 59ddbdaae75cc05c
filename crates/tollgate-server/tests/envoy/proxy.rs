//! Envoy itself asks, with the page's configuration.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Response};

use crate::support::proxy::{Application, Browser, Envoy, PATIENCE, program};
use crate::support::{Client, RateLimitRequest, Service, descriptor, page, request};

/// Envoy waits longer than the page says, so that a busy machine fails no test.
const PATIENT: (&str, &str) = ("timeout: 0.1s", "timeout: 60s");

struct All {
    envoy: Envoy,
    application: Application,
    service: Service,
}

impl All {
    async fn start(program: PathBuf, policy: &str, change: &[(&str, &str)]) -> Self {
        let service = Service::start(policy);
        let application = Application::start().await;
        let envoy = Envoy::start(program, service.address, application.address, change).await;
        Self {
            envoy,
            application,
            service,
        }
    }
}

/// Sends requests at once, and returns the answers.
async fn hammer(browser: &Browser, requests: usize) -> Vec<Response<Bytes>> {
    let senders = (0..8).map(|_| {
        let browser = browser.clone();
        tokio::spawn(async move {
            let mut answers = Vec::new();
            for _ in 0..requests / 8 {
                answers.push(browser.get("/items").await);
            }
            answers
        })
    });
    let mut answers = Vec::new();
    for sender in senders.collect::<Vec<_>>() {
        answers.extend(sender.await.unwrap());
    }
    answers
}

#[tokio::test]
async fn envoy_admits_no_more_than_the_limit_over_http1_and_http2() {
    let Some(program) = program() else { return };
    let (_, policy) = page::configuration();
    let all = All::start(program, policy, &[PATIENT]).await;
    let start = Instant::now();
    let mut admitted = 0;
    let address = all.envoy.address;
    for browser in [Browser::http1(address), Browser::http2(address)] {
        let answers = hammer(&browser, 400).await;
        for answer in &answers {
            let header = |name| answer.headers().get(name).map(|it| it.to_str().unwrap());
            assert_eq!(header("ratelimit-policy"), Some(r#""client";q=100;w=60"#));
            assert!(header("ratelimit").unwrap().starts_with("\"client\";r="));
            match answer.status().as_u16() {
                200 => {
                    admitted += 1;
                    assert_eq!(answer.body(), "done");
                    assert_eq!(header("retry-after"), None);
                }
                429 => {
                    let wait: u64 = header("retry-after").unwrap().parse().unwrap();
                    assert!((1..=60).contains(&wait), "{wait}");
                    let body = std::str::from_utf8(answer.body()).unwrap();
                    assert!(body.starts_with("too many requests"), "{body}");
                }
                status => panic!("{status}"),
            }
        }
        // A bucket of 100, and 100 in each minute.
        let most = 101 + start.elapsed().as_millis() * 100 / 60_000;
        assert!((100..=most).contains(&admitted), "{admitted}");
    }
}

#[tokio::test]
async fn a_query_and_another_path_do_not_avoid_a_rule() {
    let Some(program) = program() else { return };
    let (_, policy) = page::configuration();
    let policy = policy.replace("5/min", "5/d");
    let all = All::start(program, &policy, &[PATIENT]).await;
    let browser = Browser::http1(all.envoy.address);
    let paths = [
        "/login",
        "/login?a",
        "/login?b=1#c",
        "//login",
        "/a/../login",
    ];
    for path in paths {
        let answer = browser.send(Method::POST, path).await;
        assert_eq!(answer.status(), 200, "{path}");
    }
    for path in paths {
        let answer = browser.send(Method::POST, path).await;
        assert_eq!(answer.status(), 429, "{path}");
    }
    assert_eq!(browser.get("/login").await.status(), 200);
}

#[tokio::test]
async fn a_client_that_comes_back_when_envoy_says_is_admitted() {
    let Some(program) = program() else { return };
    let policy = "[[rule]]\nname = 'all'\nlimit = '2/3s burst 1'";
    let all = All::start(program, policy, &[PATIENT]).await;
    let browser = Browser::http2(all.envoy.address);
    for _ in 0..3 {
        let mut answer = browser.get("/items").await;
        // On a slow machine the permit may be there again, and then it is taken.
        while answer.status() == 200 {
            answer = browser.get("/items").await;
        }
        let wait = answer.headers()["retry-after"].to_str().unwrap();
        // This is what the client is told to do.
        tokio::time::sleep(Duration::from_secs(wait.parse().unwrap())).await;
        assert_eq!(browser.get("/items").await.status(), 200);
    }
}

/// Asks until the answer is as expected.
async fn until(
    client: &mut Client,
    request: RateLimitRequest,
    is_expected: impl Fn(Option<u32>) -> bool,
) {
    let start = Instant::now();
    loop {
        let answer = client.ask(request.clone()).await;
        if is_expected(answer.left()[0]) {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{answer:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn bytes_are_charged_when_a_stream_is_done() {
    let Some(program) = program() else { return };
    let (_, policy) = page::configuration();
    let policy = policy.replace("100MB/h", "100kB/d");
    let all = All::start(program, &policy, &[PATIENT]).await;
    let browser = Browser::http1(all.envoy.address);
    let mut client = all.service.client();
    let entries = [("counts", "bytes"), ("remote_address", "127.0.0.1")];
    let look = || request([descriptor(entries).hits(0)]);
    assert_eq!(client.ask(look()).await.left(), [Some(100_000)]);

    assert_eq!(browser.get("/files/a").await.body().len(), 60_000);
    until(&mut client, look(), |left| {
        left.is_some_and(|left| left < 41_000)
    })
    .await;
    // There is a permit, so another file may come, whose bytes are more than what is left.
    assert_eq!(browser.get("/files/a").await.status(), 200);
    until(&mut client, look(), |left| left.is_none()).await;
    let denied = browser.get("/files/a").await;
    assert_eq!(denied.status(), 429);
    // The debt of almost 20 000 bytes is paid in almost five hours.
    let wait = denied.headers()["retry-after"].to_str().unwrap();
    let wait: u64 = wait.parse().unwrap();
    assert!((16_000..=17_300).contains(&wait), "{wait}");
}

#[tokio::test]
async fn hits_are_given_back_when_a_stream_is_done() {
    let Some(program) = program() else { return };
    let (_, policy) = page::configuration();
    let policy = policy.replace("1/h burst 2", "1/d burst 2");
    let all = All::start(program, &policy, &[PATIENT]).await;
    let browser = Browser::http2(all.envoy.address);
    let mut client = all.service.client();
    let entries = [("counts", "reports"), ("remote_address", "127.0.0.1")];
    let look = || request([descriptor(entries).hits(0)]);
    let report = || {
        let browser = browser.clone();
        tokio::spawn(async move { browser.get("/reports/a").await.status() })
    };
    let first_two = [report(), report()];
    until(&mut client, look(), |left| left.is_none()).await;
    assert_eq!(browser.get("/reports/a").await.status(), 429);
    // Two end, and so two more are admitted.
    all.application.reports.add_permits(2);
    for report in first_two {
        assert_eq!(report.await.unwrap(), 200);
    }
    until(&mut client, look(), |left| left == Some(2)).await;
    all.application.reports.add_permits(2);
    for report in [report(), report()] {
        assert_eq!(report.await.unwrap(), 200);
    }
}

#[tokio::test]
async fn without_the_service_envoy_answers_by_its_failure_mode() {
    let Some(program) = program() else { return };
    let allow = ("failure_mode_deny: true", "failure_mode_deny: false");
    let deny = ("failure_mode_deny: true", "failure_mode_deny: true");
    for (mode, expected) in [(allow, 200), (deny, 500)] {
        let (_, policy) = page::configuration();
        let mut all = All::start(program.clone(), policy, &[mode]).await;
        let browser = Browser::http1(all.envoy.address);
        all.service.kill();
        let start = Instant::now();
        // The first may have been answered before the connections were closed.
        while browser
            .get("/items")
            .await
            .headers()
            .contains_key("ratelimit")
        {
            assert!(start.elapsed() < PATIENCE);
        }
        for _ in 0..20 {
            let answer = tokio::time::timeout(PATIENCE, browser.get("/items")).await;
            assert_eq!(answer.unwrap().status(), expected);
        }
    }
}
