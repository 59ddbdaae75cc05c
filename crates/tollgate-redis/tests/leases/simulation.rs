//! Nodes, a server and a network in virtual time: the crate's own code, except for the server,
//! which counts exactly, and for the task's loop, which this file has. A seed reproduces a run.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use tollgate::Quota;

use crate::decisions::Random;
use crate::decisions::leases::Reference;
use crate::lease::holder::Answer;
use crate::lease::hot::{Hot, HotKeys, Said};
use crate::lease::keeper::Keeper;
use crate::lease::options::Leasing;
use crate::lease::stats::Counts;
use crate::lease::terms::Terms;
use crate::limit::Limit;
use crate::server::call::{Leased, Message};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

/// One node.
struct Node {
    /// Another one after each restart.
    name: u64,
    keys: HotKeys,
    keeper: Keeper,
    counts: Counts,
    /// Answers that have come.
    answers: Vec<(Arc<Hot>, Leased)>,
    wakes_at: u64,
    is_up: bool,
}

/// Something that happens at a time.
enum Event {
    Request {
        node: usize,
        key: u64,
    },
    Wake {
        node: usize,
    },
    /// The server gets a message.
    Hear {
        node: usize,
        hot: Arc<Hot>,
        message: Message,
    },
    /// A node gets an answer.
    Answer {
        node: usize,
        hot: Arc<Hot>,
        leased: Leased,
    },
    /// The server is asked for one permit.
    Take {
        node: usize,
        key: u64,
    },
}

/// What is simulated.
#[derive(Clone, Copy)]
pub(super) struct Scene {
    pub(super) name: &'static str,
    pub(super) quota: Quota,
    pub(super) kind: Of,
    pub(super) nodes: usize,
    pub(super) keys: u64,
    pub(super) seconds: u64,
    /// Requests a second of a node, for all its keys.
    pub(super) demand: fn(node: usize, second: u64) -> u64,
    /// Whether a node is up.
    pub(super) is_up: fn(node: usize, second: u64) -> bool,
    pub(super) round_trip: u64,
    pub(super) seed: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Bucket,
    Window,
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Result {
    /// Permits that were granted, of those that the limits had for what was asked.
    pub(super) granted: u64,
    pub(super) possible: u64,
    pub(super) requests: u64,
    /// Granted beyond the bound.
    pub(super) over: u64,
    pub(super) messages: u64,
    /// Decisions that waited for the network.
    pub(super) waited: u64,
    pub(super) by_node: Vec<u64>,
}

struct Simulation {
    scene: Scene,
    limit: Limit,
    terms: Terms,
    random: Random,
    events: BinaryHeap<Reverse<(u64, u64)>>,
    what: BTreeMap<u64, Event>,
    number: u64,
    nodes: Vec<Node>,
    servers: BTreeMap<u64, Reference>,
    /// For each key, an exact limit that is given what was spent, and one that is given what was
    /// asked.
    spent: BTreeMap<u64, Exact>,
    asked: BTreeMap<u64, Exact>,
    result: Result,
}

/// A limit that counts in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Exact {
    /// Of a bucket, in nanoseconds times permits. Of a window, its number and count.
    idle: u128,
    window: u64,
    count: u64,
}

impl Exact {
    /// Takes a permit, whether or not it fits. Returns whether it fits.
    fn take(&mut self, scene: &Scene, now: u64, always: bool) -> bool {
        let quota = scene.quota;
        let period = quota.period().as_nanos();
        match scene.kind {
            Of::Bucket => {
                let n = u128::from(quota.permits());
                let idle = self.idle.max(u128::from(now) * n) + period;
                // A microsecond more, because the server counts in whole ones.
                let reach = u128::from(quota.burst_size()) * period + 1000 * n;
                let fits = idle <= u128::from(now) * n + reach;
                if fits || always {
                    self.idle = idle;
                }
                fits
            }
            Of::Window => {
                let window = now / period as u64;
                if window > self.window {
                    (self.window, self.count) = (window, 0);
                }
                let fits = self.count < quota.permits();
                self.count += u64::from(fits || always);
                fits
            }
        }
    }
}

impl Scene {
    pub(super) fn run(self) -> Result {
        let limit = match self.kind {
            Of::Bucket => Limit::token_bucket(self.quota),
            Of::Window => Limit::fixed_window(self.quota),
        };
        let limit = limit.expect("a limit");
        let terms = Leasing::new().terms(&limit).expect("leases");
        let node = |name| Node {
            name,
            keys: HotKeys::new(1000),
            keeper: Keeper::new(terms),
            counts: Counts::default(),
            answers: Vec::new(),
            wakes_at: u64::MAX,
            is_up: true,
        };
        let mut simulation = Simulation {
            scene: self,
            limit,
            terms,
            random: Random(self.seed),
            events: BinaryHeap::new(),
            what: BTreeMap::new(),
            number: 0,
            nodes: (0..self.nodes as u64).map(node).collect(),
            servers: BTreeMap::new(),
            spent: BTreeMap::new(),
            asked: BTreeMap::new(),
            result: Result {
                by_node: vec![0; self.nodes],
                ..Result::default()
            },
        };
        simulation.run();
        simulation.result
    }
}

