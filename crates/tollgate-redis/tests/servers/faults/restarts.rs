//! A server that is killed, wiped, stopped, or forgets its scripts, while many callers use it.

use std::time::{Duration, Instant};

use tollgate_redis::Fallback;

use super::load::{Load, account};
use super::{AMPLE, Limiter, SHORT, Way, connected, in_each_way, run};
use crate::server::{DEADLINE, Server};

/// More than the callers of a run can take.
const MANY: u64 = 400_000;

/// What the fallback grants in an outage.
const AT_MOST: u64 = 50;

fn limiter(server: &Server, way: Way, budget: Duration, burst: u64) -> Limiter {
    let fallback = Fallback::OpenAtMost {
        at_most: AT_MOST,
        per: None,
    };
    way.of(connected(&server.url(), budget, burst, fallback).0)
}

/// Waits until the server has given away all permits, and then for some denials.
async fn until_all_are_taken(load: &Load, server: &Server, way: Way, burst: u64) {
    if way == Way::Leased {
        // A process with nothing left denies although the server has some.
        let (auditor, _) = connected(&server.url(), AMPLE, burst, Fallback::Closed);
        let start = Instant::now();
        while auditor.key("alice").available().await != Ok(0) {
            assert!(start.elapsed() < DEADLINE, "permits are left");
        }
    }
    let denied = load.seen().all_denied();
    load.until("denials", |seen| seen.all_denied() > denied + 100)
        .await;
}

#[test]
fn killed_and_started_again_with_its_data() {
    in_each_way(|mut server, way| {
        server.start(true);
        run(async {
            let load = Load::start(limiter(&server, way, AMPLE, MANY));
            load.until_server_grants(100).await;
            server.kill();
            load.until_fallback_decides(500).await;
            server.start(true);
            load.until_server_grants(100).await;
            let (seen, taken) = account("killed", way, load, &server, MANY, AT_MOST).await;
            assert!(seen.spent() <= taken, "{} > {taken}", seen.spent());
            assert!(seen.denied_without > 0 && seen.denied == 0);
        });
    });
}

#[test]
fn killed_and_started_again_without_its_data() {
    in_each_way(|mut server, way| {
        server.start(false);
        run(async {
            let load = Load::start(limiter(&server, way, AMPLE, 200));
            load.until_server_grants(100).await;
            server.kill();
            load.until_fallback_decides(500).await;
            // The key is full once more.
            let before = load.seen().spent();
            server.start(false);
            load.until("grants", |seen| seen.spent() > before).await;
            until_all_are_taken(&load, &server, way, 200).await;
            let (seen, _) = account("killed and empty", way, load, &server, 200, AT_MOST).await;
            assert!(before <= 200 && seen.spent() <= 2 * 200);
            assert!(seen.denied_without > 0);
        });
    });
}

#[test]
fn flushall() {
    in_each_way(|mut server, way| {
        server.start(false);
        run(async {
            let load = Load::start(limiter(&server, way, AMPLE, 50));
            for flushes in 1..=3 {
                load.until("half of a burst", |seen| seen.spent() >= 50 * flushes - 25)
                    .await;
                let _: String = server.run("FLUSHALL");
            }
            load.until("last burst", |seen| seen.spent() >= 150).await;
            until_all_are_taken(&load, &server, way, 50).await;
            let (seen, _) = account("flushed", way, load, &server, 50, AT_MOST).await;
            // At most a burst more for each.
            assert!(seen.spent() <= 4 * 50, "{seen:?}");
            assert_eq!(seen.by_fallback(), 0);
        });
    });
}

#[test]
fn script_flush() {
    in_each_way(|mut server, way| {
        server.start(false);
        run(async {
            let load = Load::start(limiter(&server, way, AMPLE, 300));
            for flushes in 1..=10 {
                load.until("grants", |seen| seen.spent() >= 20 * flushes)
                    .await;
                let _: String = server.run("SCRIPT FLUSH");
            }
            load.until("all grants", |seen| seen.spent() >= 300).await;
            load.until("denial", |seen| seen.all_denied() > 0).await;
            let (seen, _) = account("without scripts", way, load, &server, 300, AT_MOST).await;
            assert_eq!((seen.spent(), seen.by_fallback()), (300, 0));
            assert!(server.calls("eval") >= 2, "scripts were sent again");
        });
    });
}

#[test]
fn stopped() {
    in_each_way(|server, way| stopped_for(server, way, Duration::ZERO));
}

#[test]
#[ignore = "takes 5 s on each server: scripts/deep"]
fn stopped_for_5_s() {
    in_each_way(|server, way| stopped_for(server, way, Duration::from_secs(5)));
}

/// Stops a server that many callers use, for this time and until the fallback has decided often.
fn stopped_for(mut server: Server, way: Way, time: Duration) {
    server.start(false);
    run(async {
        let load = Load::start(limiter(&server, way, SHORT, MANY));
        load.until_server_grants(100).await;
        server.signal("STOP");
        let start = Instant::now();
        load.until_fallback_decides(1000).await;
        load.until("long stop", |_| start.elapsed() >= time).await;
        server.signal("CONT");
        load.until_server_grants(100).await;
        let (seen, taken) = account("stopped", way, load, &server, MANY, AT_MOST).await;
        assert!(seen.spent() <= taken);
        assert!(seen.denied_without > 0);
    });
}
