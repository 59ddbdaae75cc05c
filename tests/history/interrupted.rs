//! A request that takes from two parts is interrupted between them, and others do the worst they can: it must
//! neither lose what nobody touched nor put back what they have had already.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tollgate::history::{Bound, Bounded, History, Log};
use tollgate::{
    Algorithm, Denied, FixedWindow, Forecast, GiveBack, Granted, LeakyBucket, NoClock, Quota,
    Sharded, SlidingWindow, Split, Tick, TokenBucket,
};

thread_local! {
    static INTERRUPTION: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
    /// How often permits may still be taken before it happens.
    static AFTER: Cell<u32> = const { Cell::new(0) };
}

/// Interrupts this thread before the second time that it takes what there is.
fn interrupt(by: impl FnOnce() + 'static) {
    AFTER.set(1);
    INTERRUPTION.set(Some(Box::new(by)));
}

fn was_interrupted() -> bool {
    INTERRUPTION.take().is_none()
}

/// An algorithm in which that can happen.
#[derive(Debug, Clone, Copy)]
struct Interrupted<A>(A);

impl<A: Algorithm> Algorithm for Interrupted<A> {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        self.0.step(word, now, n)
    }
    fn available(&self, word: u64, now: Tick) -> u64 {
        self.0.available(word, now)
    }
    fn is_idle(&self, word: u64, now: Tick) -> bool {
        self.0.is_idle(word, now)
    }
    fn take_up_to(&self, word: u64, now: Tick, n: u64) -> (u64, Granted) {
        match AFTER.get() {
            0 => INTERRUPTION.take().into_iter().for_each(|by| by()),
            more => AFTER.set(more - 1),
        }
        self.0.take_up_to(word, now, n)
    }
}

impl<A: GiveBack> GiveBack for Interrupted<A> {
    fn undo(&self, word: u64, now: Tick, granted: &Granted) -> (u64, u64) {
        self.0.undo(word, now, granted)
    }
    fn refund(&self, word: u64, now: Tick, n: u64) -> (u64, u64) {
        self.0.refund(word, now, n)
    }
}

impl<A: Forecast> Forecast for Interrupted<A> {
    fn due(&self, word: u64, now: Tick, n: u64) -> Option<Tick> {
        self.0.due(word, now, n)
    }
}

impl<A: Split> Split for Interrupted<A> {
    fn most_parts(&self) -> u64 {
        self.0.most_parts()
    }
    fn part(&self, index: u64, of: u64) -> Option<Self> {
        Some(Self(self.0.part(index, of)?))
    }
}

/// Two parts with a permit each, and what was seen of them, one event after the other.
struct Two<A> {
    gate: Sharded<Interrupted<A>, NoClock>,
    log: RefCell<Log>,
    events: Cell<u64>,
}

const T: u64 = 1_000_000;

impl<A: Split + 'static> Two<A> {
    fn new(algorithm: A) -> Rc<Self> {
        let start = Tick::from_nanos(T);
        let gate = Sharded::starting_at(Interrupted(algorithm), 2, NoClock, start);
        Rc::new(Self {
            gate: gate.expect("it splits"),
            log: RefCell::default(),
            events: Cell::new(0),
        })
    }

    /// The next event, by a clock that only counts.
    fn event(&self) -> Tick {
        self.events.set(self.events.get() + 1);
        Tick::from_nanos(self.events.get())
    }

    /// Takes one permit, from this part if it has one.
    fn take(&self, part: usize, now: u64) -> bool {
        let event = self.event();
        let granted = self
            .gate
            .at(Tick::from_nanos(now))
            .from_shard(part)
            .try_acquire();
        if let Ok(granted) = &granted {
            self.log.borrow_mut().granted(granted).during(event, event);
        }
        granted.is_ok()
    }

    fn refund(&self, part: usize, now: u64) -> u64 {
        let event = self.event();
        let now = Tick::from_nanos(now);
        let n = self.gate.at(now).from_shard(part).refund(1);
        self.log.borrow_mut().gave_back(now, n).during(event, event);
        n
    }

    fn reset(&self, now: u64) {
        let event = self.event();
        self.gate.reset();
        let now = Tick::from_nanos(now);
        self.log.borrow_mut().reset(now).during(event, event);
    }

    /// Asks for both permits, and others come between; who gets not both.
    fn is_denied_both(self: &Rc<Self>, by: impl FnOnce(&Self) + 'static) {
        let this = Rc::clone(self);
        interrupt(move || by(&this));
        let both = self
            .gate
            .at(Tick::from_nanos(T))
            .from_shard(0)
            .try_acquire_n(2);
        assert!(was_interrupted());
        assert!(both.is_err());
    }

    /// All that is there goes, and never was more granted than promised.
    fn keeps(&self, bound: &Bound) {
        while self.take(0, T) {}
        let history: History = [self.log.take()].into_iter().collect();
        if let Err(excess) = history.check(bound) {
            panic!("{bound:?}: {excess}");
        }
    }
}

