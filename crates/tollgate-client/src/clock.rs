//! The client's clock.

use tokio::time::Instant;
use tollgate::Tick;
use tollgate::clock::Clock;

/// Counts from when the layer was made, by tokio's clock. So it stands still in paused time, also
/// if the time of other runtimes in the process differs.
#[derive(Debug, Clone, Copy)]
pub(super) struct SinceMade(Instant);

impl SinceMade {
    pub(super) fn now() -> Self {
        Self(Instant::now())
    }
}

impl Clock for SinceMade {
    fn now(&self) -> Tick {
        let since = Instant::now().saturating_duration_since(self.0);
        Tick::ZERO.saturating_add(since)
    }
}
