//! The numbers of leases, and why a limit has none.

use std::time::Duration;

use tollgate::Quota;

use crate::lease::allowance::{Own, divided};
use crate::lease::options::{Allowance, LeaseError, Leasing};
use crate::limit::Limit;

const SECOND: Duration = Duration::from_secs(1);

fn refused(leasing: Leasing, limit: Limit) -> String {
    let refused = leasing.terms(&limit).expect_err("no leases");
    refused.to_string()
}

fn bucket() -> Limit {
    bucket_of(5)
}

fn bucket_of(permits: u64) -> Limit {
    Limit::token_bucket(Quota::per_second(permits)).expect("a limit")
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

const ALLOWANCE: Allowance = Allowance {
    percent: 20,
    processes: 4,
    keys: 100,
};

#[test]
fn allowances_and_the_servers_part_are_the_limit() {
    let quotas = [
        Quota::per_second(100).burst(50),
        Quota::per(7, Duration::from_secs(60)).burst(1000),
        Quota::per_minute(1_000_000),
        Quota::per(3, Duration::from_millis(7)).burst(21),
    ];
    for (quota, percent, processes) in quotas.into_iter().flat_map(|quota| {
        let of = |(percent, processes)| (quota, percent, processes);
        [(20, 4), (1, 1), (99, 3), (50, 10)].map(of)
    }) {
        let allowance = Allowance {
            percent,
            processes,
            keys: 1,
        };
        let limit = Limit::token_bucket(quota).expect("a limit");
        let parts = match divided(&limit, allowance) {
            Ok(parts) => parts,
            Err(error) => {
                let part = quota.burst_size() * u64::from(percent) / 100;
                assert!(part < processes.into(), "{quota:?}, {error}");
                continue;
            }
        };
        let (server, own) = (parts.0.quota, parts.1);
        let processes = u64::from(processes);
        assert_eq!(
            server.burst_size() + processes * own.burst_size(),
            quota.burst_size()
        );
        // n / d + processes n' / d' is the rate.
        let [all, server, own] = [quota, server, own]
            .map(|quota| (u128::from(quota.permits()), quota.period().as_nanos()));
        let parts = server.0 * own.1 + own.0 * u128::from(processes) * server.1;
        assert_eq!(parts * all.1, all.0 * server.1 * own.1);
    }
}

/// A bucket grants its burst at the beginning of a window, and as much again until the end.
#[test]
fn an_allowance_of_a_window_grants_its_part_in_any_period() {
    for window in [Limit::fixed_window, Limit::sliding_window] {
        let limit = window(Quota::per_minute(1000)).expect("a limit");
        let (server, own) = divided(&limit, ALLOWANCE).expect("parts");
        assert_eq!((server.permits(), own.burst_size()), (800, 25));
        let own = Own::new(own, 10).expect("a table");
        // It grants nothing before a period after the first request.
        let first_ns = 7_000_000_000;
        assert_eq!(own.take(b"a", first_ns, 1), Err(None));
        assert_eq!(own.take(b"a", first_ns + 60_000_000_000 - 1, 1), Err(None));
        let at_once = (0..60_u64).flat_map(|second| {
            let now_ns = first_ns + (60 + second) * 1_000_000_000;
            (0..50).map(move |_| now_ns)
        });
        let granted = at_once.filter(|now_ns| own.take(b"a", *now_ns, 1).is_ok());
        assert_eq!(granted.count(), 49);
    }
}

#[test]
fn an_allowance_that_is_no_part_is_refused() {
    let text = |percent, processes| {
        format!(
            "the allowance is {percent} percent of the limit among {processes} processes, but must \
             be from 1 to 99 percent, and at least one permit of a burst, or two of a window, for \
             each process"
        )
    };
    for (burst, percent, processes) in [
        (100, 0, 4),
        (100, 100, 4),
        (100, 20, 0),
        (100, 20, 21),
        (1, 50, 1),
    ] {
        let allowance = Allowance {
            percent,
            processes,
            keys: 1,
        };
        let refused = divided(&bucket_of(burst), allowance).expect_err("no parts");
        assert_eq!(refused.to_string(), text(percent, processes));
    }
    let quota = Quota::per(999_983, Duration::from_secs(86_399)).burst(999_979);
    let limit = Limit::token_bucket(quota).expect("a limit");
    let refused = divided(&limit, ALLOWANCE).expect_err("too fine");
    assert_eq!(refused, LeaseError::AllowanceRate);
    let slow = Quota::per(1, Duration::from_secs(30 * 86_400)).burst(100);
    let limit = Limit::token_bucket(slow).expect("a limit");
    let (_, own) = divided(&limit, ALLOWANCE).expect("parts");
    let refused = Own::new(own, 1).expect_err("too slow");
    assert_eq!(refused, LeaseError::AllowanceRate);
    let window = Limit::fixed_window(Quota::per_second(39)).expect("a limit");
    let refused = divided(&window, ALLOWANCE).expect_err("no parts");
    assert_eq!(refused.to_string(), text(20, 4));
    let refused = divided(&slots(SECOND), ALLOWANCE).expect_err("no parts");
    assert_eq!(
        refused.to_string(),
        "a limit on concurrency has no allowance: only token buckets, fixed windows and sliding \
         windows do"
    );
}

#[test]
fn a_key_that_finds_no_room_has_no_allowance() {
    let (_, own) = divided(&bucket_of(100), ALLOWANCE).expect("parts");
    let own = Own::new(own, 1).expect("a table");
    assert_eq!(own.take(b"a", 0, 5), Err(None));
    let now_ns = 10_000_000_000;
    let users = (0..100_000_u32).map(u32::to_le_bytes);
    let granted = users.filter(|user| own.take(user, now_ns, 5).is_ok());
    assert!(granted.count() < 10_000);
    // A check says what a request would be told.
    assert!(!own.check(b"another", now_ns, 5));
    // None was replaced, so none is fresh again.
    let again = (0..100_000_u32).map(u32::to_le_bytes);
    assert!(
        !again
            .into_iter()
            .any(|user| own.take(&user, now_ns, 5).is_ok())
    );
    // A ban that finds no room is one of all keys, so that none is forgotten.
    let later_ns = 2 * now_ns;
    assert!(own.check(b"another", later_ns, 5));
    let users = (0..100_000_u32).map(u32::to_le_bytes);
    let _ = users
        .filter(|user| own.take(user, later_ns, 5).is_ok())
        .count();
    own.ban_for(b"another", later_ns, Duration::from_secs(60));
    assert!(!own.check(b"another", 3 * now_ns, 5));
    assert!(own.check(b"another", 8 * now_ns, 5));
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
