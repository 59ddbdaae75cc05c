//! When a connection is replaced, without a server.

use std::net::TcpListener;

use tokio::task::yield_now;
use tokio::time::advance;

use super::*;

/// Returns a connection to a listener that accepts nothing, so no call ends.
fn silent() -> (Connection, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = format!("redis://127.0.0.1:{port}/5");
    (Connection::new(url).unwrap(), listener)
}

/// Returns a connection to a socket that does not exist, so each call fails.
fn gone() -> Connection {
    Connection::new("unix:///nonexistent/socket").unwrap()
}

fn is_silent(connection: &Connection) -> bool {
    connection.0.current().silent_since.is_some()
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_replaced_once_after_2_seconds_of_its_own_silence() {
    let (connection, _listener) = silent();
    let number = || connection.begin().1;
    let moment = Duration::from_millis(1);
    assert_eq!(number(), 0);
    advance(SILENCE - moment).await;
    assert_eq!(number(), 0);
    advance(moment).await;
    assert_eq!([number(), number()], [1, 1]);
    // A late answer on the old connection says nothing about the new one.
    connection.0.heard(0);
    advance(SILENCE).await;
    assert_eq!(number(), 2);
    connection.0.heard(2);
    advance(SILENCE).await;
    assert_eq!(number(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_new_connection_that_connects_in_the_background_is_not_silent() {
    let connection = gone();
    let _ = connection.begin();
    advance(SILENCE).await;
    assert_eq!(connection.begin().1, 1);
    assert!(is_silent(&connection));
    // An error is an answer too.
    for _ in 0..10_000 {
        yield_now().await;
    }
    assert!(!is_silent(&connection));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_is_tried_once_and_ends_the_silence() {
    let mut connection = gone();
    let start = Instant::now();
    let ping = redis::cmd("PING");
    assert!(connection.req_packed_command(&ping).await.is_err());
    assert!(!is_silent(&connection));
    let mut pipeline = redis::pipe();
    pipeline.cmd("PING");
    let answers = connection.req_packed_commands(&pipeline, 0, 1).await;
    assert!(answers.is_err() && !is_silent(&connection));
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn small_commands_are_sent_at_once_to_the_database_of_the_url() {
    let (connection, _listener) = silent();
    let info = connection.0.client.get_connection_info();
    assert!(info.tcp_settings().nodelay());
    assert_eq!(connection.get_db(), 5);
}
