//! Connections that are refused, closed, forgotten, or slow to be made. Once the cause is gone, the
//! next call is decided by the server.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::time::{advance, pause, resume, sleep, timeout};
use tollgate::Quota;
#[cfg(feature = "cluster")]
use tollgate_redis::client::connect_to_cluster_lazily;
use tollgate_redis::client::{Client, connect_lazily};
use tollgate_redis::{Decider, Fallback, Keys, OutageEvent, RedisLimiter, Unavailable};

use super::proxy::{Mode, Proxy};
use super::{AMPLE, BURST, SHORT, connected, run, take, until_recovered};
use crate::ask::Events;
#[cfg(feature = "cluster")]
use crate::cluster::nodes::Nodes;
use crate::server::{DEADLINE, Server, on_each_server};

/// Returns a limit, whose outages have a probe at least every 20 ms.
fn limiter<C: Client>(
    client: C,
    told: impl Fn(&OutageEvent) + Send + Sync + 'static,
) -> RedisLimiter<C> {
    let server = tollgate_redis::RedisServer::new(client)
        .with_budget(AMPLE)
        .with_probe_every(Duration::from_millis(20))
        .on_outage(told);
    let keys = Keys::new("test").expect("a namespace");
    let quota = Quota::per_hour(1).burst(BURST);
    RedisLimiter::new(Arc::new(server), &keys, "limit", quota, Fallback::Closed).expect("a quota")
}

/// Asks while the cause lasts, ends it, and checks that the next call that is sent is answered. The
/// outage must have a text of one line that says something.
async fn ends_with_its_cause<C: Client>(what: &str, client: C, says: &str, end: impl FnOnce()) {
    let events = Events::default();
    let seen = Arc::clone(&events);
    let limiter = limiter(client, move |event| {
        seen.lock().unwrap().push(event.clone())
    });
    let alice = limiter.key("alice");
    let start = Instant::now();
    while limiter.server().stats().failed < 3 {
        assert!(start.elapsed() < DEADLINE, "{what}: probes are sent");
        assert!(take(&alice).await.1.is_fallback(), "{what}");
        sleep(Duration::from_millis(5)).await;
    }
    end();
    // Only a call that is sent can be answered, or fail.
    while let Err(why) = alice.available().await {
        assert!(matches!(why, Unavailable::Outage { .. }), "{what}: {why}");
        assert!(start.elapsed() < DEADLINE, "{what}: the outage ends");
        sleep(Duration::from_millis(5)).await;
    }
    let stats = limiter.server().stats();
    assert_eq!((stats.failed, stats.lost), (3, 0), "{what}");
    let began = events.lock().unwrap()[0].to_string();
    assert!(began.contains(says), "{what}: {began:?}");
    assert!(!began.contains(char::is_control), "{what}: {began:?}");
    assert!(began.len() < 300, "{what}: {began:?}");
}

/// What a user of an access control list may do, what the outage says then, and the change after
/// which the user may connect.
const REFUSALS: [(&str, &str, &str, &str); 4] = [
    (
        "a user that is created later",
        "",
        "refused AUTH",
        "reset on >pass ~* +@all",
    ),
    (
        "a user that is switched on later",
        "reset off >pass ~* +@all",
        "refused AUTH",
        "on",
    ),
    (
        "a password that is accepted later",
        "reset on >other ~* +@all",
        "refused AUTH",
        ">pass",
    ),
    (
        "a database that is allowed later",
        "reset on >pass ~* +@all -select",
        "database",
        "+select",
    ),
];

fn set_user(server: &Server, rights: &str) {
    if !rights.is_empty() {
        let _: String = server.run(&format!("ACL SETUSER limits {rights}"));
    }
}

#[test]
fn a_user_that_is_refused_is_accepted_by_the_next_call_after_the_refusal() {
    on_each_server(|mut server| {
        for (what, before, says, after) in REFUSALS {
            server.start(false);
            set_user(&server, before);
            let url = format!("{}?user=limits&pass=pass&db=1", server.url());
            let client = connect_lazily(url).expect("an address");
            run(ends_with_its_cause(what, client, says, || {
                set_user(&server, after)
            }));
            server.kill();
        }
    });
}

