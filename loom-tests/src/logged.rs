//! A model of the exact log: a list of the ticks of all permits. It shares no code with the crate.

use tollgate::clock::NoClock;
use tollgate::{Granted, SlidingLog, Tick};

use crate::scenario::AnswerTexts;
use crate::verbs::*;

/// A call on a log, and its tick.
pub type Call = (Verb, u64);

/// `try_acquire_n` at a tick.
pub const fn take(n: u64, at: u64) -> Call {
    (Verb::Take(n), at)
}

/// `take_up_to` at a tick.
pub const fn take_up_to(n: u64, at: u64) -> Call {
    (Verb::TakeUpTo(n), at)
}

/// `time_until` at a tick.
pub const fn time_until(n: u64, at: u64) -> Call {
    (Verb::TimeUntil(n), at)
}

/// Makes a call.
pub fn ask(log: &SlidingLog<NoClock>, (verb, at): Call) -> Answer {
    ask!(log.at(Tick::from_nanos(at)), verb, &mut None; take_verbs forecast_verbs)
}

/// At most `limit` permits in every interval of `period`.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// The limit.
    pub limit: u64,
    /// The period.
    pub period: u64,
}

/// The ticks of all permits, in the order in which they were claimed.
type Ticks = Vec<u64>;

impl Rules {
    /// Returns all possible answers to the actors' calls in any order, and to the calls `then` at
    /// the end. In the first list each actor enters its own claims. In the second, other actors may
    /// enter them too.
    pub fn told(self, before: &[Call], actors: &[&[Call]], then: &[Call]) -> [Vec<AnswerTexts>; 2] {
        let all = before.iter().chain(actors.iter().copied().flatten());
        let ticks = all.chain(then).map(|call| call.1).collect();
        [Vec::new(), ticks].map(|others| {
            let mut scenario = Orders {
                rules: self,
                others,
                then,
                told: Vec::new(),
            };
            scenario.go_on(&self.after(before), actors, &vec![vec![]; actors.len()]);
            scenario.told
        })
    }

    /// Returns the ticks after these calls.
    fn after(self, calls: &[Call]) -> Ticks {
        calls.iter().fold(Ticks::new(), |ticks, call| {
            let mut outcomes = self.outcomes(&ticks, *call, &[]);
            outcomes.remove(0).1
        })
    }

    /// Returns the tick from which `n` more permits are available, or 0 if the log has space for
    /// them.
    fn expiry(self, ticks: &Ticks, n: u64) -> u64 {
        let kept = ticks.len() as u64;
        match (kept + n).checked_sub(self.limit + 1) {
            Some(place) if kept + n > self.limit => ticks[place as usize] + self.period,
            _ => 0,
        }
    }

    fn available(self, ticks: &Ticks, now: u64) -> u64 {
        let is_there = |n: &u64| self.expiry(ticks, *n) <= now;
        (1..=self.limit).take_while(is_there).count() as u64
    }

    /// Returns each possible answer to a call, with the ticks after it. The first one is the answer
    /// without other threads. If one of these enters the claim, it does so at one of the ticks
    /// `others`, if that is later. If the claim's places have been claimed again before the
    /// claiming thread reads its tick, that thread is told the earliest possible tick.
    fn outcomes(self, ticks: &Ticks, call: Call, others: &[u64]) -> Vec<(String, Ticks)> {
        let newest = ticks.last().copied().unwrap_or(0);
        let (verb, at) = call;
        let now = at.max(newest);
        match verb {
            Verb::Take(n) => match self.expiry(ticks, n) {
                due if due > now => vec![(format!("denied for {}", due - at), ticks.clone())],
                _ => Self::claims(ticks, n, now, others),
            },
            Verb::TakeUpTo(n) => match self.available(ticks, now).min(n) {
                0 => vec![(format!("0 at {now}, 0 left"), ticks.clone())],
                n => Self::claims(ticks, n, now, others),
            },
            Verb::Available => {
                let available = self.available(ticks, now);
                vec![(format!("{available} available"), ticks.clone())]
            }
            Verb::TimeUntil(n) => {
                let wait = match self.expiry(ticks, n) {
                    due if due > now => due - at,
                    _ => 0,
                };
                vec![(format!("{wait} to wait"), ticks.clone())]
            }
            other => unreachable!("{other:?} of a log"),
        }
    }

    fn claims(ticks: &Ticks, n: u64, now: u64, others: &[u64]) -> Vec<(String, Ticks)> {
        let mut outcomes = Vec::new();
        for tick in [now].into_iter().chain(others.iter().copied()) {
            let entered = tick.max(now);
            let mut ticks = ticks.clone();
            ticks.extend((0..n).map(|_| entered));
            outcomes.push((format!("{n} at {entered}, 0 left"), ticks.clone()));
            if !others.is_empty() {
                outcomes.push((format!("{n} at {now}, 0 left"), ticks));
            }
        }
        outcomes
    }
}

/// Visits all orders of calls.
struct Orders<'a> {
    rules: Rules,
    /// The ticks at which other threads enter claims. There are none if each enters its own.
    others: Vec<u64>,
    then: &'a [Call],
    told: Vec<AnswerTexts>,
}

impl Orders<'_> {
    fn go_on(&mut self, ticks: &Ticks, left: &[&[Call]], told: &AnswerTexts) {
        if left.iter().all(|calls| calls.is_empty()) {
            let asked = self.then.iter().map(|call| {
                let mut outcomes = self.rules.outcomes(ticks, *call, &[]);
                outcomes.remove(0).0
            });
            let mut told = told.clone();
            told.push(asked.collect());
            if !self.told.contains(&told) {
                self.told.push(told);
            }
            return;
        }
        let others = self.others.clone();
        for (who, calls) in left.iter().enumerate() {
            let Some((call, rest)) = calls.split_first() else {
                continue;
            };
            for (answer, ticks) in self.rules.outcomes(ticks, *call, &others) {
                let (mut left, mut told) = (left.to_vec(), told.clone());
                left[who] = rest;
                told[who].push(answer);
                self.go_on(&ticks, &left, &told);
            }
        }
    }
}
