//! Statistics as metrics for a monitoring system.

mod error;
mod metric;
mod prometheus;

pub use error::MetricsError;
pub(crate) use metric::{Metric, MetricSource, Value};
pub use prometheus::write_prometheus;

/// A source of metrics for [`write_prometheus`]: the statistics in this module,
/// [`Concurrency`](crate::Concurrency), [`Leases`](crate::Leases),
/// [`WaitingRoom`](crate::WaitingRoom), and the smooth limiters.
pub trait Metrics: MetricSource {}

impl<T: MetricSource> Metrics for T {}
