//! A network that delays, loses, cuts and truncates what many callers and a server send.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::{advance, pause, resume, sleep};
use tollgate::Quota;
use tollgate_redis::client::connect_lazily;
use tollgate_redis::{Decider, Fallback, Keys, RedisLimiter, Unavailable};

use super::load::{Load, Seen, account};
use super::proxy::{Mode, Proxy};
use super::{
    AMPLE, BURST, Limiter, SHORT, Way, connected, connected_with, in_each_way, run, take,
    until_recovered,
};
use crate::server::{DEADLINE, Server, on_each_server};

/// More than the callers of a run can take.
const MANY: u64 = 400_000;

/// What the fallback grants in an outage.
const AT_MOST: u64 = 50;

/// Lets callers run while the network is well, then harmed, then well again. Checks the whole run,
/// and then, without leases, what was seen, and how many permits were taken.
fn harmed(mode: Mode, check: impl Fn(Seen, u64)) {
    in_each_way(|mut server, way| {
        server.start(false);
        run(async {
            let proxy = Proxy::new(&server).await;
            let fallback = Fallback::OpenAtMost {
                at_most: AT_MOST,
                per: None,
            };
            let (limiter, _) = connected(&proxy.url(), SHORT, MANY, fallback);
            let load = Load::start(way.of(limiter));
            load.until_server_grants(100).await;
            proxy.set(mode);
            load.until_fallback_decides(500).await;
            proxy.set(Mode::Pass);
            load.until_server_grants(100).await;
            let what = format!("{mode:?}");
            let (seen, taken) = account(&what, way, load, &server, MANY, AT_MOST).await;
            assert!(seen.spent() <= taken, "{} > {taken}", seen.spent());
            assert!(seen.denied_without > 0 && seen.denied == 0);
            if way == Way::Direct {
                check(seen, taken);
            }
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
            // sent. After the first, the silent connection is replaced, and the others find none.
            let (budget, never) = (Duration::from_secs(2), Duration::from_secs(24 * 3600));
            let fallback = Fallback::Closed;
            let (limiter, _) = connected_with(&proxy.url(), budget, never, BURST, fallback);
            let alice = limiter.key("alice");
            until_recovered(&alice).await;
            proxy.set(Mode::Stall);
            let start = Instant::now();
            for _ in 0..100_000 {
                assert!(start.elapsed() < DEADLINE, "calls wait for nothing");
                let denial = alice.try_acquire().await.expect_err("a denial");
                assert_eq!(denial.decider(), Decider::Closed);
            }
            let (before, stats) = (server.scripts(), limiter.server().stats());
            assert_eq!((stats.outages, stats.failed, stats.lost), (1, 3, 1));
            assert_eq!(stats.closed, 100_000);
            proxy.set(Mode::Pass);
            // The one call arrives late, if at all, and nothing after it.
            let (again, _) = connected(&proxy.url(), AMPLE, BURST, Fallback::Closed);
            until_recovered(&again.key("bob")).await;
            let late = server.scripts() - before - 1;
            println!("of 100000 decisions in an outage, {late} reached the server");
            assert!(late <= 1, "{late}");
        });
    });
}

/// Runs a test with a limiter whose only connection is silent for ever, and has been so for a
/// while by tokio's clock.
fn with_a_silent_connection<F: Future<Output = ()>>(test: impl Fn(Limiter, Proxy, Server) -> F) {
    on_each_server(|mut server| {
        server.start(false);
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let proxy = Proxy::new(&server).await;
            let (limiter, _) = connected(&proxy.url(), SHORT, BURST, Fallback::Closed);
            until_recovered(&limiter.key("alice")).await;
            proxy.silence_old_connections();
            let start = Instant::now();
            while !limiter.server().is_down() {
                assert!(start.elapsed() < DEADLINE, "an outage");
                let _ = take(&limiter.key("alice")).await;
            }
            pause();
            advance(Duration::from_secs(3)).await;
            resume();
            test(limiter, proxy, server).await;
        });
    });
}

#[test]
fn a_connection_that_is_silent_for_ever() {
    with_a_silent_connection(|limiter, proxy, server| async move {
        let before = proxy.accepted();
        until_recovered(&limiter.key("alice")).await;
        assert!(proxy.accepted() > before);
        assert!(!limiter.server().is_down());
        drop(server);
    });
}

#[test]
fn a_connection_that_takes_longer_than_a_budget() {
    with_a_silent_connection(|limiter, proxy, server| async move {
        proxy.set(Mode::HoldReplies);
        let before = proxy.accepted();
        assert!(take(&limiter.key("alice")).await.1.is_fallback());
        proxy.set(Mode::Pass);
        until_recovered(&limiter.key("alice")).await;
        assert_eq!(proxy.accepted(), before + 1);
        drop(server);
    });
}

#[test]
fn a_connection_whose_answers_are_only_late_is_kept() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let proxy = Proxy::new(&server).await;
            let client = connect_lazily(proxy.url()).expect("an address");
            let connected = tollgate_redis::RedisServer::new(client.clone()).with_budget(SHORT);
            let keys = Keys::new("test").expect("a namespace");
            let limiter = RedisLimiter::new(
                Arc::new(connected),
                &keys,
                "limit",
                Quota::per_hour(1),
                Fallback::Closed,
            );
            let limiter = limiter.expect("a quota");
            until_recovered(&limiter.key("alice")).await;
            let accepted = proxy.accepted();
            proxy.set(Mode::HoldReplies);
            let lost = limiter.key("alice").available().await;
            assert_eq!(lost, Err(Unavailable::TimedOut { budget: SHORT }));
            assert!(!format!("{client:?}").contains("silent_since: None"));
            proxy.set(Mode::Pass);
            let start = Instant::now();
            while !format!("{client:?}").contains("silent_since: None") {
                assert!(start.elapsed() < DEADLINE, "the late answer is heard");
                sleep(Duration::from_millis(5)).await;
            }
            assert_eq!(proxy.accepted(), accepted);
        });
    });
}

#[test]
fn an_answer_that_takes_longer_than_the_client_crate_waits() {
    on_each_server(|mut server| {
        server.start(false);
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let proxy = Proxy::new(&server).await;
            let (limiter, _) = connected(&proxy.url(), AMPLE, BURST, Fallback::Closed);
            let alice = limiter.key("alice");
            until_recovered(&alice).await;
            proxy.set(Mode::DropRequests);
            // Only the budget ends a call.
            pause();
            let lost = alice.available().await.expect_err("an outage");
            assert_eq!(lost, Unavailable::TimedOut { budget: AMPLE });
        });
    });
}
