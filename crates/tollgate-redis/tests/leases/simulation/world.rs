//! Nodes, a server and a network in virtual time: the crate's own code, except for the server,
//! which counts exactly, and for the task's loop, which this file has.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::mem;
use std::sync::Arc;

use foldhash::SharedSeed;
use foldhash::fast::SeedableRandomState;
use tollgate::Quota;

use super::exact::Exact;
use super::scene::{Faults, Keys, Kind, MS, SECOND, Scene, UNDONE_AFTER};
use super::seen::Seen;
use crate::decisions::Random;
use crate::decisions::leases::Reference;
use crate::lease::allowance::{Own, divided};
use crate::lease::holder::Answer;
use crate::lease::hot::{GrantedAfter, Hot, HotKeys, Said};
use crate::lease::keeper::Keeper;
use crate::lease::options::{Allowance, Leasing};
use crate::lease::stats::Counts;
use crate::lease::terms::Terms;
use crate::lease::tests::model::Mistake;
use crate::limit::Limit;
use crate::server::call::{Leased, Message};

/// How long a node waits before it asks again, after a message without an answer.
const PAUSE: u64 = 10 * MS;

/// Keys of an allowance.
const KEYS: usize = 100_000;

/// One node. Its times are those of its clock.
struct Node {
    /// Another one after each restart.
    name: u64,
    keys: HotKeys,
    keeper: Keeper,
    counts: Counts,
    /// Answers that have come.
    answers: Vec<(Arc<Hot>, Result<Leased, u64>)>,
    /// Calls without an answer.
    open: HashSet<u64>,
    wakes_at: u64,
    is_up: bool,
    own: Option<Own>,
    /// Until then it stands still.
    stopped_until: u64,
    /// By how much its clock is behind, if it stands still with the node.
    behind: u64,
}

enum What {
    /// A second begins.
    Second(u64),
    /// The node gets the next request of this second.
    Request,
    Wake,
    /// The node stands still for a while.
    Stop,
    /// The server gets a message of the node.
    Hear {
        call: u64,
        hot: Arc<Hot>,
        message: Message,
    },
    /// The node gets an answer, or gives up waiting.
    Answer {
        call: u64,
        hot: Arc<Hot>,
        leased: Option<Leased>,
    },
    /// The node asks the server for one permit.
    Take {
        key: u64,
    },
    /// A permit of a grant was not used after all.
    Undo(Undo),
    /// A permit that was granted at a time counts, if it was not undone.
    Count {
        key: u64,
        at: u64,
        number: u64,
    },
}

struct Undo {
    key: u64,
    at: u64,
    after: GrantedAfter,
    number: u64,
}

struct Event {
    time: u64,
    number: u64,
    node: usize,
    what: What,
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.time, other.number).cmp(&(self.time, self.number))
    }
}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Event {}

struct World {
    scene: Scene,
    terms: Terms,
    /// What each node has of each key, if it has an allowance.
    own: Option<Quota>,
    random: Random,
    events: BinaryHeap<Event>,
    number: u64,
    nodes: Vec<Node>,
    /// A key's server, when nothing is used.
    idle: Reference,
    servers: HashMap<u64, Reference>,
    /// For each key, an exact limit that is given what was spent, and one that is given what was
    /// asked.
    spent: Vec<Exact>,
    asked: Vec<Exact>,
    /// How often the first keys are asked for, added up.
    weights: Vec<f64>,
    /// Grants that were undone.
    undone: Vec<u64>,
    seen: Seen,
}

impl Scene {
    pub(super) fn run(self) -> Seen {
        let limit = match self.kind {
            Kind::Bucket => Limit::token_bucket(self.quota),
            Kind::Window => Limit::fixed_window(self.quota),
        };
        let limit = limit.expect("a limit");
        let allowance = self.allowance.map(|percent| Allowance {
            percent,
            processes: self.nodes as u32,
            keys: KEYS,
        });
        let divided = allowance.map(|allowance| divided(&limit, allowance));
        let divided = divided.map(|divided| divided.expect("permits for each"));
        let limit = divided.map_or(limit, |(limit, _)| limit);
        let terms = Leasing::new()
            .with_life(self.life)
            .terms(&limit)
            .expect("leases");
        let keys = self.keys.count();
        let mut sum = 0.0;
        let weights = (0..keys).map(|key| {
            sum += match self.keys {
                Keys::Same(_) => 1.0,
                Keys::Zipf(_) => 1.0 / (key + 1) as f64,
            };
            sum
        });
        let mut world = World {
            scene: self,
            terms,
            own: divided.map(|(_, own)| own),
            random: Random(self.seed),
            events: BinaryHeap::new(),
            number: 0,
            nodes: Vec::new(),
            idle: Reference::of(&limit, limit.quota, false, 0),
            servers: HashMap::new(),
            spent: vec![Exact::default(); keys as usize],
            asked: vec![Exact::default(); keys as usize],
            weights: weights.collect(),
            undone: Vec::new(),
            seen: Seen::new(&self),
        };
        world.idle.refills_what_is_out = world.is(Mistake::OutIsRefilled);
        world.nodes = (0..self.nodes as u64)
            .map(|name| world.node(name))
            .collect();
        world.run();
        world.seen
    }
}

