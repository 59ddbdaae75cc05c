//! Faults: for each, what is granted over the whole run is at most what docs/DISTRIBUTED.md says.
//! Its table names these tests, and has all of them.

mod clock;
mod connecting;
mod failover;
mod leases;
mod load;
mod network;
mod outages;
mod proxy;
mod restarts;
mod table;

use std::sync::Arc;
use std::time::Duration;

use tollgate::Quota;
use tollgate_redis::client::{Connection, connect_lazily};
use tollgate_redis::{Fallback, Keys, Leasing, RedisLimiter};

use crate::ask::{Events, assert_one_outage, run, take, until_recovered};
use crate::server::{Server, on_each_server};

/// The permits of a limit. One an hour comes back, and no test is slow enough to see it.
const BURST: u64 = 100;

/// A budget that no answer exceeds, even on a busy machine.
const AMPLE: Duration = Duration::from_secs(30);

/// A budget that a test waits for.
const SHORT: Duration = Duration::from_millis(200);

type Limiter = RedisLimiter<Connection>;

/// How a limiter decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Direct,
    /// By leases, of which none ends before the test does.
    Leased,
}

impl Way {
    fn of(self, limiter: Limiter) -> Limiter {
        match self {
            Self::Direct => limiter,
            Self::Leased => leased(limiter, Duration::from_secs(60)),
        }
    }
}

fn leased(limiter: Limiter, life: Duration) -> Limiter {
    let leased = limiter.leased(Leasing::new().with_life(life));
    leased.expect("leases")
}

/// Runs a test on each server, in each way.
fn in_each_way(test: impl Fn(Server, Way)) {
    for way in [Way::Direct, Way::Leased] {
        on_each_server(|server| test(server, way));
    }
}

/// Returns a limit of `burst` permits on the server at `url`, and its outages.
fn connected(url: &str, budget: Duration, burst: u64, fallback: Fallback) -> (Limiter, Events) {
    connected_with(url, budget, Duration::from_millis(20), burst, fallback)
}

fn connected_with(
    url: &str,
    budget: Duration,
    probe_every: Duration,
    burst: u64,
    fallback: Fallback,
) -> (Limiter, Events) {
    let events = Events::default();
    let seen = Arc::clone(&events);
    let client = connect_lazily(url).expect("an address");
    let connected = tollgate_redis::RedisServer::new(client)
        .with_budget(budget)
        .with_probe_every(probe_every)
        .on_outage(move |event| seen.lock().unwrap().push(event.clone()));
    let keys = Keys::new("test").expect("a namespace");
    let quota = Quota::per_hour(1).burst(burst);
    let limiter = RedisLimiter::new(Arc::new(connected), &keys, "limit", quota, fallback);
    (limiter.expect("a limit"), events)
}

fn limiter(server: &Server, budget: Duration, fallback: Fallback) -> (Limiter, Events) {
    connected(&server.url(), budget, BURST, fallback)
}
