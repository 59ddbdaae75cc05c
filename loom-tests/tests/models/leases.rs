//! Leases: threads draw permits, drop leases and reuse dropped sizes, while one thread takes
//! permits without a lease. Leases never hold more than the total, and no more permits are used
//! than the limiter has. Nothing is lost when all leases are dropped. A thread that stops does not
//! hold up the others.

use std::mem::ManuallyDrop;

use tollgate::leases::Lease;
use tollgate_loom_tests::prelude::*;

/// The total that leases may hold.
const TOTAL: u64 = 3;
/// The permits of the limiter.
const THERE: u64 = 6;

/// A limiter of six permits that may lend three more, at a single tick, with a record of what its
/// leases hold. Loom does not track the record. Loom switches threads only before an atomic
/// operation, so a record made right after a call is made at the moment of the call's last
/// operation.
struct Tested {
    leases: Arc<Leases<TokenBucket, ManualClock>>,
    held: Mutex<u64>,
}

type Handle = Lease<Arc<Leases<TokenBucket, ManualClock>>>;

/// A lease that is not dropped automatically: a stopped thread keeps its lease.
#[derive(Default)]
struct TracedWord {
    lease: Option<ManuallyDrop<Handle>>,
    noted: u64,
}

type Action = Any<Tested, TracedWord>;
type Scenario = AnyScenario<Tested, TracedWord>;

fn limiter() -> Tested {
    let bucket = TokenBucket::new(Quota::per(1, Duration::from_secs(1)).burst(THERE + TOTAL));
    let clock = ManualClock::at(Tick::from_nanos(20));
    let leases = Leases::with_clock(bucket.expect("a quota"), TOTAL, clock);
    Tested {
        leases: Arc::new(leases.expect("a total")),
        held: Mutex::new(0),
    }
}

impl Tested {
    /// Records what this thread's lease holds, and checks that all leases together hold no more
    /// than the total.
    fn note(&self, traced: &mut TracedWord, holds: u64) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        *held = *held - traced.noted + holds;
        traced.noted = holds;
        assert!(*held <= TOTAL, "more is held than the total: {held}");
    }
}

/// Gets a lease of this size. The answer is the size that it got.
fn lease(size: u64) -> Action {
    Action::new(format!("lease {size}"), move |limiter, traced| {
        let lease = limiter.leases.lease_owned(size);
        let got = lease.size();
        assert!(got <= size, "a lease is larger than was asked for");
        traced.lease = Some(ManuallyDrop::new(lease));
        Answer::Count(got)
    })
}

/// Takes one permit from the lease. The answer is whether it had one.
fn take() -> Action {
    Action::new("take by the lease", |limiter, traced| {
        let lease = traced.lease.as_mut().expect("a lease");
        let had = lease.try_acquire().is_ok();
        let (held, size) = (lease.held(), lease.size());
        assert!(held <= size, "a lease holds {held}, and its size is {size}");
        limiter.note(traced, held);
        Answer::Is(had)
    })
}

/// Drops the lease, which counts as holding its permits until this is done.
fn drop_it() -> Action {
    Action::new("drop the lease", |limiter, traced| {
        if let Some(lease) = traced.lease.take() {
            drop(ManuallyDrop::into_inner(lease));
        }
        limiter.note(traced, 0);
        Answer::Done
    })
}

/// Gives back what the lease holds. The answer is how many came back.
fn give_back() -> Action {
    Action::new("give back", |limiter, traced| {
        let lease = traced.lease.as_mut().expect("a lease");
        let back = lease.give_back();
        limiter.note(traced, 0);
        Answer::Returned(back)
    })
}

/// Takes permits without a lease.
fn acquire(n: u64) -> Action {
    Action::new(format!("acquire {n}"), move |limiter, _| {
        limiter.leases.try_acquire_n(n).into()
    })
}

/// Adds up a number of all leases.
fn sum(traced_words: &[TracedWord], of: fn(&Handle) -> u64) -> u64 {
    let leases = traced_words.iter().filter_map(|it| it.lease.as_ref());
    leases.map(|lease| of(lease)).sum()
}

/// Makes a scenario that checks what the leases hold at the end, drops them all, and checks that
/// everything unused is available again.
fn all_end() -> Scenario {
    let scenario = Scenario::at(limiter).after(|limiter, traced_words| {
        let held = sum(traced_words, |lease| lease.held());
        let sizes = sum(traced_words, |lease| lease.size());
        assert_eq!(limiter.leases.lent(), sizes, "the lent size is wrong");
        let before = limiter.leases.limiter().available();
        for traced in traced_words {
            drop_it().act(limiter, traced);
        }
        let after = limiter.leases.limiter().available();
        assert_eq!(before + held, after, "permits were lost");
        assert_eq!(limiter.leases.lent(), 0, "a size was lost");
        vec![Answer::Count(after)]
    });
    scenario.rule(|played| {
        let left = played.after[0];
        let used = used(played);
        assert!(used <= THERE, "{used} were used of {THERE}");
        assert_eq!(left, Answer::Count(THERE - used), "permits were lost");
    })
}

/// Returns the permits that actors know they have used. Through a lease they use one at a time.
fn used(played: &ScenarioOutcome) -> u64 {
    let used = played.all().map(|answer| match answer {
        Answer::Is(true) => 1,
        Answer::Granted(granted) => granted.n(),
        _ => 0,
    });
    used.sum()
}

/// Two leases, and what is left of the total.
fn sizes(run: &mut Run) {
    let told = ["2 available | 1 available", "1 available | 2 available"];
    let both = all_end().actor(&[lease(2)]).actor(&[lease(2)]);
    both.explore_to(run, &told);
}

