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
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let noted = Arc::clone(&noted);
            tokio::spawn(async move {
                let service = service_fn(move |request: http::Request<_>| {
                    let _: &hyper::body::Incoming = request.body();
                    let mut noted = noted.lock().unwrap();
                    noted.push(request.method().clone());
                    let answer = match noted.len() % 2 {
                        0 => Response::new(Full::new(Bytes::from_static(b"hello"))),
                        _ => Response::builder()
                            .status(StatusCode::TOO_MANY_REQUESTS)
                            .header("retry-after", "0")
                            .body(Full::default())
                            .unwrap(),
                    };
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
