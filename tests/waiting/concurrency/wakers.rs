//! Wakers that panic, that run the task they wake, and that call back into the limiter.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::task::{Wake, Waker};

use tollgate::concurrency::{ConcurrencyGuard, EnterFuture};

use super::{Tested, assert_empty, limiter};
use crate::support::*;

fn is_ready(enter: &mut EnterFuture<Tested>, waker: &Waker) -> bool {
    poll_by(Pin::new(enter), waker).is_ready()
}

/// Returns waiters of these weights in the queue. The wakers of some panic, and the others count
/// their wake-ups.
fn line(
    limiter: &Tested,
    wake_counter: &Arc<WakeCounter>,
    weights: &[(u64, bool)],
) -> Vec<EnterFuture<Tested>> {
    let stand = |&(n, panics): &(u64, bool)| {
        let mut enter = limiter.enter_owned(n);
        let waker = match panics {
            true => Waker::from(Arc::new(PanicsWhenWoken)),
            false => Waker::from(Arc::clone(wake_counter)),
        };
        assert!(!is_ready(&mut enter, &waker));
        enter
    };
    weights.iter().map(stand).collect()
}

/// In each case there is room for the waiters behind the first one whose waker panics.
#[test]
fn a_waker_that_panics_does_not_block_the_queue() {
    let panics = |work: &mut dyn FnMut()| catch_unwind(AssertUnwindSafe(work)).is_err();
    // A guard is dropped.
    let (leaves, wake_counter) = (limiter(2), Arc::default());
    let mut held = leaves.try_enter_owned(2).ok();
    let _line = line(&leaves, &wake_counter, &[(1, true), (1, false)]);
    assert!(panics(&mut || held = None));
    let actual = (leaves.inside(), leaves.waiting(), wake_counter.wakes());
    assert_eq!(actual, (2, 0, 1));
    // A waiter is dropped.
    let (gives_up, wake_counter) = (limiter(2), Arc::default());
    let mut held = gives_up.try_enter_owned(1).ok();
    let weights = [(2, false), (0, true), (0, true), (1, false), (1, false)];
    let mut line_of_five = line(&gives_up, &wake_counter, &weights);
    assert!(panics(&mut || drop(line_of_five.remove(0))));
    let actual = (gives_up.inside(), gives_up.waiting(), wake_counter.wakes());
    assert_eq!(actual, (2, 1, 1));
    assert!(!panics(&mut || held = None));
    let mut line_of_four = line_of_five.iter_mut();
    assert!(line_of_four.all(|enter| is_ready(enter, Waker::noop())));
    assert_empty(&gives_up);
    // The limit is lowered: heavier waiters are refused, and a lighter one is admitted.
    let (lowered, wake_counter) = (limiter(4), Arc::default());
    let _held = lowered.try_enter_owned(1);
    let weights = [(4, true), (4, false), (1, false)];
    let _line = line(&lowered, &wake_counter, &weights);
    assert!(panics(&mut || lowered
        .set_limit(2)
        .map(drop)
        .expect("a limit")));
    let actual = (lowered.inside(), lowered.waiting(), wake_counter.wakes());
    assert_eq!(actual, (2, 0, 2));
}

/// The task of a refused waiter runs inside its waker, and enters with less.
#[test]
fn all_waiters_that_fit_are_admitted_before_a_waker_runs() {
    struct ComesAgain(Tested, AtomicU64);
    impl Wake for ComesAgain {
        fn wake(self: Arc<Self>) {
            assert!(self.0.enter().wait_timeout(Duration::ZERO).is_ok());
            self.1.store(1, SeqCst);
        }
    }
    deadline("a waker that enters", || {
        let limiter = limiter(4);
        let _held = limiter.try_enter_owned(1).expect("room");
        let [mut large, mut small] = [4, 1].map(|n| limiter.enter_owned(n));
        let again = Arc::new(ComesAgain(Arc::clone(&limiter), AtomicU64::new(0)));
        assert!(!is_ready(&mut large, &Waker::from(Arc::clone(&again))));
        assert!(!is_ready(&mut small, Waker::noop()));
        limiter.set_limit(3).expect("a limit");
        let seen = (again.1.load(SeqCst), limiter.waiting(), limiter.inside());
        assert_eq!(seen, (1, 0, 2));
    });
}

