//! Wakers that panic, that run what they wake, and that call back.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use tollgate::primitive::{AtomicU64, Ordering};
use tollgate::{Concurrency, Enter};

struct Panics;
impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("too many tasks queued");
    }
}

#[derive(Default)]
struct Counts(AtomicU64);
impl Wake for Counts {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

type E = Enter<Arc<Concurrency>>;

fn poll(enter: &mut E, waker: &Waker) -> bool {
    Pin::new(enter)
        .poll(&mut Context::from_waker(waker))
        .is_ready()
}

/// A leaver of two lets in the first, whose waker panics; the second has room too.
#[test]
fn a_waker_that_panics_does_not_stop_the_line() {
    let gate = Arc::new(Concurrency::new(2).unwrap());
    let held = gate.try_enter_owned(2).unwrap();
    let (mut one, mut two) = (gate.enter_owned(1), gate.enter_owned(1));
    let bell = Arc::new(Counts::default());
    assert!(!poll(&mut one, &Waker::from(Arc::new(Panics))));
    assert!(!poll(&mut two, &Waker::from(Arc::clone(&bell))));
    let _ = catch_unwind(AssertUnwindSafe(|| drop(held)));
    assert_eq!(
        (gate.inside(), gate.waiting(), bell.0.load(Ordering::SeqCst)),
        (2, 0, 1),
        "(inside, waiting, woken): the second has room and was not let in"
    );
}

/// Two that weigh nothing, whose wakers panic: then nobody is inside, and nobody ever enters again.
#[test]
fn wakers_that_panic_do_not_close_an_empty_gate() {
    let gate = Arc::new(Concurrency::new(2).unwrap());
    let held = gate.try_enter_owned(1).unwrap();
    let mut line: Vec<E> = [2, 0, 0, 1].map(|n| gate.enter_owned(n)).into();
    let wakers = [false, true, true, false].map(|panics| match panics {
        true => Waker::from(Arc::new(Panics)),
        false => Waker::noop().clone(),
    });
    for (enter, waker) in line.iter_mut().zip(&wakers) {
        assert!(!poll(enter, waker));
    }
    let mut last = line.pop().unwrap();
    let first = line.remove(0);
    let _ = catch_unwind(AssertUnwindSafe(|| drop(first)));
    let _ = catch_unwind(AssertUnwindSafe(|| drop(held)));
    drop(line);
    let said = gate.try_enter().is_ok();
    assert!(
        poll(&mut last, Waker::noop()),
        "closed for ever: {gate:?}, try_enter ok: {said}"
    );
}

/// The task of who is refused runs where it is woken, and comes again for less: there is room for all.
struct ComesAgain(Arc<Concurrency>, AtomicU64);
impl Wake for ComesAgain {
    fn wake(self: Arc<Self>) {
        let said = self.0.enter().wait_timeout(std::time::Duration::ZERO);
        self.1.store(1 + u64::from(said.is_ok()), Ordering::SeqCst);
    }
}

#[test]
fn who_fits_is_let_in_before_strangers_run() {
    let gate = Arc::new(Concurrency::new(4).unwrap());
    let _held = gate.try_enter_owned(1).unwrap();
    let (mut large, mut small) = (gate.enter_owned(4), gate.enter_owned(1));
    let again = Arc::new(ComesAgain(Arc::clone(&gate), AtomicU64::new(0)));
    assert!(!poll(&mut large, &Waker::from(Arc::clone(&again))));
    assert!(!poll(&mut small, Waker::noop()));
    gate.set_limit(3).unwrap();
    assert_eq!(
        again.1.load(Ordering::SeqCst),
        2,
        "1 + 1 + 1 of 3 fit, but it was Busy for 300 ms"
    );
}

/// The limit is lowered: of two that are refused the waker of the first panics.
#[test]
fn a_waker_that_panics_does_not_keep_others_from_their_refusal() {
    let gate = Arc::new(Concurrency::new(4).unwrap());
    let _held = gate.try_enter_owned(1).unwrap();
    let (mut one, mut two, mut small) = (
        gate.enter_owned(4),
        gate.enter_owned(4),
        gate.enter_owned(1),
    );
    let (bell, small_bell) = (Arc::new(Counts::default()), Arc::new(Counts::default()));
    assert!(!poll(&mut one, &Waker::from(Arc::new(Panics))));
    assert!(!poll(&mut two, &Waker::from(Arc::clone(&bell))));
    assert!(!poll(&mut small, &Waker::from(Arc::clone(&small_bell))));
    let _ = catch_unwind(AssertUnwindSafe(|| gate.set_limit(2)));
    assert_eq!(
        [
            bell.0.load(Ordering::SeqCst),
            small_bell.0.load(Ordering::SeqCst)
        ],
        [1, 1],
        "who was refused was not woken, and who has room was not let in (waiting: {})",
        gate.waiting()
    );
}

/// A task that runs where it is woken.
struct Inline {
    enter: Mutex<Option<E>>,
    ran: Arc<AtomicU64>,
}
impl Wake for Inline {
    fn wake(self: Arc<Self>) {
        let Some(mut enter) = self.enter.lock().unwrap().take() else {
            return;
        };
        let waker = Waker::from(Arc::clone(&self));
        match Pin::new(&mut enter).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(Ok(guard)) => {
                self.ran.fetch_add(1, Ordering::SeqCst);
                drop(guard);
            }
            Poll::Ready(Err(_)) => {}
            Poll::Pending => *self.enter.lock().unwrap() = Some(enter),
        }
    }
}

