//! The same operations on the core's windows, which decide in memory.
//!
//! The decisions are the same in whole microseconds, at all numbers that both accept, with these
//! differences:
//!
//! - A first hit begins a window of the core at the next multiple of its quantum, so that it ends
//!   up to a quantum later. Where a microsecond is such a multiple, nothing differs.
//! - The core can count less debt.
//! - The core knows other limits (at least a permit in 365 days, counts that fit its word).
//! - After 50 years the core's clock goes on to the end of a window.
//! - A ban ends at its tick, and only then can permits be given back. In the core, a banned window
//!   is banned until it ends.
//! - A changed period begins when the current window ends. The core carries the permits over to a
//!   window of the new period.

use std::time::Duration;

use tollgate::algorithm::{Debt, GiveBack};
use tollgate::error::QuotaError;
use tollgate::{FixedWindow, Limiter, ManualClock, Quota, SlidingWindow, Tick};

use super::against_core::{LENGTH, Pair};
use super::{Episode, OPERATIONS, Random, SOME_DAY, server};
use crate::limit::Limit;
use crate::limit::error::LimitError;
use crate::server::call::{self, Part};

/// From 1970 to 2026, where the ticks begin.
const ORIGIN: Duration = Duration::from_secs(1_767_225_600);

const MICROSECOND: Duration = Duration::from_micros(1);

#[test]
fn aligned_windows_decide_as_the_cores_do() {
    same("fixed", Limit::fixed_window, any_period, |quota| {
        Ok(FixedWindow::new(quota)?.aligned_to_unix(ORIGIN))
    });
}

#[test]
fn sliding_windows_decide_as_the_cores_do() {
    same("sliding", Limit::sliding_window, any_period, |quota| {
        Ok(SlidingWindow::new(quota)?.aligned_to_unix(ORIGIN))
    });
}

/// The quantum is the period divided by a power of two.
#[test]
fn windows_opened_by_the_first_hit_decide_as_the_cores_do_if_a_microsecond_is_whole_quanta() {
    let power = |random: &mut Random| 1 << random.below(40);
    same("first", Limit::first_hit_window, power, |quota| {
        let window = FixedWindow::new(quota)?.opened_by_first_hit()?;
        match window.quantum() <= Some(MICROSECOND) {
            true => Ok(window),
            false => Err(QuotaError::ZeroPermits),
        }
    });
}

#[test]
fn windows_of_the_core_opened_by_the_first_hit_end_at_most_a_quantum_later() {
    server::on_each_server(|connection| {
        let (mut random, mut late) = (Random(0xF1_125), 0);
        for i in 0..OPERATIONS / LENGTH {
            let period = Duration::from_micros(1_000_000 + any_period(&mut random));
            let quota = Quota::per(1 + random.any_size(1000), period);
            let core = FixedWindow::new(quota).and_then(FixedWindow::opened_by_first_hit);
            let (Ok(core), Ok(ours)) = (core, Limit::first_hit_window(quota)) else {
                continue;
            };
            let (quantum, now) = (core.quantum().expect("a quantum"), SOME_DAY as u64);
            let now = now + random.any_size(1 << 40);
            let core = Limiter::with_clock(core, ManualClock::new());
            let granted = core.at(Tick::from_nanos(now * 1000)).try_acquire();
            let cores = granted.expect("the first").reset_after();
            let name = format!("late{i}");
            let part = [Part {
                key: name.as_bytes(),
                kind: &ours.kind,
                n: 1,
            }];
            let mut episode = Episode::new();
            episode.call(&call::take(&part).expect("not never"), now.into());
            let Some((mut replies, _)) = episode.run(connection) else {
                continue;
            };
            let taken = call::taken(&part, &replies.next().expect("a reply")).expect("taken");
            assert_eq!(taken.expect("granted")[0].granted.reset_after(), period);
            assert!(period <= cores && cores <= period + quantum, "{quota}");
            late += usize::from(cores > period);
        }
        assert!(late > 0, "the operations miss what they are for");
    });
}

/// Returns up to 200 days of microseconds.
fn any_period(random: &mut Random) -> u64 {
    1 + random.any_size(1 << 44)
}

fn same<A: GiveBack + Debt>(
    name: &str,
    limit: impl Fn(Quota) -> Result<Limit, LimitError>,
    period: impl Fn(&mut Random) -> u64,
    core: impl Fn(Quota) -> Result<A, QuotaError>,
) {
    server::on_each_server(|connection| {
        let mut random = Random(0xC0_4E);
        let (mut tries, mut done) = (0, 0);
        while done < OPERATIONS / LENGTH {
            tries += 1;
            let step = period(&mut random);
            let quota = Quota::per(1 + random.any_size(1 << 40), Duration::from_micros(step));
            let (Ok(limit), Ok(core)) = (limit(quota), core(quota)) else {
                continue;
            };
            let (now, seed) = (SOME_DAY as u64 + random.any_size(1 << 47), random.next());
            let mut pair = Pair {
                name: format!("{name}{tries}"),
                step,
                kind: limit.kind,
                connection,
                now,
            };
            if let Some(same) = pair.same(core, seed) {
                assert_eq!(same, Ok(()));
                done += 1;
            }
        }
    });
}
