//! Slots with leases on real servers: clients that are killed, and calls that are given up.

use std::env;
use std::future::poll_fn;
use std::io::{self, Read};
use std::pin::pin;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use tollgate::{Denied, Quota};
use tollgate_redis::client::{Connection, connect_lazily};
use tollgate_redis::{Fallback, Grant, Keys, Limit, RedisKey, RedisLimiter};

use crate::ask::run;
use crate::server::{DEADLINE, on_each_server};

/// Slots of each limit.
const SLOTS: u64 = 100;

/// A lease that no test is slow enough to see end.
pub(crate) const LONG: Duration = Duration::from_secs(3600);

/// A lease that a test waits for.
pub(crate) const SHORT: Duration = Duration::from_millis(500);

/// The variable that has the server's address for a client that is another process.
const URL: &str = "TOLLGATE_TEST_SLOTS_URL";

pub(crate) type Limiter = RedisLimiter<Connection>;

/// Returns limits with a long and a short lease.
pub(crate) fn limiters(url: &str, slots: u64) -> (Limiter, Limiter) {
    let client = connect_lazily(url).expect("an address");
    let server = tollgate_redis::RedisServer::new(client).with_budget(DEADLINE);
    let (server, keys) = (Arc::new(server), Keys::new("test").expect("a namespace"));
    let limiter = |name, lease| {
        let limit = Limit::concurrency(slots, lease).expect("a limit");
        RedisLimiter::new(Arc::clone(&server), &keys, name, limit, Fallback::Closed)
            .expect("accepted")
    };
    (limiter("long", LONG), limiter("short", SHORT))
}

/// The most that a server may have to do in one call: `--bench largest` says how long that takes.
#[test]
fn one_call_takes_renews_and_gives_back_the_most_slots_and_logged_permits() {
    const SLOTS: u64 = 2000;
    const LOGGED: u64 = 20_000;
    assert!(Limit::concurrency(SLOTS + 1, LONG).is_err());
    assert!(Limit::sliding_log(Quota::per_day(LOGGED + 1)).is_err());
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let (slots, _) = limiters(&server.url(), SLOTS);
            let (shared, keys) = (Arc::clone(slots.server()), Keys::new("test").expect("one"));
            let log = Limit::sliding_log(Quota::per_day(LOGGED)).expect("a limit");
            let log = RedisLimiter::new(shared, &keys, "log", log, Fallback::Closed);
            let log = log.expect("accepted");
            for (limiter, most) in [(&slots, SLOTS), (&log, LOGGED)] {
                let alice = limiter.key("alice");
                let grant = alice.try_acquire_n(most).await.expect("all of them");
                assert!(alice.try_acquire().await.is_err());
                if most == SLOTS {
                    assert_eq!(alice.renew(&grant).await, Ok(most));
                }
                assert_eq!(alice.undo(grant).await, Ok(most));
                assert_eq!(alice.charge(2 * most).await.map(|it| it.n()), Ok(2 * most));
                assert!(alice.try_acquire().await.is_err());
            }
            assert_eq!(slots.server().stats().failed, 0);
        });
    });
}

/// Waits until one more slot is taken. Until then, each denial is for slots that are held.
pub(crate) async fn until_granted(key: &RedisKey<'_, Connection>) -> Grant {
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
pub(crate) struct Killed(pub(crate) Child);

impl Killed {
    /// Runs this program once more for one ignored test, as a client of the server at `url`.
    pub(crate) fn client(test: &str, url: &str) -> Self {
        let program = env::current_exe().expect("this program");
        let mut command = Command::new(program);
        command.args([test, "--exact", "--ignored", "--nocapture"]);
        command.env(URL, url);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Self(command.spawn().expect("a client"))
    }

    /// Waits for a line of its output that begins so, and returns the rest of the line.
    pub(crate) fn wait_for(&mut self, begin: &str) -> String {
        let output = self.0.stdout.as_mut().expect("its output");
        let mut line = String::new();
        while !line.starts_with(begin) {
            line.clear();
            let mut byte = [0];
            while !line.ends_with('\n') {
                let read = output.read(&mut byte).expect("its output");
                assert!(read > 0, "it ends before it says {begin}");
                line.push(byte[0].into());
            }
        }
        line[begin.len()..].trim().to_owned()
    }
}

/// Returns the server's address, in a client that is another process.
pub(crate) fn url_of_client() -> Option<String> {
    env::var(URL).ok()
}

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
    let Some(url) = url_of_client() else {
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
        let test = "slots::a_client_holds_all_slots_until_it_is_killed";
        let mut client = Killed::client(test, &server.url());
        let held = client.wait_for("held since ").parse().expect("a tick");
        let held = Duration::from_nanos(held);
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
    const CALLS: u64 = 2_000;
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
