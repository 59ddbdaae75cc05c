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

/// Windows of a second with ten permits: a client has about one request in each, which is too few to
/// learn from.
fn is_too_small(limit: &str) -> bool {
    limit.contains("-window 10/1s")
}

/// The time to measure. Of windows of a minute, whole ones are measured: two fixed ones, and of
/// sliding ones two after the first two, which begin empty.
fn measured(limit: &str, window: u64) -> (u64, u64) {
    match (window, limit.contains("window")) {
        (1, _) => (10, 40),
        (_, false) => (10, 70),
        (_, true) if limit.starts_with("fixed") => (60, 180),
        (_, true) => (130, 250),
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

fn eight_share(rate: u64, seeds: u64) {
    for (limit, window) in limits(rate).filter(|(limit, _)| !is_too_small(limit)) {
        let (warm_up, end) = measured(&limit, window);
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

#[test]
fn eight_clients_use_ten_a_second_and_are_hardly_refused() {
    eight_share(10, 6);
}

#[test]
fn eight_clients_use_a_hundred_a_second_and_are_hardly_refused() {
    eight_share(100, 2);
}

#[test]
fn eight_clients_use_a_thousand_a_second_and_are_hardly_refused() {
    eight_share(1000, 1);
}
