//! The service ends: requests that have begun are answered, within a time.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Running;

const POLICY: &str = "[[rule]]\nname = 'user'\nkey = 'user'\nlimit = '5/d'";

/// Begins a request, and returns the connection when the service has read its head.
async fn begin(service: &Running, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(service.address).await.unwrap();
    let head = format!(
        "POST /decide HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\nexpect: 100-continue\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut continued = [0; 25];
    stream.read_exact(&mut continued).await.unwrap();
    assert_eq!(&continued, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream
}

#[tokio::test]
async fn operators_see_how_it_ends() {
    let body = "{\"facts\": {\"user\": \"ann\"}}";
    let mut service = Running::start_with(POLICY, |settings| {
        settings.limits.body_time = Duration::from_secs(3600);
        settings.limits.drain = Duration::from_secs(3600);
    })
    .await;
    let mut stream = begin(&service, body).await;
    service.begin_end();
    let url = format!("http://{}/readyz", service.admin);
    while service.client.get(&url).send().await.unwrap().status() != 503 {
        tokio::task::yield_now().await;
    }
    // Nothing more is accepted.
    while TcpStream::connect(service.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert_eq!(service.metric("tollgate_connections").await, 1);
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.contains("\"allowed\":true"), "{answer}");
    service.end().await;
}

#[tokio::test]
async fn requests_that_take_too_long_are_cut_off() {
    let service = Running::start_with(POLICY, |settings| {
        settings.limits.body_time = Duration::from_secs(3600);
        settings.limits.drain = Duration::ZERO;
    })
    .await;
    let mut begun = begin(&service, "{}").await;
    let mut silent = TcpStream::connect(service.address).await.unwrap();
    service.until_open(2).await;
    service.end().await;
    for stream in [&mut begun, &mut silent] {
        assert!(matches!(stream.read(&mut [0]).await, Ok(0) | Err(_)));
    }
}
