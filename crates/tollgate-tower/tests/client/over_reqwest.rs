//! reqwest against a server on the loopback interface.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::Mutex;

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use reqwest::{Method, Request};
use tokio::net::TcpListener;
use tollgate_tower::client::{ClientError, ClientLimitLayer};
use tower::{Layer, ServiceExt};

/// Refuses every second request, and counts them.
async fn server() -> (String, Arc<Mutex<Vec<Method>>>) {
    answers(|number| match number % 2 {
        0 => Response::new(Full::new(Bytes::from_static(b"hello"))),
        _ => refusal("0"),
    })
    .await
}

fn refusal(retry_after: &str) -> Response<Full<Bytes>> {
    let answer = Response::builder().status(StatusCode::TOO_MANY_REQUESTS);
    let answer = answer.header("retry-after", retry_after);
    answer.body(Full::default()).unwrap()
}

/// Answers the requests by their numbers, from 1, and notes their methods.
async fn answers(
    answer: impl Fn(usize) -> Response<Full<Bytes>> + Clone + Send + 'static,
) -> (String, Arc<Mutex<Vec<Method>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (answer, noted) = (answer.clone(), Arc::clone(&noted));
            tokio::spawn(async move {
                let service = service_fn(move |request: http::Request<_>| {
                    let _: &hyper::body::Incoming = request.body();
                    let mut noted = noted.lock().unwrap();
                    noted.push(request.method().clone());
                    let answer = answer(noted.len());
                    async { Ok::<_, Infallible>(answer) }
                });
                let io = TokioIo::new(stream);
                let builder = Builder::new(TokioExecutor::new());
                _ = builder.serve_connection(io, service).await;
            });
        }
    });
    (url, asked)
}

#[tokio::test]
async fn refused_requests_are_sent_again_and_streams_are_not() {
    let (url, asked) = server().await;
    let client = ClientLimitLayer::new().layer(reqwest::Client::new());

    let mut request = Request::new(Method::POST, url.parse().unwrap());
    *request.body_mut() = Some("a body".into());
    let answer = client.clone().oneshot(request).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.text().await.unwrap(), "hello");
    assert_eq!(*asked.lock().unwrap(), [Method::POST, Method::POST]);
}

#[tokio::test]
async fn errors_of_reqwest_pass_through() {
    // No server listens there.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let client = ClientLimitLayer::new().layer(reqwest::Client::new());
    let request = Request::new(Method::GET, url.parse().unwrap());
    match client.oneshot(request).await {
        Err(ClientError::Inner(error)) => assert!(error.is_connect()),
        other => panic!("{other:?}"),
    }
}

/// reqwest follows redirects by itself. Another server's limits do not hold for the first one.
#[tokio::test]
async fn what_another_server_says_after_a_redirect_does_not_count() {
    let (other, refused) = answers(|_| refusal("3600")).await;
    let (url, asked) = answers(move |number| match number {
        1 => Response::builder()
            .status(StatusCode::TEMPORARY_REDIRECT)
            .header("location", &other)
            .body(Full::default())
            .unwrap(),
        _ => Response::new(Full::new(Bytes::from_static(b"hello"))),
    })
    .await;
    let client = ClientLimitLayer::new().layer(reqwest::Client::new());
    let get = || Request::new(Method::GET, url.parse().unwrap());
    let answer = client.clone().oneshot(get()).await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), refused.lock().unwrap().len()),
        (429, 1)
    );
    // If the first server were held for an hour, this would fail at once.
    let answer = client.clone().oneshot(get()).await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), asked.lock().unwrap().len()),
        (200, 2)
    );
}
