//! Windows of slots, and logs: what is allowed is made, what is not is refused with what would be, and that
//! is exact to the last permit and the last nanosecond.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{
    ConfigError, FixedWindow, MAX_LOG, MAX_SLOTS, NoClock, Quota, SlidingLog, SlottedWindow,
};

use crate::bad_input::{EDGES, FIFTY_YEARS_NS, long_and_short};

fn per_ns(n: u64, period_ns: u64) -> Quota {
    Quota::per(n, Duration::from_nanos(period_ns))
}

fn slotted(quota: Quota, slots: usize) -> Result<SlottedWindow<NoClock>, ConfigError> {
    SlottedWindow::with_clock(quota, slots, NoClock)
}

/// What a fixed window says of a quota that no window can have, whatever its limit.
fn no_window(quota: Quota) -> Option<ConfigError> {
    match FixedWindow::new(quota).err()? {
        ConfigError::LimitTooLarge { .. } => None,
        error => Some(error),
    }
}

/// Makes one, and checks that what a refusal says is so.
fn check_slotted(quota: Quota, slots: usize) -> bool {
    let made = slotted(quota, slots);
    let (period, parts) = (quota.period().as_nanos(), slots as u128);
    let error = match made {
        Ok(gate) => {
            assert_eq!((gate.quota(), gate.slots()), (quota, slots));
            assert_eq!(gate.slot_length().as_nanos() * parts, period);
            assert_eq!(gate.available_at(tollgate::Tick::MAX), quota.permits());
            assert!((1..=MAX_SLOTS).contains(&slots));
            return true;
        }
        Err(error) => error,
    };
    let text = error.to_string();
    assert!(text.starts_with(error.field()), "{text}");
    match error {
        ConfigError::ZeroSlots => assert_eq!(slots, 0),
        ConfigError::TooManySlots { slots: asked, max } => {
            assert!((asked, max) == (slots, MAX_SLOTS) && asked > max);
        }
        ConfigError::SlotsUneven {
            slots: asked,
            period: window,
        } => {
            assert_eq!((asked, window), (slots, quota.period()));
            assert!(period % parts != 0, "{quota} in {slots}");
        }
        ConfigError::LimitTooLarge { .. } => limit_too_large(quota, slots, error),
        other => assert_eq!(Some(other), no_window(quota), "{quota} in {slots}"),
    }
    false
}

/// So many fit a window of this length and one more does not, and so many fit a window of that length and
/// none that is shorter.
fn limit_too_large(quota: Quota, slots: usize, error: ConfigError) {
    let ConfigError::LimitTooLarge {
        n,
        max,
        period,
        min_period,
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!((n, period), (quota.permits(), quota.period()), "{quota}");
    let fits = |n, period| slotted(Quota::per(n, period), slots).is_ok();
    assert!(max < n && max > 0, "{quota} in {slots}: {error}");
    assert!(
        fits(max, period) && !fits(max + 1, period),
        "{quota} in {slots}: {error}"
    );
    match min_period {
        Some(least) => {
            assert!(least > period, "{quota} in {slots}: {error}");
            assert!(fits(n, least), "{quota} in {slots}: {error}");
            let less = least - Duration::from_nanos(slots as u64);
            assert!(!fits(n, less), "{quota} in {slots}: {error}");
        }
        None => {
            let longest = FIFTY_YEARS_NS - FIFTY_YEARS_NS % slots as u64;
            let longest = Duration::from_nanos(longest);
            assert!(!fits(n, longest), "{quota} in {slots}: {error}");
        }
    }
}

/// Numbers of slots that break things.
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
    MAX_SLOTS - 1,
    MAX_SLOTS,
    MAX_SLOTS + 1,
    usize::MAX - 1,
    usize::MAX,
];

#[test]
fn every_quota_and_number_of_slots_at_an_edge_is_made_or_refused_with_a_reason() {
    let (mut made, mut refused) = (0, 0);
    for slots in SLOTS {
        // A limit for each width of a count.
        let limits = EDGES.into_iter().chain((0..64).map(|bit| 1 << bit));
        for n in limits {
            let lengths = long_and_short().into_iter().chain([
                Duration::from_secs(60),
                Duration::from_secs(86_400),
                Duration::from_nanos(slots.min(MAX_SLOTS) as u64 * 1_000_003),
                Duration::from_nanos(FIFTY_YEARS_NS / 60 * 60),
            ]);
            for period in lengths {
                let quota = Quota::per(n, period);
                for quota in [quota, quota.burst(n), quota.burst(7), quota.initial(7)] {
                    match check_slotted(quota, slots) {
                        true => made += 1,
                        false => refused += 1,
                    }
                }
            }
        }
    }
    assert!(made > 4000 && refused > 50_000, "{made} and {refused}");
}

