//! Reports of outages: a gauge of the crate `metrics`, and events of the crate `tracing`.

use std::fmt::Display;
use std::time::Duration;

/// An outage of a node, while it lasts.
#[derive(Debug)]
pub(crate) struct Lasting(());

impl Lasting {
    pub(crate) fn begin() -> Self {
        #[cfg(feature = "metrics")]
        metrics::gauge!("tollgate_outages").increment(1.0);
        Self(())
    }
}

impl Drop for Lasting {
    /// The outage has ended, or the server's limits are no longer used.
    fn drop(&mut self) {
        #[cfg(feature = "metrics")]
        metrics::gauge!("tollgate_outages").decrement(1.0);
    }
}

/// An outage begins.
pub(crate) fn began(why: &dyn Display) {
    #[cfg(feature = "tracing")]
    tracing::warn!(target: "tollgate", %why, "an outage of a store begins");
    let _ = why;
}

/// An outage ends.
pub(crate) fn ended(lasted: Duration, fallbacks: u64) {
    #[cfg(feature = "tracing")]
    tracing::info!(target: "tollgate", ?lasted, fallbacks, "an outage of a store ends");
    let _ = (lasted, fallbacks);
}
