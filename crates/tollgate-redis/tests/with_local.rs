//! Local limits before those of a server: what is undone when a request is denied, dropped, or ends
//! in a panic.

use std::future::pending;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tollgate::compose::All;
use tollgate::{Concurrency, Keyed, Limiter, Quota, TokenBucket};
use tollgate_redis::client::{Client, ClientError, Command, Reply};
use tollgate_redis::{Decider, Fallback, Keys, RedisAll, RedisLimiter, Server, WithLocalDenial};

/// How a server does not answer.
#[derive(Debug, Clone, Copy)]
enum Silence {
    Gone,
    Hangs,
    Panics,
}

/// A server that answers no call.
#[derive(Debug)]
struct Silent {
    silence: Silence,
    calls: Arc<Mutex<u64>>,
}

impl Client for Silent {
    async fn send(&self, _: &Command<'_>) -> Result<Reply, ClientError> {
        *self.calls.lock().unwrap() += 1;
        match self.silence {
            Silence::Gone => Err(ClientError::NotSent("gone".into())),
            Silence::Hangs => pending().await,
            Silence::Panics => panic!("the client panics"),
        }
    }
}

/// Returns a limit of a server that does not answer, and the count of its calls.
fn remote(silence: Silence, fallback: Fallback) -> (RedisLimiter<Silent>, Arc<Mutex<u64>>) {
    let calls = Arc::default();
    let server = Server::new(Silent {
        silence,
        calls: Arc::clone(&calls),
    });
    let server = Arc::new(server.with_budget(Duration::from_secs(1)));
    let quota = Quota::per_hour(20);
    let keys = Keys::new("test").unwrap();
    let limiter = RedisLimiter::new(server, &keys, "limit", quota, fallback);
    (limiter.unwrap(), calls)
}

struct Local {
    process: Limiter<TokenBucket>,
    addresses: Keyed<TokenBucket>,
    inside: Concurrency,
}

impl Local {
    fn new() -> Self {
        Self {
            process: Limiter::token_bucket(Quota::per_hour(10)).unwrap(),
            addresses: Keyed::token_bucket(Quota::per_hour(5), 100).unwrap(),
            inside: Concurrency::new(20).unwrap(),
        }
    }

    /// Returns what is left: of the process, of an address, and how many are inside.
    fn left(&self) -> (u64, u64, u64) {
        let address = self.addresses.key("10.0.0.1").available();
        (self.process.available(), address, self.inside.inside())
    }
}

macro_rules! all_of {
    ($local:expr) => {
        All::new((
            &$local.process,
            $local.addresses.key("10.0.0.1"),
            &$local.inside,
        ))
        .unwrap()
    };
}

const FULL: (u64, u64, u64) = (10, 5, 0);

#[tokio::test(start_paused = true)]
async fn a_local_denial_makes_no_call() {
    let (users, calls) = remote(
        Silence::Gone,
        Fallback::OpenAtMost {
            at_most: 100,
            per: None,
        },
    );
    let local = Local::new();
    let all = all_of!(local);
    let limits = RedisAll::new(vec![users.key("alice")])
        .unwrap()
        .with_local(&all);
    match limits.try_acquire_n(6).await {
        Err(WithLocalDenial::Local(denied)) => assert_eq!(denied.member(), Some(1)),
        other => panic!("{other:?}"),
    }
    assert_eq!(*calls.lock().unwrap(), 0);
    assert_eq!(local.left(), FULL);
    assert!(limits.try_acquire_n(5).await.is_ok());
    assert_eq!(*calls.lock().unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_denial_after_the_local_limits_undoes_them() {
    let (users, calls) = remote(Silence::Gone, Fallback::Closed);
    let local = Local::new();
    let all = all_of!(local);
    let limits = RedisAll::new(vec![users.key("alice")])
        .unwrap()
        .with_local(&all);
    for _ in 0..20 {
        match limits.try_acquire_n(5).await {
            Err(WithLocalDenial::Server(denial)) => assert_eq!(denial.decider(), Decider::Closed),
            other => panic!("{other:?}"),
        }
        assert_eq!(local.left(), FULL);
    }
    assert_eq!(*calls.lock().unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_request_undoes_its_local_limits() {
    let (users, calls) = remote(Silence::Hangs, Fallback::Closed);
    let local = Local::new();
    let all = all_of!(local);
    let limits = RedisAll::new(vec![users.key("alice")])
        .unwrap()
        .with_local(&all);
    let short = tokio::time::timeout(Duration::from_millis(1), async {
        tokio::join!(limits.try_acquire_n(5), async {
            assert_eq!(local.left(), (5, 0, 5));
        })
    });
    assert!(short.await.is_err());
    assert_eq!(local.left(), FULL);
    assert_eq!(*calls.lock().unwrap(), 1);
    assert_eq!(users.server().stats().lost, 1);
}

#[test]
fn a_panic_of_the_client_undoes_the_local_limits() {
    let (users, _) = remote(Silence::Panics, Fallback::Closed);
    let local = Local::new();
    let all = all_of!(local);
    let limits = RedisAll::new(vec![users.key("alice")])
        .unwrap()
        .with_local(&all);
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().build().unwrap();
    let request = AssertUnwindSafe(|| runtime.block_on(limits.try_acquire_n(5)).is_ok());
    assert!(std::panic::catch_unwind(request).is_err());
    assert_eq!(local.left(), FULL);
    assert_eq!(users.server().stats().lost, 1);
}

#[tokio::test(start_paused = true)]
async fn a_grant_is_undone_and_settled_as_a_whole() {
    let (users, _) = remote(
        Silence::Gone,
        Fallback::OpenAtMost {
            at_most: 5,
            per: None,
        },
    );
    let local = Local::new();
    let all = all_of!(local);
    let limits = RedisAll::new(vec![users.key("alice")])
        .unwrap()
        .with_local(&all);
    let granted = limits.try_acquire_n(5).await.unwrap();
    assert_eq!(granted.local.remaining(), 0);
    assert_eq!(granted.server[0].decider(), Decider::Open);
    assert!(users.key("alice").try_acquire().await.is_err());
    assert_eq!(limits.undo(granted).await, Ok((15, vec![5])));
    assert_eq!(local.left(), FULL);

    let granted = limits.try_acquire_n(5).await.unwrap();
    let (here, there) = limits.settle(granted, 2).await.unwrap();
    assert_eq!((here.returned, there[0].returned), (6, 3));
    assert_eq!(local.left(), (8, 3, 0));
    assert!(users.key("alice").try_acquire_n(3).await.is_ok());
    assert!(users.key("alice").try_acquire().await.is_err());
}
