//! A client whose server was shut, or that shares a limit: what it uses, whatever came before.

use std::time::Duration;

use tollgate::algorithm::ChangeQuota;

use crate::fleet::{Fleet, Outcome};

/// Buckets and windows of a second to an hour.
fn limits() -> impl Iterator<Item = String> {
    let quotas = [
        "10/s", "100/s", "50/10s", "100/min", "1000/min", "100/600s", "60/h", "1000/h",
    ];
    let kinds = ["token-bucket", "gcra", "sliding-window", "fixed-window"];
    quotas
        .into_iter()
        .flat_map(move |quota| kinds.map(|kind| format!("{kind} {quota}")))
}

/// Windows of a second with ten permits: a few permits too few are much of them, so the mean of
/// several seeds counts.
fn is_small(limit: &str) -> bool {
    limit.ends_with("-window 10/s")
}

/// What a server names says little of these limits: a wait of whole seconds is long for a second,
/// and in a sliding window it says when the next permit comes, but not how many come after it.
fn is_vague(limit: &str) -> bool {
    limit.ends_with("0/s") || limit.starts_with("sliding")
}

fn window(fleet: &Fleet) -> Duration {
    fleet.limit.quota().period()
}

/// What a limiter grants in a second. A sliding window grants one permit less in each window under
/// constant demand.
fn rate(fleet: &Fleet, limit: &str) -> f64 {
    let quota = fleet.limit.quota();
    let less = f64::from(u8::from(limit.starts_with("sliding")));
    (quota.permits() as f64 - less) / quota.period().as_secs_f64()
}

/// What was granted between two times, as a part of `rate`.
fn used(outcome: &Outcome, from: Duration, time: Duration, rate: f64) -> f64 {
    let during = outcome
        .decisions
        .iter()
        .filter(|it| (from..from + time).contains(&it.at));
    let granted = during.filter(|it| it.wait.is_none()).count();
    granted as f64 / (rate * time.as_secs_f64())
}

/// A client has the limit for itself. Then another one takes all permits for some time.
fn shut_for(limit: &str, time: Duration, is_terse: bool) -> Fleet {
    let mut fleet = Fleet::of_eight(limit, 0);
    fleet.clients.truncate(1);
    fleet.is_terse = is_terse;
    let window = window(&fleet);
    fleet.shut = window.mul_f64(5.37)..window.mul_f64(5.37) + time;
    fleet.end = fleet.shut.end + window * 6 + Duration::from_secs(30);
    fleet.warm_up = fleet.shut.end;
    fleet
}

/// How long the server was shut: also longer than two windows.
fn times(fleet: &Fleet) -> [Duration; 3] {
    let seconds = Duration::from_secs;
    [seconds(10), seconds(60), window(fleet).mul_f64(2.5)]
}

/// Checks what a lone client uses in three windows, from `begin` after the server has room again.
fn uses_again(is_terse: bool, least: f64, begin: impl Fn(&Fleet, &Outcome) -> Duration) {
    for limit in limits() {
        let fleet = shut_for(&limit, Duration::ZERO, is_terse);
        let (rate, window) = (rate(&fleet, &limit), window(&fleet));
        for time in times(&fleet) {
            let fleet = shut_for(&limit, time, is_terse);
            let parts = (0..4).map(|seed| {
                let outcome = fleet.run(seed);
                let from = fleet.shut.end + begin(&fleet, &outcome);
                used(&outcome, from, window * 3, rate)
            });
            let parts: Vec<_> = parts.collect();
            println!("{limit:24} shut for {time:>7?}: {parts:.2?}");
            let counts = if is_small(&limit) || (is_terse && is_vague(&limit)) {
                parts.iter().sum::<f64>() / parts.len() as f64
            } else {
                parts.iter().copied().fold(1.0, f64::min)
            };
            // Here it says nothing at all.
            let least = match is_terse && limit == "sliding-window 100/s" {
                true => least / 2.0,
                false => least,
            };
            assert!(counts >= least, "{limit}, shut for {time:?}: {parts:?}");
        }
    }
}

