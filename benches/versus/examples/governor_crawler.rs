//! The crawler of `examples/crawler.rs` with governor. It runs in real time, because governor's
//! waits can't follow a simulated clock.

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use governor::{Jitter, Quota, RateLimiter};
use tokio::task::JoinSet;
use tokio::time::Instant;

const HOSTS: u32 = 10_000;
const POLITE: Duration = Duration::from_secs(2);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let once_in_two_seconds = Quota::with_period(POLITE).ok_or("no period")?;
    let hosts = Arc::new(RateLimiter::keyed(once_in_two_seconds));
    let visits = Arc::new(Mutex::new(HashMap::new()));
    let mut workers = JoinSet::new();
    for worker in 0..200 {
        let (hosts, visits) = (Arc::clone(&hosts), Arc::clone(&visits));
        workers.spawn(async move {
            let jitter = Jitter::up_to(Duration::from_millis(300));
            for page in 0..150 {
                let host = (worker * 53 + page * 7919) % HOSTS;
                hosts.until_key_ready_with_jitter(&host, jitter).await;
                fetch(host, &visits);
                if page % 50 == 0 {
                    hosts.retain_recent(); // otherwise the map grows without bound
                }
            }
        });
    }
    let start = Instant::now();
    workers.join_all().await;
    println!("30 000 pages of {HOSTS} hosts in {:?}", start.elapsed());
    Ok(())
}

/// Fetches a page, and reports when the crawler was too early at the host.
fn fetch(host: u32, visits: &Mutex<HashMap<u32, Instant>>) {
    let now = Instant::now();
    if let Some(before) = visits.lock().expect("no panic").insert(host, now) {
        if now - before < POLITE {
            println!("host {host} after {:?}", now - before);
        }
    }
}
