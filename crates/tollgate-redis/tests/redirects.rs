//! What the client of a cluster does with each answer of a node: nodes that follow a plan, on ports
//! of their own.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tollgate::Quota;
use tollgate_redis::client::{Cluster, connect_to_cluster_lazily};
use tollgate_redis::{Decider, Fallback, Keys, RedisLimiter, RedisServer};

/// What a node does with a script.
#[derive(Debug, Clone, Copy)]
enum Plan {
    /// Runs it, and closes the connection without an answer.
    CloseAfter,
    /// Answers half of a reply, and closes the connection.
    Truncate,
    /// Says `MOVED` or `ASK` to the node with this index.
    Moved(usize),
    Ask(usize),
    TryAgain,
    ClusterDown,
    /// Says `MOVED` to an address that no client can use.
    MovedNowhere,
    /// Fails, as a script can.
    Fail,
}

/// The scripts that the nodes got: the index of the node, and whether `ASKING` came before.
type Seen = Arc<Mutex<Vec<(usize, bool)>>>;

/// Starts nodes that say that the first one has all slots. They end with the test's process.
fn start(plans: &[Plan]) -> (Vec<u16>, Seen) {
    let listeners: Vec<_> = plans
        .iter()
        .map(|_| TcpListener::bind("127.0.0.1:0").expect("a port"))
        .collect();
    let ports: Vec<_> = listeners
        .iter()
        .map(|listener| listener.local_addr().expect("an address").port())
        .collect();
    let seen = Seen::default();
    for (index, (listener, &plan)) in listeners.into_iter().zip(plans).enumerate() {
        let (ports, seen) = (ports.clone(), Arc::clone(&seen));
        thread::spawn(move || {
            for connection in listener.incoming() {
                let (ports, seen) = (ports.clone(), Arc::clone(&seen));
                thread::spawn(move || {
                    serve(&connection.expect("a client"), index, plan, &ports, &seen)
                });
            }
        });
    }
    (ports, seen)
}

fn serve(connection: &TcpStream, index: usize, plan: Plan, ports: &[u16], seen: &Seen) {
    let mut reader = BufReader::new(connection);
    let mut writer = connection;
    let mut is_asking = false;
    while let Some(command) = read_command(&mut reader) {
        let port = |node: usize| ports[node];
        let answer = match command[0].as_str() {
            "CLUSTER" => format!(
                "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:{}\r\n",
                port(0)
            ),
            "ASKING" => {
                is_asking = true;
                "+OK\r\n".to_owned()
            }
            "EVALSHA" | "EVAL" => {
                seen.lock().unwrap().push((index, is_asking));
                is_asking = false;
                match plan {
                    Plan::CloseAfter => return,
                    Plan::Truncate => {
                        let _ = writer.write_all(b"*5\r\n:1\r\n:10");
                        return;
                    }
                    Plan::Moved(node) => format!("-MOVED 7 127.0.0.1:{}\r\n", port(node)),
                    Plan::Ask(node) => format!("-ASK 7 127.0.0.1:{}\r\n", port(node)),
                    Plan::TryAgain => "-TRYAGAIN later\r\n".to_owned(),
                    Plan::ClusterDown => "-CLUSTERDOWN it is down\r\n".to_owned(),
                    Plan::MovedNowhere => "-MOVED 7 ?:7\r\n".to_owned(),
                    Plan::Fail => "-ERR it fails\r\n".to_owned(),
                }
            }
            _ => "+OK\r\n".to_owned(),
        };
        if writer.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn read_command(reader: &mut impl BufRead) -> Option<Vec<String>> {
    let mut command = Vec::new();
    for _ in 0..read_number(reader, '*')? {
        let length = read_number(reader, '$')?;
        let mut part = vec![0; length + 2];
        reader.read_exact(&mut part).ok()?;
        part.truncate(length);
        command.push(String::from_utf8_lossy(&part).into_owned());
    }
    Some(command)
}

fn read_number(reader: &mut impl BufRead, start: char) -> Option<usize> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    line.strip_prefix(start)?.trim().parse().ok()
}

/// Makes one decision, which fails, and returns the scripts that the nodes got, and how many
/// answers are lost. One failure begins no outage.
fn decide(plans: &[Plan]) -> (Vec<(usize, bool)>, u64) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let (ports, seen) = start(plans);
        let urls = ports.iter().map(|port| format!("redis://127.0.0.1:{port}"));
        let client: Cluster = connect_to_cluster_lazily(urls).expect("addresses");
        let server = RedisServer::new(client).with_budget(Duration::from_secs(60));
        let server = Arc::new(server);
        let (keys, quota) = (Keys::new("test").unwrap(), Quota::per_hour(5));
        let limiter =
            RedisLimiter::new(Arc::clone(&server), &keys, "limit", quota, Fallback::Closed)
                .unwrap();
        let denial = limiter.key("alice").try_acquire().await.unwrap_err();
        assert_eq!(denial.decider(), Decider::Closed);
        assert_eq!((server.stats().failed, server.stats().outages), (1, 0));
        let seen = seen.lock().unwrap().clone();
        (seen, server.stats().lost)
    })
}

