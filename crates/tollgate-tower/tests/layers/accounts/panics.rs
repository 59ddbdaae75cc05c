//! Functions of the program that panic: nothing is lost, and the process goes on.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use http::{Request, Response};
use tollgate::{
    Concurrency, Keyed, LeakyBucket, Limiter, ManualClock, Quota, TokenBucket, TryAcquire,
};
use tollgate_http::RequestFacts;
use tollgate_policy::{LivePolicy, Policy};
use tollgate_tower::{Admission, CountedRequests, Ended, MissingKey, RateLimitLayer};
use tower::{Layer, Service, ServiceExt};

use crate::accounts::flights::{Flights, Polled};
use crate::accounts::scripted::{Answer, Ending, Script, Scripted};
use crate::clock::paused;

fn bucket() -> TokenBucket {
    TokenBucket::new(Quota::per_hour(9)).unwrap()
}

fn script(id: usize, answer: Answer) -> Script {
    let polls = 0;
    Script { id, polls, answer }
}

const FINE: Answer = Answer::Status {
    status: 200,
    cost: 0,
    frames: 0,
    ending: Ending::Complete,
};

fn request(answer: Answer) -> Request<()> {
    let request = Request::get("/").header("x-key", "a");
    request.extension(script(0, answer)).body(()).unwrap()
}

/// Panics without a message.
fn panics() -> ! {
    std::panic::resume_unwind(Box::new("a function of the program"))
}

/// Sends a request to the end, through panics. Returns whether it came so far that it was sent.
fn send<A: Admission + Clone>(layer: &RateLimitLayer<A>, request: Request<()>) -> bool {
    let mut flights = Flights::new(layer.layer(Scripted::default()));
    flights.call(0, request);
    let was_sent = flights.len() > 0;
    while flights.len() > 0 {
        // What settles may panic when the request is dropped.
        let _ = catch_unwind(AssertUnwindSafe(|| flights.poll(0)));
    }
    was_sent
}

#[test]
fn before_the_limits_are_asked() {
    let limiter = Arc::new(Limiter::with_clock(bucket(), ManualClock::new()));
    let shared = RateLimitLayer::shared(Arc::clone(&limiter)).count(CountedRequests::Failures);
    assert!(!send(&shared.clone().cost(|_| panics()), request(FINE)));
    assert!(!send(&shared.exempt_if(|_| panics()), request(FINE)));
    assert_eq!(limiter.available(), 9);

    let table = Keyed::with_clock(bucket(), 9, ManualClock::new()).unwrap();
    let table = Arc::new(table);
    let key = |_: &RequestFacts<'_>| -> Option<u64> { panics() };
    let keyed = RateLimitLayer::by_key(Arc::clone(&table), key).count(CountedRequests::Failures);
    assert!(!send(&keyed, request(FINE)));
    assert!(table.is_empty());
}

/// A key that panics when it is asked again, or is another one then, can lose nothing: it is asked
/// once.
#[test]
fn a_key_is_found_once() {
    let table = Keyed::with_clock(bucket(), 9, ManualClock::new()).unwrap();
    let table = Arc::new(table);
    let calls = Arc::new(Concurrency::new(1000).unwrap());
    let counted = Arc::clone(&calls);
    let key = move |_: &RequestFacts<'_>| {
        std::mem::forget(counted.try_enter_owned(1));
        Some(counted.inside())
    };
    let layer = RateLimitLayer::by_key(Arc::clone(&table), key).count(CountedRequests::Failures);
    assert!(send(&layer, request(FINE)));
    assert_eq!((calls.inside(), table.key(&1_u64).available()), (1, 9));
    let wrong = Answer::Status {
        status: 401,
        cost: 0,
        frames: 0,
        ending: Ending::Complete,
    };
    assert!(send(&layer, request(wrong)));
    assert_eq!((calls.inside(), table.key(&2_u64).available()), (2, 8));
}

#[test]
fn facts_of_a_policy() {
    let text = "
        apply = 'all'
        [[rule]]
        name = 'a'
        limit = '9/h'
        [[rule]]
        name = 'b'
        key = 'user'
        limit = 'concurrency 1'";
    let policy = Policy::builder()
        .clock(ManualClock::new())
        .build_toml(text)
        .unwrap();
    let live = Arc::new(LivePolicy::new(policy));
    let layer = RateLimitLayer::policy(Arc::clone(&live));
    let layer = layer.facts(|_, name| (name.as_str() == "user").then(|| panics()));
    assert!(!send(&layer, request(FINE)));
    assert_eq!(live.decide(&[("user", "ann")]).remaining(), Some(0));
    let _ = live
        .reload_toml("[[rule]]\nname = 'a'\nlimit = '9/h'")
        .unwrap();
    assert_eq!(live.decide(&()).remaining(), Some(7));
}

fn with_answer(ended: &Ended<'_>) -> u64 {
    match ended.status() {
        Some(_) => 0,
        None => panics(),
    }
}

