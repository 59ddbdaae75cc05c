//! A request that takes from two shards is interrupted between them, and other callers do the worst
//! they can. The request must neither lose untouched permits nor put back permits that others have
//! already been granted.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::stopping::{Stopping, interrupt, was_interrupted};
use crate::support::*;

/// Two shards with one permit each, and the recorded events, one after the other.
struct Two {
    limiter: Sharded<Stopping, NoClock>,
    log: RefCell<Log>,
    events: Cell<u64>,
    bound: Bound,
}

const T: u64 = 1_000_000;

impl Two {
    fn new(algorithm: AnyAlgorithm) -> Rc<Self> {
        let limiter = Sharded::starting_at(Stopping(algorithm), 2, NoClock, tick(T));
        Rc::new(Self {
            limiter: limiter.expect("it splits"),
            log: RefCell::default(),
            events: Cell::new(0),
            bound: algorithm.bound(),
        })
    }

    /// Returns the next event's tick, from a clock that only counts.
    fn event(&self) -> Tick {
        self.events.set(self.events.get() + 1);
        tick(self.events.get())
    }

    /// Takes one permit from this shard if it has one.
    fn take(&self, part: usize, now: u64) -> bool {
        let (event, now) = (self.event(), tick(now));
        let granted = self.limiter.at(now).from_shard(part).try_acquire();
        if let Ok(granted) = &granted {
            self.log.borrow_mut().granted(granted).during(event, event);
        }
        granted.is_ok()
    }

    fn refund(&self, part: usize, now: u64) -> u64 {
        let (event, now) = (self.event(), tick(now));
        let n = self.limiter.at(now).from_shard(part).refund(1);
        self.log.borrow_mut().gave_back(now, n).during(event, event);
        n
    }

    fn reset(&self) {
        let (event, now) = (self.event(), tick(T));
        self.limiter.reset();
        self.log.borrow_mut().reset(now).during(event, event);
    }

    /// Makes a request for both permits, which is denied because of the interruption.
    fn interrupted(algorithm: AnyAlgorithm, by: impl Fn(&Self) + 'static) -> Rc<Self> {
        let this = Self::new(algorithm);
        let two = Rc::clone(&this);
        interrupt(move || by(&two));
        let at = this.limiter.at(tick(T)).from_shard(0);
        let both = at.try_acquire_n(2);
        assert!(was_interrupted() && both.is_err(), "{algorithm}");
        this
    }

    /// Takes all available permits at this tick, and checks that the grants never exceeded the
    /// bound.
    fn keeps(&self, last: u64) {
        let taken = (0..10).take_while(|_| self.take(0, last)).count();
        assert!(taken < 10, "it is never denied");
        let history: Audit = [self.log.take()].into_iter().collect();
        if let Err(excess) = history.check(&self.bound) {
            panic!("{:?}: {excess}", self.limiter);
        }
    }
}

/// Two permits of each algorithm that can be interrupted.
fn each() -> [AnyAlgorithm; 4] {
    [
        "token-bucket 1/5us burst 2",
        "leaky-meter 1/5us burst 2",
        "fixed-window 2/1ms",
        "sliding-window 2/1ms",
    ]
    .map(algorithm)
}

#[test]
fn untouched_permits_are_put_back() {
    for algorithm in each() {
        let two = Two::interrupted(algorithm, |two| assert!(two.take(1, T)));
        assert_eq!(two.limiter.at(tick(T)).available(), 1);
        assert!(two.take(1, T));
        two.keeps(T);
    }
}

/// Another caller refunds permits or resets, and so returns what this request had taken. A third
/// caller takes that. The shard's word equals the one that this request left, but the permits that
/// it took have since been granted to another caller.
#[test]
fn permits_that_another_caller_returned_are_not_put_back_again() {
    for algorithm in each() {
        let by_refund = |two: &Two| {
            assert_eq!(two.refund(0, T), 1);
            assert!(two.take(0, T) && two.take(1, T));
        };
        let by_reset = |two: &Two| {
            two.reset();
            assert!(two.take(0, T) && two.take(1, T));
        };
        Two::interrupted(algorithm, by_refund).keeps(T);
        Two::interrupted(algorithm, by_reset).keeps(T);
    }
}

/// The same, but the clock refills the permits that this request had taken, and then another caller
/// takes them.
#[test]
fn refilled_permits_are_not_put_back() {
    for algorithm in each() {
        for later in [
            1, 4999, 5000, 9999, 10_000, 10_001, 500_000, 999_999, 1_000_000,
        ] {
            let all = move |two: &Two| {
                two.take(0, T + later);
                two.take(1, T + later);
            };
            let two = Two::interrupted(algorithm, move |two| {
                all(two);
                two.refund(0, T + later);
                all(two);
            });
            two.keeps(T + later);
        }
    }
}

/// Other callers have moved one shard on to the next window. A request that takes from both shards
/// counts in one window.
#[test]
fn permits_of_different_windows_are_not_granted_together() {
    for asked in [1, 2, 3, 4] {
        let two = Two::new(algorithm("fixed-window 4/1ms"));
        // Takes one of the two permits of shard 1, from the window that begins at 2 T.
        assert!(two.take(1, 2 * T));
        for now in [2 * T - 1, 2 * T] {
            let at = two.limiter.at(tick(now)).from_shard(0);
            let grants = [at.try_acquire_n(asked).ok(), Some(at.take_up_to(asked))];
            for granted in grants.into_iter().flatten() {
                assert!(granted.n() <= asked);
                let event = two.event();
                two.log.borrow_mut().granted(&granted).during(event, event);
            }
        }
        two.keeps(2 * T);
    }
}
