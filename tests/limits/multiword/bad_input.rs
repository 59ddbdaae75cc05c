//! Valid input is accepted. Invalid input is refused with the nearest valid value, exact to the
//! last permit and nanosecond. tests/limits/errors.rs has the texts.

use tollgate::error::{LimiterError, QuotaError};

use crate::quota::kinds::is_the_limit;
use crate::support::edges::{EDGES, long_and_short};
use crate::support::*;

fn slotted(quota: Quota, slots: usize) -> Result<SlottedWindow<NoClock>, LimiterError> {
    SlottedWindow::with_clock(quota, slots, NoClock)
}

fn log(quota: Quota) -> Result<SlidingLog<NoClock>, LimiterError> {
    SlidingLog::with_clock(quota, NoClock)
}

/// Returns the error of a fixed window for a quota that no window of any limit allows.
fn no_window(quota: Quota) -> Option<QuotaError> {
    match FixedWindow::new(quota).err()? {
        QuotaError::LimitTooLarge { .. } => None,
        error => Some(error),
    }
}

/// Creates one, and checks that a refusal is right.
fn is_slotted(quota: Quota, slots: usize) -> bool {
    let (period, parts) = (quota.period().as_nanos(), slots as u128);
    let error = match slotted(quota, slots) {
        Ok(limiter) => {
            assert_eq!((limiter.quota(), limiter.slots()), (quota, slots));
            assert_eq!(limiter.slot_length().as_nanos() * parts, period);
            assert_eq!(limiter.at(Tick::MAX).available(), quota.permits());
            assert!((1..=SlottedWindow::MAX_SLOTS).contains(&slots));
            return true;
        }
        Err(error) => error,
    };
    match error {
        LimiterError::ZeroSlots => assert_eq!(slots, 0),
        LimiterError::TooManySlots { slots: asked, max } => {
            assert!((asked, max) == (slots, SlottedWindow::MAX_SLOTS) && asked > max);
        }
        LimiterError::SlotsUneven {
            slots: asked,
            period: window,
        } => {
            assert_eq!((asked, window), (slots, quota.period()));
            assert!(period % parts != 0, "{quota} in {slots}");
        }
        LimiterError::Quota(error @ QuotaError::LimitTooLarge { .. }) => {
            let fits = |n, period| slotted(Quota::per(n, period), slots).is_ok();
            let longest = Duration::from_nanos(FIFTY_YEARS - FIFTY_YEARS % slots as u64);
            let is_right = is_the_limit(error, quota, (slots as u64, longest), fits);
            assert!(is_right, "{quota} in {slots}: {error}");
        }
        LimiterError::Quota(other) => {
            assert_eq!(Some(other), no_window(quota), "{quota} in {slots}");
        }
        other => panic!("{quota} in {slots}: {other}"),
    }
    false
}

fn is_log(quota: Quota) -> bool {
    let n = quota.permits();
    match log(quota) {
        Ok(limiter) => {
            let actual = (limiter.quota(), limiter.at(Tick::MAX).available());
            assert_eq!(actual, (quota, n));
            assert!((1..=SlidingLog::MAX_PERMITS).contains(&n));
            return true;
        }
        Err(LimiterError::LogTooLarge { n: asked, max }) => {
            assert!(asked == n && max == SlidingLog::MAX_PERMITS && n > SlidingLog::MAX_PERMITS);
        }
        Err(LimiterError::Quota(other)) => assert_eq!(Some(other), no_window(quota), "{quota}"),
        Err(other) => panic!("{quota}: {other}"),
    }
    false
}

/// Extreme numbers of slots.
const SLOTS: [usize; 14] = [
    0,
    1,
    2,
    3,
    7,
    10,
    59,
    60,
    1000,
    SlottedWindow::MAX_SLOTS - 1,
    SlottedWindow::MAX_SLOTS,
    SlottedWindow::MAX_SLOTS + 1,
    usize::MAX - 1,
    usize::MAX,
];

#[test]
fn every_extreme_quota_is_accepted_or_refused_with_a_reason() {
    let (mut made, mut refused, mut logs) = (0, 0, 0);
    for slots in SLOTS {
        // A limit for each width of a count.
        let limits = EDGES
            .into_iter()
            .chain([SlidingLog::MAX_PERMITS, SlidingLog::MAX_PERMITS + 1]);
        for n in limits.chain((0..64).step_by(5).map(|bit| 1 << bit)) {
            let lengths = long_and_short().into_iter().chain([
                Duration::from_secs(60),
                Duration::from_secs(86_400),
                Duration::from_nanos(slots.min(SlottedWindow::MAX_SLOTS) as u64 * 1_000_003),
                Duration::from_nanos(FIFTY_YEARS / 60 * 60),
            ]);
            for period in lengths {
                let quota = Quota::per(n, period);
                for quota in [quota, quota.burst(n), quota.burst(7), quota.initial(7)] {
                    match is_slotted(quota, slots) {
                        true => made += 1,
                        false => refused += 1,
                    }
                    logs += u64::from(slots == 0 && is_log(quota));
                }
            }
        }
    }
    assert!(
        made > 1000 && refused > 10_000 && logs > 100,
        "{made}, {refused}, {logs}"
    );
}

/// In nearly all of them the slots are equal.
#[test]
fn any_quota_is_accepted_or_refused_with_a_reason() {
    let mut random = Random(0x0070_11a7_e403);
    for _ in 0..if cfg!(debug_assertions) { 1000 } else { 20_000 } {
        let slots = random.upto((1 << 24) - 1);
        let period = random.upto(u64::MAX).saturating_mul(slots);
        let n = random.upto(u64::MAX);
        is_slotted(per_ns(n, period), slots as usize);
        is_slotted(per_ns(n, period / 2), slots as usize);
        is_log(per_ns(n >> random.below(64), period));
    }
}