impl World {
    fn node(&self, name: u64) -> Node {
        let shared = SharedSeed::global_fixed();
        Node {
            name,
            keys: HotKeys::new(10_000, SeedableRandomState::with_seed(name, shared)),
            keeper: Keeper::new(self.node_terms()),
            counts: Counts::default(),
            answers: Vec::new(),
            open: HashSet::new(),
            wakes_at: u64::MAX,
            is_up: true,
            own: self.own.map(|own| Own::new(own, KEYS).expect("a table")),
            stopped_until: 0,
            behind: 0,
        }
    }

    /// Returns the terms as nodes know them.
    fn node_terms(&self) -> Terms {
        let life_ns = match self.is(Mistake::NoMargin) {
            true => self.terms.life_ns * 50 / 49,
            false => self.terms.life_ns,
        };
        Terms {
            life_ns,
            ..self.terms
        }
    }

    fn is(&self, mistake: Mistake) -> bool {
        self.scene.mistake == Some(mistake)
    }

    /// Returns true with this probability, in percent.
    fn happens(&mut self, percent: u64) -> bool {
        percent > 0 && self.random.below(100) < percent
    }

    fn at(&mut self, time: u64, node: usize, what: What) {
        self.number += 1;
        let number = self.number;
        self.events.push(Event {
            time,
            number,
            node,
            what,
        });
    }

    /// Returns the time by a node's clock.
    fn clock(&self, now: u64, node: usize) -> u64 {
        let now = now.saturating_sub(self.nodes[node].behind);
        now - now / 1000 * self.scene.faults.slow
    }

    fn run(&mut self) {
        for second in 0..self.scene.seconds {
            self.at(second * SECOND, 0, What::Second(second));
        }
        while let Some(event) = self.events.pop() {
            self.handle(event);
        }
    }

    fn handle(&mut self, event: Event) {
        let Event {
            time: now,
            node,
            what,
            ..
        } = event;
        let is_of_node = matches!(what, What::Request | What::Wake | What::Answer { .. });
        let wakes_at = self.nodes[node].stopped_until;
        if is_of_node && now < wakes_at {
            // What came in the meantime is handled then, in any order.
            let time = wakes_at + self.random.below(1000);
            return self.at(time, node, what);
        }
        match what {
            What::Second(second) => self.begin(now, second),
            What::Request => {
                self.next_request(now, node);
                self.request(now, node);
            }
            What::Wake => {
                if self.nodes[node].wakes_at <= now {
                    self.nodes[node].wakes_at = u64::MAX;
                    self.look(now, node);
                }
            }
            What::Stop => self.stop(now, node),
            What::Hear { call, hot, message } => self.hear(now, node, call, hot, message),
            What::Answer { call, hot, leased } => self.answer(now, node, call, hot, leased),
            What::Take { key } => {
                self.seen.second(now).calls += 1;
                let each = self.scene.each;
                let server = self.server(key);
                match server.take(u128::from(now / 1000), each) {
                    true => self.grant(now, node, key),
                    false => {
                        self.seen.denied(now, node, key);
                        self.note(now, node, key, true);
                    }
                }
            }
            What::Undo(undo) => self.undo(now, node, &undo),
            What::Count { key, at, number } => {
                let undone = self.undone.iter().position(|undone| *undone == number);
                match undone {
                    Some(undone) => _ = self.undone.swap_remove(undone),
                    None => self.count(at, key),
                }
            }
        }
    }

    fn server(&mut self, key: u64) -> &mut Reference {
        let idle = &self.idle;
        self.servers.entry(key).or_insert_with(|| idle.clone())
    }

    fn begin(&mut self, now: u64, second: u64) {
        for node in 0..self.scene.nodes {
            let is_up = (self.scene.is_up)(node, second);
            if is_up != self.nodes[node].is_up {
                // A node that went down has forgotten everything.
                let name = self.nodes[node].name + self.scene.nodes as u64;
                let next = self.node(name);
                self.nodes[node] = Node { is_up, ..next };
                for key in 0..self.seen.watched() {
                    self.seen.fed(now, node, key);
                }
            }
            if self.happens(self.scene.faults.stops) {
                let time = now + self.random.below(SECOND);
                self.at(time, node, What::Stop);
            }
            self.next_request(now, node);
        }
    }

