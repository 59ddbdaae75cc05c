//! When a connection is replaced: on sockets of the test, which answers as it likes.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::yield_now;
use tokio::time::{advance, pause, resume};

use super::*;

/// A server of the test, and a client of it.
struct Pair {
    listener: TcpListener,
    connection: Connection,
}

impl Pair {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connection = Connection::new(format!("redis://127.0.0.1:{port}")).unwrap();
        Self {
            listener,
            connection,
        }
    }

    /// Accepts a connection, and answers what the client asks first.
    async fn accept(&self) -> TcpStream {
        let (mut stream, _) = self.listener.accept().await.unwrap();
        // The name and the version of the client crate.
        while !read(&mut stream).await.contains("LIB-VER") {}
        stream.write_all(b"+OK\r\n+OK\r\n").await.unwrap();
        stream
    }

    /// Makes a connection for a call, and returns the call's number.
    async fn open(&self) -> (Open<'_>, TcpStream) {
        let waiting = Waiting::new(Duration::from_secs(60));
        let (open, stream) = tokio::join!(self.connection.open(&waiting), self.accept());
        assert!(!waiting.is_unsent());
        (open.unwrap(), stream)
    }

    /// Returns the number of the connection that a call would use at once, or `None` if it would
    /// wait.
    fn number(&self) -> Option<u64> {
        match self
            .connection
            .first(Instant::now(), Duration::from_secs(60))
            .unwrap()
        {
            First::Send(mut open) => open.number.take(),
            First::Wait(_) => None,
        }
    }
}

async fn read(stream: &mut TcpStream) -> String {
    let mut buffer = [0; 1024];
    let length = stream.read(&mut buffer).await.unwrap();
    String::from_utf8_lossy(&buffer[..length]).into_owned()
}

/// Checks that a call gets its answer from this stream.
async fn assert_works(mut open: Open<'_>, stream: &mut TcpStream) {
    let get = redis::cmd("GET");
    let answer = async {
        assert!(read(stream).await.contains("GET"));
        stream.write_all(b":7\r\n").await.unwrap();
    };
    let value = open.connection.send_packed_command(&get);
    let (value, ()) = tokio::join!(value, answer);
    assert_eq!(open.ended(value), Ok(Value::Int(7)));
}

/// The longest that a test waits for what should come.
const DEADLINE: Duration = Duration::from_secs(60);

/// Lets time pass, by tokio's clock.
async fn pass(time: Duration) {
    pause();
    advance(time).await;
    resume();
}

#[tokio::test]
async fn a_connection_is_replaced_after_2_seconds_of_its_own_silence() {
    let pair = Pair::new().await;
    let (open, _first) = pair.open().await;
    assert_eq!(open.number, Some(1));
    pass(SILENCE / 2).await;
    assert_eq!(pair.number(), Some(1));
    pass(SILENCE / 2).await;
    assert_eq!(pair.number(), None);
    let (second, _stream) = pair.open().await;
    assert_eq!(second.number, Some(2));
    // A late answer, or a late failure, on the old connection says nothing about the new one.
    assert!(open.ended(Ok(())).is_ok());
    assert!(
        pair.connection
            .shared
            .state()
            .link_of(2)
            .unwrap()
            .silent_since
            .is_some()
    );
    pair.connection.shared.lost(1);
    assert_eq!(pair.number(), Some(2));
    assert!(second.ended(Ok(())).is_ok());
    pass(SILENCE).await;
    assert_eq!(pair.number(), Some(2));
}

#[tokio::test]
async fn an_idle_connection_is_kept_if_it_answers_a_ping() {
    let pair = Pair::new().await;
    let (open, mut stream) = pair.open().await;
    assert!(open.ended(Ok(())).is_ok());
    pass(PING_AFTER).await;
    let waiting = Waiting::new(Duration::from_secs(60));
    let answer = async {
        assert!(read(&mut stream).await.contains("PING"));
        // Also a refusal is an answer.
        stream.write_all(b"-NOPERM no PING\r\n").await.unwrap();
    };
    let (open, ()) = tokio::join!(pair.connection.open(&waiting), answer);
    assert_works(open.unwrap(), &mut stream).await;
}

#[tokio::test]
async fn an_idle_connection_that_does_not_answer_a_ping_is_replaced() {
    let pair = Pair::new().await;
    let (open, _silent) = pair.open().await;
    assert!(open.ended(Ok(())).is_ok());
    pass(PING_AFTER).await;
    let waiting = Waiting::new(Duration::from_secs(60));
    let accept = async {
        yield_now().await;
        pass(waiting.budget / 3).await;
        pair.accept().await
    };
    let (open, _stream) = tokio::join!(pair.connection.open(&waiting), accept);
    assert_eq!(open.unwrap().number, Some(2));
}

