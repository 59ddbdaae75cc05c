//! A limiter that takes a tick, as a contestant.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate::Tick;
use tollgate_versus::{AskAt, START};

use super::contestants::timing::{Contestant, Kind};

/// A limiter that takes a tick: each turn is `STEP` nanoseconds later. Each series of allowed
/// decisions begins later than the last, so that its window is empty. Denied decisions always begin
/// at [`START`].
pub(crate) struct AskedAt<G, const STEP: u64 = 1> {
    limiter: G,
    kind: Kind,
    start: AtomicU64,
}

/// The time between two series: 18 minutes.
const LATER: u64 = 1 << 40;

impl<G, const STEP: u64> AskedAt<G, STEP> {
    pub(crate) const fn new(limiter: G, kind: Kind) -> Self {
        let start = AtomicU64::new(START.as_nanos());
        Self {
            limiter,
            kind,
            start,
        }
    }
}

// ORDERING: Relaxed. The tick publishes nothing, and changes only while no thread decides.
impl<G: AskAt, const STEP: u64> Contestant for AskedAt<G, STEP> {
    #[inline(always)]
    fn decide(&self, turn: u64) -> bool {
        let now = self.start.load(Ordering::Relaxed) + turn * STEP;
        self.limiter.is_allowed_at(Tick::from_nanos(now))
    }

    fn prepare(&self) {
        match self.kind {
            Kind::Allowed => {
                self.start.fetch_add(LATER, Ordering::Relaxed);
            }
            Kind::Denied => while self.limiter.is_allowed_at(START) {},
        }
    }
}
