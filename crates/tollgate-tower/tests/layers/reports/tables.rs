//! The statistics of a table as metrics: how full it is, and how many keys it evicted.

use std::collections::BTreeMap;
use std::sync::Arc;

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tollgate::stats::{Metric, Metrics, Value};
use tollgate::{Keyed, ManualClock, Quota, TokenBucket};
use tollgate_tower::{RateLimitLayer, record_stats};

use crate::reports::requests::{from, send};

#[test]
fn each_statistic_has_its_kind_its_value_and_its_description() {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().unwrap();
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let run = async {
        let bucket = TokenBucket::new(Quota::per_hour(2)).unwrap();
        let table = Keyed::with_clock(bucket, 100, ManualClock::new()).unwrap();
        let table = Arc::new(table);
        let layer = RateLimitLayer::by_address(Arc::clone(&table)).name("address");
        for number in 0..50_000 {
            send(&layer, from(number)).await;
        }
        // What is recorded twice is the same as once.
        record_stats(&[("rule", "address")], &table.stats());
        record_stats(&[("rule", "address")], &table.stats());
        table.stats()
    };
    let stats = metrics::with_local_recorder(&recorder, || runtime.block_on(run));
    assert!(stats.evicted > 1000, "{stats:?}");
    let mut found = BTreeMap::new();
    for (key, _, help, value) in snapshotter.snapshot().into_vec() {
        let (name, labels) = key.key().clone().into_parts();
        let labels: Vec<_> = labels.iter().map(|label| label.value()).collect();
        if labels == ["address"] {
            let name = name.as_str().strip_prefix("tollgate_").unwrap().to_owned();
            assert_eq!(found.insert(name, (help.unwrap(), value)).map(|_| ()), None);
        }
    }
    for metric in Metric::ALL {
        let recorded = found.remove(metric.name());
        let Some(Value::Whole(expected)) = stats.value(*metric) else {
            assert_eq!(recorded, None);
            continue;
        };
        let (help, value) = recorded.unwrap();
        assert_eq!(&*help, metric.help());
        match (metric.is_counter(), value) {
            (true, DebugValue::Counter(value)) => assert_eq!(value, expected, "{metric:?}"),
            (false, DebugValue::Gauge(value)) => assert_eq!(value.into_inner(), expected as f64),
            (_, other) => panic!("{metric:?}: {other:?}"),
        }
    }
    assert!(found.is_empty(), "{found:?}");
}
