//! Clocks that threads share: no advance of a manual clock is lost, a coarse clock never goes back,
//! and a limiter keeps its bound while another thread moves its clock.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tollgate::clock::{Clock, CoarseClock};
use tollgate::sync::model::AtomicU64;
use tollgate::{Limiter, ManualClock, Quota, Tick, TokenBucket};
use tollgate_loom_tests::{Expected, Run, actor, broken, model};

/// A clock that can be moved by a number of nanoseconds, or to a tick.
trait Movable: Clock + Send + Sync + 'static {
    fn make() -> Self;
    fn move_by(&self, nanos: u64) -> Tick;
}

impl Movable for ManualClock {
    fn make() -> Self {
        Self::new()
    }

    fn move_by(&self, nanos: u64) -> Tick {
        self.advance(Duration::from_nanos(nanos))
    }
}

/// This clock is moved to a tick, and never goes back.
impl Movable for CoarseClock {
    fn make() -> Self {
        Self::new()
    }

    fn move_by(&self, nanos: u64) -> Tick {
        self.advance_to(Tick::from_nanos(nanos))
    }
}

/// Broken: adds by a load and a store.
struct AddsByStore(AtomicU64);

/// Broken: sets a tick by a load and a store.
struct StoresLatest(AtomicU64);

impl Clock for AddsByStore {
    fn now(&self) -> Tick {
        Tick::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

impl Clock for StoresLatest {
    fn now(&self) -> Tick {
        Tick::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

impl Movable for AddsByStore {
    fn make() -> Self {
        Self(AtomicU64::new(0))
    }

    fn move_by(&self, nanos: u64) -> Tick {
        let next = self.now().saturating_add(Duration::from_nanos(nanos));
        self.0.store(next.as_nanos(), Ordering::Relaxed);
        next
    }
}

impl Movable for StoresLatest {
    fn make() -> Self {
        Self(AtomicU64::new(0))
    }

    fn move_by(&self, nanos: u64) -> Tick {
        let next = self.now().max(Tick::from_nanos(nanos));
        self.0.store(next.as_nanos(), Ordering::Relaxed);
        next
    }
}

/// Two threads move the clock by 5 and 9, or to 5 and 9. Checks the answer to each thread, and the
/// time at the end.
fn two_moves<C: Movable>(run: &mut Run, outcomes: [(u64, u64, u64); 2]) {
    let expected = Expected::all(outcomes.to_vec());
    let noted = expected.clone();
    run.explore(move |layout| {
        let clock = Arc::new(C::make());
        let actors = [5, 9].map(|nanos| {
            let clock = Arc::clone(&clock);
            actor(move || clock.move_by(nanos).as_nanos())
        });
        let told = layout.act(actors.into());
        noted.note(&(told[0], told[1], clock.now().as_nanos()));
    });
    expected.assert_reached();
}

/// One thread sets 5 and then 9, another sets 7, and a third reads twice: the readings never go
/// back.
fn two_readings<C: Movable>(run: &mut Run) {
    let ticks = [0, 5, 7, 9];
    let pairs = ticks
        .iter()
        .flat_map(|one| ticks.iter().map(move |other| (*one, *other)));
    let expected = Expected::all(pairs.filter(|(one, other)| one <= other).collect());
    let noted = expected.clone();
    run.explore(move |layout| {
        let clock = Arc::new(C::make());
        let (one, other, reader) = (Arc::clone(&clock), Arc::clone(&clock), Arc::clone(&clock));
        let actors = vec![
            actor(move || (one.move_by(5), one.move_by(9))),
            actor(move || (other.move_by(7), Tick::ZERO)),
            actor(move || (reader.now(), reader.now())),
        ];
        let told = layout.act(actors);
        assert_eq!(told[0].1.as_nanos(), 9, "an advance was lost");
        assert_eq!(clock.now().as_nanos(), 9, "the clock went back");
        noted.note(&(told[2].0.as_nanos(), told[2].1.as_nanos()));
    });
    expected.assert_reached();
}

#[test]
fn two_advances_are_both_counted() {
    model("clock::two_advances_are_both_counted", None, |run| {
        two_moves::<ManualClock>(run, [(5, 14, 14), (14, 9, 14)]);
    });
    let name = "clock::adds by a load and a store";
    broken(name, "no order", None, |run| {
        two_moves::<AddsByStore>(run, [(5, 14, 14), (14, 9, 14)]);
    });
}

#[test]
fn coarse_clock_never_goes_back() {
    model("clock::coarse_clock_never_goes_back", Some(3), |run| {
        two_moves::<CoarseClock>(run, [(5, 9, 9), (9, 9, 9)]);
        two_readings::<CoarseClock>(run);
    });
    let name = "clock::stores a tick by a load and a store";
    broken(name, "no order", None, |run| {
        two_moves::<StoresLatest>(run, [(5, 9, 9), (9, 9, 9)]);
    });
    let name = "clock::stores ticks by a load and a store";
    broken(name, "went back", Some(3), |run| {
        two_readings::<StoresLatest>(run);
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