/// One actor draws, and another takes what it can without a lease.
fn draws(run: &mut Run) {
    let one_draws = || all_end().actor_after(&[acquire(4), lease(2)], &[take(), take()]);
    let told = [
        "true, true | denied for 1000000000",
        "true, false | 1 at 20, 1 left",
    ];
    one_draws().actor(&[acquire(1)]).explore_to(run, &told);

    // With two leases, each draws one permit, or one of them draws both.
    let told = ["true, true | false", "true, false | true"];
    let both = one_draws().actor_after(&[lease(1)], &[take()]);
    both.explore_to(run, &told);
}

/// One actor drops its lease. Another gets a lease and uses it, while the limiter has no other
/// permits. A thread that gets a released size must also get its permits.
fn drops(run: &mut Run) {
    let told = [
        "done | 0 available, false",
        "done | 0 available, true",
        "done | 3 available, true",
    ];
    let nothing_left = [acquire(3), lease(3), take()];
    let one_drops = all_end().actor_after(&nothing_left, &[drop_it()]);
    one_drops.actor(&[lease(3), take()]).explore_to(run, &told);
}

/// The same if the limiter has enough for both: the total is not exceeded.
fn drops_in_plenty(run: &mut Run) {
    let told = [
        "done | 0 available, true, done",
        "done | 3 available, true, done",
    ];
    let one_drops = all_end().actor_after(&[lease(3), take()], &[drop_it()]);
    let both = one_drops.actor(&[lease(3), take(), drop_it()]);
    both.explore_to(run, &told);
}

/// Each action on a lease against each other, and against an actor that takes all it can.
fn each_against_each(run: &mut Run) {
    let actions = [take(), give_back(), drop_it(), acquire(1), acquire(3)];
    for one in &actions {
        for other in &actions {
            for taken in [0, 2, 3] {
                let before = [acquire(taken), lease(2), take()];
                let scenario = all_end().actor_after(&before, std::slice::from_ref(one));
                let other = [other.clone(), acquire(1)];
                let scenario = scenario.actor_after(&[lease(2), take()], &other);
                scenario.explore_rules(run);
            }
        }
    }
}

/// Three threads: one drops its lease, one gets a lease, and one takes without a lease.
fn three(run: &mut Run) {
    for taken in [1, 3] {
        for third in [&[acquire(2)][..], &[lease(3), take(), drop_it()]] {
            let before = [acquire(taken), lease(3), take()];
            let scenario = all_end().actor_after(&before, &[drop_it()]);
            let scenario = scenario.actor(&[lease(2), take()]).actor(third);
            scenario.explore_rules(run);
        }
    }
}

/// One actor stops forever, before each of its operations in turn. Only its own permits are lost.
fn one_stops(run: &mut Run) {
    let casts: [[&[Action]; 2]; 3] = [
        [
            &[lease(2), take(), drop_it()],
            &[lease(3), take(), drop_it()],
        ],
        [
            &[lease(3), take(), take(), drop_it()],
            &[lease(1), acquire(2), take()],
        ],
        [
            &[acquire(1), lease(1), take(), give_back()],
            &[lease(2), take(), take(), drop_it()],
        ],
    ];
    for [stops, goes_on] in casts {
        let scenario = Scenario::at(limiter).actor(stops);
        let scenario = scenario.actor_after(&[acquire(2)], goes_on);
        let scenario = scenario.after(|limiter, traced_words| {
            let lent = limiter.leases.lent();
            let held = sum(traced_words, |lease| lease.held());
            assert!(lent <= TOTAL, "{lent} are lent");
            assert!(held <= lent, "{held} are held, and {lent} are lent");
            let there = limiter.leases.limiter().available();
            vec![Answer::Count(there + held)]
        });
        let scenario = scenario.rule(|played| {
            let Answer::Count(left) = played.after[0] else {
                panic!("no count")
            };
            let (used, most) = (used(played), THERE - left);
            assert!(used <= most, "{used} were used, and {left} are left");
            // The last action of the stopped actor may have used a permit, and a lease that was
            // being dropped is lost.
            assert!(
                most - used <= TOTAL,
                "{used} were used, and only {left} are left"
            );
        });
        scenario.explore_stopping(run, 0);
    }
}

const SOURCE: Source = Source(&["leases/lease.rs"]);

#[test]
fn sizes_are_shared() {
    model("leases::sizes_are_shared", None, sizes).stored("the lent size is wrong");
}

#[test]
fn draws_and_takes() {
    model("leases::draws_and_takes", None, draws).stored("were used of");
}

#[test]
fn a_reused_size_comes_with_its_permits() {
    let operations = ["self.lent.compare_exchange_weak(", "self.lent.fetch_sub("];
    model("leases::a_reused_size_comes_with_its_permits", None, drops)
        .relaxed(SOURCE.sites(operations), "no order");
}

#[test]
fn the_total_is_never_exceeded() {
    let why = "more is held than the total";
    model("leases::the_total_is_never_exceeded", None, drops_in_plenty)
        .finds([Fault::ReleasesSizeFirst], why);
}

#[test]
fn each_action_against_each() {
    model("leases::each_action_against_each", None, each_against_each);
}

#[test]
fn three_threads() {
    model("leases::three_threads", deeper(2, 3), three);
}

#[test]
fn a_stopped_thread_stops_no_other() {
    let name = "leases::a_stopped_thread_stops_no_other";
    model(name, deeper(2, None), one_stops);
}
