//! Processes that lease slots, by a private server: never more are in use than the limit has, all
//! can be used, and guards are lost before others get their slots.

use std::future::Future;
use std::io::{self, Read};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};
use tollgate::Denied;
use tollgate_redis::client::{Connection, connect_lazily};
use tollgate_redis::{
    Decider, EnterError, Fallback, Grant, Keys, Leasing, Limit, RedisGuard, RedisLimiter,
    RedisServer,
};

use crate::ask::run;
use crate::server::{DEADLINE, Server, on_each_server};
use crate::slots::{Killed, LONG, SHORT, url_of_client};

type Limiter = RedisLimiter<Connection>;

/// A limiter as in a process of its own.
fn node(url: &str, limit: u64, lease: Duration, leasing: Leasing) -> Limiter {
    let client = connect_lazily(url).expect("an address");
    let connected = RedisServer::new(client).with_budget(DEADLINE);
    let keys = Keys::new("test").expect("a namespace");
    let limit = Limit::concurrency(limit, lease).expect("a limit");
    let limiter = RedisLimiter::new(Arc::new(connected), &keys, "a", limit, Fallback::Closed);
    limiter.expect("a limit").leased(leasing).expect("leases")
}

/// Leases that last for a minute.
fn long(server: &Server, limit: u64) -> Limiter {
    node(&server.url(), limit, LONG, Leasing::new())
}

/// Leases that a test waits for.
fn short(url: &str, limit: u64) -> Limiter {
    node(url, limit, LONG, Leasing::new().with_life(SHORT))
}

/// Waits until the process has a lease, and returns a guard of it.
async fn leased(node: &Limiter) -> RedisGuard {
    let start = Instant::now();
    while start.elapsed() < DEADLINE {
        match node.key("alice").try_enter().await {
            Ok(guard) if guard.decider() == Decider::Lease => return guard,
            Ok(guard) => assert_eq!(guard.leave().await, Ok(1)),
            Err(_) => tokio::task::yield_now().await,
        }
    }
    panic!("no lease: {:?}", node.lease_stats())
}

async fn leased_grant(node: &Limiter) -> Grant {
    let start = Instant::now();
    let alice = node.key("alice");
    while start.elapsed() < DEADLINE {
        match alice.try_acquire().await {
            Ok(grant) if grant.decider() == Decider::Lease => return grant,
            Ok(grant) => assert_eq!(alice.undo(grant).await, Ok(1)),
            Err(_) => tokio::task::yield_now().await,
        }
    }
    panic!("no lease: {:?}", node.lease_stats())
}

/// Enters as soon as a slot is free.
async fn enter(node: &Limiter) -> RedisGuard {
    let start = Instant::now();
    loop {
        match node.key("alice").try_enter().await {
            Ok(guard) => return guard,
            Err(EnterError::Denied(denial)) => assert_eq!(denial.denied(), Denied::busy(1)),
            Err(error) => panic!("{error}"),
        }
        assert!(start.elapsed() < DEADLINE, "the slot is not free again");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Without a budget, only a wait for the network is pending.
fn poll_once<T>(future: impl Future<Output = T>) -> Poll<T> {
    let future = pin!(tokio::task::unconstrained(future));
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn at_once<T>(future: impl Future<Output = T>) -> T {
    match poll_once(future) {
        Poll::Ready(ready) => ready,
        Poll::Pending => panic!("it waits"),
    }
}

#[test]
fn four_nodes_enter_all_slots_and_never_more() {
    const SLOTS: u64 = 40;
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let nodes: Vec<_> = (0..4).map(|_| long(&server, SLOTS)).collect();
            let (mut guards, mut leased) = (Vec::new(), 0);
            for round in 0..3 {
                let start = Instant::now();
                while (guards.len() as u64) < SLOTS {
                    assert!(start.elapsed() < DEADLINE, "{} are held", guards.len());
                    for node in &nodes {
                        match node.key("alice").try_enter().await {
                            Ok(guard) => {
                                leased += u64::from(guard.decider() == Decider::Lease);
                                guards.push(guard);
                            }
                            Err(_) => tokio::task::yield_now().await,
                        }
                        assert!(guards.len() as u64 <= SLOTS);
                        // Others come and go.
                        if guards.len() % 7 == 6 && start.elapsed() < SHORT {
                            drop(guards.swap_remove(guards.len() / 2));
                        }
                    }
                }
                for node in &nodes {
                    for _ in 0..100 {
                        let denied = node.key("alice").try_enter().await;
                        assert!(denied.is_err(), "round {round}");
                    }
                }
                assert!(guards.iter().all(|guard| !guard.is_lost()));
                guards.clear();
            }
            assert!(leased > 2 * SLOTS, "{leased} were leased");
        });
    });
}

