//! Statistics of limiters as metrics of the crate `metrics`.

use metrics::{Label, counter, describe_counter, describe_gauge, gauge};
use tollgate::stats::{Metric, Metrics, Value};

/// Sets metrics of the crate `metrics` to the statistics of a limiter, with these labels.
///
/// Call it where the metrics are read, or every few seconds: the statistics of a table count its
/// keys, which takes some time. The names are those of
/// [`write_prometheus`](tollgate::stats::write_prometheus) with the prefix `tollgate`, such as
/// `tollgate_tracked`.
///
/// ```
/// use std::sync::Arc;
/// use tollgate::{Keyed, Quota};
/// use tollgate_tower::{RateLimitLayer, record_stats};
///
/// let table = Arc::new(Keyed::token_bucket(Quota::per_second(5), 100_000)?);
/// let limit = RateLimitLayer::by_address(Arc::clone(&table)).name("address");
/// // Where `/metrics` is answered:
/// record_stats(&[("rule", "address")], &table.stats());
/// # let _ = limit;
/// # Ok::<(), tollgate::error::LimiterError>(())
/// ```
///
/// For a policy, call it for each rule and each table of its `stats()`.
pub fn record_stats(labels: &[(&str, &str)], stats: &dyn Metrics) {
    let label = |(name, value): &(&str, &str)| Label::new((*name).to_owned(), (*value).to_owned());
    let labels: Vec<_> = labels.iter().map(label).collect();
    for metric in Metric::ALL {
        let Some(value) = stats.value(*metric) else {
            continue;
        };
        let name = format!("tollgate_{}", metric.name());
        match value {
            Value::Whole(value) if metric.is_counter() => {
                describe_counter!(name.clone(), metric.help());
                counter!(name, labels.clone()).absolute(value);
            }
            value => {
                describe_gauge!(name.clone(), metric.help());
                gauge!(name, labels.clone()).set(real(value));
            }
        }
    }
}

/// Returns a value as a real number. Beyond 2^53 it is rounded.
#[expect(clippy::cast_precision_loss, reason = "a gauge is a real number")]
const fn real(value: Value) -> f64 {
    match value {
        Value::Whole(value) => value as f64,
        Value::Real(value) => value,
    }
}
