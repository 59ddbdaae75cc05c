//! A concurrency limit for each key: the weight inside never exceeds the limit, no capacity is lost
//! even while keys without guards leave the table, and a caller that enters sees writes that were
//! made inside before.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use tollgate::Denied;
use tollgate::keyed::{KeyedConcurrency, KeyedGuard};
use tollgate::sync::model::{AtomicU64, Fault};
use tollgate_loom_tests::tables::{A, B, IdentityState, Y};
use tollgate_loom_tests::{Run, Site, actor, model};

type Limiter = Arc<KeyedConcurrency<IdentityState>>;
type Guard = KeyedGuard<Limiter, IdentityState>;

/// A table of two slots.
fn limiter(limit: u64) -> Limiter {
    let limiter = KeyedConcurrency::new(limit, 2).expect("a limit");
    Arc::new(limiter.with_hasher(IdentityState))
}

fn said<T>(entered: &Result<T, Denied>) -> &'static str {
    match entered {
        Ok(_) => "inside",
        Err(Denied::Busy { .. }) => "busy",
        Err(Denied::NoRoom { .. }) => "no room",
        Err(_) => "refused",
    }
}

/// For each of two keys, the weight inside now and its maximum, as counted by the holders of the
/// guards.
#[derive(Clone, Default)]
struct Noted(Arc<Mutex<[(u64, u64); 2]>>);

impl Noted {
    fn change(&self, key: u64, change: impl Fn(u64) -> u64) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (inside, most) = &mut noted[usize::from(key != A)];
        *inside = change(*inside);
        *most = (*most).max(*inside);
    }

    fn enter(&self, limiter: &Limiter, key: u64, n: u64) -> Result<Guard, Denied> {
        let guard = limiter.try_enter_owned(&key, n)?;
        self.change(key, |inside| inside + n);
        Ok(guard)
    }

    fn leave(&self, key: u64, guard: Guard) {
        self.change(key, |inside| inside - guard.n());
        drop(guard);
    }

    /// Enters and leaves.
    fn visit(&self, limiter: &Limiter, key: u64, n: u64) -> &'static str {
        let entered = self.enter(limiter, key, n);
        let said = said(&entered);
        if let Ok(guard) = entered {
            // An operation while inside.
            let _ = limiter.inside(&key);
            self.leave(key, guard);
        }
        said
    }

    /// Checks that nothing is counted after all guards are gone.
    fn check(&self, limiter: &Limiter, limit: u64) {
        let noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, most) in *noted {
            assert!(most <= limit, "more inside than the limit: {most}");
        }
        for key in [A, B, Y] {
            assert_eq!(limiter.inside(&key), 0, "capacity was lost, of {key:#x}");
        }
        let stats = limiter.stats();
        let is_counted = (stats.evicted, stats.tracked) == (0, stats.idle);
        assert!(is_counted, "capacity was lost: {stats:?}");
    }
}

/// Two actors try to enter with a new key, or with a tracked one, and leave. A caller that finds a
/// new key already inserted may be denied as busy.
fn two_try(run: &mut Run) {
    for visits_before in 0..3 {
        let outcomes = vec![["inside", "busy"], ["busy", "inside"], ["inside", "inside"]];
        run.explore_all(outcomes, move |layout| {
            let (limiter, inside) = (limiter(3), Noted::default());
            for _ in 0..visits_before {
                assert_eq!(inside.visit(&limiter, A, 1), "inside");
            }
            let actors = [2, 2].map(|n| {
                let (limiter, inside) = (Arc::clone(&limiter), inside.clone());
                actor(move || inside.visit(&limiter, A, n))
            });
            let told = layout.act(actors.into());
            inside.check(&limiter, 3);
            [told[0], told[1]]
        });
    }
}

#[test]
fn never_more_than_the_limit() {
    model("two try to enter by one key", None, two_try)
        .stored("more inside than the limit | capacity was lost");
}

