//! Bodies of HTTP pass through frame by frame, with their sizes and trailers.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body as AnyBody;
use axum::routing::get;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, Version};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::sync::mpsc;
use tollgate::Concurrency;
use tollgate_tower::RateLimitLayer;

use crate::sockets::client::{Client, VERSIONS};
use crate::sockets::server::Server;

/// A body whose frames a test sends.
struct FromTest(mpsc::Receiver<Frame<Bytes>>);

impl Body for FromTest {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|frame| frame.map(Ok))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

/// A server with a page of known size, and an endless stream of events.
async fn serve(places: &Arc<Concurrency>) -> (Server, mpsc::Sender<Frame<Bytes>>) {
    let (sender, receiver) = mpsc::channel(1);
    let receiver = Arc::new(Mutex::new(Some(receiver)));
    let events = move || {
        let receiver = receiver.lock().unwrap().take().unwrap();
        async move {
            let answer = Response::builder().header("content-type", "text/event-stream");
            answer
                .header("trailer", "x-sum")
                .body(AnyBody::new(FromTest(receiver)))
                .unwrap()
        }
    };
    let router = Router::new()
        .route("/events", get(events))
        .route("/page", get(|| async { "a page" }))
        .layer(RateLimitLayer::concurrency(Arc::clone(places)));
    (Server::axum(router).await, sender)
}

#[tokio::test]
async fn each_frame_arrives_before_the_next_is_sent() {
    for version in VERSIONS {
        let places = Arc::new(Concurrency::new(1).unwrap());
        let (server, sender) = serve(&places).await;
        let mut client = Client::connect(server.address, version).await;
        let events = client
            .send(client.get("/events").header("te", "trailers"))
            .await
            .unwrap();
        assert_eq!(events.status(), 200);
        assert!(!events.headers().contains_key("content-length"));
        let mut body = events.into_body();
        for number in 0..10 {
            let event = Bytes::from(format!("data: {number}\n\n"));
            sender.send(Frame::data(event.clone())).await.unwrap();
            let frame = body.frame().await.unwrap().unwrap();
            assert_eq!(frame.into_data().unwrap(), event);
            assert_eq!(places.inside(), 1, "{version:?}");
        }
        let sum = HeaderMap::from_iter([("x-sum".parse().unwrap(), HeaderValue::from(45))]);
        sender.send(Frame::trailers(sum.clone())).await.unwrap();
        let trailers = body.frame().await.unwrap().unwrap();
        assert_eq!(trailers.into_trailers().unwrap(), sum);
        assert!(body.frame().await.is_none());
        assert_eq!(places.inside(), 0, "{version:?}");
        drop((client, body));
        server.stop().await;
    }
}

#[tokio::test]
async fn the_size_of_a_page_is_known() {
    let places = Arc::new(Concurrency::new(1).unwrap());
    let (server, _sender) = serve(&places).await;
    let mut client = Client::connect(server.address, Version::HTTP_11).await;
    let page = client.send(client.get("/page")).await.unwrap();
    assert_eq!(page.headers()["content-length"], "6");
    assert_eq!(
        page.into_body().collect().await.unwrap().to_bytes(),
        "a page"
    );
    drop(client);
    server.stop().await;
}
