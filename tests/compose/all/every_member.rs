//! A request looks at every member and takes from every one, however many there are.

use std::array;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tollgate::compose::{Held, Member};

use super::scripted::{Scripted, Step};
use super::{algorithm, bucket};
use crate::support::*;

/// Composes this many members, in an array and in a list. One of them denies, or none.
fn one_of_them_denies<const N: usize>() {
    for denies in 0..=N {
        let taken: [_; N] = array::from_fn(|_| AtomicU64::new(0));
        let at: [_; N] = array::from_fn(|index| {
            let taken = &taken[index];
            move |step, _| {
                if index == denies {
                    return Some(Denied::busy(1));
                }
                taken.fetch_add(u64::from(step == Step::Take), Relaxed);
                None
            }
        });
        let members = at.each_ref().map(|at| Scripted::new(at));
        let one = || members.each_ref().map(Scripted::member::<ManualClock>);
        let all = All::new(one()).expect("limits");
        let denied = all.try_acquire().map(drop);
        let counts = || taken.each_ref().map(|taken| taken.swap(0, Relaxed));
        match denied {
            Ok(()) => assert_eq!((denies, counts()), (N, [1; N])),
            Err(denied) => assert_eq!((denied.member(), counts()), (Some(denies), [0; N])),
        }
        let all = All::new(one().to_vec()).expect("limits");
        assert_eq!(all.try_acquire().is_ok(), denies == N);
        assert_eq!(counts(), [u64::from(denies == N); N]);
    }
}

#[test]
fn none_is_taken_from_if_one_denies() {
    one_of_them_denies::<1>();
    one_of_them_denies::<2>();
    one_of_them_denies::<7>();
    one_of_them_denies::<8>();
    one_of_them_denies::<9>();
    one_of_them_denies::<17>();
}

/// Nothing was taken before, so there was no race.
#[test]
fn a_first_member_that_denies_is_not_asked_again() {
    let takes = AtomicU64::new(0);
    let denies = |step, _| {
        (step == Step::Take).then(|| {
            takes.fetch_add(1, Relaxed);
            Denied::busy(1)
        })
    };
    let first = Scripted::new(&denies);
    let first = first.member::<ManualClock>();
    assert!(All::new([first]).expect("a limit").try_acquire().is_err());
    assert_eq!(takes.swap(0, Relaxed), 1);
    let list = All::new(vec![first]).expect("a limit");
    assert!(list.try_acquire().is_err());
    assert_eq!(takes.swap(0, Relaxed), 1);
}

/// A clock that shows these ticks, the last one first.
struct Shows(Mutex<Vec<u64>>);

impl Clock for Shows {
    fn now(&self) -> Tick {
        let shown = self.0.lock().expect("no panic").pop();
        Tick::from_nanos(shown.expect("a reading"))
    }
}

/// A clock that goes back does not take the request along.
#[test]
fn grants_come_back_at_the_tick_after_the_lost_race() {
    let clock = Shows(Mutex::new(vec![7, 8, 9, 5]));
    let rate = Limiter::unstarted(algorithm(5), &clock);
    let seen = Mutex::new(Vec::new());
    let notes = |step, tick: Tick| {
        if matches!(step, Step::Take | Step::GiveBack) {
            seen.lock().expect("no panic").push((step, tick.as_nanos()));
        }
        None
    };
    let denies = |step, _| (step == Step::Take).then(|| Denied::busy(1));
    let (notes, denies) = (Scripted::new(&notes), Scripted::last(&denies));
    let all = All::new((notes.member(), &rate, denies.member())).expect("limits");
    assert!(all.try_acquire().is_err());
    let (take, back) = (Step::Take, Step::GiveBack);
    let expected = [5, 9, 9, 9]
        .windows(2)
        .flat_map(|ticks| [(take, ticks[0]), (back, ticks[1])]);
    assert_eq!(
        *seen.lock().expect("no panic"),
        expected.collect::<Vec<_>>()
    );
}

#[test]
fn an_attempt_that_takes_nothing_keeps_no_grant() {
    let clock = ManualClock::new();
    let (started, unstarted) = (bucket(5, &clock), Limiter::unstarted(algorithm(5), &clock));
    let mut held: Option<Held> = None;
    for n in [1, 6] {
        let taken = Member::take_fast(&unstarted, n, Tick::ZERO, &mut held);
        assert_eq!((taken, &held), (None, &None));
    }
    for n in [6, u64::MAX] {
        let taken = Member::take_fast(&started, n, Tick::ZERO, &mut held);
        assert!(!matches!(taken, Some(Ok(()))));
        assert_eq!(held, None);
    }
    let taken = Member::take_fast(&started, 5, Tick::ZERO, &mut held);
    assert_eq!(taken, Some(Ok(())));
    assert_eq!(held.take().map(|held| held.granted.n()), Some(5));
    let taken = Member::take_fast(&started, 1, Tick::ZERO, &mut held);
    assert!(!matches!(taken, Some(Ok(()))));
    assert_eq!(held, None);
}
