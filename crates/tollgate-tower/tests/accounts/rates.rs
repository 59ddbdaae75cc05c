//! Rates: counts, costs that are settled, lines and queues.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use tollgate::clock::Clock;
use tollgate::keyed::OwnedKey;
use tollgate::traits::{ReserveLimiter, SettleLimiter};
use tollgate::{Granted, Keyed, LeakyBucket, Limiter, Quota, TokenBucket};
use tollgate_http::RequestFacts;
use tollgate_tower::{Count, Ended, Rate, RateLimitLayer, Source};
use tower::Layer;

use crate::clock::{RuntimeClock, paused};
use crate::flights::{Flights, Polled};
use crate::random::Random;
use crate::scripted::{Event, Over, Script, Scripted};
use crate::{CLIENTS_OF_A_SEED, each_seed};

/// What is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Settle {
    Nothing,
    Bytes,
    Header,
    Time,
}

#[derive(Debug, Clone, Copy)]
struct Case {
    count: Count,
    settle: Settle,
    /// For how long requests may wait, in milliseconds, and how many.
    wait: Option<(u64, u64)>,
}

const KEYS: u64 = 3;

/// Ten permits at once, and one every 20 ms.
fn quota() -> Quota {
    Quota::per_second(50).burst(10)
}

fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn number(facts: &RequestFacts<'_>, name: &str) -> Option<u64> {
    facts.header(name)?.parse().ok()
}

impl Case {
    /// A layer with these settings.
    fn of<S>(self, layer: RateLimitLayer<Rate<S>>) -> RateLimitLayer<Rate<S>>
    where
        S: Source<Owned: ReserveLimiter>,
    {
        let layer = layer.count(self.count);
        let layer = layer.cost(|facts| number(facts, "x-weight").unwrap_or(1));
        let layer = match self.settle {
            Settle::Nothing => layer,
            Settle::Bytes => layer.settle(|ended| ended.bytes()),
            Settle::Header => {
                layer.settle(|ended| ended.header_number("x-cost").unwrap_or(ended.taken()))
            }
            Settle::Time => layer.settle(time),
        };
        match self.wait {
            Some((time, requests)) => layer.wait(millis(time), requests).unwrap(),
            None => layer,
        }
    }

    /// What a request cost that is over.
    fn actual(self, over: &Over, granted: &Granted, elapsed: Duration) -> u64 {
        match (self.count, over.is_failure()) {
            (Count::Failures, false) | (Count::Successes, true) => return 0,
            _ => {}
        }
        match self.settle {
            Settle::Nothing => granted.n(),
            Settle::Bytes => over.bytes,
            Settle::Header if over.status.is_none() => granted.n(),
            Settle::Header => over.cost,
            Settle::Time => u64::try_from(elapsed.as_millis() / 16).unwrap(),
        }
    }
}

fn time(ended: &Ended<'_>) -> u64 {
    u64::try_from(ended.elapsed().as_millis() / 16).unwrap()
}

/// What a request holds, as the test knows it.
#[derive(Debug)]
struct Held {
    key: u64,
    granted: Granted,
    /// When it is served, if it sleeps, in milliseconds.
    asleep_until: Option<u128>,
    has_place: bool,
}

/// What a request is expected to do.
#[derive(Debug, PartialEq, Eq)]
enum Expected {
    Served,
    Asleep,
    /// Refused, with this `Retry-After`.
    Refused(Option<u64>),
}

/// The same limits, kept by hand.
struct Model<L> {
    case: Case,
    /// Whether requests were delayed, as only a queue does.
    has_delayed: bool,
    clock: RuntimeClock,
    limiters: Vec<L>,
    held: HashMap<usize, Held>,
}

impl<L: ReserveLimiter<Clock = RuntimeClock>> Model<L> {
    fn call(&mut self, id: usize, key: u64, weight: u64) -> Expected {
        let limiter = &self.limiters[usize::try_from(key).unwrap()];
        let now = self.clock.now();
        let places = self.held.values().filter(|held| held.has_place).count();
        let (granted, has_place) = match (limiter.try_acquire_n_at(weight, now), self.case.wait) {
            (Ok(granted), _) => (Some(granted), false),
            (Err(denied), Some((time, requests))) => {
                let may_wait = denied
                    .retry_after()
                    .is_some_and(|wait| wait <= millis(time));
                let has_place = places < usize::try_from(requests).unwrap();
                let latest = now.saturating_add(millis(time));
                let reserve = || limiter.reserve_until_at(weight, latest, now).ok();
                ((may_wait && has_place).then(reserve).flatten(), true)
            }
            (Err(_), None) => (None, false),
        };
        let Some(granted) = granted else {
            let denied = limiter.check_n_at(weight, now).unwrap_err();
            return Expected::Refused(denied.retry_after_secs());
        };
        let delay = granted.delay();
        let sleeps = delay > Duration::ZERO;
        self.has_delayed |= sleeps;
        // The timer has a resolution of a millisecond.
        let wakes = (self.clock.elapsed() + delay)
            .as_nanos()
            .div_ceil(1_000_000);
        let held = Held {
            key,
            granted,
            asleep_until: sleeps.then_some(wakes),
            has_place: has_place && sleeps,
        };
        self.held.insert(id, held);
        match sleeps {
            true => Expected::Asleep,
            false => Expected::Served,
        }
    }

