//! What went wrong in the slots, logs and shards of other rate limiters, each as a test that it does not go
//! wrong here.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

use tollgate::{
    AnyAlgorithm, Gate, Granted, Leases, ManualClock, Quota, Sharded, SlidingLog, SlottedWindow,
    Tick,
};

const SECOND: u64 = 1_000_000_000;

fn at(nanos: u64) -> Tick {
    Tick::from_nanos(nanos)
}

/// A gate of any kind, whose clock nobody reads.
type AnyGate = Box<dyn Gate<Clock = ManualClock> + Sync>;

/// Windows of so many permits, that slide: by a tenth of their length, and exactly.
fn sliding(quota: Quota) -> [AnyGate; 2] {
    let clock = ManualClock::new();
    let slots = SlottedWindow::with_clock(quota, 10, clock.clone()).expect("slots");
    let log = SlidingLog::with_clock(quota, clock).expect("a log");
    [Box::new(slots), Box::new(log)]
}

/// Each algorithm that can be split, in so many parts.
fn sharded(quota: &str, shards: usize) -> impl Iterator<Item = AnyGate> {
    let names = [
        "token-bucket",
        "gcra",
        "leaky-meter",
        "fixed-window",
        "sliding-window",
        "intervals",
    ];
    names.into_iter().map(move |name| {
        let algorithm: AnyAlgorithm = format!("{name} {quota}").parse().expect("an algorithm");
        let gate = Sharded::with_shards(algorithm, shards, ManualClock::new());
        Box::new(gate.expect("it can be split")) as AnyGate
    })
}

/// What `work` returns on so many threads at once.
fn on_threads<T: Send + Debug>(threads: u64, work: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let (start, done) = (Barrier::new(threads as usize), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for id in 0..threads {
            let (start, done, work) = (&start, &done, &work);
            scope.spawn(move || {
                start.wait();
                let result = work(id);
                done.lock().expect("no panic").push(result);
            });
        }
    });
    done.into_inner().expect("no panic")
}

/// How many of `tries` single permits are granted at this moment.
fn count(gate: &AnyGate, tries: u64, now: Tick) -> u64 {
    let granted = (0..tries).filter(|_| gate.try_acquire_n_at(1, now).is_ok());
    granted.count() as u64
}

/// limitador: check, then add: 1001 of 1000.
#[test]
fn threads_get_the_limit_and_not_one_more() {
    let gates = sliding(Quota::per_day(1000)).into_iter();
    for gate in gates
        .chain(sharded("1000/d", 1))
        .chain(sharded("1000/d", 7))
    {
        for turn in 0..3 {
            let now = at(turn * 2 * 86_400 * SECOND + 5);
            let granted: u64 = on_threads(8, |_| count(&gate, 1000, now)).iter().sum();
            assert_eq!(granted, 1000);
        }
    }
    // With leases as well, whoever takes them: what is set aside is had by those who lease.
    let algorithm: AnyAlgorithm = "fixed-window 1000/d".parse().expect("windows");
    let gate = Leases::with_clock(algorithm, 100, ManualClock::new()).expect("leases");
    let granted: usize = on_threads(8, |id| {
        let mut lease = gate.lease(id * 5);
        (0..1000).filter(|_| lease.try_acquire().is_ok()).count()
    })
    .iter()
    .sum();
    assert_eq!(granted, 900);
}

