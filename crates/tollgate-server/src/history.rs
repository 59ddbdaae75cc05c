//! What happened in the last minutes, from samples of the counters.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;

use crate::counters::{BOUNDS_US, OfRuleNow, PROTOCOLS, TimesNow};

/// How often the counters are read.
pub(crate) const PERIOD: Duration = Duration::from_secs(2);
/// How many samples are kept of all rules together: five minutes.
const KEPT: usize = 150;
/// How many samples are kept of each rule: a minute.
const KEPT_OF_RULE: usize = 30;
/// Over how many samples a rate is taken: ten seconds.
const RATE: usize = 5;
/// A rule that denied nothing for this long, in seconds, begins anew.
const QUIET_S: u64 = 60;

/// The samples.
#[derive(Debug, Default)]
pub(crate) struct History(Mutex<Samples>);

#[derive(Debug, Default)]
struct Samples {
    /// The time of each sample, in milliseconds, and what all rules did since the one before.
    all: VecDeque<(u64, Did)>,
    rules: HashMap<Box<str>, OfRule>,
    /// How long decisions took, and the other values, at the last samples.
    before: VecDeque<Values>,
    /// Since when the store does not answer, in seconds since 1970.
    store_down_since: Option<u64>,
}

/// The requests that were allowed and denied in the time of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub(crate) struct Did {
    pub(crate) allowed: u64,
    pub(crate) denied: u64,
}

#[derive(Debug)]
struct OfRule {
    last: OfRuleNow,
    did: VecDeque<Did>,
    denies: Option<Denies>,
}

/// When a rule began to deny, and when it denied last, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Denies {
    pub(crate) since: u64,
    pub(crate) last: u64,
}

/// Numbers that only rise, at one time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Values {
    pub(crate) times: [TimesNow; PROTOCOLS.len()],
    pub(crate) others: Vec<u64>,
}

/// What is known of a rule.
#[derive(Debug, Clone, Default)]
pub(crate) struct RuleHistory {
    pub(crate) did: Vec<Did>,
    /// Requests a second.
    pub(crate) allowed_per_s: f64,
    pub(crate) denied_per_s: f64,
    pub(crate) denies: Option<Denies>,
}

/// How long the decisions of a protocol took in the last ten seconds. `None` if there were none, or
/// if they took longer than the last bound.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub(crate) struct Latency {
    pub(crate) per_s: f64,
    /// Half of them took at most this long, in microseconds.
    pub(crate) p50_us: Option<u64>,
    pub(crate) p99_us: Option<u64>,
}

impl History {
    /// Takes a sample. `now` is in milliseconds since 1970.
    pub(crate) fn sample(
        &self,
        now: u64,
        each_rule: impl FnOnce(&mut dyn FnMut(&str, OfRuleNow)),
        values: Values,
        store_is_down: bool,
    ) {
        let mut samples = self.lock();
        let now_s = now / 1000;
        let mut all = Did::default();
        // The first sample only begins: what came before it has no time.
        let is_first = samples.all.is_empty();
        let rules = &mut samples.rules;
        each_rule(&mut |name, counts| {
            let rule = match rules.get_mut(name) {
                Some(rule) => rule,
                None => rules
                    .entry(name.into())
                    .or_insert_with(|| OfRule::new(is_first, counts)),
            };
            let did = rule.sample(now_s, counts);
            all.allowed += did.allowed;
            all.denied += did.denied;
        });
        push(&mut samples.all, (now, all), KEPT);
        push(&mut samples.before, values, KEPT_OF_RULE);
        samples.store_down_since = match (store_is_down, samples.store_down_since) {
            (true, since) => since.or(Some(now_s)),
            (false, _) => None,
        };
    }

    /// Returns the time of each sample, in milliseconds since 1970, and what all rules did since
    /// the one before.
    pub(crate) fn all(&self) -> Vec<(u64, Did)> {
        self.lock().all.iter().copied().collect()
    }

    pub(crate) fn rule(&self, name: &str) -> RuleHistory {
        let samples = self.lock();
        let Some(rule) = samples.rules.get(name) else {
            return RuleHistory::default();
        };
        let rate = |of: fn(&Did) -> u64| samples.rate(rule.did.iter().rev().map(of));
        RuleHistory {
            allowed_per_s: rate(|did| did.allowed),
            denied_per_s: rate(|did| did.denied),
            did: rule.did.iter().copied().collect(),
            denies: rule.denies,
        }
    }

