//! Nodes that lease slots, in virtual time: the crate's own code against an exact server. Holders
//! come and go, some never give back, messages and answers are lost, nodes restart, and their
//! clocks are slow. A seed reproduces a run.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::SeedableRandomState;
use tollgate::Quota;

use crate::decisions::Random;
use crate::decisions::leases::Reference;
use crate::lease::GrantedAfter;
use crate::lease::holder::Answer;
use crate::lease::hot::{Hot, HotKeys, Said};
use crate::lease::keeper::{Keeper, Send};
use crate::lease::options::Leasing;
use crate::lease::stats::Counts;
use crate::lease::terms::Terms;
use crate::limit::Limit;
use crate::server::call::{Leased, Message};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

/// What is simulated.
#[derive(Clone, Copy)]
struct Scene {
    name: &'static str,
    limit: u64,
    lease: Duration,
    nodes: usize,
    seconds: u64,
    /// Requests a second of a node.
    demand: fn(node: usize, second: u64) -> u64,
    /// How long a slot is in use, at most.
    holds: u64,
    round_trip: u64,
    faults: Faults,
    seed: u64,
}

/// What goes wrong. 0 is never.
#[derive(Clone, Copy, Default)]
struct Faults {
    /// One message of this many is lost; the same for the next three.
    message_is_lost: u64,
    answer_is_lost: u64,
    never_given_back: u64,
    restart: u64,
    /// In each span of this many seconds, one node finds no server in the last seven seconds.
    away: u64,
    /// The clock of the first node is slow by this many thousandths.
    slow: u64,
}

struct Node {
    /// Another one after each restart.
    name: u64,
    keys: HotKeys,
    keeper: Keeper,
    counts: Counts,
    wakes_at: u64,
    /// By how many thousandths its clock is slow.
    slow: u64,
}

impl Node {
    fn new(name: u64, terms: Terms, slow: u64) -> Self {
        Self {
            name,
            keys: HotKeys::new(10, SeedableRandomState::fixed()).with_slots(terms.slots_ns),
            keeper: Keeper::new(terms),
            counts: Counts::default(),
            wakes_at: u64::MAX,
            slow,
        }
    }

    const fn clock(&self, now: u64) -> u64 {
        now / 1000 * (1000 - self.slow)
    }

    const fn when(&self, clock: u64) -> u64 {
        clock / (1000 - self.slow) * 1000 + 1000
    }
}

/// A slot in use.
struct Work {
    node: usize,
    /// The node's name.
    of: u64,
    by: By,
    was_lost: bool,
    is_forgotten: bool,
}

enum By {
    Guard(Arc<Hot>),
    /// A grant of a lease, and when it was made or renewed, on its node's clock.
    Grant(Arc<Hot>, GrantedAfter, u64),
    /// A holder beside the leases, and when the server ends its lease, in microseconds.
    Holder(u128),
}

enum Event {
    /// A request that holds its slot for so long.
    Request(usize, u64),
    Wake(usize),
    /// The server gets a message of a node with this name.
    Hear(usize, u64, Arc<Hot>, Message),
    /// A node with this name gets an answer, or knows that none comes.
    Answer(usize, u64, Arc<Hot>, Option<Leased>),
    /// The server is asked for a slot, or gets one back.
    Take(usize, u64, u64),
    Give(u128),
    Renew(u64),
    Leave(u64),
}

#[derive(Debug, Default)]
struct Outcome {
    requests: u64,
    /// How many one exact limit would grant.
    possible: u64,
    granted: u64,
    leased: u64,
    /// The most slots that were in use at a time.
    most: u64,
    /// Slots times nanoseconds.
    used: u128,
    /// Guards that were lost.
    lost: u64,
    renewed: u64,
    messages: u64,
}

struct Simulation {
    scene: Scene,
    terms: Terms,
    random: Random,
    events: BinaryHeap<Reverse<(u64, u64)>>,
    what: BTreeMap<u64, Event>,
    number: u64,
    nodes: Vec<Node>,
    server: Reference,
    work: BTreeMap<u64, Work>,
    /// When the slots of one exact limit are free again.
    exact: BinaryHeap<Reverse<u64>>,
    since: u64,
    outcome: Outcome,
}

