//! How a contestant is timed: one decision after another, on one thread or on several at once.
//!
//! What is timed is throughput. Every turn of the loop makes one decision and keeps only whether it
//! was allowed; the contestant's address is hidden from the compiler each time, so that nothing of
//! it stays in registers from one decision to the next. The same loop runs every contestant.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use tollgate::primitive::{AtomicU64, Ordering};

/// Something that decides.
pub(crate) trait Contestant: Sync {
    /// The decision of this turn of a thread: whether it was allowed.
    fn decide(&self, turn: u64) -> bool;

    /// Makes ready for a row of decisions.
    fn prepare(&self) {}
}

/// A contestant in its loop, so that a list can hold many kinds and the loop still calls none of
/// them through a pointer.
pub(crate) trait Runner: Sync {
    /// Makes `turns` decisions, the first of them turn `first`. Returns how many were allowed.
    fn run(&self, first: u64, turns: u64) -> u64;
}

/// The start of a cache line (of two, since processors fetch pairs): contestants then neither share
/// one with a neighbour nor lie across two by chance.
#[repr(align(128))]
pub(crate) struct Aligned<C>(pub(crate) C);

impl<C: Contestant> Runner for Aligned<C> {
    #[inline(never)]
    fn run(&self, first: u64, turns: u64) -> u64 {
        self.0.prepare();
        let mut allowed = 0;
        for turn in first..first + turns {
            allowed += u64::from(black_box(&self.0).decide(turn));
        }
        allowed
    }
}

/// What a contestant's decisions are to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Allowed,
    Denied,
}

impl Kind {
    pub(crate) const BOTH: [Self; 2] = [Self::Allowed, Self::Denied];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
        }
    }

    /// How many of so many decisions are to be allowed.
    const fn expected(self, turns: u64) -> u64 {
        match self {
            Self::Allowed => turns,
            Self::Denied => 0,
        }
    }

    fn verify(self, turns: u64, allowed: u64) -> Result<(), String> {
        if allowed == self.expected(turns) {
            return Ok(());
        }
        let name = self.name();
        Err(format!(
            "{allowed} of {turns} decisions were allowed, but all are to be {name}"
        ))
    }
}

/// Decisions that are made, and looked at, before any are timed.
const REHEARSAL: u64 = 1000;

/// Decisions between two looks at whether to stop.
const BATCH: u64 = 256;

/// Lets `threads` threads decide at the same time, one of them exactly `turns` times, and returns
/// what that many decisions cost a thread: the time it took, shared among all that were made.
///
/// The threads meet at a barrier, and all are deciding before the clock is read for the first time
/// and after it was read for the last.
///
/// # Errors
///
/// Says so if a decision was not of this kind, before the timing or in it.
pub(crate) fn time(
    contestant: &dyn Runner,
    kind: Kind,
    threads: usize,
    turns: u64,
) -> Result<Duration, String> {
    kind.verify(REHEARSAL, contestant.run(0, REHEARSAL))?;
    let rivals: Vec<_> = (1..threads).map(|_| Rival::default()).collect();
    let made_by_rivals = || rivals.iter().map(Rival::made).sum::<u64>();
    let barrier = Barrier::new(threads);
    thread::scope(|scope| {
        for rival in &rivals {
            scope.spawn(|| {
                barrier.wait();
                rival.run(contestant);
            });
        }
        barrier.wait();
        while rivals.iter().any(|rival| rival.made() == 0) {
            thread::yield_now();
        }

        let before = made_by_rivals();
        let start = Instant::now();
        let allowed = contestant.run(0, turns);
        let wall = start.elapsed();
        let made = turns + (made_by_rivals() - before);

        for rival in &rivals {
            rival.stop();
        }
        kind.verify(turns, allowed)?;
        Ok(wall.mul_f64(turns as f64 * threads as f64 / made as f64))
    })
}

/// A thread that decides until it is told to stop.
#[derive(Default)]
#[repr(align(128))]
struct Rival {
    made: AtomicU64,
    stopped: AtomicU64,
}

// ORDERING: Relaxed, in all of it. Counter and flag publish no other memory, and a batch more or
// less does not show among the millions.
impl Rival {
    fn run(&self, contestant: &dyn Runner) {
        while self.stopped.load(Ordering::Relaxed) == 0 {
            let made = self.made();
            contestant.run(made, BATCH);
            self.made.fetch_add(BATCH, Ordering::Relaxed);
        }
    }

    fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    fn stop(&self) {
        self.stopped.swap(1, Ordering::Relaxed);
    }
}