#[test]
fn a_lone_client_uses_four_fifths_two_windows_after_a_server_has_room() {
    uses_again(false, 0.8, |fleet, _| window(fleet) * 2);
}

#[test]
fn without_fields_it_uses_half_after_three_of_the_named_waits() {
    uses_again(true, 0.5, |fleet, outcome| {
        let while_shut = outcome
            .decisions
            .iter()
            .filter(|it| fleet.shut.contains(&it.at));
        let longest = while_shut.filter_map(|it| it.wait).max();
        longest.unwrap_or(Duration::from_secs(1)) * 3
    });
}

#[test]
fn a_server_that_stays_shut_gets_one_request_for_each_wait_that_it_names() {
    for is_terse in [false, true] {
        for limit in limits() {
            let mut fleet = shut_for(&limit, Duration::from_secs(60), is_terse);
            fleet.clients = vec![(Duration::ZERO, None); 4];
            let outcome = fleet.run(1);
            // From when the client knows of a wait until its end.
            let mut waits = [const { Duration::ZERO..Duration::ZERO }; 4];
            let decisions = outcome.decisions.iter();
            for it in decisions.filter(|it| fleet.shut.contains(&it.at)) {
                let wait = it.wait.expect("the server is shut");
                let known = &mut waits[it.client];
                assert!(!known.contains(&it.at), "{limit}, {is_terse}: {it:?}");
                if it.at >= known.end {
                    *known = it.at + fleet.latency..it.at + wait;
                }
            }
        }
    }
}

/// Clients that share a limit, from 40 windows on.
fn shared(limit: &str, clients: usize, is_terse: bool) -> Fleet {
    let mut fleet = Fleet::of_eight(limit, 0);
    fleet.clients = vec![(Duration::ZERO, None); clients];
    fleet.is_terse = is_terse;
    fleet.warm_up = (window(&fleet) * 40).max(Duration::from_secs(60));
    fleet.end = fleet.warm_up + (window(&fleet) * 10).max(Duration::from_secs(100));
    fleet
}

/// The least that a client was granted, compared with its fair share of the limit.
fn least(outcome: &Outcome, rate: f64) -> f64 {
    let least = outcome.each.iter().min().copied().unwrap_or(0) as f64;
    least * outcome.each.len() as f64 / (rate * outcome.seconds)
}

#[test]
fn clients_that_share_a_limit_are_hardly_refused_and_get_half_of_their_share_at_least() {
    for clients in [4, 16] {
        for limit in limits() {
            let fleet = shared(&limit, clients, false);
            let rate = rate(&fleet, &limit);
            let outcomes: Vec<_> = (0..2).map(|seed| fleet.run(seed)).collect();
            for outcome in &outcomes {
                let (refused, least) = (outcome.refused_part(), least(outcome, rate));
                println!("{clients} {limit:24} 429: {refused:.3}, least share: {least:.2}");
                // Sixteen clients have less than one permit in each of these windows.
                if is_small(&limit) {
                    continue;
                }
                assert!(refused <= 0.05, "{clients}, {limit}: {refused}");
                assert!(least >= 0.5, "{clients}, {limit}: {:?}", outcome.each);
            }
        }
    }
}

#[test]
fn without_fields_clients_that_share_a_limit_are_hardly_refused() {
    for clients in [4, 16] {
        for limit in limits() {
            let fleet = shared(&limit, clients, true);
            let rate = rate(&fleet, &limit);
            let outcome = fleet.run(0);
            let (refused, used) = (outcome.refused_part(), outcome.used_part(rate));
            let least = least(&outcome, rate);
            println!(
                "{clients} {limit:24} 429: {refused:.3}, used: {used:.2}, least share: {least:.2}"
            );
            // Sixteen clients have fewer than four of these permits in an hour.
            let most = if limit.ends_with(" 60/h") { 0.08 } else { 0.05 };
            assert!(refused <= most, "{clients}, {limit}: {refused}");
            assert!(used >= 0.6, "{clients}, {limit}: {used}");
        }
    }
}
