//! What open fallbacks grant: their bounds hold over nodes, outages and periods, and what comes
//! back can be granted again.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, advance};
use tollgate::Quota;
use tollgate_redis::client::{Client, ClientError, Command, Reply};
use tollgate_redis::{Fallback, Keys, RedisAll, RedisKey, RedisLimiter, RedisServer};

/// A cluster in which each user has a node. Nodes that are up grant everything.
#[derive(Debug, Clone, Default)]
struct Nodes(Arc<Mutex<BTreeSet<u64>>>);

impl Nodes {
    fn set_down(&self, node: u64, is_down: bool) {
        let mut down = self.0.lock().unwrap();
        let _ = match is_down {
            true => down.insert(node),
            false => down.remove(&node),
        };
    }
}

impl Client for Nodes {
    async fn send(&self, command: &Command<'_>) -> Result<Reply, ClientError> {
        if self
            .0
            .lock()
            .unwrap()
            .contains(&self.node_of(command.keys()))
        {
            return Err(ClientError::NotSent("refused".into()));
        }
        let state = [0.0_f64, 2_000_000.0, 0.0].map(f64::to_le_bytes);
        Ok(Reply::List(vec![
            Reply::Int(1),
            Reply::Int(1_000_000),
            Reply::Bytes(state.concat()),
        ]))
    }

    /// Users are `0`, `1` and so on.
    fn node_of(&self, keys: &[Vec<u8>]) -> u64 {
        let key = String::from_utf8_lossy(&keys[0]).into_owned();
        let (_, user) = key.split_once('{').unwrap();
        user.split_once('}').unwrap().0.parse().unwrap()
    }
}

const PER: Duration = Duration::from_secs(60);

fn at_most(per: Option<Duration>) -> Fallback {
    Fallback::OpenAtMost { at_most: 10, per }
}

fn limiter(
    server: &Arc<RedisServer<Nodes>>,
    name: &str,
    fallback: Fallback,
) -> RedisLimiter<Nodes> {
    let keys = Keys::new("test").unwrap().with_readable_users();
    let quota = Quota::per_day(1).burst(1000);
    RedisLimiter::new(Arc::clone(server), &keys, name, quota, fallback).unwrap()
}

fn open(per: Option<Duration>) -> (Nodes, RedisLimiter<Nodes>) {
    let nodes = Nodes::default();
    let server = Arc::new(RedisServer::new(nodes.clone()));
    let limiter = limiter(&server, "limit", at_most(per));
    (nodes, limiter)
}

/// Returns how many of 20 requests the fallback grants.
async fn granted(key: &RedisKey<'_, Nodes>) -> usize {
    let mut granted = 0;
    for _ in 0..20 {
        let taken = key.try_acquire().await;
        granted += usize::from(taken.is_ok_and(|grant| grant.decider().is_fallback()));
    }
    granted
}

#[tokio::test(start_paused = true)]
async fn nodes_that_are_down_together_share_a_bound() {
    let (nodes, limiter) = open(None);
    let users = ["0", "1", "2", "3", "4", "5"];
    for user in users {
        assert!(limiter.key(user).try_acquire().await.is_ok());
    }
    let mut sum = 0;
    for (node, user) in (0..).zip(users) {
        nodes.set_down(node, true);
        sum += granted(&limiter.key(user)).await;
    }
    assert_eq!((sum, limiter.server().stats().outages), (10, 6));
    // One of them comes and goes, while others are down.
    for _ in 0..5 {
        nodes.set_down(0, false);
        advance(Duration::from_secs(1)).await;
        assert!(limiter.key("0").try_acquire().await.is_ok());
        nodes.set_down(0, true);
        sum += granted(&limiter.key("0")).await;
    }
    assert_eq!(sum, 10);
}

#[tokio::test(start_paused = true)]
async fn what_nodes_that_are_down_together_grant_comes_back() {
    let (nodes, limiter) = open(None);
    let closed = self::limiter(limiter.server(), "closed", Fallback::Closed);
    let [one, two] = ["0", "1"].map(|user| limiter.key(user));
    for (node, key) in (0..).zip([&one, &two]) {
        assert!(key.try_acquire().await.is_ok());
        nodes.set_down(node, true);
        assert!(key.try_acquire().await.is_ok());
    }
    let all = RedisAll::new(vec![limiter.key("0"), closed.key("0")]).unwrap();
    for _ in 0..20 {
        assert!(one.check_n(1).await.is_ok());
        let grant = one.try_acquire().await.unwrap();
        assert_eq!(one.undo(grant).await, Ok(1));
        assert!(all.try_acquire().await.is_err());
    }
    assert_eq!(granted(&two).await, 8);
}

#[tokio::test(start_paused = true)]
async fn a_request_for_nothing_forgives_no_debt() {
    let (nodes, limiter) = open(None);
    nodes.set_down(0, true);
    let key = limiter.key("0");
    let [five, other] =
        [key.try_acquire_n(5).await, key.try_acquire_n(5).await].map(Result::unwrap);
    assert_eq!(key.settle(five, 100).await.unwrap().charged, 95);
    let _ = key.check_n(0).await;
    assert_eq!(key.undo(other).await, Ok(5));
    assert_eq!(granted(&key).await, 0);
}

/// A server that answers now and then would renew the bound each time.
#[tokio::test(start_paused = true)]
async fn a_bound_for_a_period_holds_over_outages() {
    let (nodes, limiter) = open(Some(PER));
    let key = limiter.key("0");
    let start = Instant::now();
    let mut counts = vec![0; 3];
    while start.elapsed() < 3 * PER {
        let minute = start.elapsed().as_secs() / PER.as_secs();
        nodes.set_down(0, true);
        counts[usize::try_from(minute).unwrap()] += granted(&key).await;
        nodes.set_down(0, false);
        advance(Duration::from_millis(510)).await;
        assert!(key.try_acquire().await.is_ok());
    }
    assert_eq!(counts, [10; 3]);
}
