//! A limit with its settings, and the same limit kept by hand.

use std::collections::HashMap;
use std::time::Duration;

use tollgate::clock::Clock;
use tollgate::traits::{ReserveLimiter, SettleLimiter};
use tollgate::{Granted, Quota};
use tollgate_http::RequestFacts;
use tollgate_tower::{CountedRequests, Ended, Rate, RateLimitLayer, Source};

use crate::accounts::scripted::{Event, Over};
use crate::clock::RuntimeClock;

/// What is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settle {
    Nothing,
    Bytes,
    Header,
    Time,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(crate) count: CountedRequests,
    pub(crate) settle: Settle,
    /// For how long requests may wait, in milliseconds, and how many.
    pub(crate) wait: Option<(u64, u64)>,
}

pub(crate) const KEYS: u64 = 3;

/// Ten permits at once, and one every 20 ms.
pub(crate) fn quota() -> Quota {
    Quota::per_second(50).burst(10)
}

pub(crate) fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) fn number(facts: &RequestFacts<'_>, name: &str) -> Option<u64> {
    facts.header_number(name)
}

impl Case {
    /// A layer with these settings.
    pub(crate) fn of<S>(self, layer: RateLimitLayer<Rate<S>>) -> RateLimitLayer<Rate<S>>
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
        let counts = match self.count {
            CountedRequests::Failures => over.is_failure() || over.is_unanswered(),
            CountedRequests::Successes => over.is_success(),
            _ => true,
        };
        if !counts {
            return 0;
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
pub(crate) struct Held {
    key: u64,
    granted: Granted,
    /// When it is served, if it sleeps, in milliseconds.
    asleep_until: Option<u128>,
    has_place: bool,
}

/// What a request is expected to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Served,
    Asleep,
    /// Refused, with this `Retry-After`.
    Refused(Option<u64>),
}

/// The same limits, kept by hand.
pub(crate) struct Model<L> {
    pub(crate) case: Case,
    /// Whether requests were delayed, as only a queue does.
    pub(crate) has_delayed: bool,
    pub(crate) clock: RuntimeClock,
    pub(crate) limiters: Vec<L>,
    pub(crate) held: HashMap<usize, Held>,
}

impl<L: ReserveLimiter<Clock = RuntimeClock>> Model<L> {
    pub(crate) fn call(&mut self, id: usize, key: u64, weight: u64) -> Expected {
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
    pub(crate) fn is_due(&self, id: usize) -> bool {
        let until = self.held.get(&id).and_then(|held| held.asleep_until);
        until.is_some_and(|until| until <= self.clock.elapsed().as_millis())
    }

    pub(crate) fn is_asleep(&self, id: usize) -> bool {
        let held = self.held.get(&id);
        held.is_some_and(|held| held.asleep_until.is_some())
    }

    pub(crate) fn happened(&mut self, events: Vec<Event>) {
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
    pub(crate) fn cancel(&mut self, id: usize) {
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
