//! Lent permits keep the bound of the whole quota at the ticks at which they are used: through
//! leases that are created, dropped and passed between threads, and beside threads without leases.

use std::mem;
use std::sync::Mutex;

use tollgate::algorithm::Lend;
use tollgate::leases::Lease;

use super::stopping::Stopping;
use super::work::{START, kept};
use super::{BUCKETS, TOLERANCES, WINDOWS, all};
use crate::support::*;

type Tested = Leases<Stopping, ManualClock>;

/// Leases that threads pass to each other.
type Shelf<'g> = Mutex<Vec<Lease<&'g Tested>>>;

/// Takes `n` by a lease and records when. Permits that the lease held may count at any tick at
/// which it held them: before this call, or after it, since a lease holds everything that it draws
/// first. If `n` is more than the lease can hold, the rest comes from the limiter at a tick that is
/// not reported. That tick is known only if the clock stands still.
fn take(limiter: &Tested, lease: &mut Lease<&Tested>, n: u64) -> Option<Tick> {
    let (held, before) = (lease.held(), limiter.now());
    lease.try_acquire_n(n).ok()?;
    let after = limiter.now();
    assert!(lease.held() <= lease.size());
    match (n <= held, n <= lease.size()) {
        (true, _) => Some(before),
        (false, true) => Some(after),
        (false, false) => (before == after).then_some(after),
    }
}

/// The work of one thread. It takes permits with or without its lease, and creates leases, drops
/// them, leaves them on the shelf and picks up others. Without a lease its ticks are up to `skew`
/// nanoseconds behind or ahead of the clock.
fn work<'g>(
    limiter: &'g Tested,
    shelf: &Shelf<'g>,
    turns: u64,
    (behind, ahead): (u64, u64),
    random: &mut Random,
) -> Log {
    let mut log = Log::with_capacity(turns as usize);
    let put = |lease| shelf.lock().expect("no panic").push(lease);
    let find = || shelf.lock().expect("no panic").pop();
    let mut lease = limiter.lease(random.below(limiter.max_lent() + 1));
    for _ in 0..turns {
        let clock = limiter.limiter().clock();
        clock.advance(Duration::from_nanos(random.below(4)));
        let n = random.below(5);
        match random.below(64) {
            0 => lease = limiter.lease(random.below(limiter.max_lent() + 1)),
            1 => drop(lease.give_back()),
            2 => put(mem::replace(&mut lease, limiter.lease(2))),
            3 => lease = find().unwrap_or_else(|| limiter.lease(1)),
            4..=24 => {
                let now = limiter.now().as_nanos() + random.below(behind + ahead + 1);
                let now = tick(now.saturating_sub(behind));
                if let Ok(granted) = limiter.limiter().at(now).try_acquire_n(n) {
                    log.granted(&granted);
                }
            }
            _ => {
                if let Some(used) = take(limiter, &mut lease, n) {
                    log.grant(used, n);
                }
            }
        }
        assert!(limiter.lent() <= limiter.max_lent());
    }
    log
}

/// For buckets, some threads without a lease are ahead of the clock. For windows none is: leases
/// draw from a window that is ahead of the clock, and would use its permits before it begins.
#[test]
fn leases_keep_the_bound_of_the_whole() {
    /// The number of threads, and how many tenths are lent.
    const SHAPES: [(u64, u64); 3] = [(2, 9), (5, 5), (16, 3)];
    deadline("threads with leases", || {
        let tolerances = TOLERANCES.map(algorithm);
        let buckets = all(&BUCKETS)
            .chain([tolerances])
            .map(|buckets| (buckets, 100));
        let cases = buckets.chain(all(&WINDOWS).map(|windows| (windows, 0)));
        let cases = cases.flat_map(|(algorithms, ahead)| algorithms.map(|one| (one, ahead)));
        for (algorithm, ahead) in cases.filter(|(algorithm, _)| algorithm.most_lent() > 0) {
            for (threads, tenths) in SHAPES {
                let total = (algorithm.most_lent() * tenths / 10).max(1);
                let clock = ManualClock::at(START);
                let limiter =
                    Leases::with_clock(Stopping(algorithm), total, clock).expect("it lends");
                let (shelf, turns) = (Shelf::default(), scaled(60, 3000, 24_000) / threads);
                let logs = on_threads(0..threads, |id| {
                    let skew = (100 * id, ahead * id);
                    work(&limiter, &shelf, turns, skew, &mut Random(id))
                });
                drop(shelf);
                let history = logs.into_iter().collect();
                let of = format!("{total} of {algorithm} for {threads}");
                let summary = kept(&history, &algorithm.bound(), &of);
                assert!(summary.granted > 0, "{of}");
                assert_eq!(limiter.lent(), 0, "all were dropped");
            }
        }
    });
}
