//! Algorithms and verbs that break the rules of a step, on a correct word. The models find them.

use tollgate::algorithm::GiveBack;
use tollgate::store::AtomicWord;
use tollgate_loom_tests::prelude::*;
use tollgate_loom_tests::{Kind, Wrong};

/// Broken: keeps its count outside the word, so a step that is retried counts twice.
struct CountsOutside {
    limit: u64,
    taken: Mutex<u64>,
}

impl Algorithm for CountsOutside {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if *taken + n > self.limit {
            return Err(Denied::never(n, self.limit));
        }
        *taken += n;
        Ok((word + n, Granted::new(n, now)))
    }

    fn available(&self, word: u64, _now: Tick) -> u64 {
        self.limit.saturating_sub(word)
    }

    fn is_idle(&self, word: u64, _now: Tick) -> bool {
        word == 0
    }
}

#[test]
fn a_step_that_counts_outside_the_word() {
    let make = || CountsOutside {
        limit: 2,
        taken: Mutex::new(0),
    };
    let (name, why) = ("steps::counts outside the word", "not exactly the burst");
    Subject::new(make).fails(name, why, None, suite::exactly_the_burst_at_one_tick);
}

/// It decides by the word that its previous step returned, and ignores the current one.
#[test]
fn a_step_that_remembers() {
    let make = || {
        let last = Mutex::new(None);
        Wrong(two_at_once(), move |bucket: &TokenBucket, word, now, n| {
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            let (next, granted) = bucket.step(*last.get_or_insert(word), now, n)?;
            *last = Some(next);
            Ok((next, granted))
        })
    };
    let name = "steps::decides by what it remembers";
    let why = "not exactly the burst";
    Subject::new(make).fails(name, why, None, suite::exactly_the_burst_at_one_tick);
}

/// Undoes a grant by restoring the word from before it, even if it has changed since.
struct PutsBack(TokenBucket);

impl Algorithm for PutsBack {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        self.0.step(word, now, n)
    }

    fn available(&self, word: u64, now: Tick) -> u64 {
        self.0.available(word, now)
    }

    fn is_idle(&self, word: u64, now: Tick) -> bool {
        self.0.is_idle(word, now)
    }
}

impl GiveBack for PutsBack {
    fn undo(&self, _word: u64, _now: Tick, granted: &Granted) -> (u64, u64) {
        (granted.mark() - 2 * granted.n(), granted.n())
    }

    fn refund(&self, word: u64, now: Tick, n: u64) -> (u64, u64) {
        self.0.refund(word, now, n)
    }
}

/// Two threads take one permit each, and one of them undoes it.
fn take_and_undo<A: GiveBack + Send + Sync + 'static>(
    run: &mut Run,
    subject: &Subject<A>,
    undo: Verb<A>,
) {
    let now = subject.tick();
    let undoes = [(Verb::take(1), now), (undo, now)];
    let keeps = [(Verb::take(1), now)];
    subject.scenario(&[], &[&undoes, &keeps]).explore(run);
}

#[test]
fn an_undo_that_puts_back_a_stale_word() {
    let name = "steps::undo puts back a stale word";
    broken(name, "granted twice", None, |run| {
        let subject = Subject::new(|| PutsBack(two_at_once()));
        take_and_undo(run, &subject, Verb::undo());
    });
}

#[test]
fn an_undo_outside_of_the_loop() {
    let undo = Verb::<TokenBucket>::new("undo outside the loop", Kind::GivesBack, |scope| {
        let Some(granted) = scope.granted.take() else {
            return Answer::Done;
        };
        let word = scope.traced.load();
        let (next, back) = scope.algorithm.undo(word, scope.now, &granted);
        scope.traced.swap(next);
        Answer::Returned(back)
    });
    let name = "steps::undo outside the loop";
    broken(name, "granted twice", None, |run| {
        take_and_undo(run, &samples::bucket(words::cell), undo.clone());
    });
}

#[test]
fn an_admission_that_looks_first_and_then_charges() {
    let acquire = Verb::<TokenBucket>::new("look, then charge", Kind::Charges, |scope| {
        if scope.at().available() == 0 {
            return Answer::Count(0);
        }
        Answer::Charged(scope.at().charge(1))
    });
    let name = "steps::looks first and then charges";
    broken(name, "no order", None, |run| {
        let subject = samples::bucket(words::cell);
        let now = subject.tick();
        let one = [(acquire.clone(), now)];
        let before = [(Verb::take(1), now)];
        subject.scenario(&before, &[&one, &one]).explore(run);
    });
}

fn two_at_once() -> TokenBucket {
    TokenBucket::new(Quota::per(1, Duration::from_nanos(2)).burst(2)).expect("a quota")
}
