//! Statistics as metrics for a monitoring system.

mod error;
mod metric;
mod prometheus;

pub use error::MetricsError;
pub use metric::{Metric, Metrics, Value};
pub use prometheus::write_prometheus;
