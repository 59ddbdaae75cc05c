//! What clients count.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::policy::{AT_ONCE, RULES};

/// What all clients share.
pub(super) struct Counts {
    /// When the first request was sent, or a little before.
    pub(super) start: Instant,
    pub(super) rules: Vec<OfRule>,
    pub(super) inside: Inside,
    pub(super) requests: AtomicU64,
    /// How often clients left.
    pub(super) left: AtomicU64,
    /// Microseconds that requests took since they were last asked for.
    times: Mutex<Histogram<u64>>,
    errors: Mutex<Vec<String>>,
    stops: AtomicBool,
}

/// What a rule said to well-behaved clients.
pub(super) struct OfRule {
    pub(super) allowed: Vec<AtomicU64>,
    pub(super) denied: AtomicU64,
}

impl OfRule {
    pub(super) fn all_allowed(&self) -> u64 {
        self.allowed.iter().map(|it| it.load(SeqCst)).sum()
    }

    pub(super) fn most_of_a_key(&self) -> u64 {
        let all = self.allowed.iter().map(|it| it.load(SeqCst));
        all.max().unwrap_or_default()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Counts {
    pub(super) fn new() -> Self {
        let rules = RULES.iter().map(|rule| OfRule {
            allowed: (0..rule.keys).map(|_| AtomicU64::new(0)).collect(),
            denied: AtomicU64::new(0),
        });
        Self {
            start: Instant::now(),
            rules: rules.collect(),
            inside: Inside::default(),
            requests: AtomicU64::new(0),
            left: AtomicU64::new(0),
            times: Mutex::new(Histogram::new(3).expect("three digits")),
            errors: Mutex::default(),
            stops: AtomicBool::new(false),
        }
    }

    pub(super) fn decided(&self, rule: usize, key: u32, is_allowed: bool) {
        let counter = match is_allowed {
            true => &self.rules[rule].allowed[key as usize],
            false => &self.rules[rule].denied,
        };
        counter.fetch_add(1, SeqCst);
    }

    /// Counts a request that was answered.
    pub(super) fn took(&self, time: Duration) {
        self.requests.fetch_add(1, SeqCst);
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        // It grows as times need it.
        let _ = lock(&self.times).record(us);
    }

    /// Returns the times since the last call.
    pub(super) fn take_times(&self) -> Histogram<u64> {
        let mut times = lock(&self.times);
        let taken = times.clone();
        times.reset();
        taken
    }

    /// Something is wrong: all ends.
    pub(super) fn fail(&self, error: String) {
        self.stop();
        lock(&self.errors).push(error);
    }

    pub(super) fn errors(&self) -> Vec<String> {
        lock(&self.errors).clone()
    }

    pub(super) fn stop(&self) {
        self.stops.store(true, SeqCst);
    }

    pub(super) fn stops(&self) -> bool {
        self.stops.load(SeqCst)
    }
}

/// The requests that are inside of the concurrency limit for certain: they were admitted, their
/// clients have not ended them, and the service can't have ended them.
#[derive(Default)]
pub(super) struct Inside(Mutex<Vec<(String, Instant)>>);

impl Inside {
    /// Adds a request that the service holds until `end` or longer.
    pub(super) fn enter(&self, token: &str, end: Instant) -> Result<(), String> {
        let mut all = lock(&self.0);
        all.push((token.to_owned(), end));
        let now = Instant::now();
        match all.iter().filter(|(_, end)| *end > now).count() {
            0..=AT_ONCE => Ok(()),
            more => Err(format!("{more} requests at once, and not {AT_ONCE}")),
        }
    }

    /// Removes a request, before it is ended.
    pub(super) fn leave(&self, token: &str) {
        lock(&self.0).retain(|(other, _)| other != token);
    }
}

#[test]
fn one_request_too_many_is_found() {
    let (inside, hour) = (Inside::default(), Duration::from_secs(3600));
    let later = Instant::now() + hour;
    // This one may be over.
    assert!(inside.enter("over", Instant::now()).is_ok());
    for n in 0..AT_ONCE {
        assert!(inside.enter(&n.to_string(), later).is_ok());
    }
    inside.leave("0");
    assert!(inside.enter("other", later).is_ok());
    assert!(inside.enter("more", later).is_err());
}
