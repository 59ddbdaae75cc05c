//! Clients that ask, and do not read the answers.

use std::time::Duration;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use http::Request;
use serde_json::json;
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Running;

const POLICY: &str = "[[rule]]\nname = 'user'\nkey = 'user'\nlimit = '1000000/365d'";

/// A body whose answer is large.
fn questions() -> Vec<u8> {
    let ask = json!({"facts": {"user": "ann"}});
    json!(vec![ask; 500]).to_string().into_bytes()
}

/// Connects as a client that lets an answer have this many bytes.
async fn connect(service: &Running, window: u32) -> SendRequest<Bytes> {
    let stream = TcpStream::connect(service.address).await.unwrap();
    let mut builder = h2::client::Builder::new();
    builder.initial_window_size(window);
    let (client, connection) = builder.handshake(stream).await.unwrap();
    tokio::spawn(connection);
    client.ready().await.unwrap()
}

/// Sends a question. `None` if the connection has ended.
async fn ask(client: SendRequest<Bytes>) -> Option<(SendRequest<Bytes>, ResponseFuture)> {
    let mut client = client.ready().await.ok()?;
    let request = Request::post("http://tollgate/decide").body(()).unwrap();
    let (answer, mut body) = client.send_request(request, false).ok()?;
    body.send_data(questions().into(), true).ok()?;
    Some((client, answer))
}

#[tokio::test]
async fn answers_that_are_not_taken_end_the_connection() {
    let service = Running::start_with(POLICY, |settings| {
        settings.limits.body_time = Duration::from_millis(500);
    })
    .await;
    let mut client = connect(&service, 1).await;
    let mut answers = Vec::new();
    while service.metric("tollgate_connections_stalled_total").await == 0 {
        match ask(client.clone()).await {
            Some((next, answer)) if answers.len() < 100 => {
                client = next;
                answers.push(answer);
            }
            _ => tokio::task::yield_now().await,
        }
    }
    assert!(!answers.is_empty());
    service.until_open(0).await;
    while service.metric("tollgate_pending_bytes").await > 0 {
        tokio::task::yield_now().await;
    }
    service.end().await;
}

#[tokio::test]
async fn answers_have_a_memory_that_ends() {
    // An answer of 500 questions has about 50 KB, and the question 15 KB.
    let most = 200_000;
    let service = Running::start_with(POLICY, |settings| {
        settings.limits.body_time = Duration::from_secs(3600);
        settings.limits.pending_bytes = most;
    })
    .await;
    let mut client = connect(&service, 1).await;
    let mut answers = Vec::new();
    let (mut served, mut refused) = (0, 0);
    for _ in 0..20 {
        let (next, answer) = ask(client).await.unwrap();
        client = next;
        let answer = answer.await.unwrap();
        match answer.status().as_u16() {
            200 => served += 1,
            503 => refused += 1,
            status => panic!("{status}"),
        }
        answers.push(answer);
        assert!(service.metric("tollgate_pending_bytes").await <= most as u64);
    }
    assert!(served > 0 && refused > 0, "{served} {refused}");
    assert_eq!(
        service.metric("tollgate_pending_refused_total").await,
        refused
    );
    // Whoever leaves gives the memory back.
    drop((answers, client));
    service.until_open(0).await;
    while service.metric("tollgate_pending_bytes").await > 0 {
        tokio::task::yield_now().await;
    }
    let said = service.decide(json!({"facts": {"user": "ann"}})).await;
    assert_eq!(said["allowed"], true);
    service.end().await;
}

#[tokio::test]
async fn large_answers_come_whole() {
    let service = Running::start(POLICY).await;
    let client = connect(&service, 65_535).await;
    let (_client, answer) = ask(client).await.unwrap();
    let mut body = answer.await.unwrap().into_body();
    let mut all = Vec::new();
    while let Some(data) = body.data().await {
        let data = data.unwrap();
        body.flow_control().release_capacity(data.len()).unwrap();
        all.extend_from_slice(&data);
    }
    let said: serde_json::Value = serde_json::from_slice(&all).unwrap();
    assert_eq!(said.as_array().unwrap().len(), 500);
    assert_eq!(said[499]["limits"][0]["remaining"], 999_500);
    // And in HTTP/1.
    let (status, said) = service.post("/decide", questions()).await;
    assert_eq!(status, 200);
    assert_eq!(said[499]["limits"][0]["remaining"], 999_000);
    service.end().await;
}

const REQUEST: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n";

/// Sends requests one after the other, without an answer in between.
#[tokio::test]
async fn requests_in_a_row_are_answered_in_order() {
    let service = Running::start(POLICY).await;
    let stream = TcpStream::connect(service.address).await.unwrap();
    let (mut reads, mut writes) = stream.into_split();
    let writing = tokio::spawn(async move {
        for n in 0..2000 {
            let path = if n % 2 == 0 { "healthz" } else { "readyz" };
            let end = if n == 1999 {
                "connection: close\r\n"
            } else {
                ""
            };
            let request = format!("GET /{path} HTTP/1.1\r\nhost: a\r\n{end}\r\n");
            writes.write_all(request.as_bytes()).await.unwrap();
        }
        writes
    });
    let mut answers = String::new();
    reads.read_to_string(&mut answers).await.unwrap();
    let said = answers
        .lines()
        .filter(|line| ["ok", "ready"].contains(line));
    let said: Vec<_> = said.collect();
    assert_eq!(said.len(), 2000);
    assert!(said.chunks(2).all(|said| said == ["ok", "ready"]));
    drop(writing.await.unwrap());
    service.end().await;
}

/// A client that only writes is closed, when neither the system nor the service has room.
#[tokio::test]
async fn a_client_that_only_writes_is_closed() {
    let mut service = Running::start_with(POLICY, |settings| {
        settings.limits.body_time = Duration::from_millis(300);
        settings.limits.idle = Duration::from_millis(300);
    })
    .await;
    // The service closes idle connections so soon that none can be used again.
    let client = reqwest::Client::builder().pool_max_idle_per_host(0);
    service.client = client.build().unwrap();
    let mut stream = TcpStream::connect(service.address).await.unwrap();
    SockRef::from(&stream).set_recv_buffer_size(4096).unwrap();
    // The system keeps megabytes of them.
    let requests = REQUEST.repeat(2000);
    let writing = tokio::spawn(async move { while stream.write_all(&requests).await.is_ok() {} });
    while service.metric("tollgate_connections_total").await == 0 {}
    service.until_open(0).await;
    service.end().await;
    writing.abort();
}
