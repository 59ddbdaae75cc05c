//! A cluster of three nodes: keys on all of them, a slot that moves under load, and nodes that die.

pub(crate) mod nodes;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tollgate::Quota;
use tollgate_redis::client::{Cluster, connect_to_cluster_lazily};
use tollgate_redis::{Decider, Fallback, Keys, OutageEvent, RedisAll, RedisLimiter};

use crate::ask::{Events, assert_one_outage, run, take, until_recovered};
use crate::server::on_each_server;
use nodes::{Nodes, wait_for};

const BURST: u64 = 5;

type Limiter = RedisLimiter<Cluster>;

/// Returns the limit `limit`, whose permits come back after a day, and the outages of its server.
fn limiter(nodes: &Nodes, keys: &Keys, fallback: Fallback) -> (Limiter, Events) {
    let events = Events::default();
    let seen = Arc::clone(&events);
    let client = connect_to_cluster_lazily(nodes.urls()).expect("addresses");
    let server = tollgate_redis::RedisServer::new(client)
        .with_budget(Duration::from_secs(30))
        .with_probe_every(Duration::from_millis(20))
        .on_outage(move |event| seen.lock().unwrap().push(event.clone()));
    let quota = Quota::per(1, Duration::from_secs(24 * 3600)).burst(BURST);
    let limiter = RedisLimiter::new(Arc::new(server), keys, "limit", quota, fallback);
    (limiter.expect("a limit"), events)
}

fn keys() -> Keys {
    Keys::new("test").expect("a namespace")
}

/// Returns a user whose keys are on each of the three nodes.
fn users(nodes: &Nodes) -> [String; 3] {
    let owner = |user: &str| nodes.owner(nodes.slot(&keys().key("limit", user.as_bytes())));
    [0, 1, 2].map(|node| {
        let names = (0..).map(|i| format!("u{i}"));
        names.into_iter().find(|name| owner(name) == node).unwrap()
    })
}

#[test]
fn keys_on_all_nodes_of_a_cluster_are_decided_by_their_nodes() {
    on_each_server(|server| {
        let nodes = Nodes::start(server.program(), 0);
        run(async {
            let (limiter, events) = limiter(&nodes, &keys(), Fallback::Closed);
            let (mut granted, mut answers) = (0, 0);
            for _ in 0..BURST + 2 {
                for user in 0..100 {
                    let (is_granted, decider) = take(&limiter.key(user.to_string())).await;
                    assert_eq!(decider, Decider::Server);
                    granted += u64::from(is_granted);
                    answers += 1;
                }
            }
            assert_eq!(granted, 100 * BURST);
            // Each decision ran once, and each node made some.
            assert_eq!(nodes.scripts(), answers);
            assert!(nodes.0.iter().all(|node| node.server.scripts() > BURST));
            assert_eq!(nodes.writes(), granted);
            let stats = limiter.server().stats();
            assert_eq!((stats.server, stats.failed), (answers, 0));
            assert!(events.lock().unwrap().is_empty());
        });
    });
}

#[test]
fn a_slot_that_moves_under_load_keeps_its_bound_and_loses_nothing() {
    on_each_server(|server| move_under_load(server.program(), 1));
}

#[test]
#[ignore = "takes 10 s on each server: scripts/deep"]
fn a_slot_that_goes_round_all_nodes_keeps_its_bound_and_loses_nothing() {
    on_each_server(|server| move_under_load(server.program(), 6));
}

/// How many users the tasks of [`move_under_load`] take permits for, while a slot moves once.
const USERS: u64 = 1000;

/// Moves a slot several times while 8 tasks take permits of its keys.
fn move_under_load(program: &str, moves: u64) {
    let nodes = Nodes::start(program, 0);
    let keys = keys().with_tag("moving").expect("a tag");
    let slot = nodes.slot(&keys.key("limit", b""));
    let first = nodes.owner(slot);
    run(async {
        let (limiter, events) = limiter(&nodes, &keys, Fallback::Closed);
        let limiter = Arc::new(limiter);
        // How many moves have begun: the tasks go on to other users with each. They end with 0.
        let begun = Arc::new(Mutex::new(1));
        let tasks: Vec<_> = (0..8)
            .map(|task| tokio::spawn(load(Arc::clone(&limiter), Arc::clone(&begun), task)))
            .collect();
        for number in 1..=moves {
            *begun.lock().unwrap() = number;
            let from = (first + usize::try_from(number).unwrap() - 1) % 3;
            move_once(&nodes, &limiter, slot, from, number).await;
        }
        *begun.lock().unwrap() = 0;
        let (mut granted, mut answers) = (0, 0);
        for task in tasks {
            let (of_task, answers_of_task) = task.await.expect("no panic");
            granted += of_task;
            answers += answers_of_task;
        }
        // What is left of the bursts.
        for user in 0..moves * USERS {
            loop {
                answers += 1;
                match take(&limiter.key(user.to_string())).await {
                    (true, Decider::Server) => granted += 1,
                    denied => break assert_eq!(denied, (false, Decider::Server)),
                }
            }
        }
        assert_eq!(granted, moves * USERS * BURST);
        // Each move had 5 more decisions by the server, which took 6 permits.
        let ran = nodes.scripts();
        assert_eq!(ran, answers + 5 * moves);
        assert_eq!(nodes.writes(), granted + 6 * moves);
        let stats = limiter.server().stats();
        assert_eq!((stats.server, stats.lost, stats.outages), (ran, 0, 0));
        assert!(events.lock().unwrap().is_empty());
    });
}

