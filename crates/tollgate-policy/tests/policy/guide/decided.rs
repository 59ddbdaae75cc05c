//! What is decided about a request, and how an example is run.

use std::time::Duration;

use tollgate::ManualClock;

use crate::guide::document::Example;
use crate::guide::lines::{End, Expected, Line, Pairs, Verdict, read};

/// A decision.
#[derive(Debug, PartialEq)]
pub(crate) struct Decided {
    pub(crate) is_allowed: bool,
    /// The rules that allowed it, or the rule that denied it.
    pub(crate) by: Vec<String>,
    pub(crate) left: Option<u64>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) status: Option<u16>,
    /// The rules in the shadow, and whether they would allow it.
    pub(crate) shadows: Vec<(String, bool)>,
}

impl Decided {
    pub(crate) fn allowed(by: Vec<String>, left: Option<u64>) -> Self {
        Self {
            is_allowed: true,
            by,
            left,
            retry_after: None,
            status: None,
            shadows: Vec::new(),
        }
    }

    pub(crate) fn denied(by: String, retry_after: Option<Duration>) -> Self {
        Self {
            is_allowed: false,
            by: vec![by],
            left: None,
            retry_after,
            status: None,
            shadows: Vec::new(),
        }
    }

    pub(crate) fn with_status(self, status: Option<u16>) -> Self {
        Self { status, ..self }
    }

    /// Returns whether this is what a line says.
    fn is(&self, expected: &Expected) -> bool {
        let verdict = match &expected.verdict {
            Verdict::NoLimit => self.is_allowed && self.by.is_empty(),
            Verdict::AllowedBy(names) => self.is_allowed && self.by == *names,
            Verdict::DeniedBy(name) => !self.is_allowed && self.by == [name.clone()],
        };
        // In milliseconds: windows that a first hit opens end a few nanoseconds later.
        let millis = |wait: Option<Duration>| wait.map(|wait| wait.as_millis());
        let retry = expected.retry_after;
        let retry = retry.is_none_or(|wait| millis(wait) == millis(self.retry_after));
        let mut shadows = expected.shadows.iter();
        let status = expected.status.is_none_or(|status| status == self.status);
        verdict && retry && status && shadows.all(|shadow| self.shadows.contains(shadow))
    }
}

/// A policy that decides: the crate's, or the model.
pub(crate) trait Decider {
    /// A request in progress.
    type Held;

    fn decide(&mut self, facts: &Pairs) -> (Decided, Self::Held);
    fn end(&mut self, held: Self::Held, end: &End);
    fn clock(&self) -> &ManualClock;
    /// The store named `redis` stops answering.
    fn store_down(&mut self) {}
}

/// Runs the lines of an example. Returns what differs.
pub(crate) fn run<D: Decider>(example: &Example, mut policy: D) -> Vec<String> {
    let mut in_progress = Vec::new();
    let mut differing = Vec::new();
    for (number, text) in &example.lines {
        match read(text).expect("a line") {
            None => {}
            Some(Line::Advance(time)) => {
                policy.clock().advance(time);
            }
            Some(Line::StoreDown) => policy.store_down(),
            Some(Line::Ends { name, end }) => {
                let at = in_progress.iter().position(|(known, _)| *known == name);
                let (_, held) = in_progress.remove(at.expect("a request in progress"));
                policy.end(held, &end);
            }
            Some(Line::Requests {
                count,
                request,
                expected,
            }) => {
                for n in 1..=count {
                    let (decided, held) = policy.decide(&request.facts);
                    // Of several requests, the last one.
                    let left = expected.left.filter(|_| n == count);
                    if !decided.is(&expected) || left.is_some_and(|left| decided.left != Some(left))
                    {
                        differing.push(format!("line {number}: {text}\n    {decided:?}"));
                    }
                    match &request.name {
                        Some(name) => in_progress.push((name.clone(), held)),
                        None => policy.end(held, &request.end),
                    }
                }
            }
        }
    }
    differing
}
