//! Policies whose stores answer later. A client may go away while they decide.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use tollgate::ManualClock;
use tollgate_http::RequestFacts;
use tollgate_policy::redis::RedisStore;
use tollgate_policy::{LivePolicy, Policy, PolicyClock};
use tollgate_redis::Keys;
use tollgate_tower::{ByPolicy, RateLimitLayer};
use tower::Layer;

use crate::accounts::flights::{Flights, Polled};
use crate::accounts::scripted::{Event, Over, Script, Scripted};
use crate::accounts::store::SlowStore;
use crate::accounts::{CLIENTS_OF_A_SEED, each_seed};
use crate::clock::paused;
use crate::random::Random;

fn request(weight: u64) -> http::request::Builder {
    Request::get("/").header("x-weight", weight)
}

/// Lets the tasks of the layer end.
async fn settle() {
    let metrics = tokio::runtime::Handle::current().metrics();
    while metrics.num_alive_tasks() > 0 {
        tokio::task::yield_now().await;
    }
}

/// Sends requests, and drops some. Returns how each of those ended that were served, with its
/// weight.
async fn storm<C: PolicyClock>(seed: u64, layer: RateLimitLayer<ByPolicy<C>>) -> Vec<(u64, Over)> {
    let mut random = Random::new(seed);
    let mut flights = Flights::new(layer.layer(Scripted::default()));
    let mut weights = HashMap::new();
    let mut ended = Vec::new();
    let mut started = 0;
    while started < CLIENTS_OF_A_SEED || flights.len() > 0 {
        let some = flights.len() > 0;
        match random.below(16) {
            0..=3 if started < CLIENTS_OF_A_SEED => {
                let weight = random.pick(&[1, 1, 1, 2, 3]);
                let script = Script::random(started, &mut random);
                flights.call(started, request(weight).extension(script).body(()).unwrap());
                weights.insert(started, weight);
                started += 1;
            }
            4 | 5 if some => {
                let index = random.index(flights.len());
                flights.drop_at(index);
            }
            6 => tokio::time::advance(Duration::from_millis(random.below(4))).await,
            _ if some => {
                let index = random.index(flights.len());
                flights.poll(index);
            }
            _ => {}
        }
        for event in flights.events() {
            if let Event::Over(over) = event {
                ended.push((weights[&over.id], over));
            }
        }
    }
    settle().await;
    ended
}

/// Returns how many more requests a policy admits, each of which stays.
async fn admits<C: PolicyClock>(live: &LivePolicy<C>) -> u64 {
    let request = request(1).body(()).unwrap();
    let mut admitted = Vec::new();
    loop {
        let decision = live.decide_async(&RequestFacts::new(&request)).await;
        if !decision.is_allowed() {
            return u64::try_from(admitted.len()).unwrap();
        }
        admitted.push(decision);
    }
}

/// What is kept of a request whose cost is settled by `x-cost`.
fn settled(weight: u64, over: &Over) -> u64 {
    match over.status {
        Some(_) => over.cost,
        None => weight,
    }
}

/// Whether a limit of failures keeps the permit of a request.
fn failed(over: &Over) -> u64 {
    u64::from(over.is_failure() || over.is_unanswered())
}

const TOGETHER: &str = "
    apply = 'all'
    [[rule]]
    name = 'here'
    limit = '1k/h'
    count = 'failures'
    [[rule]]
    name = 'places'
    limit = 'concurrency 12'
    [[rule]]
    name = 'near'
    store = 'near'
    fallback = 'closed'
    limit = '900'
    cost = { estimate = 'header:x-weight', default = 1, settle = 'response-header:x-cost' }
    [[rule]]
    name = 'far'
    store = 'far'
    fallback = 'closed'
    limit = '60'
    count = 'failures'";

#[test]
fn what_stores_grant_to_requests_that_are_dropped_comes_back() {
    each_seed(|seed| {
        paused().block_on(async {
            let (near, far) = (SlowStore::new(seed), SlowStore::new(seed + 1000));
            let builder = Policy::builder().clock(ManualClock::new());
            let builder = builder.store("near", near.clone());
            let builder = builder.store("far", far.clone());
            let live = Arc::new(LivePolicy::new(builder.build_toml(TOGETHER).unwrap()));
            let mut layer = RateLimitLayer::policy(Arc::clone(&live));
            if seed % 2 == 0 {
                layer = layer.wait(Duration::from_millis(20), 3).unwrap();
            }
            let ended = storm(seed, layer).await;
            assert!(ended.len() > 8, "{}", ended.len());

            let of_near: u64 = ended
                .iter()
                .map(|(weight, over)| settled(*weight, over))
                .sum();
            let of_far: u64 = ended.iter().map(|(_, over)| failed(over)).sum();
            assert_eq!(
                (near.taken(), far.taken()),
                (of_near, of_far),
                "seed {seed}"
            );
            // In memory as well: twelve are inside at once, and no failure is forgotten.
            let alone = "[[rule]]\nname = 'here'\nlimit = '1k/h'\ncount = 'failures'";
            let left = (900_u64.saturating_sub(of_near))
                .min(60 - of_far.min(60))
                .min(12);
            assert_eq!(admits(&live).await, left, "seed {seed}");
            let _ = live.reload_toml(alone).unwrap();
            assert_eq!(admits(&live).await, 1000 - of_far - left, "seed {seed}");
        });
    });
}

