//! Clocks that threads share: no advance of a manual clock is lost, a coarse clock never goes back,
//! and a limiter keeps its bound while another thread moves its clock.

use std::sync::atomic::Ordering;

use tollgate::clock::CoarseClock;
use tollgate::sync::model::AtomicU64;
use tollgate_loom_tests::prelude::*;

/// Broken: it is moved by a load and a store.
struct ByStore(AtomicU64);

impl ByStore {
    fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    fn set(&self, tick: Tick) -> Tick {
        self.0.store(tick.as_nanos(), Ordering::Relaxed);
        tick
    }

    fn advance(&self, duration: Duration) -> Tick {
        self.set(self.now().saturating_add(duration))
    }

    fn advance_to(&self, tick: Tick) -> Tick {
        self.set(self.now().max(tick))
    }
}

impl Clock for ByStore {
    fn now(&self) -> Tick {
        Tick::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

/// Moves a clock by a number of nanoseconds, or to that tick.
type Move<C> = fn(&C, u64) -> Tick;

/// Two threads move the clock by 5 and 9, or to 5 and 9. Checks the answer to each thread, and the
/// time at the end.
fn two_moves<C: Clock + Send + Sync + 'static>(
    run: &mut Run,
    make: fn() -> C,
    moves: Move<C>,
    outcomes: [(u64, u64, u64); 2],
) {
    run.explore_all(outcomes.to_vec(), move |layout| {
        let clock = Arc::new(make());
        let actors = [5, 9].map(|nanos| {
            let clock = Arc::clone(&clock);
            actor(move || moves(&clock, nanos).as_nanos())
        });
        let told = layout.act(actors.into());
        (told[0], told[1], clock.now().as_nanos())
    });
}

/// One thread sets 5 and then 9, another sets 7, and a third reads twice: the readings never go
/// back.
fn two_readings<C: Clock + Send + Sync + 'static>(run: &mut Run, make: fn() -> C, moves: Move<C>) {
    let ticks = [0, 5, 7, 9];
    let pairs = ticks
        .iter()
        .flat_map(|one| ticks.iter().map(move |other| (*one, *other)));
    let readings = pairs.filter(|(one, other)| one <= other).collect();
    run.explore_all(readings, move |layout| {
        let clock = Arc::new(make());
        let (one, other, reader) = (Arc::clone(&clock), Arc::clone(&clock), Arc::clone(&clock));
        let actors = vec![
            actor(move || (moves(&one, 5), moves(&one, 9))),
            actor(move || (moves(&other, 7), Tick::ZERO)),
            actor(move || (reader.now(), reader.now())),
        ];
        let told = layout.act(actors);
        assert_eq!(told[0].1.as_nanos(), 9, "an advance was lost");
        assert_eq!(clock.now().as_nanos(), 9, "the clock went back");
        (told[2].0.as_nanos(), told[2].1.as_nanos())
    });
}

#[test]
fn two_advances_are_both_counted() {
    const OUTCOMES: [(u64, u64, u64); 2] = [(5, 14, 14), (14, 9, 14)];
    model("clock::two_advances_are_both_counted", None, |run| {
        let moves: Move<_> =
            |clock, nanos| ManualClock::advance(clock, Duration::from_nanos(nanos));
        two_moves(run, ManualClock::new, moves, OUTCOMES);
    });
    let name = "clock::adds by a load and a store";
    broken(name, "no order", None, |run| {
        let moves: Move<_> = |clock, nanos| ByStore::advance(clock, Duration::from_nanos(nanos));
        two_moves(run, ByStore::new, moves, OUTCOMES);
    });
}

#[test]
fn coarse_clock_never_goes_back() {
    const OUTCOMES: [(u64, u64, u64); 2] = [(5, 9, 9), (9, 9, 9)];
    let coarse: Move<_> = |clock, nanos| CoarseClock::advance_to(clock, Tick::from_nanos(nanos));
    model("clock::coarse_clock_never_goes_back", Some(3), |run| {
        two_moves(run, CoarseClock::new, coarse, OUTCOMES);
        two_readings(run, CoarseClock::new, coarse);
    });
    let by_store: Move<_> = |clock, nanos| ByStore::advance_to(clock, Tick::from_nanos(nanos));
    let name = "clock::stores a tick by a load and a store";
    broken(name, "no order", None, |run| {
        two_moves(run, ByStore::new, by_store, OUTCOMES);
    });
    let name = "clock::stores ticks by a load and a store";
    broken(name, "went back", Some(3), |run| {
        two_readings(run, ByStore::new, by_store);
    });
}

/// Two threads ask a limiter with one permit every 2 ns, while a third moves its clock by 2. The
/// outcome is the number of permits that each thread got and the number left at the end.
fn follow(run: &mut Run) {
    let outcomes = vec![
        (1, 0, 1), // both asked before the clock moved
        (0, 1, 1),
        (1, 0, 0), // both after it, or one after it and the other with the time from before
        (0, 1, 0),
        (1, 1, 0), // one before it and one after it
    ];
    run.explore_all(outcomes, move |layout| {
        let bucket = TokenBucket::new(Quota::per(1, Duration::from_nanos(2))).expect("a quota");
        let clock = ManualClock::at(Tick::from_nanos(10));
        let limiter = Arc::new(Limiter::with_clock(bucket, clock.clone()));
        let asks = || {
            let limiter = Arc::clone(&limiter);
            actor(move || limiter.try_acquire().map_or(0, |granted| granted.n()))
        };
        let moves = actor(move || clock.advance(Duration::from_nanos(2)).as_nanos());
        let told = layout.act(vec![asks(), asks(), moves]);
        assert_eq!(told[2], 12);
        (told[0], told[1], limiter.available())
    });
}

#[test]
fn a_limiter_follows_its_clock() {
    model("clock::a_limiter_follows_its_clock", Some(3), follow);
}
