//! Slots in use that a guard has, by the lease of its process.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::lease::hot::Hot;
use crate::lease::time::Time;

/// Slots that do not lapse. Dropped, they are idle again.
pub(crate) struct Inside {
    hot: Arc<Hot>,
    time: Time,
    n: u64,
}

/// The lease is looked at again after this at the latest, because timers may stand still while the
/// machine sleeps.
const LOOK_NS: u64 = 1_000_000_000;

impl Inside {
    pub(crate) const fn new(hot: Arc<Hot>, time: Time, n: u64) -> Self {
        Self { hot, time, n }
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.hot.is_lost(self.time.now_ns())
    }

    /// Waits until the slots are lost.
    pub(crate) async fn lost(&self) {
        let Some(slots) = self.hot.slots() else {
            return;
        };
        loop {
            let woken = slots.lost.notified();
            let now_ns = self.time.now_ns();
            if slots.is_lost(now_ns) {
                return;
            }
            let left_ns = slots.pool.held().until_ns().saturating_sub(now_ns);
            let _ = timeout(Duration::from_nanos(left_ns.min(LOOK_NS)), woken).await;
        }
    }

    /// Makes the slots idle. Returns how many came back: none if they are lost.
    pub(crate) fn leave(&mut self) -> u64 {
        let n = std::mem::take(&mut self.n);
        let slots = self.hot.slots();
        slots.map_or(0, |slots| slots.pool.leave(self.time.now_ns(), n))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if self.n > 0 {
            self.leave();
        }
    }
}