impl Simulation {
    fn at(&mut self, time: u64, event: Event) {
        self.number += 1;
        self.events.push(Reverse((time, self.number)));
        self.what.insert(self.number, event);
    }

    fn run(&mut self) {
        for second in 0..self.scene.seconds {
            for node in 0..self.scene.nodes {
                for _ in 0..(self.scene.demand)(node, second) {
                    let time = second * SECOND + self.random.below(SECOND);
                    let key = self.random.below(self.scene.keys);
                    self.at(time, Event::Request { node, key });
                }
            }
        }
        while let Some(Reverse((now, number))) = self.events.pop() {
            if let Some(event) = self.what.remove(&number) {
                self.happens(now, event);
            }
        }
    }

    fn trip(&mut self) -> u64 {
        let half = self.scene.round_trip / 2;
        half / 2 + self.random.below(half + 1)
    }

    fn happens(&mut self, now: u64, event: Event) {
        match event {
            Event::Request { node, key } => self.request(now, node, key),
            Event::Wake { node } => {
                if self.nodes[node].wakes_at <= now {
                    self.nodes[node].wakes_at = u64::MAX;
                    self.look(now, node);
                }
            }
            Event::Hear { node, hot, message } => {
                let micros = u128::from(now / 1000);
                let key = key_of(&hot.user);
                let (limit, scene) = (self.limit, self.scene);
                let server = self
                    .servers
                    .entry(key)
                    .or_insert_with(|| Reference::of(&limit, scene.quota, false, micros));
                let [number, keeps, granted] = server.ask(micros, &message);
                let wait = match granted < message.ask.wants {
                    true => server.wait(micros) as u64,
                    false => 0,
                };
                let leased = Leased {
                    answer: Answer {
                        number,
                        keeps,
                        granted,
                    },
                    wait,
                };
                self.result.messages += 1;
                let time = now + self.trip();
                self.at(time, Event::Answer { node, hot, leased });
            }
            Event::Answer { node, hot, leased } => {
                if self.nodes[node].is_up {
                    self.nodes[node].answers.push((hot, leased));
                    self.look(now, node);
                }
            }
            Event::Take { node, key } => {
                let micros = u128::from(now / 1000);
                let (limit, scene) = (self.limit, self.scene);
                let server = self
                    .servers
                    .entry(key)
                    .or_insert_with(|| Reference::of(&limit, scene.quota, false, micros));
                if server.take(micros, 1) {
                    self.grant(now, node, key);
                }
            }
        }
    }

    fn request(&mut self, now: u64, node: usize, key: u64) {
        let is_up = (self.scene.is_up)(node, now / SECOND);
        if is_up != self.nodes[node].is_up {
            // A node that went down has forgotten everything.
            self.nodes[node].is_up = is_up;
            self.nodes[node].name += 1000;
            self.nodes[node].keys = HotKeys::new(1000);
            self.nodes[node].keeper = Keeper::new(self.terms);
            self.nodes[node].answers.clear();
        }
        if !is_up {
            return;
        }
        self.result.requests += 1;
        let scene = self.scene;
        let possible = self.asked.entry(key).or_default().take(&scene, now, false);
        self.result.possible += u64::from(possible);
        let user = key.to_le_bytes();
        let terms = self.terms;
        let node_of = &mut self.nodes[node];
        let decided = node_of.keys.with(&user, |hot| {
            let (said, tells) = hot.decide(now, 1, &terms, false);
            if tells {
                node_of.keys.tell(hot);
            }
            (said, tells)
        });
        match decided {
            Some((Said::Granted { .. }, tells)) => {
                self.grant(now, node, key);
                if tells {
                    self.look(now, node);
                }
            }
            Some((Said::Denied { .. }, true)) => self.look(now, node),
            Some((Said::Denied { .. }, false)) => {}
            Some((Said::Ask, _)) | None => {
                self.result.waited += 1;
                let node_of = &self.nodes[node];
                if node_of.keys.is_getting_hot(&user) {
                    let hot = node_of.keys.add(&user, Vec::new());
                    node_of.keys.tell(&hot);
                    self.look(now, node);
                }
                let time = now + self.trip();
                self.at(time, Event::Take { node, key });
            }
        }
    }