#[test]
fn slots_are_entered_renewed_and_left_without_a_call_while_the_server_is_away() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let node = long(&server, 100);
            let alice = node.key("alice");
            let mut held = Vec::new();
            for _ in 0..9 {
                held.push(leased(&node).await);
            }
            let grant = leased_grant(&node).await;
            server.kill();
            assert_eq!(at_once(alice.renew(&grant)), Ok(1));
            let settled = at_once(alice.settle(grant, 0)).expect("settled");
            assert_eq!((settled.returned, settled.lost), (1, 0));
            // What comes back is entered again, unless the process gives it back in between.
            let (mut entered, mut taken) = (0, 0);
            while held.len() > 1 {
                assert_eq!(at_once(held.remove(0).leave()), Ok(1));
                let entering = poll_once(alice.try_enter());
                if let Poll::Ready(Ok(guard)) = entering {
                    assert_eq!((guard.n(), guard.decider()), (1, Decider::Lease));
                    entered += 1;
                }
                if let Poll::Ready(Ok(grant)) = poll_once(alice.try_acquire()) {
                    assert_eq!(grant.decider(), Decider::Lease);
                    assert_eq!(at_once(alice.undo(grant)), Ok(1));
                    taken += 1;
                }
            }
            assert!(entered > 0 && taken > 0, "{entered} {taken}");
            let held = held.remove(0);
            assert!(!held.is_lost(), "the lease lasts for a minute");
        });
    });
}

/// Holds a slot by a lease, lets something happen to the server, and waits until the guard is lost.
fn lost_after(event: impl Fn(&mut Server)) {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let node = short(&server.url(), 4);
            let (guard, other) = (leased(&node).await, leased(&node).await);
            event(&mut server);
            let lost = timeout(DEADLINE, guard.lost()).await;
            assert!(lost.is_ok() && guard.is_lost() && other.is_lost());
            assert_eq!(guard.leave().await, Ok(0));
        });
    });
}

#[test]
fn leased_guards_are_lost_when_the_server_is_killed_for_longer_than_a_lease() {
    lost_after(Server::kill);
}

#[test]
fn leased_guards_are_lost_when_the_server_stops_for_longer_than_a_lease() {
    lost_after(|server| server.signal("STOP"));
}

#[test]
fn leased_guards_are_lost_when_the_server_forgets_them() {
    lost_after(|server| {
        let _: String = server.run("FLUSHALL");
    });
}

#[test]
fn leased_guards_are_lost_by_a_ban() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let node = short(&server.url(), 4);
            let guard = leased(&node).await;
            let alice = node.key("alice");
            alice.ban_for(LONG).await.expect("a ban");
            assert!(timeout(DEADLINE, guard.lost()).await.is_ok());
            assert!(alice.try_enter().await.is_err());
            alice.reset().await.expect("a reset");
            let _ = enter(&node).await;
        });
    });
}

