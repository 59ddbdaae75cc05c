//! The task that asks for leases, when it ends against its will: its runtime ends, or the client
//! panics. Then leases begin anew, and nothing is granted twice.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tollgate_redis::client::{Client, ClientError, Command, Connection, Reply, connect_lazily};
use tollgate_redis::{Decider, Fallback, Keys, Leasing, RedisLimiter, RedisServer};

use super::{bucket, node, until_leased};
use crate::ask::run;
use crate::server::{DEADLINE, on_each_server};

/// What a task of a runtime that has ended held counts as spent.
#[test]
fn leases_begin_anew_in_another_runtime() {
    on_each_server(|mut server| {
        server.start(false);
        let node = node(&server, bucket(3000));
        let mut granted = 0;
        for _ in 0..3 {
            granted += run(until_leased(&node));
            assert_eq!(
                node.lease_stats().expect("leases").keys,
                0,
                "all is forgotten"
            );
        }
        let start = Instant::now();
        run(async {
            let mut denied = 0;
            while denied < 1000 && start.elapsed() < DEADLINE {
                match node.key("alice").try_acquire().await {
                    Ok(_) => (granted, denied) = (granted + 1, 0),
                    Err(_) => {
                        denied += 1;
                        tokio::task::yield_now().await;
                    }
                }
            }
        });
        assert!(granted <= 3000, "{granted}");
    });
}

/// A client that panics instead of sending some of the commands.
struct Panics {
    client: Connection,
    sent: Mutex<u32>,
}

impl Client for Panics {
    async fn send(&self, command: &Command<'_>) -> Result<Reply, ClientError> {
        let sent = {
            let mut sent = self.sent.lock().expect("no panic in here");
            *sent += 1;
            *sent
        };
        // The first calls are those of the test itself: those of the task come later.
        assert!(
            sent < 20 || !sent.is_multiple_of(3),
            "a test of a panic in a client"
        );
        self.client.send(command).await
    }
}

#[test]
fn a_panic_of_the_client_in_a_message_is_a_failure_like_any_other() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let client = connect_lazily(server.url()).expect("an address");
            let client = Panics {
                client,
                sent: Mutex::new(0),
            };
            let connected = RedisServer::new(client).with_budget(Duration::from_secs(5));
            let keys = Keys::new("test").expect("a namespace");
            let limit = bucket(20_000);
            let limiter = RedisLimiter::new(Arc::new(connected), &keys, "a", limit, Fallback::Open);
            let limiter = limiter.expect("a limit").leased(Leasing::new());
            let limiter = Arc::new(limiter.expect("leases"));
            let (mut leased, start) = (0, Instant::now());
            while leased < 5000 && start.elapsed() < DEADLINE {
                let limiter = Arc::clone(&limiter);
                // The test's own calls may panic too.
                let decided = tokio::spawn(async move {
                    let key = limiter.key("alice");
                    key.try_acquire().await.map(|grant| grant.decider())
                });
                match decided.await {
                    Ok(Ok(Decider::Lease)) => leased += 1,
                    _ => tokio::task::yield_now().await,
                }
            }
            assert_eq!(leased, 5000, "{:?}", limiter.lease_stats());
        });
    });
}
