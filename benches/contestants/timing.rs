//! Times a contestant: one decision after another, on one thread or on several at once.
//!
//! The figure is throughput. Every turn of the loop makes one decision and keeps only whether it
//! was allowed. The contestant's address is hidden from the compiler in each turn, so that no state
//! stays in registers between decisions. The same loop runs every contestant. For a contestant with
//! a handle for each thread ([`Handled`]) the handle's address is hidden.

#![allow(clippy::disallowed_types, reason = "no model runs a bench")]

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Barrier};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

/// A limiter that decides alike for every thread.
pub(crate) trait Contestant: Sync {
    /// Makes a thread's decision in this turn, and returns whether it was allowed.
    fn decide(&self, turn: u64) -> bool;

    /// Prepares for a series of decisions, while no thread is deciding.
    fn prepare(&self) {}
}

/// A limiter that gives each thread its own handle.
#[allow(dead_code, reason = "not every bench has such contestants")]
pub(crate) trait Handled: Sync {
    type Handle<'a>: Handle
    where
        Self: 'a;

    /// Returns the handle of one of `threads` threads.
    fn handle(&self, threads: usize) -> Self::Handle<'_>;

    /// Prepares for a series of decisions, while no thread is deciding.
    fn prepare(&self) {}
}

/// A thread's handle.
#[allow(dead_code, reason = "not every bench has such contestants")]
pub(crate) trait Handle {
    /// Makes the decision of this turn, and returns whether it was allowed.
    fn decide(&mut self, turn: u64) -> bool;
}

/// An object-safe contestant, so that a list can hold many types.
pub(crate) trait Runner: Sync {
    /// Prepares for a series of decisions, while no thread is deciding.
    fn prepare(&self);

    /// Returns the loop of one of `threads` threads.
    fn player(&self, threads: usize) -> Box<dyn Player + '_>;
}

/// A contestant in its loop. The decisions in it are not virtual calls.
pub(crate) trait Player {
    /// Makes `turns` decisions, beginning with turn `first`. Returns how many were allowed.
    fn run(&mut self, first: u64, turns: u64) -> u64;
}

/// Aligned to two cache lines, because processors fetch pairs of lines. Contestants then neither
/// share a line with a neighbor nor straddle two.
#[repr(align(128))]
pub(crate) struct Aligned<C>(pub(crate) C);

impl<C: Contestant> Runner for Aligned<C> {
    fn prepare(&self) {
        self.0.prepare();
    }

    fn player(&self, _threads: usize) -> Box<dyn Player + '_> {
        Box::new(&self.0)
    }
}

impl<C: Contestant> Player for &C {
    #[inline(never)]
    fn run(&mut self, first: u64, turns: u64) -> u64 {
        let contestant = *self;
        each(first, turns, |turn| black_box(contestant).decide(turn))
    }
}

/// A contestant with a handle for each thread, each on its own cache line.
#[allow(dead_code, reason = "not every bench has such contestants")]
pub(crate) struct PerThread<C>(pub(crate) C);

impl<C: Handled> Runner for PerThread<C> {
    fn prepare(&self) {
        self.0.prepare();
    }

    fn player(&self, threads: usize) -> Box<dyn Player + '_> {
        Box::new(Aligned(self.0.handle(threads)))
    }
}

impl<H: Handle> Player for Aligned<H> {
    #[inline(never)]
    fn run(&mut self, first: u64, turns: u64) -> u64 {
        each(first, turns, |turn| black_box(&mut self.0).decide(turn))
    }
}

#[inline(always)]
fn each(first: u64, turns: u64, mut decide: impl FnMut(u64) -> bool) -> u64 {
    let mut allowed = 0;
    for turn in first..first + turns {
        allowed += u64::from(decide(turn));
    }
    allowed
}

/// Whether the decisions of a contestant are allowed or denied.
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

    /// Returns how many of `turns` decisions must be allowed.
    const fn expected(self, turns: u64) -> u64 {
        match self {
            Self::Allowed => turns,
            Self::Denied => 0,
        }
    }

    /// Returns an error if a decision was of the other kind.
    pub(crate) fn verify(self, turns: u64, allowed: u64) -> Result<(), String> {
        if allowed == self.expected(turns) {
            return Ok(());
        }
        let name = self.name();
        Err(format!(
            "{allowed} of {turns} decisions were allowed, but all must be {name}"
        ))
    }
}

/// Decisions that are made and checked before the timing.
const REHEARSAL: u64 = 1000;

/// Decisions between two checks of whether to stop.
const BATCH: u64 = 256;

/// Calls [`Crew::time`] with threads that live only for this measurement.
///
/// # Errors
///
/// Returns the same errors.
#[allow(dead_code, reason = "programs that measure often keep a crew")]
pub(crate) fn time(
    contestant: &dyn Runner,
    kind: Kind,
    threads: usize,
    turns: u64,
) -> Result<Duration, String> {
    thread::scope(|scope| Crew::hire(scope, threads).time(contestant, kind, threads, turns))
}

