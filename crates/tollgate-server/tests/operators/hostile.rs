//! Slow and hostile clients leave room for others.

use std::fs;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::json;
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Running;

const POLICY: &str = "[[rule]]\nname = 'user'\nkey = 'user'\nlimit = '1000000/365d'";

async fn is_served(service: &Running) {
    let said = service.decide(json!({"facts": {"user": "ann"}})).await;
    assert_eq!(said["allowed"], true);
}

/// What clients send that never send a whole request.
const BEGINNINGS: [&[u8]; 6] = [
    b"",
    b"G",
    b"GET /healthz HTTP/1.1\r\nx: ",
    b"POST /decide HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n{",
    b"PRI * HTTP/2.0\r\n\r\nSM",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
];

#[tokio::test]
async fn slow_clients_leave_room_for_others() {
    // None of them is closed while the test runs.
    let service = Running::start_with(POLICY, |settings| {
        settings.limits.body_time = Duration::from_secs(3600);
        settings.limits.idle = Duration::from_secs(3600);
    })
    .await;
    let mut slow = Vec::new();
    for n in 0..1000 {
        let mut stream = TcpStream::connect(service.address).await.unwrap();
        stream
            .write_all(BEGINNINGS[n % BEGINNINGS.len()])
            .await
            .unwrap();
        slow.push(stream);
    }
    service.until_open(1000).await;
    let mut times = Vec::new();
    for _ in 0..200 {
        let start = Instant::now();
        is_served(&service).await;
        times.push(start.elapsed());
    }
    times.sort();
    let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    println!("beside 1000 slow clients: p50 {p50:?}, p99 {p99:?}");
    drop(slow);
    // The one that is left is the test's own.
    service.until_open(1).await;
    service.end().await;
}

#[tokio::test]
async fn a_connection_without_a_request_is_closed() {
    let idle = Duration::from_millis(50);
    let service = Running::start_with(POLICY, |settings| {
        settings.limits.idle = idle;
        settings.limits.body_time = idle;
    })
    .await;
    for begun in BEGINNINGS {
        let mut stream = TcpStream::connect(service.address).await.unwrap();
        stream.write_all(begun).await.unwrap();
        // It is closed, with or without an answer.
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
        if begun.starts_with(b"POST") {
            let rest = String::from_utf8_lossy(&rest);
            assert!(rest.starts_with("HTTP/1.1 408 "), "{rest}");
        }
    }
    is_served(&service).await;
    service.end().await;
}

#[tokio::test]
async fn connections_beyond_the_limit_are_closed_at_once() {
    let service = Running::start_with(POLICY, |settings| {
        settings.limits.connections = 3;
        settings.limits.body_time = Duration::from_secs(3600);
        settings.limits.drain = Duration::ZERO;
    })
    .await;
    let mut kept = Vec::new();
    for _ in 0..3 {
        // They are not quiet: each has a request that has begun.
        let mut stream = TcpStream::connect(service.address).await.unwrap();
        let head = "POST /decide HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        kept.push(stream);
    }
    service.until_open(3).await;
    for _ in 0..20 {
        let mut stream = TcpStream::connect(service.address).await.unwrap();
        // The system may also say that the connection was reset.
        assert!(matches!(stream.read(&mut [0]).await, Ok(0) | Err(_)));
    }
    assert_eq!(
        service.metric("tollgate_connections_refused_total").await,
        20
    );
    kept.pop();
    service.until_open(2).await;
    is_served(&service).await;
    service.end().await;
}

/// Whoever has a place and does nothing with it loses it to others.
#[tokio::test]
async fn quiet_connections_give_their_places_away() {
    let service = Running::start_with(POLICY, |settings| settings.limits.connections = 3).await;
    let mut quiet = Vec::new();
    for begun in &BEGINNINGS[..3] {
        let mut stream = TcpStream::connect(service.address).await.unwrap();
        stream.write_all(begun).await.unwrap();
        quiet.push(stream);
    }
    service.until_open(3).await;
    let url = format!("http://{}/healthz", service.address);
    while service.client.get(&url).send().await.is_err() {
        tokio::task::yield_now().await;
    }
    assert_eq!(service.metric("tollgate_connections_idle_total").await, 3);
    for mut stream in quiet {
        let _ = stream.read_to_end(&mut Vec::new()).await;
    }
    service.end().await;
}

/// Opens and drops this many connections, some after a few bytes.
async fn open_and_drop(connections: usize) {
    let service = Running::start(POLICY).await;
    for n in 0..connections {
        let mut stream = TcpStream::connect(service.address).await.unwrap();
        stream
            .write_all(BEGINNINGS[n % BEGINNINGS.len()])
            .await
            .unwrap();
        // Without it, the system keeps the port for a minute, and has 28 000.
        SockRef::from(&stream)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
    }
    is_served(&service).await;
    service.until_open(1).await;
    assert_eq!(service.metric("tollgate_pending_bytes").await, 0);
    println!("after {connections} connections: {}", memory());
    service.end().await;
}

/// Returns what the system says of this process's memory, which other tests share.
fn memory() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    line.unwrap_or("memory unknown").to_owned()
}

#[tokio::test]
async fn connections_that_are_dropped_leave_nothing_behind() {
    open_and_drop(3000).await;
}

#[tokio::test]
#[ignore = "takes a minute: scripts/deep runs it"]
async fn many_connections_that_are_dropped_leave_nothing_behind() {
    open_and_drop(100_000).await;
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let service = Running::start(POLICY).await;
    let mut stream = TcpStream::connect(service.address).await.unwrap();
    let head = format!(
        "GET /healthz HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n",
        "x".repeat(100_000)
    );
    // The service need not read all of it.
    let _ = stream.write_all(head.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer);
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 431 "),
        "{answer}"
    );
    is_served(&service).await;
    service.end().await;
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::with_cases(200) })]

    /// A body of any bytes is answered, and what follows on the connection too.
    #[test]
    fn any_body_is_answered(
        path in prop::sample::select(&["/decide", "/finish", "/undo"][..]),
        body in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            r#"[\[\]{}",:0-9a-z \\]{0,60}"#.prop_map(String::into_bytes),
            r#"\{"facts": ?[\[\]{}",:0-9a-z \\]{0,40}"#.prop_map(String::into_bytes),
        ],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let service = Running::start(POLICY).await;
            let (status, said) = service.post(path, body.clone()).await;
            prop_assert!([200, 400, 404].contains(&status), "{} {:?}: {} {}", path, body, status, said);
            is_served(&service).await;
            service.end().await;
            Ok(())
        })?;
    }

    /// Any bytes on a connection do the service no harm.
    #[test]
    fn any_bytes_do_no_harm(
        begun in prop::sample::select(&BEGINNINGS[..]),
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let service = Running::start(POLICY).await;
            let mut stream = TcpStream::connect(service.address).await.unwrap();
            let _ = stream.write_all(begun).await;
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
            let _ = stream.read_to_end(&mut Vec::new()).await;
            is_served(&service).await;
            service.end().await;
        });
    }
}
