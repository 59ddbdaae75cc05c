//! Guards of slots on real servers: what keeps them, and what they are lost by.

use std::io::{self, Read};
use std::process::Command;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};
use tollgate::Denied;
use tollgate_redis::{Decider, RedisGuard};

use crate::ask::run;
use crate::server::{DEADLINE, Server, on_each_server};
use crate::slots::{Killed, Limiter, SHORT, limiters, until_granted, url_of_client};

/// Enters as soon as the slot is free.
async fn enter(limiter: &Limiter) -> RedisGuard {
    let start = Instant::now();
    loop {
        if let Ok(guard) = limiter.key("alice").try_enter().await {
            return guard;
        }
        assert!(start.elapsed() < DEADLINE, "the slot is not free again");
        sleep(Duration::from_millis(10)).await;
    }
}

/// Holds a slot for five leases, or less if the machine stands still for one. Returns whether the
/// guard kept it.
async fn is_kept(limiter: &Limiter) -> bool {
    let guard = enter(limiter).await;
    let start = Instant::now();
    while start.elapsed() < 5 * SHORT {
        match limiter.key("alice").try_acquire().await {
            Err(denial) => assert_eq!(denial.denied(), Denied::busy(1)),
            Ok(_) => {
                assert!(guard.is_lost(), "another client has the slot of a guard");
                return false;
            }
        }
        sleep(SHORT / 20).await;
    }
    !guard.is_lost()
}

#[test]
fn a_guard_keeps_others_out_for_many_leases() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let (_, short) = limiters(&server.url(), 1);
            let start = Instant::now();
            while !is_kept(&short).await {
                assert!(
                    start.elapsed() < DEADLINE,
                    "the guard does not keep its slot"
                );
            }
        });
    });
}

#[test]
fn slots_of_a_guard_that_is_dropped_are_free_before_the_lease_ends() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let (long, _) = limiters(&server.url(), 3);
            let alice = long.key("alice");
            let guard = alice.try_enter_n(3).await.expect("three slots");
            assert_eq!((guard.n(), guard.decider()), (3, Decider::Server));
            assert!(alice.try_enter().await.is_err());
            drop(guard);
            let grant = until_granted(&alice).await;
            assert_eq!(alice.undo(grant).await, Ok(1));
            let guard = alice.try_enter_n(2).await.expect("two slots");
            assert_eq!(guard.leave().await, Ok(2));
            assert_eq!(alice.available().await, Ok(3));
        });
    });
}

#[test]
fn a_thread_without_a_runtime_holds_a_guard() {
    on_each_server(|mut server| {
        server.start(false);
        let runtime = Runtime::new().expect("a runtime");
        let (long, _) = limiters(&server.url(), 1);
        let alice = long.key("alice");
        let guard = runtime.block_on(alice.try_enter()).expect("a slot");
        assert!(runtime.block_on(alice.try_enter()).is_err());
        assert!(!guard.is_lost());
        assert_eq!(runtime.block_on(guard.leave()), Ok(1));
        drop(runtime.block_on(alice.try_enter()).expect("a slot"));
        let _ = runtime.block_on(until_granted(&alice));
    });
}

/// Enters, lets something happen to the server, and waits until the guard says that it is lost.
fn lost_after(event: impl Fn(&mut Server)) {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let (_, short) = limiters(&server.url(), 1);
            let guard = enter(&short).await;
            event(&mut server);
            let lost = timeout(DEADLINE, guard.lost()).await;
            assert!(lost.is_ok() && guard.is_lost());
        });
    });
}

#[test]
fn a_guard_is_lost_by_flushall() {
    lost_after(|server| {
        let _: String = server.run("FLUSHALL");
    });
}

#[test]
fn a_guard_is_lost_by_a_restart_without_data() {
    lost_after(|server| {
        server.kill();
        server.start(false);
    });
}

#[test]
fn a_guard_is_lost_when_its_server_is_killed() {
    lost_after(Server::kill);
}

#[test]
fn a_guard_is_lost_when_its_server_stops() {
    lost_after(|server| server.signal("STOP"));
}

/// The client to be paused: this program, run once more for this test alone.
#[test]
#[ignore = "another test runs it"]
fn a_client_has_a_guard_until_it_is_lost() {
    let Some(url) = url_of_client() else {
        return;
    };
    run(async {
        let (_, short) = limiters(&url, 1);
        let guard = enter(&short).await;
        println!("\nentered.");
        guard.lost().await;
        println!("\nlost {}.", guard.is_lost());
        // It ends without the test that started it, too.
        let _ = io::stdin().read(&mut [0]);
    });
}

#[test]
fn a_guard_of_a_process_that_was_paused_is_lost() {
    on_each_server(|mut server| {
        server.start(false);
        let test = "guards::a_client_has_a_guard_until_it_is_lost";
        let mut client = Killed::client(test, &server.url());
        client.wait_for("entered.");
        let id = client.0.id().to_string();
        let signal = |signal: &str| {
            let mut kill = Command::new("kill");
            kill.args([signal, &id]);
            assert!(kill.status().expect("kill runs").success());
        };
        signal("-STOP");
        run(async {
            let (_, short) = limiters(&server.url(), 1);
            let alice = short.key("alice");
            let _grant = until_granted(&alice).await;
            signal("-CONT");
            assert_eq!(client.wait_for("lost "), "true.");
        });
    });
}