    /// Whether a request sleeps that may be served now.
    fn is_due(&self, id: usize) -> bool {
        let until = self.held.get(&id).and_then(|held| held.asleep_until);
        until.is_some_and(|until| until <= self.clock.elapsed().as_millis())
    }

    fn is_asleep(&self, id: usize) -> bool {
        let held = self.held.get(&id);
        held.is_some_and(|held| held.asleep_until.is_some())
    }

    fn happened(&mut self, events: Vec<Event>) {
        for event in events {
            match event {
                Event::Called(id) => {
                    let held = self.held.get_mut(&id).unwrap();
                    held.asleep_until = None;
                    held.has_place = false;
                }
                Event::Over(over) => {
                    let held = self.held.remove(&over.id).unwrap();
                    self.settle(&over, held);
                }
            }
        }
    }

    fn settle(&self, over: &Over, held: Held) {
        let limiter = &self.limiters[usize::try_from(held.key).unwrap()];
        let now = self.clock.now();
        let elapsed = now.saturating_since(held.granted.at());
        let actual = self.case.actual(over, &held.granted, elapsed);
        let taken = held.granted.n();
        if actual < taken && self.case.wait.is_some() {
            limiter.cancel_at(held.granted, taken - actual, now);
        } else if actual == 0 && self.has_delayed {
            limiter.roll_back_at(held.granted, now);
        } else {
            limiter.settle_at(held.granted, actual, now);
        }
    }

    /// The client went away while it slept.
    fn cancel(&mut self, id: usize) {
        let held = self.held.remove(&id).unwrap();
        let limiter = &self.limiters[usize::try_from(held.key).unwrap()];
        let now = self.clock.now();
        match self.case.wait {
            Some(_) => {
                let n = held.granted.n();
                limiter.cancel_at(held.granted, n, now);
            }
            // A request behind it was told when to go, so it may get nothing back.
            None => {
                limiter.roll_back_at(held.granted, now);
            }
        }
    }
}

/// Sends requests to a layer, and compares its limiters with those of the model after each step.
async fn storm<S, L>(
    seed: u64,
    clock: RuntimeClock,
    case: Case,
    layer: RateLimitLayer<Rate<S>>,
    (limiters, reference): (Vec<L>, Vec<L>),
) where
    S: Source<Owned: ReserveLimiter>,
    L: ReserveLimiter<Clock = RuntimeClock>,
{
    let mut random = Random::new(seed);
    let mut flights = Flights::new(case.of(layer).layer(Scripted::default()));
    let mut model = Model {
        case,
        has_delayed: false,
        clock,
        limiters: reference,
        held: HashMap::new(),
    };
    let mut started = 0;
    while started < CLIENTS_OF_A_SEED || flights.len() > 0 {
        let some = flights.len() > 0;
        match random.below(16) {
            0..=3 if started < CLIENTS_OF_A_SEED => {
                start(started, &mut random, &mut flights, &mut model);
                started += 1;
            }
            4 if some => {
                let index = random.index(flights.len());
                let id = flights.id(index);
                flights.drop_at(index);
                if model.is_asleep(id) {
                    model.cancel(id);
                }
            }
            5 | 6 => tokio::time::advance(millis(random.below(12))).await,
            _ if some => {
                let index = random.index(flights.len());
                let (id, is_asleep) = (flights.id(index), model.is_asleep(flights.id(index)));
                let is_due = model.is_due(id);
                let polled = flights.poll(index);
                let events = flights.events();
                assert!(
                    !matches!(polled, Polled::Refused(_)),
                    "seed {seed}: {id} is refused"
                );
                if is_asleep {
                    let is_called = events.first() == Some(&Event::Called(id));
                    assert_eq!(is_called, is_due, "seed {seed}: {id} is served when due");
                }
                model.happened(events);
            }
            _ => {}
        }
        model.happened(flights.events());
        let now = clock.now();
        for (key, (limiter, reference)) in limiters.iter().zip(&model.limiters).enumerate() {
            let left = [limiter, reference].map(|it| (it.available_at(now), it.waiting_at(now)));
            assert_eq!(left[0], left[1], "seed {seed}, key {key}");
        }
    }
    assert!(model.held.is_empty());
}