    /// Returns the requests a second that were allowed and denied, of all rules together.
    pub(crate) fn rates(&self) -> (f64, f64) {
        let samples = self.lock();
        let rate =
            |of: fn(&Did) -> u64| samples.rate(samples.all.iter().rev().map(|(_, did)| of(did)));
        (rate(|did| did.allowed), rate(|did| did.denied))
    }

    /// Returns how long the decisions of a protocol took, by its position.
    pub(crate) fn latency(&self, protocol: usize) -> Latency {
        let samples = self.lock();
        let mut values = samples.before.iter().rev();
        let of = |values: &Values| values.times.get(protocol).copied();
        let now = values.next().and_then(of).unwrap_or_default();
        let before = values.take(RATE).next_back().and_then(of).unwrap_or(now);
        let mut counts = TimesNow::default();
        for (count, (now, before)) in counts.iter_mut().zip(now.iter().zip(before)) {
            *count = now.saturating_sub(before);
        }
        let questions: u64 = counts.iter().sum();
        Latency {
            per_s: samples.per_s(questions),
            p50_us: at_most(&counts, questions.div_ceil(2)),
            p99_us: at_most(&counts, questions - questions / 100),
        }
    }

    /// Returns how much one of the other values rose in the last minute, by its position.
    pub(crate) fn rose(&self, value: usize) -> u64 {
        let samples = self.lock();
        let of = |values: Option<&Values>| values.and_then(|it| it.others.get(value).copied());
        let (first, last) = (of(samples.before.front()), of(samples.before.back()));
        last.unwrap_or(0).saturating_sub(first.unwrap_or(0))
    }

    pub(crate) fn store_down_since(&self) -> Option<u64> {
        self.lock().store_down_since
    }

    fn lock(&self) -> MutexGuard<'_, Samples> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Samples {
    /// Returns the sum of the last counts by the seconds in which they came.
    fn rate(&self, counts: impl Iterator<Item = u64>) -> f64 {
        self.per_s(counts.take(RATE).sum())
    }

    #[expect(clippy::cast_precision_loss, reason = "a rate need not be exact")]
    fn per_s(&self, count: u64) -> f64 {
        let mut times = self.all.iter().rev().map(|(time, _)| *time);
        let (last, first) = (times.next(), times.take(RATE).next_back());
        match (last, first) {
            (Some(last), Some(first)) if last > first => count as f64 * 1e3 / (last - first) as f64,
            _ => 0.0,
        }
    }
}

impl OfRule {
    fn new(is_first: bool, counts: OfRuleNow) -> Self {
        Self {
            last: if is_first {
                counts
            } else {
                OfRuleNow::default()
            },
            did: VecDeque::new(),
            denies: None,
        }
    }

    fn sample(&mut self, now_s: u64, counts: OfRuleNow) -> Did {
        let did = Did {
            allowed: counts.allowed.saturating_sub(self.last.allowed),
            denied: counts.denied.saturating_sub(self.last.denied),
        };
        self.last = counts;
        push(&mut self.did, did, KEPT_OF_RULE);
        // If the clock stepped back, it was not later than now.
        let denies = self.denies.take().map(|denies| Denies {
            since: denies.since.min(now_s),
            last: denies.last.min(now_s),
        });
        let denies = denies.filter(|denies| now_s.saturating_sub(denies.last) <= QUIET_S);
        self.denies = match (did.denied > 0, denies) {
            (false, denies) => denies,
            (true, denies) => Some(Denies {
                since: denies.map_or(now_s, |denies| denies.since),
                last: now_s,
            }),
        };
        did
    }
}

fn push<T>(kept: &mut VecDeque<T>, value: T, most: usize) {
    if kept.len() >= most {
        kept.pop_front();
    }
    kept.push_back(value);
}

