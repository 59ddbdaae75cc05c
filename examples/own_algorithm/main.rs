//! An algorithm of one's own, written once, and what it gets for that: the limiter, the trace
//! runner, and the check of its bound on real threads. The models of
//! loom-tests/tests/models/own_algorithm.rs are of the same file.
//!
//! ```text
//! cargo run --example own_algorithm --features history
//! ```

mod daily;
#[cfg(feature = "history")]
mod promised;
mod recorded;

use std::error::Error;
use std::time::Duration;

use daily::{DAY_NS, Daily};
use tollgate::{Limiter, ManualClock, Tick};

fn main() -> Result<(), Box<dyn Error>> {
    limited()?;
    print!("{}", recorded::replayed());
    #[cfg(feature = "history")]
    promised::checked()?;
    Ok(())
}

/// The limiter, with the verbs of the traits that are there: `charge` does not compile.
fn limited() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::at(Tick::from_nanos(DAY_NS - 1));
    let gate = Limiter::with_clock(Daily::new(3), clock.clone());
    let granted = gate.try_acquire_n(2)?;
    println!("{} left today", granted.remaining());
    println!("{}", gate.try_acquire_n(2).unwrap_err());
    println!("2 more in {:?}", gate.time_until(2));
    println!("{} came back", gate.undo(granted));
    clock.advance(Duration::from_nanos(1));
    println!("{} left the next day", gate.try_acquire()?.remaining());
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
    fn a_day_has_its_limit_and_not_more() {
        let (gate, clock) = at(DAY_NS - 1);
        assert_eq!(gate.take_up_to(5).n(), 3);
        let wait = gate.try_acquire().unwrap_err().retry_after();
        assert_eq!(wait, Some(Duration::from_nanos(1)));
        assert_eq!(gate.time_until(1), wait);
        clock.advance(Duration::from_nanos(1));
        assert_eq!(gate.available(), 3);
        assert!(gate.try_acquire_n(4).unwrap_err().is_permanent());
    }

    #[test]
    fn a_caller_from_yesterday_is_counted_today() {
        let (gate, clock) = at(DAY_NS);
        assert_eq!(gate.take_up_to(2).n(), 2);
        clock.set(Tick::from_nanos(DAY_NS - 5));
        let granted = gate.try_acquire().expect("one is left");
        assert_eq!(granted.at(), Tick::from_nanos(DAY_NS));
        assert_eq!(granted.remaining(), 0);
        assert_eq!(granted.reset_after(), Duration::from_nanos(DAY_NS));
        let wait = gate.try_acquire().unwrap_err().retry_after();
        assert_eq!(wait, Some(Duration::from_nanos(DAY_NS + 5)));
    }

    #[test]
    fn what_was_taken_yesterday_does_not_come_back() {
        let (gate, clock) = at(DAY_NS - 1);
        let yesterday = gate.try_acquire_n(3).expect("a fresh day");
        clock.advance(Duration::from_nanos(1));
        let today = gate.try_acquire_n(2).expect("a fresh day");
        assert_eq!((gate.undo(yesterday), gate.available()), (0, 1));
        assert_eq!((gate.undo(today), gate.available()), (2, 3));
        assert_eq!((gate.refund(1), gate.available()), (0, 3));
    }

    /// Nothing wraps and nothing panics at the end of time, after which there is no midnight.
    #[test]
    fn the_last_day_does_not_end() {
        let (gate, _) = at(u64::MAX);
        let granted = gate.try_acquire_n(3).expect("a fresh day");
        assert_eq!(granted.reset_after(), Duration::ZERO);
        assert_eq!(gate.try_acquire().unwrap_err().retry_after(), None);
        assert_eq!(gate.time_until(1), None);
    }

    #[test]
    fn a_day_without_permits_grants_none() {
        let gate = Limiter::with_clock(Daily::new(0), ManualClock::new());
        assert!(gate.try_acquire().unwrap_err().is_permanent());
        assert_eq!(gate.try_acquire_n(0).map(|granted| granted.n()), Ok(0));
    }
}
