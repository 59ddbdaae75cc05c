//! An algorithm of your own. daily.rs defines it; this program runs it in a limiter, compares it
//! with recorded decisions, and checks its bound on real threads.
//!
//! ```text
//! cargo run --example own_algorithm
//! ```
//!
//! loom-tests/tests/models/own_algorithm.rs checks it with loom.

mod daily;
mod promised;
mod recorded;

use std::error::Error;
use std::time::Duration;

use daily::{DAY_NS, Daily};
use tollgate::{Limiter, ManualClock, Tick};

fn main() -> Result<(), Box<dyn Error>> {
    limited()?;
    let report = recorded::replayed();
    print!("{report}");
    assert_eq!(report.failures, []);
    promised::checked()?;
    Ok(())
}

/// Calls the methods that `Daily` supports. It does not implement `Debt`, so `charge` would not
/// compile.
fn limited() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::at(Tick::from_nanos(DAY_NS - 1));
    let limiter = Limiter::with_clock(Daily::new(3), clock.clone());
    let granted = limiter.try_acquire_n(2)?;
    println!("{} left today", granted.remaining());
    println!("{}", limiter.try_acquire_n(2).unwrap_err());
    println!("2 more in {:?}", limiter.time_until(2));
    println!("{} came back", limiter.undo(granted));
    clock.advance(Duration::from_nanos(1));
    println!("{} left the next day", limiter.try_acquire()?.remaining());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(tick: u64) -> (Limiter<Daily, ManualClock>, ManualClock) {
        let clock = ManualClock::at(Tick::from_nanos(tick));
        (Limiter::with_clock(Daily::new(3), clock.clone()), clock)
    }

    #[test]
    fn a_day_grants_exactly_the_limit() {
        let (limiter, clock) = at(DAY_NS - 1);
        assert_eq!(limiter.take_up_to(5).n(), 3);
        let wait = limiter.try_acquire().unwrap_err().retry_after();
        assert_eq!(wait, Some(Duration::from_nanos(1)));
        assert_eq!(limiter.time_until(1), wait);
        clock.advance(Duration::from_nanos(1));
        assert_eq!(limiter.available(), 3);
        assert!(limiter.try_acquire_n(4).unwrap_err().is_permanent());
    }

    #[test]
    fn a_caller_from_yesterday_is_counted_today() {
        let (limiter, clock) = at(DAY_NS);
        assert_eq!(limiter.take_up_to(2).n(), 2);
        clock.set(Tick::from_nanos(DAY_NS - 5));
        let granted = limiter.try_acquire().expect("one is left");
        assert_eq!(granted.at(), Tick::from_nanos(DAY_NS));
        assert_eq!(granted.remaining(), 0);
        assert_eq!(granted.reset_after(), Duration::from_nanos(DAY_NS));
        let wait = limiter.try_acquire().unwrap_err().retry_after();
        assert_eq!(wait, Some(Duration::from_nanos(DAY_NS + 5)));
    }

    #[test]
    fn permits_taken_yesterday_do_not_come_back() {
        let (limiter, clock) = at(DAY_NS - 1);
        let yesterday = limiter.try_acquire_n(3).expect("a fresh day");
        clock.advance(Duration::from_nanos(1));
        let today = limiter.try_acquire_n(2).expect("a fresh day");
        assert_eq!((limiter.undo(yesterday), limiter.available()), (0, 1));
        assert_eq!((limiter.undo(today), limiter.available()), (2, 3));
        assert_eq!((limiter.refund(1), limiter.available()), (0, 3));
    }

    /// Nothing wraps or panics at the end of time. The last day has no midnight after it.
    #[test]
    fn the_last_day_does_not_end() {
        let (limiter, _) = at(u64::MAX);
        let granted = limiter.try_acquire_n(3).expect("a fresh day");
        assert_eq!(granted.reset_after(), Duration::ZERO);
        assert_eq!(limiter.try_acquire().unwrap_err().retry_after(), None);
        assert_eq!(limiter.time_until(1), None);
    }

    #[test]
    fn a_day_without_permits_grants_none() {
        let limiter = Limiter::with_clock(Daily::new(0), ManualClock::new());
        assert!(limiter.try_acquire().unwrap_err().is_permanent());
        assert_eq!(limiter.try_acquire_n(0).map(|granted| granted.n()), Ok(0));
    }
}
