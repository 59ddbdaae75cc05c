//! An algorithm of one's own: so many permits a day, the count forgotten at midnight, and a
//! limiter that runs it. The word is `[day: 32 bits | taken: 32 bits]`.

use std::time::Duration;

use tollgate::{Algorithm, Denied, Granted, Limiter, ManualClock, Tick};

const DAY_NS: u64 = 86_400_000_000_000;

/// At most `limit` permits each day.
#[derive(Debug)]
struct Daily {
    limit: u32,
}

impl Daily {
    /// The day that counts, and what was taken in it: a caller from yesterday is counted today.
    fn read(&self, word: u64, now: Tick) -> (u64, u64) {
        let (day, taken) = (word >> 32, word & u64::from(u32::MAX));
        let today = now.as_nanos() / DAY_NS;
        if today > day {
            (today, 0)
        } else {
            (day, taken)
        }
    }
}

impl Algorithm for Daily {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        let limit = u64::from(self.limit);
        if n > limit {
            return Err(Denied::never(n, limit));
        }
        let (day, taken) = self.read(word, now);
        let midnight = Tick::from_nanos((day + 1) * DAY_NS);
        if taken + n > limit {
            return Err(Denied::later(n, midnight.saturating_since(now)));
        }
        let room = limit - taken - n;
        let granted = Granted::new(n, now.max(Tick::from_nanos(day * DAY_NS)));
        let granted = granted
            .with_room(room, std::num::NonZeroU64::MIN)
            .with_reset_at(midnight);
        Ok(((day << 32) | (taken + n), granted))
    }

    fn available(&self, word: u64, now: Tick) -> u64 {
        u64::from(self.limit) - self.read(word, now).1
    }

    fn is_idle(&self, word: u64, now: Tick) -> bool {
        self.read(word, now).1 == 0
    }
}

fn main() -> Result<(), Denied> {
    let clock = ManualClock::at(Tick::from_nanos(DAY_NS - 1));
    let gate = Limiter::with_clock(Daily { limit: 3 }, clock.clone());
    let granted = gate.try_acquire_n(2)?;
    println!("{} left today", granted.remaining());
    println!("{}", gate.try_acquire_n(2).unwrap_err());
    clock.advance(Duration::from_nanos(1));
    println!("{} left the next day", gate.try_acquire()?.remaining());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_its_limit_and_not_more() {
        let clock = ManualClock::at(Tick::from_nanos(DAY_NS - 1));
        let gate = Limiter::with_clock(Daily { limit: 3 }, clock.clone());
        assert_eq!(gate.take_up_to(5).n(), 3);
        let wait = gate.try_acquire().unwrap_err().retry_after();
        assert_eq!(wait, Some(Duration::from_nanos(1)));
        clock.advance(Duration::from_nanos(1));
        assert_eq!(gate.available(), 3);
        assert!(gate.try_acquire_n(4).unwrap_err().is_permanent());
    }
}