#[cfg(feature = "cluster")]
#[test]
fn a_user_that_a_cluster_refuses_is_accepted_by_the_next_call_after_the_refusal() {
    on_each_server(|server| {
        let nodes = Nodes::start(server.program(), 0);
        let set = |rights| {
            nodes
                .0
                .iter()
                .for_each(|node| set_user(&node.server, rights))
        };
        for (what, before, says, after) in &REFUSALS[..3] {
            set(before);
            let urls = nodes.0.iter().map(|node| node.server.port());
            let urls = urls.map(|port| format!("redis://limits:pass@127.0.0.1:{port}"));
            let client = connect_to_cluster_lazily(urls).expect("addresses");
            run(ends_with_its_cause(what, client, says, || set(after)));
            set("reset");
            nodes.0.iter().for_each(|node| {
                let _: u64 = node.server.run("ACL DELUSER limits");
            });
        }
    });
}

#[test]
fn a_handshake_that_fails_is_followed_by_another() {
    const ANSWERS: [(&str, &str); 5] = [
        (
            "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
            "was not sent",
        ),
        (
            "-LOADING the dataset is loaded\r\n+OK\r\n+OK\r\n+OK\r\n",
            "not ready",
        ),
        (
            "-MASTERDOWN the link is down\r\n+OK\r\n+OK\r\n+OK\r\n",
            "not ready",
        ),
        ("-DENIED protected mode\r\n", "was not sent"),
        ("\0\u{1}nonsense", "was not sent"),
    ];
    on_each_server(|mut server| {
        server.start(false);
        set_user(&server, "on >pass ~* +@all");
        for (answer, says) in ANSWERS {
            run(async {
                let proxy = Proxy::new(&server).await;
                proxy.set(Mode::Answer(answer));
                let url = format!("redis://limits:pass@127.0.0.1:{}", proxy.port());
                let client = connect_lazily(url).expect("an address");
                ends_with_its_cause(answer, client, says, || proxy.set(Mode::Pass)).await;
            });
        }
    });
}

#[test]
fn a_connection_that_the_server_closes_while_it_is_idle_is_replaced_before_the_next_call() {
    on_each_server(|mut server| {
        server.start(false);
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let limiter = limiter(connect_lazily(server.url()).expect("an address"), |_| ());
            let alice = limiter.key("alice");
            for round in 0..20 {
                assert_eq!(take(&alice).await, (true, Decider::Server), "{round}");
                let killed: u64 = server.run("CLIENT KILL TYPE normal SKIPME yes");
                assert!(killed >= 1);
                // The connection is idle, and the runtime has no time to hear of its end.
                thread::sleep(Duration::from_millis(2));
            }
            let stats = limiter.server().stats();
            assert_eq!((stats.server, stats.failed), (20, 0));
        });
    });
}

#[test]
fn a_connection_that_is_forgotten_while_it_is_idle_is_replaced_before_the_next_call() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let proxy = Proxy::new(&server).await;
            let client = connect_lazily(proxy.url()).expect("an address");
            let client = client.with_ping_after(Duration::ZERO);
            let server =
                tollgate_redis::RedisServer::new(client).with_budget(Duration::from_secs(3));
            let keys = Keys::new("test").expect("a namespace");
            let quota = Quota::per_hour(1).burst(BURST);
            let limiter =
                RedisLimiter::new(Arc::new(server), &keys, "limit", quota, Fallback::Closed);
            let limiter = limiter.expect("a quota");
            let alice = limiter.key("alice");
            for round in 0..4 {
                assert_eq!(take(&alice).await, (true, Decider::Server), "{round}");
                proxy.silence_old_connections();
            }
            let stats = limiter.server().stats();
            assert_eq!((stats.server, stats.failed), (4, 0));
        });
    });
}

#[test]
fn a_connection_that_takes_longer_to_make_than_a_budget_is_used_by_a_later_call() {
    on_each_server(|mut server| {
        server.start(false);
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let proxy = Proxy::new(&server).await;
            proxy.set(Mode::HoldReplies);
            let (limiter, _) = connected(&proxy.url(), SHORT, BURST, Fallback::Closed);
            let alice = limiter.key("alice");
            let why = alice.available().await.unwrap_err();
            assert_eq!(why, Unavailable::NotConnected { budget: SHORT });
            assert!(!why.may_have_taken_effect());
            pause();
            advance(Duration::from_secs(3)).await;
            resume();
            // A caller that gives up while the client connects has sent nothing either.
            let given_up = timeout(Duration::from_millis(20), take(&alice)).await;
            assert!(given_up.is_err());
            proxy.set(Mode::Pass);
            until_recovered(&alice).await;
            assert_eq!(proxy.accepted(), 1);
            let stats = limiter.server().stats();
            assert_eq!(stats.lost, 0, "{stats:?}");
        });
    });
}
