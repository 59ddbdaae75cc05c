//! The numbers of leases, and why a limit has none.

use std::time::Duration;

use tollgate::Quota;

use crate::lease::options::{LeaseError, Leasing};
use crate::limit::Limit;

const SECOND: Duration = Duration::from_secs(1);

fn refused(leasing: Leasing, limit: Limit) -> String {
    let refused = leasing.terms(&limit).expect_err("no leases");
    refused.to_string()
}

fn bucket() -> Limit {
    Limit::token_bucket(Quota::per_second(5)).expect("a limit")
}

fn slots(lease: Duration) -> Limit {
    Limit::concurrency(100, lease).expect("a limit")
}

#[test]
fn each_reason_says_what_to_change() {
    let leasing = Leasing::new();
    let log = Limit::sliding_log(Quota::per_second(5)).expect("a limit");
    assert_eq!(
        refused(leasing, log),
        "the limit has no leases: only token buckets, fixed windows, sliding windows and \
         concurrency do"
    );
    for life in [Duration::from_millis(199), Duration::from_millis(60_001)] {
        for limit in [bucket(), slots(SECOND)] {
            let text = format!("the life is {life:?}, but must be from 200ms to 60s");
            assert_eq!(refused(leasing.with_life(life), limit), text);
        }
    }
    let window = Quota::per(5, Duration::from_millis(150));
    let window = Limit::fixed_window(window).expect("a limit");
    assert_eq!(
        refused(leasing, window),
        "a window is 150ms, but must be at least 200ms"
    );
    assert_eq!(
        refused(leasing, slots(Duration::from_millis(199))),
        "the lease of a slot is 199ms, but must be at least 200ms"
    );
    assert_eq!(
        refused(leasing.with_keys(0), bucket()),
        "keys is 0, but must be at least 1"
    );
    assert_eq!(
        refused(leasing.with_share(101), slots(SECOND)),
        "the share is 101 percent, but must be from 1 to 100"
    );
    let error = leasing.terms(&slots(SECOND / 10)).expect_err("no leases");
    assert_eq!(error, LeaseError::Slots { lease: SECOND / 10 });
}

#[test]
fn the_leases_of_slots_last_no_longer_than_a_slot() {
    for (life, lease, expected) in [
        (None, 200, 200),
        (None, 3_600_000, 60_000),
        (Some(500), 200, 200),
        (Some(500), 3_600_000, 500),
    ] {
        let leasing = life.map(Duration::from_millis);
        let leasing = leasing.map_or(Leasing::new(), |life| Leasing::new().with_life(life));
        let terms = leasing.terms(&slots(Duration::from_millis(lease)));
        let terms = terms.expect("leases");
        assert_eq!(terms.life_ns, expected * 1_000_000);
        assert_eq!(terms.slots_ns, Some(lease * 1_000_000));
        assert_eq!(terms.review_ns, (expected * 250_000).min(250_000_000));
        assert_eq!(terms.most, 25);
    }
    let rate = Leasing::new().terms(&bucket()).expect("leases");
    assert_eq!((rate.life_ns, rate.slots_ns), (1_000_000_000, None));
    assert_eq!(rate.cost_ns, 200_000_000);
}
