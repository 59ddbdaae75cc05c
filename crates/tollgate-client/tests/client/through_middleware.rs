//! The layer as a middleware, against a server on the loopback interface.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use http::Extensions;
use reqwest::{Method, Request, Response};
use reqwest_middleware::{ClientBuilder, Error, Next};
use tollgate::Quota;
use tollgate_client::{ClientLimitError, ClientLimitLayer};

use crate::over_reqwest::server;

type Answered<'a> = Pin<Box<dyn Future<Output = Result<Response, Error>> + Send + 'a>>;

/// How many attempts a middleware has seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Attempts(usize);

fn count<'a>(request: Request, extensions: &'a mut Extensions, next: Next<'a>) -> Answered<'a> {
    extensions.get_or_insert_default::<Attempts>().0 += 1;
    next.run(request, extensions)
}

/// Adds what was counted to the answer.
fn tell<'a>(request: Request, extensions: &'a mut Extensions, next: Next<'a>) -> Answered<'a> {
    Box::pin(async move {
        let mut answer = next.run(request, extensions).await?;
        let attempts = extensions.get::<Attempts>().copied();
        answer.extensions_mut().insert(attempts);
        Ok(answer)
    })
}

#[tokio::test]
async fn each_attempt_passes_the_middlewares_that_follow() {
    let (url, asked) = server().await;
    let client = ClientBuilder::new(reqwest::Client::new())
        .with(tell)
        .with(ClientLimitLayer::new())
        .with(count)
        .build();
    let answer = client.post(&url).body("a body").send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let attempts = answer.extensions().get::<Option<Attempts>>();
    assert_eq!(attempts, Some(&Some(Attempts(2))));
    assert_eq!(answer.text().await.unwrap(), "hello");
    assert_eq!(*asked.lock().unwrap(), [Method::POST, Method::POST]);
}

#[tokio::test]
async fn requests_share_the_quota_of_their_layer() {
    let (url, asked) = server().await;
    let layer = ClientLimitLayer::new().quota(Quota::per_hour(1)).unwrap();
    let layer = layer.max_attempts(1).max_wait(Duration::from_secs(1));
    let client = ClientBuilder::new(reqwest::Client::new())
        .with(layer)
        .build();
    assert_eq!(client.get(&url).send().await.unwrap().status(), 429);
    let Err(Error::Middleware(error)) = client.get(&url).send().await else {
        panic!("the quota is used up");
    };
    let error = error.downcast_ref::<ClientLimitError<Error>>();
    assert!(
        matches!(error, Some(ClientLimitError::WaitTooLong { .. })),
        "{error:?}"
    );
    assert_eq!(asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn errors_of_reqwest_stay_what_they_are() {
    let client = ClientBuilder::new(reqwest::Client::new());
    let client = client.with(ClientLimitLayer::new().max_attempts(1)).build();
    let error = client.get("http://127.0.0.1:0/").send().await.unwrap_err();
    assert!(matches!(error, Error::Reqwest(_)), "{error:?}");
}
