//! Four threads take from several limits at once, undo, and take from single limits. No permit is
//! lost or made, a denial takes nothing, and of requests for the same last permits one is granted.
//! The models find each injected fault.

use std::sync::Arc;
use std::time::Duration;

use tollgate::compose::{All, BoxMember, Members, OrElse};
use tollgate::sync::model::Fault;
use tollgate::{Concurrency, Limiter, ManualClock, Quota, Tick, TokenBucket, TryAcquire};
use tollgate_shuttle_tests::{below, model, on_threads, one_in, one_of, reached, with_faults};

type One = Limiter<TokenBucket, ManualClock>;
type Boxed<'l> = BoxMember<'l, ManualClock>;

const NOW: Tick = Tick::from_nanos(5);
const THREADS: u64 = 4;
const CALLS: u64 = 6;
const LIMIT: u64 = 4;

struct Limits {
    all: [One; 4],
    inside: Concurrency,
}

/// Makes limits of `n` permits each, on a clock that stands still.
fn limits(n: u64) -> Arc<Limits> {
    let clock = ManualClock::at(NOW);
    let quota = Quota::per(1, Duration::from_secs(1)).burst(n);
    let bucket = TokenBucket::new(quota).expect("a quota");
    Arc::new(Limits {
        all: [(); 4].map(|()| Limiter::with_clock(bucket, clock.clone())),
        inside: Concurrency::new(n).expect("a limit"),
    })
}

/// The orders in which a caller may write three limits.
const ORDERS: [[usize; 3]; 4] = [[0, 1, 2], [2, 1, 0], [1, 2, 0], [1, 0, 2]];

/// Takes a permit of each member, and undoes that or keeps it. Returns how many permits were kept,
/// over all members.
fn takes<M: Members<ManualClock>>(all: &All<M, ManualClock>) -> u64 {
    let Ok(granted) = all.at(NOW).try_acquire_n(1) else {
        reached("a request is denied");
        return 0;
    };
    let n = granted.n();
    match one_in(3) {
        true => {
            // Dropping the grant keeps the permits.
            drop(granted);
            n
        }
        false => {
            assert_eq!(granted.undo_at(NOW), n, "permits were lost");
            0
        }
    }
}

/// Makes random calls. Returns how many permits of the limits the thread kept.
fn calls(limits: &Limits) -> u64 {
    let mut sum = 0;
    for _ in 0..CALLS {
        let [a, b, c] = one_of(&ORDERS).map(|index| &limits.all[index]);
        let d = &limits.all[3];
        sum += match below(6) {
            0 => takes(&All::new((a, b)).expect("two limits")),
            1 => takes(&All::new([a, b, c]).expect("three limits")),
            2 => takes(&All::new((OrElse::new(a, d), b)).expect("two limits")),
            3 => {
                let members: [Boxed<'_>; 3] = [Box::new(a), Box::new(c), Box::new(d)];
                takes(&All::new(Vec::from(members)).expect("three limits"))
            }
            4 => {
                // Dropping the grant leaves the concurrency.
                let all = All::new((&limits.inside, a, b)).expect("three limits");
                takes(&all) / 3 * 2
            }
            _ => one_of(&[a, b, c]).take_up_to_at(1, NOW).n(),
        };
    }
    sum
}

fn left(limits: &Limits) -> u64 {
    let left = limits.all.each_ref().map(|limit| limit.available_at(NOW));
    left.iter().sum()
}

/// At the end each limit has what was not kept.
fn taken_and_undone() {
    let limits = limits(LIMIT);
    let kept = on_threads(THREADS, &limits, |limits, _| calls(limits));
    let kept: u64 = kept.into_iter().sum();
    let left = left(&limits);
    assert!(
        kept + left <= 4 * LIMIT,
        "permits were made: {kept} kept, {left} left"
    );
    assert!(
        kept + left >= 4 * LIMIT,
        "permits were lost: {kept} kept, {left} left"
    );
    assert_eq!(limits.inside.inside(), 0, "a weight stayed inside");
}

/// Each thread asks for a permit of each of three limits, in a random order. The first thread asks
/// only for one of the limit `plain`, or of the first in its order. Returns which are granted.
fn asked(limits: &Arc<Limits>, plain: Option<usize>) -> Vec<bool> {
    on_threads(THREADS, limits, move |limits, number| {
        let all = one_of(&ORDERS).map(|index| &limits.all[index]);
        match number {
            0 => {
                let limit = plain.map_or(all[0], |index| &limits.all[index]);
                limit.try_acquire_n_at(1, NOW).is_ok()
            }
            1 if plain.is_none() => {
                let boxed = all.map(|limit| -> Boxed<'_> { Box::new(limit) });
                let all = All::new(Vec::from(boxed)).expect("three limits");
                all.at(NOW).try_acquire_n(1).is_ok()
            }
            _ => {
                let all = All::new(all).expect("three limits");
                all.at(NOW).try_acquire_n(1).is_ok()
            }
        }
    })
}

/// Each thread asks for the last permit of three limits, and one thread only for that of one.
fn for_the_last_permits() {
    let limits = limits(1);
    let granted = asked(&limits, None);
    match granted[0] {
        true => reached("the plain caller is granted"),
        false => reached("the plain caller is denied"),
    }
    let number = granted.iter().filter(|granted| **granted).count();
    assert_eq!(number, 1, "not one of them is granted");
    let left = left(&limits);
    assert_eq!(left, if granted[0] { 3 } else { 1 }, "permits were lost");
}

/// One limit is empty, so all compositions are denied, and a caller of another limit is granted.
fn beside_an_empty_limit() {
    let limits = limits(1);
    assert!(limits.all[2].try_acquire_n_at(1, NOW).is_ok());
    let granted = asked(&limits, Some(0));
    let only_the_first = [true, false, false, false];
    assert_eq!(granted, only_the_first, "a denied request took something");
}

#[test]
fn no_permit_is_lost_or_made() {
    let name = "compose::no_permit_is_lost_or_made";
    model(name, 5_000, &["a request is denied"], taken_and_undone);
    let faults = [Fault::ForgetsToUndo, Fault::UndoesOne];
    with_faults("compose", faults, "permits were lost", taken_and_undone);
}

#[test]
fn of_requests_for_the_last_permits_one_is_granted() {
    let name = "compose::of_requests_for_the_last_permits_one_is_granted";
    let labels = ["the plain caller is granted", "the plain caller is denied"];
    model(name, 5_000, &labels, for_the_last_permits);
    let faults = [Fault::TakesInTheCallersOrder];
    let (name, why) = ("compose, the last permits", "not one of them is granted");
    with_faults(name, faults, why, for_the_last_permits);
}

#[test]
fn a_denied_request_takes_nothing() {
    let name = "compose::a_denied_request_takes_nothing";
    model(name, 5_000, &[], beside_an_empty_limit);
    let (name, faults) = ("compose, an empty limit", [Fault::TakesWithoutALook]);
    with_faults(name, faults, "took something", beside_an_empty_limit);
}
