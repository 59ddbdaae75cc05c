//! Runs a scenario on one thread, by given schedules. The outcomes of the concurrent runs are
//! compared with these.

use std::sync::{Arc, Mutex, PoisonError};

use tollgate::sync::model::{Conditions, Stop, stopping, under};

use super::{Limits, Memory, Scenario, ScenarioOutcome};
use crate::schedule::{Schedule, Step};

/// Runs schedules on the crate without faults. Returns `None` for a schedule in which the begun
/// part of an action was the whole action.
pub(super) fn read(
    scenario: &Arc<Scenario<impl Limits, impl Memory + Clone>>,
    schedules: Vec<Schedule>,
) -> Vec<Option<ScenarioOutcome>> {
    let mut all = Vec::new();
    // Loom limits the number of operations in one execution.
    for schedules in schedules.chunks(100) {
        let (scenario, schedules) = (Arc::clone(scenario), schedules.to_vec());
        all.extend(alone(move || {
            let outcomes = schedules.iter().map(|schedule| follow(&scenario, schedule));
            outcomes.collect::<Vec<_>>()
        }));
    }
    all
}

/// Runs a function in a model with one thread.
fn alone<T: Send + 'static>(act: impl Fn() -> T + Send + Sync + 'static) -> T {
    let told = Arc::new(Mutex::new(None));
    let tells = Arc::clone(&told);
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 50_000;
    under(Conditions::default(), || {
        builder.check(move || {
            let done = act();
            *tells.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
        });
    });
    let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
    told.take().expect("the model ran")
}

fn follow(
    scenario: &Scenario<impl Limits, impl Memory + Clone>,
    schedule: &Schedule,
) -> Option<ScenarioOutcome> {
    let (limiter, before, mut memories) = scenario.begin(&*scenario.correct);
    let mut answers = vec![Vec::new(); scenario.actors.len()];
    for step in schedule {
        match *step {
            Step::Do(who) => {
                let action = &scenario.actors[who][answers[who].len()];
                answers[who].push(action.act(&limiter, &mut memories[who]));
            }
            Step::Begin(who, writes) => {
                let action = &scenario.actors[who][answers[who].len()];
                let mut memory = memories[who].clone();
                let done = stopping(Stop::Writes(writes), || action.act(&limiter, &mut memory));
                if done.is_some() {
                    return None;
                }
            }
        }
    }
    let after = (scenario.after)(&limiter, &mut memories);
    Some(ScenarioOutcome {
        before,
        answers,
        after,
    })
}