/// The client to be killed: this program, run once more for this test alone.
#[test]
#[ignore = "another test runs it"]
fn a_client_holds_leased_slots_until_it_is_killed() {
    let Some(url) = url_of_client() else {
        return;
    };
    run(async {
        let node = short(&url, 4);
        let mut guards = vec![leased(&node).await];
        while guards.len() < 4 {
            guards.push(enter(&node).await);
        }
        // Those that it took before its lease are left.
        while let Some(cold) = guards
            .iter()
            .position(|guard| guard.decider() != Decider::Lease)
        {
            let _ = guards.swap_remove(cold).leave().await;
            guards.push(enter(&node).await);
        }
        println!("\nheld.");
        // It ends without the test that started it, too.
        let _ = io::stdin().read(&mut [0]);
    });
}

#[test]
fn leased_slots_of_a_killed_process_are_free_after_its_lease() {
    on_each_server(|mut server| {
        server.start(false);
        let test = "leased_slots::a_client_holds_leased_slots_until_it_is_killed";
        let mut client = Killed::client(test, &server.url());
        client.wait_for("held.");
        run(async {
            let node = short(&server.url(), 4);
            drop(client);
            let mut guards = Vec::new();
            for _ in 0..4 {
                guards.push(enter(&node).await);
            }
            assert!(node.key("alice").try_enter().await.is_err());
        });
    });
}

#[test]
fn slots_of_grants_that_are_never_given_back_are_free_after_their_lease() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let lease = Duration::from_millis(300);
            let node = node(&server.url(), 10, lease, Leasing::new());
            let alice = node.key("alice");
            let (mut granted, mut leased, start) = (0, 0, Instant::now());
            while leased < 40 {
                match alice.try_acquire().await {
                    Ok(grant) => {
                        granted += 1;
                        leased += u64::from(grant.decider() == Decider::Lease);
                    }
                    Err(_) => sleep(Duration::from_millis(1)).await,
                }
                assert!(start.elapsed() < DEADLINE, "{leased} of {granted}");
                // The leases that were over by now, and those that are not.
                let over = start.elapsed().as_millis() / lease.as_millis();
                assert!(granted <= 10 * (1 + over), "{granted}");
            }
        });
    });
}

/// Holds a slot for five leases after the limit is gone, or less if the machine stands still for
/// one. Returns whether the guard kept it.
async fn is_kept(server: &Server) -> bool {
    let (one, other) = (short(&server.url(), 1), short(&server.url(), 1));
    let guard = leased(&one).await;
    drop(one);
    let start = Instant::now();
    while start.elapsed() < 5 * SHORT {
        if let Ok(_taken) = other.key("alice").try_enter().await {
            assert!(guard.is_lost(), "another client has the slot of a guard");
            return false;
        }
        sleep(SHORT / 20).await;
    }
    let is_lost = guard.is_lost();
    drop(guard);
    let _ = enter(&other).await;
    !is_lost
}

#[test]
fn a_leased_guard_keeps_others_out_after_its_limit_is_dropped() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let start = Instant::now();
            while !is_kept(&server).await {
                assert!(start.elapsed() < DEADLINE, "the guard does not keep it");
            }
        });
    });
}

#[test]
fn a_key_without_a_lease_has_holders_on_the_server() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let node = long(&server, 3);
            let alice = node.key("alice");
            let grant = alice.try_acquire_n(2).await.expect("slots");
            assert_eq!(grant.decider(), Decider::Server);
            assert_eq!(grant.granted().remaining(), 1);
            assert_eq!(alice.renew(&grant).await, Ok(2));
            let guard = alice.try_enter().await.expect("a slot");
            assert_eq!(guard.decider(), Decider::Server);
            let denial = alice.try_acquire().await.expect_err("a denial");
            assert_eq!(denial.denied(), Denied::busy(1));
            assert_eq!(alice.undo(grant).await, Ok(2));
            assert_eq!(guard.leave().await, Ok(1));
            assert_eq!(alice.available().await, Ok(3));
        });
    });
}
