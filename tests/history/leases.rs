//! Permits that are lent keep the bound of the whole quota, at the ticks at which they are used: through
//! leases that are made and dropped, handed from thread to thread, and beside threads that use none.

use std::fmt::Debug;
use std::mem;
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

use tollgate::history::{Bounded, History, Log};
use tollgate::{
    AnyAlgorithm, FixedWindow, Gcra, Intervals, LeakyBucket, Lease, Leases, Lend, ManualClock,
    Quota, SlidingWindow, Tick, TokenBucket,
};

use crate::verbs::Stopping;
use crate::work::{Random, START, kept};

type Gate<A> = Leases<Stopping<A>, ManualClock>;

/// Where threads leave leases for each other.
type Shelf<'g, A> = Mutex<Vec<Lease<&'g Gate<A>>>>;

fn put<'g, A: Lend>(shelf: &Shelf<'g, A>, lease: Lease<&'g Gate<A>>) {
    shelf.lock().expect("nobody panicked").push(lease);
}

fn find<'g, A: Lend>(shelf: &Shelf<'g, A>) -> Option<Lease<&'g Gate<A>>> {
    shelf.lock().expect("nobody panicked").pop()
}

/// Takes `n` by a lease, and says when. What it held may count at any tick at which it was held: before it was
/// taken or, since all that a lease draws is held first, afterwards. What is more than it can hold comes from
/// the limiter at a tick that is not told, and is known only if the clock stands.
fn take<A: Lend>(gate: &Gate<A>, lease: &mut Lease<&Gate<A>>, n: u64) -> Option<Tick> {
    let (held, before) = (lease.held(), gate.now());
    lease.try_acquire_n(n).ok()?;
    let after = gate.now();
    assert!(lease.held() <= lease.size());
    match (n <= held, n <= lease.size()) {
        (true, _) => Some(before),
        (false, true) => Some(after),
        (false, false) => (before == after).then_some(after),
    }
}

/// What a thread does: it takes permits by its lease or without one, makes leases, drops them, leaves them
/// on the shelf and finds others there. Without a lease its ticks are up to so many nanoseconds behind or
/// ahead of the clock.
fn work<'g, A: Lend>(
    gate: &'g Gate<A>,
    shelf: &Shelf<'g, A>,
    turns: u64,
    (behind, ahead): (u64, u64),
    random: &mut Random,
) -> Log {
    let mut log = Log::with_capacity(turns as usize);
    let mut lease = gate.lease(random.below(gate.total() + 1));
    for _ in 0..turns {
        let clock = gate.limiter().clock();
        clock.advance(Duration::from_nanos(random.below(4)));
        let n = random.below(5);
        match random.below(64) {
            0 => lease = gate.lease(random.below(gate.total() + 1)),
            1 => drop(lease.give_back()),
            2 => put(shelf, mem::replace(&mut lease, gate.lease(2))),
            3 => lease = find(shelf).unwrap_or_else(|| gate.lease(1)),
            4..=24 => {
                let now = gate.now().as_nanos() + random.below(behind + ahead + 1);
                let now = Tick::from_nanos(now.saturating_sub(behind));
                if let Ok(granted) = gate.limiter().at(now).try_acquire_n(n) {
                    log.granted(&granted);
                }
            }
            _ => {
                if let Some(used) = take(gate, &mut lease, n) {
                    log.grant(used, n);
                }
            }
        }
        assert!(gate.lent() <= gate.total());
    }
    log
}

/// What so many threads saw, the later ones with more skew.
fn record<A: Lend + Send + Sync>(gate: &Gate<A>, threads: u64, ahead: u64) -> History {
    let turns = 24_000 / threads;
    let (shelf, start) = (Mutex::new(Vec::new()), Barrier::new(threads as usize));
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|id| {
                let (shelf, start) = (&shelf, &start);
                scope.spawn(move || {
                    start.wait();
                    let skew = (100 * id, ahead * id);
                    work(gate, shelf, turns, skew, &mut Random(id))
                })
            })
            .collect();
        let logs = workers.into_iter().map(|worker| worker.join());
        logs.map(|log| log.expect("a worker panicked")).collect()
    })
}

