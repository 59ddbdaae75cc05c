//! Orders of the same actions, one after the other.

use crate::orders::orders;

/// What is done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// This actor's next action.
    Do(usize),
    /// This actor begins its next action, and stops when it has written so often. It does it later,
    /// or never.
    Begin(usize, u64),
}

pub(crate) type Schedule = Vec<Step>;

/// More often than a action writes before the end that counts.
const MANY: u64 = 3;

/// All orders of the actors' actions.
pub(crate) fn in_order(lengths: &[usize]) -> Vec<Schedule> {
    let orders = orders(lengths).into_iter();
    let schedule = |order: Vec<usize>| order.into_iter().map(Step::Do).collect();
    orders.map(schedule).collect()
}

/// Those in which so few are interrupted between their actions: loom visits no others.
pub(crate) fn within(schedules: Vec<Schedule>, bound: Option<usize>) -> Vec<Schedule> {
    let Some(bound) = bound else {
        return schedules;
    };
    let is_within = |schedule: &Schedule| interrupted(schedule) <= bound;
    schedules.into_iter().filter(is_within).collect()
}

/// How often somebody goes on before who acts has come to its end.
fn interrupted(schedule: &Schedule) -> usize {
    let pairs = schedule.windows(2).enumerate();
    let interrupts = pairs
        .filter(|(place, pair)| pair[0] != pair[1] && schedule[place + 1..].contains(&pair[0]));
    interrupts.count()
}

/// The same schedules, and those in which up to two actions were begun before they are done: other
/// actors may see what a action has written, although it counts only when it is done.
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

/// One more action is begun before others that were done before it.
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

/// What one actor has begun after `done` actions it never goes on with. (If that is all of the
/// action, then it is done.)
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
        let last = last.expect("it does something");
        for writes in 1..=MANY {
            let mut schedule = schedule.clone();
            schedule[last] = Step::Begin(who, writes);
            all.push(schedule);
        }
    }
    all.extend(begins);
    all
}
