//! A failover to a replica that lags behind its primary.

use std::time::Instant;

use tollgate_redis::{Decider, Fallback};

use super::proxy::{Mode, Proxy};
use super::{AMPLE, BURST, connected, run, take, until_recovered};
use crate::leases::{bucket, node_at, until_leased};
use crate::server::{DEADLINE, Server, on_each_server};

/// Permits that the replica knows of when it becomes the primary.
const KNOWN: u64 = 30;

/// Permits that only the lost primary knew of.
const LOST: u64 = 20;

/// Lets a replica follow its primary through a proxy.
fn follow(primary: &Server, replica: &Server, between: &Proxy) {
    let _: String = replica.run(&format!("REPLICAOF 127.0.0.1 {}", between.port()));
    let start = Instant::now();
    while primary.run::<u64>("WAIT 1 100") == 0 {
        assert!(start.elapsed() < DEADLINE, "the replica follows");
    }
}

/// Waits until the replica has all that was written.
fn until_copied(primary: &Server) {
    // WAIT waits for the writes of its connection and all earlier ones.
    let mut connection = primary.connection();
    let mut pipe = redis::pipe();
    pipe.cmd("SET").arg("mark").arg(1).ignore();
    pipe.cmd("WAIT").arg(1).arg(DEADLINE.as_millis() as u64);
    let copies: (u64,) = pipe.query(&mut connection).expect("an answer");
    assert_eq!(copies, (1,));
}

#[test]
fn failover_to_a_replica_that_lags() {
    on_each_server(|mut primary| {
        let mut replica = primary.another();
        primary.start_with(&["--repl-diskless-sync-delay", "0"]);
        replica.start(false);
        run(async {
            let between = Proxy::new(&primary).await;
            follow(&primary, &replica, &between);
            let front = Proxy::new(&primary).await;
            let (limiter, _) = connected(&front.url(), AMPLE, BURST, Fallback::Closed);
            let alice = limiter.key("alice");
            let mut granted = 0;
            for _ in 0..KNOWN {
                assert_eq!(take(&alice).await, (true, Decider::Server));
                granted += 1;
            }
            until_copied(&primary);
            between.set(Mode::HoldReplies);
            for _ in 0..LOST {
                assert_eq!(take(&alice).await, (true, Decider::Server));
                granted += 1;
            }
            primary.kill();
            let _: String = replica.run("REPLICAOF NO ONE");
            front.point_at(&replica);
            granted += until_recovered(&alice).await;
            let left = alice.available().await.expect("an answer");
            assert!(alice.try_acquire_n(left).await.is_ok());
            assert_eq!(take(&alice).await, (false, Decider::Server));
            granted += left;
            println!("failover: {granted} granted, {LOST} of them again");
            assert_eq!(granted, BURST + LOST);
        });
    });
}

#[test]
fn failover_to_a_replica_that_does_not_know_all_leases() {
    const ALL: u64 = 1000;
    on_each_server(|mut primary| {
        let mut replica = primary.another();
        primary.start_with(&["--repl-diskless-sync-delay", "0"]);
        replica.start(false);
        run(async {
            let between = Proxy::new(&primary).await;
            follow(&primary, &replica, &between);
            let front = Proxy::new(&primary).await;
            let node = node_at(&front.url(), bucket(ALL));
            let drawn = || node.lease_stats().expect("leases").drawn;
            let alice = node.key("alice");
            let mut granted = until_leased(&node).await;
            let known = drawn();
            until_copied(&primary);
            between.set(Mode::HoldReplies);
            // The replica learns of nothing that is drawn from here on.
            let (mut by_server, start) = (0, Instant::now());
            while drawn() == known {
                assert!(start.elapsed() < DEADLINE, "permits are drawn");
                match alice.try_acquire().await {
                    Ok(grant) => {
                        granted += 1;
                        by_server += u64::from(grant.decider() == Decider::Server);
                    }
                    Err(_) => tokio::task::yield_now().await,
                }
            }
            primary.kill();
            let lost = drawn() - known + by_server;
            let _: String = replica.run("REPLICAOF NO ONE");
            front.point_at(&replica);
            let mut denied = 0;
            while denied < 100 {
                assert!(start.elapsed() < DEADLINE, "{granted} are granted");
                match alice.try_acquire().await {
                    Ok(_) => granted += 1,
                    Err(_) => {
                        denied += u64::from(granted >= ALL);
                        tokio::task::yield_now().await;
                    }
                }
            }
            println!("failover: {granted} granted of {ALL}, {lost} were drawn in lost writes");
            assert!((ALL..=ALL + lost).contains(&granted), "{granted}");
        });
    });
}
