//! The client's clock.

use tokio::time::Instant;
use tollgate::Tick;
use tollgate::clock::Clock;

/// Counts from when the layer was made, by tokio's clock. So it stands still if the runtime's time
/// is paused, even if other runtimes in the process have another time.
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
