//! Threads that reserve, cancel and settle. Every reserved permit was used, came back or was
//! declared lost, and the used ones keep the bound at the ticks at which they were due.

use tollgate_audit::{Audit, Bounded, Log};

use crate::support::*;

#[derive(Default)]
struct Sums {
    reserved: u64,
    used: u64,
    returned: u64,
    lost: u64,
}

/// Runs one thread's work. All threads are at the same tick, so none uses what it cancels.
fn work(limiter: &Bucket, seed: u64) -> (Log, Sums) {
    let (mut log, mut sums, mut random) = (Log::new(), Sums::default(), Random(seed));
    let mut held = Vec::new();
    for _ in 0..400 {
        let n = 1 + random.below(limiter.quota().burst_size());
        if let Ok(reservation) = limiter.reserve_within(n, Duration::from_millis(50)) {
            sums.reserved += n;
            held.push(reservation);
        }
        if held.is_empty() || random.one_in(2) {
            continue;
        }
        let one = held.swap_remove(random.below(held.len() as u64) as usize);
        if one.is_due() {
            // The permit may have been used by now.
            sums.used += one.n();
            log.granted(&one.into_granted().when_due());
        } else {
            let cancelled = one.cancel();
            sums.returned += cancelled.returned;
            sums.lost += cancelled.lost;
        }
    }
    for one in held {
        sums.used += one.n();
        log.granted(&one.into_granted().when_due());
    }
    (log, sums)
}

#[test]
fn every_reserved_permit_is_accounted_for_and_the_bound_holds() {
    for (threads, rate, burst) in [(2, 10_000, 7), (8, 7_777, 1), (8, 700, 3)] {
        let (clock, limiter) = bucket(Quota::per_second(rate).burst(burst));
        let (mut logs, mut all) = (Vec::new(), Sums::default());
        for round in 0..10 {
            for (log, sums) in on_threads(0..threads, |id| work(&limiter, round * 64 + id)) {
                logs.push(log);
                all.reserved += sums.reserved;
                all.used += sums.used;
                all.returned += sums.returned;
                all.lost += sums.lost;
            }
            clock.advance(Duration::from_micros(7_321));
        }
        assert_eq!(all.used + all.returned + all.lost, all.reserved);
        assert!(all.used > 0 && all.returned > 0 && all.lost > 0);
        let history: Audit = logs.into_iter().collect();
        let bound = limiter.algorithm().bound();
        let summary = history.check(&bound).expect("the bound");
        assert_eq!(summary.granted, all.used.into());
    }
}
