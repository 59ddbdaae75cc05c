//! What the tests ask of a limit, whichever client it has.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tollgate_redis::client::Client;
use tollgate_redis::{Decider, OutageEvent, RedisKey};

use crate::server::DEADLINE;

/// The outages of a server.
pub(crate) type Events = Arc<Mutex<Vec<OutageEvent>>>;

pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(test)
}

/// Takes one permit, and returns whether it was granted, and who decided.
pub(crate) async fn take<C: Client>(key: &RedisKey<'_, C>) -> (bool, Decider) {
    match key.try_acquire().await {
        Ok(grant) => (true, grant.decider()),
        Err(denial) => (false, denial.decider()),
    }
}

/// Takes permits until the server decides, and returns how many the server granted: at most one.
pub(crate) async fn until_recovered<C: Client>(key: &RedisKey<'_, C>) -> u64 {
    let start = Instant::now();
    loop {
        match take(key).await {
            (granted, Decider::Server) => return u64::from(granted),
            _ => assert!(start.elapsed() < DEADLINE, "the server decides again"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Checks that there was one outage, which has ended.
pub(crate) fn assert_one_outage(events: &Events) {
    let events = events.lock().unwrap();
    assert!(
        matches!(
            events[..],
            [OutageEvent::Began { .. }, OutageEvent::Ended { .. }]
        ),
        "{events:?}"
    );
}
