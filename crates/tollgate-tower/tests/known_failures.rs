//! What went wrong in other limiters and middleware, and does not here. Each test names the
//! project.

use std::collections::HashSet;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tollgate::{Concurrency, Keyed, Limiter, ManualClock, Quota, Tick, TokenBucket};
use tollgate_http::{ClientAddress, RequestFacts};
use tollgate_policy::redis::RedisStore;
use tollgate_policy::{LivePolicy, Policy};
use tollgate_redis::Keys;
use tollgate_tower::{Admission, Count, Missing, PeerAddr, RateLimit, RateLimitLayer};
use tower::{Layer, Service, ServiceExt};

/// Answers with a page, which says in `x-tokens` what the request asks for.
#[derive(Debug, Clone)]
struct Page;

impl Service<Request<()>> for Page {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        let mut answer = Response::new(Full::new(Bytes::from_static(b"a page")));
        if let Some(tokens) = request.headers().get("x-tokens") {
            answer.headers_mut().insert("x-tokens", tokens.clone());
        }
        ready(Ok(answer))
    }
}

/// A request from an address.
fn from(address: &str) -> http::request::Builder {
    let address: IpAddr = address.parse().unwrap();
    Request::get("/").extension(PeerAddr(SocketAddr::new(address, 4711)))
}

/// Sends a request to its end. Returns the status and `Retry-After`.
async fn send<A: Admission>(
    service: &RateLimit<Page, A>,
    request: http::request::Builder,
) -> (u16, Option<u64>) {
    let answer = service
        .clone()
        .oneshot(request.body(()).unwrap())
        .await
        .unwrap();
    let (parts, body) = answer.into_parts();
    body.collect().await.unwrap();
    let wait = parts.headers.get("retry-after");
    let wait = wait.map(|wait| wait.to_str().unwrap().parse().unwrap());
    (parts.status.as_u16(), wait)
}

fn bucket(quota: Quota) -> TokenBucket {
    TokenBucket::new(quota).unwrap()
}

fn shared(quota: Quota, clock: &ManualClock) -> RateLimitLayer<impl Admission + use<>> {
    RateLimitLayer::shared(Limiter::with_clock(bucket(quota), clock.clone()))
}

fn by_address(quota: Quota) -> RateLimitLayer<impl Admission> {
    RateLimitLayer::by_address(Keyed::with_clock(bucket(quota), 1000, ManualClock::new()).unwrap())
}

fn live(text: &str, clock: &ManualClock) -> Arc<LivePolicy<ManualClock>> {
    let policy = Policy::builder().clock(clock.clone()).build_toml(text);
    Arc::new(LivePolicy::new(policy.unwrap()))
}

/// `per_second(n)` was one request every n seconds (#55).
#[tokio::test]
async fn tower_governor_n_per_second_are_n_in_each_second() {
    let clock = ManualClock::new();
    let service = shared(Quota::per_second(5), &clock).layer(Page);
    for second in 0..4 {
        for number in 0..8 {
            let (status, _) = send(&service, from("192.0.2.1")).await;
            assert_eq!(
                status,
                if number < 5 { 200 } else { 429 },
                "{second}: {number}"
            );
        }
        clock.advance(Duration::from_secs(1));
    }
}

/// `Retry-After` was 0 for waits below a second (#65), so clients came back at once.
#[tokio::test]
async fn tower_governor_a_wait_below_a_second_is_one() {
    for per_second in [2, 3, 10, 1000, 1_000_000] {
        let clock = ManualClock::new();
        let quota = Quota::per_second(per_second).burst(1);
        let service = shared(quota, &clock).layer(Page);
        assert_eq!(send(&service, from("192.0.2.1")).await, (200, None));
        assert_eq!(send(&service, from("192.0.2.1")).await, (429, Some(1)));
        clock.advance(Duration::from_secs(1));
        assert_eq!(send(&service, from("192.0.2.1")).await, (200, None));
    }
}

/// The leftmost address of `X-Forwarded-For` was the key, which each client writes as it likes.
#[tokio::test]
async fn tower_governor_the_leftmost_address_is_not_trusted() {
    let address = ClientAddress::peer()
        .trust("10.0.0.0/8")
        .unwrap()
        .x_forwarded_for();
    let service = by_address(Quota::per_hour(3))
        .client_address(address)
        .layer(Page);
    for number in 0..100 {
        // The proxy appends the address of the client, which forges the first.
        let forwarded = format!("198.51.100.{number}, 203.0.113.7");
        let request = from("10.0.0.1").header("x-forwarded-for", forwarded);
        let (status, _) = send(&service, request).await;
        assert_eq!(status, if number < 3 { 200 } else { 429 });
    }
}