impl Scene {
    fn run(self) -> Outcome {
        let limit = Limit::concurrency(self.limit, self.lease).expect("a limit");
        let terms = Leasing::new().terms(&limit).expect("leases");
        let quota = Quota::per(self.limit, self.lease);
        let slow = |node| if node == 0 { self.faults.slow } else { 0 };
        let mut simulation = Simulation {
            scene: self,
            terms,
            random: Random(self.seed),
            events: BinaryHeap::new(),
            what: BTreeMap::new(),
            number: 0,
            nodes: (0..self.nodes)
                .map(|node| Node::new(node as u64, terms, slow(node)))
                .collect(),
            server: Reference::of(&limit, quota, false, 0),
            work: BTreeMap::new(),
            exact: BinaryHeap::new(),
            since: 0,
            outcome: Outcome::default(),
        };
        simulation.run();
        simulation.outcome
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
                    let holds = 1 + self.random.below(self.scene.holds);
                    self.at(time, Event::Request(node, holds));
                }
            }
        }
        while let Some(Reverse((now, number))) = self.events.pop() {
            let in_use = self.in_use(now);
            self.outcome.used += u128::from(now - self.since) * u128::from(in_use);
            self.since = now;
            if let Some(event) = self.what.remove(&number) {
                self.happens(now, event);
            }
            self.outcome.most = self.outcome.most.max(self.in_use(now));
        }
    }

    fn trip(&mut self) -> u64 {
        let half = self.scene.round_trip / 2;
        half / 2 + self.random.below(half + 1)
    }

    fn goes_wrong(&mut self, cases: u64) -> bool {
        cases > 0 && self.random.below(cases) == 0
    }

    /// Returns how many slots are in use by work that stops when it is lost.
    fn in_use(&mut self, now: u64) -> u64 {
        let mut in_use = 0;
        for work in self.work.values_mut() {
            let node = &self.nodes[work.node];
            let clock = node.clock(now);
            let lease = self.scene.lease.as_nanos() as u64;
            let is_held = |hot: &Hot| !hot.slots().expect("slots").pool.held().is_lost(clock);
            let is_in_use = work.of == node.name
                && match &work.by {
                    By::Guard(hot) => is_held(hot),
                    By::Grant(hot, _, since) => is_held(hot) && clock < since + lease,
                    By::Holder(ends) => u128::from(now / 1000) < *ends,
                };
            assert!(!(is_in_use && work.was_lost), "what is lost stays lost");
            work.was_lost = !is_in_use;
            in_use += u64::from(is_in_use);
        }
        self.work
            .retain(|_, work| !(work.was_lost && work.is_forgotten));
        in_use
    }

    fn happens(&mut self, now: u64, event: Event) {
        match event {
            Event::Request(node, holds) => self.request(now, node, holds),
            Event::Wake(node) => {
                if self.nodes[node].wakes_at <= now {
                    self.nodes[node].wakes_at = u64::MAX;
                    self.look(now, node);
                }
            }
            Event::Hear(node, name, hot, message) => self.hear(now, node, name, hot, &message),
            Event::Answer(node, name, hot, answer) => {
                let node_of = &mut self.nodes[node];
                if node_of.name == name {
                    let answer = answer.ok_or(10 * MS);
                    let clock = node_of.clock(now);
                    let keeper = &mut node_of.keeper;
                    keeper.answered(&node_of.keys, &node_of.counts, &hot, answer, clock);
                    self.look(now, node);
                }
            }
            Event::Take(node, name, holds) => {
                let micros = u128::from(now / 1000);
                if self.server.take(micros, 1) && self.nodes[node].name == name {
                    let ends = micros + self.scene.lease.as_micros();
                    self.enter(now, node, By::Holder(ends), holds);
                }
            }
            Event::Give(ends) => self.server.give(u128::from(now / 1000), ends),
            Event::Renew(work) => self.renew(now, work),
            Event::Leave(work) => self.leave(now, work),
        }
    }

    fn is_away(&self, now: u64, node: usize) -> bool {
        let (away, second) = (self.scene.faults.away, now / SECOND);
        away > 0
            && second % away >= away - 7
            && second / away % self.nodes.len() as u64 == node as u64
    }

    fn hear(&mut self, now: u64, node: usize, name: u64, hot: Arc<Hot>, message: &Message) {
        let micros = u128::from(now / 1000);
        self.outcome.messages += 1;
        let faults = self.scene.faults;
        let is_heard = !self.is_away(now, node) && !self.goes_wrong(faults.message_is_lost);
        let answer = is_heard.then(|| {
            let [number, keeps, granted] = self.server.ask(micros, message);
            Leased {
                answer: Answer {
                    number,
                    keeps,
                    granted,
                },
                wait: 0,
                turn: self.server.mine as u64,
                ban: 0,
            }
        });
        let is_lost = answer.is_none() || self.goes_wrong(faults.answer_is_lost);
        let (after, answer) = match is_lost {
            true => (50 * MS, None),
            false => (self.trip(), answer),
        };
        self.at(now + after, Event::Answer(node, name, hot, answer));
    }

    fn request(&mut self, now: u64, node: usize, holds: u64) {
        if self.goes_wrong(self.scene.faults.restart) {
            let slow = self.nodes[node].slow;
            self.nodes[node] = Node::new(self.nodes[node].name + 1000, self.terms, slow);
        }
        self.outcome.requests += 1;
        while self.exact.peek().is_some_and(|ends| ends.0 <= now) {
            let _ = self.exact.pop();
        }
        if (self.exact.len() as u64) < self.scene.limit {
            self.exact.push(Reverse(now + holds));
            self.outcome.possible += 1;
        }
        let (terms, node_of) = (self.terms, &self.nodes[node]);
        let (clock, name) = (node_of.clock(now), node_of.name);
        let decided = node_of.keys.with(b"alice", |hot| {
            let (said, tells) = hot.decide(clock, 1, &terms, false);
            if tells {
                node_of.keys.tell(hot);
            }
            (Arc::clone(hot), said, tells)
        });
        match decided {
            Some((hot, Said::Granted { after, .. }, tells)) => {
                self.outcome.leased += 1;
                let adopts = self.random.below(2) == 0;
                let by = match adopts {
                    true => {
                        let pool = &hot.slots_of(after).expect("slots").pool;
                        assert!(pool.adopt(after.generation, 1));
                        By::Guard(hot)
                    }
                    false => By::Grant(hot, after, clock),
                };
                self.enter(now, node, by, holds);
                if tells {
                    self.look(now, node);
                }
            }
            Some((_, Said::Denied { .. } | Said::Fall, tells)) => {
                if tells {
                    self.look(now, node);
                }
            }
            Some((_, Said::Ask, _)) | None => {
                let node_of = &self.nodes[node];
                if node_of.keys.is_getting_hot(b"alice", false) {
                    let hot = node_of.keys.add(b"alice", Vec::new());
                    node_of.keys.tell(&hot);
                    self.look(now, node);
                }
                if !self.is_away(now, node) {
                    let time = now + self.trip();
                    self.at(time, Event::Take(node, name, holds));
                }
            }
        }
    }

    fn enter(&mut self, now: u64, node: usize, by: By, holds: u64) {
        self.outcome.granted += 1;
        let forgets = matches!(by, By::Grant(..) | By::Holder(_))
            && self.goes_wrong(self.scene.faults.never_given_back);
        self.number += 1;
        let (work, of) = (self.number, self.nodes[node].name);
        if !forgets {
            self.at(now + self.third(), Event::Renew(work));
            self.at(now + holds, Event::Leave(work));
        }
        self.work.insert(
            work,
            Work {
                node,
                of,
                by,
                was_lost: false,
                is_forgotten: forgets,
            },
        );
    }

    fn third(&self) -> u64 {
        self.scene.lease.as_nanos() as u64 / 3
    }

    /// Half of the grants are renewed.
    fn renew(&mut self, now: u64, number: u64) {
        let again = now + self.third();
        let Some(work) = self
            .work
            .get_mut(&number)
            .filter(|_| number.is_multiple_of(2))
        else {
            return;
        };
        let node = &self.nodes[work.node];
        let clock = node.clock(now);
        let By::Grant(hot, after, since) = &mut work.by else {
            return;
        };
        if work.of != node.name || work.was_lost {
            return;
        }
        let pool = &hot.slots_of(*after).expect("slots").pool;
        let renewed = pool.renew(clock, after.generation, 1);
        after.generation = renewed.expect("a grant of this lease has its slot");
        *since = clock;
        self.outcome.renewed += 1;
        self.at(again, Event::Renew(number));
    }

    fn leave(&mut self, now: u64, number: u64) {
        let Some(work) = self.work.remove(&number) else {
            return;
        };
        let node = &self.nodes[work.node];
        if work.of != node.name {
            return;
        }
        let clock = node.clock(now);
        self.outcome.lost += u64::from(work.was_lost && matches!(work.by, By::Guard(_)));
        let back = match work.by {
            By::Guard(hot) => hot.slots().expect("slots").pool.leave(clock, 1),
            By::Grant(hot, after, _) => hot.put_back(clock, 1, after),
            By::Holder(ends) => {
                let time = now + self.trip();
                self.at(time, Event::Give(ends));
                return;
            }
        };
        assert!(back == 1 || work.was_lost, "a slot that is held comes back");
    }

    /// Lets the task of a node look at its keys.
    fn look(&mut self, now: u64, node: usize) {
        let node_of = &mut self.nodes[node];
        let clock = node_of.clock(now);
        let keeper = &mut node_of.keeper;
        let sends = keeper.messages(&node_of.keys, &node_of.counts, clock);
        let next = keeper.next_ns();
        let next = node_of.when(next).max(now + 1);
        if next < node_of.wakes_at && next < self.scene.seconds * SECOND {
            node_of.wakes_at = next;
            self.at(next, Event::Wake(node));
        }
        let name = self.nodes[node].name;
        for Send { hot, ask } in sends {
            let message = Message {
                node: name.to_le_bytes(),
                ask,
                life: self.terms.life_ns / 1000,
            };
            let time = now + self.trip();
            self.at(time, Event::Hear(node, name, hot, message));
        }
    }
}

