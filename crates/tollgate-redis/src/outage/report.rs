//! Reports of calls and outages: metrics of the crate `metrics`, and events of the crate `tracing`.

use std::fmt::Display;
use std::time::Duration;

/// How long the calls of a server took: those that it answered, and those that failed.
#[derive(Default)]
pub(crate) struct Times {
    #[cfg(feature = "metrics")]
    answered: std::sync::OnceLock<metrics::Histogram>,
    #[cfg(feature = "metrics")]
    failed: std::sync::OnceLock<metrics::Histogram>,
}

impl Times {
    /// A call has ended.
    pub(crate) fn took(&self, time: Duration, is_answered: bool) {
        #[cfg(feature = "metrics")]
        {
            let (histogram, outcome) = match is_answered {
                true => (&self.answered, "answered"),
                false => (&self.failed, "failed"),
            };
            let register = || {
                let name = "tollgate_redis_call_seconds";
                let help = "Time of a call to a store, by whether the store answered it.";
                metrics::describe_histogram!(name, metrics::Unit::Seconds, help);
                metrics::histogram!(name, "outcome" => outcome)
            };
            histogram.get_or_init(register).record(time.as_secs_f64());
        }
        let _ = (self, time, is_answered);
    }
}

/// An outage of a node, while it lasts.
#[derive(Debug)]
pub(crate) struct Lasting(());

impl Lasting {
    pub(crate) fn begin() -> Self {
        #[cfg(feature = "metrics")]
        {
            metrics::describe_gauge!("tollgate_outages", "Nodes of stores that are down.");
            metrics::gauge!("tollgate_outages").increment(1.0);
        }
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
