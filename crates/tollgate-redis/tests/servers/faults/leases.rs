//! Processes with leases that are stopped, killed, or cut off from their server.

use std::thread::sleep;
use std::time::{Duration, Instant};

use tollgate::Quota;
use tollgate_redis::{Fallback, Limit};

use super::load::Load;
use super::proxy::{Mode, Proxy};
use super::{AMPLE, SHORT, connected, leased, run};
use crate::leases::process::{LIFE, Process};
use crate::leases::{bucket, node};
use crate::server::{DEADLINE, Server, on_each_server};

/// Returns the server's clock, in microseconds.
fn time(server: &Server) -> u64 {
    let (seconds, micros) = server.run::<(u64, u64)>("TIME");
    seconds * 1_000_000 + micros
}

/// Permits that a process holds before something happens to it.
const HELD: u64 = 20;

#[test]
fn a_node_that_was_stopped_spends_nothing_of_a_lease_that_has_ended() {
    const BURST: u64 = 1000;
    on_each_server(|mut server| {
        server.start(false);
        // A permit a millisecond.
        let limit = Limit::token_bucket(Quota::per_second(1000).burst(BURST)).expect("a limit");
        let mut stopped = Process::start(&server, limit);
        stopped.hold(HELD);
        stopped.signal("STOP");
        sleep(2 * LIFE);
        // The lease has ended, and all is refilled. This takes it at once, so in the milliseconds
        // that follow the limit has none for what the process held.
        let start = run(async {
            let other = node(&server, limit);
            let began = Instant::now();
            loop {
                let start = time(&server);
                if other.key("alice").try_acquire_n(BURST).await.is_ok() {
                    return start;
                }
                assert!(began.elapsed() < DEADLINE, "the lease has ended");
            }
        });
        stopped.signal("CONT");
        let late = stopped.spend();
        let most = BURST + (time(&server) - start) / 1000;
        println!("{} of at most {most}, {late:?}", BURST + late.granted);
        assert!(
            BURST + late.granted <= most,
            "{late:?} and {BURST} > {most}"
        );
        assert_eq!(late.granted, 0);
        // It goes on.
        stopped.take(1000);
        let done = stopped.done();
        assert!(done.leased > 0, "{done:?}");
    });
}

#[test]
fn what_a_stopped_or_killed_node_holds_counts_as_spent() {
    on_each_server(|mut server| {
        server.start(false);
        for is_killed in [false, true] {
            let _: () = server.run("FLUSHALL");
            let limit = bucket(10_000);
            let mut process = Process::start(&server, limit);
            let before = process.hold(HELD);
            match is_killed {
                true => assert_eq!(process.kill().granted, 0),
                false => process.signal("STOP"),
            }
            run(async {
                let other = node(&server, limit);
                let alice = other.key("alice");
                let at_first = alice.available().await.expect("an answer");
                sleep(2 * LIFE);
                let left = alice.available().await.expect("an answer");
                assert!(left <= at_first, "{left} > {at_first}");
                assert!(left + before.granted + before.held <= 10_000, "{left}");
                let (start, mut granted) = (Instant::now(), 0);
                while granted < left && start.elapsed() < DEADLINE {
                    match alice.try_acquire().await {
                        Ok(_) => granted += 1,
                        Err(_) => tokio::task::yield_now().await,
                    }
                }
                assert_eq!(granted, left);
                for _ in 0..100 {
                    assert!(alice.try_acquire().await.is_err());
                }
            });
            if !is_killed {
                process.signal("CONT");
                assert_eq!(process.spend().granted, 0);
            }
        }
    });
}

#[test]
fn half_of_the_nodes_are_killed_under_load() {
    on_each_server(|mut server| {
        server.start(false);
        // A permit a millisecond.
        let limit = Limit::token_bucket(Quota::per_second(1000).burst(200)).expect("a limit");
        let mut killed = [(); 2].map(|()| Process::start(&server, limit));
        let mut left = [(); 2].map(|()| Process::start(&server, limit));
        let start = time(&server);
        let mut granted = 0;
        for process in &mut killed {
            process.take(u64::MAX);
        }
        for process in &mut left {
            process.take(600);
        }
        // Each holds permits when it is killed, or has just spent them.
        for process in &mut killed {
            granted += process.until(|done| done.leased >= 50).granted;
        }
        for process in &mut killed {
            granted += process.kill().granted;
        }
        for process in &mut left {
            let done = process.done();
            assert!(done.granted == 600 && done.leased > 0, "{done:?}");
            granted += done.granted;
        }
        let most = 200 + (time(&server) - start) / 1000;
        println!("{granted} of at most {most}");
        assert!(granted <= most, "{granted} > {most}");
    });
}

#[test]
fn a_node_is_cut_off_for_many_leases() {
    cut_off_for(Duration::from_secs(1));
}

#[test]
#[ignore = "takes 10 s on each server: scripts/deep"]
fn a_node_is_cut_off_for_10_s() {
    cut_off_for(Duration::from_secs(10));
}

/// Cuts one of two nodes off from the server, for this time and until its fallback has decided
/// often.
fn cut_off_for(time: Duration) {
    const MANY: u64 = 400_000;
    const AT_MOST: u64 = 50;
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let proxy = Proxy::new(&server).await;
            let fallback = Fallback::OpenAtMost {
                at_most: AT_MOST,
                per: None,
            };
            let life = Duration::from_millis(200);
            let (one, _) = connected(&proxy.url(), SHORT, MANY, fallback);
            let (other, _) = connected(&server.url(), AMPLE, MANY, Fallback::Closed);
            let (began, one) = (Instant::now(), Load::start(leased(one, life)));
            let other = Load::start(leased(other, life));
            one.until_leases_grant(100).await;
            other.until_leases_grant(100).await;
            proxy.set(Mode::DropRequests);
            let start = Instant::now();
            one.until_fallback_decides(500).await;
            other.until_leases_grant(500).await;
            one.until("long cut", |_| start.elapsed() >= time).await;
            proxy.set(Mode::Pass);
            one.until_leases_grant(100).await;
            let ((one, seen), (_, by_other)) = (one.stop().await, other.stop().await);
            let minutes = began.elapsed().as_secs() / 60 + 2;
            // Asked without the proxy.
            let (auditor, _) = connected(&server.url(), AMPLE, MANY, Fallback::Closed);
            let left = auditor.key("alice").available().await.expect("an answer");
            let (spent, stats) = (seen.spent() + by_other.spent(), one.server().stats());
            println!("{spent} spent, {left} left, {seen:?}, {by_other:?}, {stats:?}");
            assert!(spent <= MANY - left, "{spent} > {}", MANY - left);
            assert!(seen.granted_without <= AT_MOST * (stats.outages + minutes));
            assert!(seen.denied_without > 0 && by_other.by_fallback() == 0);
        });
    });
}
