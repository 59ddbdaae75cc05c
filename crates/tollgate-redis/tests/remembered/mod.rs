//! Denials that a process remembers: which calls they save, what they tell, and what forgets them.
//! The server is a model in memory, on tokio's manual clock.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::{Instant, advance};
use tollgate::Quota;

use super::*;
use crate::client::{Client, ClientError, Command, Reply};
use crate::key::Keys;
use crate::limit::Limit;
use crate::limiter::all::RedisAll;
use crate::limiter::decision::Denial;
use crate::limiter::{RedisKey, RedisLimiter};
use crate::outage::Decider;
use crate::outage::fallback::Fallback;
use crate::script::{self, Kinds, Verb};
use crate::server::RedisServer;

#[path = "../../../../tests/support/random.rs"]
mod random;

pub(super) use random::Random;

pub(super) const fn nanos(nanos: u64) -> Tick {
    Tick::from_nanos(nanos)
}

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// Waits are told at most this much longer than the server said, besides the round trip.
const ROUNDED: Duration = Duration::from_millis(3);

/// A server of first-hit windows, whose clock is tokio's.
#[derive(Debug, Clone, Default)]
struct Windows(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    start: Option<Instant>,
    keys: BTreeMap<Vec<u8>, Window>,
    /// What was sent.
    sent: Vec<&'static str>,
    /// How long a command takes to the server, and its answer back.
    trip: [Duration; 2],
    fails: bool,
}

#[derive(Debug, Default, Clone, Copy)]
struct Window {
    count: u64,
    ends: u64,
    ban: u64,
}

impl Windows {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Returns what was sent since the last time.
    fn sent(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.state().sent)
    }
}

impl State {
    /// Runs a command for each key, as the script does.
    fn run(&mut self, verb: &'static str, keys: &[Vec<u8>], args: &[&[u8]]) -> Reply {
        let now = Instant::now();
        let start = *self.start.get_or_insert(now);
        let now = 1_000_000 + (now - start).as_micros() as u64;
        self.sent.push(verb);
        let mut told = Vec::new();
        let mut asked = Vec::new();
        for (key, arg) in keys.iter().zip(args) {
            let number = |i: usize| {
                let bytes = arg.get(1 + 8 * i..9 + 8 * i).unwrap_or(&[0; 8]);
                f64::from_le_bytes(bytes.try_into().expect("8 bytes")) as u64
            };
            let window = self.keys.entry(key.clone()).or_default();
            if window.ends <= now {
                (window.count, window.ends) = (0, now + number(2));
            }
            asked.push((key, number(0), number(1), number(5)));
            told.push(*window);
        }
        let fits = asked
            .iter()
            .zip(&told)
            .all(|((_, n, limit, _), window)| window.count + n <= *limit && window.ban <= now);
        let mut packed = Vec::new();
        for ((key, n, _, long), before) in asked.into_iter().zip(told) {
            let window = self.keys.get_mut(key).unwrap();
            let numbers = match verb {
                "take" => {
                    window.count += if fits { n } else { 0 };
                    vec![before.count, 0, before.ends, before.ban]
                }
                "look" => vec![before.count, 0, before.ends, before.ban],
                "give" => {
                    window.count = before.count.saturating_sub(n);
                    vec![n.min(before.count)]
                }
                "charge" => {
                    window.count += n;
                    vec![n, window.count, 0, before.ends, before.ban]
                }
                "ban" => {
                    window.ban = now + long;
                    vec![window.ban]
                }
                _ => {
                    *window = Window::default();
                    vec![]
                }
            };
            let bytes = numbers.iter().flat_map(|n| (*n as f64).to_le_bytes());
            packed.push(Reply::Bytes(bytes.collect()));
        }
        let mut list = vec![Reply::Int(1_000_000.max(now as i64))];
        if verb == "take" {
            list.insert(0, Reply::Int(fits.into()));
        }
        list.extend(packed);
        Reply::List(list)
    }
}