/// A waker that changes the same limiter in all ways when woken or dropped, and may hold a guard.
#[test]
fn a_waker_can_use_the_limiter() {
    struct Meddles(Tested, Arc<AtomicU64>);
    impl Meddles {
        fn meddle(&self) {
            let limiter = &self.0;
            drop((limiter.try_enter(), limiter.try_enter_ahead(1)));
            let mut enter = limiter.enter_owned(1);
            let _ = is_ready(&mut enter, Waker::noop());
            drop(enter);
            limiter.set_limit(limiter.limit()).expect("a limit");
            assert!(!format!("{limiter:?}").is_empty());
            self.1.fetch_add(1, SeqCst);
        }
    }
    impl Wake for Meddles {
        fn wake(self: Arc<Self>) {
            self.meddle();
        }
    }
    impl Drop for Meddles {
        fn drop(&mut self) {
            self.meddle();
        }
    }
    deadline("wakers that lock the line", || {
        let (limiter, count) = (limiter(4), Arc::new(AtomicU64::new(0)));
        let held = limiter.try_enter_owned(4).expect("room");
        let waker = || Waker::from(Arc::new(Meddles(Arc::clone(&limiter), Arc::clone(&count))));
        let mut line: Vec<_> = (1..7).map(|at| limiter.enter_owned(at % 3)).collect();
        for enter in &mut line {
            assert!(!is_ready(enter, &waker()) && !is_ready(enter, &waker()));
        }
        drop(line.remove(0));
        for limit in [2, 1, 4] {
            limiter.set_limit(limit).expect("a limit");
        }
        drop(held);
        for enter in &mut line {
            let _ = is_ready(enter, &waker());
        }
        drop(line);
        assert_empty(&limiter);
        assert!(count.load(SeqCst) > 10);
    });
}

/// Each task leaves while its own waker runs, and so wakes the next task.
#[test]
fn tasks_that_run_inside_their_waker_all_run() {
    struct Inline(Mutex<Option<EnterFuture<Tested>>>, Arc<AtomicU64>);
    impl Wake for Inline {
        fn wake(self: Arc<Self>) {
            let Some(mut enter) = self.0.lock().expect("no panic").take() else {
                return;
            };
            match poll_by(Pin::new(&mut enter), &Waker::from(Arc::clone(&self))) {
                Poll::Ready(entered) => {
                    self.1.fetch_add(1, SeqCst);
                    drop(entered.expect("less than the limit"));
                }
                Poll::Pending => *self.0.lock().expect("no panic") = Some(enter),
            }
        }
    }
    deadline("tasks that run where they are woken", || {
        let (limiter, ran) = (limiter(1), Arc::new(AtomicU64::new(0)));
        let held = limiter.try_enter_owned(1);
        for _ in 0..200 {
            let enter = Mutex::new(Some(limiter.enter_owned(1)));
            Arc::new(Inline(enter, Arc::clone(&ran))).wake();
        }
        assert_eq!(limiter.waiting(), 200);
        drop(held);
        assert_eq!(ran.load(SeqCst), 200);
        assert_empty(&limiter);
    });
}

#[test]
fn a_waker_that_holds_a_guard_releases_it_when_dropped() {
    struct Holds(#[allow(dead_code, reason = "only held")] ConcurrencyGuard<Tested>);
    impl Wake for Holds {
        fn wake(self: Arc<Self>) {}
    }
    deadline("a waker that leaves", || {
        let limiter = limiter(3);
        let holds = || Waker::from(Arc::new(Holds(limiter.try_enter_owned(1).expect("room"))));
        let mut enter = limiter.enter_owned(3);
        assert!(!is_ready(&mut enter, &holds()));
        // A new waker replaces the first one, whose guard is dropped.
        assert!(!is_ready(&mut enter, Waker::noop()));
        assert_eq!((limiter.inside(), limiter.waiting()), (3, 0));
        assert!(is_ready(&mut enter, Waker::noop()));
        // Or it is dropped with the waiter.
        assert!(!is_ready(&mut enter, &holds()));
        drop(enter);
        assert_empty(&limiter);
    });
}