/// Both slots belong to keys with guards. One caller needs room for a third key, and another enters
/// with a tracked key; then all leave.
fn no_room(run: &mut Run) {
    run.explore(|layout| {
        let (limiter, inside) = (limiter(1), Noted::default());
        let a = inside.enter(&limiter, A, 1).expect("fresh");
        let y = limiter.try_enter_owned(&Y, 1).expect("fresh");
        let (one, other) = (Arc::clone(&limiter), Arc::clone(&limiter));
        let (by_one, by_other) = (inside.clone(), inside.clone());
        let told = layout.both(
            move || by_one.visit(&one, B, 1),
            move || by_other.visit(&other, A, 1),
        );
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
            assert_eq!(inside.visit(&limiter, A, 1), "inside");
            let y = limiter.try_enter_owned(&Y, 1).expect("fresh");
            let (one, other) = (Arc::clone(&limiter), Arc::clone(&limiter));
            let (by_one, by_other) = (inside.clone(), inside.clone());
            let mut told = layout.act(vec![
                actor(move || by_one.visit(&one, A, 1)),
                actor(move || by_other.visit(&other, B, 1)),
            ]);
            drop(y);
            inside.check(&limiter, 1);
            told.sort_unstable();
            [told[0], told[1]]
        },
    );
}

/// The guard that keeps a key in the table is dropped while another key needs its slot.
fn leaves_meanwhile(run: &mut Run) {
    run.explore_all(vec!["inside", "no room"], move |layout| {
        let (limiter, inside) = (limiter(1), Noted::default());
        let a = inside.enter(&limiter, A, 1).expect("fresh");
        let y = limiter.try_enter_owned(&Y, 1).expect("fresh");
        let (one, by_one, by_other) = (Arc::clone(&limiter), inside.clone(), inside.clone());
        let visits = move || by_one.visit(&one, B, 1);
        let (told, ()) = layout.both(visits, move || by_other.leave(A, a));
        drop(y);
        inside.check(&limiter, 1);
        told
    });
}

#[test]
fn a_key_with_guards_keeps_its_slot() {
    let faults = [Fault::EvictsWhoIsInside, Fault::TakesWhoIsBusy];
    model("both slots have guards", None, no_room)
        .finds(faults, "more inside than the limit | capacity was lost");
    model("a key without guards gives way", Some(3), takes_over)
        .finds([Fault::ForgetsTheOwner], "capacity was lost");
    model("a guard leaves meanwhile", Some(3), leaves_meanwhile);
}

/// Finds the operation in the file that contains the fences.
fn site(operation: &'static str) -> Site {
    Site::find(&["keyed/concurrency.rs"], operation)
}

/// Two actors are inside one after the other, never together. The second sees what the first wrote.
fn one_after_the_other(run: &mut Run) {
    for visits_before in 0..3 {
        run.explore(move |layout| {
            let (limiter, data) = (limiter(1), Arc::new(AtomicU64::new(0)));
            for _ in 0..visits_before {
                drop(limiter.try_enter(&A).expect("no caller is inside"));
            }
            let actors = [(), ()].map(|()| {
                let (limiter, data) = (Arc::clone(&limiter), Arc::clone(&data));
                actor(move || {
                    let guard = limiter.try_enter(&A).ok()?;
                    let seen = data.load(Relaxed);
                    data.store(seen + 1, Relaxed);
                    drop(guard);
                    Some(seen)
                })
            });
            let told = layout.act(actors.into());
            if let [Some(one), Some(other)] = told[..] {
                assert_eq!(one + other, 1, "a write made inside was not seen");
            }
        });
    }
}

#[test]
fn an_entering_thread_sees_earlier_writes() {
    let sites = ["fence(Ordering::Acquire);", "fence(Ordering::Release);"].map(site);
    model("one after the other by one key", None, one_after_the_other)
        .relaxed(sites, "a write made inside was not seen");
}
