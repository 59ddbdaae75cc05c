//! Sequential orders of the actors' actions. Some of the actions begin early and finish later.

use crate::orders::orders;

/// The next step of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The actor does its next action.
    Do(usize),
    /// The actor begins its next action, and stops after this many writes. It does the action
    /// later, or never.
    Begin(usize, u64),
}

pub(crate) type Schedule = Vec<Step>;

/// An upper bound on the writes that an action makes before it takes effect.
const MANY: u64 = 3;

/// Returns all orders of the actors' actions.
pub(crate) fn in_order(lengths: &[usize]) -> Vec<Schedule> {
    let orders = orders(lengths).into_iter();
    let schedule = |order: Vec<usize>| order.into_iter().map(Step::Do).collect();
    orders.map(schedule).collect()
}

/// Returns the schedules with at most `bound` preemptions between actions. Loom visits no others.
pub(crate) fn within(schedules: Vec<Schedule>, bound: Option<usize>) -> Vec<Schedule> {
    let Some(bound) = bound else {
        return schedules;
    };
    let is_within = |schedule: &Schedule| interrupted(schedule) <= bound;
    schedules.into_iter().filter(is_within).collect()
}

/// Counts how often another actor continues before the current one has finished.
fn interrupted(schedule: &Schedule) -> usize {
    let pairs = schedule.windows(2).enumerate();
    let interrupts = pairs
        .filter(|(place, pair)| pair[0] != pair[1] && schedule[place + 1..].contains(&pair[0]));
    interrupts.count()
}

/// Returns these schedules, and those in which up to two actions begin early and finish later. In
/// between, other actors see what such an action has already written.
pub(crate) fn with_begun(schedules: &[Schedule]) -> Vec<Schedule> {
    let mut all = schedules.to_vec();
    for _ in 0..2 {
        let more: Vec<_> = all.iter().flat_map(one_more_begun).collect();
        for schedule in more {
            if !all.contains(&schedule) {
                all.push(schedule);
            }
        }
    }
    all
}

/// Returns the schedules in which one more action is begun before actions that precede it.
fn one_more_begun(schedule: &Schedule) -> Vec<Schedule> {
    let mut all = Vec::new();
    for (place, step) in schedule.iter().enumerate() {
        let (Step::Do(who) | Step::Begin(who, _)) = *step;
        let is_own = |step: &Step| matches!(*step, Step::Do(of) | Step::Begin(of, _) if of == who);
        let before = schedule[..place].iter().rev();
        let others = before.take_while(|step| !is_own(step)).count();
        for earlier in (place - others)..place {
            for writes in 1..=MANY {
                let mut schedule = schedule.clone();
                schedule.insert(earlier, Step::Begin(who, writes));
                all.push(schedule);
            }
        }
    }
    all
}

/// Returns the schedules in which one actor stops forever after `done` actions and the beginning of
/// the next. (The beginning may be all of that action, or nothing of it.)
pub(crate) fn stopped(lengths: &[usize], who: usize, done: usize) -> Vec<Schedule> {
    let mut lengths = lengths.to_vec();
    let is_last = lengths[who] == done;
    lengths[who] = done;
    let mut all = in_order(&lengths);
    if is_last {
        return all;
    }
    lengths[who] = done + 1;
    let begins = in_order(&lengths);
    for schedule in &begins {
        let last = schedule.iter().rposition(|step| *step == Step::Do(who));
        let last = last.expect("the actor does something");
        for writes in 1..=MANY {
            let mut schedule = schedule.clone();
            schedule[last] = Step::Begin(who, writes);
            all.push(schedule);
        }
    }
    all.extend(begins);
    all
}
