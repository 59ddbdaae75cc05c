//! Answers that make no sense.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::Tick;
use tollgate_client::{Pace, ServerLimit, Unit};

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..20_u64,
        any::<u64>(),
        Just(0),
        Just(u64::MAX),
        Just(999_999_999_999_999)
    ]
}

fn time() -> impl Strategy<Value = Duration> {
    prop_oneof![
        number().prop_map(Duration::from_nanos),
        (0..200_u64).prop_map(Duration::from_secs),
        Just(Duration::MAX),
    ]
}

fn limit() -> impl Strategy<Value = ServerLimit> {
    let numbers = (prop::option::of(number()), prop::option::of(number()));
    let times = (prop::option::of(time()), prop::option::of(time()));
    (numbers, times, 0..3).prop_map(|((quota, remaining), (window, reset), unit)| {
        let mut limit = ServerLimit::default();
        (limit.quota, limit.remaining) = (quota, remaining);
        (limit.window, limit.reset) = (window, reset);
        limit.unit = match unit {
            0 => Unit::Requests,
            1 => Unit::ContentBytes,
            _ => Unit::ConcurrentRequests,
        };
        limit
    })
}

proptest! {
    #[test]
    fn a_pace_survives_them(
        answers in prop::collection::vec((limit(), number(), number(), any::<bool>()), 1..50),
    ) {
        let mut pace = Pace::new(1);
        for (limit, sent, now, granted) in answers {
            let (sent, now) = (Tick::from_nanos(sent), Tick::from_nanos(now));
            pace.sent(sent, granted);
            pace.answered(&limit, sent, now, granted);
            if !granted {
                pace.hold(now);
            }
            // No limit delays the next request for ever.
            let day = Duration::from_secs(24 * 3600);
            let longest = day * 400;
            prop_assert!(pace.interval() <= longest, "{:?}", pace);
        }
    }

    #[test]
    fn a_pace_of_sensible_answers_goes_on(
        quota in 1..10_000_u64,
        window in 1..4000_u64,
        answers in prop::collection::vec((0.0..1.0_f64, any::<bool>()), 1..50),
    ) {
        let mut pace = Pace::new(1);
        let mut limit = ServerLimit::default();
        limit.quota = Some(quota);
        limit.window = Some(Duration::from_secs(window));
        let mut now = Tick::from_nanos(1);
        for (left, granted) in answers {
            let sent = now.max(pace.next_send());
            // It waits at most for a window, and then at random within its interval.
            let longest = Duration::from_secs(3 * window.max(600));
            prop_assert!(sent.saturating_since(now) <= longest, "{:?}", pace);
            pace.sent(sent, true);
            now = sent.saturating_add(Duration::from_millis(30));
            limit.remaining = Some((left * quota as f64) as u64);
            limit.reset = Some(Duration::from_secs((left * window as f64) as u64 + 1));
            pace.answered(&limit, sent, now, granted);
        }
    }
}
