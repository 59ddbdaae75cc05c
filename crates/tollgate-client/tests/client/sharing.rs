//! Clients that don't know of each other share a limit: what they use of it, how many 429 they get,
//! and how equally they share it.

use std::time::Duration;

use crate::fleet::{Fleet, Outcome};

/// At most this part of the answers may be 429.
const REFUSED: f64 = 0.01;

/// At least this part of the limit must be used.
const USED: f64 = 0.95;

/// What a limiter grants in a second to a client that asks all the time.
fn most_granted(limit: &str, rate: u64, window: u64) -> f64 {
    let all = (rate * window) as f64;
    // A sliding window grants one permit less in each window under constant demand.
    let all = if limit.starts_with("sliding") {
        all - 1.0
    } else {
        all
    };
    all / window as f64
}

/// Each algorithm, with windows or bursts of one second and of one minute.
fn limits(rate: u64) -> impl Iterator<Item = (String, u64)> {
    [1, 60].into_iter().flat_map(move |window| {
        let all = rate * window;
        [
            (format!("token-bucket {rate}/s burst {all}"), window),
            (format!("gcra {rate}/s burst {all}"), window),
            (format!("sliding-window {all}/{window}s"), window),
            (format!("fixed-window {all}/{window}s"), window),
        ]
    })
}

/// Windows of a second with ten permits: a client has about one request in each, which is too few
/// to learn from.
fn is_too_small(limit: &str) -> bool {
    limit.contains("-window 10/1s")
}

/// The time to measure. Of windows of a minute, whole ones are measured: fixed ones after the first
/// one, and sliding ones after the first two, which begin empty.
fn measured(limit: &str, window: u64, windows: u64) -> (u64, u64) {
    match (window, limit.contains("window")) {
        (1, _) => (10, 10 + 15 * windows),
        (_, false) => (10, 10 + 30 * windows),
        (_, true) if limit.starts_with("fixed") => (60, 60 + 60 * windows),
        (_, true) => (130, 130 + 60 * windows),
    }
}

fn report(name: &str, limit: &str, outcome: &Outcome, most: f64) {
    println!(
        "{name}: {limit:32} 429: {:.3} %, used: {:.2} %, least share: {:.2}",
        outcome.refused_part() * 100.0,
        outcome.used_part(most) * 100.0,
        least_share(outcome),
    );
}

/// The least that a client was granted, compared with an equal share.
fn least_share(outcome: &Outcome) -> f64 {
    let least = outcome.each.iter().min().copied().unwrap_or(0) as f64;
    least * outcome.each.len() as f64 / outcome.granted.max(1) as f64
}

fn eight_share(rate: u64, seeds: u64, windows: u64) {
    for (limit, window) in limits(rate).filter(|(limit, _)| !is_too_small(limit)) {
        let (warm_up, end) = measured(&limit, window, windows);
        let most = most_granted(&limit, rate, window);
        for seed in 0..seeds {
            let mut fleet = Fleet::of_eight(&limit, end);
            fleet.warm_up = Duration::from_secs(warm_up);
            let outcome = fleet.run(seed);
            report("eight", &limit, &outcome, most);
            assert!(
                outcome.refused_part() <= REFUSED,
                "{limit}, seed {seed}: {outcome:?}"
            );
            assert!(
                outcome.used_part(most) >= USED,
                "{limit}, seed {seed}: {outcome:?}"
            );
        }
    }
}

/// Clients that come and leave: eight at first, four more one after the other, and then the first
/// four leave.
fn coming_and_leaving(limit: &str, warm_up: u64, end: u64) -> Fleet {
    let mut fleet = Fleet::of_eight(limit, end);
    fleet.warm_up = Duration::from_secs(warm_up);
    let step = Duration::from_secs(end - warm_up) / 10;
    for (first, later) in (0..4_usize).zip(1..) {
        fleet.clients.push((fleet.warm_up + step * later, None));
        fleet.clients[first].1 = Some(fleet.warm_up + step * (later + 4));
    }
    fleet
}

#[test]
fn clients_come_and_leave_and_are_still_hardly_refused() {
    for (rate, seeds) in [(10, 4), (100, 2)] {
        for (limit, window) in limits(rate).filter(|(limit, _)| !is_too_small(limit)) {
            let (warm_up, end) = measured(&limit, window, 2);
            let most = most_granted(&limit, rate, window);
            for seed in 0..seeds {
                let outcome = coming_and_leaving(&limit, warm_up, end).run(seed);
                report("coming and leaving", &limit, &outcome, most);
                assert!(
                    outcome.refused_part() <= REFUSED,
                    "{limit}, seed {seed}: {outcome:?}"
                );
                assert!(
                    outcome.used_part(most) >= USED,
                    "{limit}, seed {seed}: {outcome:?}"
                );
            }
        }
    }
}

#[test]
fn a_newcomer_gets_its_share_within_seconds() {
    for limit in ["token-bucket 100/s", "sliding-window 6000/60s", "gcra 10/s"] {
        let mut fleet = Fleet::of_eight(limit, 150);
        fleet.clients.truncate(7);
        fleet.clients.push((Duration::from_secs(130), None));
        // From five seconds after it has come.
        fleet.warm_up = Duration::from_secs(135);
        let outcome = fleet.run(3);
        let share = outcome.each[7] as f64 * 8.0 / outcome.granted as f64;
        assert!(share > 0.5, "{limit}: {outcome:?}");
    }
}

