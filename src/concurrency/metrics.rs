use super::Concurrency;
use crate::metrics::{Metric, Metrics, Value};

impl Metrics for Concurrency {
    fn value(&self, metric: Metric) -> Option<Value> {
        Some(match metric {
            Metric::Inside => self.inside().into(),
            Metric::Peak => self.peak().into(),
            Metric::Limit => self.limit().into(),
            Metric::Waiting => (self.waiting() as u64).into(),
            Metric::WaitingPermits => self.waiting_permits().into(),
            _ => return self.stats()?.value(metric),
        })
    }
}