/// Sends a request.
fn start<S, L>(id: usize, random: &mut Random, flights: &mut Flights<Rate<S>>, model: &mut Model<L>)
where
    S: Source,
    L: ReserveLimiter<Clock = RuntimeClock>,
{
    let key = random.below(u64::try_from(model.limiters.len()).unwrap());
    let weight = random.pick(&[1, 1, 1, 2, 3, 7, 11]);
    let request = Request::get("/")
        .header("x-weight", weight)
        .header("x-key", key);
    let request = request.extension(Script::random(id, random));
    let expected = model.call(id, key, weight);
    flights.call(id, request.body(()).unwrap());
    let events = flights.events();
    let is_called = events.first() == Some(&Event::Called(id));
    assert_eq!(
        is_called,
        expected == Expected::Served,
        "{id}: {expected:?}"
    );
    model.happened(events);
    if let Expected::Refused(wait) = expected {
        let index = flights.index_of(id).unwrap();
        let Polled::Refused(answer) = flights.poll(index) else {
            panic!("{id} is refused");
        };
        assert_eq!(retry_after(&answer), wait);
    }
}

fn retry_after<B>(answer: &Response<B>) -> Option<u64> {
    let value = answer.headers().get("retry-after")?;
    value.to_str().unwrap().parse().ok()
}

/// One limit for all requests.
fn shared(case: Case) {
    each_seed(|seed| {
        paused().block_on(async {
            let clock = RuntimeClock::new();
            let bucket = TokenBucket::new(quota()).unwrap();
            let [limiter, reference] =
                [(); 2].map(|()| Arc::new(Limiter::with_clock(bucket, clock)));
            let layer = RateLimitLayer::shared(Arc::clone(&limiter));
            storm(seed, clock, case, layer, (vec![limiter], vec![reference])).await;
        });
    });
}

/// A queue for all requests, which delays them.
fn queue(case: Case) {
    each_seed(|seed| {
        paused().block_on(async {
            let clock = RuntimeClock::new();
            let queue = LeakyBucket::queue(quota()).unwrap().free(2);
            let [limiter, reference] =
                [(); 2].map(|()| Arc::new(Limiter::with_clock(queue, clock)));
            let layer = RateLimitLayer::shared(Arc::clone(&limiter));
            storm(seed, clock, case, layer, (vec![limiter], vec![reference])).await;
        });
    });
}

/// A limit for each key.
fn keyed(case: Case) {
    each_seed(|seed| {
        paused().block_on(async {
            let clock = RuntimeClock::new();
            let bucket = TokenBucket::new(quota()).unwrap();
            let tables = [(); 2].map(|()| Arc::new(Keyed::with_clock(bucket, 100, clock).unwrap()));
            let layer =
                RateLimitLayer::by_key(Arc::clone(&tables[0]), |facts: &RequestFacts<'_>| {
                    number(facts, "x-key")
                });
            let [limiters, reference] = tables.each_ref().map(|table| {
                let keys: Vec<OwnedKey<_, _>> =
                    (0..KEYS).map(|key| table.key_owned(&key)).collect();
                keys
            });
            storm(seed, clock, case, layer, (limiters, reference)).await;
        });
    });
}

const PLAIN: Case = Case {
    count: Count::All,
    settle: Settle::Nothing,
    wait: None,
};

#[test]
fn one_limit_without_more() {
    shared(PLAIN);
}

#[test]
fn failures_count() {
    let count = Count::Failures;
    shared(Case { count, ..PLAIN });
    keyed(Case { count, ..PLAIN });
}

#[test]
fn successes_count() {
    let count = Count::Successes;
    shared(Case { count, ..PLAIN });
    keyed(Case { count, ..PLAIN });
}

#[test]
fn costs_are_settled_by_bytes_headers_and_time() {
    for settle in [Settle::Bytes, Settle::Header, Settle::Time] {
        shared(Case { settle, ..PLAIN });
    }
    keyed(Case {
        count: Count::Failures,
        settle: Settle::Header,
        ..PLAIN
    });
}

#[test]
fn requests_that_wait_get_and_give_back_what_they_reserve() {
    let wait = Some((300, 5));
    shared(Case { wait, ..PLAIN });
    keyed(Case { wait, ..PLAIN });
}

#[test]
fn requests_that_wait_are_settled() {
    let wait = Some((300, 5));
    let count = Count::Failures;
    shared(Case {
        wait,
        count,
        ..PLAIN
    });
    let settle = Settle::Bytes;
    shared(Case {
        wait,
        settle,
        ..PLAIN
    });
    keyed(Case {
        wait,
        count,
        settle,
    });
}

#[test]
fn queues_delay_requests_and_get_back_what_the_last_sleeper_drops() {
    queue(PLAIN);
    queue(Case {
        count: Count::Successes,
        ..PLAIN
    });
    queue(Case {
        settle: Settle::Header,
        ..PLAIN
    });
}

#[test]
fn queues_with_a_line_before_them() {
    let wait = Some((300, 5));
    queue(Case { wait, ..PLAIN });
    queue(Case {
        wait,
        count: Count::Failures,
        ..PLAIN
    });
}
