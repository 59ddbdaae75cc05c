//! Policies: several rules, all or nothing, with costs that are settled, places, queues and bans,
//! while the policy is reloaded.

mod model;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Request};
use tollgate_http::{Answers, Fields, LimitStates, RequestFacts};
use tollgate_tower::{ByPolicy, RateLimitLayer};
use tower::Layer;

use crate::accounts::flights::{Flights, Polled};
use crate::accounts::scripted::{Event, Script, Scripted};
use crate::accounts::{CLIENTS_OF_A_SEED, each_seed};
use crate::clock::{RuntimeClock, paused};
use crate::random::Random;
use model::{Known, Model, Stage, policy};

/// Sends requests to a layer, and compares each of its answers with what the model says.
async fn storm(seed: u64, texts: &[&str], wait: Option<(u64, usize)>) {
    let clock = RuntimeClock::new();
    let mut random = Random::new(seed);
    let live = Arc::new(policy(texts[0], clock));
    let mut layer = RateLimitLayer::policy(Arc::clone(&live)).fields(Fields::LIST);
    if let Some((time, requests)) = wait {
        let requests = u64::try_from(requests).unwrap();
        layer = layer.wait(Duration::from_millis(time), requests).unwrap();
    }
    let mut flights: Flights<ByPolicy<RuntimeClock>> =
        Flights::new(layer.layer(Scripted::default()));
    let mut model = Model {
        policy: policy(texts[0], clock),
        clock,
        answers: Answers::new().fields(Fields::LIST),
        wait,
        known: HashMap::new(),
    };
    let mut started = 0;
    while started < CLIENTS_OF_A_SEED || flights.len() > 0 {
        let some = flights.len() > 0;
        match random.below(32) {
            0..=8 if started < CLIENTS_OF_A_SEED => {
                start(started, &mut random, &mut flights, &mut model);
                started += 1;
            }
            9 | 10 if some => {
                let index = random.index(flights.len());
                let id = flights.id(index);
                flights.drop_at(index);
                if model.sleep(id).0 {
                    model.cancel(id);
                }
            }
            11..=13 => {
                tokio::time::advance(Duration::from_millis(random.below(12))).await;
            }
            14 => {
                let text = random.pick(texts);
                let (of_layer, of_model) = (live.reload_toml(text), model.policy.reload_toml(text));
                assert_eq!(of_layer.unwrap(), of_model.unwrap());
            }
            _ if some => poll(seed, random.index(flights.len()), &mut flights, &mut model),
            _ => {}
        }
        model.happened(flights.events());
    }
    assert!(model.known.is_empty());
    // What is left, for each key.
    for key in 0..3 {
        let request = request(key, 1).body(()).unwrap();
        loop {
            let facts = RequestFacts::new(&request);
            let left = [live.decide(&facts), model.policy.decide(&facts)];
            let states = left.each_ref().map(|it| LimitStates::of(it).to_vec());
            assert_eq!(states[0], states[1], "seed {seed}");
            if !left[0].is_allowed() {
                break;
            }
            std::mem::forget(left);
        }
    }
}

fn request(key: u64, weight: u64) -> http::request::Builder {
    Request::get("/")
        .header("x-weight", weight)
        .header("x-key", key)
}

/// Sends a request.
fn start(
    id: usize,
    random: &mut Random,
    flights: &mut Flights<ByPolicy<RuntimeClock>>,
    model: &mut Model,
) {
    let request = request(random.below(3), random.pick(&[1, 1, 1, 2, 3, 7, 40]));
    let request = request
        .extension(Script::random(id, random))
        .body(())
        .unwrap();
    let until = model
        .wait
        .map(|wait| model.clock.elapsed() + Duration::from_millis(wait.0));
    let known = Known {
        request: request.clone(),
        until,
        has_place: false,
        stage: Stage::Refused,
    };
    model.known.insert(id, known);
    let refusal = model.decide(id);
    let is_served = model.is_served_next(id) && !model.sleep(id).0;
    flights.call(id, request);
    let events = flights.events();
    assert_eq!(
        events.first() == Some(&Event::Called(id)),
        is_served,
        "{id}"
    );
    model.happened(events);
    if let Some(headers) = refusal {
        model.known.remove(&id);
        let index = flights.index_of(id).unwrap();
        assert_refused(flights.poll(index), &headers);
    }
}

fn assert_refused(polled: Polled, headers: &HeaderMap) {
    let Polled::Refused(answer) = polled else {
        panic!("it is refused");
    };
    assert_eq!(answer.headers(), headers);
}