    fn stop(&mut self, now: u64, node: usize) {
        if now < self.nodes[node].stopped_until {
            return;
        }
        let [least, most] = self
            .scene
            .faults
            .stop
            .map(|part| part * self.terms.life_ns / 100);
        let until = now + least + self.random.below(most - least + 1);
        // Many mistakes show when a window begins.
        let until = until / SECOND * SECOND + SECOND + self.random.below(50 * MS);
        let long = until - now;
        self.nodes[node].stopped_until = until;
        if self.is(Mistake::ClockStandsStill) {
            self.nodes[node].behind += long;
        }
    }

    /// Lets the node get another request in this second, if one comes.
    fn next_request(&mut self, now: u64, node: usize) {
        let second = now / SECOND;
        let demand = (self.scene.demand)(node, second);
        if demand > 0 && self.nodes[node].is_up && second < self.scene.seconds {
            let time = now + self.random.below(2 * SECOND / demand);
            if time < (second + 1) * SECOND {
                self.at(time, node, What::Request);
            }
        }
    }

    fn key(&mut self) -> u64 {
        let sum = self.weights.last().copied().unwrap_or(0.0);
        let at = self.random.below(1 << 53) as f64 / (1_u64 << 53) as f64 * sum;
        self.weights.partition_point(|weight| *weight <= at) as u64
    }

    fn request(&mut self, now: u64, node: usize) {
        let key = self.key();
        let scene = self.scene;
        let possible = self.asked[key as usize].take(&scene, now, false);
        self.seen.asked(now, key, possible);
        let (user, terms) = (key.to_le_bytes(), self.terms);
        let clock = self.clock(now, node);
        let keys = &self.nodes[node].keys;
        let decided = keys.with(&user, |hot| {
            let (said, tells) = hot.decide(clock, scene.each, &terms, false);
            if tells {
                keys.tell(hot);
            }
            (said, tells)
        });
        match decided {
            Some((Said::Granted { after, .. }, tells)) => {
                self.grant_leased(now, node, key, after);
                if tells {
                    self.look(now, node);
                }
            }
            _ if self.takes_own(now, node, key) => {}
            Some((Said::Denied { .. } | Said::Fall, tells)) => {
                self.seen.denied(now, node, key);
                if tells {
                    self.look(now, node);
                }
            }
            Some((Said::Ask, _)) | None => {
                self.note(now, node, key, false);
                let time = now + self.trip();
                self.at(time, node, What::Take { key });
            }
        }
    }

    /// Takes permits of the node's allowance, if they are there.
    fn takes_own(&mut self, now: u64, node: usize, key: u64) -> bool {
        let clock = self.clock(now, node);
        let own = self.nodes[node].own.as_ref();
        let taken = own.map(|own| own.take(&key.to_le_bytes(), clock, self.scene.each));
        let is_taken = matches!(taken, Some(Ok(_)));
        if is_taken {
            self.grant(now, node, key);
        }
        is_taken
    }

    /// Notes that the server is asked about a key, or has denied it.
    fn note(&mut self, now: u64, node: usize, key: u64, is_denied: bool) {
        let keys = &self.nodes[node].keys;
        if keys.is_getting_hot(&key.to_le_bytes(), is_denied) {
            let hot = keys.add(&key.to_le_bytes(), Vec::new());
            keys.tell(&hot);
            self.look(now, node);
        }
    }

    fn grant(&mut self, now: u64, node: usize, key: u64) {
        self.seen.granted(now, node, key);
        match self.scene.faults.undone {
            0 => self.count(now, key),
            _ => self.count_later(now, node, key),
        }
    }

    fn count_later(&mut self, now: u64, node: usize, key: u64) {
        let (at, number) = (now, self.number);
        self.at(now + UNDONE_AFTER, node, What::Count { key, at, number });
    }

    fn grant_leased(&mut self, now: u64, node: usize, key: u64, after: GrantedAfter) {
        self.grant(now, node, key);
        // The number of the grant is that of the event that counts it, less one.
        let number = self.number - 1;
        if self.happens(self.scene.faults.undone) {
            let time = now + self.random.below(UNDONE_AFTER);
            let undo = Undo {
                key,
                at: now,
                after,
                number,
            };
            self.at(time, node, What::Undo(undo));
        }
    }

    fn undo(&mut self, now: u64, node: usize, undo: &Undo) {
        if now < self.nodes[node].stopped_until {
            return;
        }
        let clock = self.clock(now, node);
        let each = self.scene.each;
        let is_late = self.is(Mistake::PutBackLate);
        let put_back = self.nodes[node].keys.with(&undo.key.to_le_bytes(), |hot| {
            if is_late {
                let has_lease = clock < hot.permits.pool.held().until_ns();
                hot.permits.pool.put_back(clock, each);
                return each * u64::from(has_lease);
            }
            hot.put_back(clock, each, undo.after)
        });
        if put_back == Some(each) {
            self.undone.push(undo.number);
            self.seen.second(undo.at).granted -= 1;
        }
    }

