//! Threads whose requests take from several limits at once: compositions of two, four, five and
//! eleven limits of all kinds, in orders that differ.

mod limits;
mod recorded;
mod work;

use std::ops::AddAssign;

use self::limits::{
    ADJUSTABLE, Compositions, FIXED, INSIDE, LOG, Limits, N, POOL, SHARDED, SHARE, SLIDING,
    SLOTTED, TEXTS, bound, records,
};
use self::recorded::Record;
use self::work::{Caller, Mix};
use super::work::kept;
use crate::support::*;

const THREADS: usize = 4;
const SHARDS: i64 = 3;

/// Each round has fresh limits. In a release build, each test makes about five million turns. Each
/// turn makes a request, or undoes, settles or keeps a grant, or charges.
const ROUNDS: u64 = scaled(1, 2, 100);
/// How many turns a thread makes in a round.
const TURNS: u64 = scaled(20, 3_000, 13_000);
/// How many turns a thread makes while the clock stands still.
const TURNS_A_PHASE: u64 = scaled(10, 150, 150);

/// What all threads did.
#[derive(Debug, Default, Clone, Copy)]
struct Totals {
    granted: u64,
    denied: u64,
    undone: u64,
    /// Grants of a member that were rolled back because another member denied after all.
    rolled_back: u64,
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.granted += other.granted;
        self.denied += other.denied;
        self.undone += other.undone;
        self.rolled_back += other.rolled_back;
    }
}

/// What all threads took of a limit up to now.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Sums {
    /// Taken or charged.
    taken: u64,
    back: u64,
    lost: u64,
    late: u64,
}

fn sums(records: &[[Record; N]], limit: usize) -> Sums {
    let mut sums = Sums::default();
    for record in records {
        let counts = record[limit].counts();
        sums.taken += counts.taken + counts.charged;
        sums.back += counts.back;
        sums.lost += counts.lost;
        sums.late += counts.late;
    }
    sums
}

/// Checks the end of a round, when no grant is held: each limit counted what the callers were told,
/// and no more, and kept its bound. Returns what the threads did.
fn finish(limits: &Limits, records: &[[Record; N]], callers: Vec<Caller<'_>>) -> Totals {
    let mut totals = Totals::default();
    let mut told = [0; N + 1];
    for caller in callers {
        totals += caller.told.totals;
        for (sum, kept) in told.iter_mut().zip(caller.told.kept) {
            *sum += kept;
        }
    }
    for limit in 0..N {
        let sums = sums(records, limit);
        let counted = sums.taken - sums.back - sums.lost;
        if limit == SHARE {
            // The callers don't know which of the two granted.
            told[POOL] += told[SHARE] - counted;
        } else {
            let of = TEXTS[limit];
            assert_eq!(counted, told[limit], "{of}: not what the callers kept");
        }
        let logs = records.iter().map(|record| {
            let mut counts = record[limit].counts();
            totals.rolled_back += counts.rolled_back;
            std::mem::take(&mut counts.log)
        });
        let audit: Audit = logs.collect();
        kept(&audit, &bound(limit), TEXTS[limit]);
    }
    assert_eq!(limits.inside.inside(), 0);
    assert!(limits.inside.peak() <= INSIDE);
    totals
}

/// The compositions of each thread.
fn of_each_thread<'r>(limits: &'r Limits, records: &'r [[Record; N]]) -> Vec<Compositions<'r>> {
    let all = records.iter().map(|one| Compositions::new(limits, one));
    all.collect()
}

