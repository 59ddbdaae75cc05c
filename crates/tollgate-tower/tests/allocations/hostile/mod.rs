//! Hostile requests: thousands of header lines, values of a megabyte, absurd paths and hosts, bytes
//! that are no text, malformed addresses. Each gets a decision or a clear refusal, and no memory is
//! kept.

mod requests;

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use axum::extract::ConnectInfo;
use bytes::Bytes;
use http::{HeaderName, Request, Response};
use http_body::Body as _;
use http_body_util::Empty;
use tollgate::keyed::KeyedConcurrency;
use tollgate::{Keyed, ManualClock, Quota, TokenBucket};
use tollgate_http::{ClientAddress, Fields, PathForm, RefusalBody, RequestFacts};
use tollgate_policy::{LivePolicy, Policy};
use tollgate_tower::{Admission, ByHeader, CountedRequests, RateLimitLayer};
use tower::{Layer, Service};

use crate::memory::measured;
use crate::random::Random;

/// Answers with nothing.
#[derive(Debug, Clone)]
struct Nothing;

impl Service<Request<()>> for Nothing {
    type Response = Response<Empty<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        ready(Ok(Response::new(Empty::new())))
    }
}

/// Sends a request from an address. Returns the status.
fn send<A: Admission + Clone>(
    layer: &RateLimitLayer<A>,
    peer: IpAddr,
    mut request: Request<()>,
) -> u16 {
    let peer = ConnectInfo(SocketAddr::new(peer, 4711));
    request.extensions_mut().insert(peer);
    let mut context = Context::from_waker(Waker::noop());
    let mut answer = Box::pin(layer.layer(Nothing).call(request));
    let Poll::Ready(Ok(answer)) = answer.as_mut().poll(&mut context) else {
        panic!("it is decided at once");
    };
    // What a client sent is not sent back.
    let size: usize = answer.headers().values().map(http::HeaderValue::len).sum();
    let body = answer.body().size_hint().upper().unwrap();
    assert!(size < 1000 && body < 2000, "{:?}", answer.headers());
    answer.status().as_u16()
}

/// A policy that reads all facts of a request.
const RULES: &str = r#"
    apply = "all"

    [[deny]]
    name = "blocked"
    when = { client-ip = ["192.0.2.0/24", "2001:db8:bad::/48"] }

    [[allow]]
    name = "robots"
    when = { header.user-agent = "*bot*/*", host = "*.example.com", path = "/**/robots.txt" }

    [[rule]]
    name = "address"
    key = "client-ip"
    limit = ["20/s", "4k/h"]
    capacity = 1000

    [[rule]]
    name = "key"
    when = { path = "/search/**", query.tenant = ["a*", "*b", "a*b*c"] }
    key = ["header:x-api-key", "cookie:session", "query:tenant", "path"]
    missing = "shared"
    limit = "sliding-window 100/min"
    capacity = 1000
    cost = { estimate = "header:x-weight", default = 2, max = 50, settle = "response-header:x-cost" }

    [[rule]]
    name = "host"
    key = ["host", "method"]
    missing = "skip"
    limit = "concurrency 5"
    capacity = 1000
"#;

const FIELDS: Fields = Fields::LIST.and(Fields::TRIPLE).and(Fields::SPRING);

fn policy() -> LivePolicy<ManualClock> {
    let policy = Policy::builder()
        .clock(ManualClock::new())
        .build_toml(RULES);
    LivePolicy::new(policy.unwrap())
}

fn table() -> Keyed<TokenBucket, ManualClock> {
    let bucket = TokenBucket::new(Quota::per_hour(5)).unwrap();
    Keyed::with_clock(bucket, 1000, ManualClock::new()).unwrap()
}

