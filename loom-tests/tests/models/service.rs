//! An example of model-checking your own code with a limiter inside: a small mailer whose workers
//! take letters from an outbox, no faster than its quota allows. `docs/dev/VERIFICATION.md` walks
//! through it.

use std::time::Duration;

use tollgate::clock::Clock;
use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
use tollgate_loom_tests::{Run, actor, broken, model};

/// The types that come from loom in a model, and from the standard library otherwise. In your own
/// crate this is the only file that knows the difference.
mod sync {
    #[cfg(tollgate_loom)]
    pub(crate) use loom::sync::Mutex;
    #[cfg(not(tollgate_loom))]
    pub(crate) use std::sync::Mutex;
}

/// The service, as it would be in its own crate.
mod mailer {
    use std::collections::VecDeque;

    use super::sync::Mutex;
    use tollgate::clock::Clock;
    use tollgate::{Limiter, TokenBucket};

    pub(crate) type Letter = u32;

    /// Letters to send, and the limit on sending them.
    pub(crate) struct Mailer<C> {
        pub(crate) limiter: Limiter<TokenBucket, C>,
        pub(crate) outbox: Mutex<VecDeque<Letter>>,
    }

    impl<C: Clock> Mailer<C> {
        pub(crate) fn new(limiter: Limiter<TokenBucket, C>, letters: &[Letter]) -> Self {
            let outbox = Mutex::new(letters.iter().copied().collect());
            Self { limiter, outbox }
        }

        /// One turn of a worker: returns the letter to send, if the limit allows one and there is
        /// one. The permit is taken first, so that a letter leaves the outbox only if it may be
        /// sent. If there is no letter, the permit is given back, so that it is not wasted.
        pub(crate) fn next(&self) -> Option<Letter> {
            let granted = self.limiter.try_acquire().ok()?;
            let letter = self.pop();
            if letter.is_none() {
                self.limiter.undo(granted);
            }
            letter
        }

        pub(crate) fn pop(&self) -> Option<Letter> {
            self.outbox.lock().expect("no worker panics").pop_front()
        }
    }
}

use mailer::{Letter, Mailer};

type Worker = fn(&Mailer<ManualClock>) -> Option<Letter>;

/// A turn of the real worker.
fn real(mailer: &Mailer<ManualClock>) -> Option<Letter> {
    mailer.next()
}

/// Broken: asks first whether there is a permit, and takes it afterwards.
fn asks_first(mailer: &Mailer<ManualClock>) -> Option<Letter> {
    if mailer.limiter.available() == 0 {
        return None;
    }
    let letter = mailer.pop()?;
    mailer.limiter.charge(1);
    Some(letter)
}

/// Broken: keeps the permit if there is no letter.
fn wastes(mailer: &Mailer<ManualClock>) -> Option<Letter> {
    let _kept = mailer.limiter.try_acquire().ok()?;
    mailer.pop()
}

/// Broken: takes the letter out before it knows that it may be sent.
fn drops_letters(mailer: &Mailer<ManualClock>) -> Option<Letter> {
    let letter = mailer.pop()?;
    let _kept = mailer.limiter.try_acquire().ok()?;
    Some(letter)
}

/// The outcome of one execution: what each worker sent, and what is left.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    sent: [Option<Letter>; 2],
    left: Vec<Letter>,
}

/// Two workers, one turn each, while the clock stands still.
fn two_workers(
    run: &mut Run,
    permits: u64,
    letters: &'static [Letter],
    worker: Worker,
    all: &[Seen],
) {
    run.explore_all(all.to_vec(), move |layout| {
        // Made inside the model and not in a static, because loom's atomics can be made only there.
        let quota = Quota::per(1, Duration::from_nanos(2)).burst(permits);
        let bucket = TokenBucket::new(quota).expect("a quota");
        let limiter = Limiter::with_clock(bucket, ManualClock::new());
        let mailer = std::sync::Arc::new(Mailer::new(limiter, letters));
        let turn = || {
            let mailer = std::sync::Arc::clone(&mailer);
            actor(move || worker(&mailer))
        };
        let sent = layout.act(vec![turn(), turn()]);
        let left: Vec<_> = std::iter::from_fn(|| mailer.pop()).collect();

        // What the service guarantees in every execution.
        let count = sent.iter().flatten().count() as u64;
        assert!(count <= permits, "more was sent than is allowed");
        let actual = count + left.len() as u64;
        assert_eq!(actual, letters.len() as u64, "a letter was lost");
        let actual = mailer.limiter.available();
        assert_eq!(actual, permits - count, "a permit was lost");
        let sent = [sent[0], sent[1]];
        Seen { sent, left }
    });
}

/// One permit and two letters: one worker sends the first letter.
fn one_permit(run: &mut Run, worker: Worker) {
    let all = [[Some(1), None], [None, Some(1)]].map(|sent| Seen {
        sent,
        left: vec![2],
    });
    two_workers(run, 1, &[1, 2], worker, &all);
}

/// Two permits and one letter: one worker sends it, and the other one's permit is available again.
fn one_letter(run: &mut Run, worker: Worker) {
    let all = [[Some(1), None], [None, Some(1)]].map(|sent| Seen { sent, left: vec![] });
    two_workers(run, 2, &[1], worker, &all);
}

#[test]
fn a_mailer_keeps_its_promises() {
    model("service::one permit, two letters", None, |run| {
        one_permit(run, real)
    });
    model("service::two permits, one letter", None, |run| {
        one_letter(run, real)
    });
}

#[test]
fn broken_mailers_are_found() {
    broken("service::asks first", "more was sent", None, |run| {
        one_permit(run, asks_first)
    });
    let name = "service::wastes permits";
    broken(name, "a permit was lost", None, |run| {
        one_letter(run, wastes)
    });
    broken("service::drops letters", "a letter was lost", None, |run| {
        one_permit(run, drops_letters)
    });
}

/// Two workers, while another thread moves the clock on by one permit. Both send if one of them
/// acts before that and the other after it; otherwise one sends.
#[test]
fn a_mailer_follows_its_clock() {
    model("service::the clock moves on", Some(3), |run| {
        run.explore_all(vec![(1, 11), (2, 12), (1, 12)], move |layout| {
            let bucket = TokenBucket::new(Quota::per(1, Duration::from_nanos(1))).expect("a quota");
            let clock = ManualClock::at(tollgate::Tick::from_nanos(10));
            let limiter = Limiter::with_clock(bucket, clock.clone());
            let mailer = std::sync::Arc::new(Mailer::new(limiter, &[1, 2]));
            let turn = || {
                let mailer = std::sync::Arc::clone(&mailer);
                actor(move || mailer.next())
            };
            let moves = clock.clone();
            let moves = actor(move || {
                moves.advance(Duration::from_nanos(1));
                None
            });
            let sent = layout.act(vec![turn(), turn(), moves]);
            let count = sent.iter().flatten().count() as u64;
            // The time until the next letter tells when the last one was sent.
            let full = clock
                .now()
                .saturating_add(mailer.limiter.time_until(1).expect("a wait"));
            (count, full.as_nanos())
        });
    });
}