/// Each address of IPv6 was a key, and a client has 2^64 of them.
#[tokio::test]
async fn tower_governor_a_network_of_ipv6_is_one_key() {
    let service = by_address(Quota::per_hour(3)).layer(Page);
    for number in 0..100 {
        let (status, _) = send(&service, from(&format!("2001:db8::{number:x}:1"))).await;
        assert_eq!(status, if number < 3 { 200 } else { 429 });
    }
    assert_eq!(send(&service, from("2001:db8:0:1::1")).await.0, 200);
}

/// A request without a key was answered with 500.
#[tokio::test]
async fn tower_governor_a_request_without_a_key_is_no_error_of_the_server() {
    let without = || Request::get("/");
    let service = by_address(Quota::per_hour(1)).layer(Page);
    assert_eq!(send(&service, without()).await, (400, None));
    let service = by_address(Quota::per_hour(1))
        .missing(Missing::Share)
        .layer(Page);
    assert_eq!(send(&service, without()).await, (200, None));
    assert_eq!(send(&service, without()).await, (429, Some(3600)));
    let service = by_address(Quota::per_hour(1))
        .missing(Missing::Exempt)
        .layer(Page);
    for _ in 0..9 {
        assert_eq!(send(&service, without()).await, (200, None));
    }
    let text = "[[rule]]\nname = 'a'\nkey = 'client-ip'\nlimit = '1/h'";
    let service = RateLimitLayer::policy(live(text, &ManualClock::new())).layer(Page);
    assert_eq!(send(&service, without()).await, (400, None));
}

/// `Retry-After` was rounded down: 1.9 s became 1.
#[tokio::test]
async fn axum_governor_retry_after_is_rounded_up() {
    for (millis, seconds) in [(1001, 2), (1900, 2), (2000, 2), (2001, 3), (59_001, 60)] {
        let clock = ManualClock::new();
        let quota = Quota::per(1, Duration::from_millis(millis));
        let service = shared(quota, &clock).layer(Page);
        assert_eq!(send(&service, from("192.0.2.1")).await, (200, None));
        assert_eq!(
            send(&service, from("192.0.2.1")).await,
            (429, Some(seconds))
        );
        clock.advance(Duration::from_secs(seconds));
        assert_eq!(
            send(&service, from("192.0.2.1")).await,
            (200, None),
            "{millis} ms"
        );
    }
}

/// Of several limits, those before the one that denied kept what they had taken: in axum-governor,
/// in Envoy's ratelimit (#348, #427), and in the chained limiters of System.Threading.
#[tokio::test]
async fn axum_governor_and_others_a_denied_request_takes_nothing_from_any_limit() {
    let text = "
        apply = 'all'
        [[rule]]
        name = 'loose'
        limit = '100/h'
        [[rule]]
        name = 'places'
        limit = 'concurrency 2'
        [[rule]]
        name = 'tight'
        key = 'client-ip'
        limit = '3/h'
        [[rule]]
        name = 'last'
        limit = ['50/h', '60/d']";
    let live = live(text, &ManualClock::new());
    let service = RateLimitLayer::policy(Arc::clone(&live)).layer(Page);
    for number in 0..200 {
        let (status, _) = send(&service, from("192.0.2.1")).await;
        assert_eq!(status, if number < 3 { 200 } else { 429 });
    }
    let facts = Request::new(());
    let facts = RequestFacts::new(&facts).client_ip([192, 0, 2, 2].into());
    let decision = live.decide(&facts);
    let left: Vec<_> = decision
        .asked()
        .map(|asked| (asked.rule(), asked.remaining()))
        .collect();
    // Three requests before this one.
    let expected = [
        ("loose", 96),
        ("places", 1),
        ("tight", 2),
        ("last", 46),
        ("last", 56),
    ];
    assert_eq!(left, expected);
}

/// The service was not `Clone`, or each connection had a limit of its own: a cap of 5/s let 1500
/// through (axum #3682). The tests over sockets have connections; here are clones.
#[tokio::test]
async fn tower_rate_limit_clones_share_a_limit() {
    let clock = ManualClock::new();
    let layer = shared(Quota::per_second(5), &clock);
    let mut admitted = 0;
    for _ in 0..300 {
        let service = layer.clone().layer(Page);
        for _ in 0..5 {
            let (status, _) = send(&service.clone(), from("192.0.2.1")).await;
            admitted += usize::from(status == 200);
        }
    }
    assert_eq!(admitted, 5);
}