#[tokio::test]
async fn a_failed_call_is_followed_by_connecting_before_the_next_one() {
    let pair = Pair::new().await;
    let (open, stream) = pair.open().await;
    drop(stream);
    let value = open
        .connection
        .clone()
        .send_packed_command(&redis::cmd("GET"))
        .await;
    assert!(matches!(open.ended(value), Err(ClientError::Unknown(_))));
    // Nobody calls.
    let _stream = pair.accept().await;
}

#[tokio::test]
async fn calls_share_an_attempt_and_a_failed_one_is_made_again() {
    let pair = Pair::new().await;
    let waiting = Waiting::new(Duration::from_secs(60));
    // The second call begins after the first attempt, so that attempt says nothing about it.
    let refuse = async {
        for _ in 0..2 {
            let (stream, _) = pair.listener.accept().await.unwrap();
            assert!(waiting.is_unsent());
            drop(stream);
        }
    };
    let calls = async {
        tokio::join!(
            pair.connection.open(&waiting),
            pair.connection.open(&waiting)
        )
    };
    let ((first, second), ()) = tokio::join!(calls, refuse);
    for call in [first, second] {
        assert!(matches!(call.err(), Some(ClientError::NotSent(_))));
    }
    assert_eq!(pair.open().await.0.number, Some(3));
}

#[tokio::test]
async fn an_attempt_that_began_before_a_call_does_not_fail_it() {
    let pair = Pair::new().await;
    let waiting = Waiting::new(Duration::from_secs(60));
    assert_eq!(pair.number(), None);
    let (stream, _) = pair.listener.accept().await.unwrap();
    let accept = async {
        yield_now().await;
        drop(stream);
        pair.accept().await
    };
    pass(Duration::from_millis(1)).await;
    let (open, _stream) = tokio::join!(pair.connection.open(&waiting), accept);
    assert_eq!(open.unwrap().number, Some(2));
}

#[tokio::test]
async fn an_attempt_ends_after_the_budget_or_5_seconds() {
    for (budget, longest) in [(1, CONNECT_FOR), (60, Duration::from_secs(60))] {
        let pair = Pair::new().await;
        let waiting = Waiting::new(Duration::from_secs(budget));
        let late = async {
            let _stream = pair.listener.accept().await.unwrap();
            pass(longest - Duration::from_millis(1)).await;
            yield_now().await;
            assert!(waiting.is_unsent());
            pass(Duration::from_millis(2)).await;
            std::future::pending::<()>().await;
        };
        let error = tokio::select! {
            open = pair.connection.open(&waiting) => open.err(),
            () = late => None,
        };
        assert_eq!(
            error
                .unwrap()
                .to_string()
                .matches(&format!("{longest:?}"))
                .count(),
            1
        );
    }
}

#[test]
fn a_client_is_made_without_a_runtime_and_connects_in_the_next_one_after_the_first_has_ended() {
    let connection = Connection::new("redis://127.0.0.1:1").unwrap();
    assert!(connection.first(Instant::now(), PING_AFTER).is_err());
    let first = runtime();
    let begun = first.block_on(async { connection.first(Instant::now(), PING_AFTER).map(|_| ()) });
    assert!(begun.is_ok());
    drop(first);
    let waiting = Waiting::new(Duration::from_secs(60));
    let refused = runtime().block_on(connection.open(&waiting)).err();
    assert!(refused.unwrap().to_string().contains("refused"));
}

#[tokio::test]
async fn small_commands_are_sent_at_once_and_the_system_asks_idle_connections() {
    let connection = Connection::new("redis://127.0.0.1:1/5").unwrap();
    let info = connection.shared.client.get_connection_info();
    assert!(info.tcp_settings().nodelay());
    assert!(info.tcp_settings().keepalive().is_some());
    assert_eq!(connection.get_db(), 5);
}

#[tokio::test]
async fn a_connection_is_closed_when_its_client_is_dropped() {
    let pair = Pair::new().await;
    let (open, mut stream) = pair.open().await;
    assert!(open.ended(Ok(())).is_ok());
    drop(pair);
    let end = timeout(DEADLINE, read(&mut stream)).await;
    assert_eq!(end.expect("the end").as_str(), "");
}

