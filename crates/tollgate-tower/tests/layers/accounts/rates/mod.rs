//! Rates: counts, costs that are settled, lines and queues.

mod model;

use std::collections::HashMap;
use std::sync::Arc;

use http::{Request, Response};
use tollgate::clock::Clock;
use tollgate::keyed::Key;
use tollgate::traits::ReserveLimiter;
use tollgate::{Keyed, LeakyBucket, Limiter, Tick, TokenBucket};
use tollgate_http::RequestFacts;
use tollgate_tower::{CountedRequests, Rate, RateLimitLayer, Source};
use tower::Layer;

use crate::accounts::flights::{Flights, Polled};
use crate::accounts::scripted::{Event, Script, Scripted};
use crate::accounts::{CLIENTS_OF_A_SEED, each_seed};
use crate::clock::{RuntimeClock, paused};
use crate::random::Random;
use model::{Case, Expected, KEYS, Model, Settle, millis, number, quota};

/// Sends requests to a layer, and compares its limiters with those of the model after each step.
async fn storm<S, L>(
    seed: u64,
    clock: RuntimeClock,
    case: Case,
    layer: RateLimitLayer<Rate<S>>,
    (limiters, reference): (Vec<L>, Vec<L>),
    waiting: fn(&L, Tick) -> u64,
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
            let left = [limiter, reference].map(|it| (it.available_at(now), waiting(it, now)));
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
            let both = (vec![limiter], vec![reference]);
            storm(seed, clock, case, layer, both, |it, now| {
                it.at(now).waiting()
            })
            .await;
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
            let both = (vec![limiter], vec![reference]);
            storm(seed, clock, case, layer, both, |it, now| {
                it.at(now).waiting()
            })
            .await;
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
                let keys = (0..KEYS).map(|key| table.key_owned(&key));
                keys.collect::<Vec<Key<_>>>()
            });
            let both = (limiters, reference);
            storm(seed, clock, case, layer, both, |it, now| {
                it.at(now).waiting()
            })
            .await;
        });
    });
}

const PLAIN: Case = Case {
    count: CountedRequests::All,
    settle: Settle::Nothing,
    wait: None,
};

#[test]
fn one_limit_without_more() {
    shared(PLAIN);
}

#[test]
fn failures_count() {
    let count = CountedRequests::Failures;
    shared(Case { count, ..PLAIN });
    keyed(Case { count, ..PLAIN });
}

#[test]
fn successes_count() {
    let count = CountedRequests::Successes;
    shared(Case { count, ..PLAIN });
    keyed(Case { count, ..PLAIN });
}

#[test]
fn costs_are_settled_by_bytes_headers_and_time() {
    for settle in [Settle::Bytes, Settle::Header, Settle::Time] {
        shared(Case { settle, ..PLAIN });
    }
    keyed(Case {
        count: CountedRequests::Failures,
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
    let count = CountedRequests::Failures;
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
        count: CountedRequests::Successes,
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
        count: CountedRequests::Failures,
        ..PLAIN
    });
}
