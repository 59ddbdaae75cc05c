//! The word of what a node has leased of a key: no permit is spent twice, returned and spent, or
//! lost, while threads spend, a task returns and draws, and a grant is put back.

use std::sync::atomic::Ordering;

use tollgate::sync::model::AtomicU64;
use tollgate_loom_tests::prelude::*;

#[allow(dead_code, reason = "a model does not need all")]
#[path = "../../../crates/tollgate-redis/src/lease/held.rs"]
mod held;
#[allow(dead_code, reason = "a model does not need all")]
#[path = "../../../crates/tollgate-redis/src/lease/permits.rs"]
mod permits;
#[allow(dead_code, reason = "a model does not need all")]
#[path = "../../../crates/tollgate-redis/src/lease/pool.rs"]
mod pool;

use held::Held;
use permits::Permits;
use pool::Pool;

/// The atomics and the lock of a pool.
mod sync {
    pub(super) use loom::sync::Mutex;
    pub(super) use std::sync::atomic::Ordering;
    pub(super) use tollgate::sync::model::AtomicU64;
}

/// A tick at which a lease ends, far away.
const END_NS: u64 = 1 << 40;

trait Holds: Default + Send + Sync + 'static {
    /// Takes a permit. Returns whether it was there, and whether the task is told.
    fn spend(&self) -> (bool, bool);
    fn put_back(&self);
    /// Returns how many permits were taken out, but for one.
    fn withdraw(&self) -> u64;
    fn answered(&self, more: u64);
    fn left(&self) -> u64;
}

impl Holds for Pool {
    fn spend(&self) -> (bool, bool) {
        let spent = Pool::spend(self, 0, 1);
        (spent.is_some(), spent.is_some_and(|(_, tells)| tells))
    }

    fn put_back(&self) {
        Pool::put_back(self, 0, 1);
    }

    fn withdraw(&self) -> u64 {
        Pool::withdraw(self, 0, 1).1
    }

    fn answered(&self, more: u64) {
        let _ = Pool::answered(self, 0, 0, more, END_NS, 1);
    }

    fn left(&self) -> u64 {
        self.held().permits(0)
    }
}

/// Broken: a spender loads the word and stores the next one.
#[derive(Default)]
struct SpendsInTwoSteps(AtomicU64);

impl SpendsInTwoSteps {
    fn change(&self, change: impl Fn(Held) -> Held) {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let next = change(Held(word)).0;
            let exchanged =
                self.0
                    .compare_exchange_weak(word, next, Ordering::Relaxed, Ordering::Relaxed);
            match exchanged {
                Ok(_) => return,
                Err(seen) => word = seen,
            }
        }
    }
}

impl Holds for SpendsInTwoSteps {
    fn spend(&self) -> (bool, bool) {
        let held = Held(self.0.load(Ordering::Relaxed));
        let spent = held.spend(0, 1);
        if let Some(spent) = spent {
            self.0.store(spent.held.0, Ordering::Relaxed);
        }
        (spent.is_some(), spent.is_some_and(|spent| spent.asks))
    }

    fn put_back(&self) {
        self.change(|held| held.returned(0, 1));
    }

    fn withdraw(&self) -> u64 {
        let before = Held(self.0.load(Ordering::Relaxed)).permits(0);
        self.change(|held| held.withdraw(0, 1).0);
        before.saturating_sub(1)
    }

    fn answered(&self, more: u64) {
        self.change(|held| held.answered(0, 0, more, END_NS, 1));
    }

    fn left(&self) -> u64 {
        Held(self.0.load(Ordering::Relaxed)).permits(0)
    }
}

/// Broken: the task returns what it saw, and takes it out later.
#[derive(Default)]
struct ReturnsWhatItSaw(SpendsInTwoSteps);

