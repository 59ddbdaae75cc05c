//! What a layer allocates. For a request that is granted, this is the values of its fields, and
//! nothing else.

use std::convert::Infallible;
use std::future::ready;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use http::{HeaderName, HeaderValue, Request, Response};
use tollgate::{Keyed, Limiter, Quota};
#[cfg(feature = "policy")]
use tollgate_policy::Policy;
use tollgate_tower::{Admission, Fields, PeerAddr, RateLimitLayer};
use tower::{Layer, Service, service_fn};

use crate::memory::allocated;

type Answer = Result<Response<String>, Infallible>;

/// Returns a service whose answer has these fields.
fn page(
    fields: &'static [(&str, &str)],
) -> impl Service<Request<()>, Response = Response<String>, Error = Infallible> + Clone {
    service_fn(move |_| {
        let mut response = Response::new(String::new());
        for &(name, value) in fields {
            let name = HeaderName::from_static(name);
            let value = HeaderValue::from_str(value).unwrap();
            response.headers_mut().append(name, value);
        }
        ready(Answer::Ok(response))
    })
}

fn request() -> Request<()> {
    let peer = PeerAddr(([192, 0, 2, 1], 40_000).into());
    Request::builder().extension(peer).body(()).unwrap()
}

/// Returns how often a service allocates while it answers with this status.
fn allocations<S, B>(service: &mut S, status: u16) -> u64
where
    S: Service<Request<()>, Response = Response<B>, Error = Infallible>,
{
    let request = request();
    let before = allocated();
    let mut future = pin!(service.call(request));
    let answer = future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    let count = allocated() - before;
    assert!(matches!(answer, Poll::Ready(Ok(answer)) if answer.status() == status));
    count
}

fn of_layer<A: Admission>(layer: RateLimitLayer<A>) -> u64 {
    let mut service = layer.layer(page(&[]));
    // The first request of a key finds its slot.
    allocations(&mut service, 200);
    allocations(&mut service, 200)
}

const LIST: &[(&str, &str)] = &[
    ("ratelimit-policy", "\"default\";q=5;w=1"),
    ("ratelimit", "\"default\";r=3;t=1"),
];

#[test]
fn a_granted_request_allocates_the_values_of_its_fields_alone() {
    let by_hand = allocations(&mut page(LIST), 200);
    assert!(by_hand >= 2, "{by_hand}");
    let table = || Keyed::token_bucket(Quota::per_second(5), 100).unwrap();
    let limiter = || Limiter::token_bucket(Quota::per_second(5)).unwrap();
    assert_eq!(of_layer(RateLimitLayer::by_address(table())), 0);
    assert_eq!(of_layer(RateLimitLayer::shared(limiter())), 0);
    let said = RateLimitLayer::by_address(table()).fields(Fields::LIST);
    assert_eq!(of_layer(said), by_hand);
    let said = RateLimitLayer::shared(limiter()).fields(Fields::LIST);
    assert_eq!(of_layer(said), by_hand);
}

#[cfg(feature = "policy")]
#[test]
fn a_request_that_a_policy_grants_allocates_the_values_of_its_fields_alone() {
    let policy = || {
        let rule = "[[rule]]\nname = 'default'\nkey = 'client-ip'\nlimit = '5/s'";
        Policy::from_toml(rule).unwrap()
    };
    assert_eq!(of_layer(RateLimitLayer::policy(policy())), 0);
    let said = RateLimitLayer::policy(policy()).fields(Fields::LIST);
    assert_eq!(of_layer(said), allocations(&mut page(LIST), 200));
}

/// The headers take two allocations. The wait, the text and the pointer to the body take one each.
#[test]
fn a_refusal_allocates_its_parts_alone() {
    fn refused<A: Admission>(layer: RateLimitLayer<A>) -> u64 {
        let mut service = layer.layer(page(&[]));
        allocations(&mut service, 200);
        allocations(&mut service, 429);
        allocations(&mut service, 429)
    }
    let table = Keyed::token_bucket(Quota::per_day(1), 100).unwrap();
    assert_eq!(refused(RateLimitLayer::by_address(table)), 5);
    #[cfg(feature = "policy")]
    {
        let rule = "[[rule]]\nname = 'default'\nkey = 'client-ip'\nlimit = '1/d'";
        let policy = Policy::from_toml(rule).unwrap();
        assert_eq!(refused(RateLimitLayer::policy(policy)), 5);
    }
}
