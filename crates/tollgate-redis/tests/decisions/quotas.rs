//! Quotas from the smallest to the largest that are accepted.

use std::time::Duration;

use tollgate::Quota;

use super::Random;
use super::model::{Line, SPAN};
use crate::limit::error::LimitError;
use crate::limit::rate::Rate;

/// 50 years.
const LONGEST: Duration = Duration::from_micros(SPAN as u64);

/// Returns a random quota that is accepted.
pub(super) fn random(random: &mut Random) -> Quota {
    let second = Duration::from_secs(1);
    let (n, period) = match random.below(6) {
        // 2^26 permits in an odd number of microseconds: the largest denominator.
        0 => (1 << 26, Duration::from_micros(random.any_size(1 << 50) | 1)),
        // Years.
        1 => (1 + random.any_size((1 << 26) - 1), LONGEST),
        2 => (
            1 + random.below(10),
            second * (1 + random.below(100) as u32),
        ),
        3 => (
            1 + random.any_size(10_000),
            Duration::from_nanos(1 + random.any_size(1 << 40)),
        ),
        4 => (
            1 + random.below(1 << 16),
            Duration::from_millis(1 + random.any_size(1 << 30)),
        ),
        _ => (
            1 + random.any_size(1 << 26),
            Duration::from_micros(1 + random.any_size(1 << 50)),
        ),
    };
    let quota = Quota::per(n, period);
    let line = Line::of(quota);
    let largest = (SPAN * line.n / line.period).min((1 << 53) - 1) as u64;
    let burst = match random.below(4) {
        0 => largest,
        1 => 1 + random.below(10).min(largest.saturating_sub(1)),
        _ => random.any_size(largest).max(1),
    };
    match Rate::new(quota.burst(burst)) {
        Ok(_) => quota.burst(burst),
        Err(_) => self::random(random),
    }
}

#[test]
fn quotas_up_to_the_edges_are_accepted_and_no_others() {
    let year = Duration::from_secs(31_557_600);
    let micro = Duration::from_micros(1);
    let error = |quota| Rate::new(quota).map(drop).unwrap_err();
    for quota in [
        Quota::per(1 << 26, micro).burst((1 << 53) - 1),
        Quota::per((1 << 26) - 1, LONGEST),
        Quota::per(1, year).burst(50),
        Quota::per(1, LONGEST),
        Quota::per(67_108, Duration::from_nanos(1)),
        Quota::per(u64::MAX, LONGEST).burst(1).initial(1),
    ] {
        let accepted = Rate::new(quota).is_ok();
        let line = Line::of(quota);
        assert_eq!(accepted, line.n <= 1 << 26, "{quota}");
    }
    let (n, period) = ((1 << 26) + 1, LONGEST - micro);
    assert_eq!(
        error(Quota::per(n, period)),
        LimitError::RateTooFine { n, period }
    );
    let (n, period) = (67_109, Duration::from_nanos(1));
    assert_eq!(
        error(Quota::per(n, period)),
        LimitError::RateTooFine { n, period }
    );
    let (burst, max) = (51, 50);
    assert_eq!(
        error(Quota::per(1, year).burst(burst)),
        LimitError::Burst { burst, max }
    );
    let (burst, max) = (1 << 53, (1 << 53) - 1);
    let quota = Quota::per(1 << 26, micro).burst(burst);
    assert_eq!(error(quota), LimitError::Burst { burst, max });
    let period = LONGEST + Duration::from_nanos(1);
    assert_eq!(
        error(Quota::per(1, period)),
        LimitError::PeriodTooLong { period }
    );
    let longest = Duration::from_nanos(SPAN as u64);
    assert!(Rate::new(Quota::per(1, longest - Duration::from_nanos(1))).is_ok());
    let period = longest + Duration::from_nanos(1);
    assert_eq!(
        error(Quota::per(1, period)),
        LimitError::PeriodNotWhole { period }
    );
    assert_eq!(error(Quota::per(1, Duration::ZERO)), LimitError::ZeroPeriod);
    assert_eq!(error(Quota::per_second(0)), LimitError::ZeroPermits);
    let (burst, max) = (0, 1_577_880_000);
    assert_eq!(
        error(Quota::per_second(1).burst(0)),
        LimitError::Burst { burst, max }
    );
    let (initial, burst) = (0, 1);
    assert_eq!(
        error(Quota::per_second(1).initial(0)),
        LimitError::Initial { initial, burst }
    );
}

#[test]
fn each_error_names_its_field_first() {
    for quota in [
        Quota::per_second(0),
        Quota::per(1, Duration::ZERO),
        Quota::per(1, LONGEST * 2),
        Quota::per(67_109, Duration::from_nanos(1)),
        Quota::per_second(1).burst(0),
        Quota::per_second(1).initial(0),
    ] {
        let error = Rate::new(quota).map(drop).unwrap_err();
        assert!(error.to_string().starts_with(error.field()), "{error}");
    }
}
