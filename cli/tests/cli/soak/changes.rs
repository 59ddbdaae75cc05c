//! What happens to the service: reloads, and outages of its store.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::clients::{Client, Question};
use super::counts::Counts;
use super::http::Connection;
use super::metrics::Metrics;
use super::policy::{self, SHARED, SMALL};
use crate::serve::Service;
use crate::server::Server;

/// The token of operators.
pub(super) const TOKEN: &str = "a-token-of-a-soak";

/// Far longer than a change takes, even on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// How many reloads there were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Reloads {
    pub(super) done: u64,
    pub(super) failed: u64,
}

impl Reloads {
    pub(super) fn of(metrics: &Metrics) -> Result<Self, String> {
        Ok(Self {
            done: metrics.get("reloads_total")?,
            failed: metrics.get("reloads_failed_total")?,
        })
    }

    const fn count(&mut self, is_good: bool) {
        match is_good {
            true => self.done += 1,
            false => self.failed += 1,
        }
    }
}

/// Writes a new policy about each second until `end`, and three at least. Each third one is bad:
/// it changes nothing.
pub(super) async fn reload(
    service: &Service,
    folder: &Path,
    store: Option<&str>,
    client: &mut Client,
    end: Instant,
) -> Result<Reloads, String> {
    let mut admin = Connection::open(&service.admin).await?;
    let (mut reloads, mut in_force) = (Reloads::default(), 0);
    let mut next = Instant::now();
    for version in 1.. {
        next += Duration::from_secs(1);
        tokio::time::sleep_until(next).await;
        if client.counts.stops() || (version > 3 && Instant::now() >= end) {
            break;
        }
        let is_good = version % 3 != 0;
        let text = match is_good {
            true => policy::version(version, store),
            false => policy::bad(version, store),
        };
        // Half a file would be another one.
        let (new, file) = (folder.join("new"), folder.join("limits.toml"));
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, &file));
        written.map_err(|error| error.to_string())?;
        reloads.count(is_good);
        until_counted(&mut admin, reloads).await?;
        if is_good {
            in_force = version;
        }
        // The same file once more, in other ways.
        match version % 4 {
            1 => {
                let header = format!("authorization: Bearer {TOKEN}\r\n");
                let said = admin.post("/reload", &header, "").await?;
                if said.status != if is_good { 200 } else { 422 } {
                    return Err(format!("version {version}: {said:?}"));
                }
                reloads.count(is_good);
            }
            3 => {
                service.signal("HUP");
                reloads.count(is_good);
            }
            _ => {}
        }
        until_counted(&mut admin, reloads).await?;
        let said = client.decide(Question::new(SMALL, 0), "").await?;
        let burst = said.limits.first().map(|limit| limit.quota);
        if burst != Some(policy::small_burst(in_force)) {
            return Err(format!("version {in_force} decides, but says {said:?}"));
        }
    }
    Ok(reloads)
}

/// Waits until the service has counted these reloads. More of them are an error.
async fn until_counted(admin: &mut Connection, expected: Reloads) -> Result<(), String> {
    let start = Instant::now();
    loop {
        let counted = Reloads::of(&Metrics::fetch(admin).await?)?;
        if counted == expected {
            return Ok(());
        }
        let is_more = counted.done > expected.done || counted.failed > expected.failed;
        if is_more || start.elapsed() > DEADLINE {
            return Err(format!("{counted:?} are counted, and not {expected:?}"));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Stops the store for a tenth of the time, and later kills it and starts it again after as long.
pub(super) async fn outages(
    mut server: Server,
    address: &str,
    counts: &Arc<Counts>,
    time: Duration,
) -> Result<Server, String> {
    let (start, tenth) = (Instant::now(), time / 10);
    tokio::time::sleep_until(start + tenth * 3).await;
    server.signal("STOP");
    until_fallback(address, counts, true).await?;
    tokio::time::sleep_until(start + tenth * 4).await;
    server.signal("CONT");
    until_fallback(address, counts, false).await?;

    tokio::time::sleep_until(start + tenth * 6).await;
    server.kill();
    until_fallback(address, counts, true).await?;
    tokio::time::sleep_until(start + tenth * 7).await;
    server.start(false);
    until_fallback(address, counts, false).await?;
    Ok(server)
}

/// Asks until a fallback decides, or the store again.
async fn until_fallback(address: &str, counts: &Arc<Counts>, decides: bool) -> Result<(), String> {
    // The service would close a connection that is quiet between the outages.
    let mut client = Client::new(address, Arc::clone(counts)).await?;
    let start = Instant::now();
    for turn in 0.. {
        let said = client.decide(Question::new(SHARED, turn), "").await?;
        if counts.stops() || said.fallback.is_some() == decides {
            return Ok(());
        }
        if start.elapsed() > DEADLINE {
            return Err(format!("no fallback should decide, or one: {said:?}"));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}