/// Returns the least bound within which this number of decisions was made.
fn at_most(counts: &TimesNow, number: u64) -> Option<u64> {
    let mut sum = 0;
    let mut bounds = counts.iter().zip(BOUNDS_US);
    let within = bounds.find(|(count, _)| {
        sum += *count;
        number > 0 && sum >= number
    });
    within.map(|(_, bound)| bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(history: &History, at_s: u64, allowed: u64, denied: u64) {
        let counts = OfRuleNow {
            allowed,
            denied,
            ..OfRuleNow::default()
        };
        let values = Values {
            others: vec![denied],
            ..Values::default()
        };
        history.sample(at_s * 1000, |visit| visit("a", counts), values, false);
    }

    #[test]
    fn rates_are_those_of_the_last_ten_seconds() {
        let history = History::default();
        for (number, time) in (1000..=1020).step_by(2).zip(0..) {
            sample(
                &history,
                number,
                1_000_000 + time * 40,
                if time > 5 { (time - 5) * 20 } else { 0 },
            );
        }
        let rule = history.rule("a");
        assert_eq!((rule.allowed_per_s, rule.denied_per_s), (20.0, 10.0));
        assert_eq!(history.rates(), (20.0, 10.0));
        // What the counter said before the first sample is not of that time.
        assert_eq!(rule.did.first(), Some(&Did::default()));
        assert_eq!(history.rule("b").did.len(), 0);
        assert_eq!(history.rose(0), 100);
        assert_eq!(history.rose(1), 0);
    }

    #[test]
    fn a_sample_that_is_late_has_its_own_time() {
        let history = History::default();
        sample(&history, 1000, 0, 0);
        sample(&history, 1002, 10, 0);
        sample(&history, 1012, 120, 0);
        assert_eq!(history.rates().0, 10.0);
    }

    #[test]
    fn a_rule_denies_since_its_first_denial_after_a_quiet_minute() {
        let history = History::default();
        sample(&history, 1000, 0, 0);
        assert_eq!(history.rule("a").denies, None);
        sample(&history, 1002, 0, 1);
        sample(&history, 1030, 0, 1);
        sample(&history, 1060, 0, 5);
        let denies = |since, last| Some(Denies { since, last });
        assert_eq!(history.rule("a").denies, denies(1002, 1060));
        sample(&history, 1120, 0, 5);
        assert_eq!(history.rule("a").denies, denies(1002, 1060));
        sample(&history, 1121, 0, 5);
        assert_eq!(history.rule("a").denies, None);
        sample(&history, 1122, 0, 6);
        assert_eq!(history.rule("a").denies, denies(1122, 1122));
    }

    #[test]
    fn a_clock_that_steps_back_does_not_prolong_what_is_over() {
        let history = History::default();
        sample(&history, 9000, 0, 0);
        sample(&history, 9002, 0, 1);
        // An hour back.
        for at in (5400..=5460).step_by(2) {
            sample(&history, at, 2 * at, 1);
            let denies = history.rule("a").denies.expect("it denied a minute ago");
            assert!(
                denies.since <= at && denies.last <= at,
                "{denies:?} at {at}"
            );
        }
        sample(&history, 5462, 2 * 5462, 1);
        assert_eq!(history.rule("a").denies, None);
        assert_eq!(history.rates(), (2.0, 0.0));
    }

    #[test]
    fn a_rule_that_comes_later_counts_from_zero() {
        let history = History::default();
        let none = |_: &mut dyn FnMut(&str, OfRuleNow)| {};
        history.sample(1_000_000, none, Values::default(), false);
        sample(&history, 1002, 6, 2);
        assert_eq!(history.rates(), (3.0, 1.0));
    }

    #[test]
    fn latency_is_that_of_the_last_ten_seconds() {
        let history = History::default();
        let mut times = [TimesNow::default(); PROTOCOLS.len()];
        times[1][0] = 500; // long ago
        for at in 0..20 {
            let values = Values {
                times,
                others: Vec::new(),
            };
            history.sample(at * 2000, |_| {}, values, at == 19);
            if at >= 10 {
                times[1][2] += 99; // at most 50 microseconds
                times[1][5] += 1; // at most 500
            }
        }
        let latency = history.latency(1);
        let expected = Latency {
            per_s: 50.0,
            p50_us: Some(50),
            p99_us: Some(50),
        };
        assert_eq!(latency, expected);
        assert_eq!(history.latency(0), Latency::default());
        times[1][12] += 500; // longer than a second
        let values = Values {
            times,
            others: Vec::new(),
        };
        history.sample(40_000, |_| {}, values, true);
        assert_eq!(history.latency(1).p99_us, None);
        assert_eq!(history.store_down_since(), Some(38));
    }
}