/// It checked first and added later: 1001 of 1000 got through.
#[test]
fn limitador_threads_admit_no_more_than_the_limit() {
    let clock = ManualClock::new();
    let layer = shared(Quota::per_hour(1000), &clock);
    let admitted = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let mut service = layer.layer(Page);
                scope.spawn(move || {
                    let mut context = Context::from_waker(Waker::noop());
                    let mut admitted = 0;
                    for _ in 0..1000 {
                        let request = from("192.0.2.1").body(()).unwrap();
                        let mut answer = std::pin::pin!(service.call(request));
                        let Poll::Ready(Ok(answer)) = answer.as_mut().poll(&mut context) else {
                            panic!("it is decided at once");
                        };
                        admitted += usize::from(answer.status() == 200);
                    }
                    admitted
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum::<usize>()
    });
    assert_eq!(admitted, 1000);
}

/// A tight limit was hidden by a loose one (#513).
#[tokio::test]
async fn limitador_a_tight_limit_is_not_hidden_by_a_loose_one() {
    for limits in ["['2/h', '1k/h']", "['1k/h', '2/h']"] {
        let text = format!("[[rule]]\nname = 'a'\nlimit = {limits}");
        let service = RateLimitLayer::policy(live(&text, &ManualClock::new())).layer(Page);
        for status in [200, 200, 429, 429] {
            assert_eq!(
                send(&service, from("192.0.2.1")).await.0,
                status,
                "{limits}"
            );
        }
    }
}

/// Counters panicked after a reload (#522), and a new file forgot what was counted.
#[tokio::test]
async fn limitador_a_reload_while_requests_are_served() {
    let text = |limit: &str| {
        format!(
            "apply = 'all'\n[[rule]]\nname = 'a'\nlimit = '{limit}'\ncount = 'failures'\n\
             [[rule]]\nname = 'places'\nlimit = 'concurrency 3'"
        )
    };
    let live = live(&text("9/h"), &ManualClock::new());
    let layer = RateLimitLayer::policy(Arc::clone(&live)).failure_if(|_| true);
    let service = layer.layer(Page);
    let mut open = Vec::new();
    for limit in ["8/h", "9/h", "7/h"] {
        let request = from("192.0.2.1").body(()).unwrap();
        open.push(service.clone().oneshot(request).await.unwrap());
        let _ = live.reload_toml(&text(limit)).unwrap();
    }
    assert_eq!(send(&service, from("192.0.2.1")).await.0, 503);
    for answer in open {
        answer.into_body().collect().await.unwrap();
    }
    // Three failures count, and the places are free. A new limit keeps the permits that are left.
    for number in 0..9 {
        let (status, _) = send(&service, from("192.0.2.1")).await;
        assert_eq!(status, if number < 6 { 200 } else { 429 }, "{number}");
    }
}

/// Redis down meant stalls of ten seconds in Envoy's ratelimit (#462, #1143), and 500 in Traefik
/// (#12091).
#[tokio::test(start_paused = true)]
async fn envoy_and_traefik_a_store_that_is_down_is_no_stall_and_no_error() {
    for (fallback, statuses) in [("closed", [429; 3]), ("{ open = 2 }", [200, 200, 429])] {
        let quoted = match fallback.starts_with('{') {
            true => fallback.to_owned(),
            false => format!("'{fallback}'"),
        };
        let text =
            format!("[[rule]]\nname = 'a'\nstore = 'redis'\nlimit = '9/h'\nfallback = {quoted}");
        let store = RedisStore::without_server(Keys::new("tower").unwrap());
        let policy = Policy::builder()
            .remote_store("redis", store)
            .build_toml(&text)
            .unwrap();
        let service = RateLimitLayer::policy(LivePolicy::new(policy)).layer(Page);
        let start = tokio::time::Instant::now();
        for status in statuses {
            let (answered, wait) = send(&service, from("192.0.2.1")).await;
            assert_eq!(answered, status, "{fallback}");
            assert_eq!(wait.is_some(), status == 429, "{fallback}");
        }
        assert_eq!(start.elapsed(), Duration::ZERO, "{fallback}");
    }
}

/// An estimate that was settled later leaked: 663 tokens went through a limit of 100 (#18730).
#[tokio::test]
async fn litellm_no_more_tokens_than_the_limit() {
    let limiter = Limiter::with_clock(bucket(Quota::per_hour(100)), ManualClock::new());
    let limiter = Arc::new(limiter);
    let tokens = |facts: &RequestFacts<'_>| facts.header("x-estimate")?.parse().ok();
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
    let layer = layer.count(Count::Failures).failure_if(move |_| {
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
    assert_eq!(seen.iter().collect::<HashSet<_>>().len(), 4);
}
