//! How a contestant is timed: one decision after another, on one thread or on several at once.
//!
//! What is timed is throughput. Every turn of the loop makes one decision and keeps only whether it
//! was allowed; the contestant's address is hidden from the compiler each time, so that nothing of
//! it stays in registers from one decision to the next. The same loop runs every contestant, and
//! one of which each thread has a handle ([`Handled`]) in the same way, with the handle's address
//! hidden.

use std::hint::black_box;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Barrier};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use tollgate::sync::{AtomicU64, Ordering};

/// Something that decides, the same for every thread.
pub(crate) trait Contestant: Sync {
    /// The decision of this turn of a thread: whether it was allowed.
    fn decide(&self, turn: u64) -> bool;

    /// Makes ready for a row of decisions. No thread is deciding.
    fn prepare(&self) {}
}

/// Something of which each thread has a handle of its own.
#[allow(dead_code, reason = "not every bench has such contestants")]
pub(crate) trait Handled: Sync {
    type Handle<'a>: Handle
    where
        Self: 'a;

    /// The handle of one of so many threads.
    fn handle(&self, threads: usize) -> Self::Handle<'_>;

    /// Makes ready for a row of decisions. No thread is deciding.
    fn prepare(&self) {}
}

/// What one thread decides with.
#[allow(dead_code, reason = "not every bench has such contestants")]
pub(crate) trait Handle {
    /// The decision of this turn: whether it was allowed.
    fn decide(&mut self, turn: u64) -> bool;
}

/// A contestant, so that a list can hold many kinds.
pub(crate) trait Runner: Sync {
    /// Makes ready for a row of decisions. No thread is deciding.
    fn prepare(&self);

    /// What one of so many threads runs.
    fn player(&self, threads: usize) -> Box<dyn Player + '_>;
}

/// A contestant in its loop, which calls none through a pointer.
pub(crate) trait Player {
    /// Makes `turns` decisions, the first of them turn `first`. Returns how many were allowed.
    fn run(&mut self, first: u64, turns: u64) -> u64;
}

/// The start of a cache line (of two, since processors fetch pairs): contestants then neither share
/// one with a neighbour nor lie across two by chance.
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

/// A contestant of which each thread has a handle, each on a cache line of its own.
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

    /// Says so if not all of so many decisions were of this kind.
    pub(crate) fn verify(self, turns: u64, allowed: u64) -> Result<(), String> {
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

/// [`Crew::time`] with threads that are there for this measurement alone.
///
/// # Errors
///
/// As there.
#[allow(dead_code, reason = "who measures often keeps a crew")]
pub(crate) fn time(
    contestant: &dyn Runner,
    kind: Kind,
    threads: usize,
    turns: u64,
) -> Result<Duration, String> {
    thread::scope(|scope| Crew::hire(scope, threads).time(contestant, kind, threads, turns))
}

/// The caller's thread, and others that wait for something to do.
///
/// A limiter may remember a thread by a number, and choose its place by that. Threads that stay
/// keep their numbers, as those of a service do.
pub(crate) struct Crew<'j> {
    others: Vec<Sender<Job<'j>>>,
}

type Job<'j> = Box<dyn FnOnce() + Send + 'j>;

impl<'j> Crew<'j> {
    /// So many threads, the caller's own among them.
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

    /// The same. Each thread first calls `begin` with its number, the caller's thread with 0.
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
        // Last, so that the others do not inherit what it changes.
        begin(0);
        Self { others }
    }

    /// Lets others do this, each with its number, from 1 on, if there are `threads` in all.
    ///
    /// # Errors
    ///
    /// Says so if there are fewer.
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

    /// Lets `threads` threads decide at the same time, one of them exactly `turns` times, and
    /// returns what that many decisions cost a thread: the time it took, shared among all that were
    /// made.
    ///
    /// The threads meet at a barrier, and all are deciding before the clock is read for the first
    /// time and after it was read for the last.
    ///
    /// # Errors
    ///
    /// Says so if a decision was not of this kind, before the timing or in it.
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
    /// Decides, and lets others begin too: there may be fewer cores than threads.
    Begin,
    /// Decides as fast as it can.
    Race,
    Over,
}

/// A thread that decides until it is over.
#[derive(Default)]
#[repr(align(128))]
struct Rival {
    made: AtomicU64,
    phase: AtomicU64,
}

// ORDERING: Relaxed, in all of it. Counter and phase publish no other memory, and a batch more or
// less does not show among the millions.
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
