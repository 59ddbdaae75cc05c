//! The outcomes that a model allows, and those that it must have reached at its end.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

/// Collects the outcomes reached in all executions of a model. Loom does not track it.
#[derive(Debug, Clone)]
pub struct Expected<T> {
    allowed: Arc<Vec<T>>,
    /// The first `required` of the allowed outcomes must be reached.
    required: usize,
    /// Whether other outcomes are allowed too.
    open: bool,
    reached: Arc<Mutex<Vec<bool>>>,
}

impl<T: PartialEq + Debug> Expected<T> {
    /// Each of these must be reached, and no other may be.
    pub fn all(required: Vec<T>) -> Self {
        Self::some(required, Vec::new())
    }

    /// Each of `required` must be reached, and `others` may be.
    pub fn some(required: Vec<T>, others: Vec<T>) -> Self {
        let mut allowed = Vec::new();
        keep_new(&mut allowed, required);
        let required = allowed.len();
        keep_new(&mut allowed, others);
        Self {
            reached: Arc::new(Mutex::new(vec![false; allowed.len()])),
            required,
            open: false,
            allowed: Arc::new(allowed),
        }
    }

    /// Each of these must be reached, and any other may be.
    pub fn at_least(required: Vec<T>) -> Self {
        Self {
            open: true,
            ..Self::all(required)
        }
    }

    /// Records the outcome of one execution.
    pub fn note(&self, outcome: &T) {
        match self.allowed.iter().position(|allowed| allowed == outcome) {
            Some(place) => {
                let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
                reached[place] = true;
            }
            None => assert!(self.open, "no order of the verbs gives {outcome:?}"),
        }
    }

    /// Checks, after the last execution, that all required outcomes were reached.
    pub fn assert_reached(&self) {
        let missed = self.missed();
        assert!(missed.is_empty(), "never reached: {missed:#?}");
    }

    /// Returns the required outcomes that were not reached yet.
    pub fn missed(&self) -> Vec<&T> {
        let reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        let required = self.allowed.iter().zip(reached.iter()).take(self.required);
        let missed = required.filter(|(_, reached)| !**reached);
        missed.map(|(outcome, _)| outcome).collect()
    }
}

impl Expected<Vec<String>> {
    /// Each of these texts must be reached, and no other may be. In each, `|` stands between what
    /// the actors are told.
    pub(crate) fn told(told: &[&str]) -> Self {
        let actors = |told: &&str| told.split(" | ").map(str::to_owned).collect();
        Self::all(told.iter().map(actors).collect())
    }
}

fn keep_new<T: PartialEq>(kept: &mut Vec<T>, outcomes: Vec<T>) {
    for outcome in outcomes {
        if !kept.contains(&outcome) {
            kept.push(outcome);
        }
    }
}