/// Sentinel: a slot of the LeapArray is checked and added to separately, so that threads together get more
/// than the limit; and made new by whoever comes first, so that counts of the old window were lost or were
/// counted in the new one. Here every window of ten slots has its limit and no more, by the ticks at which
/// permits were counted, while threads whose times differ go from one slot to the next.
#[test]
fn every_window_of_slots_has_its_limit_while_threads_roll_over() {
    let slot = SECOND / 10;
    for round in 0..10 {
        let gate = SlottedWindow::with_clock(Quota::per_second(100), 10, ManualClock::new());
        let gate = gate.expect("slots");
        let granted = on_threads(8, |id| {
            // A quarter of a slot apart from each other, and half of them behind by a slot.
            let lag = id % 4 * slot / 4 + id % 2 * slot;
            let times = (0..3000).map(|step| 2 * SECOND + step * slot / 100 + round - lag);
            let granted = times.filter_map(|now| gate.try_acquire_n_at(1 + id % 3, at(now)).ok());
            granted.collect::<Vec<Granted>>()
        });
        let mut slots = BTreeMap::<u64, u64>::new();
        for granted in granted.into_iter().flatten() {
            *slots.entry(granted.at().as_nanos() / slot).or_default() += granted.n();
        }
        let (first, last) = (
            *slots.keys().next().expect("some"),
            *slots.keys().last().expect("some"),
        );
        for window in first..=last {
            let sum: u64 = slots.range(window..window + 10).map(|(_, n)| n).sum();
            assert!(sum <= 100, "{sum} from slot {window} on: {slots:?}");
        }
        // Nothing was lost either: what is counted now is what was granted in the last window.
        let sum: u64 = slots.range(last - 9..=last).map(|(_, n)| n).sum();
        assert_eq!(gate.counted_at(at(last * slot)), sum);
    }
}

/// ShenYu: the sliding log counts before it forgets, so that the first call after a gap is refused; and takes
/// one permit however many are asked for.
#[test]
fn after_a_gap_all_are_there_and_each_of_several_counts() {
    for gate in sliding(Quota::per_second(10)) {
        for now in [0, 5, 3600].map(|second| second * SECOND) {
            assert!(gate.try_acquire_n_at(7, at(now)).is_ok());
            assert!(gate.try_acquire_n_at(4, at(now + 1)).is_err());
            assert!(gate.try_acquire_n_at(3, at(now + 2)).is_ok());
            assert!(gate.try_acquire_at(at(now + 3)).is_err());
        }
    }
}

/// limits: at exactly a window's age a permit counts for a hit and not for a test, so that who was told that
/// there is room is refused.
#[test]
fn what_is_there_can_be_had() {
    for gate in sliding(Quota::per_second(3)) {
        assert!(gate.try_acquire_n_at(3, at(0)).is_ok());
        for later in [SECOND - 1, SECOND, 2 * SECOND - 1, 2 * SECOND] {
            let there = gate.available_at(at(later));
            assert!(gate.try_acquire_n_at(there + 1, at(later)).is_err());
            assert_eq!(there, if later % SECOND == 0 { 3 } else { 0 }, "{later}");
            let granted = gate.try_acquire_n_at(there, at(later));
            assert_eq!(granted.map(|granted| granted.n()), Ok(there));
        }
    }
}

/// pyrate-limiter: an interval of its log is closed at both ends, so that a limit of one a second lets one
/// pass every 1001 milliseconds; and who is told to wait 1000 is refused then.
#[test]
fn one_a_second_is_one_a_second() {
    for gate in sliding(Quota::per_second(1)) {
        let mut now = 0;
        for _ in 0..100 {
            assert!(gate.try_acquire_at(at(now)).is_ok());
            let denied = gate.try_acquire_at(at(now + 1)).expect_err("it was taken");
            let wait = Duration::from_nanos(SECOND - 1);
            assert_eq!(denied.retry_after(), Some(wait));
            now += SECOND;
        }
    }
}

/// AspNetCoreRateLimit, rate-limiter-flexible and a fixed window of limits count what they refuse, so that who
/// goes on asking is never let in again.
#[test]
fn what_is_refused_does_not_count() {
    for gate in sliding(Quota::per_second(10))
        .into_iter()
        .chain(sharded("10/s", 3))
    {
        // A hundred a second, all of them asking again and again.
        let times = (0..20 * SECOND).step_by(10_000_000);
        let granted: u64 = times.map(|now| count(&gate, 1, at(now))).sum();
        // A sliding estimate settles at a permit less, of each part.
        assert!((140..=210).contains(&granted), "{granted}");
    }
}

/// x/time/rate: an older caller moved the limiter's time back, and got what had been had already.
#[test]
fn callers_whose_clocks_differ_get_no_more() {
    for gate in sliding(Quota::per_second(10)) {
        let turns = 0..100;
        let granted: u64 = turns
            .map(|_| count(&gate, 1, at(10 * SECOND)) + count(&gate, 1, at(9 * SECOND)))
            .sum();
        assert_eq!(granted, 10);
        assert_eq!(count(&gate, 100, at(10 * SECOND + SECOND / 2)), 0);
    }
}