/// Four nodes whose demand would hold 96 of 100 slots.
const STEADY: Scene = Scene {
    name: "four nodes, just below the limit",
    limit: 100,
    lease: Duration::from_secs(60),
    nodes: 4,
    seconds: 10,
    demand: |_, _| 480,
    holds: 100 * MS,
    round_trip: MS,
    faults: Faults {
        message_is_lost: 0,
        answer_is_lost: 0,
        never_given_back: 0,
        restart: 0,
        away: 0,
        slow: 0,
    },
    seed: 1,
};

fn check(scene: Scene) -> Outcome {
    let outcome = scene.run();
    println!(
        "{}: {:.1} % granted of what is possible, {:.1} % in use, {outcome:?}",
        scene.name,
        outcome.granted as f64 * 100.0 / outcome.possible as f64,
        outcome.used as f64 / SECOND as f64 * 100.0 / (scene.limit * scene.seconds) as f64,
    );
    assert!(outcome.most <= scene.limit, "{}: {outcome:?}", scene.name);
    outcome
}

fn assert_used(scene: Scene, least_percent: u64) {
    let outcome = check(scene);
    assert!(
        outcome.granted * 100 >= outcome.possible * least_percent,
        "{}: {outcome:?}",
        scene.name
    );
}

#[test]
fn nearly_all_slots_are_in_use_when_demand_is_steady() {
    assert_used(STEADY, 90);
    assert_used(
        Scene {
            name: "four nodes, four fifths of the limit",
            demand: |_, _| 400,
            ..STEADY
        },
        93,
    );
    assert_used(
        Scene {
            name: "four nodes, three times the limit",
            demand: |_, _| 1500,
            ..STEADY
        },
        95,
    );
    assert_used(
        Scene {
            name: "uneven: one node has most of the demand",
            demand: |node, _| if node == 0 { 4000 } else { 50 },
            ..STEADY
        },
        95,
    );
    assert_used(
        Scene {
            name: "20 ms away",
            demand: |_, _| 1500,
            round_trip: 20 * MS,
            ..STEADY
        },
        95,
    );
    assert_used(
        Scene {
            name: "demand moves each five seconds",
            demand: |node, second| match node as u64 == second / 5 % 4 {
                true => 6000,
                false => 0,
            },
            ..STEADY
        },
        85,
    );
}