/// Polls a request.
fn poll(seed: u64, index: usize, flights: &mut Flights<ByPolicy<RuntimeClock>>, model: &mut Model) {
    let id = flights.id(index);
    let (sleeps, is_over) = model.sleep(id);
    if !sleeps {
        if let Polled::Answered(parts) = flights.poll(index) {
            // A body may have ended with its answer.
            let known = model.known.get(&id).map(|known| &known.stage);
            if let Some(Stage::Allowed(decision, ..)) = known {
                let states = LimitStates::of(&**decision);
                let mut headers = HeaderMap::new();
                model.answers.write(states.iter().copied(), &mut headers);
                for name in ["ratelimit", "ratelimit-policy"] {
                    assert_eq!(
                        parts.headers.get(name),
                        headers.get(name),
                        "seed {seed}: {id}"
                    );
                }
            }
        }
        return;
    }
    let mut refusal = None;
    while is_over && refusal.is_none() && model.sleep(id).1 && !model.is_served_next(id) {
        refusal = model.decide(id);
    }
    let is_served = model.is_served_next(id) && (model.sleep(id).1 || !model.sleep(id).0);
    let polled = flights.poll(index);
    let events = flights.events();
    assert_eq!(
        events.first() == Some(&Event::Called(id)),
        is_served,
        "seed {seed}: {id}"
    );
    model.happened(events);
    match refusal {
        Some(headers) => {
            model.known.remove(&id);
            assert_refused(polled, &headers);
        }
        None => assert!(!matches!(polled, Polled::Refused(_)), "seed {seed}: {id}"),
    }
}

const RULES: [&str; 3] = [
    "apply = 'all'
     [[rule]]
     name = 'login'
     key = 'header:x-key'
     capacity = 64
     limit = '50/s burst 10'
     count = 'failures'
     [[rule]]
     name = 'cost'
     limit = ['100/s burst 40', '4k/min burst 100']
     cost = { estimate = 'header:x-weight', default = 1, settle = 'response-header:x-cost' }
     [[rule]]
     name = 'places'
     key = 'header:x-key'
     capacity = 64
     limit = 'concurrency 3'
     [[rule]]
     name = 'trial'
     limit = '10/s'
     shadow = true",
    "apply = 'all'
     [[rule]]
     name = 'places'
     key = 'header:x-key'
     capacity = 64
     limit = 'concurrency 2'
     [[rule]]
     name = 'login'
     key = 'header:x-key'
     capacity = 64
     limit = '20/s burst 5'
     count = 'failures'
     [[rule]]
     name = 'cost'
     limit = ['100/s burst 40', '4k/min burst 100']
     cost = { estimate = 'header:x-weight', default = 1, settle = 'response-bytes' }",
    "apply = 'all'
     [[rule]]
     name = 'login'
     key = 'header:x-key'
     capacity = 64
     limit = '50/s burst 10'
     count = 'successes'
     [[rule]]
     name = 'time'
     limit = '200/s burst 60'
     cost = { estimate = 'header:x-weight', default = 1, settle = 'response-time-ms' }
     [[rule]]
     name = 'all'
     limit = 'concurrency 6'",
];

/// One of several, by the seed.
fn by_seed<T: Copy>(seed: u64, of: &[T]) -> T {
    of[usize::try_from(seed).unwrap() % of.len()]
}

#[test]
fn rules_together() {
    each_seed(|seed| paused().block_on(storm(seed, &[by_seed(seed, &RULES)], None)));
}

#[test]
fn rules_that_are_reloaded_while_requests_are_served() {
    each_seed(|seed| paused().block_on(storm(seed, &RULES, None)));
}

#[test]
fn rules_that_are_reloaded_while_requests_wait() {
    each_seed(|seed| paused().block_on(storm(seed, &RULES, Some((200, 5)))));
}

/// One rate without a key is a decision without a composition.
#[test]
fn a_rule_alone() {
    each_seed(|seed| {
        let count = by_seed(seed, &["all", "failures", "successes"]);
        let text = format!("[[rule]]\nname = 'a'\nlimit = '50/s burst 10'\ncount = '{count}'");
        paused().block_on(storm(seed, &[&text], Some((200, 5))));
    });
}

const QUEUE: &str = "
    apply = 'all'
    [[rule]]
    name = 'queue'
    limit = 'leaky-queue 50/s burst 8 free 2'
    count = 'failures'
    [[rule]]
    name = 'places'
    key = 'header:x-key'
     capacity = 64
    limit = 'concurrency 3'";

#[test]
fn queues_of_rules_delay_requests_and_keep_what_sleepers_drop() {
    each_seed(|seed| {
        let wait = by_seed(seed, &[None, Some((300, 5))]);
        paused().block_on(storm(seed, &[QUEUE], wait));
    });
}

const BAN: &str = "
    [[rule]]
    name = 'login'
    key = 'header:x-key'
     capacity = 64
    limit = '50/s burst 4'
    count = 'failures'
    ban = { after = 4, for = '60ms', within = '100ms' }";

#[test]
fn a_request_that_waits_does_not_count_towards_a_ban() {
    each_seed(|seed| {
        let wait = by_seed(seed, &[None, Some((200, 5))]);
        paused().block_on(storm(seed, &[BAN], wait));
    });
}
