//! Checks the bound over every interval: [`Daily`] grants permits to real threads whose ticks
//! differ.

use std::thread;
use std::time::Duration;

use tollgate::clock::NoClock;
use tollgate::{Limiter, Quota, Tick};
use tollgate_audit::{Audit, Bound, Excess, Log, Summary};

use crate::daily::{DAY_NS, Daily};

const LIMIT: u32 = 100;

/// Returns the bound: up to twice the limit around a midnight, and then one limit a day.
fn bound(limit: u32) -> Bound {
    let quota = Quota::per_day(limit.into()).burst(2 * u64::from(limit));
    Bound::of_quota(quota).expect("a quota")
}

pub(crate) fn checked() -> Result<(), Excess> {
    let Summary { granted, ticks, .. } = recorded().check(&bound(LIMIT))?;
    println!("{granted} permits at {ticks} ticks kept the bound over every interval");
    Ok(())
}

/// Records the grants of four threads whose ticks are an hour apart, over ten days.
fn recorded() -> Audit {
    let limiter = &Limiter::unstarted(Daily::new(LIMIT), NoClock);
    thread::scope(|scope| {
        let threads = (0..4).map(|thread| scope.spawn(move || log(limiter, thread)));
        // Collect first, so that all threads start before the first is joined.
        let threads: Vec<_> = threads.collect();
        let logs = threads.into_iter().map(|thread| thread.join());
        logs.map(|log| log.expect("no panic")).collect()
    })
}

fn log(limiter: &Limiter<Daily, NoClock>, thread: u64) -> Log {
    let hour = Duration::from_nanos(DAY_NS / 24);
    let mut log = Log::new();
    let mut now = Tick::ZERO.saturating_add(hour * thread as u32);
    while now.as_nanos() < 10 * DAY_NS {
        if let Ok(granted) = limiter.at(now).try_acquire_n(1 + thread) {
            log.granted(&granted);
        }
        now = now.saturating_add(hour / 60);
    }
    log
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn daily_keeps_its_bound() {
        let summary = recorded().check(&bound(LIMIT)).expect("the bound");
        // Each thread asks for up to four permits, so up to three a day may be left.
        assert!(summary.granted > 10 * u128::from(LIMIT - 4), "{summary:?}");
    }

    #[test]
    fn a_smaller_bound_is_violated() {
        assert!(recorded().check(&bound(LIMIT / 2)).is_err());
    }
}
