//! The models that run for every algorithm. Run each with [`Subject::holds`], or with
//! [`Subject::fails`] if the subject is broken.

use tollgate::Tick;
use tollgate::algorithm::Algorithm;

use crate::run::{Run, broken, model};
use crate::subject::{State, Subject};
use crate::verb::Verb;

/// What the suite requires of an algorithm.
pub trait Subjected: Algorithm + Send + Sync + 'static {}

impl<A: Algorithm + Send + Sync + 'static> Subjected for A {}

/// What a suite does with a subject.
pub type Suite<A> = fn(&Subject<A>, &mut Run);

impl<A: Subjected> Subject<A> {
    /// Runs a suite, which must hold: [`model`].
    pub fn holds(&self, name: &str, bound: Option<usize>, suite: Suite<A>) {
        model(name, bound, |run| suite(self, run));
    }

    /// Runs a suite on this subject, which is broken: [`broken`].
    pub fn fails(&self, name: &str, why: &str, bound: Option<usize>, suite: Suite<A>) {
        broken(name, why, bound, |run| suite(self, run));
    }
}

/// Two threads, one verb each: every verb against every other, from every state, at one tick and at
/// two.
pub fn each_verb_against_each_other<A: Subjected>(subject: &Subject<A>, run: &mut Run) {
    for State(state) in &subject.states {
        let before = state.iter().map(|verb| (verb.clone(), subject.now));
        let before: Vec<_> = before.collect();
        for (i, one) in subject.verbs.iter().enumerate() {
            for (j, other) in subject.verbs.iter().enumerate() {
                let one = [(one.clone(), subject.now)];
                if i <= j {
                    let other = [(other.clone(), subject.now)];
                    subject.scenario(&before, &[&one, &other]).explore(run);
                }
                let other = [(other.clone(), subject.later)];
                subject.scenario(&before, &[&one, &other]).explore(run);
            }
        }
    }
}

/// Two threads, two verbs each: one takes and then does anything, the other does anything and then
/// takes.
pub fn each_verb_after_a_grant<A: Subjected>(subject: &Subject<A>, run: &mut Run) {
    let (now, later) = (subject.now, subject.later);
    for one in &subject.verbs {
        for other in &subject.verbs {
            let first = [(Verb::take(1), now), (one.clone(), later)];
            let second = [(other.clone(), later), (Verb::take(1), now)];
            subject.scenario(&[], &[&first, &second]).explore(run);
        }
    }
}

/// Three threads, one verb each: two take, the third does anything.
pub fn each_verb_among_three<A: Subjected>(subject: &Subject<A>, run: &mut Run) {
    let now = subject.now;
    for third in &subject.verbs {
        let first = [(Verb::take(1), now)];
        let second = [(Verb::take_up_to(subject.burst), now)];
        let third = [(third.clone(), now)];
        subject
            .scenario(&[], &[&first, &second, &third])
            .explore(run);
    }
}

/// Two threads and a limiter that was not started: every verb against every other, at one tick and
/// at two.
pub fn each_verb_starts<A: Subjected>(subject: &Subject<A>, run: &mut Run) {
    for one in &subject.verbs {
        for other in &subject.verbs {
            for then in [subject.now, subject.later] {
                let (one, other) = ([(one.clone(), subject.now)], [(other.clone(), then)]);
                subject.unstarted_scene(&[&one, &other]).explore_begun(run);
            }
        }
    }
}

/// Exactly `min(burst, requests)` permits are granted at a single tick, however many threads ask,
/// for one at a time or for as many as are available.
pub fn exactly_the_burst_at_one_tick<A: Subjected>(subject: &Subject<A>, run: &mut Run) {
    let one = || (Verb::take(1), subject.now);
    let all = || (Verb::take_up_to(subject.burst), subject.now);
    let crowds: [(&[&[_]], u64); 5] = [
        (&[&[one()], &[one()]], 2),
        (&[&[one(), one()], &[one(), one()]], 4),
        (&[&[one()], &[one()], &[one()]], 3),
        (&[&[all()], &[one()], &[all()]], 2 * subject.burst + 1),
        (&[&[one(), all()], &[all(), one()]], 2 * subject.burst + 2),
    ];
    for (actors, requests) in crowds {
        let due = requests.min(subject.burst);
        let scenario = subject.scenario(&[], actors).rule(move |outcome| {
            assert_eq!(outcome.granted(), due, "not exactly the burst was granted");
        });
        scenario.explore(run);
    }
}

/// Threads keep the bound together, even if their ticks differ or go back.
pub fn the_bound_at_different_ticks<A: Subjected>(subject: &Subject<A>, run: &mut Run) {
    let one = |tick: Tick| (Verb::take(1), tick);
    let all = |tick: Tick| (Verb::take_up_to(subject.burst), tick);
    let (now, later) = (subject.now, subject.later);
    let latest = later.saturating_add(later.saturating_since(now));
    let before = [all(now)];
    let crowds: [&[&[_]]; 4] = [
        &[&[one(now)], &[one(later)], &[one(latest)]],
        &[&[all(latest)], &[all(now)], &[one(later)]],
        &[&[one(now), one(latest)], &[one(later), all(latest)]],
        &[&[all(latest), one(now)], &[all(later), one(latest)]],
    ];
    for actors in crowds {
        subject.scenario(&[], actors).explore(run);
        subject.scenario(&before, actors).explore(run);
    }
}
