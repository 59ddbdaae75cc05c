//! A crawler that asks each of 10 000 hosts at most once in two seconds.
//!
//! ```text
//! cargo run --example crawler --features tokio,keyed
//! ```
//!
//! It runs in tokio's paused time, so waits take no real time. In a real crawler, remove
//! `start_paused` and use `SystemClock`.

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use tollgate::clock::TokioClock;
use tollgate::wait::{Jitter, TokioTimer};
use tollgate::{Keyed, Quota, TokenBucket};

const HOSTS: u32 = 10_000;
const POLITE: Duration = Duration::from_secs(2);

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn Error>> {
    let once = TokenBucket::new(Quota::per(1, POLITE))?;
    let hosts = Arc::new(Keyed::with_clock(once, 20_000, TokioClock)?);
    let visits = Arc::new(Mutex::new(HashMap::new()));
    let mut workers = JoinSet::new();
    for worker in 0..200 {
        let (hosts, visits) = (Arc::clone(&hosts), Arc::clone(&visits));
        workers.spawn(async move {
            let jitter = Jitter::up_to(Duration::from_millis(300));
            for page in 0..150 {
                let host = (worker * 53 + page * 7919) % HOSTS;
                let turn = hosts.key(&host).with_timer(TokioTimer).jitter(jitter);
                turn.acquire().await.expect("a turn comes");
                fetch(host, &visits);
            }
        });
    }
    let start = Instant::now();
    workers.join_all().await;
    println!("30 000 pages of {HOSTS} hosts in {:?}", start.elapsed());
    Ok(())
}

/// Fetches a page, and checks that the host was not asked too early.
fn fetch(host: u32, visits: &Mutex<HashMap<u32, Instant>>) {
    let now = Instant::now();
    if let Some(before) = visits.lock().expect("no panic").insert(host, now) {
        let gap = now - before;
        assert!(gap >= POLITE, "host {host} after {gap:?}");
    }
}
