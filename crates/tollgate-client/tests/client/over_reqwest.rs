//! reqwest against a server on the loopback interface.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use reqwest::{Method, Request};
use tokio::net::TcpListener;
use tollgate_client::{ClientLimitError, ClientLimitLayer};
use tollgate_http::Fields;
use tower::{Layer, ServiceBuilder, ServiceExt};

use crate::served::Served;

/// Refuses every second request, and counts them.
pub(crate) async fn server() -> (String, Arc<Mutex<Vec<Method>>>) {
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
        Err(ClientLimitError::Inner(error)) => assert!(error.is_connect()),
        other => panic!("{other:?}"),
    }
}

/// reqwest follows redirects by itself. The first server has done what was asked.
#[tokio::test]
async fn a_post_that_was_redirected_is_not_sent_again() {
    let (url, asked) = answers(|number| match number {
        1 => Response::builder()
            .status(StatusCode::SEE_OTHER)
            .header("location", "/created")
            .body(Full::default())
            .unwrap(),
        _ => refusal("0"),
    })
    .await;
    let client = ClientLimitLayer::new().layer(reqwest::Client::new());
    let mut post = Request::new(Method::POST, format!("{url}#part").parse().unwrap());
    *post.body_mut() = Some("a body".into());
    let answer = client.clone().oneshot(post).await.unwrap();
    assert_eq!(answer.status(), 429);
    assert_eq!(*asked.lock().unwrap(), [Method::POST, Method::GET]);
    // One that was not redirected is sent again.
    let mut post = Request::new(Method::POST, format!("{url}#part").parse().unwrap());
    *post.body_mut() = Some("a body".into());
    let answer = client.clone().oneshot(post).await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), asked.lock().unwrap().len()),
        (429, 5)
    );
}

/// An answer that was made from parts has lost its URL.
#[tokio::test]
async fn answers_without_a_url_are_not_taken_for_redirected_ones() {
    let (url, asked) = server().await;
    let made = ServiceBuilder::new()
        .map_response(|answer: reqwest::Response| {
            reqwest::Response::from(http::Response::from(answer))
        })
        .service(reqwest::Client::new());
    let client = ClientLimitLayer::new().layer(made);
    let mut post = Request::new(Method::POST, url.parse().unwrap());
    *post.body_mut() = Some("a body".into());
    assert_eq!(client.oneshot(post).await.unwrap().status(), 200);
    assert_eq!(*asked.lock().unwrap(), [Method::POST, Method::POST]);
}

/// A client has a limit for itself. Another one takes all permits for ten seconds. Prints what the
/// first one uses from two windows later on.
#[tokio::test]
#[ignore = "takes 40 seconds, and asserts on wall-clock speed"]
async fn a_client_comes_back_when_the_server_has_room() {
    for (fields, least) in [(Fields::LIST, 0.8), (Fields::OFF, 0.5)] {
        let served = Served::new("token-bucket 10/s", fields, Duration::ZERO);
        let server = Arc::clone(&served);
        let (url, _) = answers(move |_| server.answer().map(Full::new)).await;
        let client = ClientLimitLayer::new().layer(reqwest::Client::new());
        for _ in 0..8 {
            let (client, url) = (client.clone(), url.clone());
            tokio::spawn(async move {
                loop {
                    let request = Request::new(Method::GET, url.parse().unwrap());
                    _ = client.clone().oneshot(request).await;
                }
            });
        }
        tokio::time::sleep(Duration::from_secs(3)).await;
        served.shut(true);
        tokio::time::sleep(Duration::from_secs(10)).await;
        let while_shut = served.counts();
        served.shut(false);
        tokio::time::sleep(Duration::from_secs(3)).await;
        _ = served.counts();
        tokio::time::sleep(Duration::from_secs(4)).await;
        let (granted, refused) = served.counts();
        println!("{fields:?}: {while_shut:?} before, then {granted} granted, {refused} refused");
        assert!(granted as f64 >= least * 40.0, "{granted}");
    }
}
