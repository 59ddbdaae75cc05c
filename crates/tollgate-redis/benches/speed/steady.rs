//! Leased decisions in steady demand, with the network at a millisecond, and with the server
//! stopped.

use std::future::Future;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use tokio::task::unconstrained;
use tokio::time::{MissedTickBehavior, interval};
use tollgate::Quota;
use tollgate_redis::client::{Connection, connect_lazily};
use tollgate_redis::{Decider, Fallback, Keys, LeaseStats, Leasing, RedisLimiter, RedisServer};

use super::join_all;
use super::server::Server;

/// How long a request or an answer takes.
const ONE_WAY: Duration = Duration::from_micros(500);

/// Decisions in each millisecond.
const EACH_MS: u64 = 100;

/// At most this many round trips for each 1000 decisions.
const MOST_TRIPS: f64 = 2.0;

/// What was seen of a phase.
#[derive(Default)]
struct Seen {
    nanos: Vec<u32>,
    /// Decisions whose future was pending when it was first polled.
    pending: u64,
    by_lease: u64,
    /// By the fallback, because the server does not answer and nothing is left.
    by_fallback: u64,
    trips: u64,
    messages: u64,
}

/// Measures, prints what was seen, and returns whether it meets the targets.
pub(crate) async fn measure(server: &Server) -> bool {
    println!(
        "\nleased, {} decisions a second, {:?} away\n{:28} {:>9} {:>9} {:>9} {:>9} {:>9} {:>11} {:>11}",
        EACH_MS * 1000,
        2 * ONE_WAY,
        "",
        "by lease",
        "fallback",
        "pending",
        "median ns",
        "p99 ns",
        "trips/1000",
        "messages/1000",
    );
    let mut met = true;
    for keys in [1, 100] {
        let limiter = limiter(server, keys);
        warm_up(&limiter, keys).await;
        let _: Seen = decide(&limiter, keys, Duration::from_secs(1)).await;
        let steady = decide(&limiter, keys, Duration::from_secs(3)).await;
        met &= steady.show(&format!("{keys} keys"));
        met &= steady.trips_each() <= MOST_TRIPS;
        server.signal("STOP");
        let stopped = decide(&limiter, keys, Duration::from_secs(1)).await;
        server.signal("CONT");
        met &= stopped.show(&format!("{keys} keys, server stopped"));
    }
    println!("target: none pending, and at most {MOST_TRIPS} round trips for 1000 decisions");
    met
}

/// A limiter as in a process of its own, with a network that takes its time.
fn limiter(server: &Server, keys: u64) -> RedisLimiter<Connection> {
    let client = connect_lazily(slow(server.socket())).expect("an address");
    let name = format!("steady {keys}");
    let limiter = RedisLimiter::new(
        Arc::new(RedisServer::new(client)),
        &Keys::new("api").expect("a namespace"),
        &name,
        Quota::per_second(1_000_000).burst(1_000_000),
        Fallback::Open,
    );
    limiter
        .expect("a limit")
        .leased(Leasing::new())
        .expect("leases")
}

/// Asks for all keys so often that they get leases.
async fn warm_up(limiter: &RedisLimiter<Connection>, keys: u64) {
    for _ in 0..20 {
        let ask = |key| {
            let key = limiter.key(format!("user {key}"));
            Box::pin(async move { drop(key.try_acquire().await) })
        };
        join_all((0..keys).map(ask).collect()).await;
    }
}

/// Decides at a steady rate for a while.
async fn decide(limiter: &RedisLimiter<Connection>, keys: u64, long: Duration) -> Seen {
    let names: Vec<_> = (0..keys).map(|key| format!("user {key}")).collect();
    let before = stats(limiter);
    let mut seen = Seen::default();
    let mut turns = names.iter().cycle();
    let mut ticks = interval(Duration::from_millis(1));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for _ in 0..long.as_millis() {
        ticks.tick().await;
        for name in turns.by_ref().take(EACH_MS as usize) {
            let start = Instant::now();
            let key = limiter.key(name);
            // Without a budget of the runtime, only a wait for the network is pending.
            let mut taken = pin!(unconstrained(key.try_acquire()));
            let polled = taken.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            let nanos = start.elapsed().as_nanos();
            let taken = match polled {
                Poll::Ready(taken) => taken,
                Poll::Pending => {
                    seen.pending += 1;
                    taken.await
                }
            };
            match taken.map(|grant| grant.decider()) {
                Ok(Decider::Lease) => seen.by_lease += 1,
                Ok(Decider::Open) => seen.by_fallback += 1,
                _ => {}
            }
            seen.nanos.push(nanos as u32);
        }
    }
    let after = stats(limiter);
    seen.trips = after.trips - before.trips;
    seen.messages = after.messages - before.messages;
    seen.nanos.sort_unstable();
    seen
}

fn stats(limiter: &RedisLimiter<Connection>) -> LeaseStats {
    limiter.lease_stats().expect("leases")
}

impl Seen {
    fn each(&self, of: u64) -> f64 {
        of as f64 * 1000.0 / self.nanos.len().max(1) as f64
    }

    fn trips_each(&self) -> f64 {
        self.each(self.trips)
    }

    /// Prints what was seen, and returns whether no decision waited.
    fn show(&self, name: &str) -> bool {
        let at = |percent: usize| {
            let index = self.nanos.len() * percent / 100;
            self.nanos.get(index).copied().unwrap_or(0)
        };
        println!(
            "{name:28} {:>9} {:>9} {:>9} {:>9} {:>9} {:>11.2} {:>11.2}",
            self.by_lease,
            self.by_fallback,
            self.pending,
            at(50),
            at(99),
            self.trips_each(),
            self.each(self.messages),
        );
        self.pending == 0
    }
}

/// Returns an address behind which the server is this far away.
fn slow(socket: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for client in listener.incoming() {
            let client = client.expect("a connection");
            let server = UnixStream::connect(&socket).expect("the server");
            relay(&client, &server);
        }
    });
    format!("redis://{address}")
}

fn relay(client: &TcpStream, server: &UnixStream) {
    client.set_nodelay(true).expect("a connection");
    let (mut asks, mut to_server) = (client.try_clone(), server.try_clone());
    let (mut answers, mut to_client) = (server.try_clone(), client.try_clone());
    thread::spawn(move || {
        if let (Ok(asks), Ok(to_server)) = (&mut asks, &mut to_server) {
            pass(asks, to_server);
            let _ = to_server.shutdown(Shutdown::Both);
        }
    });
    thread::spawn(move || {
        if let (Ok(answers), Ok(to_client)) = (&mut answers, &mut to_client) {
            pass(answers, to_client);
            let _ = to_client.shutdown(Shutdown::Both);
        }
    });
}

/// Passes bytes on, each a while after it came.
fn pass(from: &mut impl Read, to: &mut impl Write) {
    let mut bytes = [0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        thread::sleep(ONE_WAY);
        if to.write_all(bytes.get(..read).unwrap_or(&[])).is_err() {
            return;
        }
    }
}
