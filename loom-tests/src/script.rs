//! Orders of the same deeds, one after the other.

use crate::orders::orders;

/// What is done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// This actor's next deed.
    Do(usize),
    /// This actor begins its next deed, and stops when it has written so often. It does it later,
    /// or never.
    Begin(usize, u64),
}

pub(crate) type Script = Vec<Step>;

/// More often than a deed writes before the end that counts.
const MANY: u64 = 3;

/// All orders of the actors' deeds.
pub(crate) fn in_order(lengths: &[usize]) -> Vec<Script> {
    let orders = orders(lengths).into_iter();
    let script = |order: Vec<usize>| order.into_iter().map(Step::Do).collect();
    orders.map(script).collect()
}

/// Those in which so few are interrupted between their deeds: loom visits no others.
pub(crate) fn within(scripts: Vec<Script>, bound: Option<usize>) -> Vec<Script> {
    let Some(bound) = bound else {
        return scripts;
    };
    let is_within = |script: &Script| interrupted(script) <= bound;
    scripts.into_iter().filter(is_within).collect()
}

/// How often somebody goes on before who acts has come to its end.
fn interrupted(script: &Script) -> usize {
    let pairs = script.windows(2).enumerate();
    let interrupts =
        pairs.filter(|(place, pair)| pair[0] != pair[1] && script[place + 1..].contains(&pair[0]));
    interrupts.count()
}

/// The same scripts, and those in which up to two deeds were begun before they are done: other
/// actors may see what a deed has written, although it counts only when it is done.
pub(crate) fn with_begun(scripts: &[Script]) -> Vec<Script> {
    let mut all = scripts.to_vec();
    for _ in 0..2 {
        let more: Vec<_> = all.iter().flat_map(one_more_begun).collect();
        for script in more {
            if !all.contains(&script) {
                all.push(script);
            }
        }
    }
    all
}

/// One more deed is begun before others that were done before it.
fn one_more_begun(script: &Script) -> Vec<Script> {
    let mut all = Vec::new();
    for (place, step) in script.iter().enumerate() {
        let (Step::Do(who) | Step::Begin(who, _)) = *step;
        let is_own = |step: &Step| matches!(*step, Step::Do(of) | Step::Begin(of, _) if of == who);
        let before = script[..place].iter().rev();
        let others = before.take_while(|step| !is_own(step)).count();
        for earlier in (place - others)..place {
            for writes in 1..=MANY {
                let mut script = script.clone();
                script.insert(earlier, Step::Begin(who, writes));
                all.push(script);
            }
        }
    }
    all
}

/// What one actor has begun after `done` deeds it never goes on with. (If that is all of the deed,
/// then it is done.)
pub(crate) fn stopped(lengths: &[usize], who: usize, done: usize) -> Vec<Script> {
    let mut lengths = lengths.to_vec();
    let is_last = lengths[who] == done;
    lengths[who] = done;
    let mut all = in_order(&lengths);
    if is_last {
        return all;
    }
    lengths[who] = done + 1;
    let begins = in_order(&lengths);
    for script in &begins {
        let last = script.iter().rposition(|step| *step == Step::Do(who));
        let last = last.expect("it does something");
        for writes in 1..=MANY {
            let mut script = script.clone();
            script[last] = Step::Begin(who, writes);
            all.push(script);
        }
    }
    all.extend(begins);
    all
}
