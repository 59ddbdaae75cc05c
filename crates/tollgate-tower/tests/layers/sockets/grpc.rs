//! tonic: denials, names of services, streams, and what counts as a failure.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tollgate::{Concurrency, Keyed, Limiter, ManualClock, Quota, TokenBucket};
use tollgate_tower::{CountedRequests, RateLimitLayer};
use tonic::client::Grpc;
use tonic::server::NamedService;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Response, Status};
use tonic_types::StatusExt;
use tower::Layer;

use crate::sockets::echo::{Echo, Raw, SAY, STREAM};
use crate::sockets::server::Server;

/// The senders of streams, in the order of their calls.
type Streams = mpsc::UnboundedReceiver<mpsc::Sender<Result<Bytes, Status>>>;

fn echo() -> (Echo, Streams) {
    let (streams, receiver) = mpsc::unbounded_channel();
    (Echo { streams }, receiver)
}

fn bucket(quota: Quota) -> TokenBucket {
    TokenBucket::new(quota).unwrap()
}

/// Serves with a layer around all services.
macro_rules! serve {
    ($layer:expr, $echo:expr) => {{
        let (layer, echo) = ($layer, $echo);
        let serve = |listener, stopped: oneshot::Receiver<()>| async move {
            let server = tonic::transport::Server::builder()
                .layer(layer)
                .add_service(echo);
            let stopped = async { stopped.await.unwrap_or(()) };
            let incoming = TcpIncoming::from(listener);
            server
                .serve_with_incoming_shutdown(incoming, stopped)
                .await
                .unwrap();
        };
        Server::start(serve).await
    }};
}

async fn connect(address: SocketAddr) -> Grpc<Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    Grpc::new(endpoint.connect().await.unwrap())
}

async fn call(
    client: &mut Grpc<Channel>,
    path: PathAndQuery,
    message: &'static str,
) -> Result<Response<Bytes>, Status> {
    client.ready().await.unwrap();
    let message = Bytes::from_static(message.as_bytes());
    client.unary(tonic::Request::new(message), path, Raw).await
}

#[tokio::test]
async fn a_denied_call_says_when_to_come_back() {
    let clock = ManualClock::new();
    let quota = Quota::per_minute(40).burst(2);
    let table = Keyed::with_clock(bucket(quota), 100, clock.clone()).unwrap();
    let table = Arc::new(table);
    let server = serve!(
        RateLimitLayer::by_address(Arc::clone(&table)).grpc(),
        echo().0
    );
    let mut denied = 0;
    for connection in 0..20 {
        let mut client = connect(server.address).await;
        let answer = call(&mut client, SAY, "hello").await;
        match answer {
            Ok(answer) => assert_eq!(
                (connection < 2, &answer.get_ref()[..]),
                (true, &b"hello"[..])
            ),
            Err(status) => {
                denied += 1;
                assert_eq!(status.code(), Code::ResourceExhausted);
                assert_eq!(status.message(), "too many requests: retry in 2 s");
                let info = status.get_details_retry_info().unwrap();
                assert_eq!(info.retry_delay, Some(Duration::from_millis(1500)));
                assert_eq!(status.metadata().get("retry-after").unwrap(), "2");
            }
        }
    }
    // The address is that of tonic's connections.
    let peer = IpAddr::from([127, 0, 0, 1]);
    assert_eq!(
        (denied, table.len(), table.key(&peer).available()),
        (18, 1, 0)
    );
    clock.advance(Duration::from_millis(1500));
    let mut client = connect(server.address).await;
    assert!(call(&mut client, SAY, "hello").await.is_ok());
    drop(client);
    server.stop().await;
}

/// A cap of 5/s lets 5 of 1500 connections through, and 5 more after a second.
#[tokio::test]
async fn a_limit_is_shared_by_all_connections() {
    let clock = ManualClock::new();
    let limiter = Limiter::with_clock(bucket(Quota::per_second(5)), clock.clone());
    let server = serve!(RateLimitLayer::shared(limiter).grpc(), echo().0);
    let address = server.address;
    let admitted = async |connections: usize| {
        let mut admitted = 0;
        for first in (0..connections).step_by(100) {
            let mut tasks = JoinSet::new();
            for _ in first..connections.min(first + 100) {
                tasks.spawn(async move {
                    let mut client = connect(address).await;
                    call(&mut client, SAY, "hello").await
                });
            }
            while let Some(answer) = tasks.join_next().await {
                match answer.unwrap() {
                    Ok(_) => admitted += 1,
                    Err(status) => assert_eq!(status.code(), Code::ResourceExhausted),
                }
            }
        }
        admitted
    };
    assert_eq!(admitted(1500).await, 5);
    for (millis, more) in [(200, 1), (199, 0), (1, 1), (1000, 5)] {
        clock.advance(Duration::from_millis(millis));
        assert_eq!(admitted(20).await, more, "{millis} ms");
    }
    server.stop().await;
}

