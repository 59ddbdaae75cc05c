//! Examples of the bounds of a sliding log and of a slotted window.

use core::time::Duration;

use tollgate::error::{LimiterError, QuotaError};
use tollgate::{Quota, Tick};
use tollgate_audit::Bound;

use super::{Kind, grants, history, instant, ten_ns};

fn log(n: u64) -> Bound {
    Bound::of_log(ten_ns(n)).expect("a quota")
}

/// Slots of 2 ns each.
fn five_slots(n: u64) -> Bound {
    Bound::of_slots(ten_ns(n), 5).expect("a quota")
}

/// Asserts that the last grant breaks the bound, in this interval, by one permit.
fn is_broken(bound: &Bound, ticks: &[(u64, u64)], from: u64, to: u64) {
    let excess = grants(ticks).check(bound).expect_err("one too many");
    let interval = (Tick::from_nanos(from), Tick::from_nanos(to));
    assert_eq!((excess.from, excess.to), interval);
    let allowed = u128::from(ticks.iter().map(|(_, n)| n).sum::<u64>() - 1);
    assert_eq!((excess.granted - 1, excess.allowed), (3, allowed.min(3)));
}

#[test]
fn a_permit_comes_back_to_a_log_when_it_is_a_period_old() {
    let kept = grants(&[(7, 2), (9, 1), (17, 2), (19, 1), (27, 2)]);
    assert_eq!(kept.check(&log(3)).map(|s| s.granted), Ok(8));
    is_broken(&log(3), &[(7, 2), (9, 1), (16, 1)], 7, 16);
    is_broken(&log(3), &[(7, 2), (9, 1), (17, 2), (18, 1)], 9, 18);
}

#[test]
fn a_permit_comes_back_to_a_slotted_window_with_the_slot_that_leaves_it() {
    // Slots 3 and 8, which are five apart.
    let kept = grants(&[(7, 3), (16, 3)]);
    assert!(kept.check(&five_slots(3)).is_ok());
    is_broken(&five_slots(3), &[(6, 3), (15, 1)], 6, 15);
    // With the offset, ticks 15 and 16 are in the same slot.
    let later = five_slots(3).offset(Duration::from_nanos(1));
    assert!(grants(&[(6, 3), (15, 3)]).check(&later).is_ok());
    is_broken(&later, &[(7, 3), (16, 1)], 7, 16);
}

#[test]
fn a_debt_is_forgotten_with_its_slot() {
    let charged = |then| history(&[instant(7, Kind::Charge, 7), instant(then, Kind::Grant, 1)]);
    assert!(charged(15).check(&five_slots(3)).is_err());
    assert!(charged(16).check(&five_slots(3)).is_ok());
    assert!(charged(15).check(&five_slots(3).forgetting_debt()).is_ok());
}

/// The first charge counts in intervals from tick 10. It does not count in those from tick 12,
/// which have already begun when the check counts it.
#[test]
fn charges_weigh_on_the_intervals_that_hold_them() {
    let check = |charges: [u64; 2], granted| {
        let events = [
            instant(10, Kind::Grant, 1),
            (11, Kind::Charge, charges[0], [11, 12]),
            instant(12, Kind::Grant, 1),
            instant(13, Kind::Charge, charges[1]),
            instant(14, Kind::Grant, 1),
            instant(21, Kind::Grant, granted),
        ];
        history(&events)
            .check(&log(9))
            .map_err(|e| (e.from.as_nanos(), e.granted))
    };
    assert!(check([4, 2], 5).is_ok());
    assert_eq!(check([4, 2], 6).map(|_| ()), Err((12, 10)));
    assert_eq!(check([5, 2], 1).map(|_| ()), Err((10, 10)));
}

#[test]
fn a_reset_forgives_earlier_charges() {
    let after = |granted| {
        history(&[
            instant(10, Kind::Grant, 1),
            instant(11, Kind::Charge, 50),
            instant(12, Kind::Charge, 50),
            instant(12, Kind::Reset, 1),
            instant(13, Kind::Grant, 1),
            instant(14, Kind::Charge, 2),
            instant(15, Kind::Grant, granted),
        ])
    };
    assert!(after(6).check(&log(9)).is_ok());
    assert_eq!(after(7).check(&log(9)).map_err(|e| e.granted), Err(10));
}