#[test]
fn a_script_whose_answer_is_lost_is_not_sent_again() {
    for plan in [Plan::CloseAfter, Plan::Truncate] {
        // Another node is there, which could be asked.
        assert_eq!(decide(&[plan, plan]), (vec![(0, false)], 1));
        let moved = decide(&[Plan::Moved(1), plan]);
        assert_eq!(moved, (vec![(0, false), (1, false)], 1));
        let asked = decide(&[Plan::Ask(1), plan]);
        assert_eq!(asked, (vec![(0, false), (1, true)], 1));
    }
}

#[test]
fn redirects_are_bounded_and_lose_nothing() {
    let (seen, lost) = decide(&[Plan::Moved(1), Plan::Moved(0)]);
    assert_eq!((seen.len(), lost), (9, 0));
    assert!(seen.iter().enumerate().all(|(i, &at)| at == (i % 2, false)));
    let (seen, lost) = decide(&[Plan::Ask(1), Plan::Ask(1)]);
    assert_eq!((seen.len(), lost), (9, 0));
    assert!(seen.iter().skip(1).all(|&at| at == (1, true)));
}

#[test]
fn a_call_that_a_moving_slot_prevents_is_asked_a_few_times() {
    let (seen, lost) = decide(&[Plan::TryAgain]);
    assert_eq!((seen.len(), lost), (9, 0));
}

#[test]
fn a_refusal_that_names_no_other_node_ends_the_call() {
    for plan in [Plan::ClusterDown, Plan::MovedNowhere, Plan::Fail] {
        assert_eq!(decide(&[plan, plan]), (vec![(0, false)], 0));
    }
}

#[test]
fn addresses_that_are_no_cluster_are_errors_without_the_password() {
    let error = |urls: &[&str]| {
        let urls = urls.iter().copied();
        connect_to_cluster_lazily(urls).unwrap_err().to_string()
    };
    let ok = "redis://user:secret@127.0.0.1:7000";
    for (urls, why) in [
        (&[][..], "urls is empty, but must have at least 1"),
        (&[ok, "redis://user:secret@:x"], "url 1 is not accepted: "),
        (
            &[ok, "redis://user:secret@127.0.0.1:7000/3"],
            "url 1 has database 3, but a cluster has only 0",
        ),
        (
            &["unix:///tmp/socket?pass=secret"],
            "url 0 is a Unix socket, but must be a host and a port",
        ),
    ] {
        let error = error(urls);
        assert!(error.starts_with(why), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
    let client = connect_to_cluster_lazily([ok]).unwrap();
    let text = format!("{client:?}");
    assert!(text.contains("7000") && !text.contains("secret"), "{text}");
}