/// How many threads, and how much of ten parts is lent.
const SHAPES: [(u64, u64); 3] = [(2, 9), (5, 5), (16, 3)];

/// Buckets, also where some are ahead of the clock.
fn keeps<A>(algorithms: [A; 4])
where
    A: Bounded + Lend + Copy + Debug + Send + Sync,
{
    keeps_with(algorithms, 100);
}

/// Windows, where nobody is ahead of the clock that leases draw by: what they draw of a window that others are
/// in already would be used before it.
fn windows_keep<A>(algorithms: [A; 4])
where
    A: Bounded + Lend + Copy + Debug + Send + Sync,
{
    keeps_with(algorithms, 0);
}

fn keeps_with<A>(algorithms: [A; 4], ahead: u64)
where
    A: Bounded + Lend + Copy + Debug + Send + Sync,
{
    for algorithm in algorithms {
        for (threads, tenths) in SHAPES {
            let total = (algorithm.most_lent() * tenths / 10).max(1);
            let clock = ManualClock::at(START);
            let gate = Leases::with_clock(Stopping(algorithm), total, clock).expect("it lends");
            let all = record(&gate, threads, ahead);
            let summary = kept(&all, &algorithm.bound());
            assert!(summary.granted > 50, "{algorithm:?}: {summary:?}");
            assert_eq!(gate.lent(), 0, "all were dropped");
        }
    }
}

fn quotas() -> [Quota; 4] {
    [
        Quota::per(3, Duration::from_nanos(64)),
        Quota::per(40, Duration::from_nanos(1000)),
        Quota::per(100, Duration::from_nanos(4096)),
        Quota::per(1000, Duration::from_nanos(100_003)),
    ]
}

/// The same for buckets, with bursts that are no multiples.
fn bursts() -> [Quota; 4] {
    let [a, b, c, d] = quotas();
    [a, b.burst(57), c.burst(170), d.burst(1501)]
}

#[test]
fn token_bucket() {
    keeps(bursts().map(|quota| TokenBucket::new(quota).expect("a quota")));
}

#[test]
fn gcra_with_a_tolerance_that_is_no_multiple() {
    let spaced = |(interval, tolerance)| {
        let nanos = Duration::from_nanos;
        Gcra::from_interval(nanos(interval), nanos(tolerance)).expect("it fits")
    };
    keeps([(70, 333), (3, 100), (41, 1000), (100, 3456)].map(spaced));
}

#[test]
fn leaky_meter() {
    keeps(bursts().map(|quota| LeakyBucket::meter(quota).expect("a quota")));
}

#[test]
fn fixed_window() {
    windows_keep(quotas().map(|quota| FixedWindow::new(quota).expect("a quota")));
}

#[test]
fn fixed_window_opened_by_the_first_hit() {
    windows_keep(quotas().map(|quota| {
        let windows = FixedWindow::new(quota).expect("a quota");
        windows.opened_by_first_hit().expect("it fits")
    }));
}

#[test]
fn sliding_window() {
    windows_keep(quotas().map(|quota| SlidingWindow::new(quota).expect("a quota")));
}

#[test]
fn intervals() {
    keeps(bursts().map(|quota| Intervals::new(quota).expect("a quota")));
}

#[test]
fn intervals_greedy() {
    windows_keep(bursts().map(|quota| {
        let intervals = Intervals::new(quota).expect("a quota");
        intervals.greedy().expect("it fits")
    }));
}

#[test]
fn any_algorithm() {
    let [a, b, c, d] = quotas();
    windows_keep([
        FixedWindow::new(a).expect("a quota").into(),
        LeakyBucket::meter(b).expect("a quota").into(),
        Intervals::new(c).expect("a quota").into(),
        AnyAlgorithm::from(SlidingWindow::new(d).expect("a quota")),
    ]);
}
