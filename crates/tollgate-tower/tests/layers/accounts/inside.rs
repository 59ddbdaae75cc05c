//! How many requests are served at once.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use tollgate::Concurrency;
use tollgate::keyed::KeyedConcurrency;
use tollgate_http::RequestFacts;
use tollgate_tower::{Inside, RateLimitLayer};
use tower::Layer;

use crate::accounts::flights::{Flights, Polled};
use crate::accounts::scripted::{Event, Script, Scripted};
use crate::accounts::{CLIENTS_OF_A_SEED, each_seed};
use crate::clock::{RuntimeClock, paused};
use crate::random::Random;

const LIMIT: usize = 5;

/// How long requests may wait, in milliseconds, and how many.
const WAIT: (u64, usize) = (40, 4);

/// The line before the limit, kept by hand.
#[derive(Debug, Default)]
struct Model {
    waits: bool,
    serving: HashSet<usize>,
    /// Requests that wait, and when they give up, in milliseconds.
    waiting: HashMap<usize, u128>,
    /// Those that stand in line. The others were not polled yet.
    line: VecDeque<usize>,
    /// Those that have room, and were not polled since.
    granted: HashSet<usize>,
}

#[derive(Debug, PartialEq, Eq)]
enum Expected {
    Served,
    Waits,
    Refused,
}

impl Model {
    fn inside(&self) -> usize {
        self.serving.len() + self.granted.len()
    }

    fn has_room(&self) -> bool {
        self.inside() < LIMIT && self.line.is_empty()
    }

    fn call(&mut self, id: usize, now: u128) -> Expected {
        match (self.has_room(), self.waits && self.waiting.len() < WAIT.1) {
            (true, _) => Expected::Served,
            (false, true) => {
                self.waiting.insert(id, now + u128::from(WAIT.0));
                Expected::Waits
            }
            (false, false) => Expected::Refused,
        }
    }

    /// What a poll of a request does that waits.
    fn poll(&mut self, id: usize, now: u128) -> Expected {
        let gives_up = self.waiting[&id] <= now;
        let is_served = self.granted.contains(&id) || (!self.line.contains(&id) && self.has_room());
        if is_served {
            return Expected::Served;
        }
        if gives_up {
            self.leave(id);
            return Expected::Refused;
        }
        if !self.line.contains(&id) {
            self.line.push_back(id);
        }
        Expected::Waits
    }

    /// A request that waits goes away.
    fn leave(&mut self, id: usize) {
        self.waiting.remove(&id);
        self.line.retain(|other| *other != id);
        if self.granted.remove(&id) {
            self.let_in();
        }
    }

    fn let_in(&mut self) {
        if self.inside() < LIMIT {
            self.granted.extend(self.line.pop_front());
        }
    }

    fn happened(&mut self, events: Vec<Event>) {
        for event in events {
            match event {
                Event::Called(id) => {
                    self.waiting.remove(&id);
                    self.granted.remove(&id);
                    self.serving.insert(id);
                }
                Event::Over(over) => {
                    assert!(self.serving.remove(&over.id));
                    self.let_in();
                }
            }
        }
    }
}

async fn storm(seed: u64, waits: bool) {
    let clock = RuntimeClock::new();
    let mut random = Random::new(seed);
    let limiter = Arc::new(Concurrency::new(u64::try_from(LIMIT).unwrap()).unwrap());
    let mut layer = RateLimitLayer::concurrency(Arc::clone(&limiter));
    if waits {
        let requests = u64::try_from(WAIT.1).unwrap();
        layer = layer.wait(Duration::from_millis(WAIT.0), requests).unwrap();
    }
    let mut flights = Flights::new(layer.layer(Scripted::default()));
    let mut model = Model {
        waits,
        ..Model::default()
    };
    let mut started = 0;
    while started < CLIENTS_OF_A_SEED || flights.len() > 0 {
        let now = clock.elapsed().as_millis();
        let some = flights.len() > 0;
        match random.below(16) {
            0..=4 if started < CLIENTS_OF_A_SEED => {
                start(started, now, &mut random, &mut flights, &mut model);
                started += 1;
            }
            5 if some => {
                let index = random.index(flights.len());
                let id = flights.id(index);
                flights.drop_at(index);
                if model.waiting.contains_key(&id) {
                    model.leave(id);
                }
            }
            6 => tokio::time::advance(Duration::from_millis(random.below(12))).await,
            _ if some => {
                let index = random.index(flights.len());
                let id = flights.id(index);
                let expected = model.waiting.contains_key(&id).then(|| model.poll(id, now));
                let polled = flights.poll(index);
                let events = flights.events();
                let is_called = events.first() == Some(&Event::Called(id));
                let is_refused = match polled {
                    Polled::Refused(answer) => {
                        assert_eq!(answer.status(), 503);
                        assert!(!answer.headers().contains_key("retry-after"));
                        true
                    }
                    _ => false,
                };
                let expected = [
                    expected == Some(Expected::Served),
                    expected == Some(Expected::Refused),
                ];
                assert_eq!([is_called, is_refused], expected, "seed {seed}: {id}");
                model.happened(events);
            }
            _ => {}
        }
        model.happened(flights.events());
        let now = (limiter.inside(), limiter.waiting());
        let inside = u64::try_from(model.inside()).unwrap();
        assert_eq!(now, (inside, model.line.len()), "seed {seed}");
    }
    assert_eq!((limiter.inside(), limiter.waiting()), (0, 0));
    assert!(model.serving.is_empty() && model.waiting.is_empty());
}