impl Holds for ReturnsWhatItSaw {
    fn spend(&self) -> (bool, bool) {
        let spent = std::cell::Cell::new(None);
        self.0.change(|held| {
            spent.set(held.spend(0, 1));
            spent.get().map_or(held, |spent| spent.held)
        });
        let spent = spent.get();
        (spent.is_some(), spent.is_some_and(|spent| spent.asks))
    }

    fn put_back(&self) {
        self.0.put_back();
    }

    fn withdraw(&self) -> u64 {
        self.0.withdraw()
    }

    fn answered(&self, more: u64) {
        self.0.answered(more);
    }

    fn left(&self) -> u64 {
        self.0.left()
    }
}

/// Three permits are there. Two threads spend, of which one puts its permit back; a task returns
/// all but one, and draws two more.
fn is_conserved<H: Holds>(run: &mut Run) {
    run.explore(|layout| {
        let pool = Arc::new(H::default());
        pool.answered(3);
        let (one, other, task) = (Arc::clone(&pool), Arc::clone(&pool), Arc::clone(&pool));
        let (spent, told) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (spent_by_one, told_by_one) = (Arc::clone(&spent), Arc::clone(&told));
        let (told_by_other, returned) = (Arc::clone(&told), Arc::new(AtomicU64::new(0)));
        let returned_by_task = Arc::clone(&returned);
        let actors = vec![
            actor(move || {
                let (is_spent, tells) = one.spend();
                spent_by_one.fetch_add(is_spent.into(), Ordering::Relaxed);
                told_by_one.fetch_add(tells.into(), Ordering::Relaxed);
            }),
            actor(move || {
                let (is_spent, tells) = other.spend();
                told_by_other.fetch_add(tells.into(), Ordering::Relaxed);
                if is_spent {
                    other.put_back();
                }
            }),
            actor(move || {
                returned_by_task.fetch_add(task.withdraw(), Ordering::Relaxed);
                task.answered(2);
            }),
        ];
        layout.act(actors);
        let (spent, returned) = (
            spent.load(Ordering::Relaxed),
            returned.load(Ordering::Relaxed),
        );
        let left = pool.left();
        assert_eq!(spent + returned + left, 5, "{spent} {returned} {left}");
        let told = told.load(Ordering::Relaxed);
        assert!(told <= 2, "each draw is asked for once, not {told} times");
    });
}

#[test]
fn no_permit_is_spent_twice_or_lost() {
    model(
        "node_leases::no_permit_is_spent_twice_or_lost",
        Some(3),
        is_conserved::<Pool>,
    );
    let name = "node_leases::spends in two steps";
    broken(
        name,
        "left == right",
        Some(3),
        is_conserved::<SpendsInTwoSteps>,
    );
    let name = "node_leases::returns what it saw";
    broken(
        name,
        "left == right",
        Some(3),
        is_conserved::<ReturnsWhatItSaw>,
    );
}

/// Permits with the messages that say what is spent.
trait Tells: Send + Sync + 'static {
    /// Returns two permits.
    fn new() -> Self;
    /// Takes a permit. Returns what finds the grant, if there was one.
    fn spend(&self) -> Option<u64>;
    fn put_back(&self, after: u64);
    /// Says to keep one permit, and returns how many the message keeps.
    fn withdraw(&self) -> u64;
    fn left(&self) -> u64;
}

impl Tells for Permits {
    fn new() -> Self {
        let permits = Self::new();
        let _ = permits.answered(0, [0, 2], END_NS, 1, 0);
        permits
    }

    fn spend(&self) -> Option<u64> {
        Permits::spend(self, 0, 1).map(|(_, after, _)| after)
    }

    fn put_back(&self, after: u64) {
        let _ = Permits::put_back(self, 0, 1, after);
    }

    fn withdraw(&self) -> u64 {
        Permits::withdraw(self, 0, 1, 1).0
    }

    fn left(&self) -> u64 {
        self.pool.held().permits(0)
    }
}

/// Broken: a grant is put back whatever was said since.
struct PutsBackLate(Permits);

