//! Counters are registered and described once, and not for each decision.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use tollgate::{Keyed, ManualClock, Quota, TokenBucket};
use tollgate_policy::{LivePolicy, Policy};
use tollgate_tower::RateLimitLayer;

use crate::reports::requests::{from, send};

/// Counts how often each counter is registered, and what it is described as.
#[derive(Default)]
struct Registry {
    registered: Mutex<BTreeMap<String, u32>>,
    described: Mutex<BTreeMap<String, String>>,
}

impl Recorder for Registry {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, help: SharedString) {
        let mut described = self.described.lock().unwrap();
        described.insert(name.as_str().to_owned(), help.into_owned());
    }

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let labels: Vec<_> = key.labels().map(|label| label.value()).collect();
        let mut registered = self.registered.lock().unwrap();
        *registered.entry(labels.join(" ")).or_default() += 1;
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

/// Runs a future, and returns how often each counter was registered.
fn registered(run: impl Future<Output = ()>) -> BTreeMap<String, u32> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().unwrap();
    let registry = Registry::default();
    metrics::with_local_recorder(&registry, || runtime.block_on(run));
    let described = registry.described.into_inner().unwrap();
    let help = described.get("tollgate_requests_total").unwrap();
    assert!(help.starts_with("Requests"), "{help}");
    registry.registered.into_inner().unwrap()
}

fn once<const N: usize>(labels: [&str; N]) -> BTreeMap<String, u32> {
    labels.map(|labels| (labels.to_owned(), 1)).into()
}

#[test]
fn of_a_layer_and_its_clones() {
    let registered = registered(async {
        let bucket = TokenBucket::new(Quota::per_hour(2)).unwrap();
        let table = Keyed::with_clock(bucket, 100, ManualClock::new()).unwrap();
        let layer = RateLimitLayer::by_address(table);
        // Its table is the other's, and so are the permits that are left.
        let named = layer.clone().name("named");
        for number in 0..20 {
            send(&layer.clone(), from(number / 4)).await;
            send(&layer.clone().shadow(), from(number / 4)).await;
            send(&named.clone(), from(number / 4)).await;
        }
    });
    let counters = [
        "default allowed",
        "default denied",
        "default shadow",
        "named denied",
    ];
    assert_eq!(registered, once(counters));
}

#[test]
fn of_a_policy_over_reloads() {
    let registered = registered(async {
        let policy = |limit, trial| {
            format!(
                "apply = 'all'\n[[rule]]\nname = 'api'\nlimit = '{limit}'\n\
                 [[rule]]\nname = '{trial}'\nlimit = '9/h'\nshadow = true\n"
            )
        };
        let builder = Policy::builder().clock(ManualClock::new());
        let live = LivePolicy::new(builder.build_toml(&policy("2/h", "trial")).unwrap());
        let live = Arc::new(live);
        let layer = RateLimitLayer::policy(Arc::clone(&live));
        for number in 0..10 {
            send(&layer, from(number)).await;
        }
        let _ = live.reload_toml(&policy("3/h", "new")).unwrap();
        for number in 0..10 {
            send(&layer, from(number)).await;
        }
    });
    let counters = [
        "api allowed",
        "api denied",
        "new shadow-allowed",
        "trial shadow-allowed",
    ];
    assert_eq!(registered, once(counters));
}