/// Takes permits of all users of the move that has begun, again and again. Returns how many were
/// granted, and how many answers there were.
async fn load(limiter: Arc<Limiter>, begun: Arc<Mutex<u64>>, task: usize) -> (u64, u64) {
    let (mut granted, mut answers) = (0, 0);
    for user in (0..USERS).cycle().skip(task * 120) {
        let number = *begun.lock().unwrap();
        let Some(moved) = number.checked_sub(1) else {
            break;
        };
        let key = limiter.key((moved * USERS + user).to_string());
        let (is_granted, decider) = take(&key).await;
        assert_eq!(decider, Decider::Server);
        granted += u64::from(is_granted);
        answers += 1;
    }
    (granted, answers)
}

/// Moves a slot to the next node, and makes 5 decisions by the server that take 6 permits.
async fn move_once(nodes: &Nodes, limiter: &Limiter, slot: u16, from: usize, number: u64) {
    let to = (from + 1) % 3;
    let key = |name: &str| limiter.key(format!("{name} {number}"));
    let is_granted = (true, Decider::Server);
    assert_eq!(take(&key("old")).await, is_granted);
    nodes.begin_move(slot, from, to);
    // A key that is there is decided by the old node, and a new one by the new node.
    assert_eq!(take(&key("old")).await, is_granted);
    let before = nodes.0[to].server.calls("asking");
    assert_eq!(take(&key("new")).await, is_granted);
    assert!(nodes.0[to].server.calls("asking") > before);
    // Two new keys in one call can't be decided until the slot has moved. Only they fall back.
    let two = RedisAll::new(vec![key("one"), key("other")]).expect("one tag");
    let denial = two.try_acquire().await.expect_err("a fallback");
    assert_eq!(denial.decider(), Decider::Closed);
    nodes.end_move(slot, from, to);
    assert_eq!(take(&key("old")).await, is_granted);
    assert!(two.try_acquire().await.is_ok());
    assert_eq!(nodes.0[from].server.run::<u64>("DBSIZE"), 0);
}

#[test]
fn while_one_node_of_a_cluster_is_dead_only_its_keys_fall_back() {
    on_each_server(|server| {
        let mut nodes = Nodes::start(server.program(), 0);
        let users = users(&nodes);
        run(async {
            let at_most = 3;
            let (limiter, events) =
                limiter(&nodes, &keys(), Fallback::OpenAtMost { at_most, per: None });
            let [dead, one, other] = users.each_ref().map(|user| limiter.key(user));
            for key in [&dead, &one, &other] {
                assert_eq!(take(key).await, (true, Decider::Server));
            }
            nodes.0[0].server.kill();
            let (mut granted, mut decided) = (0, 0);
            for _ in 0..200 {
                let (is_granted, decider) = take(&dead).await;
                assert_eq!(decider, Decider::Open);
                granted += u64::from(is_granted);
                for key in [&one, &other] {
                    let (is_granted, decider) = take(key).await;
                    assert_eq!(decider, Decider::Server);
                    decided += u64::from(is_granted);
                }
            }
            // A call that was on its way fails alone.
            assert!((at_most..=at_most + 2).contains(&granted), "{granted}");
            assert_eq!(decided, 2 * (BURST - 1));
            assert!(limiter.server().is_down());
            let stats = limiter.server().stats();
            assert_eq!((stats.open, stats.outages), (200, 1));
            nodes.0[0].start();
            let since = until_recovered(&dead).await;
            assert_eq!(dead.available().await, Ok(BURST - since));
            assert!(!limiter.server().is_down());
            assert_one_outage(&events);
            let began = events.lock().unwrap()[0].to_string();
            let address = nodes.0[0].url().replace("redis://", "");
            assert!(began.contains(&address), "{began}");
        });
    });
}

#[test]
fn a_replica_that_takes_over_a_dead_nodes_slots_ends_the_outage() {
    on_each_server(|server| {
        let mut nodes = Nodes::start(server.program(), 1);
        let [user, ..] = users(&nodes);
        run(async {
            let (limiter, events) = limiter(&nodes, &keys(), Fallback::Closed);
            let key = limiter.key(&user);
            for _ in 0..3 {
                assert_eq!(take(&key).await, (true, Decider::Server));
            }
            let offset = |node: usize| nodes.0[node].server.info("master_repl_offset");
            wait_for("the replica has all writes", || offset(3) == offset(0));
            nodes.0[0].server.kill();
            assert_eq!(take(&key).await, (false, Decider::Closed));
            let _: String = nodes.0[3].server.run("CLUSTER FAILOVER TAKEOVER");
            let since = until_recovered(&key).await;
            assert_eq!(key.available().await, Ok(BURST - 3 - since));
            assert!(!limiter.server().is_down());
            assert_one_outage(&events);
        });
    });
}

#[test]
fn a_program_starts_without_its_cluster_and_with_addresses_of_dead_nodes() {
    on_each_server(|server| {
        let mut nodes = Nodes::start(server.program(), 0);
        for node in &mut nodes.0 {
            node.server.kill();
        }
        run(async {
            let (limiter, events) = limiter(&nodes, &keys(), Fallback::Closed);
            let key = limiter.key("alice");
            for _ in 0..50 {
                assert_eq!(take(&key).await, (false, Decider::Closed));
            }
            // The first address stays dead. Two of three nodes are enough to know the slots.
            nodes.0[1].start();
            nodes.0[2].start();
            let [_, one, other] = users(&nodes);
            assert_eq!(until_recovered(&limiter.key(one)).await, 1);
            assert_eq!(until_recovered(&limiter.key(other)).await, 1);
            let began = events.lock().unwrap().first().map(OutageEvent::to_string);
            let why = "limits fall back: the command was not sent: no node says";
            assert!(began.is_some_and(|began| began.starts_with(why)));
        });
    });
}
