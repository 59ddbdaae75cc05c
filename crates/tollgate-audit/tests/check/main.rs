//! Tests of the check: examples, and a comparison with its definition.

mod definition;
mod windows;
mod within;

use core::time::Duration;

use tollgate::error::QuotaError;
use tollgate::outcome::Charged;
use tollgate::{Quota, Tick};
use tollgate_audit::{Audit, Bound, Log};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Grant,
    Charge,
    GiveBack,
    Reset,
}

/// A tick, what happened, how many permits, and when it began and ended.
type Event = (u64, Kind, u64, [u64; 2]);

fn history(events: &[Event]) -> Audit {
    let mut log = Log::new();
    for &(tick, kind, n, [begun, done]) in events {
        let tick = Tick::from_nanos(tick);
        let entry = match kind {
            Kind::Grant => log.grant(tick, n),
            Kind::Charge => log.charged(&Charged::new(n, tick)),
            Kind::GiveBack => log.gave_back(tick, n),
            Kind::Reset => log.reset(tick),
        };
        entry.during(Tick::from_nanos(begun), Tick::from_nanos(done));
    }
    [log].into_iter().collect()
}

fn instant(tick: u64, kind: Kind, n: u64) -> Event {
    (tick, kind, n, [tick; 2])
}

fn ten_ns(n: u64) -> Quota {
    Quota::per(n, Duration::from_nanos(10))
}

/// One permit every 10 ns, with a burst of 3.
fn bound() -> Bound {
    let quota = Quota::per(1, Duration::from_nanos(10)).burst(3);
    Bound::of_quota(quota).expect("a quota")
}

#[test]
fn one_permit_too_many_is_found_with_its_interval() {
    let grants = |ticks: [u64; 3]| {
        let [a, b, c] = ticks;
        [(a, 3), (b, 1), (c, 1)].map(|(tick, n)| instant(tick, Kind::Grant, n))
    };
    let kept = history(&grants([0, 10, 20]));
    assert_eq!(kept.check(&bound()).map(|s| s.granted), Ok(5));
    let early = history(&grants([7, 17, 26]));
    let excess = early.check(&bound()).expect_err("too early");
    let expected = "5 permits were granted from 7 ns to 26 ns, but at most 4 are allowed";
    assert_eq!(excess.to_string(), expected);
}

#[test]
fn a_charge_may_exceed_but_no_grant_may_follow_it() {
    let (grant, charge) = (instant(0, Kind::Grant, 2), instant(0, Kind::Charge, 9));
    assert!(history(&[grant, charge]).check(&bound()).is_ok());
    let with = |tick| history(&[grant, charge, instant(tick, Kind::Grant, 1)]);
    assert!(with(90).check(&bound()).is_ok());
    let excess = with(89).check(&bound()).expect_err("out of the debt");
    assert_eq!((excess.granted, excess.allowed), (12, 11));
}

#[test]
fn a_reset_forgives_the_debt_and_allows_one_burst() {
    let debt = [instant(0, Kind::Grant, 3), instant(0, Kind::Charge, 9)];
    let after = |n| {
        let more = [instant(20, Kind::Reset, 1), instant(20, Kind::Grant, n)];
        history(&[debt, more].concat())
    };
    // Three from the reset, and two refilled since tick 0.
    assert!(after(5).check(&bound()).is_ok());
    assert!(after(6).check(&bound()).is_err());
}

#[test]
fn a_later_charge_does_not_make_a_late_give_back_count() {
    let grants = [
        (1_000_000, Kind::Grant, 3, [1, 1]),
        (1_000_002, Kind::Grant, 1, [3, 3]),
    ];
    let late = (1_000_003, Kind::GiveBack, 1, [6, 6]);
    let charge = (1_000_001, Kind::Charge, 1, [5, 5]);
    let [a, b] = grants;
    assert!(history(&[a, b, late]).check(&bound()).is_err());
    assert!(history(&[a, b, late, charge]).check(&bound()).is_err());
}

/// Extremes saturate to an excess.
#[test]
fn extreme_ticks_and_numbers_do_not_overflow() {
    let at = [0, 1, u64::MAX];
    let grants = at.map(|tick| instant(tick, Kind::Grant, u64::MAX));
    let charges = at.map(|tick| instant(tick, Kind::Charge, u64::MAX));
    let resets = at.map(|tick| instant(tick, Kind::Reset, 1));
    let most = Quota::per(u64::MAX, Duration::from_nanos(u64::MAX));
    let fast = Quota::per(10, Duration::from_nanos(1)).burst(u64::MAX);
    let year = Quota::per(1, Duration::from_secs(365 * 86_400));
    let slots = Bound::of_slots(most, 3).expect("a quota");
    let (year, log) = (Bound::of_quota(year), Bound::of_log(most));
    let saturated = [year.expect("a quota"), log.expect("a quota"), slots];
    for bound in saturated.map(|bound| bound.offset(Duration::MAX)) {
        assert!(history(&grants).check(&bound).is_err(), "{bound:?}");
    }
    let bounds = [Bound::of_quota, Bound::of_refills, Bound::of_steps];
    let bounds = bounds.map(|of| [most, fast].map(|quota| of(quota).expect("a quota")));
    for bound in bounds.concat().into_iter().chain(saturated) {
        let bound = bound.offset(Duration::MAX);
        for events in [&resets[..], &[charges, resets].concat()] {
            let _ = history(&[&grants, events].concat()).check(&bound);
        }
        assert!(bound.allows(Duration::MAX) >= bound.allows(Duration::ZERO));
    }
}

/// A bound needs a rate and a burst that are possible, and no algorithm that has room for them.
#[test]
fn bounds_are_refused_for_their_rate_alone() {
    let day = Duration::from_secs(86_400);
    let possible = [
        Quota::per(1, 365 * day),
        Quota::per(3, 3 * 365 * day),
        Quota::per(11, 11 * 365 * day),
        Quota::per(10, Duration::from_nanos(1)),
        Quota::per(99_999_999_999, Duration::from_nanos(9_999_999_999 + 1)),
        Quota::per(u64::MAX / 2, Duration::from_nanos(u64::MAX)),
        Quota::per(1_000_000_007, Duration::from_nanos(u64::MAX)),
        Quota::per(10, day).initial(99),
    ];
    for quota in possible {
        for quota in [quota, quota.burst(1), quota.burst(u64::MAX)] {
            assert!(Bound::of_quota(quota).is_ok(), "{quota}");
        }
    }
    let refused = |quota, error| assert_eq!(Bound::of_quota(quota), Err(error));
    let ns = Duration::from_nanos;
    refused(Quota::per(0, day), QuotaError::ZeroPermits);
    refused(Quota::per(1, ns(0)), QuotaError::ZeroPeriod);
    refused(Quota::per_second(1).burst(0), QuotaError::ZeroBurst);
    let (n, period) = (11, ns(1));
    refused(Quota::per(n, period), QuotaError::RateTooHigh { n, period });
    let (n, period) = (1, 366 * day);
    refused(Quota::per(n, period), QuotaError::RateTooLow { n, period });
    let period = Duration::MAX;
    refused(Quota::per(n, period), QuotaError::PeriodTooLong { period });
}

#[test]
fn audits_can_be_shared() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<(Audit, Log, Bound)>();
    is_shared::<(tollgate_audit::Summary, tollgate_audit::Excess)>();
}
