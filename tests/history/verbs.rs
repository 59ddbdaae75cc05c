//! The verbs that threads use, on whatever limiter, and an algorithm that puts threads to sleep in the
//! middle of them.

use std::cell::Cell;
use std::thread;

use tollgate::history::{Bound, Bounded};
use tollgate::{
    Algorithm, Charged, Clock, ConfigError, Debt, Denied, Forecast, GiveBack, Granted, Lend,
    Limiter, ManualClock, Sharded, SlidingLog, SlottedWindow, Split, Tick,
};

/// A limiter on a clock that its threads move, and which they may each take to be another time. What it can't
/// do gives nothing.
pub(crate) trait Verbs: Sync {
    fn time(&self) -> &ManualClock;
    fn try_acquire_n(&self, n: u64, now: Tick) -> Result<Granted, Denied>;
    fn take_up_to(&self, n: u64, now: Tick) -> Granted;

    fn undo(&self, _granted: Granted, _now: Tick) -> u64 {
        0
    }
    fn refund(&self, _n: u64, _now: Tick) -> u64 {
        0
    }
    fn charge(&self, _n: u64, now: Tick) -> Charged {
        Charged::new(0, now)
    }
    /// Whether it can be reset.
    fn reset(&self) -> bool {
        false
    }
    fn now(&self) -> Tick {
        self.time().now()
    }
}

/// The verbs of limiters that have all of them.
macro_rules! has_all_verbs {
    () => {
        fn time(&self) -> &ManualClock {
            self.clock()
        }
        fn try_acquire_n(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
            self.at(now).try_acquire_n(n)
        }
        fn take_up_to(&self, n: u64, now: Tick) -> Granted {
            self.at(now).take_up_to(n)
        }
        fn undo(&self, granted: Granted, now: Tick) -> u64 {
            self.at(now).undo(granted)
        }
        fn refund(&self, n: u64, now: Tick) -> u64 {
            self.at(now).refund(n)
        }
        fn charge(&self, n: u64, now: Tick) -> Charged {
            self.at(now).charge(n)
        }
        fn reset(&self) -> bool {
            self.reset();
            true
        }
    };
}

impl<A: GiveBack + Debt + Send + Sync> Verbs for Limiter<A, ManualClock> {
    has_all_verbs! {}
}

impl<A: Split + Debt + Send + Sync> Verbs for Sharded<A, ManualClock> {
    has_all_verbs! {}
}

/// A sharded limiter whose threads leave it to it to read the clock, which it does again before it puts
/// back what a request for several permits could not use.
pub(crate) struct ByTheClock<A>(pub(crate) Sharded<A, ManualClock>);

impl<A: Split + Debt + Send + Sync> Verbs for ByTheClock<A> {
    fn time(&self) -> &ManualClock {
        self.0.clock()
    }
    fn try_acquire_n(&self, n: u64, _: Tick) -> Result<Granted, Denied> {
        self.0.try_acquire_n(n)
    }
    fn take_up_to(&self, n: u64, _: Tick) -> Granted {
        self.0.take_up_to(n)
    }
    fn undo(&self, granted: Granted, _: Tick) -> u64 {
        self.0.undo(granted)
    }
    fn refund(&self, n: u64, _: Tick) -> u64 {
        self.0.refund(n)
    }
    fn charge(&self, n: u64, _: Tick) -> Charged {
        self.0.charge(n)
    }
    fn reset(&self) -> bool {
        self.0.reset();
        true
    }
}

impl Verbs for SlottedWindow<ManualClock> {
    fn time(&self) -> &ManualClock {
        self.clock()
    }
    fn try_acquire_n(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
        self.try_acquire_n_at(n, now)
    }
    fn take_up_to(&self, n: u64, now: Tick) -> Granted {
        self.take_up_to_at(n, now)
    }
    fn undo(&self, granted: Granted, now: Tick) -> u64 {
        self.undo_at(granted, now)
    }
    fn refund(&self, n: u64, now: Tick) -> u64 {
        self.refund_at(n, now)
    }
    fn charge(&self, n: u64, now: Tick) -> Charged {
        self.charge_at(n, now)
    }
}

impl Verbs for SlidingLog<ManualClock> {
    fn time(&self) -> &ManualClock {
        self.clock()
    }
    fn try_acquire_n(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
        self.try_acquire_n_at(n, now)
    }
    fn take_up_to(&self, n: u64, now: Tick) -> Granted {
        self.take_up_to_at(n, now)
    }
}

/// An algorithm in whose steps threads stop at random, so that others come between what they read and
/// what they write, and between one word and the next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopping<A>(pub(crate) A);

/// Lets others go on, once in a while.
fn stop() {
    thread_local! {
        static STATE: Cell<u32> = const { Cell::new(0x9e37_79b9) };
    }
    STATE.with(|state| {
        let next = state
            .get()
            .wrapping_mul(747_796_405)
            .wrapping_add(2_891_336_453);
        state.set(next);
        if next >> 24 == 0 {
            thread::yield_now();
        }
    });
}

impl<A: Algorithm> Algorithm for Stopping<A> {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        stop();
        self.0.step(word, now, n)
    }
    fn available(&self, word: u64, now: Tick) -> u64 {
        self.0.available(word, now)
    }
    fn is_idle(&self, word: u64, now: Tick) -> bool {
        self.0.is_idle(word, now)
    }
    fn initial_word(&self, now: Tick) -> u64 {
        self.0.initial_word(now)
    }
    fn take_up_to(&self, word: u64, now: Tick, n: u64) -> (u64, Granted) {
        stop();
        self.0.take_up_to(word, now, n)
    }
}

impl<A: GiveBack> GiveBack for Stopping<A> {
    fn undo(&self, word: u64, now: Tick, granted: &Granted) -> (u64, u64) {
        stop();
        self.0.undo(word, now, granted)
    }
    fn refund(&self, word: u64, now: Tick, n: u64) -> (u64, u64) {
        stop();
        self.0.refund(word, now, n)
    }
}

impl<A: Debt> Debt for Stopping<A> {
    fn charge(&self, word: u64, now: Tick, n: u64) -> (u64, Charged) {
        stop();
        self.0.charge(word, now, n)
    }
}

impl<A: Forecast> Forecast for Stopping<A> {
    fn due(&self, word: u64, now: Tick, n: u64) -> Option<Tick> {
        self.0.due(word, now, n)
    }
}

impl<A: Split> Split for Stopping<A> {
    fn most_parts(&self) -> u64 {
        self.0.most_parts()
    }
    fn part(&self, index: u64, of: u64) -> Option<Self> {
        Some(Self(self.0.part(index, of)?))
    }
}

impl<A: Lend> Lend for Stopping<A> {
    fn most_lent(&self) -> u64 {
        self.0.most_lent()
    }
    fn lending(&self, total: u64) -> Result<Self, ConfigError> {
        Ok(Self(self.0.lending(total)?))
    }
}

impl<A: Bounded> Bounded for Stopping<A> {
    fn bound(&self) -> Bound {
        self.0.bound()
    }
}