/// Runs a test with each algorithm that can be interrupted, two permits of each.
macro_rules! of_each {
    ($test:path) => {{
        let (window, interval) = (Duration::from_millis(1), Duration::from_micros(5));
        let (two, burst) = (Quota::per(2, window), Quota::per(1, interval).burst(2));
        $test(TokenBucket::new(burst).expect("a quota"));
        $test(LeakyBucket::meter(burst).expect("a quota"));
        $test(FixedWindow::new(two).expect("a quota"));
        $test(SlidingWindow::new(two).expect("a quota"));
    }};
}

#[test]
fn what_nobody_touched_is_there_again() {
    fn test<A: Bounded + Split + Copy + 'static>(algorithm: A) {
        let two = Two::new(algorithm);
        two.is_denied_both(|two| assert!(two.take(1, T)));
        assert_eq!(two.gate.at(Tick::from_nanos(T)).available(), 1);
        assert!(two.take(1, T));
        two.keeps(&algorithm.bound());
    }
    of_each!(test);
}

/// Somebody gives back what he has no more, and so what this request had taken; somebody else takes that. Its
/// part stands as this request left it, but is no more what it took.
#[test]
fn what_was_given_back_for_it_is_not_put_back() {
    fn test<A: Bounded + Split + Copy + 'static>(algorithm: A) {
        let two = Two::new(algorithm);
        two.is_denied_both(|two| {
            assert_eq!(two.refund(0, T), 1);
            assert!(two.take(0, T) && two.take(1, T));
        });
        two.keeps(&algorithm.bound());
    }
    of_each!(test);
}

/// The same, where what this request had taken was refilled by the clock, and then taken by somebody.
#[test]
fn what_the_clock_refilled_is_not_put_back() {
    fn test<A: Bounded + Split + Copy + 'static>(algorithm: A) {
        for later in [
            1, 4999, 5000, 9999, 10_000, 10_001, 500_000, 999_999, 1_000_000,
        ] {
            let two = Two::new(algorithm);
            two.is_denied_both(move |two| {
                two.take(0, T + later);
                two.take(1, T + later);
                two.refund(0, T + later);
                two.take(0, T + later);
                two.take(1, T + later);
            });
            while two.take(0, T + later) {}
            two.keeps(&algorithm.bound());
        }
    }
    of_each!(test);
}

#[test]
fn what_was_reset_is_not_put_back() {
    fn test<A: Bounded + Split + Copy + 'static>(algorithm: A) {
        let two = Two::new(algorithm);
        two.is_denied_both(|two| {
            two.reset(T);
            assert!(two.take(0, T) && two.take(1, T));
        });
        two.keeps(&algorithm.bound());
    }
    of_each!(test);
}

/// Others have gone on to the next window in one part: what is taken together counts in one of them.
#[test]
fn what_counts_in_different_windows_is_not_granted_together() {
    let window = Duration::from_nanos(T);
    for asked in [1, 2, 3, 4] {
        let algorithm = FixedWindow::new(Quota::per(4, window)).expect("a quota");
        let two = Two::new(algorithm);
        // Of the window that begins at 2 T: one of the two of part 1.
        assert!(two.take(1, 2 * T));
        for now in [2 * T - 1, 2 * T] {
            let at = two.gate.at(Tick::from_nanos(now)).from_shard(0);
            let grants = [at.try_acquire_n(asked).ok(), Some(at.take_up_to(asked))];
            for granted in grants.into_iter().flatten() {
                assert!(granted.n() <= asked);
                let event = two.event();
                two.log.borrow_mut().granted(&granted).during(event, event);
            }
        }
        while two.take(0, 2 * T) {}
        two.keeps(&algorithm.bound());
    }
}
