//! Invalid input is refused with the field's name and what is allowed. Everything else is answered.

use tollgate_smooth::SmoothError;

use crate::support::*;

const YEAR: Duration = Duration::from_secs(365 * 86_400);
const ROUNDS: u64 = debug_or_release(1_000, 10_000);

#[test]
fn an_invalid_rate_is_refused() {
    let (second, inf, nan) = (Duration::from_secs(1), f64::INFINITY, f64::NAN);
    let limiters = (bursty(10.0), warming_up(10.0, second));
    let small = [0.0, -0.0, -1.0, 1e-8, f64::MIN_POSITIVE];
    for rate in small
        .into_iter()
        .chain([-inf, inf, nan, -nan, 1.1e12, f64::MAX])
    {
        for error in [
            SmoothBursty::new(rate).err(),
            SmoothWarmingUp::new(rate, second).err(),
            limiters.0.set_rate_at(rate, Tick::ZERO).err(),
            limiters.1.set_rate_at(rate, Tick::ZERO).err(),
        ] {
            let error = error.unwrap_or_else(|| panic!("a rate of {rate}"));
            assert_eq!(error.field(), "rate");
            let told = error.to_string();
            assert!(
                told.starts_with(&format!("rate is {rate}, but must be")),
                "{told}"
            );
            assert!(told.contains("1000000000000"), "{told}");
        }
    }
    assert_eq!((limiters.0.rate(), limiters.1.rate()), (10.0, 10.0));
    for rate in [1.0 / YEAR.as_secs_f64(), 1e-7, 1e12] {
        assert!(SmoothBursty::new(rate).is_ok(), "{rate}");
        assert!(SmoothWarmingUp::new(rate, second).is_ok(), "{rate}");
    }
}

#[test]
fn a_burst_that_is_too_large_is_refused() {
    let nanosecond = Duration::from_nanos(1);
    let too_long = bursty(1.0).max_burst(YEAR + nanosecond).unwrap_err();
    let (max_burst, max) = (YEAR + nanosecond, YEAR);
    assert_eq!(too_long, SmoothError::MaxBurst { max_burst, max });
    let too_many = bursty(1e12).max_burst(YEAR).unwrap_err();
    assert_eq!(too_many.field(), "max_burst");
    let told = "max_burst is 31536000s, but must be at most 1125.899906843s at this rate";
    assert_eq!(too_many.to_string(), told);
    let warm_up = SmoothWarmingUp::new(1e12, YEAR).unwrap_err();
    assert_eq!(warm_up.field(), "warm_up");
    assert!(SmoothWarmingUp::new(1.0, YEAR).is_ok());
    // A store that fits at one rate must fit at the next.
    let limiter = bursty(1.0).max_burst(YEAR).expect("a store");
    let error = limiter.set_rate_at(1e9, Tick::ZERO).unwrap_err();
    let SmoothError::Rate { max, .. } = error else {
        panic!("{error}");
    };
    assert!(limiter.set_rate_at(max, Tick::ZERO).is_ok());
}

#[test]
fn an_invalid_cold_factor_is_refused() {
    for factor in [0.0, -3.0, 0.999, f64::NAN, f64::INFINITY, 1.1e6] {
        let error = warming_up(1.0, YEAR).cold_factor(factor).unwrap_err();
        assert_eq!(error.field(), "cold_factor");
        let told = format!("cold_factor is {factor}, but must be from 1 to 1000000");
        assert_eq!(error.to_string(), told);
    }
    assert!(warming_up(1.0, YEAR).cold_factor(1e6).is_ok());
}

#[test]
fn a_turn_beyond_the_end_of_time_never_comes() {
    // A caller takes too many permits, and is itself admitted at once.
    let limiter = bursty(1.0);
    let turn = limiter.reserve_at(u64::MAX, Tick::ZERO).expect("a turn");
    assert_eq!(turn.delay(), Duration::ZERO);
    assert_eq!(limiter.next_free_at(Tick::ZERO), Tick::MAX);
    for now in [Tick::ZERO, tick(SECOND), tick(1 << 60), Tick::MAX] {
        assert_eq!(limiter.reserve_at(1, now), Err(Denied::stuck(1)));
        let denied = limiter.reserve_within_at(1, Duration::MAX, now);
        assert_eq!(denied, Err(Denied::stuck(1)));
        assert!(limiter.reserve_at(0, now).is_ok());
        assert!(limiter.set_rate_at(2.0, now).is_ok());
    }
    // A caller comes at the end of time, or after it.
    let last = tick((1 << 60) - 2);
    for now in [last, tick(1 << 60), Tick::MAX] {
        let limiter = bursty(1.0);
        let turn = limiter.reserve_at(1, now);
        assert!(now > last || turn.is_ok_and(|turn| turn.due() == last));
        let _ = limiter.reserve_at(5, now);
        assert_eq!(limiter.reserve_at(1, now), Err(Denied::stuck(1)));
    }
}

/// No request panics or moves the next turn back.
#[test]
fn any_request_is_answered() {
    let mut random = Random(17);
    for round in 0..ROUNDS {
        let rate = 10_f64.powf(random.below(19) as f64 - 7.0);
        let fill = Duration::from_nanos(random.upto(1 << 54));
        let mut any = || random.upto(u64::MAX);
        let one = SmoothBursty::started_at(rate, NoClock, tick(any()));
        let two = SmoothWarmingUp::started_at(rate, fill, NoClock, tick(any()));
        let one = one.expect("a rate").max_burst(fill);
        let two =
            two.and_then(|limiter| limiter.cold_factor(1.0 + (any() % 1_000_000) as f64 * 0.999));
        let (Ok(one), Ok(two)) = (one, two) else {
            continue;
        };
        let (one, two) = match round % 2 {
            0 => (one, two),
            _ => (one.in_whole_micros(), two.in_whole_micros()),
        };
        let mut last = (Tick::ZERO, Tick::ZERO);
        for _ in 0..20 {
            let [n, now, timeout] = [(); 3].map(|()| random.upto(u64::MAX));
            let (now, timeout) = (tick(now), Duration::from_nanos(timeout));
            let rate = 10_f64.powf(random.below(40) as f64 - 20.0);
            for turn in [
                one.reserve_at(n, now),
                two.reserve_at(n, now),
                one.reserve_within_at(n, timeout, now),
                two.reserve_within_at(n, timeout, now),
            ] {
                assert!(turn.is_ok_and(|turn| turn.due() >= now) || turn.is_err());
            }
            let _ = (one.set_rate_at(rate, now), two.set_rate_at(rate, now));
            for (stored, max) in [
                (one.stored_at(now), one.max_stored()),
                (two.stored_at(now), two.max_stored()),
            ] {
                // Up to the last digit, when counting as Guava does.
                assert!(
                    (0.0..=max * (1.0 + 1e-15)).contains(&stored),
                    "{stored} {max}"
                );
            }
            let next = (one.next_free_at(Tick::ZERO), two.next_free_at(Tick::ZERO));
            assert!(next.0 >= last.0 && next.1 >= last.1);
            last = next;
        }
    }
}