#[test]
fn a_service_keeps_its_name() {
    fn name<S: NamedService>(_: &S) -> &'static str {
        S::NAME
    }
    let limiter = Limiter::with_clock(bucket(Quota::per_second(1)), ManualClock::new());
    let service = RateLimitLayer::shared(limiter).layer(echo().0);
    assert_eq!(name(&service), "test.Echo");
}

/// A limit around one service, and none around the others.
#[tokio::test]
async fn one_service_of_a_server() {
    let limiter = Limiter::with_clock(bucket(Quota::per_second(1)), ManualClock::new());
    let service = RateLimitLayer::shared(limiter).grpc().layer(echo().0);
    let server = serve!(tower::layer::util::Identity::new(), service);
    let mut client = connect(server.address).await;
    assert!(call(&mut client, SAY, "a").await.is_ok());
    assert_eq!(
        call(&mut client, SAY, "b").await.unwrap_err().code(),
        Code::ResourceExhausted
    );
    let other = PathAndQuery::from_static("/test.Other/Say");
    assert_eq!(
        call(&mut client, other, "c").await.unwrap_err().code(),
        Code::Unimplemented
    );
    drop(client);
    server.stop().await;
}

/// Each message arrives before the next one is sent, and the place is left with the trailers.
#[tokio::test]
async fn streams_pass_through() {
    let places = Arc::new(Concurrency::new(1).unwrap());
    let (echo, mut streams) = echo();
    let server = serve!(
        RateLimitLayer::concurrency(Arc::clone(&places)).grpc(),
        echo
    );
    let mut client = connect(server.address).await;
    for ending in [Ok(()), Err(Status::data_loss("the end is missing"))] {
        client.ready().await.unwrap();
        let request = tonic::Request::new(Bytes::from_static(b"a stream"));
        let answer = client.server_streaming(request, STREAM, Raw).await.unwrap();
        let mut messages = answer.into_inner();
        let sender = streams.recv().await.unwrap();
        for number in 0..10_u8 {
            sender
                .send(Ok(Bytes::from(vec![number; 1000])))
                .await
                .unwrap();
            assert_eq!(
                messages.message().await.unwrap().unwrap(),
                vec![number; 1000]
            );
            assert_eq!(places.inside(), 1);
        }
        // gRPC has one status for all overloads.
        let busy = call(&mut client, SAY, "busy").await.unwrap_err();
        assert_eq!(busy.code(), Code::ResourceExhausted);
        assert!(busy.get_details_retry_info().is_none());
        if let Err(status) = &ending {
            sender.send(Err(status.clone())).await.unwrap();
        }
        drop(sender);
        match (messages.message().await, ending) {
            (Ok(None), Ok(())) => assert!(messages.trailers().await.unwrap().is_some()),
            (Err(status), Err(expected)) => assert_eq!(status.message(), expected.message()),
            other => panic!("{other:?}"),
        }
        assert_eq!(places.inside(), 0);
    }
    drop(client);
    server.stop().await;
}

/// The status of HTTP is 200 whatever came of the call.
#[tokio::test]
async fn calls_that_fail_count_as_failures() {
    let limiter = Limiter::with_clock(bucket(Quota::per_hour(2)), ManualClock::new());
    let limiter = Arc::new(limiter);
    let (echo, mut streams) = echo();
    let layer = RateLimitLayer::shared(Arc::clone(&limiter))
        .grpc()
        .count(CountedRequests::Failures);
    let server = serve!(layer, echo);
    let mut client = connect(server.address).await;
    for _ in 0..9 {
        assert!(call(&mut client, SAY, "right").await.is_ok());
    }
    // `NOT_FOUND` is not a failure.
    let absent = call(&mut client, SAY, "absent").await.unwrap_err();
    assert_eq!(absent.code(), Code::NotFound);
    assert_eq!(limiter.available(), 2);
    // This status is in the headers.
    assert_eq!(
        call(&mut client, SAY, "fail").await.unwrap_err().code(),
        Code::Unauthenticated
    );
    assert_eq!(limiter.available(), 1);
    // This one is in the trailers.
    client.ready().await.unwrap();
    let request = tonic::Request::new(Bytes::new());
    let mut messages = client
        .server_streaming(request, STREAM, Raw)
        .await
        .unwrap()
        .into_inner();
    let sender = streams.recv().await.unwrap();
    sender.send(Ok(Bytes::from_static(b"a"))).await.unwrap();
    sender
        .send(Err(Status::permission_denied("no more")))
        .await
        .unwrap();
    drop(sender);
    assert!(messages.message().await.is_ok());
    assert_eq!(
        messages.message().await.unwrap_err().code(),
        Code::PermissionDenied
    );
    assert_eq!(limiter.available(), 0);
    let denied = call(&mut client, SAY, "right").await.unwrap_err();
    assert_eq!(denied.code(), Code::ResourceExhausted);
    drop((client, messages));
    server.stop().await;
}
