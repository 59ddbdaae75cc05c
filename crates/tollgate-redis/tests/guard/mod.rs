//! The protocol of a guard: when it renews, when it is lost, and when its slots are free. The
//! server is a model in memory, on tokio's manual clock.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Waker};

use tokio::time::{sleep, timeout};
use tollgate::{Denied, Quota};

use super::*;
use crate::client::{Command, Reply};
use crate::key::Keys;
use crate::limiter::RedisLimiter;
use crate::outage::fallback::Fallback;
use crate::script::{self, Kinds, Verb};

const LEASE: Duration = Duration::from_secs(60);
const THIRD: Duration = Duration::from_secs(20);

/// The timer counts whole milliseconds.
const MS: Duration = Duration::from_millis(1);

/// A server of slots.
#[derive(Debug, Clone, Default)]
struct Slots(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// When the lease of each holder ends.
    held: BTreeMap<u64, Option<Instant>>,
    /// What was sent when, in seconds.
    sent: Vec<(&'static str, u64)>,
    start: Option<Instant>,
    then: Then,
}

/// What happens to commands.
#[derive(Debug, Clone, Copy, Default)]
enum Then {
    #[default]
    Answer,
    /// They have their effect, and are answered this much later.
    AnswerAfter(Duration),
    /// They have their effect, but the answers are lost.
    LoseAnswers,
    /// They are not sent.
    Refuse,
}

impl Slots {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn then(&self, then: Then) {
        self.state().then = then;
    }

    fn sent(&self) -> Vec<(&'static str, u64)> {
        self.state().sent.clone()
    }

    /// Forgets all holders, as `FLUSHALL` does.
    fn flush(&self) {
        self.state().held.clear();
    }
}

impl State {
    /// Runs a command, as the script does.
    fn run(&mut self, verb: &'static str, arg: &[u8]) -> Reply {
        let now = Instant::now();
        let start = *self.start.get_or_insert(now);
        self.sent.push((verb, (now - start).as_secs()));
        let number = |i: usize| {
            let bytes = arg[1 + 8 * i..9 + 8 * i].try_into().expect("8 bytes");
            f64::from_le_bytes(bytes) as u64
        };
        let [n, limit, lease, first] = [0, 1, 2, 3].map(number);
        let holders = first..first + n;
        let ends = now + Duration::from_micros(lease);
        self.held
            .retain(|_, ends| ends.is_some_and(|ends| ends > now));
        let live = self.held.len() as u64;
        let is_held = |holder: &u64| self.held.contains_key(holder);
        let held: Vec<u64> = holders.clone().filter(is_held).collect();
        let clock = Reply::Int(1_000_000);
        let packed = |numbers: &[u64]| {
            let bytes = numbers.iter().flat_map(|n| (*n as f64).to_le_bytes());
            Reply::Bytes(bytes.collect())
        };
        match verb {
            "take" => {
                let fits = live + n <= limit;
                if fits {
                    self.held.extend(holders.map(|holder| (holder, Some(ends))));
                }
                let told = packed(&[live, 0, first, 0]);
                return Reply::List(vec![Reply::Int(fits.into()), clock, told]);
            }
            "renew" => self
                .held
                .extend(held.iter().map(|holder| (*holder, Some(ends)))),
            _ => held.iter().for_each(|holder| _ = self.held.remove(holder)),
        }
        Reply::List(vec![clock, packed(&[held.len() as u64])])
    }
}

impl Client for Slots {
    async fn send(&self, command: &Command<'_>) -> Result<Reply, ClientError> {
        let parts: Vec<_> = command.parts().collect();
        let [_, sha, _, _, arg] = parts[..] else {
            panic!("one key: {parts:?}");
        };
        let verbs = [
            ("take", script::script(Verb::Take, Kinds::Slots)),
            ("give", script::script(Verb::Give, Kinds::Slots)),
            ("renew", script::renew()),
        ];
        let is_sent = |(_, script): &&(_, &script::Script)| script.sha().as_bytes() == sha;
        let (verb, _) = verbs.iter().find(is_sent).expect("a verb of slots");
        let (reply, then) = {
            let mut state = self.state();
            let then = state.then;
            match then {
                Then::Refuse => return Err(ClientError::NotSent("refused".into())),
                _ => (state.run(verb, arg), then),
            }
        };
        match then {
            Then::LoseAnswers => pending().await,
            Then::AnswerAfter(delay) => sleep(delay).await,
            _ => {}
        }
        Ok(reply)
    }
}

/// Returns a limit of `slots` slots.
fn limiter(server: &Slots, slots: u64) -> RedisLimiter<Slots> {
    let limit = Limit::concurrency(slots, LEASE).unwrap();
    of(server, limit, Fallback::Closed)
}

fn of(server: &Slots, limit: Limit, fallback: Fallback) -> RedisLimiter<Slots> {
    let server = Arc::new(RedisServer::new(server.clone()));
    let keys = Keys::new("test").unwrap();
    RedisLimiter::new(server, &keys, "limit", limit, fallback).unwrap()
}

/// Returns whether a slot is free, and gives it back.
async fn is_free(limiter: &RedisLimiter<Slots>) -> bool {
    let alice = limiter.key("alice");
    match alice.try_acquire().await {
        Ok(grant) => alice.undo(grant).await == Ok(1),
        Err(denial) => {
            assert_eq!(denial.denied(), Denied::busy(1));
            false
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_guard_renews_at_every_third_of_its_lease_and_leaves_when_it_is_dropped() {
    let server = Slots::default();
    let others = limiter(&server, 3);
    // The guard outlives its limit.
    let guard = limiter(&server, 3)
        .key("alice")
        .try_enter_n(3)
        .await
        .unwrap();
    assert_eq!((guard.n(), guard.decider()), (3, Decider::Server));
    sleep(5 * LEASE + MS * 5).await;
    assert!(!guard.is_lost());
    let mut expected = vec![("take", 0)];
    expected.extend((1..=15).map(|turn| ("renew", turn * 20)));
    assert_eq!(server.sent(), expected);
    assert!(!is_free(&others).await);
    drop(guard);
    sleep(MS).await;
    assert!(is_free(&others).await);
    let sent = server.sent().len();
    sleep(5 * LEASE).await;
    assert_eq!(server.sent().len(), sent, "nothing is renewed any more");
}

#[tokio::test(start_paused = true)]
async fn leaving_says_how_many_slots_came_back() {
    let server = Slots::default();
    let limiter = limiter(&server, 3);
    let alice = limiter.key("alice");
    let guard = alice.try_enter_n(2).await.unwrap();
    assert_eq!(guard.leave().await, Ok(2));
    assert!(server.state().held.is_empty());

    let guard = alice.try_enter().await.unwrap();
    server.then(Then::Refuse);
    let error = guard.leave().await.unwrap_err();
    assert!(!error.may_have_taken_effect(), "{error}");
    server.then(Then::Answer);
    sleep(LEASE - MS).await;
    assert_eq!(server.sent().len(), 3, "it is not sent again");
    sleep(MS).await;
    assert!(is_free(&limiter).await, "after its lease");
    assert_eq!(limiter.server().stats().lost, 0, "the caller was told");

    drop(alice.try_enter().await.unwrap());
    sleep(MS).await;
    assert_eq!(limiter.server().stats().lost, 0);
    let guard = alice.try_enter().await.unwrap();
    server.then(Then::Refuse);
    drop(guard);
    sleep(MS).await;
    assert_eq!(limiter.server().stats().lost, 1, "no caller was told");
}

/// It compiles.
#[tokio::test(start_paused = true)]
async fn a_guard_can_be_shared_between_tasks() {
    let server = Slots::default();
    let entering = tokio::spawn(async move {
        let limiter = limiter(&server, 1);
        limiter.key("alice").try_enter().await
    });
    let guard = Arc::new(entering.await.unwrap().unwrap());
    let shared = Arc::clone(&guard);
    let watching = tokio::spawn(async move { shared.lost().await });
    sleep(2 * LEASE).await;
    assert!(!watching.is_finished());
    watching.abort();
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_fails_is_made_up_for_at_the_next_turn() {
    let server = Slots::default();
    let limiter = limiter(&server, 1);
    for then in [Then::Refuse, Then::LoseAnswers] {
        let guard = limiter.key("alice").try_enter().await.unwrap();
        sleep(THIRD / 2).await;
        server.then(then);
        sleep(THIRD).await;
        server.then(Then::Answer);
        sleep(LEASE).await;
        assert!(!guard.is_lost(), "{then:?}");
        assert_eq!(guard.leave().await, Ok(1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_guard_is_lost_when_no_renewal_succeeds_for_a_lease() {
    for then in [Then::Refuse, Then::LoseAnswers] {
        let server = Slots::default();
        let limiter = limiter(&server, 1);
        let guard = limiter.key("alice").try_enter().await.unwrap();
        sleep(THIRD + MS).await;
        server.then(then);
        sleep(LEASE - MS - MS).await;
        assert!(!guard.is_lost(), "{then:?}: it was renewed at a third");
        let start = Instant::now();
        guard.lost().await;
        assert!(start.elapsed() <= MS + MS, "{then:?}");
        assert!(guard.is_lost());

        // It stays lost, and is not renewed any more.
        server.then(Then::Answer);
        sleep(THIRD).await;
        let sent = server.sent().len();
        sleep(5 * LEASE).await;
        assert!(guard.is_lost(), "{then:?}");
        assert_eq!(server.sent().len(), sent);
        assert_eq!(guard.leave().await, Ok(0));
        assert!(is_free(&limiter).await);
    }
}

/// The lease counts from the call, and not from its answer.
#[tokio::test(start_paused = true)]
async fn a_guard_is_lost_before_the_server_frees_its_slot() {
    for renewals in [0, 1] {
        let server = Slots::default();
        let limiter = limiter(&server, 1);
        server.then(Then::AnswerAfter(40 * MS));
        let guard = limiter.key("alice").try_enter().await.unwrap();
        sleep(renewals * THIRD + 50 * MS).await;
        assert_eq!(server.sent().len() as u32, 1 + renewals);
        server.then(Then::Refuse);
        guard.lost().await;
        let ends = *server.state().held.values().next().unwrap();
        assert!(ends.is_some_and(|ends| Instant::now() <= ends + MS));
        assert!(guard.is_lost());
    }
}

/// Returns a limit of one slot whose calls have a budget of a whole lease.
fn patient(server: &Slots) -> RedisLimiter<Slots> {
    let keys = Keys::new("test").unwrap();
    let limit = Limit::concurrency(1, LEASE).unwrap();
    let server = Arc::new(RedisServer::new(server.clone()).with_budget(LEASE));
    RedisLimiter::new(server, &keys, "limit", limit, Fallback::Closed).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_renewal_without_an_answer_makes_way_for_the_next_one() {
    let server = Slots::default();
    let guard = patient(&server).key("alice").try_enter().await.unwrap();
    server.then(Then::LoseAnswers);
    sleep(THIRD + MS).await;
    server.then(Then::Answer);
    sleep(2 * LEASE).await;
    assert!(!guard.is_lost());
    let turns = server.sent().into_iter().map(|(_, at)| at);
    assert_eq!(turns.take(4).collect::<Vec<_>>(), [0, 20, 40, 60]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_after_the_end_of_the_lease_does_not_bring_a_guard_back() {
    let server = Slots::default();
    let guard = patient(&server).key("alice").try_enter().await.unwrap();
    server.then(Then::Refuse);
    sleep(THIRD + MS).await;
    // Sent at two thirds, and answered just before its turn ends, with the lease.
    server.then(Then::AnswerAfter(THIRD - MS / 2));
    guard.lost().await;
    sleep(LEASE).await;
    assert!(guard.is_lost());
    assert_eq!(guard.leave().await, Ok(0));
}

#[tokio::test(start_paused = true)]
async fn a_guard_is_lost_when_the_server_does_not_hold_its_slots() {
    let server = Slots::default();
    let limiter = limiter(&server, 2);
    let guard = limiter.key("alice").try_enter_n(2).await.unwrap();
    sleep(MS).await;
    server.flush();
    let other = limiter.key("alice").try_enter().await.unwrap();
    let start = Instant::now();
    guard.lost().await;
    assert!(start.elapsed() <= THIRD, "at the next renewal");
    assert!(guard.is_lost() && !other.is_lost());
    drop(guard);
    sleep(LEASE).await;
    assert!(!other.is_lost(), "the other's slot is not given back");
    assert_eq!(other.leave().await, Ok(1));
}

#[tokio::test(start_paused = true)]
async fn no_renewal_follows_the_give_of_a_guard_that_is_dropped_during_one() {
    let server = Slots::default();
    let limiter = limiter(&server, 1);
    let guard = limiter.key("alice").try_enter().await.unwrap();
    server.then(Then::AnswerAfter(40 * MS));
    sleep(THIRD + 20 * MS).await;
    drop(guard);
    sleep(LEASE).await;
    assert_eq!(server.sent(), [("take", 0), ("renew", 20), ("give", 20)]);
    assert!(server.state().held.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_holds_its_slot_for_no_longer_than_its_lease() {
    let server = Slots::default();
    let limiter = limiter(&server, 1);
    server.then(Then::LoseAnswers);
    {
        let alice = limiter.key("alice");
        let mut enter = pin!(alice.try_enter());
        let mut context = Context::from_waker(Waker::noop());
        assert!(enter.as_mut().poll(&mut context).is_pending());
    }
    server.then(Then::Answer);
    assert_eq!(limiter.server().stats().lost, 1);
    sleep(LEASE - MS).await;
    assert!(!is_free(&limiter).await);
    sleep(MS).await;
    assert!(is_free(&limiter).await);
    assert!(server.sent().iter().all(|(verb, _)| *verb != "renew"));
}

#[test]
fn a_guard_whose_runtime_shuts_down_is_lost_after_its_lease() {
    let runtime = || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_time().start_paused(true).build().unwrap()
    };
    let server = Slots::default();
    let first = runtime();
    let [guard, other] = first.block_on(async {
        let limiter = limiter(&server, 2);
        let alice = limiter.key("alice");
        let guard = alice.try_enter().await.unwrap();
        [guard, alice.try_enter().await.unwrap()]
    });
    drop(first);
    runtime().block_on(async {
        let error = other.leave().await.unwrap_err();
        assert!(!error.may_have_taken_effect());
        assert!(
            error
                .to_string()
                .contains("the task that renews the slots has ended")
        );

        assert!(!guard.is_lost());
        guard.lost().await;
        assert!(guard.is_lost());
        assert_eq!(guard.leave().await, Ok(0));
    });
    assert_eq!(server.sent().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_slot_of_a_fallback_needs_no_renewal_and_goes_back_to_it() {
    let server = Slots::default();
    let fallback = Fallback::OpenAtMost {
        at_most: 1,
        per: None,
    };
    let limiter = of(&server, Limit::concurrency(1, LEASE).unwrap(), fallback);
    server.then(Then::Refuse);
    let alice = limiter.key("alice");
    let guard = alice.try_enter().await.unwrap();
    assert_eq!(guard.decider(), Decider::Open);
    assert!(alice.try_enter().await.is_err());
    assert!(timeout(5 * LEASE, guard.lost()).await.is_err());
    assert!(!guard.is_lost());
    assert_eq!(guard.leave().await, Ok(1));
    drop(alice.try_enter().await.unwrap());
    assert!(alice.try_enter().await.is_ok());
    assert_eq!(server.sent(), []);
}

#[tokio::test(start_paused = true)]
async fn a_denied_caller_is_told_why_and_no_task_is_left() {
    let server = Slots::default();
    let limiter = limiter(&server, 2);
    let alice = limiter.key("alice");
    let guard = alice.try_enter_n(2).await.unwrap();
    let denied = |error| match error {
        EnterError::Denied(denial) => denial.denied(),
        other => panic!("{other}"),
    };
    assert_eq!(
        denied(alice.try_enter().await.unwrap_err()),
        Denied::busy(1)
    );
    assert_eq!(
        denied(alice.try_enter_n(3).await.unwrap_err()),
        Denied::never(3, 2)
    );
    assert_eq!(guard.leave().await, Ok(2));
    let sent = server.sent().len();
    sleep(LEASE).await;
    assert_eq!(server.sent().len(), sent);
}

#[tokio::test(start_paused = true)]
async fn a_limit_without_slots_is_refused_and_the_server_is_not_asked() {
    let server = Slots::default();
    let quota = Quota::per_minute(5);
    for limit in [
        Limit::token_bucket(quota),
        Limit::leaky_queue(quota, 1),
        Limit::fixed_window(quota),
        Limit::sliding_window(quota),
        Limit::sliding_log(quota),
    ] {
        let limit = limit.unwrap();
        let error = of(&server, limit, Fallback::Closed)
            .key("alice")
            .try_enter()
            .await
            .unwrap_err();
        assert_eq!(error, EnterError::NoSlots { limit });
        let text = format!("limit is `{limit}`, but must be like `concurrency 3 lease 60s`");
        assert_eq!(error.to_string(), text);
    }
    assert_eq!(server.sent(), []);
}

/// Other keys can begin an outage of a server that answers for this one.
#[tokio::test(start_paused = true)]
async fn a_guard_renews_and_leaves_in_an_outage() {
    let slots = Slots::default();
    let server = RedisServer::new(slots.clone()).with_probe_every(Duration::from_secs(24 * 3600));
    let keys = Keys::new("test").unwrap();
    let limit = Limit::concurrency(1, LEASE).unwrap();
    let limiter = RedisLimiter::new(Arc::new(server), &keys, "limit", limit, Fallback::Closed);
    let limiter = limiter.unwrap();
    let guard = limiter.key("alice").try_enter().await.unwrap();
    slots.then(Then::Refuse);
    assert!(limiter.key("bob").try_acquire().await.is_err());
    assert!(limiter.server().is_down());
    slots.then(Then::Answer);
    // The renewal is the probe that ends the outage: no other one is due.
    sleep(THIRD + MS).await;
    assert!(!limiter.server().is_down());
    slots.then(Then::Refuse);
    assert!(limiter.key("bob").try_acquire().await.is_err());
    slots.then(Then::Answer);
    assert!(limiter.server().is_down() && !guard.is_lost());
    assert_eq!(guard.leave().await, Ok(1));
}

/// The runtime that entered runs only while something blocks on it.
#[test]
fn leaving_ends_with_the_lease_if_the_runtime_of_the_guard_stands_still() {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().start_paused(true).build().unwrap()
    };
    let (first, second) = (runtime(), runtime());
    let server = Slots::default();
    let limiter = limiter(&server, 1);
    let guard = first.block_on(async { limiter.key("alice").try_enter().await.unwrap() });
    let left = second.block_on(async { timeout(2 * LEASE, guard.leave()).await });
    assert!(left.is_ok(), "it waits for ever");
}
