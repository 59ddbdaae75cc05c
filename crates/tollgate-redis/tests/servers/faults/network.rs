//! A network that delays, loses, cuts and truncates what many callers and a server send.

use std::time::Duration;

use tollgate_redis::{Decider, Fallback};

use super::load::{Load, Seen, account};
use super::proxy::{Mode, Proxy};
use super::{AMPLE, BURST, SHORT, connected, connected_with, run, take, until_recovered};
use crate::server::on_each_server;

/// More than the callers of a run can take.
const MANY: u64 = 400_000;

/// What the fallback grants in an outage.
const AT_MOST: u64 = 50;

/// Lets callers run while the network is well, then harmed, then well again. Checks the whole run,
/// and then what was seen, and how many permits were taken.
fn harmed(mode: Mode, check: impl Fn(Seen, u64)) {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let proxy = Proxy::new(&server).await;
            let (limiter, _) = connected(&proxy.url(), SHORT, MANY);
            let fallback = Fallback::Open { at_most: AT_MOST };
            let load = Load::start(limiter.with_fallback(fallback).expect("a fallback"));
            load.until_server_decides(100).await;
            proxy.set(mode);
            load.until_fallback_decides(500).await;
            proxy.set(Mode::Pass);
            load.until_server_decides(100).await;
            let what = format!("{mode:?}");
            let (seen, taken) = account(&what, load, &server, MANY, AT_MOST).await;
            assert!(seen.granted <= taken, "{} > {taken}", seen.granted);
            assert!(seen.denied_without > 0 && seen.denied == 0);
            check(seen, taken);
        });
    });
}

/// Permits were taken for callers that had no answer.
fn some_are_lost(seen: Seen, taken: u64) {
    assert!(seen.granted < taken, "{taken}");
}

#[test]
fn late_answers() {
    harmed(Mode::HoldReplies, some_are_lost);
}

#[test]
fn lost_requests() {
    harmed(Mode::DropRequests, |_, _| ());
}

#[test]
fn lost_answers() {
    harmed(Mode::DropReplies, some_are_lost);
}

#[test]
fn connections_that_close_before_an_answer() {
    harmed(Mode::Cut, some_are_lost);
}

#[test]
fn half_answers() {
    harmed(Mode::HalfReply, some_are_lost);
}

#[test]
fn half_requests() {
    harmed(Mode::HalfRequest, |_, _| ());
}

#[test]
fn a_host_that_reads_nothing() {
    harmed(Mode::Stall, |_, _| ());
}

#[test]
fn no_queue_is_left() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let proxy = Proxy::new(&server).await;
            // No probe is due before the test ends, so only calls that began before the outage are
            // sent.
            let (budget, never) = (Duration::from_secs(2), Duration::from_secs(24 * 3600));
            let (limiter, _) = connected_with(&proxy.url(), budget, never, BURST);
            let limiter = limiter.with_fallback(Fallback::Closed).expect("a fallback");
            let alice = limiter.key("alice");
            until_recovered(&alice).await;
            proxy.set(Mode::Stall);
            for _ in 0..100_000 {
                let denial = alice.try_acquire().await.expect_err("a denial");
                assert_eq!(denial.decider(), Decider::Closed);
            }
            let (before, stats) = (server.scripts(), limiter.server().stats());
            assert_eq!((stats.outages, stats.failed, stats.lost), (1, 1, 1));
            assert_eq!(stats.closed, 100_000);
            proxy.set(Mode::Pass);
            // The one call arrives late, if at all, and nothing after it.
            let (again, _) = connected(&proxy.url(), AMPLE, BURST);
            until_recovered(&again.key("bob")).await;
            let late = server.scripts() - before - 1;
            println!("of 100000 decisions in an outage, {late} reached the server");
            assert!(late <= 1, "{late}");
        });
    });
}

#[test]
fn a_connection_that_is_silent_for_ever() {
    on_each_server(|mut server| {
        server.start(false);
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let proxy = Proxy::new(&server).await;
            let (limiter, events) = connected(&proxy.url(), SHORT, BURST);
            let alice = limiter.key("alice");
            until_recovered(&alice).await;
            let early = events.lock().unwrap().len();
            proxy.silence_old_connections();
            assert!(take(&alice).await.1.is_fallback());
            let connections = proxy.accepted();
            until_recovered(&alice).await;
            assert_eq!(proxy.accepted(), connections + 1);
            assert_eq!(events.lock().unwrap().len(), early + 2);
        });
    });
}
