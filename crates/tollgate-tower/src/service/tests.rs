//! A request writes no memory that the requests of other connections write, but for the limits
//! themselves.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use tollgate::{Concurrency, Keyed, Limiter, Quota};
use tollgate_http::Fields;
use tower::{Layer, ServiceExt, service_fn};

use crate::admission::Admission;
use crate::ticket::Limits;
use crate::{CountedRequests, PeerAddr, RateLimitLayer};

/// How many references there are while a request is decided, served and answered.
type Counts = Arc<Mutex<Vec<usize>>>;

/// Returns how many references to the limits of a layer there are: before a request, while it is
/// served, while its answer is sent, and after it.
async fn counts<A: Admission>(layer: RateLimitLayer<A>) -> [usize; 4] {
    let counts = Counts::default();
    let limits = Arc::new(Mutex::new(None::<Arc<Limits<A>>>));
    let count = {
        let (counts, limits) = (Arc::clone(&counts), Arc::clone(&limits));
        move || {
            let limits = limits.lock().unwrap();
            let count = limits.as_ref().map(Arc::strong_count);
            counts
                .lock()
                .unwrap()
                .push(count.expect("the limits are known"));
        }
    };
    let inner = {
        let count = count.clone();
        service_fn(move |_: Request<()>| {
            count();
            async { Ok::<_, Infallible>(Response::new(String::from("a page"))) }
        })
    };
    let first = layer.layer(inner);
    let service = first.clone();
    *limits.lock().unwrap() = Some(service.limits.of_all());
    count();
    let peer = PeerAddr(([192, 0, 2, 1], 40_000).into());
    let request = Request::builder().extension(peer).body(()).unwrap();
    let answer = service.clone().oneshot(request).await.unwrap();
    assert_eq!(answer.status(), 200);
    count();
    drop(answer);
    count();
    let counts = counts.lock().unwrap();
    counts.clone().try_into().expect("four counts")
}

fn by_address() -> RateLimitLayer<impl crate::Admission> {
    let table = Keyed::token_bucket(Quota::per_second(5), 100).unwrap();
    RateLimitLayer::by_address(table)
}

#[tokio::test(start_paused = true)]
async fn requests_of_a_connection_count_their_references_apart() {
    let same = |counts: [usize; 4]| assert_eq!(counts, [counts[0]; 4]);
    same(counts(by_address()).await);
    same(counts(by_address().fields(Fields::LIST)).await);
    same(counts(by_address().fields(Fields::TRIPLE)).await);
    same(counts(by_address().fields(Fields::LIST).shadow_if(|_| true)).await);
    same(counts(by_address().boxed().fields(Fields::LIST)).await);

    let table = || Keyed::token_bucket(Quota::per_second(5), 100).unwrap();
    let settled = RateLimitLayer::by_address(table()).settle(|_| 2);
    same(counts(settled).await);
    let failures = RateLimitLayer::by_address(table()).count(CountedRequests::Failures);
    same(counts(failures).await);

    let places = RateLimitLayer::concurrency(Concurrency::new(5).unwrap());
    same(counts(places).await);

    // It waits.
    let limiter = Limiter::token_bucket(Quota::per_second(1)).unwrap();
    assert!(limiter.try_acquire().is_ok());
    let waits = RateLimitLayer::shared(limiter).wait(Duration::from_secs(9), 9);
    same(counts(waits.unwrap()).await);
}

#[cfg(feature = "policy")]
#[tokio::test]
async fn requests_count_no_references_to_a_policy() {
    use tollgate_policy::{LivePolicy, Policy};

    let rule = "[[rule]]\nname = 'a'\nkey = 'client-ip'\nlimit = '5/s'\ncount = 'failures'\n\
                ban = { after = 3, of = 'failures' }";
    for fields in [Fields::OFF, Fields::LIST] {
        let live = Arc::new(LivePolicy::new(Policy::from_toml(rule).unwrap()));
        let layer = RateLimitLayer::policy(Arc::clone(&live)).fields(fields);
        let before = counts(layer.clone()).await;
        assert_eq!(before, [before[0]; 4]);

        let seen = Arc::new(Mutex::new(0));
        let inner = {
            let (live, seen) = (Arc::clone(&live), Arc::clone(&seen));
            service_fn(move |_: Request<()>| {
                *seen.lock().unwrap() = Arc::strong_count(&live);
                async { Ok::<_, Infallible>(Response::new(String::new())) }
            })
        };
        let service = layer.layer(inner);
        let count = Arc::strong_count(&live);
        let peer = PeerAddr(([192, 0, 2, 1], 40_000).into());
        let request = Request::builder().extension(peer).body(()).unwrap();
        let answer = service.oneshot(request).await.unwrap();
        assert_eq!(*seen.lock().unwrap(), count);
        drop(answer);
    }
}

#[test]
fn clones_of_the_first_service_are_for_connections_of_their_own() {
    let first = by_address().layer(service_fn(|_: Request<()>| async {
        Ok::<_, Infallible>(Response::new(String::new()))
    }));
    let (one, other) = (first.clone(), first.clone());
    assert!(!one.limits.is_of(&other.limits) && !one.limits.is_of(&first.limits));
    assert!(one.limits.is_of(&one.clone().limits));
    assert!(Arc::ptr_eq(&one.limits.of_all(), &other.limits.of_all()));
}
