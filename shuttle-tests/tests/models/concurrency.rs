//! Four threads enter, wait, give up, time out, leave, and change the limit. Guards never weigh
//! more than the limit, no waiter is forgotten, and nothing is inside or waiting at the end. The
//! models find each injected fault.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tollgate::concurrency::ConcurrencyGuard;
use tollgate_shuttle_tests::prelude::*;

const THREADS: u64 = 4;
const CALLS: u64 = 6;
const LIMIT: u64 = 2;
/// The highest limit that a change sets.
const HIGHEST: u64 = 3;

struct Tested {
    limiter: Arc<Concurrency>,
    /// The weight inside, counted by the threads themselves. It is not part of the model.
    count: Mutex<u64>,
}

impl Tested {
    fn change(&self, change: impl FnOnce(u64) -> u64) -> u64 {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        *count = change(*count);
        *count
    }

    /// Counts a guard as inside, then as gone.
    fn inside(&self, guard: &ConcurrencyGuard<Arc<Concurrency>>, highest: u64) {
        let there = self.change(|there| there + guard.n());
        assert!(there <= highest, "{there} inside of {highest}");
        let _ = self.limiter.limit();
        self.change(|there| there - guard.n());
    }
}

fn calls(tested: &Tested, changes: bool) {
    let limiter = &tested.limiter;
    let highest = if changes { HIGHEST } else { LIMIT };
    for _ in 0..CALLS {
        let n = 1 + below(2);
        let entered = match below(if changes { 6 } else { 5 }) {
            0 => limiter.try_enter_owned(n).ok(),
            1 => limiter
                .enter_owned(n)
                .wait_timeout(Duration::from_nanos(1))
                .ok(),
            2 => gives_up(limiter, n),
            5 => {
                let _ = limiter.set_limit(1 + below(HIGHEST));
                None
            }
            _ => limiter.enter_owned(n).wait().ok(),
        };
        if let Some(guard) = entered {
            tested.inside(&guard, highest);
        }
    }
}

/// Polls once or twice, and gives up if it must wait.
fn gives_up(limiter: &Arc<Concurrency>, n: u64) -> Option<ConcurrencyGuard<Arc<Concurrency>>> {
    let mut enter = pin!(limiter.enter_owned(n));
    for _ in 0..1 + below(2) {
        match enter.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(entered) => return entered.ok(),
            Poll::Pending => reached("a thread waits"),
        }
    }
    None
}

fn at_a_limiter<const CHANGES: bool, const MAX_WAITING: u64>() {
    let limiter = Concurrency::new(LIMIT).expect("a limit");
    let limiter = Arc::new(limiter.max_waiting_permits(MAX_WAITING));
    let tested = Arc::new(Tested {
        limiter: Arc::clone(&limiter),
        count: Mutex::default(),
    });
    on_threads(THREADS, &tested, |tested, _| calls(tested, CHANGES));
    let lost = (limiter.inside(), limiter.waiting() as u64);
    assert_eq!(lost, (0, 0), "weight or waiters remain");
    // As much as the line holds can wait again.
    let highest = limiter.limit();
    let all = limiter.try_enter_n(highest);
    let mut waits = pin!(limiter.enter_n(MAX_WAITING.min(highest)));
    let polled = waits.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(
        all.is_ok() && polled.is_pending(),
        "weight or waiters remain"
    );
}

const WRONG: &str =
    "deadlock | weight or waiters remain | inside of | overflow | exceeded max_steps";

/// The line has no bound, and the limit does not change.
const STEADY: fn() = at_a_limiter::<false, { u64::MAX }>;
const CHANGING: fn() = at_a_limiter::<true, { u64::MAX }>;
const BOUNDED: fn() = at_a_limiter::<false, LIMIT>;

const WAITS: [&str; 1] = ["a thread waits"];

#[test]
fn no_waiter_is_forgotten() {
    let name = "concurrency::no_waiter_is_forgotten";
    model(name, 5_000, &WAITS, STEADY);
    let faults = [Fault::LetsNoneIn, Fault::KeepsWhatWasHanded];
    with_faults("concurrency", faults, WRONG, STEADY);
    stored("concurrency", WRONG, STEADY);
}

#[test]
fn a_waiter_that_leaves_makes_room_for_others() {
    let name = "concurrency::a_waiter_that_leaves_makes_room_for_others";
    model(name, 5_000, &WAITS, BOUNDED);
    let (name, faults) = ("concurrency, bounded", [Fault::KeepsItsPermits]);
    with_faults(name, faults, WRONG, BOUNDED);
}

#[test]
fn no_waiter_is_forgotten_while_the_limit_changes() {
    let name = "concurrency::no_waiter_is_forgotten_while_the_limit_changes";
    model(name, 5_000, &WAITS, CHANGING);
    let faults = [Fault::LowersSilently, Fault::Blind(source::new_limit())];
    with_faults("concurrency, limits", faults, WRONG, CHANGING);
}
