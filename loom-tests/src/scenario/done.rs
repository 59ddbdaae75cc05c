//! Explorations that need not reach every order: of broken limiters, and with an actor that stops.

use std::sync::Arc;

use tollgate::sync::model::{Conditions, under};

use super::{Scenario, outcomes, stop_everywhere};
use crate::expected::Expected;
use crate::run::{PrintOnPanic, Run};
use crate::schedule;

impl<G, M> Scenario<G, M>
where
    G: Send + Sync + 'static,
    M: Default + Clone + Send + 'static,
{
    /// Explores the scenario: in every execution the rules hold and the outcome is that of some
    /// order. No order has to be reached. This is for broken limiters, where each layout
    /// must find the defect by itself, so loads are counted from the start.
    pub fn explore_any(self, run: &mut Run) {
        let scenario = Arc::new(self);
        let _said = PrintOnPanic(scenario.to_string());
        let others = outcomes(&scenario, schedule::in_order(&scenario.lengths()));
        let expected = Expected::some(vec![], others);
        let conditions = Conditions {
            counts_loads: true,
            ..Conditions::now()
        };
        under(conditions, || {
            run.explore(move |layout| expected.note(&scenario.perform(layout, None).0));
        });
    }

    /// Stops one actor forever, before each of its operations in turn. The others finish, and their
    /// answers are those of some order in which the stopped actor did its next action, or did not.
    /// (Unlike in `explore_stopping_in_order`, they never see an action that was only begun.)
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
                // Remove the answer that the last action would have given.
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
