//! Plays of which no order need be seen: broken ones, and those in which somebody stops.

use std::sync::Arc;

use tollgate::sync::model::{Conditions, under};

use super::{Said, Scenario, outcomes, stop_everywhere};
use crate::expected::Expected;
use crate::run::Run;
use crate::schedule;

impl<G, M> Scenario<G, M>
where
    G: Send + Sync + 'static,
    M: Default + Clone + Send + 'static,
{
    /// Whatever the threads do, the rules hold, and the outcome is that of some order. None need be
    /// reached: for broken ones, of which each layout by itself must find what is broken. So the
    /// bells ring at once.
    ///
    /// # Panics
    ///
    /// If that does not hold.
    pub fn explore_any(self, run: &mut Run) {
        let scenario = Arc::new(self);
        let _said = Said(scenario.to_string());
        let others = outcomes(&scenario, schedule::in_order(&scenario.lengths()));
        let expected = Expected::some(vec![], others);
        let conditions = Conditions {
            rings: true,
            ..Conditions::now()
        };
        under(conditions, || {
            run.explore(move |layout| expected.note(&scenario.perform(layout, None).0));
        });
    }

    /// One actor stops for ever, before each of its operations in turn: the others come to their
    /// end, and what they are told is that of some order in which that one did its last action, or
    /// did not. (And never of one in which it has begun it.)
    ///
    /// # Panics
    ///
    /// If that does not hold.
    pub fn explore_stopping_or_done(self, run: &mut Run, who: usize) {
        let scenario = Arc::new(self);
        let lengths = scenario.lengths();
        let allowed = (0..=lengths[who]).map(|done| {
            let mut orders = Vec::new();
            for done in [done, done + 1] {
                let mut lengths = lengths.clone();
                lengths[who] = done.min(lengths[who]);
                orders.extend(schedule::in_order(&lengths));
            }
            let mut outcomes = outcomes(&scenario, orders);
            for outcome in &mut outcomes {
                // What the last action would have answered.
                outcome.answers[who].truncate(done);
            }
            Expected::some(vec![], outcomes)
        });
        let allowed: Vec<_> = allowed.collect();
        stop_everywhere(&scenario, run, who, move |played| {
            allowed[played.answers[who].len()].note(played);
        });
    }
}
