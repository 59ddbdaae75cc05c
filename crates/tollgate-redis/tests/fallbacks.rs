//! Decisions without a server: a client that follows a plan, and tokio's manual clock.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::{Instant, advance};
use tollgate::Quota;
use tollgate_redis::client::{Client, ClientError, Command, Reply};
use tollgate_redis::{
    Decider, Fallback, Keys, Limit, OutageEvent, RedisAll, RedisLimiter, RedisServer, Unavailable,
};

const BUDGET: Duration = Duration::from_millis(30);
const PROBE_EVERY: Duration = Duration::from_millis(500);

/// What the client does with a command.
#[derive(Debug, Clone)]
enum Answer {
    Hang,
    Reply(Reply),
    Fail(ClientError),
}

#[derive(Debug, Clone, Default)]
struct Plan {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    /// The names of the commands that were sent.
    sent: Arc<Mutex<Vec<String>>>,
}

impl Plan {
    fn then(self, answer: Answer) -> Self {
        self.answers.lock().unwrap().push_back(answer);
        self
    }

    /// A client that can't connect at first: an outage begins at once.
    fn down() -> Self {
        Self::default().then(Answer::Fail(ClientError::NotSent("refused".into())))
    }

    fn sent(&self) -> Vec<String> {
        self.sent.lock().unwrap().clone()
    }
}

impl Client for Plan {
    /// Follows the plan, and hangs after it.
    async fn send(&self, command: &Command<'_>) -> Result<Reply, ClientError> {
        let name = command.parts().next().unwrap_or_default();
        let name = String::from_utf8_lossy(name).into_owned();
        self.sent.lock().unwrap().push(name);
        let answer = self.answers.lock().unwrap().pop_front();
        match answer {
            Some(Answer::Reply(reply)) => Ok(reply),
            Some(Answer::Fail(error)) => Err(error),
            Some(Answer::Hang) | None => pending().await,
        }
    }
}

/// The reply that grants a request now: the limit is idle a second later.
fn granted() -> Answer {
    let state = [0.0_f64, 2_000_000.0, 0.0].map(f64::to_le_bytes);
    Answer::Reply(Reply::List(vec![
        Reply::Int(1),
        Reply::Int(1_000_000),
        Reply::Bytes(state.concat()),
    ]))
}

fn refused(code: &str) -> Answer {
    Answer::Fail(ClientError::Refused {
        code: code.into(),
        message: "no".into(),
    })
}

fn server(plan: &Plan) -> RedisServer<Plan> {
    RedisServer::new(plan.clone())
        .with_budget(BUDGET)
        .with_probe_every(PROBE_EVERY)
}