#[test]
fn what_a_fallback_grants_to_requests_that_are_dropped_comes_back() {
    let text = "
        [[rule]]
        name = 'redis'
        store = 'redis'
        limit = '1/d'
        fallback = { open = { at_most = 150 } }
        cost = { estimate = 'header:x-weight', default = 1 }
        count = 'failures'
        also = ['places']
        [[rule]]
        name = 'places'
        when = 'never'
        limit = 'concurrency 200'";
    each_seed(|seed| {
        paused().block_on(async {
            let store = RedisStore::without_server(Keys::new("tower").unwrap());
            let builder = Policy::builder().clock(ManualClock::new());
            let policy = builder.store("redis", store).build_toml(text).unwrap();
            let live = Arc::new(LivePolicy::new(policy));
            let ended = storm(seed, RateLimitLayer::policy(Arc::clone(&live))).await;
            assert!(ended.len() > CLIENTS_OF_A_SEED / 4, "{}", ended.len());
            let kept: u64 = ended
                .iter()
                .map(|(weight, over)| weight * failed(over))
                .sum();
            assert_eq!(admits(&live).await, 150 - kept, "seed {seed}");
        });
    });
}

/// A request that finds the line full is refused at once, and does not ask again and again.
#[test]
fn a_store_is_asked_once_if_the_line_is_full() {
    paused().block_on(async {
        let store = SlowStore::new(1);
        let text = "[[rule]]\nname = 'a'\nstore = 'slow'\nfallback = 'closed'\nlimit = '1'";
        let builder = Policy::builder().store("slow", store.clone());
        let live = LivePolicy::new(builder.build_toml(text).unwrap());
        let layer = RateLimitLayer::policy(live)
            .wait(Duration::from_secs(9), 1)
            .unwrap();
        let mut flights = Flights::new(layer.layer(Scripted::default()));
        let mut random = Random::new(1);
        let mut send = |id: usize| {
            let script = Script::random(id, &mut random);
            flights.call(id, request(1).extension(script).body(()).unwrap());
            let polls = (0..50).map(|_| flights.index_of(id).map(|index| flights.poll(index)));
            polls
                .flatten()
                .any(|polled| matches!(polled, Polled::Refused(_)))
        };
        assert_eq!((send(0), store.calls()), (false, 1));
        // It waits.
        assert_eq!((send(1), store.calls()), (false, 2));
        for id in 2..20 {
            assert!(send(id));
            assert_eq!(store.calls(), 1 + u64::try_from(id).unwrap());
        }
    });
}

/// Only a denial that a request waits for does not count towards a ban.
#[test]
fn a_denial_by_a_store_counts_towards_a_ban_if_the_line_is_full() {
    paused().block_on(async {
        let store = SlowStore::new(1);
        let text = "[[rule]]\nname = 'a'\nkey = 'header:x-weight'\nstore = 'slow'\nfallback = 'closed'\nlimit = '1'\n\
                    ban = { after = 3, for = '1h', within = '1h' }";
        let builder = Policy::builder().clock(ManualClock::new());
        let builder = builder.store("slow", store);
        let live = LivePolicy::new(builder.build_toml(text).unwrap());
        let layer = RateLimitLayer::policy(live)
            .wait(Duration::from_secs(9), 1)
            .unwrap();
        let mut flights = Flights::new(layer.layer(Scripted::default()));
        let mut random = Random::new(1);
        let mut waits = Vec::new();
        for id in 0..6 {
            let script = Script::random(id, &mut random);
            flights.call(id, request(1).extension(script).body(()).unwrap());
            for _ in 0..50 {
                let Some(index) = flights.index_of(id) else {
                    break;
                };
                if let Polled::Refused(answer) = flights.poll(index) {
                    waits.push(answer.headers()["retry-after"].clone());
                }
            }
        }
        // One is served, one waits, and three are refused and count.
        assert_eq!(waits, ["1", "1", "3600", "3600"]);
    });
}