#[tokio::test]
async fn a_late_answer_to_a_ping_keeps_an_idle_connection() {
    let pair = Pair::new().await;
    let (open, mut stream) = pair.open().await;
    assert!(open.ended(Ok(())).is_ok());
    pass(PING_AFTER).await;
    let waiting = Waiting::new(Duration::from_secs(30));
    let answer = async {
        assert!(read(&mut stream).await.contains("PING"));
        pass(waiting.budget / 2).await;
        // The client connects too, in vain.
        let _silent = pair.listener.accept().await.unwrap();
        stream.write_all(b"+PONG\r\n").await.unwrap();
        std::future::pending::<()>().await;
    };
    let open = tokio::select! {
        open = pair.connection.open(&waiting) => open.ok(),
        () = answer => None,
        () = tokio::time::sleep(DEADLINE) => None,
    };
    assert_works(open.expect("the connection"), &mut stream).await;
}

#[tokio::test]
async fn an_end_that_the_runtime_has_not_read_is_seen_before_the_next_call() {
    let pair = Pair::new().await;
    let (open, stream) = pair.open().await;
    assert!(open.ended(Ok(())).is_ok());
    drop(stream);
    // Nothing runs meanwhile.
    let start = Instant::now();
    while start.elapsed() < 2 * MOMENT {
        std::hint::spin_loop();
    }
    let second = timeout(DEADLINE, pair.open()).await;
    assert_eq!(second.expect("a new connection").0.number, Some(2));
}

fn runtime() -> tokio::runtime::Runtime {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap()
}

#[test]
fn the_end_of_a_runtime_ends_its_connection_also_while_a_call_waits() {
    for waits in [false, true] {
        let first = runtime();
        let (pair, stream) = first.block_on(async {
            let pair = Pair::new().await;
            let (mut open, stream) = pair.open().await;
            if waits {
                // The call is never told how it ended.
                open.number = None;
                drop(open);
            } else {
                assert!(open.ended(Ok(())).is_ok());
            }
            (pair, stream)
        });
        drop((first, stream));
        // At once.
        assert_eq!(runtime().block_on(async { pair.number() }), None);
    }
}

#[test]
fn an_attempt_of_a_runtime_that_stands_still_ends() {
    let (first, second) = (runtime(), runtime());
    let pair = first.block_on(Pair::new());
    let waits = || async { pair.number() };
    assert_eq!(first.block_on(waits()), None);
    second.block_on(async {
        pass(Duration::from_secs(70)).await;
        assert_eq!(pair.number(), None);
    });
    // The first attempt is over, and the second one is a task of this runtime.
    assert_eq!(pair.connection.shared.state().latest, 2);
}

#[tokio::test]
async fn a_ping_waits_no_longer_for_a_patient_caller() {
    let pair = Pair::new().await;
    let (open, _silent) = pair.open().await;
    assert!(open.ended(Ok(())).is_ok());
    pass(PING_AFTER).await;
    let waiting = Waiting::new(Duration::from_secs(600));
    let accept = async {
        yield_now().await;
        pass(SILENCE).await;
        pair.accept().await
    };
    let both = async { tokio::join!(pair.connection.open(&waiting), accept) };
    let (open, _stream) = timeout(DEADLINE, both).await.unwrap();
    assert!(open.is_ok());
}

#[tokio::test]
async fn a_command_that_another_connection_sends_is_not_told_as_unsent() {
    let pair = Pair::new().await;
    let (open, _stream) = pair.open().await;
    assert!(open.ended(Ok(())).is_ok());
    let waiting = Waiting::new(Duration::from_secs(60));
    // What a client of two connections does: the first one takes too long.
    waiting.set_unsent(true);
    let _open = pair.connection.open(&waiting).await.unwrap();
    assert!(!waiting.is_unsent());
}

#[tokio::test]
async fn other_commands_use_the_connection_too() {
    let pair = Pair::new().await;
    let mut connection = pair.connection.clone();
    let mut pipeline = redis::pipe();
    pipeline.cmd("GET").cmd("GET");
    let calls = async {
        let one = redis::cmd("GET");
        let one = connection.req_packed_command(&one).await;
        (one, connection.req_packed_commands(&pipeline, 0, 2).await)
    };
    let answers = async {
        let mut stream = pair.accept().await;
        for answer in [&b":7\r\n"[..], b":8\r\n:9\r\n"] {
            assert!(read(&mut stream).await.contains("GET"));
            stream.write_all(answer).await.unwrap();
        }
        stream
    };
    let ((one, two), stream) = tokio::join!(calls, answers);
    assert_eq!(one, Ok(Value::Int(7)));
    assert_eq!(two, Ok(vec![Value::Int(8), Value::Int(9)]));
    drop((stream, pair));
    let get = redis::cmd("GET");
    while connection.req_packed_command(&get).await.is_ok() {}
    let refused = connection.req_packed_command(&get).await.unwrap_err();
    assert!(refused.to_string().contains("was not sent"), "{refused}");
}