/// Sends a request.
fn start(
    id: usize,
    now: u128,
    random: &mut Random,
    flights: &mut Flights<Inside>,
    model: &mut Model,
) {
    let request = Request::get("/").extension(Script::random(id, random));
    let expected = model.call(id, now);
    flights.call(id, request.body(()).unwrap());
    let events = flights.events();
    let is_called = events.first() == Some(&Event::Called(id));
    assert_eq!(
        is_called,
        expected == Expected::Served,
        "{id}: {expected:?}"
    );
    model.happened(events);
    if expected == Expected::Refused {
        let index = flights.index_of(id).unwrap();
        assert!(matches!(flights.poll(index), Polled::Refused(_)), "{id}");
    }
}

#[test]
fn places_without_a_line() {
    each_seed(|seed| paused().block_on(storm(seed, false)));
}

#[test]
fn places_with_a_line() {
    each_seed(|seed| paused().block_on(storm(seed, true)));
}

#[test]
fn places_of_each_key() {
    let key = |facts: &RequestFacts<'_>| {
        let key = facts.header("x-key")?;
        Ok(key.map(|key| key.into_owned()))
    };
    each_seed(|seed| {
        let mut random = Random::new(seed);
        let limiter = Arc::new(KeyedConcurrency::new(2, 100).unwrap());
        let layer = RateLimitLayer::concurrency_by_key(Arc::clone(&limiter), key);
        let mut flights = Flights::new(layer.layer(Scripted::default()));
        let mut serving = HashMap::new();
        let mut started = 0;
        while started < CLIENTS_OF_A_SEED || flights.len() > 0 {
            match random.below(4) {
                0 if started < CLIENTS_OF_A_SEED => {
                    let id = started;
                    started += 1;
                    let key = random.pick(&["a", "b", "c"]);
                    let request = Request::get("/").header("x-key", key);
                    let request = request.extension(Script::random(id, &mut random));
                    let inside = serving.values().filter(|other| **other == key).count();
                    flights.call(id, request.body(()).unwrap());
                    let events = flights.events();
                    assert_eq!(events.first() == Some(&Event::Called(id)), inside < 2);
                    if inside < 2 {
                        serving.insert(id, key);
                    }
                    happened(&mut serving, events);
                }
                1 if flights.len() > 0 && random.below(4) == 0 => {
                    let index = random.index(flights.len());
                    flights.drop_at(index);
                }
                _ if flights.len() > 0 => {
                    let index = random.index(flights.len());
                    if let Polled::Refused(answer) = flights.poll(index) {
                        assert_eq!(answer.status(), 503);
                    }
                }
                _ => {}
            }
            happened(&mut serving, flights.events());
            for key in ["a", "b", "c"] {
                let inside = serving.values().filter(|other| **other == key).count();
                let now = limiter.inside(key);
                assert_eq!(now, u64::try_from(inside).unwrap(), "seed {seed}");
            }
        }
        assert!(serving.is_empty());
    });
}

fn happened(serving: &mut HashMap<usize, &str>, events: Vec<Event>) {
    for event in events {
        if let Event::Over(over) = event {
            assert!(serving.remove(&over.id).is_some());
        }
    }
}
