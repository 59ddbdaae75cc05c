//! Threads that move a window from slot to slot, or claim entries of a log, without a pause. The
//! system preempts each of them now and then between two steps of a decision. The others finish
//! what it began, and go on for many slots or laps before it continues.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::*;

const THREADS: u64 = scaled(2, 4, 4);

const SLOT: Duration = Duration::from_millis(1);

/// The number of slots that the threads go through.
const SLOTS: u64 = scaled(40, 500_000, 2_000_000);

fn start_of(slot: u64) -> Tick {
    tick(slot * SLOT.as_nanos() as u64)
}

/// Takes each permit as soon as it is available, up to the last slot. Returns the slots in which
/// the permits were counted.
fn roll_over(limiter: &SlottedWindow<NoClock>, mut now: Tick) -> Vec<u64> {
    let mut taken = Vec::new();
    while now < start_of(SLOTS) {
        let wait = match limiter.at(now).try_acquire() {
            Ok(granted) => {
                taken.push(granted.mark());
                now = start_of(granted.mark() + 1);
                continue;
            }
            Err(denied) => denied.retry_after(),
        };
        now = now.saturating_add(wait.expect("it comes with a later slot"));
    }
    taken
}

/// A full window has one permit in each slot, so each new slot has exactly one permit for the
/// threads. A thread that is preempted before it records a slot may continue when its place in the
/// ring already holds a later slot's count. It must leave that count unchanged. Otherwise its
/// permit is counted for too long, and a later slot has no permit.
#[test]
fn a_count_recorded_late_changes_no_later_one() {
    deadline("threads that roll over", || {
        for slots in [2, 3, 4, 7] {
            let quota = Quota::per(slots, slots as u32 * SLOT);
            let limiter = SlottedWindow::with_clock(quota, slots as usize, NoClock).expect("slots");
            let mut taken = vec![0; SLOTS as usize];
            for slot in 0..slots {
                assert!(limiter.at(start_of(slot)).try_acquire().is_ok());
                taken[slot as usize] = 1;
            }
            for slot in on_threads(0..THREADS, |_| roll_over(&limiter, start_of(slots))).concat() {
                taken[slot as usize] += 1;
            }
            let wrong = taken.iter().position(|taken| *taken != 1);
            assert_eq!(wrong.map(|slot| (slot, taken[slot])), None, "{slots} slots");
        }
    });
}

const PERIOD: u64 = 10;

fn log(limit: u64) -> SlidingLog<NoClock> {
    let quota = Quota::per(limit, Duration::from_nanos(PERIOD));
    SlidingLog::with_clock(quota, NoClock).expect("a log")
}

/// One thread claims the whole log whenever it has expired. The others, whose clocks are far
/// behind, read the log and enter a claim that they find before its owner has entered it. The claim
/// still counts at the tick at which the permits were free, and not before.
#[test]
fn a_claim_entered_by_another_thread_counts_no_earlier_than_its_permits_expire() {
    const CLAIMS: u64 = scaled(30, 300_000, 2_000_000);
    deadline("a thread that claims, and one that looks", || {
        for limit in [1, 2, 3] {
            let (log, is_done) = (log(limit), AtomicU64::new(0));
            let first = log.at(tick(PERIOD)).try_acquire_n(limit);
            assert!(first.is_ok());
            let told = on_threads(0..THREADS, |id| {
                if id == 0 {
                    let due = (2..2 + CLAIMS).map(|period| tick(period * PERIOD));
                    let taken = |due| {
                        let granted = log.at(due).try_acquire_n(limit);
                        granted.is_ok_and(|granted| granted.at() == due)
                    };
                    let wrong = due.filter(|due| !taken(*due)).count();
                    // ORDERING: Relaxed. It publishes nothing.
                    is_done.swap(1, Ordering::Relaxed);
                    return wrong;
                }
                let mut wrong = 0;
                while is_done.load(Ordering::Relaxed) == 0 {
                    wrong += usize::from(log.at(Tick::ZERO).available() > 0);
                }
                wrong
            });
            assert!(
                told.iter().all(|wrong| *wrong == 0),
                "claims or looks of {limit}: {told:?}"
            );
        }
    });
}

/// All threads claim. Another thread may enter a claim, and its entry may be claimed again, before
/// the owner reads the tick of its claim. By the ticks that the owners get, no period has more than
/// `limit` permits.
#[test]
fn threads_that_overtake_each_other_get_ticks_within_the_bound() {
    const CLAIMS: u64 = scaled(20, 200_000, 300_000);
    deadline("threads that claim", || {
        for limit in [1, 2, 3] {
            let log = log(limit);
            let ticks = on_threads(0..THREADS, |id| {
                let mut now = Tick::ZERO;
                let mut ticks = Vec::new();
                for turn in 0..CLAIMS {
                    let n = 1 + (turn + id) % limit;
                    match log.at(now).try_acquire_n(n) {
                        Ok(granted) => {
                            ticks.extend((0..n).map(|_| granted.at().as_nanos()));
                            now = granted.at();
                        }
                        Err(denied) => {
                            let wait = denied.retry_after().expect("it comes");
                            now = now.saturating_add(wait);
                        }
                    }
                }
                ticks
            });
            let mut ticks = ticks.concat();
            ticks.sort_unstable();
            for all in ticks.windows(1 + limit as usize) {
                let apart = all[limit as usize] - all[0];
                assert!(apart >= PERIOD, "{limit}: {all:?}");
            }
        }
    });
}