#[test]
fn the_share_of_clients_that_leave_is_used_within_seconds() {
    for limit in ["token-bucket 100/s", "gcra 10/s"] {
        let mut fleet = Fleet::of_eight(limit, 60);
        for client in &mut fleet.clients[..7] {
            client.1 = Some(Duration::from_secs(40));
        }
        // From five seconds after seven of eight have left.
        fleet.warm_up = Duration::from_secs(45);
        let outcome = fleet.run(3);
        let rate = if limit.contains("100") { 100.0 } else { 10.0 };
        assert!(outcome.used_part(rate) > 0.95, "{limit}: {outcome:?}");
    }
}

#[test]
fn shares_become_equal() {
    for (limit, least) in [
        ("token-bucket 10/s", 0.9),
        ("token-bucket 100/s burst 6000", 0.9),
        ("gcra 1000/s", 0.9),
        ("sliding-window 6000/60s", 0.8),
        ("fixed-window 6000/60s", 0.5),
    ] {
        let mut fleet = Fleet::of_eight(limit, 180);
        fleet.warm_up = Duration::from_secs(120);
        let outcome = fleet.run(5);
        assert!(least_share(&outcome) >= least, "{limit}: {outcome:?}");
    }
}

#[test]
fn few_and_many_clients_are_hardly_refused() {
    for (clients, limit) in [
        (1, "token-bucket 10/s"),
        (1, "sliding-window 100/s"),
        (2, "gcra 100/s"),
        (3, "sliding-window 600/60s"),
        (20, "token-bucket 50/s"),
        (20, "fixed-window 1000/s"),
        (50, "token-bucket 100/s"),
        (50, "sliding-window 1000/s"),
    ] {
        let mut fleet = Fleet::of_eight(limit, if limit.contains("60s") { 250 } else { 40 });
        fleet.clients = vec![(Duration::ZERO, None); clients];
        fleet.warm_up = Duration::from_secs(if limit.contains("60s") { 130 } else { 20 });
        let quota = tollgate::algorithm::ChangeQuota::quota(&fleet.limit);
        let (rate, window) = (quota.permits() / quota.period().as_secs(), quota.period());
        let outcome = fleet.run(1);
        let most = most_granted(limit, rate, window.as_secs());
        report(&format!("{clients} clients"), limit, &outcome, most);
        assert!(
            outcome.refused_part() <= REFUSED,
            "{clients}, {limit}: {outcome:?}"
        );
        assert!(
            outcome.used_part(most) >= 0.94,
            "{clients}, {limit}: {outcome:?}"
        );
    }
}

#[test]
fn slow_networks_are_waited_for() {
    for limit in [
        "token-bucket 10/s",
        "token-bucket 1000/s",
        "sliding-window 6000/60s",
    ] {
        let mut fleet = Fleet::of_eight(limit, 40);
        fleet.latency = Duration::from_millis(400);
        if limit.starts_with("sliding") {
            (fleet.warm_up, fleet.end) = (Duration::from_secs(130), Duration::from_secs(250));
        }
        let outcome = fleet.run(1);
        let rate = if limit.contains("10/s") { 10.0 } else { 1000.0 };
        let rate = if limit.starts_with("sliding") {
            100.0
        } else {
            rate
        };
        assert!(outcome.refused_part() <= REFUSED, "{limit}: {outcome:?}");
        assert!(outcome.used_part(rate) >= USED, "{limit}: {outcome:?}");
    }
}

/// What is known to be worse: a client has about one request in each window of a second, and learns
/// too late from its answers. `Pace` says so.
#[test]
fn windows_of_a_second_with_ten_permits_are_used_by_four_fifths() {
    for limit in ["sliding-window 10/1s", "fixed-window 10/1s"] {
        let most = most_granted(limit, 10, 1);
        let outcomes: Vec<_> = (0..8)
            .map(|seed| Fleet::of_eight(limit, 70).run(seed))
            .collect();
        let mean = |part: fn(&Outcome) -> f64| outcomes.iter().map(part).sum::<f64>() / 8.0;
        let refused = mean(|outcome| outcome.refused_part());
        let granted = mean(|outcome| outcome.used_part(1.0));
        println!(
            "{limit}: {:.2} % are 429, {:.1} % are used",
            refused * 100.0,
            granted / most * 100.0
        );
        assert!(refused <= 0.06, "{limit}: {refused}");
        assert!(granted / most >= 0.8, "{limit}: {granted}");
    }
}

/// Takes minutes: `cargo test --release -- --ignored many_seeds`.
#[test]
#[ignore = "takes minutes"]
fn many_seeds() {
    eight_share(10, 60, 3);
    eight_share(100, 60, 3);
    eight_share(1000, 20, 2);
}

#[test]
fn eight_clients_use_ten_a_second_and_are_hardly_refused() {
    eight_share(10, 6, 2);
}

#[test]
fn eight_clients_use_a_hundred_a_second_and_are_hardly_refused() {
    eight_share(100, 2, 2);
}

#[test]
fn eight_clients_use_a_thousand_a_second_and_are_hardly_refused() {
    eight_share(1000, 1, 1);
}
