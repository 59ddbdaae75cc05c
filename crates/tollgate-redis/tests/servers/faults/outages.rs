//! Outages of a real server: each has one beginning and one end, fallbacks keep their bounds, and
//! nothing is sent twice.

use std::time::{Duration, Instant};

use tollgate_redis::{Decider, Fallback, OutageEvent};

use super::{AMPLE, BURST, assert_one_outage, limiter, run, take, until_recovered};
use crate::server::{DEADLINE, on_each_server};

#[test]
fn a_killed_server_is_replaced_by_a_bounded_fallback_until_it_is_back() {
    on_each_server(|mut server| {
        for keeps_data in [false, true] {
            server.start(keeps_data);
            let _: String = server.run("FLUSHALL");
            run(async {
                let (limiter, events) = limiter(
                    &server,
                    AMPLE,
                    Fallback::OpenAtMost {
                        at_most: 5,
                        per: None,
                    },
                );
                let alice = limiter.key("alice");
                for _ in 0..10 {
                    assert_eq!(take(&alice).await, (true, Decider::Server));
                }
                server.kill();
                let mut granted = 0;
                for _ in 0..1000 {
                    let (is_granted, decider) = take(&alice).await;
                    assert_eq!(decider, Decider::Open);
                    granted += u64::from(is_granted);
                }
                // A call that was on its way fails alone.
                assert!((5..=7).contains(&granted), "{granted}");
                server.start(keeps_data);
                let since = until_recovered(&alice).await;
                let before = if keeps_data { 10 } else { 0 };
                assert_eq!(alice.available().await, Ok(BURST - before - since));
                assert_one_outage(&events);
                let stats = limiter.server().stats();
                assert_eq!(stats.outages, 1);
                assert!(stats.open >= 1000 && stats.failed >= 1, "{stats:?}");
            });
            server.kill();
        }
    });
}

#[test]
fn a_program_starts_without_a_server_and_follows_its_fallback() {
    on_each_server(|mut server| {
        run(async {
            let (processes, keys) = (10, 100);
            let fallback = Fallback::Local { processes, keys };
            let (limiter, events) = limiter(&server, AMPLE, fallback);
            for user in ["alice", "bob"] {
                let mut granted = 0;
                for _ in 0..50 {
                    let (is_granted, decider) = take(&limiter.key(user)).await;
                    assert_eq!(decider, Decider::Local);
                    granted += u64::from(is_granted);
                }
                assert_eq!(granted, BURST / 10);
            }
            // More than the share may be available again once the server decides.
            let denial = limiter.key("carol").try_acquire_n(50).await.unwrap_err();
            assert!(!denial.denied().is_permanent());
            assert_eq!(events.lock().unwrap().len(), 1);
            server.start(false);
            let since = until_recovered(&limiter.key("alice")).await;
            assert_eq!(limiter.key("alice").available().await, Ok(BURST - since));
            assert_one_outage(&events);
        });
    });
}

#[test]
fn a_stopped_server_finds_no_queue_of_old_calls_when_it_goes_on() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let budget = Duration::from_millis(200);
            let (limiter, events) = limiter(&server, budget, Fallback::Closed);
            let alice = limiter.key("alice");
            let mut granted = until_recovered(&alice).await;
            // On a busy machine an answer may have been late before this.
            let early = (events.lock().unwrap().len(), limiter.server().stats());
            server.signal("STOP");
            let start = Instant::now();
            while !limiter.server().is_down() {
                assert!(start.elapsed() < DEADLINE, "the outage begins");
                let _ = take(&alice).await;
            }
            for _ in 0..10_000 {
                assert_eq!(take(&alice).await, (false, Decider::Closed));
            }
            server.signal("CONT");
            granted += until_recovered(&alice).await;
            if early.0 == 0 {
                assert!(matches!(
                    events.lock().unwrap()[..2],
                    [OutageEvent::Began { .. }, OutageEvent::Ended { .. }]
                ));
            }
            // Each call that was sent ran at most once, and those that failed were few.
            let stats = limiter.server().stats();
            let failed = stats.failed - early.1.failed;
            assert!((1..1000).contains(&failed), "{stats:?}");
            let sent = stats.server + stats.failed;
            assert!(server.calls("evalsha") <= sent, "{stats:?}");
            let taken = server.writes();
            assert!(
                granted <= taken && taken <= granted + stats.lost,
                "{stats:?}"
            );
        });
    });
}

#[test]
fn a_server_that_forgets_scripts_gets_them_again() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let (limiter, _) = limiter(&server, AMPLE, Fallback::Closed);
            let alice = limiter.key("alice");
            for taken in 1..=20 {
                let grant = alice.try_acquire().await.expect("a grant");
                assert_eq!(grant.granted().remaining(), BURST - taken);
                let _: String = server.run("SCRIPT FLUSH");
            }
            let stats = limiter.server().stats();
            assert_eq!((stats.server, stats.failed), (20, 0));
        });
    });
}

#[test]
fn a_server_that_refuses_is_an_outage_in_which_nothing_is_lost() {
    on_each_server(|mut server| {
        server.start(false);
        for (break_it, heal_it) in [
            ("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"),
            ("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0"),
            (
                "ACL SETUSER default -@scripting",
                "ACL SETUSER default +@scripting",
            ),
        ] {
            let _: String = server.run("FLUSHALL");
            run(async {
                let (limiter, events) = limiter(&server, AMPLE, Fallback::Closed);
                let alice = limiter.key("alice");
                assert_eq!(take(&alice).await, (true, Decider::Server));
                let _: String = server.run(break_it);
                let start = Instant::now();
                while !limiter.server().is_down() {
                    assert!(start.elapsed() < DEADLINE, "an outage");
                    assert_eq!(take(&alice).await, (false, Decider::Closed), "{break_it}");
                }
                let _: String = server.run(heal_it);
                let since = until_recovered(&alice).await;
                assert_eq!(alice.available().await, Ok(BURST - 1 - since), "{heal_it}");
                assert_one_outage(&events);
                assert_eq!(limiter.server().stats().lost, 0);
            });
        }
    });
}

#[test]
fn a_key_with_a_foreign_value_falls_back_alone() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let (limiter, events) = limiter(&server, AMPLE, Fallback::Closed);
            let stored = |user: &str| String::from_utf8(limiter.key(user).name().to_vec());
            let [alice, bob] = ["alice", "bob"].map(|user| stored(user).expect("text"));
            let _: String = server.run(&format!("SET {alice} foreign"));
            let _: i64 = server.run(&format!("LPUSH {bob} foreign"));
            for user in ["alice", "bob"] {
                assert_eq!(take(&limiter.key(user)).await, (false, Decider::Closed));
                assert!(limiter.key(user).available().await.is_err());
            }
            assert_eq!(take(&limiter.key("carol")).await, (true, Decider::Server));
            assert!(events.lock().unwrap().is_empty());
            assert!(limiter.key("alice").reset().await.is_err());
            let _: i64 = server.run(&format!("DEL {alice}"));
            assert_eq!(take(&limiter.key("alice")).await, (true, Decider::Server));
        });
    });
}