impl Client for Windows {
    async fn send(&self, command: &Command<'_>) -> Result<Reply, ClientError> {
        let parts: Vec<_> = command.parts().collect();
        let verbs = [
            ("take", Verb::Take),
            ("look", Verb::Look),
            ("give", Verb::Give),
            ("charge", Verb::Charge),
            ("ban", Verb::Ban),
            ("reset", Verb::Reset),
        ];
        let is_sent = |(_, verb): &&(_, Verb)| {
            script::script(*verb, Kinds::Window).sha().as_bytes() == parts[1]
        };
        let (verb, _) = verbs.iter().find(is_sent).expect("a verb of windows");
        let args = &parts[3 + command.keys().len()..];
        let [there, back] = self.state().trip;
        tokio::time::sleep(there).await;
        let reply = {
            let mut state = self.state();
            if state.fails {
                state.sent.push("failed");
                return Err(ClientError::Unknown("failed".into()));
            }
            state.run(verb, command.keys(), args)
        };
        tokio::time::sleep(back).await;
        Ok(reply)
    }
}

fn connect(server: &Windows) -> Arc<RedisServer<Windows>> {
    Arc::new(RedisServer::new(server.clone()).with_budget(SECOND))
}

/// Returns a limit of `n` permits in a window of this length, which remembers denials.
fn limiter(
    server: &Arc<RedisServer<Windows>>,
    name: &str,
    n: u64,
    period: Duration,
) -> RedisLimiter<Windows> {
    let limit = Limit::first_hit_window(Quota::per(n, period)).unwrap();
    let (server, keys) = (Arc::clone(server), Keys::new("test").unwrap());
    let limiter = RedisLimiter::new(server, &keys, name, limit, Fallback::Closed).unwrap();
    limiter.remember_denials()
}

/// Takes `n` permits that must be denied, and returns the wait.
async fn denied(key: &RedisKey<'_, Windows>, n: u64) -> Duration {
    wait(key.try_acquire_n(n).await.unwrap_err())
}

fn wait(denial: Denial) -> Duration {
    assert_eq!(denial.decider(), Decider::Server);
    denial.denied().retry_after().expect("a wait")
}

#[tokio::test(start_paused = true)]
async fn a_denial_takes_no_call_for_a_second_and_tells_the_rest_of_its_wait() {
    let server = Windows::default();
    let connected = connect(&server);
    let limiter = limiter(&connected, "limit", 2, 10 * SECOND);
    let alice = limiter.key("alice");
    let _ = alice.try_acquire_n(2).await.unwrap();
    server.state().trip = [4 * MS, 6 * MS];
    let sent = Instant::now();
    let due = sent + denied(&alice, 1).await + 4 * MS;
    assert_eq!(server.sent(), ["take", "take"]);
    let mut asked = 0;
    loop {
        advance(7 * MS).await;
        let told = Instant::now() + denied(&alice, 1).await;
        if !server.sent().is_empty() {
            break;
        }
        assert!(told >= due, "{:?} too short", due - told);
        assert!(told <= due + 10 * MS + ROUNDED, "{:?}", told - due);
        asked += 1;
        assert_eq!(connected.stats().remembered, asked);
        assert!(alice.check_n(1).await.is_err());
        asked += 1;
    }
    // It may be rounded down by up to two milliseconds.
    let took = sent.elapsed() - 10 * MS;
    assert!(
        took >= SECOND - 2 * MS - 7 * MS && took < SECOND + 7 * MS,
        "{took:?}"
    );
    assert!(asked > 200, "{asked}");
    assert_eq!(connected.stats().server, 3);
}