#[test]
fn never_more_slots_are_in_use_than_there_are_whatever_goes_wrong() {
    let mut all = Outcome::default();
    for seed in 1..=12 {
        let outcome = check(Scene {
            name: "everything goes wrong",
            limit: 1 + seed * seed,
            lease: Duration::from_millis(if seed % 2 == 0 { 600 } else { 5000 }),
            seconds: 40,
            demand: |_, _| 100,
            holds: if seed % 3 == 0 { 5 * SECOND } else { 100 * MS },
            faults: Faults {
                message_is_lost: 10,
                answer_is_lost: 5,
                never_given_back: 10,
                restart: 2000,
                away: 10,
                slow: 15,
            },
            seed,
            ..STEADY
        });
        all.leased += outcome.leased;
        all.lost += outcome.lost;
        all.renewed += outcome.renewed;
    }
    println!("{all:?}");
    assert!(all.leased > 10_000, "{all:?}");
    assert!(all.lost > 100, "{all:?}");
    assert!(all.renewed > 1000, "{all:?}");
}

/// No request comes for longer than many leases.
#[test]
fn guards_are_kept_while_nothing_else_is_asked_for() {
    let outcome = check(Scene {
        name: "held for ten leases",
        lease: Duration::from_secs(1),
        seconds: 12,
        demand: |_, second| if second < 2 { 20 } else { 0 },
        holds: 10 * SECOND,
        ..STEADY
    });
    assert_eq!(outcome.lost, 0, "{outcome:?}");
    assert!(outcome.leased > 50, "{outcome:?}");
}

/// Each grant is forgotten, and its slot is granted again after a lease.
#[test]
fn slots_that_are_never_given_back_are_granted_again() {
    let lease = Duration::from_millis(400);
    let outcome = check(Scene {
        name: "never given back",
        lease,
        faults: Faults {
            never_given_back: 1,
            ..Faults::default()
        },
        ..STEADY
    });
    // At most an eighth of a lease and two reviews later.
    assert!(outcome.leased > 100 * 10_000 / 700, "{outcome:?}");
}