/// The threads of a round.
fn callers<'c>(all: &'c [Compositions<'c>], round: u64) -> Vec<Caller<'c>> {
    let callers = all.iter().enumerate().map(|(id, all)| {
        let random = Random(round * THREADS as u64 + id as u64);
        Caller::new(id, all, random)
    });
    callers.collect()
}

/// Runs threads on compositions, and checks that they did enough.
fn are_busy(run: impl FnOnce() -> Totals + Send + 'static) {
    deadline("threads on compositions", || {
        let totals = run();
        println!("{totals:?}");
        assert!(totals.granted > ROUNDS && totals.denied > ROUNDS && totals.undone > ROUNDS);
    });
}

/// The clock moves in every turn, and one member's quota changes. Each limit keeps its bound over
/// every interval, for what it granted less what came back.
#[test]
fn composed_requests_keep_the_bound_of_every_member() {
    are_busy(|| {
        let mix = Mix {
            step: 4,
            changes: true,
            charges: true,
            keeps_one_in: 16,
        };
        let mut totals = Totals::default();
        for round in 0..ROUNDS {
            let limits = Limits::new();
            let records = [(); THREADS].map(|()| records());
            let all = of_each_thread(&limits, &records);
            let callers = on_threads(callers(&all, round), |mut caller| {
                caller.work(&limits, mix, TURNS);
                caller.end(mix);
                caller
            });
            totals += finish(&limits, &records, callers);
        }
        totals
    });
}

/// By how much a limit's balance may grow when the clock moves from one tick to another: the least
/// and the most.
fn refill(limit: usize, before: i64, from: u64, to: u64) -> (i64, i64) {
    let dt = (to - from) as i64;
    let full = |n: i64| (before + n).min(40) - before;
    let all = 40 - before;
    match limit {
        FIXED if from / 500 == to / 500 => (0, 0),
        FIXED => (all, all),
        SLIDING | SLOTTED if dt >= 2_000 => (all, all),
        SLIDING | SLOTTED => (0, all),
        // The slower of its two quotas may be in force, and the smaller burst.
        ADJUSTABLE => (0, full(dt / 20)),
        // One shard may be full while another is empty, and each rounds its permits.
        SHARDED => (0, full(dt * 3 / 64 + SHARDS)),
        _ => (full(dt / 20), full(dt / 20)),
    }
}

/// Runs phases in which the clock stands still. At the end of each, what each limit has is compared
/// with a model: what it had before, plus the refill, less what was taken, plus what came back.
fn phases(mix: Mix, holds_grants_over: bool) -> Totals {
    let mut totals = Totals::default();
    for round in 0..ROUNDS {
        let limits = Limits::new();
        let records = [(); THREADS].map(|()| records());
        let all = of_each_thread(&limits, &records);
        let mut callers = callers(&all, round);
        let mut random = Random(round);
        let clock = limits.clock();
        let (mut begun, mut changed) = ([Sums::default(); LOG], 0);
        let mut had = limits.balances();
        for phase in 0..TURNS / TURNS_A_PHASE {
            let is_last = phase + 1 == TURNS / TURNS_A_PHASE;
            // Whole permits of most buckets, so that the model needs no fractions.
            let longest = [3, 40, 150][random.below(3) as usize];
            let from = clock.now();
            clock.advance(Duration::from_nanos(20 * random.below(longest)));
            let refilled = limits.balances();
            for limit in 0..LOG {
                let more = refilled[limit] - had[limit];
                let (from, to) = (from.as_nanos(), clock.now().as_nanos());
                let (least, most) = refill(limit, had[limit], from, to);
                let of = TEXTS[limit];
                assert!(
                    (least..=most).contains(&more),
                    "{of}: had {}, then {more} more from {from} to {to}",
                    had[limit]
                );
            }
            callers = on_threads(callers, |mut caller| {
                caller.work(&limits, mix, TURNS_A_PHASE);
                if is_last || !holds_grants_over {
                    caller.end(mix);
                }
                caller
            });
            had = limits.balances();
            let changes: u64 = callers.iter().map(|caller| caller.told.changes).sum();
            for limit in 0..LOG {
                let of = TEXTS[limit];
                let (was, now) = (begun[limit], sums(&records, limit));
                begun[limit] = now;
                let taken = (now.taken - was.taken) as i64 - (now.back - was.back) as i64;
                let lost = refilled[limit] - taken - had[limit];
                let what = || {
                    format!(
                        "{of} ({limit}): had {}, then {taken} taken, and has {}; {was:?} {now:?}",
                        refilled[limit], had[limit]
                    )
                };
                // A shard in debt rounds what it has down.
                let made = i64::from(limit == SHARDED && mix.charges) * SHARDS;
                assert!(lost >= -made, "permits were made: {}", what());
                // Less came back than was said, because what comes back later is rounded up.
                let rounded = (now.late - was.late) as i64;
                let most = match limit {
                    // A permit that was put together from several shards may come back in part.
                    SHARDED => i64::MAX,
                    // A change to the smaller burst drops 10 permits, and each change a fraction.
                    ADJUSTABLE => rounded + 11 * (changes - changed) as i64,
                    SLIDING => rounded,
                    _ => 0,
                };
                assert!(lost <= most, "permits were lost: {}", what());
                if !holds_grants_over && !mix.charges && limit != SHARDED {
                    assert_eq!(now.lost, was.lost, "{of}: not all came back");
                }
            }
            changed = changes;
        }
        totals += finish(&limits, &records, callers);
    }
    totals
}

/// No quota changes, and no member goes into debt.
const STILL: Mix = Mix {
    step: 1,
    changes: false,
    charges: false,
    keeps_one_in: 64,
};

/// While the clock stands still and no quota changes, each limit counts exactly the grants that
/// were kept.
#[test]
fn at_the_end_each_member_counts_what_was_kept() {
    are_busy(|| phases(STILL, false));
}

/// Grants are undone and settled after the clock has moved and the quota has changed, and members
/// go into debt. Each limit counts what it says that it took, less what it says that came back.
#[test]
fn what_does_not_come_back_is_said() {
    let mix = Mix {
        changes: true,
        charges: true,
        ..STILL
    };
    are_busy(move || phases(mix, true));
}
