//! Examples of charges in a sliding log and in a slotted window, and the lengths of their bounds.

use core::time::Duration;

use tollgate::Tick;
use tollgate::error::{LimiterError, QuotaError};
use tollgate_audit::Bound;

use super::{Kind, history, instant, ten_ns};

fn log(n: u64) -> Bound {
    Bound::of_log(ten_ns(n)).expect("a quota")
}

/// Slots of 2 ns each.
fn five_slots(n: u64) -> Bound {
    Bound::of_slots(ten_ns(n), 5).expect("a quota")
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
fn an_invalid_window_or_quota_has_no_bound() {
    let (none, wide, empty) = (ten_ns(0), ten_ns(3).burst(4), ten_ns(3).burst(0));
    let refused = Err(QuotaError::BurstInWindow { burst: 4, n: 3 });
    for of in [Bound::of_log, Bound::of_windows] {
        assert_eq!(of(none), Err(QuotaError::ZeroPermits));
        assert_eq!(of(wide), refused);
    }
    for of in [Bound::of_refills, Bound::of_steps] {
        assert_eq!(of(empty), Err(QuotaError::ZeroBurst));
    }
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
