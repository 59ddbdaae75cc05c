//! Slots with leases on real servers: clients that are killed, and calls that are given up.

use std::env;
use std::future::{Future, poll_fn};
use std::io::{self, BufRead, BufReader, Read};
use std::pin::pin;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use tollgate::Denied;
use tollgate_redis::client::{Connection, connect_lazily};
use tollgate_redis::{Fallback, Grant, Keys, Limit, RedisKey, RedisLimiter};

use crate::server::{DEADLINE, on_each_server};

/// Slots of each limit.
const SLOTS: u64 = 100;

/// A lease that no test is slow enough to see end.
const LONG: Duration = Duration::from_secs(3600);

/// A lease that a test waits for.
const SHORT: Duration = Duration::from_millis(500);

/// The variable that has the server's address for a client to be killed.
const URL: &str = "TOLLGATE_TEST_SLOTS_URL";

type Limiter = RedisLimiter<Connection>;

/// Returns limits with a long and a short lease.
fn limiters(url: &str, slots: u64) -> (Limiter, Limiter) {
    let client = connect_lazily(url).expect("an address");
    let server = tollgate_redis::Server::new(client).with_budget(DEADLINE);
    let (server, keys) = (Arc::new(server), Keys::new("test").expect("a namespace"));
    let limiter = |name, lease| {
        let limit = Limit::concurrency(slots, lease).expect("a limit");
        RedisLimiter::new(Arc::clone(&server), &keys, name, limit, Fallback::Closed)
            .expect("accepted")
    };
    (limiter("long", LONG), limiter("short", SHORT))
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(test);
}

/// Waits until one more slot is taken. Until then, each denial is for slots that are held.
async fn until_granted(key: &RedisKey<'_, Connection>) -> Grant {
    let start = Instant::now();
    loop {
        match key.try_acquire().await {
            Ok(grant) => return grant,
            Err(denial) => assert_eq!(denial.denied(), Denied::busy(1)),
        }
        assert!(start.elapsed() < DEADLINE, "slots are not free again");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A process that is killed as `kill -9` does, also by a test that panics.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The client to be killed: this program, run once more for this test alone.
#[test]
#[ignore = "another test runs it"]
fn a_client_holds_all_slots_until_it_is_killed() {
    let Ok(url) = env::var(URL) else {
        return;
    };
    run(async {
        let (long, short) = limiters(&url, SLOTS);
        let _long = long.key("alice").try_acquire_n(SLOTS).await.expect("slots");
        let grant = short.key("alice").try_acquire_n(SLOTS).await;
        let at = grant.expect("slots").granted().at().as_nanos();
        println!("\nheld since {at}");
        // It ends without the test that started it, too.
        let _ = io::stdin().read(&mut [0]);
    });
}

#[test]
fn slots_of_a_killed_client_are_free_after_their_lease() {
    on_each_server(|mut server| {
        server.start(false);
        let program = env::current_exe().expect("this program");
        let mut command = Command::new(program);
        let test = "slots::a_client_holds_all_slots_until_it_is_killed";
        command.args([test, "--exact", "--ignored", "--nocapture"]);
        command.env(URL, server.url());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut client = Killed(command.spawn().expect("a client"));
        let output = BufReader::new(client.0.stdout.take().expect("its output"));
        let held = output.lines().find_map(|line| {
            let line = line.expect("a line");
            line.strip_prefix("held since ")?.parse().ok()
        });
        let held = Duration::from_nanos(held.expect("the client holds the slots"));
        drop(client);
        run(async {
            let (long, short) = limiters(&server.url(), SLOTS);
            let denied = long.key("alice").try_acquire().await.expect_err("a denial");
            assert_eq!(denied.denied(), Denied::busy(1));
            let alice = short.key("alice");
            let grant = until_granted(&alice).await;
            let since = Duration::from_nanos(grant.granted().at().as_nanos());
            assert!(
                since >= held + SHORT,
                "{since:?} is before {held:?} + a lease"
            );
            let others = alice.try_acquire_n(SLOTS - 1).await;
            assert!(others.is_ok(), "all are free then");
        });
    });
}

#[test]
fn calls_that_are_given_up_hold_no_slot_after_the_lease() {
    const CALLS: u64 = 10_000;
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let (long, short) = limiters(&server.url(), CALLS);
            for (limiter, is_long) in [(&long, true), (&short, false)] {
                let alice = limiter.key("alice");
                let (mut granted, mut given_up) = (0, 0);
                for call in 0..CALLS {
                    // The call is dropped after this many polls without an answer.
                    let mut left = call % 4;
                    let mut acquire = pin!(alice.try_acquire());
                    let answer = poll_fn(|context| match acquire.as_mut().poll(context) {
                        Poll::Ready(answer) => Poll::Ready(Some(answer)),
                        Poll::Pending if left == 0 => Poll::Ready(None),
                        Poll::Pending => {
                            left -= 1;
                            Poll::Pending
                        }
                    });
                    match answer.await {
                        Some(Ok(_)) => granted += 1,
                        Some(Err(denial)) => panic!("{denial:?}"),
                        None => given_up += 1,
                    }
                }
                let free = alice.available().await.expect("an answer");
                println!("{granted} granted, {given_up} given up, {free} free");
                assert!(granted > 0 && given_up > 0);
                if is_long {
                    assert!(
                        free <= CALLS - granted,
                        "those without an answer may hold some"
                    );
                }
            }
            let (alice, start) = (short.key("alice"), Instant::now());
            while alice.available().await != Ok(CALLS) {
                assert!(start.elapsed() < DEADLINE, "slots are not free again");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
    });
}

#[test]
fn a_slot_that_was_lost_is_not_given_back_or_renewed() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let (long, short) = limiters(&server.url(), 1);
            let alice = long.key("alice");
            let grant = alice.try_acquire().await.expect("a grant");
            assert_eq!(alice.renew(&grant).await, Ok(1));
            assert_eq!(alice.undo(grant).await, Ok(1));
            let grant = alice.try_acquire().await.expect("a grant");
            alice.reset().await.expect("an answer");
            let _other = alice.try_acquire().await.expect("a grant");
            assert_eq!(alice.renew(&grant).await, Ok(0));
            assert_eq!(alice.undo(grant).await, Ok(0));
            assert_eq!(alice.available().await, Ok(0), "the other's slot is held");

            let bob = short.key("bob");
            let late = bob.try_acquire().await.expect("a grant");
            let other = until_granted(&bob).await;
            assert_eq!(bob.renew(&late).await, Ok(0));
            assert_eq!(bob.undo(late).await, Ok(0));
            drop(other);
        });
    });
}

#[test]
fn a_grant_is_settled_to_fewer_slots_or_to_more() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let (long, _) = limiters(&server.url(), 10);
            let alice = long.key("alice");
            let grant = alice.try_acquire_n(6).await.expect("a grant");
            let settled = alice.settle(grant, 2).await.expect("an answer");
            assert_eq!((settled.returned, settled.lost), (4, 0));
            assert_eq!(alice.available().await, Ok(8));
            let grant = alice.try_acquire_n(8).await.expect("a grant");
            assert_eq!(alice.settle(grant, 9).await.map(|s| s.charged), Ok(1));
            let denial = alice.try_acquire_n(0).await.expect_err("a debt");
            assert_eq!(denial.denied(), Denied::busy(0));
            assert_eq!(alice.refund(10).await, Ok(0), "a refund knows no holder");
        });
    });
}