fn limiter(server: &Arc<RedisServer<Plan>>, name: &str, fallback: Fallback) -> RedisLimiter<Plan> {
    let keys = Keys::new("test").unwrap();
    let quota = Quota::per(1, Duration::from_secs(24 * 3600)).burst(12);
    RedisLimiter::new(Arc::clone(server), &keys, name, quota, fallback).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_decision_ends_with_its_budget_and_is_not_sent_again() {
    let plan = Plan::default();
    let server = Arc::new(server(&plan));
    let limiter = limiter(
        &server,
        "limit",
        Fallback::OpenAtMost {
            at_most: 2,
            per: None,
        },
    );
    let start = Instant::now();
    let grant = limiter.key("alice").try_acquire().await.unwrap();
    assert_eq!(grant.decider(), Decider::Open);
    assert_eq!(grant.granted().remaining(), 1);
    // The timer counts whole milliseconds.
    assert!(start.elapsed() <= BUDGET + Duration::from_millis(1));
    assert_eq!(plan.sent(), ["EVALSHA"]);
    for _ in 0..2 {
        let _ = limiter.key("alice").try_acquire().await;
    }
    let start = Instant::now();
    for i in 0..1000 {
        // The last of the three calls has begun the outage, and counts in it.
        assert_eq!(limiter.key("alice").try_acquire().await.is_ok(), i == 0);
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(plan.sent(), ["EVALSHA"; 3]);
    let stats = server.stats();
    assert_eq!((stats.open, stats.failed, stats.lost), (1003, 3, 3));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_script_is_sent_as_text_once() {
    let plan = Plan::default().then(refused("NOSCRIPT")).then(granted());
    let plan = plan.then(refused("NOSCRIPT")).then(refused("NOSCRIPT"));
    let server = Arc::new(server(&plan));
    let limiter = limiter(&server, "limit", Fallback::Closed);
    let grant = limiter.key("alice").try_acquire().await.unwrap();
    assert_eq!(grant.decider(), Decider::Server);
    assert!(!server.is_down());
    assert!(limiter.key("alice").try_acquire().await.is_err());
    assert_eq!(plan.sent(), ["EVALSHA", "EVAL", "EVALSHA", "EVAL"]);
    assert_eq!(server.stats().failed, 1);
}

#[tokio::test(start_paused = true)]
async fn one_probe_of_many_callers_ends_an_outage() {
    let plan = Plan::down().then(granted());
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let server = server(&plan).on_outage(move |event| seen.lock().unwrap().push(event.clone()));
    let server = Arc::new(server);
    let limiter = Arc::new(limiter(&server, "limit", Fallback::Closed));
    assert!(limiter.key("alice").try_acquire().await.is_err());
    advance(PROBE_EVERY).await;
    let callers: Vec<_> = (0..100)
        .map(|_| {
            let limiter = Arc::clone(&limiter);
            tokio::spawn(async move { limiter.key("alice").check_n(12).await.is_ok() })
        })
        .collect();
    // The one that is the probe reads no grant in the planned reply, and fails.
    for caller in callers {
        assert!(!caller.await.unwrap());
    }
    assert_eq!(plan.sent().len(), 2);
    plan.answers.lock().unwrap().push_back(granted());
    advance(2 * PROBE_EVERY).await;
    assert!(limiter.key("alice").try_acquire().await.is_ok());
    let events = events.lock().unwrap();
    assert!(matches!(
        events[..],
        [
            OutageEvent::Began { .. },
            OutageEvent::Ended { fallbacks: 101, .. }
        ]
    ));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_after_its_outage_has_ended_counts_in_the_bound_of_its_minute() {
    let plan = Plan::default();
    let server = Arc::new(server(&plan).with_probe_every(BUDGET / 3));
    let open = Fallback::OpenAtMost {
        at_most: 2,
        per: None,
    };
    let limiter = Arc::new(limiter(&server, "limit", open));
    for outage in 1..=4 {
        let gone = ClientError::NotSent("refused".into());
        let answers = [Answer::Hang, Answer::Fail(gone), granted()];
        plan.answers.lock().unwrap().extend(answers);
        let late = Arc::clone(&limiter);
        let late = tokio::spawn(async move { late.key("alice").try_acquire().await.is_ok() });
        yield_now().await;
        assert!(limiter.key("alice").try_acquire_n(2).await.is_ok());
        assert!(server.is_down());
        advance(BUDGET / 3).await;
        assert!(limiter.key("alice").try_acquire().await.is_ok());
        assert!(!server.is_down());
        assert_eq!(late.await.unwrap(), outage <= 2, "outage {outage}");
    }
}

/// The reply that denies a request: the limit is idle in some days.
fn denied() -> Answer {
    let state = [0.0_f64, 1_100_000_000_000.0, 0.0].map(f64::to_le_bytes);
    Answer::Reply(Reply::List(vec![
        Reply::Int(0),
        Reply::Int(1_000_000),
        Reply::Bytes(state.concat()),
    ]))
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_but_grants_nothing_does_not_renew_a_bound() {
    let plan = Plan::default();
    let server = Arc::new(server(&plan));
    let limiter = limiter(
        &server,
        "limit",
        Fallback::OpenAtMost {
            at_most: 2,
            per: None,
        },
    );
    let alice = limiter.key("alice");
    let mut granted_by_fallback = Vec::new();
    for probe in [denied(), granted(), denied(), granted(), denied()] {
        let mut answers = vec![refused("READONLY"); 5];
        answers.push(probe);
        plan.answers.lock().unwrap().extend(answers);
        // They have the bound of a minute, which they use up.
        for _ in 0..4 {
            let _ = alice.try_acquire_n(2).await;
        }
        assert!(!server.is_down());
        granted_by_fallback.push(alice.try_acquire_n(2).await.is_ok());
        assert!(server.is_down());
        advance(PROBE_EVERY).await;
        let _ = limiter.key("bob").try_acquire().await;
        assert!(!server.is_down());
    }
    assert_eq!(granted_by_fallback, [true, false, true, false, true]);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_fails_for_its_key_alone_ends_the_outage() {
    let plan = Plan::down().then(refused("BADSTATE"));
    let plan = plan.then(granted());
    let server = Arc::new(server(&plan));
    let limiter = limiter(&server, "limit", Fallback::Closed);
    assert!(limiter.key("alice").try_acquire().await.is_err());
    assert!(server.is_down());
    advance(PROBE_EVERY).await;
    let denial = limiter.key("bob").try_acquire().await.unwrap_err();
    assert!(!server.is_down());
    // The caller is not told to ask again at once.
    assert!(denial.denied().retry_after() > Some(Duration::ZERO));
    assert!(limiter.key("alice").try_acquire().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_its_caller_drops_counts_as_lost() {
    let plan = Plan::default();
    let server = Arc::new(server(&plan));
    let limiter = limiter(&server, "limit", Fallback::Closed);
    let key = limiter.key("alice");
    let short = tokio::time::timeout(BUDGET / 2, key.try_acquire()).await;
    assert!(short.is_err());
    assert_eq!((server.stats().failed, server.stats().lost), (1, 1));
    assert!(!server.is_down());
}

#[tokio::test(start_paused = true)]
async fn callers_in_a_loop_let_other_tasks_run_in_an_outage() {
    let plan = Plan::down();
    let server = Arc::new(server(&plan));
    let limiter = limiter(&server, "limit", Fallback::Closed);
    assert!(limiter.key("alice").try_acquire().await.is_err());
    let other = tokio::spawn(async {});
    for _ in 0..1000 {
        assert!(limiter.key("alice").try_acquire().await.is_err());
    }
    assert!(other.is_finished());
}

#[tokio::test(start_paused = true)]
async fn several_limits_fall_back_all_or_nothing() {
    let plan = Plan::down();
    let server = Arc::new(server(&plan));
    let (processes, keys) = (3, 100);
    let local = limiter(&server, "local", Fallback::Local { processes, keys });
    let open = limiter(
        &server,
        "open",
        Fallback::OpenAtMost {
            at_most: 2,
            per: None,
        },
    );
    let all = RedisAll::new(vec![local.key("alice"), open.key("alice")]).unwrap();
    let grants = all.try_acquire_n(2).await.unwrap();
    for _ in 0..10 {
        // The second limit denies, and the first gives back what it took.
        assert_eq!(all.try_acquire_n(2).await.unwrap_err().index(), 1);
    }
    let back = all.undo(grants).await.unwrap();
    assert_eq!(back, [2, 2]);
    // The share of three processes is four permits.
    assert!(local.key("alice").try_acquire_n(4).await.is_ok());
    assert_eq!(all.try_acquire_n(2).await.unwrap_err().index(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_denial_of_a_server_is_the_answer_and_not_that_of_a_server_that_is_down() {
    // The server that is asked second only looks.
    let Answer::Reply(Reply::List(mut looked)) = denied() else {
        panic!("it is a list");
    };
    looked.remove(0);
    for (closed, answer) in [(0, Answer::Reply(Reply::List(looked))), (1, denied())] {
        let plans = [Plan::down(), Plan::default().then(answer)];
        let [down, up] = plans.each_ref().map(|plan| Arc::new(server(plan)));
        let closed_limit = limiter(&down, "closed", Fallback::Closed);
        let limit = limiter(&up, "limit", Fallback::Closed);
        let mut keys = vec![closed_limit.key("alice"), limit.key("alice")];
        if closed == 1 {
            keys.reverse();
        }
        let denial = RedisAll::new(keys).unwrap().try_acquire().await;
        let denial = denial.unwrap_err();
        assert_eq!(
            (denial.index(), denial.decider()),
            (1 - closed, Decider::Server)
        );
        assert!(denial.denied().retry_after() > Some(Duration::from_secs(3600)));
    }
}

/// Clients that are told to come back at the same time would come back together.
#[tokio::test(start_paused = true)]
async fn denials_without_a_server_name_times_that_are_spread_behind_the_next_probe() {
    let server = Arc::new(server(&Plan::down()));
    let limiter = limiter(&server, "limit", Fallback::Closed);
    let key = limiter.key("alice");
    let first = key.try_acquire().await.unwrap_err();
    let mut waits = vec![first.denied().retry_after().unwrap()];
    for _ in 0..200 {
        let denial = key.try_acquire().await.unwrap_err();
        waits.push(denial.denied().retry_after().unwrap());
    }
    let Err(Unavailable::Outage { retry_after }) = key.available().await else {
        panic!("there is an outage");
    };
    let (least, most) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
    assert!(
        *least >= retry_after,
        "{least:?}, the probe is in {retry_after:?}"
    );
    assert!(*most <= retry_after + PROBE_EVERY, "{most:?}");
    assert!(*most - *least > PROBE_EVERY / 4, "{least:?} to {most:?}");
}

#[tokio::test(start_paused = true)]
async fn permits_that_cannot_be_given_back_after_a_denial_count_as_lost() {
    let not_sent = Answer::Fail(ClientError::NotSent("refused".into()));
    for undo in [Answer::Hang, not_sent] {
        let plans = [Plan::default().then(granted()).then(undo), Plan::default()];
        let servers = plans.each_ref().map(|plan| Arc::new(server(plan)));
        let [one, two] = servers.each_ref();
        let one = limiter(one, "one", Fallback::Closed);
        let two = limiter(two, "two", Fallback::Closed);
        let all = RedisAll::new(vec![one.key("alice"), two.key("alice")]).unwrap();
        let denial = all.try_acquire().await.unwrap_err();
        assert_eq!((denial.index(), denial.decider()), (1, Decider::Closed));
        // The second server did not answer. The first one granted, and its undo failed.
        assert_eq!(servers.map(|server| server.stats().lost), [1, 1]);
        assert_eq!(plans.map(|plan| plan.sent().len()), [2, 1]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_composition_that_its_caller_drops_gives_back_what_takes_no_call() {
    let gone = Answer::Fail(ClientError::NotSent("refused".into()));
    let plans = [
        Plan::default().then(gone),
        Plan::default().then(granted()),
        Plan::default(),
    ];
    let servers = plans.each_ref().map(|plan| Arc::new(server(plan)));
    let [down, up, slow] = servers.each_ref();
    let (processes, keys) = (3, 100);
    let local = limiter(down, "local", Fallback::Local { processes, keys });
    let granting = limiter(up, "granting", Fallback::Closed);
    let hanging = limiter(slow, "hanging", Fallback::Closed);
    let keys = vec![
        local.key("alice"),
        granting.key("alice"),
        hanging.key("alice"),
    ];
    let all = RedisAll::new(keys).unwrap();
    let short = tokio::time::timeout(BUDGET / 2, all.try_acquire_n(1)).await;
    assert!(short.is_err());
    // The share of three processes is four permits. The server's grant stays taken.
    assert!(local.key("alice").try_acquire_n(4).await.is_ok());
    assert_eq!(servers.map(|server| server.stats().lost), [0, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_grant_of_a_fallback_is_settled_by_that_fallback() {
    let plan = Plan::down();
    let server = Arc::new(server(&plan));
    let (processes, keys) = (3, 100);
    for fallback in [
        Fallback::OpenAtMost {
            at_most: 4,
            per: None,
        },
        Fallback::Local { processes, keys },
    ] {
        let limiter = limiter(&server, "limit", fallback);
        let alice = limiter.key("alice");
        let grant = alice.try_acquire_n(4).await.unwrap();
        assert!(alice.try_acquire().await.is_err());
        let settled = alice.settle(grant, 1).await.unwrap();
        assert_eq!((settled.returned, settled.charged), (3, 0));
        let grant = alice.try_acquire_n(2).await.unwrap();
        assert_eq!(alice.settle(grant, 3).await.unwrap().charged, 1);
        assert!(alice.try_acquire().await.is_err());
    }
    assert_eq!(plan.sent().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn grants_of_fallbacks_in_a_composition_are_settled_without_a_call() {
    let plan = Plan::down();
    let server = Arc::new(server(&plan));
    let (processes, keys) = (3, 100);
    let local = limiter(&server, "local", Fallback::Local { processes, keys });
    let open = limiter(
        &server,
        "open",
        Fallback::OpenAtMost {
            at_most: 4,
            per: None,
        },
    );
    let all = RedisAll::new(vec![local.key("alice"), open.key("alice")]).unwrap();
    for (n, actual, expected) in [(4, 1, (3, 0, 0)), (2, 3, (0, 0, 1))] {
        let grants = all.try_acquire_n(n).await.unwrap();
        for settled in all.settle(grants, actual).await.unwrap() {
            let settled = (settled.returned, settled.lost, settled.charged);
            assert_eq!(settled, expected);
        }
    }
    for limiter in [local, open] {
        assert!(limiter.key("alice").try_acquire().await.is_err());
    }
    assert_eq!(plan.sent().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_settlement_says_what_the_server_did_not_give_back() {
    let day = Duration::from_secs(24 * 3600).as_micros() as f64;
    let one_permit = [day, 0.0].map(f64::to_le_bytes).concat();
    let back = Reply::List(vec![Reply::Int(1_000_000), Reply::Bytes(one_permit)]);
    for is_composed in [false, true] {
        let plan = Plan::default().then(granted());
        let plan = plan.then(Answer::Reply(back.clone()));
        let server = Arc::new(server(&plan));
        let limiter = limiter(&server, "limit", Fallback::Closed);
        let alice = limiter.key("alice");
        let settled = match is_composed {
            true => {
                let all = RedisAll::new(vec![alice]).unwrap();
                let grants = all.try_acquire_n(3).await.unwrap();
                all.settle(grants, 1).await.unwrap()[0]
            }
            false => {
                let grant = alice.try_acquire_n(3).await.unwrap();
                alice.settle(grant, 1).await.unwrap()
            }
        };
        assert_eq!((settled.returned, settled.lost), (1, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_check_in_an_outage_takes_nothing() {
    let plan = Plan::down();
    let server = Arc::new(server(&plan));
    let (processes, keys) = (3, 100);
    for fallback in [
        Fallback::OpenAtMost {
            at_most: 4,
            per: None,
        },
        Fallback::Local { processes, keys },
    ] {
        let limiter = limiter(&server, "limit", fallback);
        let alice = limiter.key("alice");
        assert!(alice.try_acquire().await.is_ok());
        for _ in 0..10 {
            assert!(alice.check_n(3).await.is_ok());
            assert!(alice.check_n(4).await.is_err());
        }
        assert!(alice.try_acquire_n(3).await.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn other_verbs_say_whether_they_may_have_taken_effect() {
    let not_sent = ClientError::NotSent("refused".into());
    let plan = Plan::default().then(Answer::Fail(not_sent));
    let plan = plan.then(Answer::Hang).then(Answer::Reply(Reply::Nil));
    let server = Arc::new(server(&plan));
    let limiter = limiter(&server, "limit", Fallback::Closed);
    let alice = limiter.key("alice");
    let mut effects = Vec::new();
    for _ in 0..3 {
        effects.push(alice.charge(1).await.unwrap_err().may_have_taken_effect());
        let between = alice.refund(1).await.unwrap_err();
        assert!(matches!(between, Unavailable::Outage { .. }));
        assert!(!between.may_have_taken_effect());
        advance(2 * PROBE_EVERY).await;
    }
    assert_eq!(effects, [false, true, true]);
    assert_eq!(plan.sent().len(), 3);
}

/// docs/DISTRIBUTED.md has the bounds of shares.
#[tokio::test(start_paused = true)]
async fn the_share_of_a_window_is_its_permits_by_processes_or_one() {
    let day = Duration::from_secs(24 * 3600);
    let window = |n| Limit::first_hit_window(Quota::per(n, day)).unwrap();
    let log = |n| Limit::sliding_log(Quota::per(n, day)).unwrap();
    for (limit, processes, share) in [
        (window(10), 4, 2),
        (window(3), 10, 1),
        (log(10), 4, 2),
        (log(3), 10, 1),
    ] {
        let server = Arc::new(server(&Plan::default()));
        let keys = Keys::new("test").unwrap();
        let fallback = Fallback::Local {
            processes,
            keys: 100,
        };
        let limiter = RedisLimiter::new(server, &keys, "limit", limit, fallback).unwrap();
        for i in 0..5 {
            let granted = limiter.key("alice").try_acquire().await.is_ok();
            assert_eq!(granted, i < share, "{limit:?} {processes} {i}");
        }
    }
}

#[test]
fn a_fallback_that_is_not_accepted_names_the_field() {
    let error = |processes, keys, burst| {
        let quota = Quota::per(1, Duration::from_secs(365 * 24 * 3600)).burst(burst);
        let server = Arc::new(RedisServer::new(Plan::default()));
        let fallback = Fallback::Local { processes, keys };
        let keys = Keys::new("test").unwrap();
        let limiter = RedisLimiter::new(server, &keys, "limit", quota, fallback);
        limiter.unwrap_err().to_string()
    };
    let large = format!("keys is {}, but must be from 1 to ", usize::MAX);
    for (error, starts) in [
        (error(0, 1, 4), "processes is 0, but must be at least 1"),
        (error(1, 0, 4), "keys is 0, but must be at least 1"),
        (error(1, usize::MAX, 4), large.as_str()),
        (
            error(2, 1, 4),
            "the local share: n is 1 every 63072000s, but",
        ),
    ] {
        assert!(error.starts_with(starts), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn several_limits_need_a_cost_for_each() {
    let plan = Plan::default();
    let server = Arc::new(server(&plan));
    let at_most = |at_most| Fallback::OpenAtMost { at_most, per: None };
    let (one, two) = (
        limiter(&server, "one", at_most(5)),
        limiter(&server, "two", at_most(5)),
    );
    let both = RedisAll::new(vec![one.key("alice"), two.key("bob")]).unwrap();
    for costs in [&[][..], &[1], &[1, 2, 3]] {
        let denial = both.try_acquire_each(costs).await.unwrap_err();
        assert!(denial.denied().is_permanent(), "{costs:?}");
    }
    assert_eq!(plan.sent().len(), 0);
    let grants = both.try_acquire_each(&[1, 4]).await.unwrap();
    let taken: Vec<_> = grants.iter().map(|grant| grant.granted().n()).collect();
    assert_eq!(taken, [1, 4]);
    let settled = both.settle_each(grants, &[1, 2]).await.unwrap();
    let returned: Vec<_> = settled.iter().map(|settled| settled.returned).collect();
    assert_eq!(returned, [0, 2]);
}

/// Makes a call for each answer, and returns whether there was an outage after each.
async fn outages_after(answers: impl IntoIterator<Item = Answer>, pause: Duration) -> Vec<bool> {
    let plan = Plan::default();
    plan.answers.lock().unwrap().extend(answers);
    let server = Arc::new(server(&plan));
    let limiter = limiter(&server, "limit", Fallback::Closed);
    let mut seen = Vec::new();
    while !plan.answers.lock().unwrap().is_empty() && !server.is_down() {
        let _ = limiter.key("alice").try_acquire().await;
        seen.push(server.is_down());
        advance(pause).await;
    }
    seen
}

fn lost() -> Answer {
    Answer::Fail(ClientError::Unknown("gone".into()))
}

#[tokio::test(start_paused = true)]
async fn one_slow_call_in_1000_falls_back_alone() {
    let plan = Plan::default();
    let server = Arc::new(server(&plan));
    let limiter = limiter(
        &server,
        "limit",
        Fallback::OpenAtMost {
            at_most: 1000,
            per: None,
        },
    );
    for i in 0..1000 {
        let answer = if i == 500 { Answer::Hang } else { granted() };
        plan.answers.lock().unwrap().push_back(answer);
        assert!(limiter.key("alice").try_acquire().await.is_ok());
    }
    let stats = server.stats();
    assert_eq!((stats.outages, stats.open, stats.server), (0, 1, 999));
}

#[tokio::test(start_paused = true)]
async fn an_outage_begins_after_three_calls_in_a_row_without_an_answer() {
    let pause = Duration::from_secs(5);
    for none in [lost(), Answer::Hang] {
        let answers = [none.clone(), none.clone(), none.clone()];
        assert_eq!(outages_after(answers, pause).await, [false, false, true]);
        // An answer between them is the beginning of another row, a refusal too.
        for answer in [granted(), refused("OOM")] {
            let answers = [
                none.clone(),
                none.clone(),
                answer,
                none.clone(),
                none.clone(),
            ];
            assert_eq!(outages_after(answers, pause).await, [false; 5]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_begins_when_at_least_5_and_half_of_the_calls_of_a_second_have_failed() {
    let moment = Duration::from_millis(20);
    let oom = || refused("OOM");
    let answers = || [granted(), oom()].into_iter().cycle();
    let after = outages_after(answers().take(20), moment).await;
    assert_eq!((after.len(), after[9]), (10, true));
    // Fewer than half.
    let answers = [granted(), oom(), granted()].into_iter().cycle().take(300);
    assert_eq!(outages_after(answers, moment).await, [false; 300]);
    // Fewer than 5 in each second.
    let answers = [oom(), oom()].into_iter().cycle().take(100);
    let pause = Duration::from_millis(270);
    assert_eq!(outages_after(answers, pause).await, [false; 100]);
}

#[tokio::test(start_paused = true)]
async fn an_outage_begins_at_once_if_there_is_no_connection() {
    let refused = Answer::Fail(ClientError::NotSent("refused".into()));
    assert_eq!(outages_after([refused], BUDGET).await, [true]);
}

#[tokio::test(start_paused = true)]
async fn a_value_that_cannot_be_read_is_no_sign_of_an_outage() {
    let bad = [refused("BADSTATE"), refused("WRONGTYPE")];
    let answers = bad.into_iter().cycle().take(100);
    assert_eq!(outages_after(answers, Duration::ZERO).await, [false; 100]);
}

#[tokio::test(start_paused = true)]
async fn calls_that_fail_alone_share_a_bound_in_each_minute() {
    let plan = Plan::default();
    let server = Arc::new(server(&plan));
    let limiter = limiter(
        &server,
        "limit",
        Fallback::OpenAtMost {
            at_most: 3,
            per: None,
        },
    );
    for _ in 0..3 {
        let mut granted_alone = 0;
        for _ in 0..29 {
            plan.answers.lock().unwrap().extend([lost(), granted()]);
            granted_alone += u64::from(limiter.key("alice").try_acquire().await.is_ok());
            assert!(limiter.key("alice").try_acquire().await.is_ok());
            advance(Duration::from_secs(2)).await;
        }
        assert_eq!(granted_alone, 3);
        advance(Duration::from_secs(2)).await;
    }
    assert_eq!(server.stats().outages, 0);
}

/// A client of a cluster whose keys are on a node with this number, which does not answer.
struct Moving(Arc<Mutex<u64>>);

impl Client for Moving {
    async fn send(&self, _: &Command<'_>) -> Result<Reply, ClientError> {
        Err(ClientError::NotSent("refused".into()))
    }

    fn node_of(&self, _: &[Vec<u8>]) -> u64 {
        *self.0.lock().unwrap()
    }

    fn has_keys(&self, node: u64) -> bool {
        node == *self.0.lock().unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_number_of_a_node_does_not_renew_a_bound() {
    let number = Arc::new(Mutex::new(1));
    let server = Arc::new(RedisServer::new(Moving(Arc::clone(&number))));
    let quota = Quota::per(1, Duration::from_secs(24 * 3600)).burst(12);
    let keys = Keys::new("test").unwrap();
    let fallback = Fallback::OpenAtMost {
        at_most: 3,
        per: None,
    };
    let limiter = RedisLimiter::new(Arc::clone(&server), &keys, "limit", quota, fallback).unwrap();
    let mut granted = 0;
    for next in 1..100 {
        *number.lock().unwrap() = next;
        granted += u64::from(limiter.key("alice").try_acquire().await.is_ok());
    }
    assert_eq!(granted, 3);
}