/// The caller's thread, and other threads that wait for jobs.
///
/// A limiter may remember a thread by a number, and choose its shard by it. A crew's threads keep
/// their numbers, as the threads of a service do.
pub(crate) struct Crew<'j> {
    others: Vec<Sender<Job<'j>>>,
}

type Job<'j> = Box<dyn FnOnce() + Send + 'j>;

impl<'j> Crew<'j> {
    /// Starts a crew of this many threads, including the caller's.
    #[allow(
        dead_code,
        reason = "not every bench leaves threads where the system puts them"
    )]
    pub(crate) fn hire<'scope>(scope: &'scope Scope<'scope, '_>, threads: usize) -> Self
    where
        'j: 'scope,
    {
        Self::hire_with(scope, threads, |_| ())
    }

    /// Starts a crew. Each thread first calls `begin` with its number, which is 0 for the caller's
    /// thread.
    pub(crate) fn hire_with<'scope>(
        scope: &'scope Scope<'scope, '_>,
        threads: usize,
        begin: impl Fn(usize) + Clone + Send + 'scope,
    ) -> Self
    where
        'j: 'scope,
    {
        let start = |number| {
            let (sender, jobs) = mpsc::channel::<Job<'j>>();
            let begin = begin.clone();
            scope.spawn(move || {
                begin(number);
                jobs.into_iter().for_each(|job| job());
            });
            sender
        };
        let others = (1..threads).map(start).collect();
        // Last, so that the other threads do not inherit its effects.
        begin(0);
        Self { others }
    }

    /// Gives the other threads their jobs, with numbers from 1 on, if there are `threads` in all.
    ///
    /// # Errors
    ///
    /// Returns an error if there are fewer threads.
    pub(crate) fn start(
        &self,
        threads: usize,
        mut job: impl FnMut(usize) -> Job<'j>,
    ) -> Result<(), String> {
        let too_few = || format!("there are not {threads} threads");
        let others = self.others.get(..threads - 1).ok_or_else(too_few)?;
        for (number, other) in (1..).zip(others) {
            other.send(job(number)).map_err(|_| too_few())?;
        }
        Ok(())
    }

    /// Lets `threads` threads decide at the same time, one of them exactly `turns` times. Returns
    /// the thread time of that many decisions: the time of all threads, divided among all their
    /// decisions.
    ///
    /// The threads meet at a barrier. All of them decide before the first and after the last
    /// reading of the clock.
    ///
    /// # Errors
    ///
    /// Returns an error if a decision was of the other kind, before the timing or during it.
    pub(crate) fn time(
        &self,
        contestant: &'j dyn Runner,
        kind: Kind,
        threads: usize,
        turns: u64,
    ) -> Result<Duration, String> {
        let mut player = contestant.player(threads);
        contestant.prepare();
        kind.verify(REHEARSAL, player.run(0, REHEARSAL))?;
        contestant.prepare();
        let rivals: Arc<[Rival]> = (0..threads).map(|_| Rival::default()).collect();
        let made_by_rivals = || rivals.iter().map(Rival::made).sum::<u64>();
        let barrier = Arc::new(Barrier::new(threads));
        self.start(threads, |number| {
            let (rivals, barrier) = (Arc::clone(&rivals), Arc::clone(&barrier));
            Box::new(move || {
                let mut player = contestant.player(threads);
                barrier.wait();
                if let Some(rival) = rivals.get(number) {
                    rival.run(&mut *player);
                }
                drop(player);
                barrier.wait();
            })
        })?;
        barrier.wait();
        while rivals.iter().skip(1).any(|rival| rival.made() == 0) {
            thread::yield_now();
        }

        rivals.iter().for_each(|rival| rival.enter(Phase::Race));
        let before = made_by_rivals();
        let start = Instant::now();
        let allowed = player.run(0, turns);
        let wall = start.elapsed();
        let made = turns + (made_by_rivals() - before);

        rivals.iter().for_each(|rival| rival.enter(Phase::Over));
        barrier.wait();
        kind.verify(turns, allowed)?;
        Ok(wall.mul_f64(turns as f64 * threads as f64 / made as f64))
    }
}

/// What a rival does.
#[derive(Clone, Copy)]
enum Phase {
    /// Decides and yields, since there may be fewer cores than threads.
    Begin,
    /// Decides as fast as it can.
    Race,
    Over,
}

/// A thread that decides until the measurement is over.
#[derive(Default)]
#[repr(align(128))]
struct Rival {
    made: AtomicU64,
    phase: AtomicU64,
}

// ORDERING: Relaxed throughout. Counter and phase publish no other memory, and a batch more or less
// does not matter among millions.
impl Rival {
    fn run(&self, player: &mut dyn Player) {
        loop {
            let phase = self.phase.load(Ordering::Relaxed);
            if phase == Phase::Over as u64 {
                return;
            }
            player.run(self.made(), BATCH);
            self.made.fetch_add(BATCH, Ordering::Relaxed);
            if phase == Phase::Begin as u64 {
                thread::yield_now();
            }
        }
    }

    fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    fn enter(&self, phase: Phase) {
        self.phase.swap(phase as u64, Ordering::Relaxed);
    }
}