#[tokio::test(start_paused = true)]
async fn a_denial_is_forgotten_when_its_wait_is_over() {
    let server = Windows::default();
    let limiter = limiter(&connect(&server), "limit", 1, 200 * MS);
    let alice = limiter.key("alice");
    for _ in 0..3 {
        let _ = alice.try_acquire().await.unwrap();
        advance(50 * MS).await;
        let wait = denied(&alice, 1).await;
        assert_eq!(wait, 150 * MS);
        advance(147 * MS).await;
        let _ = denied(&alice, 1).await;
        assert_eq!(server.sent(), ["take", "take"]);
        // No permit comes later than without memory.
        advance(3 * MS).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_denial_is_of_one_key_one_limit_and_one_number_of_permits() {
    let server = Windows::default();
    let connected = connect(&server);
    let one = limiter(&connected, "one", 2, 10 * SECOND);
    let other = limiter(&connected, "other", 2, 10 * SECOND);
    let alice = one.key("alice");
    let _ = alice.try_acquire().await.unwrap();
    let _ = denied(&alice, 2).await;
    let _ = denied(&alice, 2).await;
    assert_eq!(server.sent(), ["take", "take"]);
    assert!(alice.try_acquire_n(1).await.is_ok(), "one is left");
    assert!(one.key("bob").try_acquire_n(2).await.is_ok());
    assert!(other.key("alice").try_acquire_n(2).await.is_ok());
    assert!(alice.try_acquire_n(0).await.is_ok());
    let never = alice.try_acquire_n(3).await.unwrap_err();
    assert_eq!(never.denied(), Denied::never(3, 2));
    assert_eq!(server.sent(), ["take"; 4]);
}

#[tokio::test(start_paused = true)]
async fn what_may_free_permits_and_a_ban_forget_the_denials_of_a_limit() {
    let server = Windows::default();
    let connected = connect(&server);
    let limiter = limiter(&connected, "limit", 4, 10 * SECOND);
    let alice = limiter.key("alice");
    let bob = limiter.key("bob");
    for verb in [
        "undo",
        "refund",
        "settle",
        "reset",
        "all undo",
        "all settle",
        "ban",
    ] {
        let grant = alice.try_acquire_n(3).await.unwrap();
        let taken = bob.try_acquire_n(4).await.unwrap();
        let _ = (denied(&alice, 2).await, denied(&bob, 1).await);
        let _ = (denied(&alice, 2).await, denied(&bob, 1).await);
        assert_eq!(server.sent(), ["take"; 4], "{verb}");
        let all = RedisAll::new(vec![limiter.key("alice")]).unwrap();
        match verb {
            "undo" => _ = alice.undo(grant).await.unwrap(),
            "refund" => _ = alice.refund(3).await.unwrap(),
            "settle" => _ = alice.settle(grant, 1).await.unwrap(),
            "reset" => alice.reset().await.unwrap(),
            "all undo" => _ = all.undo(vec![grant]).await.unwrap(),
            "all settle" => _ = all.settle(vec![grant], 1).await.unwrap(),
            _ => {
                let long = alice.ban_for(9 * SECOND).await.unwrap();
                let denial = alice.try_acquire_n(2).await.unwrap_err();
                assert_eq!(
                    denial.denied(),
                    Denied::banned(2, Some(10 * SECOND)),
                    "{long:?}"
                );
                // It stays a ban.
                let denial = alice.try_acquire_n(2).await.unwrap_err();
                let wait = match denial.denied() {
                    Denied::Banned { retry_after, .. } => retry_after.unwrap(),
                    other => panic!("{other:?}"),
                };
                assert!(wait >= 10 * SECOND && wait < 10 * SECOND + ROUNDED);
                assert_eq!(server.sent(), ["ban", "take"]);
                return;
            }
        }
        assert!(alice.check_n(2).await.is_ok(), "{verb}");
        assert!(alice.try_acquire_n(2).await.is_ok(), "{verb}");
        assert_eq!(server.sent().len(), 3, "{verb}");
        for key in [&alice, &bob] {
            key.reset().await.unwrap();
        }
        drop(taken);
        server.sent();
    }
}

/// The server denies, then the permits come back, and then the denial arrives.
#[tokio::test(start_paused = true)]
async fn a_denial_that_arrives_after_its_permits_came_back_is_not_remembered() {
    let server = Windows::default();
    let limiter = Arc::new(limiter(&connect(&server), "limit", 1, 10 * SECOND));
    let alice = limiter.key("alice");
    let grant = alice.try_acquire().await.unwrap();
    server.state().trip = [MS, 50 * MS];
    let late = {
        let limiter = Arc::clone(&limiter);
        tokio::spawn(async move { limiter.key("alice").try_acquire().await.is_err() })
    };
    tokio::time::sleep(10 * MS).await;
    server.state().trip = [MS, MS];
    assert_eq!(alice.undo(grant).await, Ok(1));
    assert!(late.await.unwrap());
    assert!(alice.try_acquire().await.is_ok());
}

/// The call that gives back is sent, then the server denies, and then the permits come back.
#[tokio::test(start_paused = true)]
async fn a_denial_while_permits_are_on_their_way_back_is_forgotten() {
    let server = Windows::default();
    let limiter = Arc::new(limiter(&connect(&server), "limit", 1, 10 * SECOND));
    for verb in ["undo", "reset", "all undo", "all settle"] {
        let grant = limiter.key("alice").try_acquire().await.unwrap();
        server.state().trip = [50 * MS, MS];
        let back = {
            let limiter = Arc::clone(&limiter);
            tokio::spawn(async move {
                let alice = limiter.key("alice");
                let all = RedisAll::new(vec![limiter.key("alice")]).unwrap();
                match verb {
                    "undo" => _ = alice.undo(grant).await.unwrap(),
                    "reset" => alice.reset().await.unwrap(),
                    "all undo" => _ = all.undo(vec![grant]).await.unwrap(),
                    _ => _ = all.settle(vec![grant], 0).await.unwrap(),
                }
            })
        };
        tokio::time::sleep(10 * MS).await;
        server.state().trip = [MS, MS];
        let alice = limiter.key("alice");
        let _ = (denied(&alice, 1).await, denied(&alice, 1).await);
        back.await.unwrap();
        assert!(alice.try_acquire().await.is_ok(), "{verb}");
        alice.reset().await.unwrap();
    }
}

/// The undo is dropped when it has had its effect, and before its answer.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_forgets_too() {
    let server = Windows::default();
    let limiter = limiter(&connect(&server), "limit", 1, 10 * SECOND);
    let alice = limiter.key("alice");
    let grant = alice.try_acquire().await.unwrap();
    let _ = denied(&alice, 1).await;
    server.state().trip = [MS, 50 * MS];
    assert!(
        tokio::time::timeout(10 * MS, alice.undo(grant))
            .await
            .is_err()
    );
    assert!(alice.try_acquire().await.is_ok());
}

/// Two connections are as two processes.
#[tokio::test(start_paused = true)]
async fn what_another_process_frees_is_seen_within_a_second_and_never_granted_too_early() {
    let server = Windows::default();
    let [here, there] = [(); 2].map(|()| limiter(&connect(&server), "limit", 1, 10 * SECOND));
    let grant = here.key("alice").try_acquire().await.unwrap();
    let _ = denied(&there.key("alice"), 1).await;
    assert_eq!(here.key("alice").undo(grant).await, Ok(1));
    let _ = denied(&there.key("alice"), 1).await;
    advance(SECOND).await;
    assert!(there.key("alice").try_acquire().await.is_ok());
    assert!(here.key("alice").try_acquire().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn fallbacks_are_not_remembered_and_in_an_outage_the_server_still_counts() {
    let server = Windows::default();
    let connected = connect(&server);
    let limiter = limiter(&connected, "limit", 1, 10 * SECOND);
    let (alice, bob) = (limiter.key("alice"), limiter.key("bob"));
    let _ = alice.try_acquire().await.unwrap();
    let _ = denied(&alice, 1).await;
    server.state().fails = true;
    for _ in 0..3 {
        assert_eq!(
            bob.try_acquire().await.unwrap_err().decider(),
            Decider::Closed
        );
    }
    assert!(connected.is_down());
    let _ = denied(&alice, 1).await;
    assert_eq!(
        bob.try_acquire().await.unwrap_err().decider(),
        Decider::Closed
    );
    server.state().fails = false;
    advance(SECOND).await;
    assert!(
        bob.try_acquire().await.is_ok(),
        "its denial was not remembered"
    );
}

#[tokio::test(start_paused = true)]
async fn a_composition_is_denied_by_the_longest_denial_that_is_remembered() {
    let server = Windows::default();
    let connected = connect(&server);
    let of = |name, n, seconds| limiter(&connected, name, n, seconds * SECOND);
    let (short, long, free) = (of("short", 1, 5), of("long", 1, 9), of("free", 9, 9));
    let user = || free.key("alice");
    let all = || RedisAll::new(vec![user(), short.key("alice"), long.key("bob")]).unwrap();
    let _ = all().try_acquire().await.unwrap();
    assert_eq!(server.sent(), ["take"; 2], "two tags");
    // The call of one tag denies, so the other is not asked.
    assert_eq!(all().try_acquire().await.unwrap_err().index(), 1);
    assert_eq!(server.sent(), ["take"]);
    assert_eq!(all().try_acquire().await.unwrap_err().index(), 1);
    let _ = denied(&long.key("bob"), 1).await;
    assert_eq!(server.sent(), ["take"]);
    let denial = all().try_acquire().await.unwrap_err();
    assert_eq!(denial.index(), 2);
    assert!(wait(denial) >= 9 * SECOND);
    let denial = all().try_acquire_each(&[1, 1, 0]).await.unwrap_err();
    assert_eq!(denial.index(), 1);
    assert!(wait(denial) >= 5 * SECOND && wait(denial) < 6 * SECOND);
    assert_eq!(connected.stats().remembered, 3);
    // What is never granted says more.
    let denial = all().try_acquire_each(&[10, 1, 1]).await.unwrap_err();
    assert_eq!((denial.index(), denial.denied()), (0, Denied::never(10, 9)));
    assert!(server.sent().is_empty());
    assert_eq!(user().available().await, Ok(8), "nothing was taken");
}

/// The first call of a composition is undone when the second one denies.
#[tokio::test(start_paused = true)]
async fn a_composition_that_gives_back_forgets() {
    let server = Windows::default();
    let connected = connect(&server);
    let one = limiter(&connected, "one", 2, 9 * SECOND);
    let other = limiter(&connected, "other", 1, 9 * SECOND);
    let _ = other.key("bob").try_acquire().await.unwrap();
    let all = RedisAll::new(vec![one.key("alice"), other.key("bob")]).unwrap();
    server.state().trip = [MS, MS];
    let (denial, meanwhile) = tokio::join!(all.try_acquire_n(1), async {
        tokio::time::sleep(3 * MS).await;
        one.key("alice").try_acquire_n(2).await
    });
    assert_eq!(denial.unwrap_err().index(), 1);
    assert!(meanwhile.is_err(), "it met the permit that came back");
    assert!(one.key("alice").try_acquire_n(2).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_limit_remembers_nothing_unless_it_is_told_to_and_a_concurrency_never_does() {
    let server = Windows::default();
    let connected = connect(&server);
    let keys = Keys::new("test").unwrap();
    let new = |name, limit| {
        RedisLimiter::new(Arc::clone(&connected), &keys, name, limit, Fallback::Closed).unwrap()
    };
    let limit = Limit::first_hit_window(Quota::per(1, 9 * SECOND)).unwrap();
    let limiter = new("limit", limit);
    let alice = limiter.key("alice");
    let _ = alice.try_acquire().await.unwrap();
    let _ = (denied(&alice, 1).await, denied(&alice, 1).await);
    assert_eq!(server.sent(), ["take"; 3]);
    let slots = new("slots", Limit::concurrency(1, SECOND).unwrap()).remember_denials();
    assert!(slots.key("alice").sent().is_none());
    assert!(connected.denials.get().is_none(), "there is no table");
}

#[test]
fn a_full_table_forgets_some_and_a_flood_of_keys_takes_no_more_memory() {
    let denials = Arc::new(Denials::new(1).unwrap());
    let memory = Memory::new(&denials);
    let denied = Denied::later(1, SECOND);
    let received = nanos(1 << 40);
    let at = |millis| received.saturating_add(MS * millis);
    let user = |number: u32| number.to_le_bytes();
    for number in 0..50_000 {
        memory.remember(&user(number), 1, &denied, memory.sent(received), received);
    }
    let remembered = |now| {
        let is_known = |number: &u32| memory.recall(&user(*number), 1, now).is_some();
        (0..50_000).filter(is_known).count()
    };
    let slots = denials.table.slots();
    let most = remembered(at(0));
    assert!(most > slots / 2 && most <= slots, "{most} of {slots}");
    assert_eq!(remembered(at(1001)), 0);
    // The next ones take their slots.
    for number in 0..1000 {
        memory.remember(&user(number), 1, &denied, memory.sent(at(1001)), at(1001));
    }
    assert!(remembered(at(1001)) > 990);
    memory.forget();
    assert_eq!(remembered(at(1001)), 0);
    assert_eq!(denials.table.slots(), slots);
}

#[test]
fn all_threads_are_counted() {
    let denials = Arc::new(Denials::new(1).unwrap());
    let count = || {
        let memory = Memory::new(&denials);
        move || (0..1000).for_each(|_| memory.count())
    };
    let threads: Vec<_> = (0..100).map(|_| std::thread::spawn(count())).collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    assert_eq!(denials.answered(), 100_000);
}
