//! A server that is killed, wiped, stopped, or forgets its scripts, while many callers use it.

use std::time::{Duration, Instant};

use tollgate_redis::Fallback;

use super::load::{Load, account};
use super::{AMPLE, Limiter, SHORT, connected, run};
use crate::server::{Server, on_each_server};

/// More than the callers of a run can take.
const MANY: u64 = 400_000;

/// What the fallback grants in an outage.
const AT_MOST: u64 = 50;

fn limiter(server: &Server, budget: Duration, burst: u64) -> Limiter {
    let fallback = Fallback::OpenAtMost {
        at_most: AT_MOST,
        per: None,
    };
    connected(&server.url(), budget, burst, fallback).0
}

#[test]
fn killed_and_started_again_with_its_data() {
    on_each_server(|mut server| {
        server.start(true);
        run(async {
            let load = Load::start(limiter(&server, AMPLE, MANY));
            load.until_server_decides(100).await;
            server.kill();
            load.until_fallback_decides(500).await;
            server.start(true);
            load.until_server_decides(100).await;
            let (seen, taken) = account("killed", load, &server, MANY, AT_MOST).await;
            assert!(seen.granted <= taken, "{} > {taken}", seen.granted);
            assert!(seen.denied_without > 0 && seen.denied == 0);
        });
    });
}

#[test]
fn killed_and_started_again_without_its_data() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let load = Load::start(limiter(&server, AMPLE, 200));
            load.until_server_decides(100).await;
            server.kill();
            load.until_fallback_decides(500).await;
            // The key is full once more.
            let before = load.seen().granted;
            server.start(false);
            load.until("denial", |seen| seen.denied > 0 && seen.granted > before)
                .await;
            let (seen, taken) = account("killed and empty", load, &server, 200, AT_MOST).await;
            assert_eq!(taken, 200);
            assert!(seen.granted <= before + 200 && before <= 200);
            assert!(seen.denied_without > 0);
        });
    });
}

#[test]
fn flushall() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let load = Load::start(limiter(&server, AMPLE, 50));
            for flushes in 1..=3 {
                load.until("half of a burst", |seen| seen.granted >= 50 * flushes - 25)
                    .await;
                let _: String = server.run("FLUSHALL");
            }
            let denied = load.seen().denied;
            load.until("denial", |seen| seen.denied > denied + 100)
                .await;
            let (seen, taken) = account("flushed", load, &server, 50, AT_MOST).await;
            assert_eq!(taken, 50);
            // At most a burst more for each.
            assert!((150..=4 * 50).contains(&seen.granted), "{seen:?}");
            assert_eq!(seen.by_fallback(), 0);
        });
    });
}

#[test]
fn script_flush() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let load = Load::start(limiter(&server, AMPLE, 300));
            for flushes in 1..=10 {
                load.until("grants", |seen| seen.granted >= 20 * flushes)
                    .await;
                let _: String = server.run("SCRIPT FLUSH");
            }
            load.until("denial", |seen| seen.denied > 0).await;
            let (seen, _) = account("without scripts", load, &server, 300, AT_MOST).await;
            assert_eq!((seen.granted, seen.by_fallback()), (300, 0));
            assert!(server.calls("eval") >= 2, "scripts were sent again");
        });
    });
}

#[test]
fn stopped() {
    on_each_server(|server| stopped_for(server, Duration::ZERO));
}

#[test]
#[ignore = "takes 5 s on each server: scripts/deep"]
fn stopped_for_5_s() {
    on_each_server(|server| stopped_for(server, Duration::from_secs(5)));
}

/// Stops a server that many callers use, for this time and until the fallback has decided often.
fn stopped_for(mut server: Server, time: Duration) {
    server.start(false);
    run(async {
        let load = Load::start(limiter(&server, SHORT, MANY));
        load.until_server_decides(100).await;
        server.signal("STOP");
        let start = Instant::now();
        load.until_fallback_decides(1000).await;
        load.until("long stop", |_| start.elapsed() >= time).await;
        server.signal("CONT");
        load.until_server_decides(100).await;
        let (seen, taken) = account("stopped", load, &server, MANY, AT_MOST).await;
        assert!(seen.granted <= taken);
        assert!(seen.denied_without > 0);
    });
}
