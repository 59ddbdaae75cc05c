//! Concurrent callers of one key, and the account of what they were granted.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tollgate_redis::{Decider, Fallback};

use super::{AMPLE, Limiter, Way, connected, take};
use crate::server::{DEADLINE, Server};

const CALLERS: usize = 8;

/// What the callers of a whole run saw.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Seen {
    /// Grants by the server.
    pub(super) granted: u64,
    /// Denials by the server.
    pub(super) denied: u64,
    /// Grants of permits that were leased.
    pub(super) leased: u64,
    /// Denials because none that were leased are left.
    pub(super) denied_by_lease: u64,
    /// Grants by the fallback.
    pub(super) granted_without: u64,
    /// Denials by the fallback.
    pub(super) denied_without: u64,
    is_over: bool,
}

impl Seen {
    /// Returns how many permits of the server were granted.
    pub(super) fn spent(&self) -> u64 {
        self.granted + self.leased
    }

    /// Returns how many requests were denied because of the limit.
    pub(super) fn all_denied(&self) -> u64 {
        self.denied + self.denied_by_lease
    }

    pub(super) fn by_server(&self) -> u64 {
        self.granted + self.denied
    }

    pub(super) fn by_fallback(&self) -> u64 {
        self.granted_without + self.denied_without
    }
}

/// Callers that take one permit of `alice` after the other.
pub(super) struct Load {
    limiter: Arc<Limiter>,
    seen: Arc<Mutex<Seen>>,
    tasks: JoinSet<()>,
    start: Instant,
}

impl Load {
    pub(super) fn start(limiter: Limiter) -> Self {
        let limiter = Arc::new(limiter);
        let seen = Arc::<Mutex<Seen>>::default();
        let mut tasks = JoinSet::new();
        for _ in 0..CALLERS {
            let (limiter, seen) = (Arc::clone(&limiter), Arc::clone(&seen));
            tasks.spawn(async move {
                while !seen.lock().unwrap().is_over {
                    let (is_granted, decider) = take(&limiter.key("alice")).await;
                    {
                        let mut seen = seen.lock().unwrap();
                        let seen = &mut *seen;
                        *match (decider, is_granted) {
                            (Decider::Server, true) => &mut seen.granted,
                            (Decider::Server, false) => &mut seen.denied,
                            (Decider::Lease, true) => &mut seen.leased,
                            (Decider::Lease, false) => &mut seen.denied_by_lease,
                            (_, true) => &mut seen.granted_without,
                            (_, false) => &mut seen.denied_without,
                        } += 1;
                    }
                    // So that callers leave the processor to the server.
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            });
        }
        Self {
            limiter,
            seen,
            tasks,
            start: Instant::now(),
        }
    }

    pub(super) fn seen(&self) -> Seen {
        *self.seen.lock().unwrap()
    }

    /// Waits for a condition on what the callers have seen.
    pub(super) async fn until(&self, wanted: &str, is_met: impl Fn(Seen) -> bool) {
        let start = Instant::now();
        while !is_met(self.seen()) {
            let seen = self.seen();
            assert!(start.elapsed() < DEADLINE, "no {wanted}: {seen:?}");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Waits until the server, or what was leased from it, has granted `permits` more.
    pub(super) async fn until_server_grants(&self, permits: u64) {
        let before = self.seen().spent();
        let is_met = |seen: Seen| seen.spent() >= before + permits;
        self.until("grants by the server", is_met).await;
    }

    /// Waits until leases have granted `permits` more.
    pub(super) async fn until_leases_grant(&self, permits: u64) {
        let before = self.seen().leased;
        let is_met = |seen: Seen| seen.leased >= before + permits;
        self.until("grants by leases", is_met).await;
    }

    /// Waits until the fallback has decided `calls` times more.
    pub(super) async fn until_fallback_decides(&self, calls: u64) {
        let before = self.seen().by_fallback();
        let is_met = |seen: Seen| seen.by_fallback() >= before + calls;
        self.until("decisions by the fallback", is_met).await;
    }

    /// Lets all calls end, and returns what was seen over the whole run.
    pub(super) async fn stop(mut self) -> (Arc<Limiter>, Seen) {
        self.seen.lock().unwrap().is_over = true;
        while let Some(ended) = self.tasks.join_next().await {
            ended.expect("a caller");
        }
        (Arc::clone(&self.limiter), self.seen())
    }
}

/// Ends a run and checks its account: nothing was sent twice, each lost answer is counted, and the
/// fallback granted at most `at_most` in each outage, and in each minute. Returns how many permits
/// of `burst` the server has given away.
pub(super) async fn account(
    what: &str,
    way: Way,
    load: Load,
    server: &Server,
    burst: u64,
    at_most: u64,
) -> (Seen, u64) {
    let minutes = load.start.elapsed().as_secs() / 60 + 2;
    let (limiter, seen) = load.stop().await;
    let stats = limiter.server().stats();
    let scripts = server.scripts();
    // Asked without the proxy.
    let (auditor, _) = connected(&server.url(), AMPLE, burst, Fallback::Closed);
    let taken = burst - auditor.key("alice").available().await.expect("an answer");
    println!("{what}, {way:?}: {seen:?}, {stats:?}, {scripts} scripts, {taken} taken");
    assert!(seen.granted_without <= at_most * (stats.outages + minutes));
    if way == Way::Leased {
        // Messages are sent again, and go on after the callers.
        assert!(seen.leased > 0);
        assert!(stats.server >= seen.by_server(), "each answer was seen");
        return (seen, taken);
    }
    assert_eq!(stats.server, seen.by_server(), "each answer was seen");
    assert!(
        scripts <= stats.server + stats.lost,
        "nothing is sent twice"
    );
    assert!(
        taken <= seen.granted + stats.lost,
        "each lost answer counts"
    );
    (seen, taken)
}
