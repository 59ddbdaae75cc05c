//! Everything at once, and then the quiet.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::changes::{self, Reloads};
use super::checks;
use super::clients::Client;
use super::counts::Counts;
use super::http::Connection;
use super::http2;
use super::leaving;
use super::metrics::Metrics;
use super::samples::{self, Sample};
use crate::serve::Service;
use crate::server::Server;

/// How long decisions are held.
pub(super) const HOLD_S: u64 = 2;

/// What a soak found.
pub(super) struct Found {
    pub(super) samples: Vec<Sample>,
    pub(super) reloads: Reloads,
    /// How long clients asked.
    pub(super) seconds: f64,
    /// The file descriptors of the idle process, before and after.
    pub(super) descriptors: [u64; 2],
    pub(super) metrics: Metrics,
}

/// Asks, leaves, reloads and stops the store for this time, and then waits until all is quiet.
pub(super) async fn soak(
    service: &Service,
    counts: &Arc<Counts>,
    folder: &Path,
    server: Option<Server>,
    time: Duration,
) -> Result<Found, String> {
    let store = server.as_ref().map(Server::url);
    let client = || Client::new(&service.address, Arc::clone(counts));
    client().await?.all_keys().await?;
    let before = until_quiet(service, None).await?;

    let mut tasks = JoinSet::new();
    start_clients(&mut tasks, &service.address, counts).await?;
    let end = Instant::now() + time;
    let mut reloader = client().await?;
    let changing = async {
        let fail = |error: &String| counts.fail(error.clone());
        let reloading = async {
            changes::reload(service, folder, store.as_deref(), &mut reloader, end)
                .await
                .inspect_err(fail)
        };
        let outages = async {
            match server {
                Some(server) => changes::outages(server, &service.address, counts, time)
                    .await
                    .inspect_err(fail)
                    .map(Some),
                None => Ok(None),
            }
        };
        let (reloads, server) = tokio::join!(reloading, outages);
        // A soak that failed does not wait for its end.
        while Instant::now() < end && !counts.stops() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        counts.stop();
        Ok::<_, String>((reloads?, server?))
    };
    let every = (time / 60).max(Duration::from_secs(1));
    let sampling = async {
        let id = service.child.id();
        let samples = samples::take(id, &service.admin, counts, every).await;
        samples.inspect_err(|error| counts.fail(error.clone()))
    };
    let (changed, samples) = tokio::join!(changing, sampling);
    let samples = samples?;
    print!("{}", samples::table(&samples));
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|error| error.to_string())?;
    }
    let (reloads, _server) = changed?;
    let seconds = counts.start.elapsed().as_secs_f64();
    drop(reloader);
    let after = until_quiet(service, Some(before)).await?;
    let metrics = Metrics::fetch(&mut Connection::open(&service.admin).await?).await?;
    Ok(Found {
        samples,
        reloads,
        seconds,
        descriptors: [before, after],
        metrics,
    })
}

/// Starts all clients, the well-behaved ones and those that leave.
async fn start_clients(
    tasks: &mut JoinSet<()>,
    address: &str,
    counts: &Arc<Counts>,
) -> Result<(), String> {
    let client = || Client::new(address, Arc::clone(counts));
    let hold = Duration::from_secs(HOLD_S);
    start(tasks, counts, client().await?.nginx(0));
    start(tasks, counts, client().await?.nginx(1000));
    start(tasks, counts, client().await?.single(2000));
    start(tasks, counts, client().await?.lists(3000));
    start(tasks, counts, client().await?.jobs(hold));
    start(tasks, counts, client().await?.jobs(hold));
    let both = || (address.to_owned(), Arc::clone(counts));
    let (address, told) = both();
    start(tasks, counts, http2::single(address, told, 4000));
    for turn in [0, 5000] {
        let (address, told) = both();
        tasks.spawn(leaving::leave(address, told, turn));
    }
    Ok(())
}

/// Starts a well-behaved client. If something is wrong, all ends.
fn start(
    tasks: &mut JoinSet<()>,
    counts: &Arc<Counts>,
    client: impl Future<Output = Result<(), String>> + Send + 'static,
) {
    let counts = Arc::clone(counts);
    tasks.spawn(async move {
        if let Err(error) = client.await {
            counts.fail(error);
        }
    });
}

/// Waits until no client is connected, nothing is held, and the process has at most a few file
/// descriptors more than before. Returns how many, also if they stay too many.
async fn until_quiet(service: &Service, before: Option<u64>) -> Result<u64, String> {
    let mut admin = Connection::open(&service.admin).await?;
    let start = Instant::now();
    loop {
        let metrics = Metrics::fetch(&mut admin).await?;
        let names = ["connections", "held", "pending_bytes"];
        let left = names.map(|name| metrics.get(name));
        let files = samples::descriptors(service.child.id())?;
        let checked = checks::descriptors(before.unwrap_or(files), files);
        let (is_quiet, is_late) = (
            left == names.map(|_| Ok(0)),
            start.elapsed() > Duration::from_secs(60),
        );
        // Too many files are said with all else that is wrong.
        if is_quiet && (checked.is_ok() || is_late) {
            return Ok(files);
        }
        if is_late {
            return Err(format!("{names:?} are {left:?}"));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
