//! Two threads change a quota eight times while three threads decide. No decision mixes two quotas,
//! no change is lost, and no permit is created, even if a deciding thread stops forever. The
//! models find each injected fault.

use tollgate::Adjustable;
use tollgate_shuttle_tests::prelude::*;
use tollgate_shuttle_tests::total::Strict;

type Tested = Adjustable<Strict, NoClock>;

const LIMIT: u64 = 6;
const NOW: Tick = Tick::from_nanos(5);
const SETTERS: u64 = 2;
const CHANGES: u64 = 4;
const DECIDERS: u64 = 3;
const DECISIONS: u64 = 6;

/// What a thread kept and changed.
#[derive(Default)]
struct ThreadResult {
    kept: u64,
    changes: u64,
}

/// Changes the quota repeatedly. With `Keep::AsIs` a change never adds permits.
fn sets(limiter: &Tested) -> ThreadResult {
    let mut changes = 0;
    for _ in 0..CHANGES {
        let limit = one_of(&[3, 5, 6, 7, 9]);
        let quota = Quota::per(limit, Duration::from_secs(1));
        let before = limiter.version();
        assert!(limiter.at(NOW).set_quota(quota, Keep::AsIs).is_ok());
        changes += 1;
        assert!(limiter.version() >= before, "the version went backwards");
    }
    ThreadResult {
        changes,
        ..ThreadResult::default()
    }
}

/// Takes permits, undoes grants, and reads the level.
fn decides(limiter: &Tested, held: &mut Vec<Granted>) {
    for _ in 0..DECISIONS {
        let view = limiter.at(NOW);
        match below(6) {
            0 => drop(view.available()),
            1 => held.push(view.take_up_to(2)),
            2 => {
                if let Some(granted) = held.pop() {
                    match view.undo(granted) {
                        0 => {
                            reached("undo after a change returns nothing");
                            held.push(granted);
                        }
                        back => assert_eq!(back, granted.n()),
                    }
                }
            }
            _ => held.extend(view.try_acquire_n(1 + below(2))),
        }
    }
}

/// Threads change the quota and decide. If `STOPS`, one deciding thread stops forever before one of
/// its operations.
fn changed_in_use<const STOPS: bool>() {
    let limiter = Arc::new(Adjustable::starting_at(Strict::of(LIMIT), NoClock, NOW));
    let told = on_threads(SETTERS + DECIDERS, &limiter, |limiter, number| {
        if number < SETTERS {
            return sets(limiter);
        }
        let mut held = Vec::new();
        let before = (STOPS && number == SETTERS).then_some(60);
        stops(before, || decides(limiter, &mut held));
        ThreadResult {
            kept: held.iter().map(Granted::n).sum(),
            ..ThreadResult::default()
        }
    });
    check(&limiter, told);
}

fn check(limiter: &Tested, told: Vec<ThreadResult>) {
    let sum = |of: fn(&ThreadResult) -> u64| told.iter().map(of).sum::<u64>();
    // A change to the current quota does not count as one.
    let (version, changes) = (limiter.version(), sum(|told| told.changes));
    assert!(version <= changes, "{version} changes of {changes}");
    let left = limiter.at(NOW).available();
    let limit = limiter.quota().permits();
    assert!(left <= limit, "{left} left of {limit}");
    if left > 0 {
        reached("permits remain");
    }
    // The sum is below the limit if a quota could not hold all permits, or if a thread stopped with
    // some.
    let kept = sum(|told| told.kept);
    assert!(
        kept + left <= LIMIT,
        "permits were created: {kept} kept, {left} left"
    );
}

const BOTH: [&str; 2] = ["undo after a change returns nothing", "permits remain"];
const MIXED: &str =
    "two quotas are mixed | another quota | permits were created | overflow | left of";

#[test]
fn nothing_is_mixed() {
    let name = "adjust::nothing_is_mixed";
    model(name, 5_000, &BOTH, changed_in_use::<false>);
    let faults = [Fault::ReadsUnchecked, Fault::UndoesOldMarks];
    with_faults("adjust", faults, MIXED, changed_in_use::<false>);
    // An overwritten change leaves parameters whose version is never published.
    let why = format!("{MIXED} | the version went backwards | exceeded max_steps");
    let blindly = [Fault::Blind(source::decision_of_pair())];
    with_faults("adjust", blindly, &why, changed_in_use::<false>);
    stored("adjust", &why, changed_in_use::<false>);
}

#[test]
fn a_stopped_thread_stops_no_other() {
    let name = "adjust::a_stopped_thread_stops_no_other";
    model(name, 5_000, &["a thread stops"], changed_in_use::<true>);
    let (name, faults) = ("adjust, a thread stops", [Fault::ReadsUnchecked]);
    with_faults(name, faults, MIXED, changed_in_use::<true>);
}
