//! A concurrency limit for each key: the weight inside never exceeds the limit, no capacity is lost
//! even while keys without guards leave the table, and a caller that enters sees writes that were
//! made inside before.

use tollgate::keyed::{KeyedConcurrency, KeyedGuard};
use tollgate_loom_tests::prelude::*;
use tollgate_loom_tests::tables::{A, B, IdentityState, Y};

use super::concurrency_word::{Inside, Noted as OfOne, one_after_the_other, two_try};

type Keys = KeyedConcurrency<IdentityState>;
type Limiter = Arc<Keys>;
type Guard = KeyedGuard<Limiter, IdentityState>;

/// A table of two slots.
fn limiter(limit: u64) -> Limiter {
    let limiter = KeyedConcurrency::new(limit, 2).expect("a limit");
    Arc::new(limiter.with_hasher(IdentityState::default()))
}

fn said<T>(entered: &Result<T, Denied>) -> &'static str {
    match entered {
        Ok(_) => "inside",
        Err(Denied::Busy { .. }) => "busy",
        Err(Denied::NoRoom { .. }) => "no room",
        Err(_) => "refused",
    }
}

/// What is noted of each of two keys.
#[derive(Clone, Default)]
struct Noted([OfOne; 2]);

impl Noted {
    fn of(&self, key: u64) -> &OfOne {
        &self.0[usize::from(key != A)]
    }

    fn enter(&self, limiter: &Limiter, key: u64, n: u64) -> Result<Guard, Denied> {
        let guard = limiter.try_enter_owned(&key, n)?;
        self.of(key).enters(n);
        Ok(guard)
    }

    fn leave(&self, key: u64, guard: Guard) {
        self.of(key).leaves(guard.n());
        drop(guard);
    }

    /// Returns what an actor does: it enters by a key, and leaves.
    fn visits(&self, limiter: &Limiter, key: u64) -> impl FnOnce() -> &'static str + use<> {
        let (limiter, noted) = (Arc::clone(limiter), self.of(key).clone());
        move || visit(&limiter, &noted, key, 1)
    }

    /// Checks that nothing is counted after all guards are gone.
    fn check(&self, limiter: &Limiter, limit: u64) {
        self.0.iter().for_each(|noted| noted.check(limit));
        check_empty(limiter);
    }
}

fn check_empty(limiter: &Keys) {
    for key in [A, B, Y] {
        assert_eq!(limiter.inside(&key), 0, "capacity was lost, of {key:#x}");
    }
    let stats = limiter.stats();
    let is_counted = (stats.evicted, stats.tracked) == (0, stats.idle);
    assert!(is_counted, "capacity was lost: {stats:?}");
}

/// Enters and leaves.
fn visit(limiter: &Limiter, noted: &OfOne, key: u64, n: u64) -> &'static str {
    let entered = limiter.try_enter_owned(&key, n);
    if entered.is_ok() {
        noted.enters(n);
        // An operation while inside.
        let _ = limiter.inside(&key);
        noted.leaves(n);
    }
    said(&entered)
}

/// A limiter whose key is new, or was used before.
fn visited(limit: u64, visits_before: u64) -> Limiter {
    let limiter = limiter(limit);
    for _ in 0..visits_before {
        drop(limiter.try_enter(&A).expect("no caller is inside"));
    }
    limiter
}

/// Two actors try to enter with a new key, or with a tracked one, and leave. A caller that finds a
/// new key already inserted may be denied as busy.
fn two_try_by_a_key(run: &mut Run) {
    let visit: fn(&Limiter, &OfOne, u64) -> _ = |limiter, noted, n| visit(limiter, noted, A, n);
    for visits_before in 0..3 {
        two_try(run, move || visited(3, visits_before), visit, check_empty);
    }
}

#[test]
fn never_more_than_the_limit() {
    model("two try to enter by one key", None, two_try_by_a_key)
        .stored("more inside than the limit | capacity was lost");
}

/// Both slots belong to keys with guards. One caller needs room for a third key, and another enters
/// with a tracked key; then all leave.
fn no_room(run: &mut Run) {
    run.explore(|layout| {
        let (limiter, inside) = (limiter(1), Noted::default());
        let a = inside.enter(&limiter, A, 1).expect("fresh");
        let y = limiter.try_enter_owned(&Y, 1).expect("fresh");
        let told = layout.both(inside.visits(&limiter, B), inside.visits(&limiter, A));
        inside.leave(A, a);
        drop(y);
        inside.check(&limiter, 1);
        assert_eq!(told, ("no room", "busy"), "capacity was lost");
    });
}

/// A key without guards gives its slot to another key while a caller enters with it.
fn takes_over(run: &mut Run) {
    run.explore_all(
        vec![["inside", "inside"], ["inside", "no room"]],
        move |layout| {
            let (limiter, inside) = (limiter(1), Noted::default());
            assert_eq!(inside.visits(&limiter, A)(), "inside");
            let y = limiter.try_enter_owned(&Y, 1).expect("fresh");
            let told = layout.both(inside.visits(&limiter, A), inside.visits(&limiter, B));
            drop(y);
            inside.check(&limiter, 1);
            [told.0.min(told.1), told.0.max(told.1)]
        },
    );
}

/// The guard that keeps a key in the table is dropped while another key needs its slot.
fn leaves_meanwhile(run: &mut Run) {
    run.explore_all(vec!["inside", "no room"], move |layout| {
        let (limiter, inside) = (limiter(1), Noted::default());
        let a = inside.enter(&limiter, A, 1).expect("fresh");
        let y = limiter.try_enter_owned(&Y, 1).expect("fresh");
        let leaves = inside.clone();
        let (told, ()) = layout.both(inside.visits(&limiter, B), move || leaves.leave(A, a));
        drop(y);
        inside.check(&limiter, 1);
        told
    });
}

#[test]
fn a_key_with_guards_keeps_its_slot() {
    model("both slots have guards", None, no_room).finds(
        [Fault::EvictsGuards, Fault::TakesWhoIsBusy],
        "more inside than the limit | capacity was lost",
    );
    model("a key without guards gives way", Some(3), takes_over)
        .finds([Fault::HighHalf(source::decision())], "capacity was lost");
    model("a guard leaves meanwhile", Some(3), leaves_meanwhile);
}

/// Two actors are inside one after the other, with a new key or with a tracked one.
fn one_after_the_other_by_a_key(run: &mut Run) {
    let enter = |limiter: &Keys, work: Inside<'_>| {
        let _guard = limiter.try_enter(&A).ok()?;
        Some(work())
    };
    for visits_before in 0..3 {
        one_after_the_other(run, move || visited(1, visits_before), enter);
    }
}

#[test]
fn an_entering_thread_sees_earlier_writes() {
    let fences = ["fence(Ordering::Acquire);", "fence(Ordering::Release);"];
    let sites = Source(&["keyed/concurrency.rs"]).sites(fences);
    model(
        "one after the other by one key",
        None,
        one_after_the_other_by_a_key,
    )
    .relaxed(sites, "a write made inside was not seen");
}
