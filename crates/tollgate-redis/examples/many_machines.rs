//! Two machines share limits on a private server, which is then killed and started again.
//!
//!     cargo run -p tollgate-redis --example many_machines
//!
//! It starts `redis-server`, or the program that the variable TOLLGATE_REDIS_SERVER names, without
//! a container and without a file of data.

mod private_server;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use private_server::PrivateServer;
use tollgate::Quota;
use tollgate_redis::client::{Connection, connect_lazily};
use tollgate_redis::{Fallback, Keys, Limit, RedisAll, RedisLimiter, RedisServer};

/// The limits of a program. Each machine has its own connection to the same server.
struct Machine {
    requests: RedisLimiter<Connection>,
    uploads: RedisLimiter<Connection>,
}

impl Machine {
    fn new(url: &str) -> Result<Self, Box<dyn Error>> {
        let server = RedisServer::new(connect_lazily(url)?)
            .with_probe_every(Duration::from_millis(50))
            .on_outage(|event| println!("  log: {event}"));
        let (server, keys) = (Arc::new(server), Keys::new("example")?);
        let quota = Quota::per_hour(10);
        let share = Fallback::Local {
            processes: 2,
            keys: 1000,
        };
        let uploads: Limit = "concurrency 2 lease 30s".parse()?;
        Ok(Self {
            requests: RedisLimiter::new(Arc::clone(&server), &keys, "requests", quota, share)?,
            uploads: RedisLimiter::new(server, &keys, "uploads", uploads, Fallback::Closed)?,
        })
    }

    /// Sends requests of a user until one is denied, and returns how many were granted.
    async fn requests(&self, user: &str) -> u32 {
        let key = self.requests.key(user);
        let mut granted = 0;
        while key.try_acquire().await.is_ok() {
            granted += 1;
        }
        granted
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let Some(mut server) = PrivateServer::start()? else {
        println!("skipped: redis-server can't be started; TOLLGATE_REDIS_SERVER can name another");
        return Ok(());
    };
    let (one, two) = (Machine::new(&server.url())?, Machine::new(&server.url())?);
    until_decided(&one).await;
    until_decided(&two).await;

    let (first, second) = (one.requests("alice").await, two.requests("alice").await);
    println!("alice may send 10 requests: {first} on one machine, {second} on the other");
    assert_eq!((first, second), (10, 0));

    // An upload is a request, and holds a slot until it ends. Both are decided in one call.
    let bob = RedisAll::new(vec![one.requests.key("bob"), one.uploads.key("bob")])?;
    let (upload, _other) = (bob.try_acquire().await?, bob.try_acquire().await?);
    let denial = bob.try_acquire().await.expect_err("two uploads at a time");
    println!("bob's third upload: {denial}");
    let slot = upload.into_iter().nth(1).ok_or("a grant of each limit")?;
    one.uploads.key("bob").undo(slot).await?;
    assert!(bob.try_acquire().await.is_ok());

    server.kill()?;
    let (first, second) = (one.requests("carol").await, two.requests("carol").await);
    println!("without the server, carol may send {first} and {second}: each machine grants half");
    assert_eq!((first, second), (5, 5));

    server.run()?;
    until_decided(&one).await;
    println!(
        "the server decides again: {} for dave",
        one.requests("dave").await
    );
    Ok(())
}

/// Waits until the server decides, as at the start of a program.
async fn until_decided(machine: &Machine) {
    while machine.requests.key("nobody").available().await.is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