    fn count(&mut self, at: u64, key: u64) {
        let scene = self.scene;
        let fits = self.spent[key as usize].take(&scene, at, true);
        self.seen.over += u64::from(!fits);
    }

    /// Lets the task of a node look at its keys.
    fn look(&mut self, now: u64, node: usize) {
        let clock = self.clock(now, node);
        let scene = self.scene;
        let returned_is_spent = self.is(Mistake::ReturnedIsSpent);
        let Node {
            name,
            keys,
            keeper,
            counts,
            answers,
            ..
        } = &mut self.nodes[node];
        for (hot, leased) in mem::take(answers) {
            keeper.answered(keys, counts, &hot, leased, clock);
        }
        let sends = keeper.messages(keys, counts, clock);
        let name = *name;
        let wait = keeper.next_ns().saturating_sub(clock).max(1);
        // By the clock that is slowest.
        let next = now + wait + wait / 100 * 2;
        if next < self.nodes[node].wakes_at && next < (scene.seconds + 5) * SECOND {
            self.nodes[node].wakes_at = next;
            self.at(next, node, What::Wake);
        }
        if !sends.is_empty() {
            self.seen.second(now).trips += 1;
        }
        for send in sends {
            if returned_is_spent {
                send.hot.permits.pool.put_back(clock, send.ask.returns);
            }
            let message = Message {
                node: name.to_le_bytes(),
                ask: send.ask,
                life: self.terms.life_ns / 1000,
            };
            let call = self.number;
            self.nodes[node].open.insert(call);
            for time in self.times(now) {
                let hot = Arc::clone(&send.hot);
                self.at(time, node, What::Hear { call, hot, message });
            }
            let (hot, leased) = (send.hot, None);
            let given_up = now + 2 * scene.round_trip + 20 * MS;
            self.at(given_up, node, What::Answer { call, hot, leased });
        }
    }

    fn trip(&mut self) -> u64 {
        let half = self.scene.round_trip / 2;
        half / 2 + self.random.below(half + 1)
    }

    /// Returns when a message comes: once, or as the faults say.
    fn times(&mut self, now: u64) -> Vec<u64> {
        let Faults { lost, again, .. } = self.scene.faults;
        let mut times = vec![now + self.trip()];
        if self.happens(lost) {
            times.clear();
        }
        for _ in 0..2 {
            if self.happens(again) {
                times.push(now + self.random.below(2 * self.terms.life_ns));
            }
        }
        times
    }

    fn hear(&mut self, now: u64, node: usize, call: u64, hot: Arc<Hot>, mut message: Message) {
        let micros = u128::from(now / 1000);
        let sent = message.ask;
        self.seen.second(now).messages += 1;
        if self.is(Mistake::EndsEarly) {
            message.life /= 2;
        }
        let [ignores, takes_back] =
            [Mistake::NumbersAreIgnored, Mistake::EndedLeaseIsReturned].map(|it| self.is(it));
        let server = self.server(key_of(&hot.user));
        let latest = server.latest(micros, message.node);
        if ignores {
            message.ask.number = sent.number.max(latest.map_or(0, |latest| latest + 1));
        }
        if takes_back && latest.is_none() {
            server.give_back(micros, sent.returns);
        }
        let [number, keeps, granted] = server.ask(micros, &message);
        let wait = match granted < sent.wants {
            true => server.wait(micros) as u64,
            false => 0,
        };
        let turn = server.mine as u64;
        let leased = Leased {
            answer: Answer {
                number: if ignores { sent.number } else { number },
                keeps,
                granted,
            },
            wait,
            turn,
            ban: 0,
        };
        for time in self.times(now) {
            let (hot, leased) = (Arc::clone(&hot), Some(leased));
            self.at(time, node, What::Answer { call, hot, leased });
        }
    }

    fn answer(&mut self, now: u64, node: usize, call: u64, hot: Arc<Hot>, leased: Option<Leased>) {
        let clock = self.clock(now, node);
        if let (Some(leased), true) = (leased, self.is(Mistake::AnswersAreReadTwice)) {
            let granted = leased.answer.granted;
            let until = hot.permits.pool.held().until_ns();
            hot.permits.pool.answered(clock, 0, granted, until, 1);
        }
        if !self.nodes[node].open.remove(&call) {
            return;
        }
        if self.is(Mistake::CountsFromTheAnswer) {
            let until = clock + self.terms.spendable_ns();
            hot.permits.pool.answered(clock, 0, 0, until, 1);
        }
        let leased = leased.ok_or(PAUSE);
        self.nodes[node].answers.push((hot, leased));
        self.look(now, node);
    }
}

fn key_of(user: &[u8]) -> u64 {
    u64::from_le_bytes(user.try_into().expect("8 bytes"))
}