    fn grant(&mut self, now: u64, node: usize, key: u64) {
        let scene = self.scene;
        let fits = self.spent.entry(key).or_default().take(&scene, now, true);
        self.result.over += u64::from(!fits);
        self.result.granted += 1;
        self.result.by_node[node] += 1;
    }

    /// Lets the task of a node look at its keys.
    fn look(&mut self, now: u64, node: usize) {
        let node_of = &mut self.nodes[node];
        for (hot, leased) in std::mem::take(&mut node_of.answers) {
            let keeper = &mut node_of.keeper;
            keeper.answered(&node_of.keys, &node_of.counts, &hot, Ok(leased), now);
        }
        let sends = node_of.keeper.messages(&node_of.keys, &node_of.counts, now);
        let next = node_of.keeper.next_ns().max(now + 1);
        if next < node_of.wakes_at && next < (self.scene.seconds + 5) * SECOND {
            node_of.wakes_at = next;
            self.at(next, Event::Wake { node });
        }
        for send in sends {
            let message = Message {
                node: self.nodes[node].name.to_le_bytes(),
                ask: send.ask,
                life: self.terms.life_ns / 1000,
            };
            let time = now + self.trip();
            self.at(
                time,
                Event::Hear {
                    node,
                    hot: send.hot,
                    message,
                },
            );
        }
    }
}

fn key_of(user: &[u8]) -> u64 {
    u64::from_le_bytes(user.try_into().expect("8 bytes"))
}

fn always(_: usize, _: u64) -> bool {
    true
}

/// WSO2's: 1000 a second, 4 nodes, each with a bit more than a quarter of the demand.
const WSO2: Scene = Scene {
    name: "four nodes, steady",
    quota: Quota::per_second(1000),
    kind: Of::Bucket,
    nodes: 4,
    keys: 1,
    seconds: 60,
    demand: |_, _| 300,
    is_up: always,
    round_trip: MS,
    seed: 1,
};

fn assert_scene(scene: Scene, least_percent: u64) {
    let result = scene.run();
    let percent = result.granted as f64 * 100.0 / result.possible as f64;
    println!(
        "{}: {:.1} % of {} used, {} over, {} messages, {} of {} waited, by node {:?}",
        scene.name,
        percent,
        result.possible,
        result.over,
        result.messages,
        result.waited,
        result.requests,
        &result.by_node[..result.by_node.len().min(8)],
    );
    assert_eq!(result.over, 0, "{}", scene.name);
    assert!(
        result.granted * 100 >= result.possible * least_percent,
        "{}",
        scene.name
    );
}

#[test]
fn nothing_is_over_and_nearly_all_is_used_when_demand_is_steady() {
    assert_scene(WSO2, 95);
    assert_scene(
        Scene {
            name: "four nodes, below the limit",
            demand: |_, _| 200,
            ..WSO2
        },
        95,
    );
    assert_scene(
        Scene {
            name: "four nodes, ten times the limit",
            demand: |_, _| 2500,
            ..WSO2
        },
        95,
    );
    assert_scene(
        Scene {
            name: "uneven: one node has most of the demand",
            demand: |node, _| if node == 0 { 1100 } else { 30 },
            ..WSO2
        },
        95,
    );
    assert_scene(
        Scene {
            name: "20 ms away",
            round_trip: 20 * MS,
            ..WSO2
        },
        95,
    );
    assert_scene(
        Scene {
            name: "a small burst",
            quota: Quota::per_second(1000).burst(100),
            ..WSO2
        },
        95,
    );
    assert_scene(
        Scene {
            name: "100 keys",
            quota: Quota::per_second(100),
            keys: 100,
            seconds: 20,
            demand: |_, _| 3000,
            ..WSO2
        },
        95,
    );
    assert_scene(
        Scene {
            name: "fixed windows of a second",
            kind: Of::Window,
            ..WSO2
        },
        95,
    );
}

#[test]
fn nothing_is_over_and_most_is_used_when_demand_moves() {
    assert_scene(
        Scene {
            name: "moves each second",
            demand: |node, second| if node as u64 == second % 4 { 1200 } else { 0 },
            ..WSO2
        },
        90,
    );
    assert_scene(
        Scene {
            name: "moves each second, windows",
            kind: Of::Window,
            demand: |node, second| if node as u64 == second % 4 { 1200 } else { 0 },
            ..WSO2
        },
        90,
    );
    assert_scene(
        Scene {
            name: "bursts",
            demand: |_, second| if second % 3 == 0 { 1500 } else { 20 },
            ..WSO2
        },
        90,
    );
    assert_scene(
        Scene {
            name: "nodes come and go",
            is_up: |node, second| !(second / 4 + node as u64).is_multiple_of(3),
            demand: |_, _| 500,
            ..WSO2
        },
        90,
    );
}
