//! The wait in a denial is exact. If no other caller comes, a retry at exactly that time gets its
//! turn, and a retry a nanosecond sooner is denied.

use crate::support::*;

const NANOSECOND: Duration = Duration::from_nanos(1);
const FIFTY_YEARS: u64 = 50 * 36_525 * 864 * SECOND;

/// Asks a limiter for permits at a tick.
type Ask = Box<dyn FnMut(u64, Tick) -> Result<(), Denied>>;

const RATES: [f64; 5] = [1.0, 2.5, 97.0, 1e6 / 7.0, 3e-3];
/// Timeouts, in units of the time between two turns.
const TIMEOUTS: [f64; 4] = [0.0, 1e-9, 0.7, 20.5];

/// Returns all kinds, counting nanoseconds and whole microseconds.
fn subjects(rate: f64, timeout: Duration, start: Tick) -> [(&'static str, Ask); 4] {
    let bursty = || SmoothBursty::started_at(rate, ManualClock::new(), start).expect("a rate");
    let warming = || {
        let warm_up = Duration::from_secs(3);
        SmoothWarmingUp::started_at(rate, warm_up, ManualClock::new(), start).expect("a rate")
    };
    macro_rules! asks {
        ($limiter:expr) => {{
            let limiter = $limiter;
            Box::new(move |n, now| limiter.reserve_within_at(n, timeout, now).map(drop))
        }};
    }
    [
        ("bursty", asks!(bursty())),
        ("bursty, in microseconds", asks!(bursty().in_whole_micros())),
        ("warming up", asks!(warming())),
        (
            "warming up, in microseconds",
            asks!(warming().in_whole_micros()),
        ),
    ]
}

#[test]
fn retry_times_are_exact_for_smooth_limiters() {
    let mut random = Random(0x0070_11a7_eb02);
    for (rate, timeout) in RATES
        .into_iter()
        .flat_map(|rate| TIMEOUTS.map(|wait| (rate, wait)))
    {
        let interval = Duration::from_secs_f64(1.0 / rate);
        let timeout = interval.mul_f64(timeout);
        let start = Tick::from_nanos(random.upto(FIFTY_YEARS / 4));
        for (name, mut ask) in subjects(rate, timeout, start) {
            let (mut now, mut later) = (start, 0);
            for n in 1..=256 {
                now = now.saturating_add(Duration::from_nanos(
                    random.upto(interval.as_nanos() as u64),
                ));
                let label = format!("{n} of {name}, {rate}/s within {timeout:?} at {now:?}");
                let Err(denied) = ask(n, now) else { continue };
                let wait = denied.retry_after().expect(&label);
                let due = now.saturating_add(wait);
                assert!(ask(n, due.saturating_sub(NANOSECOND)).is_err(), "{label}");
                assert_eq!(ask(n, due), Ok(()), "{label}: {due:?}");
                (now, later) = (due, later + 1);
            }
            assert!(
                later > 100,
                "{later} of {name}, {rate}/s within {timeout:?}"
            );
        }
    }
}
