//! The compared limiters, each with the system clock and at a given tick.

use std::time::Duration;

use tollgate::clock::{NoClock, SystemClock};
use tollgate::error::LimiterError;
use tollgate::{Counted, Limiter, Quota, Sharded, TokenBucket};
use tollgate_versus::peers::Governor;
use tollgate_versus::{
    Ask, AskAt, DAY, Late, SHORT, SLOTS, START, full_log, slots, taken_slots, wide_slots,
};

use super::asked::Asked;
use super::contestants::bucket::bucket;
use super::contestants::{Source, entries};
use super::timing::{Aligned, Contestant, Kind, Runner};
use super::told::AskedAt;

pub(crate) type Named = (&'static str, Box<dyn Runner>);

/// The number of threads that decide at once.
const SHARDS: usize = 2;

/// Returns the floor, the single word, the mutexes, governor, and the multiword limiters.
pub(crate) fn all(kind: Kind, threads: usize) -> Result<Vec<Named>, LimiterError> {
    let mut all: Vec<Named> = Vec::new();
    for entry in entries(kind)? {
        let is_wanted = match entry.name {
            // A lease rarely reads a clock.
            "lease_coarse" => true,
            // Added below in the state of a service that has run for longer than a window.
            "slots_system" | "slots_tick" | "log_system" | "log_tick" => false,
            _ => entry.source != Source::Coarse,
        };
        if is_wanted {
            all.push((entry.name, entry.runner));
        }
    }
    let governor = Asked::checked(kind, Governor::system);
    let governor = governor.expect("governor decides correctly");
    all.push(("governor_system", shared(governor)));
    windows(&mut all, kind, threads);
    counted(&mut all, kind)?;
    Ok(all)
}

fn windows(all: &mut Vec<Named>, kind: Kind, threads: usize) {
    match kind {
        Kind::Allowed => {
            let limiter = slots(wide_slots(), Late);
            all.push(("slots_system", asked(limiter, kind)));
            let limiter = slots(wide_slots(), NoClock);
            all.push(("slots_tick", told(limiter, kind)));
            let limiter = full_log(SHORT, Late);
            all.push(("log_system", asked(limiter, kind)));
            if threads == 1 {
                on_one_thread(all, kind);
            }
        }
        Kind::Denied => {
            all.push(("slots_system", asked(taken_slots(Late), kind)));
            all.push(("slots_tick", told(taken_slots(NoClock), kind)));
            // All of a window's permits were taken in its last slot.
            let quota = Quota::per(SLOTS, DAY);
            all.push(("slots_burst_system", asked(slots(quota, Late), kind)));
            all.push(("slots_burst_tick", told(slots(quota, NoClock), kind)));
            all.push(("log_system", asked(full_log(DAY, Late), kind)));
            all.push(("log_tick", told(full_log(DAY, NoClock), kind)));
        }
    }
}

/// Adds contestants that only work on one thread. Of two threads that count their own ticks, the
/// one that is behind would be denied.
fn on_one_thread(all: &mut Vec<Named>, kind: Kind) {
    all.push(("log_tick", told(full_log(SHORT, NoClock), kind)));
    // Slots of a microsecond, so that a series of decisions passes through many.
    let rolling = || slots(Quota::per(4000, Duration::from_micros(SLOTS)), NoClock);
    let limiter = AskedAt::<_, 62>::new(rolling(), kind);
    all.push(("slots_roll_16th_tick", shared(limiter)));
    let limiter = AskedAt::<_, 1000>::new(rolling(), kind);
    all.push(("slots_roll_each_tick", shared(limiter)));
}

fn counted(all: &mut Vec<Named>, kind: Kind) -> Result<(), LimiterError> {
    let limiter = Limiter::with_clock(bucket(kind)?, SystemClock);
    all.push(("counted_system", asked(Counted::new(limiter), kind)));
    let limiter = Limiter::unstarted(bucket(kind)?, NoClock);
    all.push(("counted_tick", told(Counted::new(limiter), kind)));
    let bucket = match kind {
        Kind::Allowed => bucket(kind)?,
        Kind::Denied => TokenBucket::new(Quota::per_day(SHARDS as u64))?,
    };
    let limiter = Sharded::starting_at(bucket, SHARDS, NoClock, START)?;
    all.push(("counted_sharded_tick", told(Counted::new(limiter), kind)));
    Ok(())
}

fn asked<G: Ask + 'static>(limiter: G, kind: Kind) -> Box<dyn Runner> {
    shared(Asked::new(limiter, kind))
}

fn told<G: AskAt + 'static>(limiter: G, kind: Kind) -> Box<dyn Runner> {
    shared(AskedAt::<G>::new(limiter, kind))
}

fn shared<C: Contestant + 'static>(contestant: C) -> Box<dyn Runner> {
    Box::new(Aligned(contestant))
}