#[test]
fn the_largest_windows_are_those_that_the_layout_leaves_room_for() {
    let second = 1_000_000_000;
    for (period, slots, most) in [
        (second, 10, 536_870_911),
        (second, 50, 67_108_863),
        (60 * second, 60, 4_294_967_295),
        (86_400 * second, 24, 17_592_186_044_415),
    ] {
        let refused = match slotted(per_ns(10 * period, period), slots) {
            Err(ConfigError::LimitTooLarge { max, .. }) => max,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused, most, "{slots} slots in {period} ns");
    }
}

#[test]
fn a_log_keeps_from_one_permit_to_as_many_as_are_named() {
    let log = |quota| SlidingLog::with_clock(quota, NoClock).map(|gate| gate.quota());
    let day = Duration::from_secs(86_400);
    assert_eq!(MAX_LOG, 1 << 20);
    for n in [1, 2, MAX_LOG - 1, MAX_LOG] {
        assert_eq!(log(Quota::per(n, day)), Ok(Quota::per(n, day)));
    }
    assert_eq!(log(Quota::per(0, day)), Err(ConfigError::ZeroPermits));
    for n in [MAX_LOG + 1, 1 << 33, 10 * day.as_nanos() as u64] {
        let refused = ConfigError::LogTooLarge { n, max: MAX_LOG };
        assert_eq!(log(Quota::per(n, day)), Err(refused));
    }
    for quota in [Quota::per(5, day).burst(6), Quota::per(5, day).initial(4)] {
        assert_eq!(log(quota).err(), no_window(quota));
    }
    assert_eq!(
        log(Quota::per(5, day).burst(5).initial(5)),
        Ok(Quota::per(5, day))
    );
}

#[test]
fn every_quota_at_an_edge_is_a_log_or_refused_with_a_reason() {
    let (mut made, mut refused) = (0, 0);
    for n in EDGES.into_iter().chain([MAX_LOG, MAX_LOG + 1]) {
        for period in long_and_short() {
            let quota = Quota::per(n, period);
            for quota in [quota, quota.burst(n), quota.burst(7), quota.initial(7)] {
                let error = match SlidingLog::with_clock(quota, NoClock) {
                    Ok(gate) => {
                        assert_eq!(gate.available_at(tollgate::Tick::MAX), n);
                        made += 1;
                        continue;
                    }
                    Err(error) => error,
                };
                refused += 1;
                assert!(error.to_string().starts_with(error.field()), "{error}");
                match error {
                    ConfigError::LogTooLarge { n: asked, max } => {
                        assert!(asked == n && max == MAX_LOG && n > MAX_LOG);
                    }
                    other => assert_eq!(Some(other), no_window(quota), "{quota}"),
                }
            }
        }
    }
    assert!(made > 50 && refused > 500, "{made} and {refused}");
}

#[test]
fn each_error_names_the_field_what_it_was_and_what_is_allowed() {
    let second = Quota::per_second;
    let cases = [
        (
            slotted(second(5), 0).err(),
            "slots",
            "slots is 0, but must be at least 1",
        ),
        (
            slotted(second(5), 65_537).err(),
            "slots",
            "slots is 65537, but must be from 1 to 65536",
        ),
        (
            slotted(second(5), 7).err(),
            "slots",
            "slots is 7, but must divide 1s in whole nanoseconds",
        ),
        (
            slotted(per_ns(5, 3), 3).err(),
            "n",
            "n is 5, but must be at most 3 in a window of 3ns, or the window at least 6ns long",
        ),
        (
            slotted(second(5).burst(6), 10).err(),
            "burst",
            "burst is 6, but a window of 5 permits has no other burst: leave it out",
        ),
        (
            slotted(second(5).initial(0), 10).err(),
            "initial",
            "initial is 0, but a window begins with its 5 permits: leave it out",
        ),
        (
            SlidingLog::new(second(1_048_577)).err(),
            "n",
            "n is 1048577, but a log keeps each permit, and must be from 1 to 1048576",
        ),
        (
            SlidingLog::new(second(5).burst(6)).err(),
            "burst",
            "burst is 6, but a window of 5 permits has no other burst: leave it out",
        ),
    ];
    for (error, field, text) in cases {
        let error = error.expect(text);
        assert_eq!((error.field(), error.to_string().as_str()), (field, text));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4000) })]

    #[test]
    fn any_quota_and_number_of_slots_is_made_or_refused_with_a_reason(
        (n, n_bits) in (any::<u64>(), 0..64_u32),
        (slot, slot_bits) in (any::<u64>(), 0..64_u32),
        (slots, slots_bits) in (any::<usize>(), 40..64_u32),
    ) {
        let (n, slots) = (n >> n_bits, slots >> slots_bits);
        // In nearly all of them the slots are even.
        let period = (slot >> slot_bits).saturating_mul(slots as u64);
        check_slotted(per_ns(n, period), slots);
        check_slotted(per_ns(n, period / 2), slots);
    }
}
