//! Clients that strain HTTP/2.

use bytes::Bytes;
use h2::Reason;
use h2::client::SendRequest;
use http::{HeaderValue, Request};
use serde_json::json;
use tokio::net::TcpStream;

use crate::Running;

const POLICY: &str = "[[rule]]\nname = 'user'\nkey = 'user'\nlimit = '1000000/365d'";

async fn connect(service: &Running) -> SendRequest<Bytes> {
    let stream = TcpStream::connect(service.address).await.unwrap();
    // With a small window, the answers of a thousand requests come in pieces of a byte, and the
    // client takes that for an attack.
    let mut builder = h2::client::Builder::new();
    builder.initial_connection_window_size(1024 * 1024);
    let (client, connection) = builder.handshake(stream).await.unwrap();
    tokio::spawn(connection);
    client.ready().await.unwrap()
}

async fn is_served(service: &Running) {
    let said = service.decide(json!({"facts": {"user": "ann"}})).await;
    assert_eq!(said["allowed"], true);
}

fn question() -> Request<()> {
    Request::post("http://tollgate/decide").body(()).unwrap()
}

#[tokio::test]
async fn many_requests_at_once_are_all_answered() {
    let service = Running::start(POLICY).await;
    let mut client = connect(&service).await;
    // With the first answer the client knows how many requests the service takes at once.
    let (answer, _) = client.send_request(question(), true).unwrap();
    assert_eq!(answer.await.unwrap().status(), 400);
    let mut answers = tokio::task::JoinSet::new();
    for _ in 0..3000 {
        client = client.ready().await.unwrap();
        let (answer, mut body) = client.send_request(question(), false).unwrap();
        let ask = Bytes::from_static(b"{\"facts\": {\"user\": \"bob\"}}");
        body.send_data(ask, true).unwrap();
        answers.spawn(async move {
            let answer = answer.await.unwrap();
            assert_eq!(answer.status(), 200);
            let mut body = answer.into_body();
            while let Some(data) = body.data().await {
                let taken = data.unwrap().len();
                body.flow_control().release_capacity(taken).unwrap();
            }
        });
    }
    answers.join_all().await;
    is_served(&service).await;
    service.end().await;
}

/// Begins this many requests, and resets each at once. Returns how often the service ended the
/// connection.
async fn reset(service: &Running, requests: usize, has_body: bool) -> usize {
    let mut ended = 0;
    let mut client = connect(service).await;
    for _ in 0..requests {
        client = match client.ready().await {
            Ok(client) => client,
            Err(_) => {
                ended += 1;
                connect(service).await
            }
        };
        if let Ok((_, mut body)) = client.send_request(question(), false) {
            if has_body {
                let _ = body.send_data(Bytes::from_static(b"{\"facts\": "), false);
            }
            body.send_reset(Reason::CANCEL);
        }
    }
    ended
}

async fn resets_leave_nothing_behind(requests: usize) {
    let service = Running::start(POLICY).await;
    for has_body in [false, true] {
        let ended = reset(&service, requests, has_body).await;
        println!(
            "{requests} resets, with a body {has_body}: the service ended {ended} connections"
        );
        is_served(&service).await;
    }
    service.until_open(1).await;
    while service.metric("tollgate_pending_bytes").await > 0 {
        tokio::task::yield_now().await;
    }
    service.end().await;
}

#[tokio::test]
async fn requests_that_are_reset_leave_nothing_behind() {
    resets_leave_nothing_behind(2000).await;
}

#[tokio::test]
#[ignore = "takes a minute: scripts/deep runs it"]
async fn many_requests_that_are_reset_leave_nothing_behind() {
    resets_leave_nothing_behind(200_000).await;
}

#[tokio::test]
async fn headers_that_are_too_large_are_refused() {
    let service = Running::start(POLICY).await;
    // In one field, and in many.
    for (fields, bytes) in [(1, 100_000), (1000, 100)] {
        let mut client = connect(&service).await;
        let mut request = question();
        for n in 0..fields {
            let name: http::HeaderName = format!("x-{n}").parse().unwrap();
            let value = HeaderValue::from_str(&"x".repeat(bytes)).unwrap();
            request.headers_mut().insert(name, value);
        }
        let (answer, _body) = client.send_request(request, false).unwrap();
        if let Ok(answer) = answer.await {
            assert_eq!(answer.status(), 431);
        }
        is_served(&service).await;
    }
    service.end().await;
}
