//! Samples of what the service counts.

use std::sync::Arc;
use std::sync::Mutex as Lock;
use std::sync::PoisonError;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
use tollgate_policy::operate::PolicyStats;

use super::Admin;
use crate::history::{PERIOD, Values};

/// The heaviest keys are counted anew after this number of samples: a minute.
const TURN: u64 = 30;
/// The statistics of tables are read again after this time: it visits all slots.
const TABLES_FOR: Duration = Duration::from_secs(10);

/// Reads the counters again and again, until the service has ended.
pub(crate) async fn run(admin: Arc<Admin>, mut ended: watch::Receiver<bool>) {
    let mut every = tokio::time::interval(PERIOD);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for number in 0_u64.. {
        tokio::select! {
            _ = every.tick() => {}
            _ = ended.changed() => return,
        }
        let now = now_ms();
        admin.sample(now);
        if let Some(heaviest) = admin.service.counters.heaviest.as_ref() {
            if number > 0 && number.is_multiple_of(TURN) {
                heaviest.turn(now / 1000);
            }
        }
    }
}

pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

impl Admin {
    fn sample(&self, now: u64) {
        let counters = &self.service.counters;
        let values = self.values(&self.service.policy.load());
        let values = Values {
            times: counters.times(),
            others: values.into_iter().map(|(_, _, value)| value).collect(),
        };
        let store_is_down = self.store.as_ref().is_some_and(|it| it.server.is_down());
        let each = |visit: &mut dyn FnMut(&str, _)| counters.each_rule(visit);
        self.history.sample(now, each, values, store_is_down);
    }

    /// Returns the statistics of all tables, which may be ten seconds old.
    pub(super) async fn stats(self: &Arc<Self>) -> Arc<PolicyStats> {
        let _one = self.scrapes.lock().await;
        if let Some(stats) = self.tables.get() {
            return stats;
        }
        let all = Arc::clone(self);
        let read = tokio::task::spawn_blocking(move || all.service.policy.load().stats());
        let stats = Arc::new(read.await.unwrap_or_default());
        self.tables.keep(Arc::clone(&stats));
        stats
    }
}

/// The statistics of all tables, and when they were read.
#[derive(Debug, Default)]
pub(crate) struct Tables(Lock<Option<(Instant, Arc<PolicyStats>)>>);

impl Tables {
    fn get(&self) -> Option<Arc<PolicyStats>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = kept.as_ref().filter(|(at, _)| at.elapsed() < TABLES_FOR);
        kept.map(|(_, stats)| Arc::clone(stats))
    }

    fn keep(&self, stats: Arc<PolicyStats>) {
        let kept = self.0.lock();
        *kept.unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), stats));
    }
}