/// Later in the same window, and in a log or in slots.
#[test]
fn permits_given_back_are_available_again() {
    let window = Bound::of_windows(ten_ns(3)).expect("a quota");
    let with = |back| {
        let all = [instant(11, Kind::Grant, 3), instant(15, Kind::Grant, 1)];
        history(&[all.to_vec(), vec![instant(back, Kind::GiveBack, 1)]].concat())
    };
    for bound in [window, log(3), five_slots(3)] {
        assert!(with(12).check(&bound).is_ok());
        assert!(with(9).check(&bound).is_err());
        assert!(with(16).check(&bound).is_err());
    }
}

#[test]
fn a_reset_allows_another_burst_in_intervals_that_contain_it() {
    let with = |granted| {
        history(&[
            instant(11, Kind::Grant, 3),
            instant(12, Kind::Reset, 1),
            instant(13, Kind::Grant, granted),
            instant(21, Kind::Grant, 1),
        ])
    };
    for bound in [log(3), five_slots(3)] {
        assert!(with(2).check(&bound).is_ok());
        assert!(with(3).check(&bound).is_err());
        assert!(with(4).check(&bound).is_err());
    }
}

#[test]
fn longer_intervals_allow_n_for_each_span() {
    let nanos = Duration::from_nanos;
    let allowed = |bound: Bound| [0, 1, 8, 9, 10, 19, 20].map(|ns| bound.allows(nanos(ns)));
    assert_eq!(allowed(log(3)), [3, 3, 3, 3, 6, 6, 9]);
    assert_eq!(allowed(five_slots(3)), [3, 3, 3, 6, 6, 9, 9]);
    let between =
        |bound: Bound, a, b| bound.allows_between(Tick::from_nanos(a), Tick::from_nanos(b));
    assert_eq!([between(log(3), 1, 10), between(log(3), 1, 11)], [3, 6]);
    let slots = five_slots(3);
    assert_eq!([between(slots, 0, 9), between(slots, 1, 10)], [3, 6]);
    assert_eq!(between(slots, 2, 1), 3);
}

#[test]
fn an_invalid_window_has_no_bound() {
    let (none, wide) = (ten_ns(0), ten_ns(3).burst(4));
    let refused = Err(QuotaError::BurstInWindow { burst: 4, n: 3 });
    assert_eq!(Bound::of_log(none), Err(QuotaError::ZeroPermits));
    assert_eq!(Bound::of_log(wide), refused);
    let expected = Err(QuotaError::ZeroPermits.into());
    assert_eq!(Bound::of_slots(none, 5), expected);
    assert_eq!(Bound::of_slots(wide, 5), refused.map_err(Into::into));
    assert_eq!(Bound::of_slots(ten_ns(3), 0), Err(LimiterError::ZeroSlots));
    for slots in [3, 4, 11, 20, usize::MAX] {
        let period = Duration::from_nanos(10);
        let uneven = Err(LimiterError::SlotsUneven { slots, period });
        assert_eq!(Bound::of_slots(ten_ns(3), slots), uneven);
    }
    // Slots of a nanosecond are ticks.
    assert_eq!(Bound::of_slots(ten_ns(3), 10), Ok(log(3)));
}

#[test]
fn extreme_ticks_and_numbers_do_not_overflow() {
    let at = [0, 1, u64::MAX];
    let all = at.map(|tick| instant(tick, Kind::Grant, u64::MAX));
    let charges = at.map(|tick| instant(tick, Kind::Charge, u64::MAX));
    let resets = at.map(|tick| instant(tick, Kind::Reset, 1));
    let most = Quota::per(u64::MAX, Duration::from_nanos(u64::MAX));
    let (log, slots) = (Bound::of_log(most), Bound::of_slots(most, 3));
    for bound in [log.expect("a quota"), slots.expect("a quota")] {
        let bound = bound.offset(Duration::MAX);
        assert!(history(&all).check(&bound).is_err());
        let _ = history(&[all, charges, resets].concat()).check(&bound);
        assert!(bound.allows(Duration::MAX) >= bound.allows(Duration::ZERO));
    }
}