impl Tells for PutsBackLate {
    fn new() -> Self {
        Self(Tells::new())
    }

    fn spend(&self) -> Option<u64> {
        Tells::spend(&self.0)
    }

    fn put_back(&self, _: u64) {
        self.0.pool.put_back(0, 1);
    }

    fn withdraw(&self) -> u64 {
        Tells::withdraw(&self.0)
    }

    fn left(&self) -> u64 {
        self.0.left()
    }
}

/// Broken: a message is made without the lock, between the look at the latest one and the permits
/// that are put back.
struct TellsWithoutLock {
    pool: Pool,
    latest: AtomicU64,
}

impl Tells for TellsWithoutLock {
    fn new() -> Self {
        let pool = Pool::default();
        let _ = pool.answered(0, 0, 2, END_NS, 1);
        let latest = AtomicU64::new(0);
        Self { pool, latest }
    }

    fn spend(&self) -> Option<u64> {
        let message = self.latest.load(Ordering::Acquire);
        self.pool.spend(0, 1).map(|_| message)
    }

    fn put_back(&self, after: u64) {
        if self.latest.load(Ordering::Relaxed) == after {
            self.pool.put_back(0, 1);
        }
    }

    fn withdraw(&self) -> u64 {
        let (keeps, ..) = self.pool.withdraw(0, 1);
        self.latest.store(1, Ordering::Release);
        keeps
    }

    fn left(&self) -> u64 {
        self.pool.held().permits(0)
    }
}

/// Broken: the message has its number before the permits are taken out. So a grant that was made
/// before names it.
struct TellsTooEarly(TellsWithoutLock, loom::sync::Mutex<()>);

impl Tells for TellsTooEarly {
    fn new() -> Self {
        Self(Tells::new(), loom::sync::Mutex::new(()))
    }

    fn spend(&self) -> Option<u64> {
        self.0.spend()
    }

    fn put_back(&self, after: u64) {
        let _asking = self.1.lock().expect("no panic in here");
        self.0.put_back(after);
    }

    fn withdraw(&self) -> u64 {
        let _asking = self.1.lock().expect("no panic in here");
        self.0.latest.store(1, Ordering::Release);
        self.0.pool.withdraw(0, 1).0
    }

    fn left(&self) -> u64 {
        self.0.left()
    }
}

/// Of two permits, a thread spends one and puts it back, and another one spends one. A task says
/// what it keeps: the rest is spent.
fn is_told_once<T: Tells>(run: &mut Run) {
    run.explore(|layout| {
        let permits = Arc::new(T::new());
        let (one, other, task) = (
            Arc::clone(&permits),
            Arc::clone(&permits),
            Arc::clone(&permits),
        );
        let kept = Arc::new(AtomicU64::new(0));
        let kept_by_task = Arc::clone(&kept);
        let actors = vec![
            actor(move || {
                if let Some(after) = one.spend() {
                    one.put_back(after);
                }
            }),
            actor(move || {
                let _ = other.spend();
            }),
            actor(move || {
                kept_by_task.fetch_add(task.withdraw(), Ordering::Relaxed);
            }),
        ];
        layout.act(actors);
        let (left, kept) = (permits.left(), kept.load(Ordering::Relaxed));
        assert!(left <= kept, "{left} are left of {kept} that are kept");
    });
}

#[test]
fn what_was_said_to_be_spent_is_not_put_back() {
    model(
        "node_leases::what_was_said_to_be_spent_is_not_put_back",
        Some(3),
        is_told_once::<Permits>,
    );
    let wrong = "are left of";
    let name = "node_leases::puts back late";
    broken(name, wrong, Some(3), is_told_once::<PutsBackLate>);
    let name = "node_leases::tells without the lock";
    broken(name, wrong, Some(3), is_told_once::<TellsWithoutLock>);
    let name = "node_leases::tells too early";
    broken(name, wrong, Some(3), is_told_once::<TellsTooEarly>);
}
