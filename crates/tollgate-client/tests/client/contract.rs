//! Tower's contract, and its layers.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use http::{Request, Response};
use tollgate_client::{ClientLimitLayer, ClientRequest};
use tower::{Layer, Service, ServiceExt};

use crate::served::{answer, get};

/// A service that panics if it is called without having said that it is ready. Each clone has to be
/// asked anew.
#[derive(Debug, Default)]
struct Strict {
    is_ready: bool,
    asked_twice: bool,
    calls: Arc<Mutex<usize>>,
}

impl Clone for Strict {
    fn clone(&self) -> Self {
        Self {
            calls: Arc::clone(&self.calls),
            ..Self::default()
        }
    }
}

impl Service<Request<()>> for Strict {
    type Response = Response<()>;
    type Error = Infallible;
    type Future = Ready<Result<Response<()>, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        if !self.asked_twice {
            self.asked_twice = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.is_ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        assert!(self.is_ready, "called without being ready");
        (self.is_ready, self.asked_twice) = (false, false);
        let mut calls = self.calls.lock().unwrap();
        *calls += 1;
        ready(Ok(match *calls % 3 {
            1 => answer(503, &[]),
            2 => answer(429, &[("retry-after", "1")]),
            _ => answer(200, &[]),
        }))
    }
}

#[tokio::test(start_paused = true)]
async fn the_inner_service_is_ready_before_each_call() {
    let strict = Strict::default();
    let mut client = ClientLimitLayer::new().layer(strict.clone());
    for _ in 0..3 {
        // The same service again, and clones of it that wait.
        let sent = client
            .ready()
            .await
            .unwrap()
            .call(get("https://a.example.com/"));
        assert_eq!(sent.await.unwrap().status(), 200);
        let sent = client.clone().oneshot(get("https://a.example.com/"));
        assert_eq!(sent.await.unwrap().status(), 200);
    }
    assert_eq!(*strict.calls.lock().unwrap(), 18);
}

#[tokio::test(start_paused = true)]
async fn it_works_before_a_buffer() {
    let strict = Strict::default();
    let client = tower::ServiceBuilder::new()
        .layer(ClientLimitLayer::new())
        .buffer(8)
        .service(strict);
    let sent = client.oneshot(get("https://a.example.com/"));
    assert_eq!(sent.await.unwrap().status(), 200);
}

#[test]
fn clients_and_their_futures_can_be_sent_to_other_threads() {
    fn check<T: Send>(_: &T) {}
    let client = ClientLimitLayer::new().layer(Strict::default());
    check(&client);
    check(&client.oneshot(get("https://a.example.com/")));
}

/// Headers, queries and user names of URIs are often secret, and such texts end in logs.
#[test]
fn heads_hide_what_is_sent() {
    let secret = "hunter2";
    let uri = format!("http://ann:{secret}@example.com/page?token={secret}");
    let request = Request::get(uri).header("authorization", format!("Bearer {secret}"));
    let request = request.header("cookie", format!("session={secret}"));
    let request = request.header("x-api-key", secret).extension(secret);
    let request = request.body(()).unwrap();
    let text = format!("{:?} {:#?}", request.head(), request.head());
    assert!(!text.contains(secret), "{text}");
}