/// What settles panics: the grant stays as it is, and is not counted twice.
#[test]
fn what_settles() {
    for answer in [Answer::Panic, Answer::PanicInCall, Answer::Error] {
        let limiter = Arc::new(Limiter::with_clock(bucket(), ManualClock::new()));
        let shared = RateLimitLayer::shared(Arc::clone(&limiter));
        let layer = shared.cost(|_| 4).settle(with_answer);
        send(&layer, request(answer));
        assert_eq!(limiter.available(), 5, "{answer:?}");
        send(&layer, request(FINE));
        assert_eq!(limiter.available(), 5, "{answer:?}");
    }
    let text = "
        apply = 'all'
        [[rule]]
        name = 'a'
        limit = '9/h'
        count = 'failures'
        [[rule]]
        name = 'b'
        limit = 'concurrency 1'";
    let policy = Policy::builder()
        .clock(ManualClock::new())
        .build_toml(text)
        .unwrap();
    let live = Arc::new(LivePolicy::new(policy));
    let layer = RateLimitLayer::policy(Arc::clone(&live)).failure_if(|_| panics());
    for left in (4..9).rev() {
        assert!(send(&layer, request(FINE)));
        let decision = live.decide(&());
        let asked = decision.asked().map(|asked| asked.remaining());
        assert_eq!(asked.collect::<Vec<_>>(), [left - 1, 0]);
        decision.undo();
    }
}

/// Tokio drops a task that panics while it unwinds. A second panic would end the process, if it got
/// out of the drop.
#[test]
fn what_settles_while_the_handler_unwinds() {
    let limiter = Arc::new(Limiter::with_clock(bucket(), ManualClock::new()));
    let shared = RateLimitLayer::shared(Arc::clone(&limiter));
    let layer = shared.cost(|_| 4).settle(with_answer);
    let service = layer.layer(Scripted::default());
    paused().block_on(async {
        let task = tokio::spawn(service.clone().oneshot(request(Answer::Panic)));
        assert!(task.await.unwrap_err().is_panic());
    });
    assert_eq!(limiter.available(), 5);

    let called = catch_unwind(AssertUnwindSafe(|| {
        let mut service = service.clone();
        assert!(poll_ready(&mut service));
        drop(service.call(request(Answer::PanicInCall)));
    }));
    assert!(called.is_err());
    assert_eq!(limiter.available(), 1);
}

fn poll_ready<S: Service<Request<()>>>(service: &mut S) -> bool {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    service.poll_ready(&mut context).is_ready()
}

/// A service that panics after a wait has left the line, and gives its place to the next.
#[test]
fn a_call_after_a_wait() {
    paused().block_on(async {
        let limiter = Arc::new(Concurrency::new(1).unwrap());
        let layer = RateLimitLayer::concurrency(Arc::clone(&limiter));
        let layer = layer.wait(std::time::Duration::from_secs(9), 1).unwrap();
        let mut flights = Flights::new(layer.layer(Scripted::default()));
        for round in 0..3 {
            flights.call(0, request(FINE));
            flights.call(1, request(Answer::PanicInCall));
            assert_eq!(flights.len(), 2, "round {round}");
            assert!(matches!(flights.poll(1), Polled::Flies));
            flights.drop_at(0);
            assert!(matches!(flights.poll(0), Polled::Over));
            assert_eq!((limiter.inside(), limiter.waiting()), (0, 0));
        }
    });
}

#[test]
fn a_key_that_is_missing_is_looked_for_once() {
    for exempts in [false, true] {
        let calls = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&calls);
        let key = move |_: &RequestFacts<'_>| -> Option<u64> {
            *counted.lock().unwrap() += 1;
            None
        };
        let table = Keyed::with_clock(bucket(), 9, ManualClock::new()).unwrap();
        let layer = RateLimitLayer::by_key(table, key).missing(MissingKey::Share);
        let layer = match exempts {
            // A layer that needs more than the key takes another path.
            true => layer.exempt_if(|_| false),
            false => layer,
        };
        assert!(send(&layer, request(FINE)));
        assert_eq!(*calls.lock().unwrap(), 1);
    }
}

/// Its clones can't be made.
#[derive(Debug)]
struct Single;

impl Clone for Single {
    fn clone(&self) -> Self {
        panics()
    }
}

impl Service<Request<()>> for Single {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        ready(Ok(Response::new(String::new())))
    }
}

#[test]
fn the_clone_for_a_request_that_waits() {
    let queue = LeakyBucket::queue(Quota::per_hour(3600).burst(5)).unwrap();
    let limiter = Arc::new(Limiter::with_clock(queue, ManualClock::new()));
    let mut service = RateLimitLayer::shared(Arc::clone(&limiter)).layer(Single);
    drop(service.call(Request::new(())));
    let before = limiter.available();
    let waits = || drop(service.call(Request::new(())));
    assert!(catch_unwind(AssertUnwindSafe(waits)).is_err());
    assert_eq!(limiter.available(), before);
}

/// A request whose decision can't be told is not served: what it cost in the end is settled.
#[test]
fn what_is_told() {
    for waits in [false, true] {
        paused().block_on(async {
            let queue = LeakyBucket::queue(Quota::per_second(1).burst(9)).unwrap();
            let limiter = Limiter::with_clock(queue, ManualClock::new());
            let limiter = Arc::new(limiter);
            if waits {
                let _ = limiter.try_acquire().unwrap();
            }
            let before = limiter.available();
            let shared = RateLimitLayer::shared(Arc::clone(&limiter));
            let layer = shared.count(CountedRequests::Successes);
            let layer = layer.on_decision(|_, _| panics());
            let service = layer.layer(Scripted::default());
            let task = tokio::spawn(service.oneshot(request(FINE)));
            assert!(task.await.unwrap_err().is_panic());
            assert_eq!(limiter.available(), before, "waits: {waits}");
        });
    }
}