/// How the client's address is found, and in which header.
fn addresses() -> [(&'static str, ClientAddress); 5] {
    let trusted = || ClientAddress::peer().trust("10.0.0.0/8").unwrap();
    let hops = |hops| ClientAddress::peer().trusted_hops(hops);
    [
        ("x-forwarded-for", trusted().x_forwarded_for()),
        ("forwarded", trusted().forwarded()),
        ("x-real-ip", trusted().x_real_ip()),
        ("x-forwarded-for", hops(255).x_forwarded_for()),
        ("forwarded", hops(3).forwarded()),
    ]
}

const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

/// The size of a request.
fn size(request: &Request<()>) -> i64 {
    let lines = request.headers().iter();
    let size: usize = lines
        .map(|(name, value)| name.as_str().len() + value.len() + 100)
        .sum();
    i64::try_from(size + request.uri().to_string().len()).unwrap()
}

/// Sends requests of all kinds to a layer. The memory in use grows by no more than some copies of
/// the request, and it is given back.
fn attack<A>(layer: &RateLimitLayer<A>, names: &[&'static str], statuses: &[u16])
where
    A: Admission + Clone,
{
    // What is made once.
    send(layer, PEER, Request::new(()));
    for (name, request) in requests::all(names) {
        let size = size(&request);
        let (status, left, peak) = measured(|| send(layer, PEER, request));
        assert!(statuses.contains(&status), "{name}: {status}");
        assert!(left <= 0, "{name}: {left} bytes");
        assert!(peak < 8 * size + 50_000, "{name}: {peak} bytes, for {size}");
    }
    for seed in 0..50 {
        let mut random = Random::new(seed);
        for _ in 0..100 {
            let request = requests::random(&mut random);
            let (status, left, _) = measured(|| send(layer, PEER, request));
            assert!(statuses.contains(&status), "seed {seed}: {status}");
            assert!(left <= 0, "seed {seed}: {left} bytes");
        }
    }
}

#[test]
fn a_limit_for_each_address() {
    for (name, address) in addresses() {
        let layer = RateLimitLayer::by_address(table()).client_address(address);
        let layer = layer.fields(FIELDS).body(RefusalBody::Problem);
        attack(&layer, &[name], &[200, 429]);
    }
}

#[test]
fn a_limit_for_each_key_of_a_header() {
    let key = ByHeader(HeaderName::from_static("x-api-key"));
    let layer = RateLimitLayer::by_key(table(), key).count(CountedRequests::Failures);
    attack(&layer, &["x-api-key", "content-type"], &[200, 400, 429]);
}

#[test]
fn places_for_each_key_of_the_path_and_the_query() {
    for form in [PathForm::AsSent, PathForm::Decoded, PathForm::Normalized] {
        let key = |facts: &RequestFacts<'_>| {
            let query = facts.query("tenant")?.map(|tenant| tenant.into_owned());
            let host = facts.host()?.map(|host| host.into_owned());
            Ok(Some((facts.path().into_owned(), query, host)))
        };
        let places = KeyedConcurrency::new(1, 1000).unwrap();
        let layer = RateLimitLayer::concurrency_by_key(places, key).path_form(form);
        attack(&layer, &["host"], &[200, 400, 503]);
    }
}

#[test]
fn a_policy_that_reads_all_facts() {
    let names = [
        &["x-api-key", "x-weight"][..],
        &["cookie"],
        &["host", "user-agent"],
        &[],
        &[],
    ];
    for ((name, address), names) in addresses().into_iter().zip(names) {
        let layer = RateLimitLayer::policy(policy()).client_address(address);
        let layer = layer.fields(FIELDS).body(RefusalBody::Problem);
        attack(&layer, &[&[name], names].concat(), &[200, 400, 403, 429]);
    }
}

/// Twenty thousand keys need no more memory than the table has.
#[test]
fn many_keys() {
    let address = ClientAddress::peer()
        .trust("10.0.0.0/8")
        .unwrap()
        .x_forwarded_for();
    let table = Arc::new(table());
    let by_address = RateLimitLayer::by_address(Arc::clone(&table)).client_address(address.clone());
    let by_policy = RateLimitLayer::policy(policy()).client_address(address);
    let ((), left, _) = measured(|| {
        for number in 0..20_000_u32 {
            let address = IpAddr::from(number.wrapping_mul(2_654_435_761).to_be_bytes());
            let lines = ["x-forwarded-for", "x-api-key", "host"];
            let lines = lines.map(|name| (name, address.to_string().into_bytes()));
            let request = requests::with_lines(lines);
            let status = send(&by_address, PEER, request.clone());
            assert!([200, 429].contains(&status), "{status}");
            let status = send(&by_policy, PEER, request);
            assert!([200, 403, 429].contains(&status), "{status}");
        }
    });
    assert!(left < 10_000, "{left} bytes");
    assert!(table.len() <= 2048);
}