#[test]
fn a_short_line_of_tasks_that_run_where_they_are_woken() {
    inline(200);
}

fn inline(many: usize) {
    let gate = Arc::new(Concurrency::new(1).unwrap());
    let held = gate.try_enter_owned(1).unwrap();
    let ran = Arc::new(AtomicU64::new(0));
    for _ in 0..many {
        let task = Arc::new(Inline {
            enter: Mutex::new(Some(gate.enter_owned(1))),
            ran: Arc::clone(&ran),
        });
        task.wake();
    }
    assert_eq!(gate.waiting(), many);
    drop(held);
    assert_eq!(
        (ran.load(Ordering::SeqCst), gate.inside(), gate.waiting()),
        (many as u64, 0, 0)
    );
}

/// A waker that, woken or dropped, changes the same gate in all ways.
struct Meddles(Arc<Concurrency>, Arc<AtomicU64>);
impl Meddles {
    fn meddle(&self) {
        let gate = &self.0;
        drop(gate.try_enter());
        drop(gate.try_enter_ahead(1));
        let mut enter = gate.enter_owned(1);
        let _ = Pin::new(&mut enter).poll(&mut Context::from_waker(Waker::noop()));
        drop(enter);
        let limit = gate.limit();
        gate.set_limit(limit).unwrap();
        let _ = format!("{gate:?}");
        self.1.fetch_add(1, Ordering::SeqCst);
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

#[test]
fn a_waker_that_meddles_finds_the_gate_open() {
    let gate = Arc::new(Concurrency::new(4).unwrap());
    let count = Arc::new(AtomicU64::new(0));
    let held = gate.try_enter_owned(4).unwrap();
    let waker = || Waker::from(Arc::new(Meddles(Arc::clone(&gate), Arc::clone(&count))));
    let mut line: Vec<E> = (1..7).map(|at| gate.enter_owned(at % 3)).collect();
    for enter in &mut line {
        assert!(!poll(enter, &waker()));
        assert!(!poll(enter, &waker()));
    }
    drop(line.remove(0));
    gate.set_limit(2).unwrap();
    gate.set_limit(1).unwrap();
    gate.set_limit(4).unwrap();
    drop(held);
    for enter in &mut line {
        poll(enter, &waker());
    }
    drop(line);
    assert_eq!((gate.inside(), gate.waiting()), (0, 0));
    assert!(count.load(Ordering::SeqCst) > 10);
}
