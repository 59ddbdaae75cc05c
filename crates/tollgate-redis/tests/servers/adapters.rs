//! Connections of the crate `redis` as clients.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::{ConnectionManager, MultiplexedConnection};
use tokio::sync::Mutex;
use tollgate::Quota;
use tollgate_redis::client::{Adapter, Client, ClientError, Command, Reply};
use tollgate_redis::{Decider, Fallback, Keys, RedisLimiter};

use crate::ask::{run, take, until_recovered};
use crate::server::{Server, on_each_server};

/// A pool of one connection.
struct Pool(Mutex<MultiplexedConnection>);

impl Client for Pool {
    async fn send(&self, command: &Command<'_>) -> Result<Reply, ClientError> {
        command.send_on(&mut *self.0.lock().await).await
    }
}

/// Returns a limit of 5 permits, which come back after a day.
fn limiter<C: Client>(client: C) -> RedisLimiter<C> {
    let server = tollgate_redis::RedisServer::new(client)
        .with_budget(Duration::from_secs(30))
        .with_probe_every(Duration::from_millis(20));
    let keys = Keys::new("test").expect("a namespace");
    let quota = Quota::per_day(1).burst(5);
    let limiter = RedisLimiter::new(Arc::new(server), &keys, "limit", quota, Fallback::Closed);
    limiter.expect("a limit")
}

/// Each user gets the burst, and what is undone comes back.
async fn the_server_grants_the_burst<C: Client>(limiter: &RedisLimiter<C>) {
    for user in 0..20 {
        let key = limiter.key(user.to_string());
        for n in 0..7 {
            assert_eq!(take(&key).await, (n < 5, Decider::Server));
        }
        let bob = limiter.key(format!("bob {user}"));
        let grant = bob.try_acquire_n(4).await.expect("four permits");
        assert_eq!(bob.undo(grant).await, Ok(4));
        assert_eq!(bob.available().await, Ok(5));
    }
}

/// Runs with the client `redis` of a server.
fn with_redis<F: Future<Output = ()>>(test: impl Fn(redis::Client, Server) -> F) {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let client = redis::Client::open(server.url()).expect("an address");
            test(client, server).await;
        });
    });
}

#[test]
fn a_connection_manager_is_a_client_that_connects_again() {
    with_redis(|client, mut server| async move {
        let manager = ConnectionManager::new(client).await.expect("a connection");
        let limiter = limiter(Adapter(manager));
        the_server_grants_the_burst(&limiter).await;
        server.kill();
        assert_eq!(take(&limiter.key("carol")).await, (false, Decider::Closed));
        server.start(false);
        assert!(until_recovered(&limiter.key("carol")).await <= 1);
    });
}

#[test]
fn a_pool_is_a_client() {
    with_redis(|client, server| async move {
        let connection = client.get_multiplexed_async_connection().await;
        let pool = Pool(Mutex::new(connection.expect("a connection")));
        let limiter = limiter(pool);
        the_server_grants_the_burst(&limiter).await;
        // Another type under a key is refused, and is no outage.
        let carol = limiter.key("carol");
        let name = String::from_utf8_lossy(carol.name());
        let _: u64 = server.run(&format!("LPUSH {name} x"));
        assert_eq!(take(&carol).await, (false, Decider::Closed));
        assert!(!limiter.server().is_down());
    });
}

#[cfg(feature = "cluster")]
#[test]
fn the_cluster_connection_of_the_crate_redis_is_a_client() {
    on_each_server(|server| {
        let nodes = crate::cluster::nodes::Nodes::start(server.program(), 0);
        run(async {
            let cluster = redis::cluster::ClusterClientBuilder::new(nodes.urls()).retries(0);
            let cluster = cluster.build().expect("addresses");
            let connection = cluster.get_async_connection().await;
            let limiter = limiter(Adapter(connection.expect("a connection")));
            the_server_grants_the_burst(&limiter).await;
        });
    });
}
